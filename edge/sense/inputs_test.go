package sense

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	frame = 5120 * time.Microsecond // VEC-MOT-05
	ms    = time.Millisecond
)

// rounds is how many random lives a property test plays.
func rounds(light int) uint64 {
	if os.Getenv("KENNEL_SOAK") == "1" {
		return uint64(light) * 100
	}
	return uint64(light)
}

// back is a touch sensor with what it did.
type back struct {
	Touch
	at    time.Duration
	noise float64
	rng   *rand.Rand
	on    bool
	// when each of the first two events came last
	began, ended time.Duration
}

func newBack(seed uint64) *back {
	return &back{Touch: NewTouch(Default().Touch), noise: 3.0 / 4095, rng: rand.New(rand.NewPCG(seed, 1)), at: time.Second}
}

// read lets d pass with readings about v.
func (b *back) read(d time.Duration, v float64) TouchEvents {
	var all TouchEvents
	for end := b.at + d; b.at < end; b.at += frame {
		ev := b.Step(frame, TouchInput{Value: min(max(v+b.noise*b.rng.NormFloat64(), 0), 1), At: b.at, OnCharger: b.on})
		if ev&TouchBegan != 0 {
			b.began = b.at
		}
		if ev&TouchEnded != 0 {
			b.ended = b.at
		}
		all |= ev
	}
	return all
}

const (
	idle = 500.0 / 4095
	hand = 900.0 / 4095
)

// VEC-IO-10: a touch is believed after 100 ms and over after 200 ms, and shortly after both.
func TestTouch(t *testing.T) {
	b := newBack(1)
	if ev := b.read(2*time.Second, idle); ev != BaselineLearnt || b.Touched() || !b.Ready() {
		t.Fatalf("at rest: events %b, touched %v", ev, b.Touched())
	}
	start := b.at
	if ev := b.read(500*ms, hand); ev != TouchBegan {
		t.Fatalf("touched: events %b", ev)
	}
	if d := b.began - start; d < 170*ms || d > 200*ms { // 77 ms until the window is calm again, then 100
		t.Errorf("believed after %v, want 170 ms to 200 ms (VEC-IO-10)", d)
	}
	start = b.at
	if ev := b.read(time.Second, idle); ev != TouchEnded {
		t.Fatalf("let go: events %b", ev)
	}
	if d := b.ended - start; d < 200*ms || d > 250*ms {
		t.Errorf("over after %v, want 200 ms to 250 ms (VEC-IO-10)", d)
	}
	if ev := b.read(90*ms, hand) | b.read(time.Second, idle); ev != 0 {
		t.Errorf("90 ms of touch: events %b, want none (VEC-IO-10: minimum 100 ms)", ev)
	}
	b.read(time.Second, hand)
	if ev := b.read(190*ms, idle) | b.read(time.Second, hand); ev&(TouchBegan|TouchEnded) != 0 || !b.Touched() {
		t.Errorf("hand off for 190 ms: events %b, want none (VEC-IO-10: minimum 200 ms)", ev)
	}
}

// A condition that held for a time held without a break, and a gap between two steps counts as maxGap.
func TestSteady(t *testing.T) {
	for _, tc := range []struct {
		name string
		raw  string // one a step of 10 ms; + is true
		dt   time.Duration
		want string
	}{
		{"100 ms to rise, 30 to fall", "+++++++++++++----++", 10 * ms, "          ++++++   "},
		{"a break begins anew", "+++++++++-+++++++++", 10 * ms, "                   "},
		{"and so on the way down", "+++++++++++--+---+-", 10 * ms, "          +++++++++"},
		{"gaps", "+++++", time.Hour, "  +++"},
		{"time running backwards", "+++++", -time.Hour, "     "},
	} {
		var s steady
		got := ""
		for _, c := range tc.raw {
			before := s.on
			if changed := s.step(c == '+', tc.dt, 100*ms, 30*ms); changed != (s.on != before) {
				t.Errorf("%s: changed %v from %v to %v", tc.name, changed, before, s.on)
			}
			if s.on {
				got += "+"
			} else {
				got += " "
			}
		}
		if got != tc.want[:len(tc.raw)] {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestPetting(t *testing.T) {
	b := newBack(2)
	b.read(2*time.Second, idle)
	if ev := b.read(900*ms, hand); ev&Petted != 0 || b.Petting() {
		t.Error("a short touch is petting (VEC-IO-14: sustained)")
	}
	if ev := b.read(500*ms, hand); ev != Petted || !b.Petting() {
		t.Errorf("a long touch: events %b, want petting once (VEC-IO-14)", ev)
	}
	if ev := b.read(5*time.Second, hand); ev != 0 {
		t.Errorf("going on: events %b", ev)
	}
	if b.read(time.Second, idle); b.Petting() {
		t.Error("petting continues without a hand")
	}
}

// VEC-IO-10: humidity and weather move the level, slowly; they are no touch. A touch beside them still is.
func TestTouchFollowsTheWeather(t *testing.T) {
	b := newBack(3)
	b.read(2*time.Second, idle)
	v := idle
	for range 300 {
		v += 0.0003
		if ev := b.read(time.Second, v); ev != 0 {
			t.Fatalf("weather at %.3f: events %b", v, ev)
		}
	}
	if ev := b.read(time.Second, v+0.05); ev != TouchBegan {
		t.Errorf("a touch in that weather: events %b", ev)
	}
}

// VEC-IO-13: learnt again on and off the charger, with the result.
func TestTouchBaselineAtTheCharger(t *testing.T) {
	b := newBack(4)
	b.read(2*time.Second, idle)
	b.on = true
	if ev := b.read(2*time.Second, idle+0.06); ev != ChargerModeCheck|BaselineLearnt|BaselineChanged {
		t.Errorf("on a charger that lifts the level: events %b", ev)
	}
	b.on = false
	if ev := b.read(2*time.Second, idle+0.06); ev != ChargerModeCheck|BaselineLearnt|BaselineUnchanged {
		t.Errorf("off it, same level: events %b", ev)
	}
	if ev := b.read(3*time.Second, idle); ev != BaselineTooHigh || math.Abs(b.Baseline()-idle) > 0.01 {
		t.Errorf("level far below the baseline: events %b, baseline %.3f, want %.3f", ev, b.Baseline(), idle)
	}
}

func TestTouchLeaningThing(t *testing.T) {
	b := newBack(5)
	b.read(2*time.Second, idle)
	if b.read(119*time.Second, hand); !b.Touched() {
		t.Error("a long touch ended by itself")
	}
	if ev := b.read(5*time.Second, hand); ev&TouchEnded == 0 || b.Touched() {
		t.Error("what leans on it for minutes is still a touch")
	}
}

// VEC-BODY-27: an invalid reading changes nothing; after a while without valid ones there is no touch.
func TestTouchBadReadings(t *testing.T) {
	b := newBack(6)
	b.read(2*time.Second, idle)
	b.read(time.Second, hand)
	level := b.Level()
	for _, v := range []float64{math.NaN(), -0.1, 1.1, math.Inf(1)} {
		for range 10 {
			b.at += frame
			b.Step(frame, TouchInput{Value: v, At: b.at})
		}
	}
	if !b.Touched() || b.Level() != level {
		t.Errorf("bad readings: touched %v, level %v; want the last good one kept, %v", b.Touched(), b.Level(), level)
	}
	for range 400 {
		b.Step(frame, TouchInput{Value: hand, At: b.at - time.Second})
	}
	if b.Touched() {
		t.Error("still touched after two seconds without a reading")
	}
}

// VEC-IO-10: noise of any strength never is a touch.
func TestTouchNoiseIsNoTouch(t *testing.T) {
	for seed := range rounds(6) {
		b := newBack(seed)
		b.noise = []float64{0, 0.0007, 0.003, 0.01, 0.03, 0.1}[seed%6]
		if ev := b.read(30*time.Second, 0.4); ev != BaselineLearnt {
			t.Fatalf("seed %d, noise %v: events %b", seed, b.noise, ev)
		}
		for range 200 { // knocks, each too short
			b.read(frame*time.Duration(1+b.rng.IntN(4)), 0.4+0.5*b.rng.Float64())
			if ev := b.read(200*ms, 0.4); ev&(TouchBegan|TouchEnded) != 0 {
				t.Fatalf("seed %d, noise %v, knocked: events %b", seed, b.noise, ev)
			}
		}
	}
}

// In noise that never ends the baseline is the mean of all of it, not of the reading that came last (found by the soak: seed 274).
func TestTouchLearnsInNoise(t *testing.T) {
	for _, seed := range []uint64{1, 2, 274} {
		b := newBack(seed)
		b.noise = 0.03
		if ev := b.read(6*time.Second, 0.4); ev != BaselineLearnt || math.Abs(b.Baseline()-0.4) > 0.005 {
			t.Errorf("seed %d: events %b, baseline %.3f, want 0.4", seed, ev, b.Baseline())
		}
	}
}

// VEC-IO-10: whatever is read, a touch lasts at least 200 ms and a pause at least 100 ms.
func TestTouchNeverFlaps(t *testing.T) {
	for seed := range rounds(6) {
		b := newBack(seed)
		b.read(time.Second, idle)
		changed, on := b.at-time.Hour, false
		for range 400 {
			v, d := idle+0.2*b.rng.Float64()*float64(b.rng.IntN(2)), time.Duration(b.rng.IntN(300))*ms
			for end := b.at + d; b.at < end; b.at += frame {
				b.Step(frame, TouchInput{Value: v + b.noise*b.rng.NormFloat64(), At: b.at, OnCharger: b.rng.IntN(2000) == 0})
				if b.Touched() == on {
					continue
				}
				if least := map[bool]time.Duration{true: 200 * ms, false: 100 * ms}[on]; b.at-changed < least {
					t.Fatalf("seed %d: touched %v for %v, want at least %v", seed, on, b.at-changed, least)
				}
				changed, on = b.at, b.Touched()
			}
		}
	}
}

// VEC-IO-11.
func TestTouchStats(t *testing.T) {
	touch := NewTouch(Default().Touch)
	if touch.Stats() != (TouchStats{}) {
		t.Error("statistics of nothing")
	}
	for i, v := range []float64{0.25, 0.5, 0.25, 0.5} {
		touch.Step(frame, TouchInput{Value: v, At: time.Duration(i+1) * frame})
	}
	got, err := json.Marshal(touch.Stats())
	if want := `{"max":0.5,"min":0.25,"stddev":0.125}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// eye is a range finder with a clock.
type eye struct {
	Ranging
	at time.Duration
	in ProxInput
}

func newEye() *eye {
	return &eye{Ranging: NewRanging(Default().Prox), in: ProxInput{LiftHeight: 0.092}}
}

// see takes one sample, 31 ms after the one before.
func (e *eye) see(metres float64) ProxEvents {
	e.at += 31 * ms
	e.in.Metres, e.in.At = metres, e.at
	return e.Step(e.at, e.in)
}

// VEC-BODY-26: 30 to 1200 mm; beyond is free, below is no measurement.
func TestProxRange(t *testing.T) {
	for _, tc := range []struct {
		name        string
		metres      float64
		found, free bool
	}{
		{"nearest", 0.030, true, false},
		{"nearer", 0.0299, false, false},
		{"farthest", 1.200, true, false},
		{"farther", 1.2001, false, true},
		{"nothing there", 8.190, false, true},
		{"zero", 0, false, false},
		{"no number", math.NaN(), false, false},
		{"endless", math.Inf(1), false, false},
	} {
		e := newEye()
		if e.see(tc.metres); e.Prox().Found || e.Prox().Unobstructed || e.Prox().Valid {
			t.Errorf("%s: believed after one sample", tc.name)
		}
		e.see(tc.metres)
		e.see(tc.metres)
		p := e.Prox()
		if p.Found != tc.found || p.Unobstructed != tc.free || p.Valid != (tc.found || tc.free) || tc.found && p.Metres != tc.metres {
			t.Errorf("%s: %+v", tc.name, p)
		}
	}
}

// VEC-IO-25: a lift between 34 and 45 mm hides the view; a load does from there down to the floor.
func TestProxBehindTheLift(t *testing.T) {
	for _, tc := range []struct {
		mm     float64
		loaded bool
		hidden bool
	}{
		{32, false, false}, {34, false, false}, {34.1, false, true}, {44.9, false, true}, {45, false, false}, {92, false, false},
		{32, true, true}, {60, true, true}, {92, true, false},
	} {
		e := newEye()
		e.in.LiftHeight, e.in.Loaded = tc.mm/1000, tc.loaded
		for range 3 {
			e.see(0.2)
		}
		if p := e.Prox(); p.LiftInView != tc.hidden || p.Valid == tc.hidden || !p.Found {
			t.Errorf("lift at %v mm, loaded %v: %+v, want hidden %v", tc.mm, tc.loaded, p, tc.hidden)
		}
	}
}

// VEC-IO-24: signal rate over the root of the ambient rate, 0 to 1.
func TestProxQuality(t *testing.T) {
	c := Default().Prox
	for _, tc := range []struct{ signal, ambient, want float64 }{
		{10, 1, 0.5}, {10, 4, 0.25}, {20, 1, 1}, {100, 1, 1}, {0, 1, 0}, {-1, 1, 0}, {1, 0, 1}, {math.NaN(), 1, 0}, {1, math.NaN(), 0},
	} {
		if got := c.Quality(tc.signal, tc.ambient); got != tc.want {
			t.Errorf("quality of %v over %v = %v, want %v", tc.signal, tc.ambient, got, tc.want)
		}
	}
	e := newEye()
	e.in.Rates, e.in.Signal, e.in.Ambient = true, 1, 1
	for range 3 {
		e.see(0.3)
	}
	if e.Prox().Found {
		t.Error("a distance of no quality is an object")
	}
	e.in.Signal = 10
	for range 3 {
		e.see(0.3)
	}
	if p := e.Prox(); !p.Found || p.Quality != 0.5 {
		t.Errorf("got %+v, want found with quality 0.5", p)
	}
}

func TestProxOutliersAndAge(t *testing.T) {
	e := newEye()
	for range 3 {
		e.see(0.3)
	}
	for _, odd := range []float64{8.19, 0, 0.9, math.NaN()} {
		if ev := e.see(odd); ev != 0 || math.Abs(e.Prox().Metres-0.3) > 1e-9 || !e.Prox().Found {
			t.Errorf("one sample of %v: events %b, %+v", odd, ev, e.Prox())
		}
		e.see(0.3)
		e.see(0.3)
		e.see(0.3)
	}
	if ev := e.Step(e.at+200*ms, e.in); ev != 0 || !e.Prox().Valid {
		t.Errorf("after 200 ms: events %b, %+v", ev, e.Prox())
	}
	if ev := e.Step(e.at+201*ms, e.in); ev != ProxChanged || e.Prox().Valid || e.Prox().Found {
		t.Errorf("after 201 ms without a sample: events %b, %+v", ev, e.Prox())
	}
	if never := NewRanging(Default().Prox); never.Step(time.Hour, ProxInput{Metres: 0.3}) != 0 || never.Prox().Valid {
		t.Error("a sample that was never measured counts")
	}
}

// VEC-BODY-26: invalid readings are reported, severe ones too, and not more often than every 10 s.
func TestProxReports(t *testing.T) {
	e := newEye()
	var invalid, severe []time.Duration
	for i := range 1000 {
		ev := e.see(0)
		if ev&ProxInvalid != 0 {
			invalid = append(invalid, e.at)
			if len(invalid) == 1 && i != 9 {
				t.Errorf("first report after %d bad samples, want 10", i+1)
			}
		}
		if ev&ProxSevere != 0 {
			severe = append(severe, e.at)
			if len(severe) == 1 && i != 99 {
				t.Errorf("first severe report after %d bad samples, want 100", i+1)
			}
		}
	}
	if len(invalid) != 4 || len(severe) != 3 {
		t.Errorf("%d and %d reports in 31 s, want 4 and 3", len(invalid), len(severe))
	}
	for i := range invalid[1:] {
		if invalid[i+1]-invalid[i] < 10*time.Second {
			t.Errorf("reports %v apart", invalid[i+1]-invalid[i])
		}
	}
}

// Single wrong samples never make an event, and found and free never hold together (VEC-IO-24).
func TestProxProperties(t *testing.T) {
	for seed := range rounds(6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		e := newEye()
		for range 3 {
			e.see(0.5)
		}
		for range 1000 {
			if ev := e.see([]float64{0, 8.19, 0.03, 1.2, math.NaN()}[rng.IntN(5)]); ev != 0 {
				t.Fatalf("seed %d: events %b", seed, ev)
			}
			for range 2 {
				if ev := e.see(0.5 + 0.01*rng.NormFloat64()); ev != 0 || math.Abs(e.Prox().Metres-0.5) > 0.1 {
					t.Fatalf("seed %d: events %b, %+v", seed, ev, e.Prox())
				}
			}
		}
		for range 1000 {
			e.in.LiftHeight = 0.03 + 0.06*rng.Float64()
			if e.see(2 * rng.Float64()); e.Prox().Found && e.Prox().Unobstructed || e.Prox().Valid && e.Prox().LiftInView {
				t.Fatalf("seed %d: %+v", seed, e.Prox())
			}
		}
	}
}

// finger plays presses: waits and presses alternate, beginning with a wait; it returns the gestures that came until well after.
func finger(step time.Duration, onCharger bool, spans ...time.Duration) []Gesture {
	b := NewButton(Default().Button)
	var got []Gesture
	now := time.Duration(0)
	for i, d := range append(spans, 3*time.Second) {
		for end := now + d; now < end; now += step {
			if g := b.Step(now, i%2 == 1, onCharger); g != NoGesture {
				got = append(got, g)
			}
		}
	}
	return got
}

// part of VEC-IO-02: click below 400 ms, second one within 500 ms, 2 s mutes, 5 s powers off, 15 s at power-on is recovery.
func TestGestures(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name      string
		onCharger bool
		spans     []time.Duration
		want      []Gesture
	}{
		{"nothing", false, []time.Duration{s}, nil},
		{"click", false, []time.Duration{s, 100 * ms}, []Gesture{Single}},
		{"longest click", false, []time.Duration{s, 399 * ms}, []Gesture{Single}},
		{"too long for a click", false, []time.Duration{s, 400 * ms}, nil},
		{"too short to mute", false, []time.Duration{s, 1999 * ms}, nil},
		{"mute", false, []time.Duration{s, 2 * s}, []Gesture{Mute}},
		{"longest mute", false, []time.Duration{s, 4999 * ms}, []Gesture{Mute}},
		{"power off", false, []time.Duration{s, 5 * s}, []Gesture{PowerOff}},
		{"power off, told before", false, []time.Duration{s, 5*s + ms}, []Gesture{LongHeld, PowerOff}},
		{"power off after very long", true, []time.Duration{s, 20 * s}, []Gesture{LongHeld, PowerOff}},
		{"two clicks away from the charger", false, []time.Duration{s, 100 * ms, 100 * ms, 100 * ms}, []Gesture{Single, Single}},
		{"two clicks on the charger", true, []time.Duration{s, 100 * ms, 100 * ms, 100 * ms}, []Gesture{Double}},
		{"longest gap", true, []time.Duration{s, 100 * ms, 499 * ms, 100 * ms}, []Gesture{Double}},
		{"too long a gap", true, []time.Duration{s, 100 * ms, 500 * ms, 100 * ms}, []Gesture{Single, Single}},
		{"one click on the charger", true, []time.Duration{s, 100 * ms}, []Gesture{Single}},
		{"three clicks on the charger", true, []time.Duration{s, 100 * ms, 100 * ms, 100 * ms, 100 * ms, 100 * ms}, []Gesture{Double, Single}},
		{"click, then mute", true, []time.Duration{s, 100 * ms, 100 * ms, 3 * s}, []Gesture{Single, Mute}},
		{"click, then a press that means nothing", true, []time.Duration{s, 100 * ms, 100 * ms, 400 * ms}, []Gesture{Single}},
		{"bounce", false, []time.Duration{s, 14 * ms}, nil},
		{"bouncing click", false, []time.Duration{s, 3 * ms, 2 * ms, 100 * ms, 2 * ms, 3 * ms}, []Gesture{Single}},
		{"recovery", false, []time.Duration{0, 15*s + 50*ms}, []Gesture{Recovery}},
		{"held at power-on, too short", false, []time.Duration{0, 14900 * ms}, nil},
		{"let go after power-on", false, []time.Duration{0, 200 * ms}, nil},
		{"recovery only at power-on", false, []time.Duration{s, 16 * s}, []Gesture{LongHeld, PowerOff}},
		{"click after power-on", false, []time.Duration{0, 6 * s, s, 100 * ms}, []Gesture{Single}},
	} {
		if got := finger(ms, tc.onCharger, tc.spans...); !equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// VEC-IO-03: a single press waits for the double window on the charger, and only there.
func TestSingleIsDelayedOnTheCharger(t *testing.T) {
	for _, onCharger := range []bool{false, true} {
		b := NewButton(Default().Button)
		released, told := time.Second+100*ms, time.Duration(0)
		for now := time.Duration(0); now < 3*time.Second; now += ms {
			if b.Step(now, now >= time.Second && now < released, onCharger) == Single {
				told = now - released
			}
		}
		if want := map[bool]time.Duration{false: 15 * ms, true: 500 * ms}[onCharger]; told != want {
			t.Errorf("on the charger %v: told %v after the release, want %v", onCharger, told, want)
		}
	}
}

// Contact noise makes no gesture; and in every pattern there are at most as many gestures as presses.
func TestButtonProperties(t *testing.T) {
	for seed := range rounds(6) {
		rng := rand.New(rand.NewPCG(seed, 4))
		b := NewButton(Default().Button)
		b.Step(0, false, false)
		now := time.Duration(0)
		for range 2000 {
			for range rng.IntN(3) { // up to two frames, 10.24 ms
				now += frame
				if b.Step(now, true, seed%2 == 0) != NoGesture {
					t.Fatalf("seed %d: noise is a gesture", seed)
				}
			}
			for range 1 + rng.IntN(20) {
				now += frame
				if b.Step(now, false, seed%2 == 0) != NoGesture || b.Pressed() {
					t.Fatalf("seed %d: noise is a gesture", seed)
				}
			}
		}
		presses, gestures := 0, 0
		for range 200 {
			presses++
			for _, down := range []bool{true, false} {
				for end := now + time.Duration(20+rng.IntN(700))*ms; now < end; now += frame {
					if g := b.Step(now, down, rng.IntN(2) == 0); g != NoGesture {
						gestures++
					}
				}
			}
			if gestures > presses {
				t.Fatalf("seed %d: %d gestures of %d presses", seed, gestures, presses)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		spoil func(*Config)
	}{
		{"Touch.Off", func(c *Config) { c.Touch.Off = 1 }},
		{"Cliff.Frames", func(c *Config) { c.Cliff.Frames = 0 }},
		{"Prox.Max", func(c *Config) { c.Prox.Max = math.NaN() }},
		{"Button.Mute", func(c *Config) { c.Button.Long = time.Second }},
		{"Motion.Dwell", func(c *Config) { c.Motion.Dwell = -1 }},
	} {
		c := Default()
		tc.spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tc.name) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if s, err := New(c, 0); err == nil || s != nil {
			t.Errorf("%s: New took it", tc.name)
		}
	}
	if Double.String() != "double" || Gesture(99).String() != "gesture(99)" || OnFace.String() != "OnFace" || OffTreads(99).String() != "OffTreads(99)" {
		t.Error("enums do not print as words")
	}
}
