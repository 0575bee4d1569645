package vectorplant

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/edge/sense"
)

// random returns an order of any kind that an owner may give, with numbers that a body can follow.
func random(rng *rand.Rand) control.Order {
	kinds := [...]control.Kind{
		control.Claim, control.Renew, control.Release, control.Drop, control.Set, control.Set, control.Set, control.Set, control.Go, control.Turn,
		control.Stop,
	}
	o := control.Order{
		Kind: kinds[rng.IntN(len(kinds))], Priority: claim.Priority(10 * (1 + rng.IntN(6))), TTL: time.Duration(rng.IntN(5000)) * ms,
		Lease: uint64(rng.IntN(500)), A: rng.NormFloat64() / 5, Speed: max(0, rng.NormFloat64()/5), For: time.Duration(rng.IntN(4000)) * ms,
	}
	if o.Kind != control.Set {
		return o
	}
	switch rng.IntN(4) {
	case 0:
		return headTo(0, o.A)
	case 1:
		return quick(liftTo(0, o.A), o.Speed)
	case 2:
		o = set(0, map[string]float64{"robot.xSpeed": o.A, "robot.yawSpeed": 20 * o.A})
	default:
		o = wheelsAt(0, o.A, rng.NormFloat64()/5, 0)
	}
	o.For = time.Duration(rng.IntN(4000)) * ms
	return o
}

// TestRandomLife plays simulated hours of three owners who claim, drive, die and are interrupted. At every step: no power while a reason to stop
// holds, within the time that its row gives (cliff: two frames, VEC-IO-20; fall: 80 ms, VEC-IMU-07; link: 50 ms, VEC-BODY-33); none afterwards
// without an order; what is under way is its owner's; none for long in what has no owner; speeds within limits.
func TestRandomLife(t *testing.T) {
	hours, seeds := 0.2, uint64(3)
	switch {
	case os.Getenv("KENNEL_SOAK") == "1":
		hours, seeds = 5, 20
	case testing.Short():
		hours = 0.1
	}
	for seed := range seeds {
		d := newDesk(t)
		rng := rand.New(rand.NewPCG(seed, 6))
		owners := []claim.Owner{alice, bob, carol}
		sets := []claim.Set{d.set("robot.body.wheel"), d.set("headPitch"), d.set("arm"), d.set("robot.body"), d.set("wheelL")}
		var until time.Duration // of the trouble of the moment
		var orphan [4]time.Duration
		var edge, lifted, fall time.Duration // since when
		ordered := false                     // the treads, since they had to stop
		d.up = [3]float64{0, 0, sense.Gravity}
		motors := [4]claim.Set{d.set("wheelL"), d.set("wheelR"), d.set("arm"), d.set("headPitch")}
		holder := func(motor int) (o claim.Owner) {
			for a, by := range d.rep.Owners {
				if motors[motor].Has(a) {
					o = by.Owner
				}
			}
			return o
		}
		drives, driver := map[uint32]bool{}, claim.Owner(0) // the requests for the treads, and the owner of the newest motion
		for range int(hours * float64(time.Hour/period)) {
			if rng.IntN(20) == 0 {
				o := random(rng)
				o.Owner, o.Set, o.Request = owners[rng.IntN(3)], sets[rng.IntN(len(sets))], uint32(d.f.Step)
				if o.Kind == control.Go || o.Kind == control.Turn || o.N > 0 && d.c.Model().Slots[o.Goals[0].Slot] == wheels {
					ordered, drives[o.Request] = true, true
				}
				d.c.Post(o)
			}
			if until == 0 && rng.IntN(1500) == 0 {
				until = d.f.Now + time.Duration(rng.IntN(500))*ms
				switch rng.IntN(7) {
				case 0:
					d.f.Halted = true
				case 1:
					d.silent = true
				case 2:
					d.sense.Cliffs[rng.IntN(4)] = 0
				case 3:
					d.sense.Cliffs = [4]float64{}
				case 4:
					d.sense.Epoch++
					d.zero, ordered = d.angle, false
				case 5:
					d.f.Run++
					d.zero, ordered = d.angle, false
				case 6:
					d.up = [3]float64{0, 0, 0.2}
				}
			} else if until != 0 && d.f.Now >= until {
				d.up = [3]float64{0, 0, sense.Gravity}
				until, d.f.Halted, d.silent, d.sense.Cliffs = 0, false, false, [4]float64{0.6, 0.6, 0.6, 0.6}
			}
			d.step()
			for _, r := range d.results {
				if r.Underway && drives[r.Request] {
					driver = r.Owner
				}
			}
			d.results = d.results[:0]
			stop := d.p.now.Stop
			since := func(t *time.Duration, holds bool) time.Duration {
				if !holds {
					*t = d.f.Now
				}
				return d.f.Now - *t
			}
			none, ahead, behind := 0, false, false
			for i, v := range d.sense.Cliffs {
				if v == 0 {
					none++
					ahead, behind = ahead || i == spine.FrontLeft || i == spine.FrontRight, behind || i == spine.BackLeft || i == spine.BackRight
				}
			}
			atEdge := since(&edge, none > 0) > 2*period
			lift := since(&lifted, none == 4) > 2*period
			halted := d.f.Halted || d.f.Now-d.sense.At > 50*ms || since(&fall, d.up[2] < 1) > 80*ms+3*period
			if halted || lift {
				ordered = false
			}
			if d.p.now.Treads == motion.Running && (holder(0) != driver || holder(1) != driver) {
				t.Fatalf("seed %d, %v: %d drives, and the treads are held by %d and %d", seed, d.f.Now, driver, holder(0), holder(1))
			}
			for i, duty := range d.duties() {
				if holder(i) != 0 || duty == 0 {
					orphan[i] = d.f.Now
				}
				switch {
				case duty != 0 && (halted || stop&motion.Everything != 0):
					t.Fatalf("seed %d, %v: motor %d has %v, stop %b", seed, d.f.Now, i, duty, stop)
				case duty != 0 && i < 2 && (lift || stop&motion.Lifted != 0):
					t.Fatalf("seed %d, %v: tread %d has %v while lifted", seed, d.f.Now, i, duty)
				case i < 2 && atEdge && (ahead && duty > 0 || behind && duty < 0):
					t.Fatalf("seed %d, %v: tread %d has %v at an edge: %v", seed, d.f.Now, i, duty, d.sense.Cliffs)
				case i < 2 && duty != 0 && !ordered:
					t.Fatalf("seed %d, %v: tread %d has %v without an order since it had to stop", seed, d.f.Now, i, duty)
				case d.f.Now-orphan[i] > 600*ms:
					t.Fatalf("seed %d, %v: motor %d has no owner and has had power for %v", seed, d.f.Now, i, d.f.Now-orphan[i])
				case i < 2 && math.Abs(d.rate[i])*0.0145 > 0.22:
					t.Fatalf("seed %d, %v: tread %d at %v m/s (VEC-MOT-04)", seed, d.f.Now, i, d.rate[i]*0.0145)
				}
			}
		}
	}
}

// TestStepAllocatesNothing covers every kind of order, refusals too, and the whole way of a frame.
func TestStepAllocatesNothing(t *testing.T) {
	d := newDesk(t)
	all := d.set("robot.body")
	for range 10 {
		d.step()
	}
	n := 0
	drive := wheelsAt(0, 0.1, 0.1, 0)
	got := testing.AllocsPerRun(3000, func() {
		n++
		o := drive
		o.Kind, o.Owner, o.Set, o.Priority = control.Kind(n%int(control.Stop+2)), claim.Owner(2+n%3), all, claim.Priority(n%60)
		o.TTL, o.Lease, o.A, o.For = time.Duration(n%90)*ms, uint64(n%200), 0.1, time.Second
		if n%2 > 0 {
			o.Goals[0].Slot = -1
		}
		d.c.Post(o)
		d.silent = n%300 > 280
		d.f.Halted = n%400 > 380
		d.f.Now += period
		d.sense.Fresh = !d.silent
		if !d.silent {
			d.sense.At = d.f.Now
		}
		d.sense.Inertial = body.Inertial{Accel: [3]float64{0, float64(n % 7), float64(n % 300 / 20)}, Gyro: [3]float64{0, 0, float64(n % 3)},
			At: d.sense.At}
		d.pass()
		for ok := true; ok; {
			_, ok = d.c.Result()
		}
		for ok := true; ok; {
			_, ok = d.c.Event()
		}
	})
	if got != 0 {
		t.Errorf("a step allocates %v times, want 0", got)
	}
}

// TestInTheLoop: the control loop is a task of the real-time loop.
func TestInTheLoop(t *testing.T) {
	c, _ := newControl(t, Default(), nil)
	w := &loopBody{}
	l, err := rt.New(rt.Config{}, w, c.Task())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	if err := l.Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	var r control.Report
	if !c.Report(&r) || r.At == 0 || !w.drove {
		t.Errorf("report of %v, motors moved: %v; want calibration under way", r.At, w.drove)
	}
}

// loopBody is a clock and a body that runs 200 frames.
type loopBody struct {
	now   time.Duration
	seq   uint32
	drove bool
	end   func()
}

func (w *loopBody) Now() time.Duration         { return w.now }
func (w *loopBody) SleepUntil(t time.Duration) { w.now = max(w.now, t) }
func (w *loopBody) Describe() body.Description {
	return body.Description{Species: "vic", Timing: body.Timing{Rhythm: period}}
}
func (w *loopBody) Read(s *body.Sense, _ time.Duration) error {
	w.now += period
	w.seq++
	if w.seq == 200 {
		w.end()
	}
	m := vectordriver.Sense{At: w.now, Seq: w.seq, Epoch: 1, Fresh: true, BatteryVolts: 3.9, Cliffs: [4]float64{0.6, 0.6, 0.6, 0.6}}
	m.Pack(s)
	return nil
}
func (w *loopBody) Write(a *body.Act) error {
	var act vectordriver.Act
	act.Unpack(a)
	w.drove = w.drove || act.Motors[spine.Head] < 0
	return nil
}
func (w *loopBody) Halt() error     { return nil }
func (w *loopBody) Shutdown() error { return nil }
func (w *loopBody) Close() error    { return nil }

// TestTreeOfAnotherBody: a Vector's plant binds to a Vector's tree alone.
func TestTreeOfAnotherBody(t *testing.T) {
	m, err := Model(Default())
	if err != nil {
		t.Fatal(err)
	}
	other, err := robot.Build("other", robot.Frame{}, []robot.Part{{Path: "body.led", Is: []string{"Led"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Make(state.New(other), nil, nil); err == nil {
		t.Error("the tree of another body was taken")
	}
}

func BenchmarkStep(b *testing.B) {
	d := newDesk(b)
	d.run(time.Second)
	b.ReportAllocs()
	for b.Loop() {
		d.step()
	}
}
