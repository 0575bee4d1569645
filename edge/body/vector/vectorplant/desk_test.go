package vectorplant

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

const (
	ms     = time.Millisecond
	period = 5120 * time.Microsecond // VEC-MOT-05
	degree = math.Pi / 180

	alice claim.Owner = 2
	bob   claim.Owner = 3
	carol claim.Owner = 4
)

// tree is a Vector's, made once.
var tree = sync.OnceValues(vectordriver.Tree)

// slot returns the ID of a slot of a Vector's tree.
func slot(name string) int {
	vector, err := tree()
	if err != nil {
		panic(err)
	}
	f := robot.Finder{Tree: vector}
	id := f.Slot(name)
	if f.Err != nil {
		panic(f.Err)
	}
	return id
}

// set returns an order to bring slots to values, in the order of their names.
func set(o claim.Owner, values map[string]float64) control.Order {
	out := control.Order{Kind: control.Set, Owner: o}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out.Goals[out.N] = control.Goal{Slot: slot(name), Value: values[name]}
		out.N++
	}
	return out
}

// wheelsAt returns an order to run the treads at m/s for a time.
func wheelsAt(o claim.Owner, left, right float64, long time.Duration) control.Order {
	out := set(o, map[string]float64{"wheelL.speed": left / 0.0145, "wheelR.speed": right / 0.0145})
	out.For = long
	return out
}

// headTo returns an order to bring the head to a pitch in rad; nose down is positive.
func headTo(o claim.Owner, pitch float64) control.Order {
	return set(o, map[string]float64{"robot.pitch": pitch})
}

// quick returns o at a speed, slow o within a time.
func quick(o control.Order, speed float64) control.Order       { o.Speed = speed; return o }
func slow(o control.Order, within time.Duration) control.Order { o.Within = within; return o }

// liftTo returns an order to bring the lift to a height in m.
func liftTo(o claim.Owner, height float64) control.Order {
	return set(o, map[string]float64{"arm.position": height})
}

// lightsTo returns an order to light all four lights.
func lightsTo(o claim.Owner, all [4]vectordriver.Light) control.Order {
	values := map[string]float64{}
	for i, l := range all {
		for c, v := range map[string]uint8{"r": l.R, "g": l.G, "b": l.B} {
			values[fmt.Sprintf("led[%d].%s", i, c)] = float64(v) / 255
		}
	}
	return set(o, values)
}

// newControl returns the control loop of a Vector and its plant.
func newControl(t testing.TB, cfg Config, tape *rt.Tape) (*control.Control, *Plant) {
	t.Helper()
	m, err := Model(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var p *Plant
	build := m.Make
	m.Make = func(board *state.Board, emit func(control.Event), held func(int) bool) (control.Plant, error) {
		made, err := build(board, emit, held)
		p, _ = made.(*Plant)
		return made, err
	}
	c, err := control.New(m, tape)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// felt is how often each event came since the control loop was made, by name and texts.
type felt map[string]int64

// take takes the events that wait.
func (f felt) take(c *control.Control) {
	for {
		e, ok := c.Event()
		if !ok {
			return
		}
		f[strings.TrimSpace(e.Name+" "+strings.Join(e.Texts[:], " "))] += max(e.Numbers[0], 1)
	}
}

// desk is a control loop with a body of four motors at its end, in simulated time.
type desk struct {
	t     testing.TB
	c     *control.Control
	p     *Plant
	f     rt.Frame
	sense vectordriver.Sense
	in    body.Sense
	act   vectordriver.Act
	out   body.Act
	rep   control.Report
	live  *state.Live
	felt  felt

	angle, rate, zero [4]float64
	up                [3]float64 // m/s2 that the body feels, in its own frame; all 0: it has no inertial sensors
	stops             [4][2]float64
	silent            bool
	results           []control.Result
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, felt: felt{}}
	d.c, d.p = newControl(t, Default(), nil)
	d.live = state.NewLive(d.c.Board(), nil)
	d.f = rt.Frame{Now: time.Hour, Run: 1}
	free := [2]float64{math.Inf(-1), math.Inf(1)}
	c := Default().Motion.Joints
	d.stops = [4][2]float64{free, free, c[jointLift].Stops, c[jointHead].Stops}
	d.angle = [4]float64{spine.Lift: 0.2, spine.Head: 0.1}
	d.zero = d.angle
	d.sense = vectordriver.Sense{Epoch: 1, BatteryVolts: 3.9, Temperature: 25, Cliffs: [4]float64{0.6, 0.6, 0.6, 0.6}}
	return d
}

// step lets a period pass: the body moves as it was told, and says how.
func (d *desk) step() {
	d.f.Now += period
	d.f.Step++
	d.f.DT = period
	full := [4]float64{0.3 / 0.0145, 0.3 / 0.0145, 12, 12}
	for i := range d.angle {
		d.rate[i] += (d.act.Motors[i]*full[i] - d.rate[i]) * period.Seconds() / 0.04
		if math.Abs(d.rate[i]) < 1e-3 {
			d.rate[i] = 0
		}
		d.angle[i] += d.rate[i] * period.Seconds()
		if d.angle[i] < d.stops[i][0] || d.angle[i] > d.stops[i][1] {
			d.angle[i], d.rate[i] = min(max(d.angle[i], d.stops[i][0]), d.stops[i][1]), 0
		}
	}
	counts := [4]float64{150, 150, 400, 500}
	d.sense.Fresh = !d.silent
	if !d.silent {
		d.sense.At, d.f.Taken = d.f.Now, d.f.Now
		d.sense.Seq++
		for i := range d.angle {
			d.sense.Motors[i].Position = math.Floor((d.angle[i]-d.zero[i])*counts[i]) / counts[i]
			d.sense.Motors[i].Speed = d.rate[i]
		}
		if d.up != [3]float64{} {
			sin, cos := math.Sincos(d.angle[spine.Head])
			d.sense.Inertial = body.Inertial{Accel: [3]float64{cos*d.up[0] + sin*d.up[2], d.up[1], cos*d.up[2] - sin*d.up[0]}, At: d.f.Now}
		}
	}
	d.pass()
	d.felt.take(d.c)
	for {
		r, ok := d.c.Result()
		if !ok {
			return
		}
		d.results = append(d.results, r)
	}
}

// pass steps the control loop.
func (d *desk) pass() {
	d.sense.Pack(&d.in)
	d.out = body.Act{}
	d.f.Sense, d.f.Act = &d.in, &d.out
	d.c.Step(&d.f)
	d.act.Unpack(&d.out)
	d.c.Report(&d.rep)
}

func (d *desk) run(t time.Duration) {
	for range t / period {
		d.step()
	}
}

// calibrated steps until the control loop has homed the joints.
func (d *desk) calibrated() *desk {
	d.t.Helper()
	d.until("calibration", func() bool { return d.rep.Parts[head].Known && d.rep.Parts[lift].Known && d.owned(control.Self) == 0 })
	return d
}

// owned returns how many actuators an owner holds.
func (d *desk) owned(o claim.Owner) (n int) {
	for _, by := range d.rep.Owners {
		if by.Owner == o {
			n++
		}
	}
	return n
}

func (d *desk) until(what string, ok func() bool) {
	d.t.Helper()
	for range 20 * time.Second / period {
		if d.step(); ok() {
			return
		}
	}
	d.t.Fatalf("%s: not within 20 s; %+v", what, d.p.now)
}

// ask posts an order and returns its answer.
func (d *desk) ask(o control.Order) control.Result {
	d.t.Helper()
	o.Request = uint32(rand.N(1 << 30))
	if !d.c.Post(o) {
		d.t.Fatal("the mailbox is full")
	}
	d.step()
	for i, r := range d.results {
		if r.Owner == o.Owner && r.Request == o.Request && r.Code != control.Ended {
			d.results = slices.Delete(d.results, i, i+1)
			return r
		}
	}
	d.t.Fatalf("no answer to %+v", o)
	return control.Result{}
}

// ended steps until a motion of owner has ended, and returns how.
func (d *desk) ended(owner claim.Owner) (end control.Result) {
	d.t.Helper()
	d.until(fmt.Sprintf("end of a motion of %d", owner), func() bool {
		i := slices.IndexFunc(d.results, func(r control.Result) bool { return r.Owner == owner && r.Code == control.Ended })
		if i < 0 {
			return false
		}
		end = d.results[i]
		d.results = slices.Delete(d.results, i, i+1)
		return true
	})
	return end
}

func (d *desk) set(names ...string) claim.Set {
	d.t.Helper()
	s, err := d.c.Actuators(names...)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// claims takes the named parts for a person, and fails if that is refused.
func (d *desk) claims(o claim.Owner, names ...string) uint64 {
	d.t.Helper()
	r := d.ask(control.Order{Kind: control.Claim, Owner: o, Set: d.set(names...), Priority: claim.Person})
	if r.Code != control.OK || r.Lease == 0 {
		d.t.Fatalf("claim of %v: %+v", names, r)
	}
	return r.Lease
}

func (d *desk) duties() [4]float64 { return d.act.Motors }

func (d *desk) value(name string) (float64, bool) {
	r, err := d.live.Read(name)
	return r.Value.Number, err == nil
}
