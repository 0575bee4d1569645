package coreserver

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kennel/edge/core/corelink"
	"kennel/edge/core/coreserver/coreservertest"
	"kennel/edge/core/coreserver/holdfile"
	"kennel/edge/core/rt"
)

// gap is a loop that calls between after each look at it and before each command to it: what another peer asks for meanwhile.
type gap struct {
	coreservertest.Loop
	between func()
}

func (l *gap) Snapshot(s *rt.Snapshot) bool {
	ok := l.Loop.Snapshot(s)
	l.between()
	return ok
}

func (l *gap) Post(c rt.Command) bool {
	l.between()
	return l.Loop.Post(c)
}

// halted reports whether the loop is halted.
func (b *bench) halted() bool {
	var s rt.Snapshot
	return coreservertest.Loop{Body: b.body}.Snapshot(&s) && s.Halted
}

// TestHoldDuringResume: a hold, or a halt, that comes while the server looks at the loop to resume it wins (issue 28.3).
func TestHoldDuringResume(t *testing.T) {
	for name, ask := range map[string]func(*bench) error{
		"hold": func(b *bench) error { _, err := b.hold(b.t.Context(), "op", "its wheel is off"); return err },
		"halt": func(b *bench) error { b.setHalted(b.t.Context(), true); return nil },
	} {
		for at := range 2 {
			b := newBench(t, t.TempDir())
			gaps, asked := 0, false
			b.cfg.Loop = &gap{coreservertest.Loop{Body: b.body}, func() {
				if gaps++; gaps-1 != at || !b.halts.mu.TryLock() { // locked: the other peer's goroutine waits here
					return
				}
				b.halts.mu.Unlock()
				gaps, asked = 2, true
				if err := ask(b); err != nil {
					t.Error(err)
				}
			}}
			b.halt()
			b.stay()
			if !asked {
				if err := ask(b); err != nil {
					t.Error(err)
				}
			}
			if !b.halted() {
				t.Errorf("a %s at gap %d of a resume: the loop runs", name, at)
			}
		}
	}
}

// TestHangingMedium: while the medium does not take the journal of a hold, the robot is halted already, and other requests of the same peer are answered.
func TestHangingMedium(t *testing.T) {
	b := newBench(t, t.TempDir())
	answers := make(chan struct{})
	b.step = func(string) error { <-answers; return nil }
	b.run()
	answer := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(answer)
	c := b.peer("agentd")
	if err := c.c.Send(&corelink.Hold{Request: 900, By: "op", Reason: "its wheel is off"}); err != nil {
		t.Fatal(err)
	}
	if r := c.ask(func(n uint32) corelink.Message { return &corelink.Stop{Request: n} }); r.Code != "ok" || !b.halted() {
		t.Errorf("stop: %+v, loop halted %v", r, b.halted())
	}
	answer()
	if r := await(c, "the answer to the hold", func(m *corelink.Reply) bool { return m.Request == 900 }); r.Code != "ok" {
		t.Errorf("hold: %+v", r)
	}
}

// TestWordsGoWithTheUserData: once its note is cleared, peers hear that the robot is held and no longer who holds it and why (VEC-DGN-06).
func TestWordsGoWithTheUserData(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	c := b.peer("agentd")
	if r := c.ask(func(n uint32) corelink.Message { return &corelink.Hold{Request: n, By: "ann", Reason: "ann wants it"} }); r.Code != "ok" {
		t.Fatalf("%+v", r)
	}
	if err := os.Remove(filepath.Join(b.root, holdfile.NoteFile)); err != nil {
		t.Fatal(err)
	}
	await(c, "a hold without words", func(m *corelink.Held) bool { return m.By == "robotd" && m.SinceMS > 0 })
}

// TestHoldOfAnOlderRelease: the first start after an update takes over who holds the robot and why, and needs the note no longer to hold it.
func TestHoldOfAnOlderRelease(t *testing.T) {
	b := newBench(t, t.TempDir())
	note := filepath.Join(b.root, holdfile.NoteFile)
	const older = `{"by":"op@example.org","reason":"its wheel is off","since":"2026-11-01T12:00:00Z"}`
	if err := errors.Join(os.MkdirAll(filepath.Dir(note), 0o755), os.WriteFile(note, []byte(older), 0o600), b.StayHeld(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n := b.noted(); n.By != "op@example.org" || n.Reason != "its wheel is off" || !b.halted() {
		t.Errorf("%+v, loop halted %v", n, b.halted())
	}
	if got, err := os.ReadFile(note); err != nil || string(got) != older { // for a release that the robot may fall back to
		t.Errorf("the note is %s, %v", got, err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(b.root, "data")), b.cfg.Link.Close()); err != nil {
		t.Fatal(err)
	}
	b = newBench(t, b.root)
	if err := b.StayHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.noted(); n.By != "robotd" || n.Since.Year() != 2026 {
		t.Errorf("without user data: %+v", n)
	}
}
