package gateway

import (
	"testing"

	"kennel/edge/sight"
)

// TestMissedPictures: a client that takes no pictures for a while finds the newest one, with the number of those that it replaced; reasons do not count. What two
// clients want alike is encoded once.
func TestMissedPictures(t *testing.T) {
	e := &eyes{}
	w := &watcher{shots: make(chan sighting, 1)}
	e.watchers = []*watcher{w}
	for i := range 4 {
		s := &shot{Frame: sight.Frame{Seq: uint64(i + 1)}}
		if i == 2 {
			s.reason = "asleep"
		}
		e.give(t.Context(), s)
	}
	if got := <-w.shots; got.Seq != 4 || got.missed != 2 {
		t.Errorf("picture %d, %d missed; want 4 with 2", got.Seq, got.missed)
	}
	e.give(t.Context(), &shot{})
	if got := <-w.shots; got.missed != 0 {
		t.Errorf("%d missed by a client that took the one before", got.missed)
	}
	s := &shot{}
	s.Shape(4, 2)
	a, err := s.encode(manner{format: sight.Grey8, quality: 75})
	b, berr := s.encode(manner{format: sight.Grey8, quality: 75})
	if err != nil || berr != nil || &a[0] != &b[0] {
		t.Errorf("encoded twice, or %v, %v", err, berr)
	}
}
