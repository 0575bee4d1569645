package plane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"kennel/edge/marker"
)

// Vec is a point or a direction in the plane, in metres.
type Vec [2]float64

// Pose is a place and a heading: x and y in metres, theta in radians.
type Pose [3]float64

// Map says what a world is made of. The zero value is an endless floor.
type Map struct {
	Name    string   `json:"name,omitempty"`
	Start   Pose     `json:"start"`
	Slip    float64  `json:"slip,omitempty"` // up to this share of a tread's way is lost on the floor, by chance; 0 to 0.5
	Walls   []Wall   `json:"walls,omitempty"`
	Cliffs  []Cliff  `json:"cliffs,omitempty"`
	Floor   float64  `json:"floor,omitempty"` // what it reflects, of what an ordinary one does: 0 to 2; 0 is 1
	Lines   []Line   `json:"lines,omitempty"` // on the floor; where they cross, the later one is seen
	Objects []Object `json:"objects,omitempty"`
	Charger *Charger `json:"charger,omitempty"`
	Light   float64  `json:"light,omitempty"`  // of an ordinary room's light, 0 to 10; 0 is 1. For cameras alone, as people
	People  []Person `json:"people,omitempty"` // a robot drives through them
}

// Person is a person in the world. Height 0 is 1.7 m.
type Person struct {
	Name   string  `json:"name,omitempty"`
	At     Vec     `json:"at"`
	Height float64 `json:"height,omitempty"`
}

// Tall is the person's height in metres.
func (p *Person) Tall() float64 { return or(p.Height, personHeight) }

// Wall is a straight wall. Height 0 is 0.3 m.
type Wall struct {
	From   Vec     `json:"from"`
	To     Vec     `json:"to"`
	Height float64 `json:"height,omitempty"`
}

// Tall is the wall's height in metres.
func (w *Wall) Tall() float64 { return or(w.Height, wallHeight) }

// Cliff is an area without floor. Drop is how far down the next one is; 0 is 0.7 m.
type Cliff struct {
	Corners []Vec   `json:"corners"`
	Drop    float64 `json:"drop,omitempty"`
}

// Deep is the depth of the next floor, in metres.
func (c *Cliff) Deep() float64 { return or(c.Drop, dropHeight) }

// Holds reports whether v is in the area.
func (c *Cliff) Holds(v Vec) bool { return inside(c.Corners, v) }

// Line is painted on the floor. Width 0 is 15 mm; Shade is its reflectance, as for Floor, and 0 is white.
type Line struct {
	From  Vec     `json:"from"`
	To    Vec     `json:"to"`
	Width float64 `json:"width,omitempty"`
	Shade float64 `json:"shade,omitempty"`
}

// Wide is the line's width in metres.
func (l *Line) Wide() float64 { return or(l.Width, lineWidth) }

// Bright is the light that the line reflects, of what an ordinary floor does.
func (l *Line) Bright() float64 { return or(l.Shade, white) }

// Object is a thing on the floor: a box of Size (along its heading, across), or a disc of Radius. Height 0 is 0.044 m, as a cube has.
type Object struct {
	Name   string  `json:"name,omitempty"`
	Shape  string  `json:"shape"` // box or disc
	At     Pose    `json:"at"`
	Size   Vec     `json:"size,omitzero"`
	Radius float64 `json:"radius,omitempty"`
	Height float64 `json:"height,omitempty"`
	Fixed  bool    `json:"fixed,omitempty"`  // it cannot be pushed
	Marker string  `json:"marker,omitempty"` // on each side of a box: a name of the camera's markers, such as cube
}

// Tall is the height in metres.
func (o *Object) Tall() float64 { return or(o.Height, cubeEdge) }

// Charger is the middle of the charger's back wall. Its heading points out of the charger, as the heading of a docked robot does.
type Charger struct {
	At Pose `json:"at"`
}

// UnmarshalJSON takes exactly two numbers.
func (v *Vec) UnmarshalJSON(b []byte) error { return numbers(b, v[:], "[x, y]") }

// UnmarshalJSON takes three numbers.
func (p *Pose) UnmarshalJSON(b []byte) error { return numbers(b, p[:], "[x, y, theta]") }

func numbers(b []byte, to []float64, want string) error {
	var got []float64
	if err := json.Unmarshal(b, &got); err != nil || len(got) != len(to) {
		return fmt.Errorf("%.40s, want numbers %s", b, want)
	}
	copy(to, got)
	return nil
}

// Limits of what Parse takes.
const (
	maxMap     = 1 << 20 // bytes
	maxThings  = 1000    // of each kind, and corners of a cliff
	farthest   = 1000.0  // m from the origin
	leastSize  = 1e-3    // m
	maxSlip    = 0.5
	wallHeight = 0.3
	cubeEdge   = 0.044
	dropHeight = 0.7
	lineWidth  = 0.015
	brightest  = 2.0
	sunlight   = 10.0

	personHeight = 1.7
	white        = 1.1 // of what an ordinary floor reflects
)

// Parse reads a map. Keys that it does not know are refused: a misspelled one would be a world that is not what it says.
func Parse(b []byte) (*Map, error) {
	if len(b) > maxMap {
		return nil, fmt.Errorf("world: %d bytes, want at most %d", len(b), maxMap)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var m Map
	if err := d.Decode(&m); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, fmt.Errorf("world: %s is %s at byte %d, want %s", orDocument(wrong.Field), wrong.Value, wrong.Offset, kind(wrong))
		}
		return nil, fmt.Errorf("world: at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("world: data after the map at byte %d, want one object", d.InputOffset())
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return &m, nil
}

func orDocument(field string) string {
	if field == "" {
		return "the map"
	}
	return field
}

func kind(e *json.UnmarshalTypeError) string {
	switch e.Type.String() {
	case "float64":
		return "a number"
	case "string", "bool":
		return "a " + e.Type.String()
	}
	if e.Type.Kind().String() == "slice" {
		return "a list"
	}
	return "an object"
}

// Validate names the first thing that cannot be.
func (m *Map) Validate() error {
	var c checker
	c.pose("start", m.Start)
	c.number("slip", m.Slip, 0, maxSlip)
	c.count("walls", len(m.Walls))
	c.count("cliffs", len(m.Cliffs))
	c.count("objects", len(m.Objects))
	for i, w := range m.Walls {
		at := fmt.Sprintf("walls[%d]", i)
		c.point(at+".from", w.From)
		c.point(at+".to", w.To)
		c.number(at+".height", w.Height, 0, farthest)
		c.must(w.From.to(w.To).norm() >= leastSize, "%s is shorter than 1 mm, want two ends", at)
	}
	for i, p := range m.Cliffs {
		at := fmt.Sprintf("cliffs[%d]", i)
		c.count(at+".corners", len(p.Corners))
		c.must(len(p.Corners) >= 3, "%s has %d corners, want 3 or more", at, len(p.Corners))
		for j, v := range p.Corners {
			c.point(fmt.Sprintf("%s.corners[%d]", at, j), v)
		}
		c.must(c.err != nil || math.Abs(area(p.Corners)) >= leastSize*leastSize, "%s has no area, want corners in order around it", at)
		c.number(at+".drop", p.Drop, 0, farthest)
	}
	c.number("floor", m.Floor, 0, brightest)
	c.count("lines", len(m.Lines))
	for i, l := range m.Lines {
		at := fmt.Sprintf("lines[%d]", i)
		c.point(at+".from", l.From)
		c.point(at+".to", l.To)
		c.number(at+".width", l.Width, 0, farthest)
		c.number(at+".shade", l.Shade, 0, brightest)
		c.must(l.From.to(l.To).norm() >= leastSize, "%s is shorter than 1 mm, want two ends", at)
	}
	for i, o := range m.Objects {
		at := fmt.Sprintf("objects[%d]", i)
		c.pose(at+".at", o.At)
		c.number(at+".height", o.Height, 0, farthest)
		switch o.Shape {
		case "box":
			c.number(at+".size[0]", o.Size[0], leastSize, farthest)
			c.number(at+".size[1]", o.Size[1], leastSize, farthest)
			c.must(o.Radius == 0, "%s is a box with a radius, want only a size", at)
		case "disc":
			c.number(at+".radius", o.Radius, leastSize, farthest)
			c.must(o.Size == Vec{}, "%s is a disc with a size, want only a radius", at)
			c.must(o.Marker == "", "%s is a disc with a marker, want one on boxes only", at)
		default:
			c.must(false, "%s.shape is %.40q, want box or disc", at, o.Shape)
		}
		c.must(o.Marker == "" || slices.Contains(marker.Names, o.Marker), "%s.marker is %.40q, want one of %s", at, o.Marker, strings.Join(marker.Names, ", "))
	}
	if m.Charger != nil {
		c.pose("charger.at", m.Charger.At)
	}
	c.number("light", m.Light, 0, sunlight)
	c.count("people", len(m.People))
	for i, p := range m.People {
		at := fmt.Sprintf("people[%d]", i)
		c.point(at+".at", p.At)
		c.number(at+".height", p.Height, 0, farthest)
	}
	return c.err
}

// checker keeps the first mistake.
type checker struct{ err error }

func (c *checker) must(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf("world: "+format, args...)
	}
}

func (c *checker) number(what string, v, least, most float64) {
	c.must(v >= least && v <= most, "%s is %v, want %v to %v", what, v, least, most)
}

func (c *checker) point(what string, v Vec) {
	c.number(what+"[0]", v[0], -farthest, farthest)
	c.number(what+"[1]", v[1], -farthest, farthest)
}

func (c *checker) pose(what string, p Pose) {
	c.point(what, Vec{p[0], p[1]})
	c.number(what+"[2]", p[2], -2*math.Pi, 2*math.Pi)
}

func (c *checker) count(what string, n int) {
	c.must(n <= maxThings, "%s has %d entries, want at most %d", what, n, maxThings)
}

// builtin makes the worlds that need no file. Each call makes a new one: a Map may be changed.
var builtin = map[string]func() *Map{
	"empty": func() *Map { return &Map{Name: "empty"} },
	// A table of 0.8 m by 0.6 m, 0.7 m high, with a cube on it.
	"table": func() *Map {
		const x, y, far = 0.4, 0.3, 3.0
		return &Map{
			Name: "table",
			Cliffs: []Cliff{
				{Corners: []Vec{{x, -far}, {far, -far}, {far, far}, {x, far}}},
				{Corners: []Vec{{-far, -far}, {-x, -far}, {-x, far}, {-far, far}}},
				{Corners: []Vec{{-x, y}, {x, y}, {x, far}, {-x, far}}},
				{Corners: []Vec{{-x, -far}, {x, -far}, {x, -y}, {-x, -y}}},
			},
			Objects: []Object{{Name: "cube", Shape: "box", At: Pose{0.2, 0.1, 0}, Size: Vec{cubeEdge, cubeEdge}, Marker: "cube"}},
		}
	},
	// Vector's habitat: a tray of 12 by 12 inches with a rim, dark, with a thick white line near the edge, and a charger in a corner (VEC-HW-24).
	"habitat": func() *Map {
		const half, in = 0.1524, 0.1224 // m; the line's middle is 30 mm from the edge
		m := &Map{Name: "habitat", Start: Pose{-0.05, -0.04, 0}, Floor: 0.5, Charger: &Charger{At: Pose{-0.14, 0.085, 0}}}
		for i, x := range [4]Vec{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}} {
			y := [4]Vec{{1, -1}, {1, 1}, {-1, 1}, {-1, -1}}[i]
			m.Walls = append(m.Walls, Wall{From: x.times(half), To: y.times(half), Height: 0.03})
			m.Lines = append(m.Lines, Line{From: x.times(in), To: y.times(in)})
		}
		return m
	},
	// A room of 3 m by 2 m with a charger at a wall.
	"room": func() *Map {
		return &Map{
			Name: "room",
			Walls: []Wall{
				{From: Vec{-1.5, -1}, To: Vec{1.5, -1}}, {From: Vec{1.5, -1}, To: Vec{1.5, 1}},
				{From: Vec{1.5, 1}, To: Vec{-1.5, 1}}, {From: Vec{-1.5, 1}, To: Vec{-1.5, -1}},
			},
			Objects: []Object{
				{Name: "cube", Shape: "box", At: Pose{0.4, 0.3, 0.5}, Size: Vec{cubeEdge, cubeEdge}, Marker: "cube"},
				{Name: "cup", Shape: "disc", At: Pose{-0.5, 0.6, 0}, Radius: 0.04, Height: 0.1},
				{Name: "chest", Shape: "box", At: Pose{1.1, -0.6, 0}, Size: Vec{0.5, 0.4}, Height: 0.4, Fixed: true},
			},
			Charger: &Charger{At: Pose{-1.4, 0, 0}},
			People:  []Person{{Name: "visitor", At: Vec{2.2, 0.5}}},
		}
	},
}

// Builtin returns the world of that name, or an error that names those there are.
func Builtin(name string) (*Map, error) {
	if build, ok := builtin[name]; ok {
		return build(), nil
	}
	return nil, fmt.Errorf("world: no world %.40q, want one of %s or a file", name, strings.Join(Names(), ", "))
}

// Names returns the built-in worlds.
func Names() []string { return slices.Sorted(maps.Keys(builtin)) }
