package motion

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"kennel/edge/body"
)

const (
	ms     = time.Millisecond
	frame  = 5120 * time.Microsecond // VEC-MOT-05
	degree = math.Pi / 180
)

// soak plays the same tests on for longer.
var soak = os.Getenv("KENNEL_SOAK") == "1"

func TestMain(m *testing.M) {
	// The same run each time; the command line may say otherwise.
	_ = flag.Set("rapid.seed", "6")
	_ = flag.Set("rapid.nofailfile", "true")
	_ = flag.Set("rapid.shrinktime", "2s")
	_ = flag.Set("rapid.checks", "80") // about an hour of simulated life
	if soak {
		_ = flag.Set("rapid.checks", "400")
	}
	os.Exit(m.Run())
}

// part is one motor with what it turns: it follows its duty with a lag, rubs, and meets stops. It is not the model that the loops assume:
// gain, lag and friction differ (VEC-MCT-04).
type part struct {
	full, lag, gain  float64 // rad/s, s, share
	friction, weight float64 // duty
	stops            [2]float64
	counts           float64 // per rad

	angle, rate, zero float64
	held              bool    // by a hand
	pulled            float64 // rad/s, moved by a hand
	touched           float64 // speed of the newest contact with a stop in this step, rad/s; 0: none
	contact           bool
	heat              float64 // s of stall at full power
	accel             float64 // of the last step, rad/s²
}

func (p *part) step(duty, dt float64) {
	before := p.rate
	p.contact, p.touched = false, 0
	const n = 4
	for range n {
		h := dt / n
		push := duty*p.gain - p.weight
		switch {
		case p.pulled != 0:
			p.rate = p.pulled
		case p.held:
			p.rate = 0
		default:
			drag := p.friction
			if p.rate == 0 && math.Abs(push) <= drag {
				break
			}
			way := p.rate
			if way == 0 {
				way = push
			}
			next := p.rate + ((push-math.Copysign(drag, way))*p.full-p.rate)*-math.Expm1(-h/p.lag)
			if p.rate != 0 && next*p.rate < 0 && math.Abs(push) <= drag {
				next = 0 // friction has the last word
			}
			p.rate = next
		}
		p.angle += p.rate * h
		if p.angle < p.stops[0] || p.angle > p.stops[1] {
			p.angle = min(max(p.angle, p.stops[0]), p.stops[1])
			p.contact, p.touched = true, max(p.touched, math.Abs(p.rate))
			p.rate = 0
		}
	}
	p.accel = (p.rate - before) / dt
	p.heat *= 1 - dt/60
	if math.Abs(p.rate) < 0.02*p.full {
		p.heat += duty * duty * dt
	}
}

func (p *part) position() float64 { return math.Floor((p.angle-p.zero)*p.counts) / p.counts }

// plant is a simulated body: two treads, lift, head, gyro.
type plant struct {
	rng   *rand.Rand
	parts [4]part
	pose  Pose
	drive Drive
	slip  float64
	noise float64
	turn  float64 // rad/s, true
	sense measured
}

// measured is one measurement of the plant.
type measured struct {
	At         time.Duration
	Seq, Epoch uint32
	Fresh      bool
	Motors     [4]body.Motor
}

func newPlant(seed uint64) *plant {
	p := &plant{rng: rand.New(rand.NewPCG(seed, 5)), drive: testConfig().Drive}
	free := [2]float64{math.Inf(-1), math.Inf(1)}
	c := testConfig()
	for i := range p.parts {
		q := part{full: 0.3 / p.drive.Radius, counts: 150, stops: free}
		if i >= 2 {
			q.full, q.counts, q.stops = 12, 1/c.Joints[i-2].Motor.Count, c.Joints[i-2].Stops
			q.weight = 0.02 * p.rng.Float64()
			q.angle = q.stops[0] + p.rng.Float64()*(q.stops[1]-q.stops[0])
		}
		q.gain, q.lag, q.friction = 0.9+0.2*p.rng.Float64(), 0.03+0.02*p.rng.Float64(), 0.02+0.03*p.rng.Float64()
		q.zero = q.angle
		p.parts[i] = q
	}
	p.noise = 0.005
	return p
}

// ideal makes it the motor that the loops assume.
func (p *plant) ideal() *plant {
	for i := range p.parts {
		q := &p.parts[i]
		q.gain, q.lag, q.friction, q.weight = 1, 0.04, 0.03, 0
	}
	p.noise = 0
	return p
}

func (p *plant) step(a *Duties, dt float64) {
	for i := range p.parts {
		p.parts[i].step(min(max(a[i], -1), 1), dt)
	}
	k := p.drive.Radius * (1 - p.slip)
	t := p.drive.Twist(p.parts[0].rate*k, p.parts[1].rate*k)
	p.turn = t.W
	p.pose = p.pose.advance(t.V*dt, t.W*dt)
}

// failer is the part of a test that a rig needs; rapid's tests have it too.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// rig is a Motion on a plant.
type rig struct {
	tb     failer
	m      *Motion
	p      *plant
	now    time.Duration
	in     Input
	act    Duties
	rep    *Report
	gyro   bool
	silent bool // frames are lost
	events [4]Event
	fault  func(*Duties) // a planted violation
	after  func()        // called after each step of the plant
}

func newRig(tb failer, p *plant, change func(*Config)) *rig {
	c := testConfig()
	if change != nil {
		change(&c)
	}
	m, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{tb: tb, m: m, p: p, now: time.Second, gyro: true}
	r.p.sense.Epoch = 1
	r.step()
	return r
}

// step lets one frame pass.
func (r *rig) step() { r.stepBy(frame) }

func (r *rig) stepBy(dt time.Duration) {
	r.now += dt
	r.p.step(&r.act, dt.Seconds()) // what the step before asked for
	s := &r.p.sense
	if s.Fresh = !r.silent; s.Fresh {
		s.At, s.Seq = r.now, s.Seq+1
		for i := range r.p.parts {
			s.Motors[i].Position = r.p.parts[i].position()
		}
		if r.in.Gyro = (Gyro{}); r.gyro {
			r.in.Gyro = Gyro{Rate: r.p.turn + r.p.noise*r.p.rng.NormFloat64(), At: r.now}
		}
	}
	r.in.Now, r.in.DT, r.in.At, r.in.Epoch, r.in.Fresh, r.in.Motors = r.now, dt, s.At, s.Epoch, s.Fresh, s.Motors[:]
	r.act = Duties{}
	r.rep = r.m.Step(&r.in, &r.act)
	if r.fault != nil {
		r.fault(&r.act)
	}
	for i := range r.rep.NJoints {
		r.events[i] |= r.rep.Joints[i].Events
	}
	if r.after != nil {
		r.after()
	}
}

// run lets that much time pass.
func (r *rig) run(d time.Duration) {
	for end := r.now + d; r.now < end; {
		r.step()
	}
}

// until steps until ok, or fails.
func (r *rig) until(what string, limit time.Duration, ok func() bool) {
	r.tb.Helper()
	for end := r.now + limit; !ok(); r.step() {
		if r.now > end {
			r.tb.Fatalf("%s: not within %v; treads %v, joints %+v, %+v", what, limit, r.rep.Treads, r.rep.Joints[0], r.rep.Joints[1])
		}
	}
}

func (r *rig) must(err error) {
	r.tb.Helper()
	if err != nil {
		r.tb.Fatal(err)
	}
}

// home calibrates both joints.
func (r *rig) home() {
	r.tb.Helper()
	for i := range 2 {
		r.must(r.m.Calibrate(i))
	}
	r.step()
	r.until("homing", 15*time.Second, func() bool { return r.rep.Joints[0].Outcome == Done && r.rep.Joints[1].Outcome == Done })
}

func near(t testing.TB, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %.5f, want %.5f within %g", what, got, want, within)
	}
}

func (p Pose) String() string {
	return fmt.Sprintf("(%.4f m, %.4f m, %.2f°)", p.X, p.Y, p.Theta/degree)
}
