package coreserver

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/sharedmem"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// slot returns the ID of a slot by its name.
func (b *bench) slot(name string) int {
	b.t.Helper()
	target, err := b.model.Tree.Lookup(name)
	if err != nil {
		b.t.Fatal(err)
	}
	return target.Refs[0].ID
}

// TestSubscriptions: an update comes at once and when a slot changed, not otherwise, until the subscription or its peer ends; what costs too much is
// refused.
func TestSubscriptions(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	c := b.peer("one")
	laser, voltage, kind := b.slot("laser.distance"), b.slot("battery.voltage"), b.slot("robot.type")
	subscribe := func(c *peer, everyMS uint32, slots ...int) *corelink.Reply {
		return c.ask(func(n uint32) corelink.Message {
			return &corelink.Subscribe{Request: n, Slots: slots, EveryMS: everyMS}
		})
	}
	var request uint32
	update := func(seq uint64, distance float64) *corelink.Update {
		t.Helper()
		m := c.update(request)
		if m.Seq != seq || m.AtUS == 0 || len(m.Values) != 2 || m.Values[0].Slot != laser || *m.Values[0].Number != distance || *m.Values[1].Text != "wheeled" {
			t.Errorf("%+v, want the distance %v", m, distance)
		}
		return m
	}
	first := subscribe(c, 20, laser, kind)
	if first.Code != "ok" {
		t.Fatalf("%+v", first)
	}
	request = first.Request
	update(1, 0.4)
	for i := range 5 {
		b.body.Measure("battery.voltage", 3.8) // of no interest
		b.body.Measure("laser.distance", 0.5+float64(i))
		update(uint64(i+2), 0.5+float64(i))
	}
	b.Closed(t.Context())
	if m := c.update(request); m.Seq != 7 || len(m.Values) != 1 {
		t.Errorf("without a body: %+v", m)
	}
	if err := b.Opened(t.Context(), corelink.BodyInfo{Species: "toy"}); err != nil {
		t.Fatal(err)
	}
	update(8, 4.5)
	if err := c.c.Send(&corelink.Unsubscribe{Request: first.Request}); err != nil {
		t.Fatal(err)
	}
	second := subscribe(c, 20, voltage)
	b.body.Measure("laser.distance", 9)
	if m := c.update(second.Request); m.Seq != 1 {
		t.Errorf("%+v after the end of the first", m)
	}
	for what, r := range map[string]*corelink.Reply{"faster than 50 Hz": subscribe(c, 19, laser), "no rate": subscribe(c, 0, laser), "no slot": subscribe(c, 20),
		"an unknown slot": subscribe(c, 20, 9999), "negative": subscribe(c, 20, -1), "a day": subscribe(c, 86_400_000, laser),
		"many slots": subscribe(c, 20, make([]int, 300)...)} {
		if r.Code != "invalid" {
			t.Errorf("%s: %+v", what, r)
		}
	}
	other := b.peer("two")
	for i := range maxSubscriptions + 1 {
		if r := subscribe(other, 1000, laser); (r.Code == "ok") != (i < maxSubscriptions) {
			t.Errorf("subscription %d of one program: %+v", i, r)
		}
	}
	other.end()
	c.end()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		n := len(b.subs)
		b.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d subscriptions of programs that left", n)
		}
	}
}

// TestBoard: a peer reads all numbers in memory of its own, and sees there that the body is gone.
func TestBoard(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	c := b.peer("one")
	if err := c.c.Send(&corelink.GetBoard{Request: 7}); err != nil {
		t.Fatal(err)
	}
	m := await(c, "the board", func(m *corelink.Board) bool { return m.Request == 7 })
	if m.File == nil {
		t.Fatal("no file came with it")
	}
	memory, err := sharedmem.Map(m.File, state.MaxShared)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.KeepAlive(memory)
	board, err := state.ReadShared(memory.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	ids, got := []int{b.slot("laser.distance")}, make([]state.Sample, 1)
	if !board.Has(ids) || board.Has([]int{b.slot("robot.type")}) {
		t.Error("the distance is not on it, or a text is")
	}
	b.body.Measure("laser.distance", 0.7)
	if board.Read(ids, got); got[0].Value != 0.7 || !got[0].Known() {
		t.Errorf("the distance reads as %+v", got)
	}
	b.Closed(t.Context())
	if board.Read(ids, got); !math.IsNaN(got[0].Value) {
		t.Errorf("without a body the distance reads as %+v", got)
	}
	if err := b.Opened(t.Context(), corelink.BodyInfo{Species: "toy"}); err != nil {
		t.Fatal(err)
	}
	if board.Read(ids, got); got[0].Value != 0.7 {
		t.Errorf("with a body again the distance reads as %+v", got)
	}
	less := newBench(t, t.TempDir())
	less.board = nil
	less.run()
	if r := less.peer("two").ask(func(n uint32) corelink.Message { return &corelink.GetBoard{Request: n} }); r.Code != "invalid" || r.Detail == "" {
		t.Errorf("memory that cannot be shared: %+v", r)
	}
}

// TestOrderRefused: what is wrong with an order of a program is said, and nothing of it is done.
func TestOrderRefused(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.run()
	c := b.peer("one")
	put := func(name string, v robot.Value) core.Order {
		return core.Order{Steps: [][]robot.Line{{{Name: name, Verb: robot.Put, Value: v}}}}
	}
	many := core.Order{}
	for range maxSteps + 1 {
		many = many.Then(core.Set("led.val", 1))
	}
	for what, tc := range map[string]struct {
		o    core.Order
		code string
	}{
		"nothing":                   {core.Order{}, "invalid"},
		"too many steps":            {many, "invalid"},
		"a step that only reads":    {core.Set("led.val", 1).Then(core.Order{Steps: [][]robot.Line{{{Name: "laser"}}}}), "invalid"},
		"a later step that is none": {core.Set("led.val", 1).Then(core.Set("wing", 1)), "invalid"},
		"an empty step":             {core.Order{Steps: [][]robot.Line{{{Name: "led.val", Verb: robot.Put, Value: robot.F(1)}}, {}}}, "invalid"},
		"what no part can":          {core.Set("wheelL.turn", 1), "unable"},
		"a sound":                   {put("robot.body.speaker.val", robot.Value{Type: robot.Bytes, Handle: "bark"}), "unable"},
		"a sound for a head":        {put("headPitch", robot.Value{Type: robot.Bytes, Handle: "bark"}), "invalid"},
		"a list in a list":          {put("led.val", robot.L(robot.L(robot.F(1)))), "invalid"},
		"what is not claimed":       {core.Go(1), "not_held"},
	} {
		if r := c.ask(func(n uint32) corelink.Message { return &corelink.Order{Request: n, Order: tc.o} }); r.Code != tc.code || r.Detail == "" {
			t.Errorf("%s: %+v, want %s", what, r, tc.code)
		}
	}
	for _, o := range b.body.Orders() {
		if o.Kind == control.Set {
			t.Errorf("of a refused order the loop got %+v", o)
		}
	}
	both := core.Order{Steps: [][]robot.Line{{{Name: "laser"}, {Name: "robot.type"}}}}
	if r := c.ask(func(n uint32) corelink.Message { return &corelink.Order{Request: n, Order: both} }); r.Code != "ok" || r.Value != `0.4; "wheeled"` {
		t.Errorf("an order that reads: %+v", r)
	}
}

// FuzzOrder: whatever order a program sends, it is answered, and what reaches the loop is finite and bounded.
func FuzzOrder(f *testing.F) {
	for _, o := range []core.Order{core.Go(1), core.Set("led", 1).And(core.Set("wheel.speed", 2)).Then(core.Turn(1)).For(time.Second), {}} {
		j, err := corelink.EncodeJSON(&corelink.Order{Request: 1, Order: o})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(j)
	}
	f.Add([]byte(`{"type":"order","body":{"request":1,"steps":[[{"name":"led","verb":1,"value":{"type":6,"number":0,"items":[{"type":1,"number":1}]},"speed":0,"time_ns":0,"adaptive_ns":0}]],"for_ms":0}}`))
	f.Add([]byte(`{"type":"subscribe","body":{"request":1,"slots":[1,2,3],"every_ms":20}}`))
	f.Fuzz(func(t *testing.T, j []byte) {
		m, err := corelink.DecodeJSON(j)
		if err != nil {
			return
		}
		switch m.(type) {
		case *corelink.Order, *corelink.Subscribe, *corelink.Unsubscribe:
		default:
			return
		}
		b := newBench(t, t.TempDir())
		b.handle(t.Context(), corelink.Peer{ID: 1}, m)
		b.deliver(t.Context(), 0)
		b.update(t.Context())
		for _, o := range b.body.Orders() {
			for _, g := range o.Goals[:o.N] {
				if math.IsNaN(g.Value) || math.IsInf(g.Value, 0) {
					t.Fatalf("%s: the loop got %+v", j, o)
				}
			}
		}
	})
}

// BenchmarkUpdate is one update of a subscription to all slots of the toy, which changed: what robotd spends on it outside the loop.
func BenchmarkUpdate(b *testing.B) {
	s := newBench(b, b.TempDir())
	var all []int
	for _, r := range s.refs {
		all = append(all, r.ID)
	}
	if err := s.subscribe(corelink.Peer{ID: 1}, &corelink.Subscribe{Request: 1, Slots: all, EveryMS: corelink.MinEveryMS}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(all)), "slots")
	for v := 0.0; b.Loop(); v++ {
		s.body.Measure("laser.distance", v)
		for _, x := range s.subs {
			x.next = 0
		}
		s.update(b.Context())
	}
}

// TestNoChange: where nothing of interest changed there is no update.
func TestNoChange(t *testing.T) {
	b := newBench(t, t.TempDir())
	if err := b.subscribe(corelink.Peer{ID: 1}, &corelink.Subscribe{Request: 1, Slots: []int{b.slot("laser.distance")}, EveryMS: corelink.MinEveryMS}); err != nil {
		t.Fatal(err)
	}
	x := b.subs[due{owner(corelink.Peer{ID: 1}), 1}]
	for i, step := range []struct {
		slot  string
		value float64
		seq   uint64
	}{{"laser.distance", 0.4, 1}, {"battery.voltage", 3.7, 1}, {"laser.distance", 0.4, 1}, {"laser.distance", 0.5, 2}, {"battery.voltage", 3.6, 2}} {
		b.body.Measure(step.slot, step.value)
		x.next = 0
		if b.update(t.Context()); x.seq != step.seq {
			t.Errorf("step %d: %d updates, want %d", i, x.seq, step.seq)
		}
	}
}

// TestStopBetweenSteps: a stop that comes when one step has ended and the next has not begun ends the order.
func TestStopBetweenSteps(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		b := newBench(t, t.TempDir())
		p := corelink.Peer{ID: 1}
		b.handle(t.Context(), p, &corelink.Claim{Request: 1, Devices: []string{"wheelL", "wheelR"}})
		b.handle(t.Context(), p, &corelink.Order{Request: 2, Order: core.Go(1).Then(core.Turn(1))})
		b.deliver(t.Context(), 0)
		b.body.End(motion.Done, 1)
		if stopped {
			b.handle(t.Context(), corelink.Peer{ID: 2}, &corelink.Stop{Request: 1})
		}
		b.deliver(t.Context(), 0)
		b.deliver(t.Context(), 0)
		turned := slices.ContainsFunc(b.body.Orders(), func(o control.Order) bool { return o.Kind == control.Turn })
		if turned == stopped || (len(b.due) == 0) != stopped {
			t.Errorf("stopped %v: turned %v, %d answers due", stopped, turned, len(b.due))
		}
	}
}
