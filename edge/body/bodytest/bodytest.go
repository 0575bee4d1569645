// Package bodytest holds what every body.Body must do, on simulated and on real hardware. The bodies may lose frames: the suite asks
// for what still has to hold then.
package bodytest

import (
	"errors"
	"math"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/mono"
)

// patience is how long the suite waits for a body to do what was asked; a loaded machine may take its time.
const patience = 10 * time.Second

// Run checks the body that open returns; it opens one for each test and closes it. All motors must be free to move some degrees.
func Run(t *testing.T, open func(t *testing.T) body.Body) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b body.Body)
	}{
		{"describes itself", describes},
		{"measures in SI", measures},
		{"counts forward", countsForward},
		{"polls", polls},
		{"skips what a late loop missed", skips},
		{"moves and halts", movesAndHalts},
		{"limits commands", limits},
		{"allocates nothing", allocatesNothing},
		{"closes", closes},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := open(t)
			defer func() {
				if err := b.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			test.run(t, b)
		})
	}
}

// Next reads the next fresh frame into s.
func Next(t *testing.T, b body.Body, s *body.Sense) {
	t.Helper()
	err := b.Read(s, mono.Now()+patience)
	if err != nil || !s.Fresh {
		t.Fatalf("Read: fresh %t, %v; want a frame", s.Fresh, err)
	}
}

// Until steps the body, one Write of a per frame read, until cond holds.
func Until(t *testing.T, b body.Body, a *body.Act, what string, cond func(s *body.Sense) bool) body.Sense {
	t.Helper()
	var s body.Sense
	for deadline := mono.Now() + patience; mono.Now() < deadline; {
		Next(t, b, &s)
		if err := b.Write(a); err != nil {
			t.Fatalf("Write: %v", err)
		}
		if cond(&s) {
			return s
		}
	}
	t.Fatalf("%s: not within %v; last measured %+v", what, patience, s)
	return s
}

func describes(t *testing.T, b body.Body) {
	d := b.Describe()
	if d.Species == "" || d.Model == "" {
		t.Errorf("species %q, model %q: want both", d.Species, d.Model)
	}
	for _, list := range []struct {
		name  string
		names []string
		max   int
	}{{"motors", d.Motors, body.MaxMotors}, {"cliffs", d.Cliffs, body.MaxCliffs}, {"lights", d.Lights, body.MaxLights}} {
		if len(list.names) > list.max {
			t.Errorf("%d %s, want at most %d", len(list.names), list.name, list.max)
		}
		seen := map[string]bool{}
		for i, name := range list.names {
			if name == "" || seen[name] {
				t.Errorf("%s[%d] is called %q: want names, each once", list.name, i, name)
			}
			seen[name] = true
		}
	}
}

func measures(t *testing.T, b body.Body) {
	d := b.Describe()
	var s body.Sense
	for range 20 {
		Next(t, b, &s)
		within(t, "battery volts", s.BatteryVolts, 0, 30)
		within(t, "charger volts", s.ChargerVolts, 0, 60)
		within(t, "temperature", s.Temperature, -40, 125)
		within(t, "touch", s.Touch, 0, 1)
		for i := range s.Cliffs {
			within(t, "cliff", s.Cliffs[i], 0, 1)
		}
		for i := range d.Motors {
			within(t, "speed of "+d.Motors[i], s.Motors[i].Speed, -1000, 1000)
			within(t, "position of "+d.Motors[i], s.Motors[i].Position, -1e6, 1e6)
		}
		for _, at := range []time.Duration{s.ProxAt, s.TouchAt} {
			if at < 0 || at > s.At {
				t.Errorf("a sensor measured at %v, the frame was read at %v", at, s.At)
			}
		}
		if err := b.Write(&body.Act{}); err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
}

func within(t *testing.T, what string, got, lo, hi float64) {
	t.Helper()
	if !(got >= lo && got <= hi) {
		t.Errorf("%s is %v, want %v to %v", what, got, lo, hi)
	}
}

func countsForward(t *testing.T, b body.Body) {
	var s body.Sense
	var last body.Sense
	for i := range 50 {
		before := mono.Now()
		Next(t, b, &s)
		if s.At < before || s.At > mono.Now() {
			t.Fatalf("frame %d read at %v, between %v and %v", i, s.At, before, mono.Now())
		}
		if i > 0 && (s.Epoch != last.Epoch || int32(s.Seq-last.Seq) <= 0 || s.At < last.At) {
			t.Fatalf("frame %d of epoch %d at %v follows frame %d of epoch %d at %v", s.Seq, s.Epoch, s.At, last.Seq, last.Epoch, last.At)
		}
		last = s
		if err := b.Write(&body.Act{}); err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
}

// polls: a deadline in the past does not wait, and a read without a frame keeps the values.
func polls(t *testing.T, b body.Body) {
	var s body.Sense
	Next(t, b, &s)
	for deadline := mono.Now() + patience; mono.Now() < deadline; {
		before := s
		err := b.Read(&s, 0)
		if err == nil {
			continue // a frame came at just that moment
		}
		before.Fresh = false
		if err != body.ErrTimeout || s != before {
			t.Errorf("Read without a frame: %v\n got %+v\nwant %v, %+v", err, s, body.ErrTimeout, before)
		}
		return
	}
	t.Errorf("every poll for %v found a frame", patience)
}

// skips: after a pause there is one step to make, not one for each frame that queued up.
func skips(t *testing.T, b body.Body) {
	period := b.Describe().Period
	if period == 0 {
		return // a body without a rhythm queues nothing
	}
	var before, s body.Sense
	Next(t, b, &before)
	// The pause is what is tested. A body that got no time itself, or whose frames were lost, sent none meanwhile: it gets another.
	gap := uint32(0)
	for deadline := mono.Now() + patience; gap < 5 && mono.Now() < deadline; before = s {
		time.Sleep(10 * period)
		Next(t, b, &s)
		gap = s.Seq - before.Seq
	}
	if gap < 5 {
		t.Errorf("after 10 periods the next frame is %d further: want the newest", gap)
	}
	queued := 0
	for range 3 {
		if b.Read(&s, 0) == nil {
			queued++
		}
	}
	if queued > 1 { // one may have come at just that moment
		t.Errorf("%d frames were still queued", queued)
	}
}

func movesAndHalts(t *testing.T, b body.Body) {
	for i, name := range b.Describe().Motors {
		var still, act body.Act
		act.Motors[i] = 0.3
		start := Until(t, b, &still, "the first frame", func(*body.Sense) bool { return true })
		Until(t, b, &act, name+" moves", func(s *body.Sense) bool {
			return s.Motors[i].Speed > 0 && s.Motors[i].Position > start.Motors[i].Position
		})

		// Halt may be lost on the way like any frame: what counts is that repeating it ends the motion for good.
		var s body.Sense
		quiet, position := 0, math.NaN()
		for deadline := mono.Now() + patience; quiet < 20; {
			if err := b.Halt(); err != nil {
				t.Fatalf("Halt: %v", err)
			}
			Next(t, b, &s)
			if s.Motors[i].Position == position {
				quiet++
			} else {
				quiet, position = 0, s.Motors[i].Position
			}
			if mono.Now() > deadline {
				t.Fatalf("%s still moves %v after Halt: %+v", name, patience, s.Motors[i])
			}
		}
		if s.Motors[i].Speed != 0 {
			t.Errorf("%s stands and has speed %v", name, s.Motors[i].Speed)
		}
	}
}

func limits(t *testing.T, b body.Body) {
	n := len(b.Describe().Motors)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 2, -2, math.MaxFloat64} {
		var s body.Sense
		var a body.Act
		for i := range n {
			a.Motors[i] = v
		}
		Next(t, b, &s)
		if err := b.Write(&a); err != nil {
			t.Errorf("Write of %v: %v", v, err)
		}
		if err := b.Halt(); err != nil {
			t.Errorf("Halt: %v", err)
		}
	}
}

func allocatesNothing(t *testing.T, b body.Body) {
	var s body.Sense
	var a body.Act
	a.Lights[0] = body.Light{R: 1}
	if n := testing.AllocsPerRun(50, func() {
		_ = b.Read(&s, mono.Now()+patience)
		_ = b.Write(&a)
		_ = b.Read(&s, 0)
		_ = b.Halt()
	}); n != 0 {
		t.Errorf("read, write, poll and halt allocate %v times, want 0", n)
	}
}

func closes(t *testing.T, b body.Body) {
	var s body.Sense
	Next(t, b, &s)
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for name, err := range map[string]error{
		"Read":     b.Read(&s, mono.Now()+time.Second),
		"Write":    b.Write(&body.Act{}),
		"Halt":     b.Halt(),
		"Shutdown": b.Shutdown(),
	} {
		if !errors.Is(err, body.ErrLink) {
			t.Errorf("%s after Close: %v, want %v", name, err, body.ErrLink)
		}
	}
	if s.Fresh {
		t.Error("Read after Close left Fresh set")
	}
}
