package coreserver

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/holdfile"
	"kennel/edge/motion"
	"kennel/edge/robot/claim"
)

// TestHold: a person's hold halts the robot, says who and why wherever it refuses, is lifted by no Resume and by no other robotd, and ends with
// Unhold. A peer's
// own halt stays beside it.
func TestHold(t *testing.T) {
	root := t.TempDir()
	b := newBench(t, root)
	if err := b.StayHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := b.run()
	c := b.peer("agentd")
	await(c, "that it is not held", func(m *corelink.Held) bool { return m.By == "" })
	if r := c.claim(claim.Person, "wheelL", "wheelR"); r.Code != "ok" {
		t.Fatalf("%+v", r)
	}
	moving := c.line("robot.go(1)")
	hold := func(by, reason string) *corelink.Reply {
		return c.ask(func(n uint32) corelink.Message { return &corelink.Hold{Request: n, By: by, Reason: reason} })
	}
	for _, bad := range [][2]string{{"", "x"}, {"op", ""}, {"op", "a\nb"}, {"op", strings.Repeat("x", 91)}} {
		if r := hold(bad[0], bad[1]); r.Code != "invalid" {
			t.Errorf("hold by %q for %q: %+v", bad[0], bad[1], r)
		}
	}
	const words = "held by op@example.org because its wheel is off"
	if r := hold("op@example.org", "its wheel is off"); r.Code != "ok" {
		t.Fatalf("hold: %+v", r)
	}
	if m := c.ended(moving.Request); m.Words() != "stopped after 0 m of 1 m: "+words {
		t.Errorf("ended: %s", m.Words())
	}
	if err := c.c.Send(&corelink.Resume{}); err != nil {
		t.Fatal(err)
	}
	refused := func(c *peer, want string) {
		t.Helper()
		if r := c.line("robot.go(1)"); r.Code != "stopped" || r.Detail != "robot.go: the robot may not move: "+want+"; release it first" {
			t.Errorf("go: %+v, want %q", r, want)
		}
	}
	refused(c, words)
	await(c, "why", func(m *corelink.Motion) bool { return slices.Equal(m.Stop, []string{words}) })
	end()
	if err := b.cfg.Link.Close(); err != nil {
		t.Fatal(err)
	}

	// The next robotd, before its body is there.
	b = newBench(t, root)
	if err := b.StayHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	end = b.run()
	c = b.peer("agentd")
	if m := await(c, "who holds it", func(*corelink.Held) bool { return true }); m.By != "op@example.org" || m.Reason != "its wheel is off" ||
		m.SinceMS == 0 {
		t.Errorf("held: %+v", m)
	}
	if r := c.claim(claim.Person, "wheelL", "wheelR"); r.Code != "ok" {
		t.Fatalf("%+v", r)
	}
	refused(c, words)
	unhold := func() {
		t.Helper()
		if r := c.ask(func(n uint32) corelink.Message { return &corelink.Unhold{Request: n} }); r.Code != "ok" {
			t.Errorf("unhold: %+v", r)
		}
	}
	if err := c.c.Send(&corelink.Halt{Reason: "mine"}); err != nil {
		t.Fatal(err)
	}
	unhold()
	refused(c, "halted")

	// A peer's halt outlives robotd too, and a Resume ends it.
	end()
	if err := b.cfg.Link.Close(); err != nil {
		t.Fatal(err)
	}
	b = newBench(t, root)
	if err := b.StayHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.run()
	c = b.peer("agentd")
	if m := await(c, "that it is not held", func(*corelink.Held) bool { return true }); m.By != "" {
		t.Errorf("held: %+v", m)
	}
	if r := c.claim(claim.Person, "wheelL", "wheelR"); r.Code != "ok" {
		t.Fatalf("%+v", r)
	}
	refused(c, "halted")
	if err := c.c.Send(&corelink.Resume{}); err != nil {
		t.Fatal(err)
	}
	if r := c.line("robot.go(1)"); !r.Underway {
		t.Errorf("after all halts: %+v", r)
	}
	unhold() // safe to repeat
	for _, name := range []string{holdfile.JournalFile, holdfile.NoteFile} {
		if _, err := os.Stat(filepath.Join(root, name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// TestUnreadableHold: a note or a journal that cannot be read holds the robot.
func TestUnreadableHold(t *testing.T) {
	for _, name := range []string{holdfile.JournalFile, holdfile.NoteFile} {
		b := newBench(t, t.TempDir())
		file := filepath.Join(b.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(`{"held":true`), 0o600)); err != nil {
			t.Fatal(err)
		}
		var r control.Report
		if err := b.StayHeld(t.Context()); err == nil || !strings.Contains(err.Error(), name) || !b.body.Report(&r) || r.Stop != motion.Halted {
			t.Errorf("%s: %v, stop %v", name, err, r.Stop.Words())
		}
	}
}
