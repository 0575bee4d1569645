package gateway

import (
	"testing"

	"kennel/edge/core/corelink"
)

// TestCursor: who comes back hears first what happened meanwhile, as far as it is kept, and all of it once robotd began again.
func TestCursor(t *testing.T) {
	h := &hub{}
	at := func(n uint64) *uint64 { return &n }
	hear := func(from, to uint64) {
		for n := from; n <= to; n++ {
			h.hear(&corelink.Event{Seq: n})
		}
	}
	for i, tc := range []struct {
		from, to    uint64
		since       *uint64
		first, last uint64 // 0: none
	}{
		{1, 0, at(0), 0, 0},
		{1, 3, nil, 0, 0},
		{4, 5, at(0), 1, 5},
		{6, 6, at(4), 5, 6},
		{7, 7, at(7), 0, 0},
		{8, 300, at(2), 45, 300}, // 256 are kept
		{1, 2, at(300), 1, 2},    // a new start
	} {
		hear(tc.from, tc.to)
		_, before, remove := h.since(tc.since)
		remove()
		var first, last uint64
		if len(before) > 0 {
			first, last = before[0].Seq, before[len(before)-1].Seq
		}
		if first != tc.first || last != tc.last || last > 0 && last-first != uint64(len(before)-1) {
			t.Errorf("%d: %d to %d (%d events), want %d to %d", i, first, last, len(before), tc.first, tc.last)
		}
	}
	h.hear(&corelink.Event{Seq: 3, Quiet: true})
	h.hear(&corelink.Event{Seq: 4, Replayed: true})
	events, before, remove := h.since(at(1))
	defer remove()
	h.hear(&corelink.Event{Seq: 5})
	if e := <-events; len(before) != 1 || e.Seq != 5 {
		t.Errorf("%d before, then %d; want 2, then 5", len(before), e.Seq)
	}
	h.hear(&corelink.Bye{})
	if _, ok := <-events; ok || len(h.to.all) != 0 {
		t.Error("robotd is lost, and the reader waits")
	}
}
