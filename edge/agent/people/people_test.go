package people

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"kennel/edge/agent/info"
	"kennel/infra/api/events"
)

type asked struct{ t *testing.T }

func (a asked) Do(_ context.Context, service, method string, _ []byte) ([]byte, error) {
	a.t.Errorf("%s/%s is asked", service, method)
	return nil, nil
}

// TestFrugalIsNobodys: a robot of a fleet in one process has no owner's side and introduces itself without a word.
func TestFrugalIsNobodys(t *testing.T) {
	p, err := New(info.Robot{Frugal: true, Log: slog.New(slog.DiscardHandler)}, Config{Ask: asked{t}})
	if err != nil {
		t.Fatal(err)
	}
	if tokens, claim := p.State(); tokens != nil || claim != nil || p.Name() != "" {
		t.Errorf("it has %v, %v and the name %q", tokens, claim, p.Name())
	}
	if err := p.introduce(t.Context()); err != nil {
		t.Error(err)
	}
	if s := p.Services(); len(s) != 1 || s[0].Name != "introduction" {
		t.Errorf("services %v", s)
	}
}

// TestProfileSessions is VEC-DAS-18: another profile ends the session of the one before; the same one is only said again.
func TestProfileSessions(t *testing.T) {
	var got []string
	p := &People{Robot: info.Robot{Emit: func(e events.Event) { got = append(got, e.Name+" "+e.S1) }}}
	for _, id := range []string{"a", "a", "b"} {
		p.profileIs(id)
	}
	want := []string{"profile_id.start a", "profile_id.start a", "profile_id.stop a", "profile_id.start b"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
