package preflightwire

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"kennel/cloud/identity/mail"
	"kennel/cloud/preflight"
	"kennel/infra/errs"
)

// TestFacts: what is meant for strangers keeps its name where one port serves both, and a store on another machine is said to be there.
func TestFacts(t *testing.T) {
	f := Config{PublicURL: "https://kennel.example:8443", API: "0.0.0.0:8443", Postgres: "postgres://kennel@db.internal:5432/kennel", S3: "http://127.0.0.1:15900",
		MQTT: "ssl://127.0.0.1:8883", Open: map[string]string{"public API": "0.0.0.0:8443", "uploads": ""}, Closed: map[string]string{"metrics": ":9100", "console": "0.0.0.0:8443"}}.facts()
	want := map[uint16]preflight.Listener{8443: {What: "public API", Meant: true}, 8883: {What: "MQTT broker", Meant: true}, 9100: {What: "metrics"}, 5432: {What: "Postgres"}, 15900: {What: "S3"}}
	if len(f.ports) != len(want) || f.host != "kennel.example" || f.api != "127.0.0.1:8443" || !slices.Equal(f.elsewhere, []string{"Postgres"}) {
		t.Errorf("%+v", f)
	}
	for port, l := range want {
		if f.ports[port] != l {
			t.Errorf("port %d: %+v, want %+v", port, f.ports[port], l)
		}
	}
	if f := (Config{Postgres: "postgres://localhost/kennel"}).facts(); !slices.Equal(f.elsewhere, []string{"S3"}) {
		t.Errorf("S3 of AWS: %+v", f)
	}
}

type post struct{ err error }

func (p post) Send(context.Context, mail.Message) error { return p.err }

type book []preflight.Record

func (b *book) Record(_ context.Context, r preflight.Record) error {
	*b = append(*b, r)
	return nil
}
func (b *book) Last(context.Context, preflight.Kind) (preflight.Last, error) {
	return preflight.Last{}, nil
}

// TestNoted: a letter that the server took and one that it did not are recorded; an address that is wrong says nothing about the server.
func TestNoted(t *testing.T) {
	var got book
	away := errors.New("connection refused")
	for _, err := range []error{nil, away, errs.New(errs.Invalid, "no such mailbox")} {
		if e := (noted{&got, post{err}, slog.New(slog.DiscardHandler)}).Send(t.Context(), mail.Message{}); !errors.Is(e, err) {
			t.Errorf("%v, want %v", e, err)
		}
	}
	if len(got) != 2 || !got[0].OK || got[1].OK || got[0].Kind != preflight.Mail {
		t.Errorf("%+v", got)
	}
}
