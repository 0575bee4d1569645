package vectordriver_test

import (
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/vectordriver"
)

// patience is how long a test waits for the board; a loaded machine may take its time.
const patience = 10 * time.Second

// next reads the next fresh frame into s.
func next(t *testing.T, d *vectordriver.Driver, s *vectordriver.Sense) {
	t.Helper()
	if err := d.ReadSense(s, monoclock.Now()+patience); err != nil || !s.Fresh {
		t.Fatalf("ReadSense: fresh %t, %v; want a frame", s.Fresh, err)
	}
}

// until steps the driver, one write of a per frame read, until cond holds.
func until(t *testing.T, d *vectordriver.Driver, a *vectordriver.Act, what string, cond func(s *vectordriver.Sense) bool) vectordriver.Sense {
	t.Helper()
	var s vectordriver.Sense
	for deadline := monoclock.Now() + patience; monoclock.Now() < deadline; {
		next(t, d, &s)
		if err := d.WriteAct(a); err != nil {
			t.Fatalf("WriteAct: %v", err)
		}
		if cond(&s) {
			return s
		}
	}
	t.Fatalf("%s: not within %v; last measured %+v", what, patience, s)
	return s
}
