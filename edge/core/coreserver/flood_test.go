package coreserver

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/robot/claim"
)

// bestOf demands that one of several tries takes at most the given time: a machine with other work may be slow in any of them.
func bestOf(t *testing.T, most time.Duration, what string, try func() time.Duration) {
	t.Helper()
	var took []time.Duration
	for range 5 {
		d := try()
		if took = append(took, d.Round(time.Millisecond)); d <= most {
			return
		}
	}
	t.Errorf("%s: %v, want %v", what, took, most)
}

// drops returns how many claims were dropped.
func (b *bench) drops() (n int) {
	for _, o := range b.body.Orders() {
		if o.Kind == control.Drop {
			n++
		}
	}
	return n
}

// awaitDrops waits until there are n.
func (b *bench) awaitDrops(n int) {
	b.t.Helper()
	for end := time.Now().Add(patience); b.drops() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%d claims were dropped, want %d", b.drops(), n)
		}
	}
}

// TestFrozenPeer: a peer that owns something and no longer answers loses it within half a second; one that answers keeps what it has.
func TestFrozenPeer(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	alive := b.peer("alive")
	if r := alive.claim(claim.Person, "headPitch"); r.Code != "ok" {
		t.Fatalf("%+v", r)
	}
	var frozen []byte // all that it says; it reads nothing
	for _, m := range []corelink.Message{&corelink.Hello{Program: "frozen"}, &corelink.Claim{Request: 1, Devices: []string{"wheelL", "wheelR"},
		Priority: 50},
		&corelink.Do{Request: 2, Line: "wheel.speed = 2"}} {
		var err error
		if frozen, err = corelink.AppendFrame(frozen, m); err != nil {
			t.Fatal(err)
		}
	}
	bestOf(t, 500*time.Millisecond+watchEvery, "from its last word to the end of what a frozen peer moves", func() time.Duration {
		conn, err := net.Dial("unix", filepath.Join(b.root, corelink.SocketPath))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		before, began := b.drops(), time.Now()
		if _, err := conn.Write(frozen); err != nil {
			t.Fatal(err)
		}
		b.awaitDrops(before + 1)
		took := time.Since(began)
		if took < silentAfter {
			t.Errorf("it was dropped after %v, before its time", took)
		}
		return took
	})
	await(alive, "what it alone owns", func(m *corelink.Motion) bool {
		return !m.Moving && len(m.Owners) == 1 && m.Owners[0].Program == "alive"
	})
}

// TestFloodOfLines: 2,000 lines that the mailbox does not take keep nothing, and end at once.
func TestFloodOfLines(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.body.SetDeaf(true)
	began := time.Now()
	for i := range uint32(2_000) {
		b.handle(t.Context(), corelink.Peer{ID: 1}, &corelink.Do{Request: i, Line: "headPitch = 0.1"})
	}
	if len(b.due) > 0 || b.body.Refused() != 2_000 {
		t.Errorf("%d lines wait, %d were refused", len(b.due), b.body.Refused())
	}
	b.handle(t.Context(), corelink.Peer{ID: 1}, &corelink.Do{Line: "headPitch = " + strings.Repeat("[", 60_000)})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestFloodAndDeath: while other peers flood robotd with lines, what a peer moves stops at once when that peer dies.
func TestFloodAndDeath(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	stop := make(chan struct{})
	done := make(chan struct{}, 4)
	for range cap(done) {
		c := b.peer("flood")
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
					_ = c.c.Send(&corelink.Do{Line: "led = 1; laser"}) // its end is the test's
				}
			}
		}()
	}
	defer func() {
		close(stop)
		for range cap(done) {
			<-done
		}
	}()
	for end := time.Now().Add(patience); len(b.body.Orders()) <= 200; time.Sleep(time.Millisecond) { // until they have spent what they may say at once
		if time.Now().After(end) {
			t.Fatal("there is no flood")
		}
	}
	// On a quiet machine it takes under 50 ms; four floods and the race detector on a busy one leave the rest of the machine little.
	bestOf(t, 5*50*time.Millisecond, "from its death to the end of what a peer moves", func() time.Duration {
		driver := b.peer("driver")
		if r := driver.claim(claim.Person, "wheelL", "wheelR"); r.Code != "ok" {
			t.Fatalf("%+v", r)
		}
		if r := driver.line("wheel.speed = 2"); !r.Underway {
			t.Fatalf("%+v", r)
		}
		before, died := b.drops(), time.Now()
		driver.end()
		b.awaitDrops(before + 1)
		return time.Since(died)
	})
}
