package gateway

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"kennel/edge/core"
	"kennel/infra/api/live"
	"kennel/infra/api/robotpb"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/testwait"
)

// pair returns an update of two slots, and what changed in it.
func pair(missed uint64, a, b float64, changed ...bool) core.Update {
	u := core.Update{Missed: missed}
	for i, n := range []float64{a, b} {
		u.Values = append(u.Values, core.Value{Device: "robot", Slot: live.Slot{ID: i, Name: string(rune('a' + i))}, Value: &live.Value{Slot: i, Number: &n}, Changed: changed[i]})
	}
	return u
}

// TestSharedMessages: clients of a flow that take each moment are told the same message, which is encoded once. One that is slow gets the newest moment, with the number of
// those that it missed and all that changed since the one that it took; so does one that joins later. The end of the flow is told to all, and the next client begins another.
func TestSharedMessages(t *testing.T) {
	x := &flows{}
	over := errors.New("over")
	begun := 0
	moments, done := make(chan core.Update), make(chan struct{})
	subscribe := func(ctx context.Context, put func(core.Update) error) error {
		begun++
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case u, ok := <-moments:
				if !ok {
					return over
				}
				if err := put(u); err != nil {
					return err
				}
				done <- struct{}{}
			}
		}
	}
	give := func(u core.Update) {
		moments <- u
		<-done
	}
	read := func(m proto.Message) (missed uint64, numbers []float64, changed []bool) {
		t.Helper()
		if e, ok := m.(*kitgrpc.Encoded); ok {
			m = e.Message
		}
		v := m.(*robotpb.Values)
		for _, r := range v.Readings {
			numbers, changed = append(numbers, r.Value.GetNumber()), append(changed, r.Changed)
		}
		return v.Missed, numbers, changed
	}
	expect := func(what string, m proto.Message, err error, missed uint64, a, b float64, changed ...bool) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		if n, numbers, got := read(m); n != missed || !slices.Equal(numbers, []float64{a, b}) || !slices.Equal(got, changed) {
			t.Errorf("%s: %d missed, %v, changed %v; want %d, %v, %v", what, n, numbers, got, missed, []float64{a, b}, changed)
		}
	}
	one, first, _ := x.follow("k", subscribe)
	two, _, leave := x.follow("k", subscribe)
	select {
	case <-first:
		t.Fatal("a flow that has told nothing has begun")
	default:
	}
	give(pair(0, 1, 1, true, true))
	testwait.For(t, first, "the first moment")
	before := <-one.newest
	same := <-two.newest
	m, err := before.message(nil)
	expect("first", m, err, 0, 1, 1, true, true)

	give(pair(0, 2, 1, true, false))
	a, b := <-one.newest, <-two.newest
	m, err = a.message(before)
	n, nerr := b.message(same)
	expect("each in turn", m, err, 0, 2, 1, true, false)
	if m != n || nerr != nil {
		t.Errorf("two clients are told two messages: %p and %p, %v", m, n, nerr)
	}

	give(pair(0, 2, 5, false, true))
	give(pair(3, 2, 6, false, true)) // the robot's core told three that were lost on the way
	late := <-two.newest
	m, err = late.message(b)
	expect("a slow client", m, err, 4, 2, 6, false, true)
	joined := &moment{Update: pair(0, 1, 6, true, true)}
	m, err = late.message(joined)
	expect("a client that joined", m, err, 0, 2, 6, true, false)

	leave()
	give(pair(0, 7, 6, true, false))
	if len(two.newest) > 0 {
		t.Error("a client that left is told moments")
	}
	close(moments)
	if err := testwait.For(t, one.lost, "the end"); err != over {
		t.Errorf("ended with %v", err)
	}
	if len(two.lost) > 0 || len(x.all) > 0 || begun != 1 {
		t.Errorf("after the end: told one that left %v, flows %v, begun %d times", len(two.lost) > 0, x.all, begun)
	}
	three, _, _ := x.follow("k", subscribe)
	if err := testwait.For(t, three.lost, "the end of another flow"); err != over || begun != 2 {
		t.Errorf("another flow: %v, begun %d times", err, begun)
	}
}
