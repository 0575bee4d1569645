package control

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// TestOrderFromBefore: what waited in the mailbox while there was no body moves nothing when there is one again.
func TestOrderFromBefore(t *testing.T) {
	r := newRig(t).homed()
	r.claims(alice, "robot.body.wheel")
	r.f.Run++
	for _, o := range []Order{r.set(alice, 1, wheels), {Kind: Go, Owner: alice, A: 1, For: time.Second}} {
		r.c.Post(o)
	}
	if r.step(1); len(r.results) != 2 || r.results[0].Code != Refused || r.results[0].Stop != motion.Link || r.results[1].Code != Refused ||
		len(r.take()) > 0 {
		t.Errorf("results %+v", r.results)
	}
	if r.ends(); r.ask(r.set(alice, 1, wheels)).Code != OK {
		t.Error("an order after it is refused")
	}
}

// TestMoment: what the loop tells its plant.
func TestMoment(t *testing.T) {
	r := newRig(t)
	r.step(1)
	first := r.p.moment
	if !math.IsNaN(first.CPU) {
		t.Errorf("the processor has %v degrees before a word of it", first.CPU)
	}
	first.CPU = 0
	if want := (Moment{Now: r.f.Now, Run: 1, Opened: true}); first != want {
		t.Errorf("first %+v, want %+v", first, want)
	}
	r.c.PostHeat(81)
	r.c.Post(Order{Kind: Heat, A: 20}) // of no program
	r.ask(Order{Kind: Calm, Owner: alice, On: true})
	r.ask(Order{Kind: Sleep, Owner: alice, Sleep: power.Awake})
	r.f.Now += 20 * ms
	r.step(1)
	if want := (Moment{Now: r.f.Now, DT: 30 * ms, Run: 1, Calm: true, Sleep: power.Awake, CPU: 81}); r.p.moment != want {
		t.Errorf("later %+v, want %+v", r.p.moment, want)
	}
	if !r.rep.Calm || r.rep.Status != power.StatusCalm || r.rep.Sleep.State != power.Awake {
		t.Errorf("report %+v", r.rep)
	}
	r.step(int(cpuKeeps / (10 * ms)))
	if !math.IsNaN(r.p.moment.CPU) {
		t.Errorf("a temperature counts for longer than %v", cpuKeeps)
	}
	r.c.Post(Order{Kind: Drop, Owner: alice})
	r.f.Now -= time.Minute
	if r.step(1); r.p.moment.DT != 0 || r.rep.Calm {
		t.Errorf("a clock that goes back: DT %v; calm %v without its owner", r.p.moment.DT, r.rep.Calm)
	}
	r.p.emit(Event{Name: "robot.poked"})
	if e, ok := r.c.Event(); !ok || e.Name != "robot.poked" {
		t.Errorf("event %+v, %v", e, ok)
	}
}

// TestMoreThanAStepTakes: orders that do not fit into a step wait for the next in their order; what no ring takes is counted.
func TestMoreThanAStepTakes(t *testing.T) {
	r := newRig(t).homed()
	o := r.set(alice, 0, light)
	o.N = MaxGoals
	for i := range o.Goals {
		o.Goals[i] = o.Goals[0]
	}
	posted := 0
	for ; r.c.Post(o); posted++ {
		o.Goals[MaxGoals-1].Value++
	}
	if got := r.c.Refused(); posted < 20 || got != 1 {
		t.Errorf("%d fit into the mailbox, %d refused", posted, got)
	}
	if r.step(1); len(r.p.log) == 0 || len(r.p.log) == posted {
		t.Errorf("one step obeys %d of %d orders", len(r.p.log), posted)
	}
	r.step(10)
	log := r.take()
	for i, c := range log {
		if c.goal != float64(i) {
			t.Fatalf("order %d is %+v", i, c)
		}
	}
	if len(log) != posted || r.rep.Lost != 0 {
		t.Errorf("%d of %d obeyed, %d results lost", len(log), posted, r.rep.Lost)
	}
	for range 100 {
		r.p.emit(Event{})
	}
	if r.step(1); r.rep.Lost == 0 || r.rep.Lost >= 100 {
		t.Errorf("of 100 events that nothing takes %d are lost", r.rep.Lost)
	}
}

// TestNew: a model that contradicts itself or its tree is refused.
func TestNew(t *testing.T) {
	for name, bend := range map[string]func(*Model){
		"a part that the tree does not have": func(m *Model) { m.Parts[wheels].Devices = []string{"wheelX"} },
		"a part without an actuator":         func(m *Model) { m.Parts[wheels].Devices = []string{"laser"} },
		"a slot that the tree does not have": func(m *Model) { m.Slots[60000] = wheels },
		"a slot of no part":                  func(m *Model) { m.Slots[slotOf(t, m.Tree, "wheelR.speed")] = toyParts },
		"more parts than there are bits":     func(m *Model) { m.Parts = make([]Part, MaxParts+1) },
		"more totals than are reported":      func(m *Model) { m.Totals = make([]string, MaxTotals+1) },
	} {
		m, _ := toyModel(t)
		bend(&m)
		if c, err := New(m, nil); err == nil || c != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestOrderAsBytes: an order comes back from the tape as it was, and no part of one is an order.
func TestOrderAsBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		o := Order{
			Kind: Kind(rng.Uint32()), Owner: claim.Owner(rng.Uint32()), Request: rng.Uint32(), Priority: claim.Priority(rng.Uint32()),
			TTL: time.Duration(rng.Uint64()), For: time.Duration(rng.Uint64()), Within: time.Duration(rng.Uint64()), Lease: rng.Uint64(),
			A: rng.NormFloat64(), Speed: rng.NormFloat64(), Set: claim.Set{rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64()},
			On: rng.IntN(2) == 0, Sleep: power.Sleep(rng.Uint32()), Why: uint8(rng.Uint32()),
			N: rng.IntN(MaxGoals + 1),
		}
		for i := range o.N {
			o.Goals[i] = Goal{Slot: rng.IntN(1 << 16), Value: rng.NormFloat64()}
		}
		b := o.append(nil)
		var got Order
		if n := got.parse(append(b, 7)); got != o || n != len(b) {
			t.Fatalf("%d of %d bytes; got\n%+v, want\n%+v", n, len(b), got, o)
		}
		if n := got.parse(b[:rng.IntN(len(b))]); n != 0 {
			t.Fatalf("a part of an order is one of %d bytes", n)
		}
	}
	for _, n := range []int{-1, MaxGoals + 1} {
		o := Order{N: n}
		if got := (&Order{}).parse(o.append(nil)); got != orderHead+goalSize*min(max(n, 0), MaxGoals) {
			t.Errorf("an order of %d goals has %d bytes", n, got)
		}
	}
}

func FuzzOrder(f *testing.F) {
	o := Order{Kind: Set, Owner: alice, N: 1, Goals: [MaxGoals]Goal{{3, 0.5}}}
	f.Add(o.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var o, again Order
		n := o.parse(b)
		if n == 0 {
			return
		}
		out := o.append(nil)
		out[12] = b[12] // any number but 0 says that it is on
		if again.parse(out) != n || !bytes.Equal(out, b[:n]) {
			t.Errorf("%x comes back as %x", b[:n], out)
		}
	})
}

func TestCodes(t *testing.T) {
	for c, want := range map[Code]string{OK: "ok", Refused: "stopped", Ended: "ended", Unmeasured: "unavailable", 99: "code(99)"} {
		if got := c.String(); got != want {
			t.Errorf("%d is %q, want %q", c, got, want)
		}
	}
}
