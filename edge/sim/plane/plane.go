package plane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Robot is the shape of a robot and where its sensors sit; its origin is the middle between its treads.
type Robot struct {
	Track               float64 // m between the middles of the treads
	Nose, Tail          float64 // m from the origin to its ends
	Width               float64 // m, at most Nose+Tail; its ends are half circles
	Range               Mount   // the range finder
	RangeMin, RangeMax  float64 // m; beyond them it sees nothing
	Cliffs              []Vec   // where the cliff sensors look down
	SlipShare           float64 // 0 to 1: of the way that a wall takes from a tread, what the tread slips through; the rest is a stalled motor
	InertialNoise       float64 // m/s2, standard deviation of an acceleration
	GyroNoise, HandRate float64 // rad/s, standard deviations of the gyro's noise and of a hand's tremor
	HandAccel           float64 // m/s2, standard deviation of what that tremor shakes
}

// Mount is the pose of a sensor on the body. A positive pitch looks down.
type Mount struct{ X, Y, Z, Yaw, Pitch float64 }

// Posture is how the robot is.
type Posture string

// The postures.
const (
	OnTreads    Posture = "on treads"
	InHand      Posture = "in a hand"
	OnLeftSide  Posture = "on its left side"
	OnRightSide Posture = "on its right side"
	OnBack      Posture = "on its back" // upside down
	OnFace      Posture = "on its face"
	Falling     Posture = "falling"
)

// State is the world as an onlooker sees it.
type State struct {
	Time    time.Duration `json:"time_ns"`
	Pose    Pose          `json:"pose"`
	Posture Posture       `json:"posture"`
	Height  float64       `json:"height"` // m above its floor; below a cliff negative
	Pitch   float64       `json:"pitch"`
	Roll    float64       `json:"roll"`
	Blocked bool          `json:"blocked"`  // in the last step something stood in its way
	Contact bool          `json:"contact"`  // the charger's contacts are closed
	Below   bool          `json:"below"`    // it fell and lies where no wall and no thing of this map is
	Falls   int           `json:"falls"`    // since the beginning
	Range   float64       `json:"range"`    // m; 0: nothing in sight
	NoFloor []bool        `json:"no_floor"` // a cliff sensor sees none
	Objects []Pose        `json:"objects"`  // in the order of the map
	Gone    []bool        `json:"gone"`     // they fell, or are in a hand
	Raised  []float64     `json:"raised"`   // m, by how much a lift raises each
}

// World is a map with what became of it, and a robot. It serves one goroutine.
type World struct {
	m     Map
	robot Robot
	rng   *rand.Rand

	now     time.Duration
	pose    Pose
	posture Posture
	blocked bool
	below   bool
	falls   int

	fixed   []shape // walls, the charger, things that cannot be pushed
	objects []Pose
	next    []Pose // where they would be
	outline []shape
	gone    []bool
	blocks  []block
	dice    *rand.Rand // of the cubes
	fork    fork

	feel feel
	hand hand
}

// Own defaults of the charger: a back wall and two rails that leave a robot a little room at each side. Contacts close where both springs
// reach, which only a straight back does (VEC-HW-04).
const (
	railLength    = 0.06
	railRoom      = 0.005
	railHeight    = 0.02
	backHeight    = 0.05
	contactGap    = 0.003 // from the tail to the back wall
	contactAside  = 0.005
	contactTurned = 0.06 // rad
)

// Frame is the shape of a charger, in metres: a back wall of two halves, with a rail at each end.
type Frame struct{ Half, Back, Rail, RailHeight float64 }

// ChargerShape returns the charger for a robot of that width.
func ChargerShape(width float64) Frame {
	return Frame{Half: width/2 + railRoom, Back: backHeight, Rail: railLength, RailHeight: railHeight}
}

// Limits of a step: it is cut into ways of at most fineness, which no wall is thin enough to slip through between.
const (
	fineness = 1e-3
	maxStep  = 100 * time.Millisecond
	maxSpeed = 10.0 // m/s of a tread
	halvings = 7
)

// New puts a robot into a world.
func New(m *Map, r Robot, seed uint64) (*World, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	w := &World{
		m: *m, robot: r, rng: rand.New(rand.NewPCG(seed, 0x776f726c64)), pose: m.Start, posture: OnTreads,
		objects: make([]Pose, len(m.Objects)), next: make([]Pose, len(m.Objects)),
		outline: make([]shape, len(m.Objects)), gone: make([]bool, len(m.Objects)), blocks: blocksOf(m), dice: blockNoise(seed), fork: fork{held: -1, pulled: -1},
	}
	for _, x := range m.Walls {
		w.fixed = append(w.fixed, line(x.From, x.To, 0, x.Tall()))
	}
	for i, o := range m.Objects {
		w.objects[i], w.outline[i] = o.At, o.shape(o.At)
		if o.Fixed {
			w.fixed = append(w.fixed, o.shape(o.At))
		}
	}
	if c := m.Charger; c != nil {
		y := r.Width/2 + railRoom
		w.fixed = append(w.fixed,
			line(c.At.At(Vec{0, -y}), c.At.At(Vec{0, y}), 0, backHeight),
			line(c.At.At(Vec{0, -y}), c.At.At(Vec{railLength, -y}), 0, railHeight),
			line(c.At.At(Vec{0, y}), c.At.At(Vec{railLength, y}), 0, railHeight))
	}
	for i, o := range m.Objects {
		if o.Fixed {
			continue
		}
		if !w.clear(&w.outline[i], i) {
			return nil, fmt.Errorf("world: objects[%d] overlaps another object, want a free place", i)
		}
	}
	if !w.free(w.pose) {
		return nil, fmt.Errorf("world: no room for the robot at start %v", m.Start)
	}
	if w.Cliff(w.pose.place()) {
		return nil, fmt.Errorf("world: start %v is over a cliff, want floor", m.Start)
	}
	if m.Charger != nil && !w.free(w.dock(0)) {
		return nil, fmt.Errorf("world: no room for the robot on the charger at %v", m.Charger.At)
	}
	w.feel.still()
	return w, nil
}

// Validate names the first number that cannot be.
func (r *Robot) Validate() error {
	var c checker
	const big = 10
	c.number("robot's track", r.Track, leastSize, big)
	c.number("robot's width", r.Width, 4*fineness, big)
	c.number("robot's nose", r.Nose, r.Width/2, big)
	c.number("robot's tail", r.Tail, r.Width/2, big)
	c.number("robot's slip share", r.SlipShare, 0, 1)
	c.number("range finder's least", r.RangeMin, 0, r.RangeMax)
	c.number("range finder's most", r.RangeMax, 0, farthest)
	c.number("range finder's height", r.Range.Z, 0, big)
	c.number("range finder's x", r.Range.X, -big, big)
	c.number("range finder's y", r.Range.Y, -big, big)
	c.number("range finder's yaw", r.Range.Yaw, -math.Pi, math.Pi)
	c.number("range finder's pitch", r.Range.Pitch, -1.5, 1.5)
	c.number("noise of acceleration", r.InertialNoise, 0, 10)
	c.number("noise of the gyro", r.GyroNoise, 0, 10)
	c.number("a hand's tremor", r.HandRate, 0, 10)
	c.number("what a hand's tremor shakes", r.HandAccel, 0, 10)
	for i, v := range r.Cliffs {
		c.point(fmt.Sprintf("cliff sensor %d", i), v)
	}
	return c.err
}

func or(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

func (o *Object) shape(at Pose) shape {
	if o.Shape == "disc" {
		return point(at.place(), o.Radius, o.Tall())
	}
	return box(at, o.Size, o.Tall())
}

// body is the robot's outline at p.
func (w *World) body(p Pose) shape {
	r := w.robot.Width / 2
	return line(p.At(Vec{w.robot.Nose - r, 0}), p.At(Vec{r - w.robot.Tail, 0}), r, 1)
}

// clear reports whether s touches nothing but the robot; not is an object that does not count.
func (w *World) clear(s *shape, not int) bool {
	for i := range w.fixed {
		if meet(s, &w.fixed[i]) {
			return false
		}
	}
	for i := range w.m.Objects {
		if i == not || w.off(i) || w.m.Objects[i].Fixed {
			continue
		}
		if meet(s, &w.outline[i]) {
			return false
		}
	}
	return true
}

// free reports whether the robot has room at p without pushing.
func (w *World) free(p Pose) bool {
	s := w.body(p)
	return w.clear(&s, -1)
}

// enter puts the robot at p, if nothing is there or it can be pushed away.
func (w *World) enter(p Pose) bool {
	s := w.body(p)
	for i := range w.fixed {
		if meet(&s, &w.fixed[i]) {
			return false
		}
	}
	if !w.bears(p) {
		return false
	}
	copy(w.next, w.objects)
	for i := range w.m.Objects {
		o := &w.m.Objects[i]
		if w.off(i) || o.Fixed || !meet(&s, &w.outline[i]) {
			continue
		}
		at := w.objects[i]
		for round := 0; ; round++ {
			is := o.shape(at)
			d, way := gap(&s, &is)
			if d >= 0 {
				break
			}
			if round == 4 || way == (Vec{}) {
				return false
			}
			at[0] += float64(way[0] * (1e-7 - d))
			at[1] += float64(way[1] * (1e-7 - d))
		}
		is := o.shape(at)
		if !w.clear(&is, i) {
			return false
		}
		for j := range i { // two things pushed at once, towards each other
			if w.next[j] == w.objects[j] {
				continue
			}
			if other := w.m.Objects[j].shape(w.next[j]); meet(&other, &is) {
				return false
			}
		}
		w.next[i] = at
	}
	w.pose = p
	for i, at := range w.next {
		if at != w.objects[i] {
			w.objects[i], w.outline[i] = at, w.m.Objects[i].shape(at)
			w.gone[i] = w.Cliff(at.place())
		}
	}
	w.follow()
	return true
}

// Cliff reports whether there is no floor at v.
func (w *World) Cliff(v Vec) bool { return w.over(v) >= 0 }

// over is the index of the cliff at v, or -1.
func (w *World) over(v Vec) int {
	for i := range w.m.Cliffs {
		if inside(w.m.Cliffs[i].Corners, v) {
			return i
		}
	}
	return -1
}

// Step lets dt pass, at most 0.1 s, in which the motors turn the treads at so many m/s. It returns how far each tread really turned, in
// metres: where the robot is held, it slips or stalls.
func (w *World) Step(dt time.Duration, left, right float64) (l, r float64) {
	dt = min(max(dt, 0), maxStep)
	s := dt.Seconds()
	l, r = float64(speed(left)*s), float64(speed(right)*s)
	w.now += dt
	w.blocked = false
	before := w.pose
	if w.posture == OnTreads && !w.below && s > 0 {
		l, r = w.drive(l, r)
		w.slide(s)
		w.shove(s)
		w.lookDown()
	}
	w.carry(s)
	w.sense(s, before)
	w.pull(s)
	w.grip(s)
	w.feelBlocks(s)
	return l, r
}

func speed(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -maxSpeed), maxSpeed)
}

// drive moves the robot by what its treads turn, and returns what they did.
func (w *World) drive(l, r float64) (float64, float64) {
	reach := max(w.robot.Nose, w.robot.Tail)
	n := int(math.Ceil((math.Abs(l+r)/2 + float64(math.Abs(r-l)/w.robot.Track*reach)) / fineness))
	if n == 0 {
		return 0, 0
	}
	l, r = l/float64(n), r/float64(n)
	var left, right float64
	for i := range n {
		fl, fr := l, r // what the floor gets
		if w.m.Slip > 0 {
			fl -= float64(l * float64(w.m.Slip*w.rng.Float64()))
			fr -= float64(r * float64(w.m.Slip*w.rng.Float64()))
		}
		gone, turn := w.creep((fl+fr)/2, (fr-fl)/w.robot.Track)
		half := float64(turn * w.robot.Track / 2)
		left += w.turned(l, fl, gone-half)
		right += w.turned(r, fr, gone+half)
		if w.Cliff(w.pose.place()) { // the rest of the step is a fall, with the treads in the air
			rest := float64(n - 1 - i)
			return left + float64(l*rest), right + float64(r*rest)
		}
	}
	return left, right
}

// turns returns how much of turn a robot makes that was told to go ahead as well, and got only as far as gone.
func (w *World) turns(ahead, turn, gone float64) float64 {
	half := w.robot.Track / 2
	for _, side := range [...]float64{-half, half} {
		told := ahead + float64(turn*side) // gone + turn*side is from 0 to told
		a, b := (0-gone)/side, (told-gone)/side
		turn = min(max(turn, min(a, b)), max(a, b))
	}
	return turn
}

// turned is how far a tread turned that was told to turn by told, of which the floor should have got way and got so much.
func (w *World) turned(told, way, got float64) float64 {
	if way == 0 || math.Abs(got-way) < 1e-12 {
		return told
	}
	share := min(max(got/way, 0), 1)
	return float64(told * (share + float64((1-share)*w.robot.SlipShare)))
}

// creep goes ahead and turns by less than fineness, as far as there is room. A blocked robot may still turn, as far as its treads take it there:
// none goes against what it was told, or farther.
func (w *World) creep(ahead, turn float64) (float64, float64) {
	if w.enter(w.after(ahead, turn)) {
		return ahead, turn
	}
	w.blocked = true
	could, from := 0.0, w.pose
	for part, i := 0.5, 0; i < halvings; part, i = part/2, i+1 {
		if w.enter(after(from, float64(ahead*(could+part)), float64(turn*(could+part)))) {
			could += part
		}
	}
	gone, turned := float64(ahead*could), float64(turn*could)
	most := w.turns(ahead, turn, gone)
	switch {
	case ahead == 0 || turn == 0:
	case w.enter(w.after(0, most-turned)):
		turned = most
	case w.enter(w.after(ahead-gone, 0)):
		gone = ahead
	}
	return gone, turned
}

func (w *World) after(ahead, turn float64) Pose { return after(w.pose, ahead, turn) }

// after is p, gone ahead along an arc.
func after(p Pose, ahead, turn float64) Pose {
	sin, cos := math.Sincos(p[2] + turn/2)
	return Pose{p[0] + float64(ahead*cos), p[1] + float64(ahead*sin), wrap(p[2] + turn)}
}

// dock returns the pose of a robot in the charger, at distance from of its back wall.
func (w *World) dock(from float64) Pose {
	c := w.m.Charger.At
	v := c.At(Vec{w.robot.Tail + from + 1e-6, 0})
	return Pose{v[0], v[1], wrap(c[2])}
}

// Contact reports whether the charger's contacts are closed.
func (w *World) Contact() bool {
	if w.m.Charger == nil || w.posture != OnTreads || w.below {
		return false
	}
	c := w.m.Charger.At
	turned := wrap(w.pose[2] - c[2])
	v := c.From(w.pose.At(Vec{-w.robot.Tail, 0}))
	return v[0] <= contactGap && v[0] > -contactGap && math.Abs(v[1]) <= contactAside && math.Abs(turned) <= contactTurned
}

// Posture returns how the robot is.
func (w *World) Posture() Posture { return w.posture }

// HasCharger reports whether there is one.
func (w *World) HasCharger() bool { return w.m.Charger != nil }

// Floor reports whether cliff sensor i sees a floor.
func (w *World) Floor(i int) bool {
	return w.posture == OnTreads && (w.below || !w.Cliff(w.pose.At(w.robot.Cliffs[i])))
}

// Shade returns what the floor below cliff sensor i reflects, of what an ordinary floor does; 0 where it sees none.
func (w *World) Shade(i int) float64 {
	if !w.Floor(i) {
		return 0
	}
	at := w.pose.At(w.robot.Cliffs[i])
	for _, l := range slices.Backward(w.m.Lines) {
		way := l.From.to(l.To)
		along := min(max(l.From.to(at).dot(way)/way.dot(way), 0), 1)
		if l.From.plus(way.times(along)).to(at).norm() <= l.Wide()/2 {
			return l.Bright()
		}
	}
	return or(w.m.Floor, 1)
}

// Range returns what the range finder measures, in metres; 0: nothing in sight. Upright in a hand it looks over low things; lying it looks
// at nothing that this map knows.
func (w *World) Range() float64 {
	if w.below || w.posture != OnTreads && w.posture != InHand {
		return 0
	}
	m := &w.robot.Range
	sinP, cosP := math.Sincos(m.Pitch)
	sin, cos := math.Sincos(w.pose[2] + m.Yaw)
	origin, dir, z := w.pose.At(Vec{m.X, m.Y}), Vec{cos, sin}, m.Z+w.feel.height
	best := math.Inf(1)
	w.things(func(s *shape) {
		t, _ := s.hit(origin, dir)
		if h := z - float64(t*sinP/cosP); t < best && h <= s.height && h >= 0 {
			best = t
		}
	})
	if sinP > 0 {
		if t := z * cosP / sinP; t < best && !w.Cliff(origin.plus(dir.times(t))) {
			best = t
		}
	}
	d := best / cosP
	if d < w.robot.RangeMin || d > w.robot.RangeMax {
		return 0
	}
	return d
}

// things calls look for each shape around the robot.
func (w *World) things(look func(*shape)) {
	for i := range w.fixed {
		look(&w.fixed[i])
	}
	for i := range w.m.Objects {
		if (!w.off(i) || w.hides(i)) && !w.m.Objects[i].Fixed {
			look(&w.outline[i])
		}
	}
}

// echoRays is how many rays fill the cone of an Echo.
const echoRays = 5

// Echo returns the distance in metres that a sonar at m measures, +Inf without an echo. An echo comes from the nearest surface in a level cone of
// so many radians; a surface that a ray meets at more than glance from head on sends it elsewhere (AMIGO-OPEN-16).
func (w *World) Echo(m Mount, cone, glance float64) float64 {
	nearest, least := math.Inf(1), math.Cos(glance)
	if w.below || w.posture != OnTreads && w.posture != InHand {
		return nearest
	}
	origin, z := w.pose.At(Vec{m.X, m.Y}), m.Z+w.feel.height
	for i := range echoRays {
		sin, cos := math.Sincos(w.pose[2] + m.Yaw + float64(cone*(float64(i)/(echoRays-1)-0.5)))
		way, straight := math.Inf(1), 0.0
		w.things(func(s *shape) {
			if t, c := s.hit(origin, Vec{cos, sin}); t < way && z <= s.height {
				way, straight = t, c
			}
		})
		if straight >= least {
			nearest = min(nearest, way)
		}
	}
	return nearest
}

// Map returns what the world was made of.
func (w *World) Map() Map { return w.m }

// Robot returns the shape of the robot in it.
func (w *World) Robot() Robot { return w.robot }

// State returns the world as it is now.
func (w *World) State() State {
	s := State{
		Time: w.now, Pose: w.pose, Posture: w.posture, Height: w.feel.height, Pitch: w.feel.pitch, Roll: w.feel.roll, Blocked: w.blocked,
		Contact: w.Contact(), Below: w.below, Falls: w.falls, Range: w.Range(), NoFloor: make([]bool, len(w.robot.Cliffs)),
		Objects: append([]Pose{}, w.objects...), Gone: append([]bool{}, w.gone...), Raised: make([]float64, len(w.objects)),
	}
	for i := range w.blocks {
		s.Raised[w.blocks[i].object] = w.blocks[i].raised
	}
	for i := range s.NoFloor {
		s.NoFloor[i] = !w.Floor(i)
	}
	return s
}
