package vectorsim

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/sense"
	"kennel/edge/sim/plane"
)

// in is a bench in a built-in world.
func in(t *testing.T, name string, cfg Config) *bench {
	t.Helper()
	m, err := plane.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.World = m
	return newBench(t, cfg)
}

func (b *bench) around() plane.State {
	b.t.Helper()
	s, ok := b.World()
	if !ok {
		b.t.Fatal("the body is nowhere")
	}
	return s
}

// treads is a command of both treads, 1 is full power.
func treads(left, right float64) spine.HeadData {
	return spine.HeadData{Motors: [4]int16{spine.LeftTread: int16(left * math.MaxInt16), spine.RightTread: int16(right * math.MaxInt16)}}
}

// TestTable: the treads take the body to the edge, where its front sensors see none before it falls; in a hand no sensor sees a floor.
func TestTable(t *testing.T) {
	b := in(t, "table", Config{})
	start := b.around()
	if m := b.drive(10, spine.HeadData{}); m.Cliffs[0] < 500 || m.Cliffs[3] < 500 {
		t.Fatalf("on the table: %v", m.Cliffs)
	}
	m := b.drive(1, treads(-0.3, -0.3))
	for i := 0; i < 10*second && m.Cliffs[spine.BackLeft] != 0; i++ {
		m = b.drive(1, treads(-0.3, -0.3))
	}
	s := b.around()
	if m.Cliffs[spine.BackRight] != 0 || m.Cliffs[spine.FrontLeft] < 500 || s.Posture != plane.OnTreads {
		t.Fatalf("backwards to the edge: %v, %+v", m.Cliffs, s)
	}
	if way := start.Pose[0] - s.Pose[0]; math.Abs(way-0.365) > 0.003 {
		t.Errorf("the edge is %v m behind, want 0.365 to the sensors", way)
	}
	if err := b.InWorld(func(w *plane.World) error { return w.PickUp() }); err != nil {
		t.Fatal(err)
	}
	if m := b.drive(1, spine.HeadData{}); m.Cliffs != [4]uint16{} {
		t.Errorf("in a hand: %v", m.Cliffs)
	}
	if err := b.InWorld(func(w *plane.World) error { return w.PutDown(plane.Pose{-0.37, 0, 0}) }); err != nil {
		t.Fatal(err)
	}
	for range 3 * second {
		b.drive(1, treads(-0.3, -0.3))
	}
	if s := b.around(); s.Falls != 1 || !s.Below {
		t.Errorf("over the edge: %+v", s)
	}
}

// TestRoom: distance ahead shrinks as the body goes; at the wall its treads stall, and their encoders say so.
func TestRoom(t *testing.T) {
	b := in(t, "room", Config{})
	if m := b.drive(2*proxEvery, spine.HeadData{}); m.ProxRange != openRange && (m.ProxRange < openRange-5 || m.ProxRange > openRange+5) {
		t.Fatalf("a wall out of reach is %d mm away", m.ProxRange)
	}
	b.drive(4*second, treads(0.8, 0.8))
	m := b.drive(proxEvery, spine.HeadData{})
	s := b.around()
	if d := float64(m.ProxRange) / 1000; math.Abs(d-s.Range) > 0.02 || s.Range < 0.3 {
		t.Errorf("the sensor says %v m, the wall is at %v", d, s.Range)
	}
	b.SetProx(100)
	if m := b.drive(2*proxEvery, spine.HeadData{}); m.ProxRange > 105 {
		t.Errorf("a hand at 100 mm is %d away", m.ProxRange)
	}
	free := b.drive(2*second, treads(0.5, 0.5)).Motors[spine.LeftTread].Delta
	for range 10 * second {
		b.drive(1, treads(0.5, 0.5))
	}
	held := b.drive(1, treads(0.5, 0.5)).Motors[spine.LeftTread].Delta
	if s := b.around(); !s.Blocked || s.Pose[0]+0.045 > 1.5 || s.Pose[0]+0.045 < 1.499 {
		t.Errorf("at the wall: %+v", s)
	}
	if free < 5 || held > free/3 {
		t.Errorf("%d counts a period at the wall, %d before it; want stalled treads", held, free)
	}
}

// TestDocking: the body leaves the charger and backs in again, which the pads feel; crooked it does not get there (VEC-HW-04).
func TestDocking(t *testing.T) {
	b := in(t, "room", Config{OnCharger: true, Volts: 3.8})
	if m := b.drive(2, spine.HeadData{}); m.ChargerRaw < 100 || m.Power&spine.PadsPowered == 0 {
		t.Fatalf("on the charger: raw %d, flags %v", m.ChargerRaw, m.Power)
	}
	if m := b.drive(second, treads(0.5, 0.5)); m.ChargerRaw != 0 || m.Power&spine.PadsPowered != 0 {
		t.Fatalf("off the charger: raw %d, flags %v, %+v", m.ChargerRaw, m.Power, b.around())
	}
	if m := b.drive(2*second, treads(-0.3, -0.3)); m.ChargerRaw < 100 || !b.State().OnCharger {
		t.Fatalf("straight back: raw %d, %+v", m.ChargerRaw, b.around())
	}
	b.drive(second, treads(0.5, 0.5))
	b.drive(second/4, treads(0.1, -0.1))
	if m := b.drive(3*second, treads(-0.3, -0.3)); m.ChargerRaw != 0 {
		t.Errorf("crooked: raw %d, %+v", m.ChargerRaw, b.around())
	}
	b.SetCharger(true)
	if s := b.around(); !s.Contact {
		t.Errorf("carried there: %+v", s)
	}
	b.SetCharger(false)
	b.drive(1, spine.HeadData{})
	if s := b.around(); s.Contact || b.State().OnCharger {
		t.Errorf("carried away: %+v", s)
	}
}

// TestHabitat: VEC-HW-24: on its dark floor the body drives over the white line before it gets to
// the rim: its front sensors see it begin and end, and none takes it, or the floor behind it, for a
// cliff; not even after a rest on the line.
func TestHabitat(t *testing.T) {
	b := in(t, "habitat", Config{})
	eyes := sense.NewCliffs(sense.Default().Cliff, 4)
	var seen sense.CliffEvents
	look := func(m spine.BodyData) {
		var r [sense.MaxCliffs]float64
		for i, c := range m.Cliffs {
			r[i] = float64(c) / vectordriver.DefaultCalibration().CliffFullScale
		}
		ev := eyes.Step(vectordriver.Period, &r)
		seen.Lost |= ev.Lost
		seen.Bright |= ev.Bright
		seen.Dark |= ev.Dark
		seen.LineEnd |= ev.LineEnd
	}
	dark := b.drive(1, spine.HeadData{})
	if c := dark.Cliffs[spine.FrontLeft]; c < 280 || c > 320 {
		t.Errorf("the floor reads %v, want half of an ordinary one", dark.Cliffs)
	}
	white := dark
	for i := 0; i < 5*second && !b.around().Blocked; i++ {
		m := b.drive(1, treads(0.2, 0.2))
		if m.Cliffs[spine.FrontLeft] > white.Cliffs[spine.FrontLeft] {
			white = m
		}
		look(m)
	}
	const front, back = sense.Set(1<<spine.FrontLeft | 1<<spine.FrontRight), sense.Set(1<<spine.BackLeft | 1<<spine.BackRight)
	if c := white.Cliffs[spine.FrontLeft]; c < 640 || seen.Bright != front || seen.LineEnd|seen.Dark != front || seen.Lost != 0 {
		t.Errorf("over the line, which reads %d: %+v", c, seen)
	}
	if s := b.around(); s.Range != 0 || s.Pose[0]+0.045 < 0.15 { // the rim is too near to be measured
		t.Errorf("at the rim: %+v", s)
	}
	seen = sense.CliffEvents{}
	for i := 0; i < second && b.drive(1, treads(-0.2, -0.2)).Cliffs[spine.FrontLeft] < 640; i++ {
	}
	for range 5 * second {
		look(b.drive(1, spine.HeadData{})) // it takes white for the floor now
	}
	for range second / 2 {
		look(b.drive(1, treads(-0.2, -0.2)))
	}
	if seen.Lost != 0 || seen.Dark&front == 0 || seen.Bright&back != 0 {
		t.Errorf("from a rest on the line: %+v", seen)
	}
}

// TestTouchShifts: VEC-HW-16: charger, hand and weather change what the touch wire reads, and only a hand that strokes is a touch.
func TestTouchShifts(t *testing.T) {
	b := in(t, "room", Config{DischargePerMinute: -1})
	back := sense.NewTouch(sense.Default().Touch)
	var happened sense.TouchEvents
	at := time.Duration(0)
	read := func(periods int) (mean float64) {
		for range periods {
			m := b.drive(1, spine.HeadData{})
			at += vectordriver.Period
			mean += float64(m.Touch) / float64(periods)
			happened |= back.Step(vectordriver.Period, sense.TouchInput{
				Value: float64(m.Touch) / vectordriver.DefaultCalibration().TouchFullScale, At: at, OnCharger: m.Power&spine.PadsPowered != 0,
			})
		}
		return mean
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 3 {
			t.Errorf("%s it reads %.1f, want %v", what, got, want)
		}
	}
	near("on the floor", read(2*second), touchCounts)
	b.SetCharger(true)
	near("on the charger", read(2*second), touchCounts+touchOnCharger)
	b.SetCharger(false)
	if err := b.InWorld(func(w *plane.World) error { return w.PickUp() }); err != nil {
		t.Fatal(err)
	}
	near("in a hand", read(2*second), touchCounts+touchInHand)
	if happened&(sense.TouchBegan|sense.TouchEnded) != 0 || happened&sense.BaselineChanged == 0 {
		t.Errorf("without a touch: events %b", happened)
	}
	b.SetTouch(touchCounts + 1000)
	near("stroked in a hand", read(2*second), touchCounts+1000+touchInHand)
	if happened&sense.TouchBegan == 0 {
		t.Error("a touch is not felt")
	}
	for quarter, want := range []int{0, touchHumid, 0, -touchHumid} {
		b.world.weather = time.Duration(quarter) * touchWeather / 4
		if got := b.world.touchShift() - touchInHand; got != want {
			t.Errorf("quarter %d of the weather shifts it by %d, want %d", quarter, got, want)
		}
	}
	for _, saturated := range []uint16{0, touchSaturated} {
		if b.SetTouch(saturated); b.drive(1, spine.HeadData{}).Touch != saturated {
			t.Errorf("saturated at %d it is not steady", saturated)
		}
	}
}

// TestWorldAgain: the same seed and the same head make the same world and the same frames; a body that is nowhere says so.
func TestWorldAgain(t *testing.T) {
	m, err := plane.Builtin("room")
	if err != nil {
		t.Fatal(err)
	}
	m.Slip = 0.1
	a, b := newBench(t, Config{Seed: 5, World: m}), newBench(t, Config{Seed: 5, World: m})
	for i := range 600 {
		cmd := treads(math.Sin(float64(i)/50), math.Cos(float64(i)/70))
		if x, y := a.drive(1, cmd), b.drive(1, cmd); x != y {
			t.Fatalf("period %d: %+v and %+v", i, x, y)
		}
	}
	if x, y := a.around(), b.around(); !reflect.DeepEqual(x, y) {
		t.Errorf("%+v and %+v", x, y)
	}
	if _, ok := newBench(t, Config{}).World(); ok {
		t.Error("a body without a world is in one")
	}
	if err := New(Config{}).InWorld(func(*plane.World) error { return nil }); err == nil {
		t.Error("a hand in no world")
	}
	bad := Config{World: &plane.Map{Cliffs: []plane.Cliff{{Corners: []plane.Vec{{-1, -1}, {1, -1}, {0, 1}}}}}}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "over a cliff") {
		t.Error(err)
	}
}

// TestInertial: whatever the head does, the senses get back what the body feels (VEC-IMU-02).
func TestInertial(t *testing.T) {
	b := in(t, "empty", Config{})
	cmd := treads(0.3, 0.9)
	for i := range 300 {
		cmd.Motors[spine.Head] = int16(8000 * math.Sin(float64(i)/20))
		if i == 150 {
			if err := b.InWorld(func(w *plane.World) error { return w.Tip(plane.OnLeftSide) }); err != nil {
				t.Fatal(err)
			}
		}
		b.drive(1, cmd)
		accel, gyro := b.Inertial()
		a, w := sense.ToBody(accel, gyro, b.world.angle[spine.Head], b.world.rate[spine.Head], sense.Default().Motion.Neck)
		want := b.world.ground.Inertia()
		for j := range 3 {
			if math.Abs(a[j]-want.Accel[j]) > 1e-9 || math.Abs(w[j]-want.Gyro[j]) > 1e-9 {
				t.Fatalf("period %d: %v %v, want %+v", i, a, w, want)
			}
		}
	}
	if b.State().Angle[spine.Head] == 0 {
		t.Error("the head did not move")
	}
}

// TestLiftOfTheBody: when the arm of the body goes up it carries a cube before it, and its encoder counts as it always does; a lift that goes down on a cube is stopped by it.
func TestLiftOfTheBody(t *testing.T) {
	before := func() *bench {
		return newBench(t, Config{World: &plane.Map{Objects: []plane.Object{{Shape: "box", At: plane.Pose{0.075, 0, 0}, Size: plane.Vec{0.044, 0.044}, Marker: "cube"}}}})
	}
	arm := func(share float64) spine.HeadData {
		return spine.HeadData{Motors: [4]int16{spine.Lift: int16(share * math.MaxInt16)}}
	}
	b := before()
	b.drive(second, arm(-0.2))
	b.drive(second/4, treads(0.2, 0.2)) // it pushes the cube a little
	low := b.drive(1, spine.HeadData{}).Motors[spine.Lift].Position
	high := b.drive(second, arm(0.2)).Motors[spine.Lift].Position
	if raised := b.around().Raised[0]; math.Abs(raised-0.056) > 0.002 || high <= low {
		t.Errorf("raised by %v, the arm counts %d to %d", raised, low, high)
	}
	at := b.around()
	b.drive(second, treads(-0.2, -0.2))
	if s := b.around(); math.Abs((at.Objects[0][0]-s.Objects[0][0])-(at.Pose[0]-s.Pose[0])) > 1e-6 || at.Pose[0]-s.Pose[0] < 0.03 {
		t.Errorf("driven from %v to %v, with the cube at %v", at.Pose, s.Pose, s.Objects)
	}
	b.drive(second, arm(-0.2))
	if s := b.around(); s.Raised[0] != 0 {
		t.Errorf("put down: raised by %v", s.Raised)
	}

	b = before()
	b.drive(second, arm(0.2))
	b.drive(second/4, treads(0.2, 0.2))
	free := b.State().Angle[spine.Lift]
	b.drive(2*second, arm(-0.2))
	if got := 0.045 + 0.066*math.Sin(b.State().Angle[spine.Lift]); got < 0.044 || got > 0.05 || free < 0.5 {
		t.Errorf("on the cube the lift is at %v m, it came from %v rad", got, free)
	}
}
