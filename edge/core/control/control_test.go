package control

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

// TestClaims: an owner moves what it holds. A second claim is refused, a higher one takes over, and a lease is its owner's alone.
func TestClaims(t *testing.T) {
	r := newRig(t).homed()
	if got := r.ask(r.set(alice, 1, neck)); got.Code != NotHeld || got.By != 0 || len(r.take()) > 0 {
		t.Errorf("without a claim: %+v", got)
	}
	lease := r.claims(alice, "robot.body.wheel", "headPitch")
	set, _ := r.c.Actuators("wheelR")
	busy := Result{Owner: bob, Code: Busy, By: alice, Priority: claim.Person}
	got := r.ask(Order{Kind: Claim, Owner: bob, Set: set, Priority: claim.Person})
	if busy.Request, busy.Actuator = got.Request, got.Actuator; got != busy || !set.Has(got.Actuator) {
		t.Errorf("a second claim: %+v, want %+v", got, busy)
	}
	for name, tc := range map[string]struct {
		o    Order
		want Code
	}{
		"another's wheels":        {r.set(bob, 1, wheels), NotHeld},
		"a way on them":           {Order{Kind: Go, Owner: bob, A: 1, For: time.Second}, NotHeld},
		"a turn on them":          {Order{Kind: Turn, Owner: bob, A: 1, For: time.Second}, NotHeld},
		"renewal of its lease":    {Order{Kind: Renew, Owner: bob, Lease: lease, TTL: time.Second}, Gone},
		"release of its lease":    {Order{Kind: Release, Owner: bob, Lease: lease}, Gone},
		"a lease that is unknown": {Order{Kind: Renew, Owner: alice, Lease: lease + 7}, Gone},
		"a negative renewal":      {Order{Kind: Renew, Owner: alice, Lease: lease, TTL: -1}, Invalid},
		"a negative claim":        {Order{Kind: Claim, Owner: alice, Set: set, TTL: -1}, Invalid},
		"a claim of nothing":      {Order{Kind: Claim, Owner: alice}, Invalid},
		"no kind":                 {Order{Owner: alice}, Invalid},
		"a kind beyond all":       {Order{Kind: 99, Owner: alice}, Invalid},
		"another's temperature":   {Order{Kind: Heat, Owner: alice, A: 99}, Invalid},
		"a renewal":               {Order{Kind: Renew, Owner: alice, Lease: lease, TTL: time.Minute}, OK},
	} {
		if got := r.ask(tc.o); got.Code != tc.want || got.Code == NotHeld && got.By != alice || len(r.take()) > 0 {
			t.Errorf("%s: %+v, want %v", name, got, tc.want)
		}
	}
	drive := r.set(alice, 3, wheels)
	drive.For = time.Minute
	if got := r.ask(drive); got.Code != OK || !got.Underway || got.Taken[0] != 3 || !slices.Equal(r.take(), []call{{"begin", wheels, 3}}) {
		t.Errorf("its own wheels: %+v", got)
	}
	request := r.request
	if got := r.ask(Order{Kind: Claim, Owner: bob, Set: set, Priority: claim.Safety, TTL: time.Second}); got.Code != OK || !r.p.held(busy.Actuator) {
		t.Fatalf("a higher claim: %+v", got)
	}
	if ends := r.ends(); len(ends) != 1 || ends[0].Owner != alice || ends[0].Request != request || ends[0].Outcome != motion.Cancelled ||
		r.rep.Owners[busy.Actuator].Owner != bob {
		t.Errorf("the lower owner hears %+v, want that its drive was cancelled", ends)
	}
	if log := r.take(); !slices.Equal(log, []call{{"let go", wheels, 0}}) {
		t.Errorf("the plant hears %v", log)
	}
	r.step(100) // the higher claim expires
	if got := r.ask(drive); got.Code != OK {
		t.Errorf("after the higher claim: %+v", got)
	}
	r.take()
	if !r.c.Post(Order{Kind: Drop, Owner: alice}) {
		t.Fatal("the mailbox is full")
	}
	if r.step(1); !slices.Equal(r.take(), []call{{"let go", wheels, 0}}) || r.rep.Owners != [claim.MaxActuators]Owning{} {
		t.Errorf("alice has gone and still owns something: %+v", r.rep.Owners[:8])
	}
	full := 0
	for range 100 {
		if r.ask(Order{Kind: Claim, Owner: alice, Set: set, Priority: claim.Person}).Code == Full {
			full++
		}
	}
	if full != 36 {
		t.Errorf("of 100 claims %d were refused as too many, want 36", full)
	}
	r.ends()
	for _, o := range []Order{{Kind: Stop, Owner: Self}, {Kind: Stop}} {
		r.c.Post(o)
	}
	if r.step(1); len(r.results) > 0 || len(r.take()) > 0 {
		t.Errorf("orders of no program: %+v", r.results)
	}
}

// TestPlace: each step shows in shared memory where the body is.
func TestPlace(t *testing.T) {
	r := newRig(t).homed()
	mem := make([]byte, r.c.Board().SharedSize())
	if err := r.c.Board().Share(mem); err != nil {
		t.Fatal(err)
	}
	s, err := state.ReadShared(mem)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r.p.base.Pose = motion.Pose{X: 0.1 * float64(i+1), Y: -0.2, Theta: 0.3}
		r.p.pitch = 0.1
		r.step(1)
		if p := s.Read(nil, nil); p.Pitch != 0.1 || p.X != r.p.base.Pose.X || p.Y != -0.2 || p.Theta != 0.3 || p.At != r.rep.At || p.Moving != r.rep.Moving {
			t.Errorf("%+v, want that of %+v", p, r.rep.Base)
		}
	}
}

// TestShared: a part that is shared needs no claim while no other owner holds it.
func TestShared(t *testing.T) {
	r := newRig(t).homed()
	if got := r.ask(r.set(alice, 1, light)); got.Code != OK || got.Underway || !slices.Equal(r.take(), []call{{"begin", light, 1}}) {
		t.Errorf("free: %+v", got)
	}
	lease := r.claims(bob, "led")
	if got := r.ask(r.set(alice, 2, light)); got.Code != NotHeld || got.By != bob || len(r.take()) > 0 {
		t.Errorf("another's: %+v", got)
	}
	if got := r.ask(r.set(bob, 3, light)); got.Code != OK {
		t.Errorf("its owner: %+v", got)
	}
	r.take()
	r.ask(Order{Kind: Release, Owner: bob, Lease: lease})
	r.ask(Order{Kind: Stop, Owner: alice})
	for _, c := range r.take() {
		if c.part == light {
			t.Errorf("%q for what is no motion", c.what)
		}
	}
	if ends := r.ends(); len(ends) > 0 {
		t.Errorf("ends of what is no motion: %+v", ends)
	}
}

// TestOneOrderOfManyParts: an order begins on all its parts or on none, and its owner hears one end, with the worst outcome.
func TestOneOrderOfManyParts(t *testing.T) {
	r := newRig(t).homed()
	r.claims(alice, "robot.body.wheel", "headPitch", "arm")
	all := r.set(alice, 2, arm, light, neck, wheels)
	for name, tc := range map[string]struct {
		ends [3]motion.Outcome // of wheels, neck and arm, in this order
		want motion.Outcome
	}{
		"all done":       {[3]motion.Outcome{motion.Done, motion.Done, motion.Done}, motion.Done},
		"first blocked":  {[3]motion.Outcome{motion.Blocked, motion.Done, motion.Done}, motion.Blocked},
		"second blocked": {[3]motion.Outcome{motion.Done, motion.Blocked, motion.Done}, motion.Blocked},
		"last blocked":   {[3]motion.Outcome{motion.Done, motion.Done, motion.Blocked}, motion.Blocked},
	} {
		if got := r.ask(all); got.Code != OK || !got.Underway || len(r.take()) != 4 {
			t.Fatalf("%s: %+v", name, got)
		}
		for p, o := range tc.ends {
			if r.step(1); len(r.results) > 0 {
				t.Errorf("%s: an end before part %d: %+v", name, p, r.results)
			}
			r.p.outcome[p] = o
		}
		r.step(1)
		if ends := r.ends(); len(ends) != 1 || ends[0].Request != r.request || ends[0].Outcome != tc.want {
			t.Errorf("%s: ends %+v, want one, %v", name, ends, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		err  error
		want Code
	}{
		"stopped":      {motion.ErrStopped, Refused},
		"invalid":      {motion.ErrInvalid, Invalid},
		"unable":       {ErrUnable, Unable},
		"not measured": {ErrUnmeasured, Unmeasured},
		"unknown":      {errors.New("plant: what no caller knows"), Invalid},
	} {
		r.p.refuse[arm] = tc.err
		got := r.ask(all)
		want := []call{{"begin", wheels, 2}, {"begin", neck, 2}, {"rest", wheels, 0}, {"rest", neck, 0}}
		if log := r.take(); got.Code != tc.want || got.Underway || !slices.Equal(log, want) {
			t.Errorf("%s: %+v, plant %v; want %v", name, got, log, want)
		}
		if r.step(2); len(r.results) > 0 {
			t.Errorf("%s: an end of what did not begin: %+v", name, r.ends())
		}
	}
	r.p.refuse[arm] = nil
	late, both := all, all
	late.For = 0
	both.Within, both.Speed = time.Second, 1
	back := r.set(alice, 1, neck)
	back.Within = -1
	strange := all
	strange.Goals[3].Slot = 60000
	for name, tc := range map[string]struct {
		o    Order
		want Code
	}{
		"no deadline":        {late, Invalid},
		"a time and a speed": {both, Invalid},
		"a negative time":    {back, Invalid},
		"a slot of no part":  {strange, Unable},
		"no goal":            {Order{Kind: Set, Owner: alice, For: time.Second}, Unable},
	} {
		if got := r.ask(tc.o); got.Code != tc.want || len(r.take()) > 0 {
			t.Errorf("%s: %+v, want %v", name, got, tc.want)
		}
	}
}

// TestDeadline: a part that needs a deadline ends with it (part of VEC-MCT-14), another one has none.
func TestDeadline(t *testing.T) {
	r := newRig(t).homed()
	r.claims(alice, "robot.body.wheel", "headPitch")
	for _, long := range []time.Duration{-1, 0, MaxFor + 1} {
		for _, o := range []Order{{Kind: Go, Owner: alice, A: 1, For: long}, {Kind: Turn, Owner: alice, A: 1, For: long}} {
			if got := r.ask(o); got.Code != Invalid || len(r.take()) > 0 {
				t.Errorf("%v of %v: %+v", o.Kind, long, got)
			}
		}
	}
	nod := r.set(alice, 1, neck)
	nod.For = 0
	r.ask(nod)
	r.ask(Order{Kind: Go, Owner: alice, A: 1, For: 100 * ms})
	began := r.f.Now
	for len(r.results) == 0 && r.f.Now-began < time.Second {
		r.step(1)
	}
	if ends := r.ends(); r.f.Now-began != 100*ms || len(ends) != 1 || ends[0].Outcome != motion.Expired {
		t.Errorf("ends %+v after %v", ends, r.f.Now-began)
	}
	if log := r.take(); !slices.Equal(log, []call{{"begin", neck, 1}, {"begin", wheels, 1}, {"rest", wheels, 0}}) {
		t.Errorf("plant %v", log)
	}
	if r.step(1000); len(r.results) > 0 || r.p.outcome[neck] != motion.Running {
		t.Errorf("the neck ended: %+v", r.results)
	}
	nod.Goals[0].Value = 2 // its owner changes its mind
	first := r.request - 1
	if r.ask(nod); len(r.results) != 1 || r.results[0].Request != first || r.results[0].Outcome != motion.Cancelled {
		t.Errorf("the motion before ended %+v, want request %d cancelled", r.results, first)
	}
	r.ends()
	if got := r.ask(Order{Kind: Stop, Owner: bob}); got.Code != OK { // needs no claim
		t.Errorf("stop: %+v", got)
	}
	if r.step(1); len(r.results) != 1 || r.results[0].Owner != alice || r.results[0].Outcome != motion.Cancelled {
		t.Errorf("stopped: %+v", r.results)
	}
	r.ends()
	r.ask(nod)
	r.f.Halted = true
	if r.step(2); len(r.results) != 1 || r.results[0].Outcome != motion.Stopped || r.results[0].Stop != motion.Halted || r.rep.Stop != motion.Halted {
		t.Errorf("halted: %+v, stop %b", r.results, r.rep.Stop)
	}
	r.f.Halted, r.f.Stale = false, true
	if r.step(1); r.rep.Stop != motion.Watchdog {
		t.Errorf("stale: stop %b, want that of the watchdog", r.rep.Stop)
	}
}

// TestMoved: the result of a way and of a turn has what was made of it, signed, over the wrap of the heading, and not what was made before.
func TestMoved(t *testing.T) {
	r := newRig(t).homed()
	r.claims(alice, "robot.body.wheel")
	for _, tc := range []struct {
		name   string
		kind   Kind
		ahead  float64 // each step, m
		turned float64 // each step, rad
		want   float64 // after 50 steps
	}{
		{"ahead", Go, 0.01, 0, 0.5}, {"back", Go, -0.01, 0, -0.5}, {"left", Turn, 0, 0.1, 5}, {"right", Turn, 0, -0.1, -5},
		{"a bend", Go, 0.01, 0.02, 0.5}, {"bent", Turn, 0.01, 0.02, 1},
	} {
		if got := r.ask(Order{Kind: tc.kind, Owner: alice, A: 1, For: time.Minute}); got.Code != OK {
			t.Fatalf("%s: %+v", tc.name, got)
		}
		for range 50 {
			p := &r.p.base.Pose
			sin, cos := math.Sincos(p.Theta + tc.turned/2)
			*p = motion.Pose{X: p.X + tc.ahead*cos, Y: p.Y + tc.ahead*sin, Theta: math.Remainder(p.Theta+tc.turned, 2*math.Pi)}
			r.step(1)
		}
		r.p.outcome[wheels] = motion.Done
		r.step(1)
		if ends := r.ends(); len(ends) != 1 || math.Abs(ends[0].Moved-tc.want) > 1e-6 || ends[0].Pose != r.p.base.Pose {
			t.Errorf("%s: %+v, want %v at %+v", tc.name, ends, tc.want, r.p.base.Pose)
		}
	}
}

// TestLateAtItsEnd (30.5): a way or a turn that the late loop stops within the last percent is done; farther from its end, or for another reason, it is not.
func TestLateAtItsEnd(t *testing.T) {
	for _, tc := range []struct {
		name         string
		kind         Kind
		asked, moved float64
		halted       bool
		want         motion.Outcome
	}{
		{"a turn, 0.6 % short", Turn, 1.57, 1.56, false, motion.Done}, {"to the right", Turn, -1.57, -1.56, false, motion.Done}, {"a turn, 2 % short", Turn, 1.57, 1.54, false, motion.Stopped},
		{"many turns, 2 degrees short", Turn, 12, 11.965, false, motion.Stopped}, {"the wrong way", Turn, 1.57, -1.56, false, motion.Stopped},
		{"a way", Go, 1, 0.995, false, motion.Done}, {"a way, 2 cm short", Go, 3, 2.98, false, motion.Stopped}, {"a short way", Go, 0.01, 0.005, false, motion.Stopped},
		{"by a person", Turn, 1.57, 1.56, true, motion.Stopped},
	} {
		r := newRig(t).homed()
		r.claims(alice, "robot.body.wheel")
		r.ask(Order{Kind: tc.kind, Owner: alice, A: tc.asked, For: time.Minute})
		if tc.kind == Go {
			r.p.base.Pose.X += tc.moved
			r.step(1)
		}
		for left := tc.moved; tc.kind == Turn && left != 0; r.step(1) {
			part := max(-1, min(1, left)) // below half a turn a step
			r.p.base.Pose.Theta, left = math.Remainder(r.p.base.Pose.Theta+part, 2*math.Pi), left-part
		}
		r.f.Halted, r.f.Stale = tc.halted, true
		r.step(2)
		if ends := r.ends(); len(ends) != 1 || ends[0].Outcome != tc.want || (ends[0].Stop != 0) != (tc.want == motion.Stopped) || math.Abs(ends[0].Moved-tc.moved) > 1e-6 {
			t.Errorf("%s: %+v, want %v", tc.name, ends, tc.want)
		}
	}
}

// TestHoming: VEC-MOT-07. A body that was opened finds its zeros under a claim of the loop's own, which gives way to a person.
func TestHoming(t *testing.T) {
	both := []call{{"home", neck, 0}, {"home", arm, 0}}
	homes := func(r *rig) []call { return slices.DeleteFunc(r.take(), func(c call) bool { return c.what != "home" }) }
	r := newRig(t)
	if r.step(1); len(homes(r)) > 0 {
		t.Error("it homes before the plant took in a frame")
	}
	if r.step(1); !slices.Equal(homes(r), both) || r.rep.Owners[r.c.of[slotOf(t, r.c.model.Tree, toySlots[arm])]] != (Owning{Self, claim.Behavior}) {
		t.Errorf("owners %+v, want arm and neck owned by the loop", r.rep.Owners[:8])
	}
	r.p.stop = motion.Link // a gap stops it, and it begins again, as often as is sensible
	for i := range 2 * homeTries {
		r.step(3)
		if got := len(homes(r)); got != len(both) && i < homeTries-1 || got > 0 && i >= homeTries-1 {
			t.Errorf("after %d gaps %d homings", i+1, got)
		}
		r.p.stop = motion.Link
	}
	r.in.Epoch++ // a body that started its counts again
	if r.step(3); !slices.Equal(homes(r), both) {
		t.Error("a body that started its counts again does not home")
	}
	r.f.Run++ // opened again
	r.p.outcome = [toyParts]motion.Outcome{}
	if r.step(3); !slices.Equal(homes(r), both) {
		t.Error("a body that was opened again does not home")
	}
	r.claims(alice, "headPitch")
	if log := r.take(); !slices.Equal(log, []call{{"let go", neck, 0}}) {
		t.Errorf("a person takes the neck, and the plant hears %v", log)
	}
	r.p.homed[arm], r.p.outcome[arm] = true, motion.Done
	if r.step(5); len(homes(r)) > 0 || len(r.results) > 0 || r.c.homing != settled {
		t.Errorf("what a person took over began again: homing %d, results %+v", r.c.homing, r.results)
	}

	r = newRig(t)
	r.step(2)
	r.ask(Order{Kind: Stop, Owner: bob})
	homes(r)
	if r.step(5); len(homes(r)) > 0 || r.c.homing != settled {
		t.Errorf("what a person stopped began again: homing %d", r.c.homing)
	}

	r = newRig(t)
	r.claims(alice, "arm")
	if r.step(5); len(homes(r)) > 0 {
		t.Error("it homes although a person has a joint")
	}

	r = newRig(t)
	r.f.Halted = true
	r.step(5)
	r.f.Halted = false
	if r.step(5); len(homes(r)) > 0 {
		t.Error("it homes after a halt without an order")
	}
}

// TestTape: a recording of the loop holds its orders: a replay on another plant of the same kind does the same.
func TestTape(t *testing.T) {
	tape := rt.NewTape(1 << 20)
	m, p := toyModel(t)
	c, err := New(m, tape)
	if err != nil {
		t.Fatal(err)
	}
	w := &clockwork{}
	loop, err := rt.New(rt.Config{Tape: tape}, w, c.Task())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	set, err := c.Actuators("robot.body.wheel")
	if err != nil {
		t.Fatal(err)
	}
	w.each = func(n int) {
		switch n {
		case 10:
			c.Post(Order{Kind: Claim, Owner: alice, Set: set, Priority: claim.Person})
		case 20:
			c.Post(Order{Kind: Go, Owner: alice, A: 0.25, For: 50 * ms})
		case 60:
			cancel()
		}
	}
	if err := loop.Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := tape.Flush(&out); err != nil || tape.Lost() > 0 {
		t.Fatalf("%v, %d records lost", err, tape.Lost())
	}
	if want := (call{"begin", wheels, 0.25}); !slices.Contains(p.log, want) {
		t.Fatalf("it did %v", p.log)
	}
	m, again := toyModel(t)
	done, err := rt.Replay(&out, rt.Config{}, func(tape *rt.Tape, _ body.Description) []rt.Task {
		c, err := New(m, tape)
		if err != nil {
			t.Fatal(err)
		}
		return []rt.Task{c.Task()}
	}, nil)
	if err != nil || done.Cut != nil || done.Steps < 50 || !slices.Equal(again.log, p.log) {
		t.Errorf("%+v, %v: replayed %v, recorded %v", done, err, again.log, p.log)
	}
}

// clockwork is a clock and a body with a frame every 10 ms.
type clockwork struct {
	now  time.Duration
	n    int
	each func(n int)
}

func (w *clockwork) Now() time.Duration         { return w.now }
func (w *clockwork) SleepUntil(t time.Duration) { w.now = max(w.now, t) }
func (w *clockwork) Describe() body.Description {
	return body.Description{Species: "toy", Timing: body.Timing{Rhythm: 10 * ms, Stale: 50 * ms, Silent: time.Second}}
}
func (w *clockwork) Read(s *body.Sense, _ time.Duration) error {
	w.now += 10 * ms
	w.n++
	w.each(w.n)
	s.At, s.Seq, s.Epoch, s.Fresh = w.now, uint32(w.n), 1, true
	return nil
}
func (w *clockwork) Write(*body.Act) error { return nil }
func (w *clockwork) Halt() error           { return nil }
func (w *clockwork) Shutdown() error       { return nil }
func (w *clockwork) Close() error          { return nil }
