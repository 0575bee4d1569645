package plane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const tick = 5120 * time.Microsecond

// rover is a robot of Vector's size.
func rover() Robot {
	return Robot{
		Track: 0.048, Nose: 0.045, Tail: 0.055, Width: 0.06,
		Range: Mount{X: 0.045, Z: 0.03}, RangeMin: 0.03, RangeMax: 1.2,
		Cliffs:        []Vec{{0.035, 0.015}, {0.035, -0.015}, {-0.035, 0.015}, {-0.035, -0.015}},
		SlipShare:     0.3,
		InertialNoise: 0.02, GyroNoise: 0.002, HandRate: 0.1,
	}
}

func with(t *testing.T, m *Map) *World {
	t.Helper()
	w, err := New(m, rover(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// go1 drives for so many seconds and returns how far the treads turned.
func go1(w *World, seconds, left, right float64) (l, r float64) {
	for range int(math.Round(seconds / tick.Seconds())) {
		a, b := w.Step(tick, left, right)
		l, r = l+a, r+b
	}
	return l, r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTurnAgainstWall: when a robot pushes against a wall and is told to turn, it turns no farther than its treads count: they can only slip
// (issue 31, 5d).
func TestTurnAgainstWall(t *testing.T) {
	for _, speeds := range [][2]float64{{0.02, 0.1}, {0.1, 0.02}, {-0.02, 0.1}, {0.1, -0.05}, {0, 0.1}} {
		w := with(t, &Map{Walls: []Wall{{From: Vec{0.05, -1}, To: Vec{0.05, 1}}}})
		go1(w, 1, 0.1, 0.1)
		for range 50 {
			before := w.State()
			l, r := w.Step(tick, speeds[0], speeds[1])
			s := w.State()
			counted, turned := (r-l)/0.048, wrap(s.Pose[2]-before.Pose[2])
			if s.Blocked && math.Abs(turned) > math.Abs(counted)+1e-9 || turned*counted < 0 {
				t.Fatalf("%v m/s: it turned by %v, its treads count %v", speeds, turned, counted)
			}
		}
	}
}

// TestDifferential: on a free floor the robot goes where its treads take it.
func TestDifferential(t *testing.T) {
	w := with(t, &Map{})
	l, r := go1(w, 2, 0.1, 0.1)
	if p := w.State().Pose; math.Abs(p[0]-l) > 1e-9 || p[1] != 0 || p[2] != 0 || l != r || math.Abs(l-0.2) > 0.001 {
		t.Errorf("straight on: %v after %v and %v", p, l, r)
	}
	before := w.State().Pose
	l, r = go1(w, 1, -0.05, 0.05)
	p := w.State().Pose
	if math.Abs(wrap(p[2]-before[2])-wrap((r-l)/0.048)) > 1e-9 || math.Hypot(p[0]-before[0], p[1]-before[1]) > 1e-9 {
		t.Errorf("on the spot: %v after %v and %v, from %v", p, l, r, before)
	}
	// A quarter of a circle of 0.2 m.
	w = with(t, &Map{})
	angle := math.Pi / 2
	v := 0.1
	seconds := 0.2 * angle / v
	go1(w, seconds, v*(0.2-0.024)/0.2, v*(0.2+0.024)/0.2)
	if p := w.State().Pose; math.Hypot(p[0]-0.2, p[1]-0.2) > 0.002 || math.Abs(p[2]-angle) > 0.01 {
		t.Errorf("arc ends at %v", p)
	}
	w.Step(tick, math.NaN(), math.Inf(1)) // is a speed that cannot be
	if p := w.State().Pose; math.IsNaN(p[0] + p[1] + p[2]) {
		t.Errorf("no number: %v", p)
	}
}

// TestWall: the robot stops where its nose touches, its treads stall or slip, and backwards it gets free.
func TestWall(t *testing.T) {
	m := &Map{Walls: []Wall{{From: Vec{0.3, -1}, To: Vec{0.3, 1}}}}
	w := with(t, m)
	go1(w, 3, 0.1, 0.1)
	s := w.State()
	if nose := s.Pose[0] + 0.045; nose > 0.3 || nose < 0.2999 || !s.Blocked {
		t.Errorf("its nose is at %v, blocked %v; want 0.3", nose, s.Blocked)
	}
	l, r := w.Step(tick, 0.1, 0.1)
	if want := 0.3 * 0.1 * tick.Seconds(); math.Abs(l-want) > want/10 || math.Abs(r-want) > want/10 {
		t.Errorf("treads turned %v and %v against the wall, want %v: they slip by their share", l, r, want)
	}
	hard := rover()
	hard.SlipShare = 0
	stalled, err := New(m, hard, 1)
	must(t, err)
	go1(stalled, 3, 0.1, 0.1)
	if l, r := stalled.Step(tick, 0.1, 0.1); l > 1e-6 || r > 1e-6 {
		t.Errorf("treads without slip turned %v and %v, want them stalled", l, r)
	}
	go1(w, 1, -0.1, -0.1)
	if s := w.State(); math.Abs(s.Pose[0]-0.155) > 0.002 || s.Blocked {
		t.Errorf("backwards it came to %v", s.Pose)
	}
}

// TestRange: the ray starts at the sensor, sees what is as high as it looks, and has the sensor's limits.
func TestRange(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    Map
		want float64
	}{
		{"nothing", Map{}, 0},
		{"a wall", Map{Walls: []Wall{{From: Vec{0.5, -1}, To: Vec{0.5, 1}}}}, 0.455},
		{"turned away", Map{Start: Pose{0, 0, math.Pi}, Walls: []Wall{{From: Vec{0.5, -1}, To: Vec{0.5, 1}}}}, 0},
		{"aslant", Map{Start: Pose{0, 0, math.Pi / 3}, Walls: []Wall{{From: Vec{0.5, -9}, To: Vec{0.5, 9}}}}, 0.955},
		{"too far", Map{Walls: []Wall{{From: Vec{1.3, -1}, To: Vec{1.3, 1}}}}, 0},
		{"too near", Map{Walls: []Wall{{From: Vec{0.06, -1}, To: Vec{0.06, 1}}}}, 0},
		{"a low wall", Map{Walls: []Wall{{From: Vec{0.5, -1}, To: Vec{0.5, 1}, Height: 0.02}, {From: Vec{0.8, -1}, To: Vec{0.8, 1}}}}, 0.755},
		{"a cube", Map{Objects: []Object{{Shape: "box", At: Pose{0.3, 0, 0}, Size: Vec{0.044, 0.044}}}}, 0.233},
		{"a disc", Map{Objects: []Object{{Shape: "disc", At: Pose{0.3, 0, 0}, Radius: 0.05}}}, 0.205},
		{"beside a disc", Map{Objects: []Object{{Shape: "disc", At: Pose{0.3, 0.06, 0}, Radius: 0.05}}}, 0},
	} {
		if got := with(t, &tc.m).Range(); math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	r := rover()
	r.Range.Pitch = math.Pi / 4
	w, err := New(&Map{}, r, 1)
	must(t, err)
	if got := w.Range(); math.Abs(got-0.03*math.Sqrt2) > 1e-9 {
		t.Errorf("looking down: %v, want the floor", got)
	}
}

// TestCliff: a sensor sees no floor when it is beyond the edge; the robot falls when its middle is, feels it, and lies below until a hand comes.
func TestCliff(t *testing.T) {
	w := with(t, &Map{Cliffs: []Cliff{{Corners: []Vec{{0.1, -1}, {1, -1}, {1, 1}, {0.1, 1}}, Drop: 0.5}}})
	go1(w, 0.8, 0.1, 0.1) // the front sensors are over it
	if s := w.State(); !reflect.DeepEqual(s.NoFloor, []bool{true, true, false, false}) || s.Posture != OnTreads {
		t.Fatalf("at the edge: %+v", s)
	}
	var began, ended time.Duration
	peak := 0.0
	for i := 0; i < 400 && ended == 0; i++ {
		w.Step(tick, 0.1, 0.1)
		a := w.Inertia().Accel
		g := math.Sqrt(a[0]*a[0]+a[1]*a[1]+a[2]*a[2]) / Gravity
		switch s := w.State(); {
		case s.Posture == Falling && began == 0:
			began = s.Time
		case s.Posture == Falling && s.Time > began+tick && g > 0.05:
			t.Fatalf("falling it feels %v g", g)
		case began > 0 && s.Posture != Falling:
			ended, peak = s.Time, g
		}
	}
	s := w.State()
	if d := ended - began - fallTime(0.5); began == 0 || d < -tick || d > 2*tick || peak < 4 {
		t.Errorf("fell from %v to %v, want %v of it; impact %v g", began, ended, fallTime(0.5), peak)
	}
	if s.Falls != 1 || !s.Below || s.Posture == OnTreads || s.NoFloor[3] != true {
		t.Errorf("below: %+v", s)
	}
	must(t, w.PickUp())
	go1(w, 1, 0, 0)
	must(t, w.PutDown(Pose{}))
	go1(w, 0.1, 0, 0)
	if s := w.State(); s.Below || s.Posture != OnTreads || s.NoFloor[0] || s.Pitch != 0 || s.Roll != 0 {
		t.Errorf("put back: %+v", s)
	}
	must(t, w.PutDown(Pose{0.5, 0, 0}))
	if s := w.State(); s.Posture != Falling {
		t.Errorf("put down over a cliff: %v", s.Posture)
	}
	if w.PickUp() == nil || w.Tip(OnBack) == nil || w.PutDown(Pose{}) == nil {
		t.Error("a falling robot was caught")
	}
}

// TestPush: what can be pushed moves ahead of the robot until a wall holds it; what cannot stops the robot; what is pushed over an edge is gone.
func TestPush(t *testing.T) {
	cube := Object{Shape: "box", At: Pose{0.2, 0, 0}, Size: Vec{0.044, 0.044}}
	wall := Wall{From: Vec{0.5, -1}, To: Vec{0.5, 1}}
	w := with(t, &Map{Objects: []Object{cube}, Walls: []Wall{wall}})
	go1(w, 2.5, 0.1, 0.1)
	if s := w.State(); math.Abs(s.Objects[0][0]-(s.Pose[0]+0.045+0.022)) > 0.001 || s.Blocked {
		t.Errorf("pushing: %+v", s)
	}
	go1(w, 4, 0.1, 0.1)
	if s := w.State(); !s.Blocked || s.Objects[0][0] > 0.478 || s.Objects[0][0] < 0.477 {
		t.Errorf("at the wall: %+v", s)
	}
	cube.Fixed = true
	w = with(t, &Map{Objects: []Object{cube}})
	go1(w, 3, 0.1, 0.1)
	if s := w.State(); !s.Blocked || s.Objects[0] != cube.At || math.Abs(s.Pose[0]-0.133) > 1e-4 {
		t.Errorf("before a thing that is fixed: %+v", s)
	}
	cube.Fixed = false
	w = with(t, &Map{Objects: []Object{cube}, Cliffs: []Cliff{{Corners: []Vec{{0.3, -1}, {1, -1}, {1, 1}, {0.3, 1}}}}})
	go1(w, 2.4, 0.1, 0.1)
	if s := w.State(); !s.Gone[0] || s.Posture != OnTreads {
		t.Errorf("pushed over the edge: %+v", s)
	}
}

// TestDock: contacts close when the robot backs in straight, from anywhere before the charger, and not when it comes crooked or beside (VEC-HW-04).
func TestDock(t *testing.T) {
	for _, at := range []Pose{{}, {1, -0.5, 2}, {-3, 2, -0.7}} {
		charger := &Charger{At: at}
		try := func(from float64, aside, turned float64) State {
			v := at.At(Vec{from, aside})
			w := with(t, &Map{Start: Pose{v[0], v[1], wrap(at[2] + turned)}, Charger: charger})
			if w.Contact() {
				t.Fatal("contact before it moved")
			}
			go1(w, from/0.15+0.2, -0.15, -0.15)
			return w.State()
		}
		for _, from := range []float64{0.15, 0.2, 0.4} {
			for _, aside := range []float64{-0.003, 0, 0.003} {
				if s := try(from, aside, 0); !s.Contact || !s.Blocked {
					t.Errorf("charger %v, straight from %v, %v aside: %+v", at, from, aside, s)
				}
			}
		}
		for _, turned := range []float64{-0.8, -0.3, -0.15, 0.15, 0.3, 0.8} {
			// It aims at the back wall's middle, crooked.
			if s := try(0.25*math.Cos(turned), 0.25*math.Sin(turned), turned); s.Contact {
				t.Errorf("charger %v, crooked by %v: %+v", at, turned, s)
			}
		}
		for _, aside := range []float64{-0.05, -0.012, 0.012, 0.05} {
			if s := try(0.2, aside, 0); s.Contact {
				t.Errorf("charger %v, %v aside: %+v", at, aside, s)
			}
		}
		if s := try(0.2, 0, math.Pi-1e-9); s.Contact {
			t.Errorf("charger %v, nose first: %+v", at, s)
		}
	}
	m, err := Builtin("room")
	must(t, err)
	w := with(t, m)
	must(t, w.PutOnCharger())
	if !w.Contact() {
		t.Error("put on the charger: no contact")
	}
	must(t, w.TakeOffCharger())
	if w.Contact() {
		t.Error("taken off: contact")
	}
	if err := with(t, &Map{}).PutOnCharger(); err == nil || !strings.Contains(err.Error(), "no charger") {
		t.Error(err)
	}
}

// TestHand: in a hand the treads turn free and nothing moves; it feels the lift, the hand and how it is turned (VEC-IMU-06 to 09).
func TestHand(t *testing.T) {
	w := with(t, &Map{})
	go1(w, 0.1, 0, 0)
	must(t, w.PickUp())
	most, before := 0.0, w.State().Pose
	for range 200 {
		if l, r := w.Step(tick, 0.1, 0.05); l != 0.1*tick.Seconds() || r != 0.05*tick.Seconds() {
			t.Fatalf("in the air the treads turned %v and %v", l, r)
		}
		most = max(most, w.Inertia().Accel[2]/Gravity)
	}
	if s := w.State(); s.Pose != before || s.Height != liftHeight || s.Posture != InHand || !s.NoFloor[0] || most < 1.2 {
		t.Errorf("in the hand: %+v; felt %v g", s, most)
	}
	for _, tc := range []struct {
		posture Posture
		up      [3]float64
	}{{OnLeftSide, [3]float64{0, -1, 0}}, {OnRightSide, [3]float64{0, 1, 0}}, {OnBack, [3]float64{0, 0, -1}}, {OnFace, [3]float64{-1, 0, 0}}} {
		must(t, w.Tip(tc.posture))
		turned := [3]float64{}
		for range 250 {
			w.Step(tick, 0.1, 0.1)
			for i, v := range w.Inertia().Gyro {
				turned[i] = max(turned[i], math.Abs(v))
			}
		}
		for i, a := range w.Inertia().Accel {
			if math.Abs(a/Gravity-tc.up[i]) > 0.02 {
				t.Errorf("%s: axis %d feels %v g, want %v", tc.posture, i, a/Gravity, tc.up[i])
			}
		}
		if s := w.State(); s.Pose != before || s.Posture != tc.posture || max(turned[0], turned[1]) < 3 {
			t.Errorf("%s: %+v, turned at %v", tc.posture, s, turned)
		}
		must(t, w.PickUp())
		go1(w, 1, 0, 0)
	}
	if err := w.Tip(OnTreads); err == nil {
		t.Error("tipped onto its treads")
	}
	walled := with(t, &Map{Walls: []Wall{{From: Vec{0.3, -1}, To: Vec{0.3, 1}}}})
	if err := walled.PutDown(Pose{0.29, 0, 0}); err == nil || walled.State().Pose != (Pose{}) {
		t.Error("put down in a wall")
	}
	if err := walled.PutDown(Pose{math.NaN(), 0, 0}); err == nil {
		t.Error("put down nowhere")
	}
}

// TestFeel: driving is felt as what the pose does.
func TestFeel(t *testing.T) {
	r := rover()
	r.InertialNoise, r.GyroNoise = 0, 0
	w, err := New(&Map{}, r, 1)
	must(t, err)
	w.Step(tick, 0.01, 0.01)
	if a := w.Inertia().Accel; math.Abs(a[0]-0.01/tick.Seconds()) > 1e-6 || a[2] != Gravity {
		t.Errorf("it set off feeling %v", a)
	}
	go1(w, 1, 0.1, 0.2)
	in := w.Inertia()
	rate := 0.1 / 0.048
	if math.Abs(in.Gyro[2]-rate) > 1e-6 || math.Abs(in.Accel[1]-0.15*rate) > 0.01 || math.Abs(in.Accel[0]) > 0.01 {
		t.Errorf("in a bend it feels %+v, want a rate of %v", in, rate)
	}
}

// TestNew refuses what cannot be lived in.
func TestNew(t *testing.T) {
	for _, tc := range []struct {
		m    Map
		want string
	}{
		{Map{Walls: []Wall{{From: Vec{0, -1}, To: Vec{0, 1}}}}, "no room for the robot at start [0 0 0]"},
		{Map{Cliffs: []Cliff{{Corners: []Vec{{-1, -1}, {1, -1}, {0, 1}}}}}, "over a cliff"},
		{Map{Objects: []Object{{Shape: "disc", At: Pose{0.01, 0, 0}, Radius: 0.01}}}, "start"},
		{Map{Objects: []Object{{Shape: "disc", At: Pose{1, 0, 0}, Radius: 0.1}, {Shape: "disc", At: Pose{1.1, 0, 0}, Radius: 0.1}}}, "objects[0] overlaps"},
		{Map{Walls: []Wall{{From: Vec{1.05, -1}, To: Vec{1.05, 1}}}, Charger: &Charger{At: Pose{1, 0, 0}}}, "charger at [1 0 0]"},
		{Map{Slip: math.NaN()}, "slip"},
	} {
		if _, err := New(&tc.m, rover(), 1); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.m, err, tc.want)
		}
	}
	if _, err := New(&Map{}, Robot{}, 1); err == nil || !strings.Contains(err.Error(), "robot's track is 0") {
		t.Error(err)
	}
}

// labyrinth is a map made by chance.
func labyrinth(rng *rand.Rand) *Map {
	place := func() Vec { return Vec{rng.Float64()*2 - 1, rng.Float64()*2 - 1} }
	m := &Map{Slip: 0.2 * rng.Float64()}
	far := func(v Vec) bool { return v.norm() > 0.2 }
	for range 1 + rng.IntN(8) {
		if a, b := place(), place(); far(a) && far(b) && nearest(a, b, Vec{}).norm() > 0.2 {
			m.Walls = append(m.Walls, Wall{From: a, To: b})
		}
	}
	for range 2 + rng.IntN(6) {
		if a := place(); far(a.times(0.5)) {
			m.Cliffs = append(m.Cliffs, Cliff{Corners: []Vec{a, a.plus(Vec{0.4, 0.05}), a.plus(Vec{0.1, 0.4})}, Drop: 0.1 + rng.Float64()})
		}
	}
	for range 3 + rng.IntN(10) {
		o := Object{Shape: "disc", At: Pose{}, Radius: 0.02 + 0.03*rng.Float64(), Fixed: rng.IntN(4) == 0}
		if rng.IntN(2) == 0 {
			o = Object{Shape: "box", Size: Vec{0.03 + 0.05*rng.Float64(), 0.044}, Fixed: o.Fixed}
		}
		v := place()
		o.At = Pose{v[0], v[1], rng.Float64()}
		if far(v) {
			m.Objects = append(m.Objects, o)
		}
	}
	return m
}

// lifetimes is how many worlds the property test lives in; KENNEL_SOAK=1 lives in more.
func lifetimes() int {
	if os.Getenv("KENNEL_SOAK") != "" {
		return 3000
	}
	return 25
}

// TestProperties: in any world, whatever the treads and hands do, the robot never crosses a wall nor a thing, is told that it falls whenever
// its middle has no floor, no thing is pushed into another, and the same seed and commands make the same world bit by bit.
func TestProperties(t *testing.T) {
	blocked, falls, pushed := 0, 0, 0
	for seed := range uint64(lifetimes()) {
		rng := rand.New(rand.NewPCG(seed, 7))
		m := labyrinth(rng)
		w, err := New(m, rover(), seed)
		for err != nil { // no room for it
			m = labyrinth(rng)
			w, err = New(m, rover(), seed)
		}
		twin, err := New(m, rover(), seed)
		must(t, err)
		var left, right float64
		s := w.State()
		for i := range 1000 {
			if rng.IntN(80) == 0 {
				left = rng.Float64()*0.7 - 0.2
				right = left + 0.05*rng.NormFloat64()*float64(rng.IntN(2))
			}
			if rng.IntN(400) == 0 || s.Below && rng.IntN(50) == 0 {
				p := Pose{rng.Float64()*2 - 1, rng.Float64()*2 - 1, rng.Float64()}
				a, b := w.PickUp(), twin.PickUp()
				if fmt.Sprint(a) != fmt.Sprint(b) {
					t.Fatal(a, b)
				}
				a, b = w.PutDown(p), twin.PutDown(p)
				if fmt.Sprint(a) != fmt.Sprint(b) {
					t.Fatal(a, b)
				}
				s = w.State()
			}
			before := s
			dt := tick
			if i%97 == 0 {
				dt = maxStep
			}
			l, r := w.Step(dt, left, right)
			l2, r2 := twin.Step(dt, left, right)
			s = w.State()
			if l != l2 || r != r2 || !reflect.DeepEqual(s, twin.State()) || w.Inertia() != twin.Inertia() {
				t.Fatalf("seed %d step %d: %+v and %+v", seed, i, s, twin.State())
			}
			if math.Abs(l) > math.Abs(left*dt.Seconds())+1e-12 || math.Abs(r) > math.Abs(right*dt.Seconds())+1e-12 || l*left < 0 || r*right < 0 {
				t.Fatalf("seed %d step %d: treads turned %v and %v at %v and %v", seed, i, l, r, left, right)
			}
			if s.Blocked {
				blocked++
			}
			falls += s.Falls - before.Falls
			if !s.Below && s.Posture != InHand && s.Posture != Falling && w.Cliff(s.Pose.place()) {
				t.Fatalf("seed %d step %d: hangs over a cliff: %+v", seed, i, s)
			}
			if s.Posture != OnTreads || s.Below {
				continue
			}
			body := w.body(s.Pose)
			if !w.clear(&body, -1) {
				t.Fatalf("seed %d step %d: in something: %+v", seed, i, s)
			}
			// Between two steps its middle went no way through a wall.
			for _, wall := range m.Walls {
				if d, _ := apart(before.Pose.place(), s.Pose.place(), wall.From, wall.To); d <= 0 && before.Posture == OnTreads {
					t.Fatalf("seed %d step %d: through %+v from %v to %v", seed, i, wall, before.Pose, s.Pose)
				}
			}
			for j, at := range s.Objects {
				if at == before.Objects[j] {
					continue
				}
				pushed++
				if o := m.Objects[j].shape(at); m.Objects[j].Fixed || !s.Gone[j] && !w.clear(&o, j) {
					t.Fatalf("seed %d step %d: object %d was pushed into something: %+v", seed, i, j, s)
				}
			}
		}
	}
	if blocked < 500 || falls < 3 || pushed < 30 {
		t.Errorf("%d steps blocked, %d falls, %d pushes: these lives prove too little", blocked, falls, pushed)
	}
}

func BenchmarkStep(b *testing.B) {
	m, err := Builtin("room")
	if err != nil {
		b.Fatal(err)
	}
	w, err := New(m, rover(), 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Step(tick, 0.1, 0.12)
	}
}

// TestStepAllocates nothing: a world is stepped inside a simulated board's period.
func TestStepAllocates(t *testing.T) {
	m, err := Builtin("room")
	must(t, err)
	w := with(t, m)
	if n := testing.AllocsPerRun(2000, func() { w.Step(tick, 0.1, 0.12); w.Range(); w.Floor(0); w.Contact() }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// fallTime is how long a fall of so many metres takes.
func fallTime(drop float64) time.Duration {
	return time.Duration(math.Sqrt(2*drop/Gravity) * float64(time.Second))
}
