package live

import (
	"fmt"
	"math"
	"slices"
)

// Limits of a World. What a map has beyond them is left out and counted.
const (
	MaxWalls   = 256
	MaxCliffs  = 32
	MaxLines   = 32
	MaxCorners = 512 // of all cliffs
	MaxThings  = 128
	MaxTrail   = 64
	maxCliffs  = 16 // sensors
	maxRev     = 16 // bytes
	maxVerbs   = 32

	farthest = 1e5 // m, of anything from the origin
	longest  = 1e3 // m, of anything that has a size
	mostTurn = 100 // rad; a heading is one of many that mean the same
)

// Point is a place in the plane: x and y in metres.
type Point [2]float64

// Place is a place and a heading: x and y in metres, radians counter-clockwise.
type Place [3]float64

// World is where a simulated robot really is, according to its simulator. A real robot has none.
type World struct {
	Rev     string  `json:"rev"`             // names its map
	Map     *Map    `json:"map,omitempty"`   // in the first frame of a look, from time to time, and when it is another
	Pose    Place   `json:"pose"`            // where the robot is
	Origin  Place   `json:"origin"`          // where its own reckoning (Motion) began: where it was when its core began
	Posture string  `json:"posture"`         // on treads, in a hand, on its back
	Height  float64 `json:"height"`          // m above its floor
	Blocked bool    `json:"blocked"`         // an obstacle is in its way
	Contact bool    `json:"contact"`         // the contacts of the charger are closed
	Below   bool    `json:"below"`           // it fell, and lies where nothing of the map is
	Falls   int     `json:"falls"`           // so far
	Range   float64 `json:"range"`           // m that its range finder measures; 0: nothing in sight
	NoFloor []bool  `json:"no_floor"`        // by cliff sensor: it sees no floor
	Things  []Thing `json:"things"`          // in the order of the map
	Trail   []Point `json:"trail,omitempty"` // where it was in the last seconds, the oldest first
	// Verbs are what a hand can do to it with robot_poke.
	Verbs []string `json:"verbs,omitempty"`
}

// Thing is where a thing of the map is now.
type Thing struct {
	At   Place `json:"at"`
	Gone bool  `json:"gone,omitempty"` // it fell
}

// Map says what a world is made of.
type Map struct {
	Name    string    `json:"name,omitempty"`
	Body    Body      `json:"body"`
	Walls   []Wall    `json:"walls,omitempty"`
	Cliffs  [][]Point `json:"cliffs,omitempty"` // corners of areas without floor
	Lines   []Line    `json:"lines,omitempty"`  // painted on the floor
	Shapes  []Shape   `json:"shapes,omitempty"` // of things on the floor
	Charger *Place    `json:"charger,omitempty"`
	Omitted int       `json:"omitted,omitempty"` // walls, cliffs, lines and things that are too many to be here
}

// Wall is a straight wall.
type Wall struct {
	From Point `json:"from"`
	To   Point `json:"to"`
}

// Line is painted on the floor; Width in metres.
type Line struct {
	From  Point   `json:"from"`
	To    Point   `json:"to"`
	Width float64 `json:"width"`
}

// Shape is the outline of an object: a box of Size (along its heading, across), or a disc of Radius.
type Shape struct {
	Name   string  `json:"name,omitempty"`
	Size   *Point  `json:"size,omitempty"`
	Radius float64 `json:"radius,omitempty"`
	Fixed  bool    `json:"fixed,omitempty"` // it cannot be pushed
}

// Body is the outline of a robot from above, whose origin is between its treads, and what it looks ahead with; metres.
type Body struct {
	Nose   float64 `json:"nose"` // from the origin
	Tail   float64 `json:"tail"`
	Width  float64 `json:"width"`
	Finder Point   `json:"finder"` // the range finder; it looks ahead
	Sight  float64 `json:"sight"`  // beyond that it sees nothing
	Cliffs []Point `json:"cliffs,omitempty"`
}

// Check refuses what no simulator of ours says.
func (w *World) Check() error {
	if w.Rev == "" || len(w.Rev) > maxRev || !good(w.Rev) || !good(w.Posture) {
		return fmt.Errorf("world: revision %.40q, posture %.40q: want words of at most %d and %d bytes", w.Rev, w.Posture, maxRev, maxText)
	}
	if len(w.NoFloor) > maxCliffs || len(w.Things) > MaxThings || len(w.Trail) > MaxTrail || w.Falls < 0 {
		return fmt.Errorf("world: %d cliff sensors, %d things, a trail of %d, %d falls: want at most %d, %d and %d", len(w.NoFloor), len(w.Things), len(w.Trail), w.Falls,
			maxCliffs, MaxThings, MaxTrail)
	}
	if len(w.Verbs) > maxVerbs || slices.ContainsFunc(w.Verbs, func(v string) bool { return !good(v) }) {
		return fmt.Errorf("world: %d verbs: want at most %d of at most %d bytes", len(w.Verbs), maxVerbs, maxText)
	}
	sound := w.Pose.sound() && w.Origin.sound() && within(w.Height, -longest, longest) && within(w.Range, 0, longest) && allSound(w.Trail)
	for _, t := range w.Things {
		sound = sound && t.At.sound()
	}
	if !sound {
		return fmt.Errorf("world: position, height or range out of bounds: want at most %g m and %d rad", farthest, mostTurn)
	}
	if w.Map != nil {
		return w.Map.check()
	}
	return nil
}

func (m *Map) check() error {
	corners := 0
	for _, c := range m.Cliffs {
		corners += len(c)
	}
	if len(m.Walls) > MaxWalls || len(m.Cliffs) > MaxCliffs || corners > MaxCorners || len(m.Lines) > MaxLines || len(m.Shapes) > MaxThings || m.Omitted < 0 || !good(m.Name) {
		return fmt.Errorf("map %.40q: %d walls, %d cliffs with %d corners, %d lines, %d things: want at most %d, %d with %d, %d, %d", m.Name,
			len(m.Walls), len(m.Cliffs), corners, len(m.Lines), len(m.Shapes), MaxWalls, MaxCliffs, MaxCorners, MaxLines, MaxThings)
	}
	b := &m.Body
	if !within(b.Nose, 0, longest) || !within(b.Tail, 0, longest) || !within(b.Width, 0, longest) || !within(b.Sight, 0, longest) || !b.Finder.sound() ||
		len(b.Cliffs) > maxCliffs || !allSound(b.Cliffs) {
		return fmt.Errorf("map %.40q: body %+v: want sizes of 0 to %g m and at most %d cliff sensors", m.Name, *b, longest, maxCliffs)
	}
	for i, s := range m.Shapes {
		if !good(s.Name) || !within(s.Radius, 0, longest) || s.Size != nil && !(within(s.Size[0], 0, longest) && within(s.Size[1], 0, longest)) {
			return fmt.Errorf("map %.40q: thing %d, %.40q: want a name of at most %d bytes and sizes of 0 to %g m", m.Name, i, s.Name, maxText, longest)
		}
	}
	sound := m.Charger == nil || m.Charger.sound()
	for _, c := range m.Cliffs {
		sound = sound && allSound(c)
	}
	for _, l := range m.Lines {
		sound = sound && l.From.sound() && l.To.sound() && within(l.Width, 0, longest)
	}
	for _, w := range m.Walls {
		sound = sound && w.From.sound() && w.To.sound()
	}
	if !sound {
		return fmt.Errorf("map %.40q: position out of bounds: want at most %g m", m.Name, farthest)
	}
	return nil
}

// within is false for what is no number.
func within(v, least, most float64) bool { return v >= least && v <= most }

func (p Point) sound() bool { return within(math.Max(math.Abs(p[0]), math.Abs(p[1])), 0, farthest) }

func (p Place) sound() bool { return Point{p[0], p[1]}.sound() && within(math.Abs(p[2]), 0, mostTurn) }

func allSound(ps []Point) bool {
	return !slices.ContainsFunc(ps, func(p Point) bool { return !p.sound() })
}

// At returns the place that p has in the world if it was reckoned from q.
func (q Place) At(p Place) Place {
	sin, cos := math.Sincos(q[2])
	return Place{q[0] + cos*p[0] - sin*p[1], q[1] + sin*p[0] + cos*p[1], math.Remainder(q[2]+p[2], 2*math.Pi)}
}

// Point returns where it is.
func (q Place) Point() Point { return Point{q[0], q[1]} }
