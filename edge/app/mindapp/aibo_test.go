package mindapp

import (
	"context"
	"os"
	"testing"
	"time"

	"kennel/edge/body/aibo"
	"kennel/edge/core/corelink"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

// TestBodyNotKnownYet: before robotd has said which body it has opened, the answer is not that the body has no motions; only a body of another species has none.
func TestBodyNotKnownYet(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s, err := corelink.Listen(root.Name(), corelink.Hello{Program: "robotd"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() { _ = s.Serve(t.Context(), corelink.Handlers{}) }()
	link := corelink.NewClient(root.Name(), corelink.WithHello(corelink.Hello{Program: "mindd"}))
	go func() { _ = link.Run(t.Context(), func(corelink.Message) {}) }()
	l := &library{root: root, link: link}
	body := func(code string) error {
		if _, err := l.Body(context.Background()); errs.CodeOf(err) != code {
			return errs.New(errs.Internal, "code %q: %v; want %q", errs.CodeOf(err), err, code)
		}
		return nil
	}
	testwait.Until(t, time.Minute, "greeting", func() error {
		if _, is := link.Hello(); !is {
			return errs.New(errs.Unavailable, "none yet")
		}
		return nil
	})
	if err := body("core_lost"); err != nil {
		t.Error("before the body is known: ", err)
	}
	for _, x := range []struct{ species, model, code string }{{"aibo", aibo.Models[0].String(), ""}, {"pleo", "1.1", "unable"}} {
		if err := s.SetBody(corelink.BodyInfo{Species: x.species, Model: x.model}); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, time.Minute, x.species, func() error { return body(x.code) })
	}
}
