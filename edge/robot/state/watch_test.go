package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/robot"
)

// node returns the device that a name means.
func (b *bench) node(t *testing.T, name string) *robot.Node {
	t.Helper()
	target, err := b.tree.Lookup(name)
	if err != nil || len(target.Nodes) != 1 {
		t.Fatal(name, target, err)
	}
	return target.Nodes[0]
}

// told prints changes as a test reads them.
func told(changes []Change) string {
	var out []string
	for _, c := range changes {
		switch {
		case c.Event != nil:
			out = append(out, fmt.Sprintf("%s gone %v at %d", c.Event.Node.Full(), c.Event.Gone, c.MS()))
		case errors.Is(c.Err, ErrUnavailable):
			out = append(out, c.Ref.Node.Compact()+" unavailable")
		case c.Err != nil:
			out = append(out, c.Ref.Node.Compact()+" unknown")
		default:
			out = append(out, fmt.Sprintf("%s %s at %d", c.Ref.Node.Compact(), c.Value, c.MS()))
		}
	}
	return strings.Join(out, "; ")
}

// TestWatch: a subscription tells a slot when it reads otherwise, at most once in its time, and then as it is (GOSTAI-OPEN-02).
func TestWatch(t *testing.T) {
	b, live := newBench(t)
	w, err := live.Watch(100*ms, "wheel.speed", "headYaw", "robot.type", "camera.val", "laser.val->inRange", "wheelL.speed")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		now  time.Duration
		set  func()
		want string
	}{
		{5 * ms, func() {}, `wheelL unknown; wheelR unknown; headYaw unknown; robot "wheeled" at 0; camera unknown; laser unknown`},
		{50 * ms, func() { b.set(t, "wheelL.speed", 1, 40*ms) }, ""},                // too soon
		{105 * ms, func() { b.set(t, "wheelL.speed", 2, 90*ms) }, "wheelL 2 at 90"}, // the 1 is lost
		{106 * ms, func() { b.set(t, "wheelR.speed", -1, 106*ms) }, "wheelR -1 at 106"},
		{206 * ms, func() { b.set(t, "wheel.speed", 2, 200*ms) }, "wheelR 2 at 200"}, // the left wheel reads as before, measured later
		{400 * ms, func() { b.set(t, "headYaw.turn", 0.1, 400*ms) }, fmt.Sprintf("headYaw %v at 400", 0.1*2*math.Pi)},
		{600 * ms, func() { b.set(t, "laser.distance", math.Inf(1), 600*ms) }, "laser false at 600"},
		{800 * ms, func() { b.set(t, "laser.distance", 0.2, 800*ms) }, "laser true at 800"},
		{1000 * ms, func() { b.set(t, "laser.distance", 0.3, 1000*ms) }, ""},
		{1200 * ms, func() {
			b.board.SetValue(b.node(t, "camera").Slot("val").ID, robot.Value{Type: robot.Bytes, Data: []byte("abc"), Format: robot.Format{Name: "jpeg"}}, 1200*ms)
		}, "camera 3 bytes of jpeg at 1200"},
		{1400 * ms, func() {
			b.board.SetValue(b.node(t, "camera").Slot("val").ID, robot.Value{Type: robot.Bytes, Data: []byte("def"), Format: robot.Format{Name: "jpeg"}}, 1400*ms)
		}, "camera 3 bytes of jpeg at 1400"},
		{1600 * ms, func() { b.board.Forget(b.node(t, "wheelL").Slot("speed").ID); b.board.Publish(1600 * ms) }, "wheelL unknown"},
		{1800 * ms, func() {}, ""},
	} {
		tc.set()
		if got := told(w.Poll(tc.now)); got != tc.want {
			t.Errorf("at %v it tells %q, want %q", tc.now, got, tc.want)
		}
	}
	for name, want := range map[string]error{"robot.go": robot.ErrType, "wing": robot.ErrNotFound, "camera.wb": robot.ErrNotPresent, "laser.val->colour": robot.ErrNotFound} {
		if _, err := live.Watch(0, name); !errors.Is(err, want) {
			t.Errorf("watch of %s: %v, want %v", name, err, want)
		}
	}
	for _, names := range [][]string{nil, {"laser"}} {
		if _, err := live.Watch(-1, names...); !errors.Is(err, robot.ErrRange) {
			t.Errorf("watch of %v every -1: %v", names, err)
		}
	}
	nan, err := live.Watch(0, "battery.remain")
	if err != nil || told(nan.Poll(ms)) != "battery NaN at 0" || nan.Poll(2*ms) != nil {
		t.Errorf("what is no number is no change: %v", err)
	}
}

// TestSlowWatch: who reads seldom misses what was between, and makes nobody wait for it: not one publication is left out (GOSTAI-OPEN-02).
func TestSlowWatch(t *testing.T) {
	b, live := newBench(t)
	id := b.node(t, "laser").Slot("distance").ID
	w, err := live.Watch(0, "laser.distance")
	if err != nil {
		t.Fatal(err)
	}
	w.Poll(0)
	const rounds = 10_000
	for i := range rounds {
		b.board.Set(id, float64(i), time.Duration(i)*ms)
		b.board.Publish(time.Duration(i) * ms)
	}
	if got := told(w.Poll(time.Second)); got != fmt.Sprintf("laser %d at %d", rounds-1, rounds-1) || b.board.Skipped() != 0 {
		t.Errorf("after %d values it tells %q, and %d were left out", rounds, got, b.board.Skipped())
	}
	// Beside a writer: each watch tells values in the order in which they were published, and never half of two.
	pair, done := b.node(t, "wheelL").Slot("speed").ID, atomic.Bool{}
	other := b.node(t, "wheelR").Slot("speed").ID
	var wg sync.WaitGroup
	for range 3 {
		w, err := live.Watch(0, "wheelL.speed", "wheelR.speed")
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			last := -1.0
			for end := false; !end; {
				end = done.Load()
				got := w.Poll(0)
				for _, c := range got {
					if c.Err == nil && c.Value.Number < last {
						t.Errorf("%v after %v", c.Value, last)
					}
				}
				if len(got) == 2 && got[0].Err == nil && got[0].Value.Number != got[1].Value.Number {
					t.Errorf("told %q of one moment", told(got))
				}
				if len(got) > 0 && got[0].Err == nil {
					last = got[0].Value.Number
				}
			}
			if last != rounds {
				t.Errorf("the last told is %v, want %v", last, rounds)
			}
		})
	}
	for i := 1; i <= rounds; i++ {
		b.board.Set(pair, float64(i), ms)
		b.board.Set(other, float64(i), ms)
		for !b.board.Publish(ms) && i == rounds { // the last is not left out
		}
	}
	done.Store(true)
	wg.Wait()
}

// TestGone: a device that is gone keeps its place; its slots and those of its parts are unavailable, what never changes is read, and that it is gone and back is
// told as an event (GOSTAI-OPEN-13).
func TestGone(t *testing.T) {
	b, live := newBench(t)
	b.set(t, "headYaw.turn", 0.1, 10*ms)
	b.set(t, "wheel.speed", 3, 10*ms)
	b.set(t, "wheel.turn", 3, 10*ms)
	b.set(t, "laser.distance", 0.2, 10*ms)
	body, laser := b.tree.Root().Children()[0], b.node(t, "laser")
	w, err := live.Watch(0, "laser.distance", "battery.capacity")
	if err != nil {
		t.Fatal(err)
	}
	w.Poll(0)
	if b.board.SetBack(laser, ms) || len(b.board.Gone()) != 0 {
		t.Error("it was never gone")
	}
	if !b.board.SetGone(laser, "it is unplugged", 20*ms) || b.board.SetGone(laser, "again", 21*ms) {
		t.Error("that it is gone is news once")
	}
	if got := told(w.Poll(0)); got != "robot.body.laser gone true at 20; laser unavailable" {
		t.Errorf("told %q", got)
	}
	for name, want := range map[string]error{"laser.distance": ErrUnavailable, "laser.val->inRange": ErrUnavailable, "laser.val->rangemax": nil, "headYaw.val": nil} {
		if _, err := live.Read(name); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "unavailable: it is unplugged") {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if r, err := live.Read("robot.body.val"); err != nil || !slices.ContainsFunc(r.Value.Items, func(v robot.Value) bool { return v.Type == robot.None }) {
		t.Errorf("of a group what is gone is nothing: %v, %v", r.Value, err)
	}
	b.board.SetGone(body, "the spine is silent", 30*ms)
	if got := b.board.Gone(); len(got) != 1 || got[0] != (Presence{body, true, "the spine is silent", 30 * ms}) {
		t.Errorf("gone: %+v", got)
	}
	for name, want := range map[string]error{"laser.distance": ErrUnavailable, "wheel.val": nil, "battery.capacity": nil, "battery.voltage": ErrUnavailable, "robot.type": nil, "camera.rgb": ErrUnavailable} {
		if _, err := live.Read(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := live.Read("laser.distance"); !strings.Contains(err.Error(), "unplugged") {
		t.Errorf("what is nearest says why: %v", err)
	}
	before := b.sets
	for _, name := range []string{"headYaw", "wheel.speed", "wheelL.val"} {
		line := robot.Line{Name: name, Verb: robot.Put, Value: robot.F(0.5)}
		if _, err := live.Do(t.Context(), line); !errors.Is(err, ErrUnavailable) || b.sets != before {
			t.Errorf("%s: %v, written %d times", name, err, b.sets-before)
		}
	}
	if _, err := live.Call(t.Context(), "robot.go", robot.F(1)); err != nil {
		t.Errorf("the robot itself is there: %v", err)
	}
	b.board.SetGone(b.tree.Root(), "nothing is left", 31*ms)
	if _, err := live.Call(t.Context(), "robot.go", robot.F(1)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a method of what is gone: %v", err)
	}
	b.board.SetBack(b.tree.Root(), 32*ms)
	b.board.SetBack(laser, 33*ms)
	b.set(t, "laser.distance", 0.4, 34*ms)
	if got := told(w.Poll(0)); got != "robot.body.laser gone false at 33; robot.body gone true at 30" {
		t.Errorf("told %q", got)
	}
	b.board.SetBack(body, 35*ms)
	if got := told(w.Poll(0)); got != "robot.body gone false at 35; laser 0.4 at 34" {
		t.Errorf("told %q", got)
	}
	if got := b.board.Gone(); got != nil {
		t.Errorf("gone: %+v", got)
	}
}
