// Package bodytest tests the behaviour of every body.Body, on simulated and on real hardware. The bodies may lose frames: the suite tests
// only behaviour that must still hold then.
package bodytest

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
)

// patience is how long the suite waits for a body to obey; a loaded machine may be slow.
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
	err := b.Read(s, monoclock.Now()+patience)
	if err != nil || !s.Fresh {
		t.Fatalf("Read: fresh %t, %v; want a frame", s.Fresh, err)
	}
}

// Until steps the body, one Write of a per frame read, until cond holds.
func Until(t *testing.T, b body.Body, a *body.Act, what string, cond func(s *body.Sense) bool) body.Sense {
	t.Helper()
	var s body.Sense
	for deadline := monoclock.Now() + patience; monoclock.Now() < deadline; {
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
	if len(d.Channels) == 0 || len(d.Channels) > body.MaxChannels || len(d.Drives) > body.MaxDrives {
		t.Errorf("%d channels, %d drives: want 1 to %d and at most %d", len(d.Channels), len(d.Drives), body.MaxChannels, body.MaxDrives)
	}
	var names []string
	for _, c := range d.Channels {
		names = append(names, "channel "+c.Name)
	}
	for _, v := range d.Drives {
		names = append(names, "drive "+v.Device)
		if v.Takes == 0 {
			t.Errorf("drive %s takes no goal", v.Device)
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, " ") || seen[name] {
			t.Errorf("%q: want names, each once", name)
		}
		seen[name] = true
	}
	if d.Stale <= max(d.Rhythm, d.Step) || d.Silent <= d.Stale {
		t.Errorf("timing %+v: want stale after more than a period, and silent after that", d.Timing)
	}
}

// measures: every value is finite, is within the range of its unit, and has a time of measurement.
func measures(t *testing.T, b body.Body) {
	d := b.Describe()
	var s body.Sense
	for range 20 {
		Next(t, b, &s)
		for i, c := range d.Channels {
			limit := 1e6
			switch c.Unit {
			case "V":
				limit = 60
			case "Celsius":
				limit = 125
			}
			within(t, c.Name+" in "+c.Unit, s.Values[i], -limit, limit)
			if s.Times[i] < 0 || s.Times[i] > s.At {
				t.Errorf("%s was measured at %v, the frame was read at %v", c.Name, s.Times[i], s.At)
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
	for i := range 20 {
		before := monoclock.Now()
		Next(t, b, &s)
		if s.At < before || s.At > monoclock.Now() {
			t.Fatalf("frame %d read at %v, between %v and %v", i, s.At, before, monoclock.Now())
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
	for deadline := monoclock.Now() + patience; monoclock.Now() < deadline; {
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
	period := b.Describe().Rhythm
	if period == 0 {
		return // a body without a rhythm queues nothing
	}
	var before, s body.Sense
	Next(t, b, &before)
	// The pause itself is under test. A body that got no processor time, or whose frames were lost, sent none meanwhile and gets another pause.
	gap := uint32(0)
	for deadline := monoclock.Now() + patience; gap < 5 && monoclock.Now() < deadline; before = s {
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

// moving returns the goal that makes a drive move for good, and the channel that shows it: the one of its device that measures a position, else
// the first. false: it is no motor.
func moving(d *body.Description, drive int) (g body.Goals, v float64, channel int, ok bool) {
	for i, c := range d.Channels {
		if strings.HasPrefix(c.Name, d.Drives[drive].Device+".") && (!ok || strings.HasSuffix(c.Name, ".position")) {
			channel, ok = i, true
		}
	}
	switch takes := d.Drives[drive].Takes; {
	case takes&body.Duty != 0:
		return body.Duty, 0.3, channel, ok
	case takes&body.Speed != 0:
		return body.Speed, 0.2, channel, ok
	case takes&body.Position != 0:
		return body.Position, 0.3, channel, ok
	}
	return 0, 0, 0, false
}

func movesAndHalts(t *testing.T, b body.Body) {
	d := b.Describe()
	for i, drive := range d.Drives {
		g, v, channel, ok := moving(&d, i)
		if !ok {
			continue
		}
		var still, act body.Act
		for k, other := range d.Drives {
			if other.Takes == body.Level { // all parts that can be switched off have power
				act.Set(k, body.Level, 1)
			}
		}
		act.Set(i, g, v)
		start := Until(t, b, &still, "the first frame", func(*body.Sense) bool { return true })
		Until(t, b, &act, drive.Device+" moves", func(s *body.Sense) bool { return s.Values[channel] != start.Values[channel] })

		// Halt may be lost on the way like any frame: what counts is that repeating it ends the motion for good.
		var s body.Sense
		quiet, position := 0, math.NaN()
		for deadline := monoclock.Now() + patience; quiet < 10; {
			if err := b.Halt(); err != nil {
				t.Fatalf("Halt: %v", err)
			}
			Next(t, b, &s)
			if s.Values[channel] == position {
				quiet++
			} else {
				quiet, position = 0, s.Values[channel]
			}
			if monoclock.Now() > deadline {
				t.Fatalf("%s still moves %v after Halt: %v", drive.Device, patience, s.Values[channel])
			}
		}
	}
}

func limits(t *testing.T, b body.Body) {
	d := b.Describe()
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 2, -2, math.MaxFloat64} {
		var s body.Sense
		var a body.Act
		for i, drive := range d.Drives {
			a.Set(i, drive.Takes&-drive.Takes, v) // one of its goals
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
	for i, drive := range b.Describe().Drives {
		a.Set(i, drive.Takes&-drive.Takes, 0)
	}
	var n float64
	for range 5 { // allocations of other goroutines, such as the simulator, are counted too
		if n = testing.AllocsPerRun(20, func() {
			_ = b.Read(&s, monoclock.Now()+patience)
			_ = b.Write(&a)
			_ = b.Read(&s, 0)
			_ = b.Halt()
		}); n == 0 {
			return
		}
	}
	t.Errorf("read, write, poll and halt allocate %v times, want 0", n)
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
		"Read":     b.Read(&s, monoclock.Now()+time.Second),
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
