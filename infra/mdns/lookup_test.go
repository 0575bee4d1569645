package mdns

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"kennel/infra/errs"
)

// TestLookup: a name that a responder of this machine announces is found, another is not.
func TestLookup(t *testing.T) {
	r, err := Listen("kennel-lookup.local", slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	patient, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	if a, err := Lookup(patient, "Kennel-Lookup.local"); err != nil || !a.Is4() {
		t.Errorf("%v, %v", a, err)
	}
	hasty, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	if a, err := Lookup(hasty, "kennel-nowhere.local"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a name that nothing has: %v, %v", a, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for name, want := range map[string]bool{"escapepod.local": true, "A.LOCAL.": true, "kennel.example": false, "local": false} {
		if Local(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func FuzzAddressIn(f *testing.F) {
	own, _ := Answer(query(f, "escapepod.local.", 1, 1), "escapepod.local", addrs, false)
	f.Add(own)
	f.Add([]byte("damage"))
	f.Fuzz(func(_ *testing.T, b []byte) { addressIn(b, "escapepod.local.") })
}
