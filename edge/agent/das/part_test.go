package das

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/infra/api/ack"
	"kennel/infra/api/topics"
)

// TestGate: events and files leave the robot only after the owner's word over this connection, and not against it; a robot that asks for no owner is
// open over each connection.
func TestGate(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	h := host.New(host.Robot{Root: root, Thing: "vic:00e20100", Boot: "b1", Now: time.Now, Uptime: func() time.Duration { return time.Second }, Log: slog.New(slog.DiscardHandler)})
	g, err := Open(h, func(context.Context, string, []byte) error { return nil }, Config{})
	if err != nil {
		t.Fatal(err)
	}
	var heard []string
	note := func(what string) { heard = append(heard, what) }
	watch := host.Part{Name: "watch", Hears: []host.Hearing{host.On(func(host.Consented) { note("consented") }), host.On(func(host.Doubt) { note("doubt") }),
		host.On(func(k ack.Ack) { note(k.Batch) })}}
	for _, p := range []host.Part{g.Part(), watch} {
		if err := h.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	upload := g.Uploads(func(context.Context, *http.Request) (*http.Response, error) { return nil, io.EOF })
	doubt, err := ack.Ack{Batch: "x", Status: ack.RetryAfter, Code: OwnerChanged}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what  string
		do    func()
		open  bool
		heard []string
	}{
		{"at first", func() {}, false, nil},
		{"a connection", func() { h.Publish(host.LinkUp{}) }, false, nil},
		{"its owner's yes", func() { h.Publish(host.Consent{Owned: true, DataCollection: true}) }, true, []string{"consented"}},
		{"another connection", func() { h.Publish(host.Dialing{}) }, false, nil},
		{"a yes over it", func() { h.Publish(host.Consent{Owned: true, DataCollection: true}) }, true, []string{"consented"}},
		{"the cloud knows of another owner", func() { h.Down()[topics.Ack](doubt) }, true, []string{"doubt", "x"}},
		{"data of a former owner", func() { h.Publish(host.Withhold{}) }, false, nil},
		{"a no", func() { h.Publish(host.Consent{Owned: true}) }, false, []string{"consented"}},
		{"no owner", func() { h.Publish(host.Consent{}) }, true, []string{"consented"}},
		{"a connection of a robot of a fleet", func() { h.Publish(host.LinkUp{}); h.Publish(host.Unowned{}) }, true, nil},
	} {
		heard = nil
		tc.do()
		_, err := upload(t.Context(), nil)
		if sent := g.send(t.Context(), "das", nil) == nil; sent != tc.open || (err == io.EOF) != tc.open || !slices.Equal(heard, tc.heard) {
			t.Errorf("%s: events leave it %v, a file: %v, heard %q; want %v, %q", tc.what, sent, err, heard, tc.open, tc.heard)
		}
	}
}
