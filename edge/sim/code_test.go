package sim

import (
	"context"
	"os"
	"testing"
	"time"

	"kennel/edge/agent/ownership/claim"
)

// TestWatchShown: a code that a simulated robot shows is reported when it appears and when it disappears.
func TestWatchShown(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan string, 10) // more than there is to hear
	done := make(chan struct{})
	go func() { watchShown(ctx, root, claim.CodeFile, func(c string) { heard <- c }); close(done) }()
	d := claim.FileDisplay{Root: root}
	for _, want := range []string{"K7QM-3XW9", "AAAA-BBBB", ""} {
		var err error
		if want == "" {
			err = d.Hide()
		} else {
			err = d.Show(want, time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("never heard %q", want)
		}
	}
	cancel()
	<-done
	if len(heard) != 0 {
		t.Errorf("heard %d more", len(heard))
	}
}
