package live

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func num(v float64) *float64 { return &v }
func text(s string) *string  { return &s }

// room is a world with something of everything; its names are what a robot might say.
var room = World{Rev: "00c0ffee00c0ffee", Pose: Place{0.1, -0.2, 1.5}, Origin: Place{0, 0, 3.1}, Posture: "on treads", Height: -0.7, Blocked: true, Contact: true, Falls: 2, Range: 0.42,
	NoFloor: []bool{false, true}, Things: []Thing{{At: Place{0.4, 0.3, 0.5}}, {Gone: true}}, Trail: []Point{{0, 0}, {0.1, -0.2}}, Verbs: []string{"touch", "lift"},
	Map: &Map{Name: "<room>", Body: Body{Nose: 0.045, Tail: 0.055, Width: 0.06, Finder: Point{0.045, 0}, Sight: 1.2, Cliffs: []Point{{0.035, 0.018}}},
		Walls: []Wall{{Point{-1.5, -1}, Point{1.5, -1}}}, Cliffs: [][]Point{{{1, 1}, {2, 1}, {2, 2}}}, Charger: &Place{-1.4, 0, 0}, Omitted: 3,
		Shapes: []Shape{{Name: "cube", Size: &Point{0.044, 0.044}}, {Name: "cup", Radius: 0.04, Fixed: true}}}}

var whole = Frame{V: 1, World: &room,
	Tree: &Tree{Body: "vector", Nodes: []Node{{Full: "robot", Compact: "robot", Kind: "device", Interface: "Identity"},
		{Full: "robot.body.head.pitch", Compact: "headPitch", Kind: "device", Interface: "RotationalMotor", Actuator: true, Aliases: []string{"nod"}, Bearing: num(-0.5),
			Slots: []Slot{{ID: 7, Name: "angle", Type: "float", Unit: "rad", Min: num(-0.78), Max: num(0.38)}}}}},
	Values: []Value{{Slot: 7, AgeMS: 4, Number: num(0)}, {Slot: 8, AgeMS: 31, Infinite: 1}, {Slot: 1, AgeMS: -1, Text: text("Vector")}},
	Gone:   []Gone{{"robot.body.laser", 1200, "it is unplugged"}},
	Motion: &Motion{X: 0.1, Speed: 0.05, Moving: true, Way: 3.5, Posture: "OnTreads", Parts: []Part{{"wheels", "", "running", true}}, Stop: []string{"halted"}, Owners: []Owner{{"wheelL", "agentd", 50}}},
}

func TestRoundTrip(t *testing.T) {
	b, err := whole.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseFrame(b); err != nil || !reflect.DeepEqual(got, whole) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, whole)
	}
	if b, err := (Frame{}).Encode(); err != nil || string(b) != `{"v":1,"values":[]}` {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := (Look{ForMS: 15000}).Encode(); err != nil || string(b) != `{"v":1,"for_ms":15000}` {
		t.Errorf("%s, %v", b, err)
	}
	if l, err := ParseLook([]byte(`{"v":1,"for_ms":99999999,"more":1}`)); err != nil || l.For() != MaxLook {
		t.Errorf("%+v, %v: want it bounded", l, err)
	}
	if l, err := ParseLook([]byte(`{"v":1,"for_ms":1500}`)); err != nil || l.For() != 1500*time.Millisecond {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestRefused(t *testing.T) {
	for _, s := range []string{``, `{}`, `{"v":2,"for_ms":1}`, `{"v":1}`, `{"v":1,"for_ms":-4}`, `[]`} {
		if l, err := ParseLook([]byte(s)); err == nil {
			t.Errorf("look %s was taken: %+v", s, l)
		}
	}
	for _, s := range []string{``, `{}`, `{"v":2,"values":[]}`, `{"v":1,"values":[{"slot":1,"age_ms":0}]}`, `{"v":1,"values":[{"slot":-1,"age_ms":0,"number":1}]}`,
		`{"v":1,"values":[{"slot":1,"age_ms":-2,"number":1}]}`, `{"v":1,"values":[{"slot":1,"age_ms":0,"number":1,"infinite":1}]}`,
		`{"v":1,"values":[{"slot":1,"age_ms":0,"infinite":2}]}`, `{"v":1,"values":[{"slot":1,"age_ms":0,"text":"` + strings.Repeat("x", 201) + `"}]}`,
		`{"v":1,"values":[{"slot":1,"age_ms":0,"text":"\u0000"}]}`, `{"v":1,"values":[],"tree":{"nodes":[{"full":""}]}}`, `{"v":1,"values":[],"tree":{"nodes":[{"full":"robot","bearing":1000}]}}`,
		`{"v":1,"values":[],"tree":{"nodes":[{"full":"robot","slots":[{"id":70000}]}]}}`, `{"v":1,"values":[],"motion":{"parts":[{"name":"\u0000"}]}}`, "\xff",
		`{"v":1,"values":[],"gone":[{"full":""}]}`, `{"v":1,"values":[],"gone":[{"full":"robot","for_ms":-1}]}`, `{"v":1,"values":[],"gone":[{"full":"robot","why":"\u0000"}]}`,
		`{"v":1,"values":[],"gone":[` + strings.Repeat(`{"full":"robot"},`, 512) + `{"full":"robot"}]}`,
		`{"v":1,"values":[],"tree":{"nodes":[{"full":"robot","aliases":["` + strings.Repeat("x", 201) + `"]}]}}`,
		`{"v":1,"values":[],"tree":{"nodes":[{"full":"robot","aliases":[` + strings.Repeat(`"x",`, 64) + `"x"]}]}}`,
		`{"v":1,"values":[` + strings.Repeat(`{"slot":1,"age_ms":0,"number":1},`, 3000) + `{"slot":1,"age_ms":0,"number":1}]}`,
		`{"v":1,"values":[]` + strings.Repeat(" ", MaxFrame) + `}`} {
		if f, err := ParseFrame([]byte(s)); err == nil {
			t.Errorf("frame %.80s was taken: %+v", s, f)
		}
	}
}

// TestWorldRefused: each number that no picture could show, and each list that is too long, is named.
func TestWorldRefused(t *testing.T) {
	points := func(n int) string { return "[" + strings.Repeat("[0,0],", n) + "[0,0]]" }
	with := func(more string) string {
		return `{"rev":"1","posture":"on treads","things":[],"no_floor":[]` + more + `}`
	}
	for _, tc := range []struct{ world, want string }{
		{`{}`, "revision"}, {`{"rev":"` + strings.Repeat("1", 17) + `"}`, "revision"}, {`{"rev":"1","posture":"\u0000"}`, "posture"},
		{with(`,"pose":[1e6,0,0]`), "out of bounds"}, {with(`,"pose":[0,0,200]`), "out of bounds"}, {with(`,"origin":[0,-1e9,0]`), "out of bounds"}, {with(`,"range":-1`), "out of bounds"},
		{with(`,"height":1e300`), "out of bounds"}, {with(`,"falls":-1`), "falls"}, {with(`,"trail":` + points(MaxTrail)), "trail"}, {with(`,"trail":[[0,1e6]]`), "out of bounds"},
		{with(`,"verbs":["\u0000"]`), "verbs"}, {with(`,"verbs":[` + strings.Repeat(`"",`, maxVerbs) + `""]`), "33 verbs"},
		{with(`,"pose":[1e999,0,0]`), "1e999"}, {with(`,"pose":["NaN",0,0]`), "string"}, {with(`,"pose":{}`), "object"},
		{with(`,"map":{"walls":[{"from":[0,2e5],"to":[0,0]}]}`), "out of bounds"}, {with(`,"map":{"lines":[{"from":[0,0],"to":[0,1],"width":-1}]}`), "out of bounds"},
		{with(`,"map":{"lines":[` + strings.Repeat("{},", MaxLines) + `{}]}`), "33 lines"}, {with(`,"map":{"cliffs":[` + points(MaxCorners) + `]}`), "corners"},
		{with(`,"map":{"charger":[0,0,1e9]}`), "out of bounds"}, {with(`,"map":{"omitted":-1}`), "walls"}, {with(`,"map":{"name":"` + strings.Repeat("x", 201) + `"}`), "map"},
		{with(`,"map":{"shapes":[{"name":"\u0000"}]}`), "thing 0"}, {with(`,"map":{"shapes":[{"radius":-1}]}`), "thing 0"}, {with(`,"map":{"shapes":[{"size":[1,1e4]}]}`), "thing 0"},
		{with(`,"map":{"body":{"nose":-1}}`), "body"}, {with(`,"map":{"body":{"cliffs":` + points(16) + `}}`), "body"},
	} {
		f, err := ParseFrame([]byte(`{"v":1,"values":[],"world":` + tc.world + `}`))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.120s: %+v, %v; want an error that names %q", tc.world, f.World, err, tc.want)
		}
	}
	if _, err := ParseFrame([]byte(`{"v":1,"values":[],"world":` + with(`,"map":{},"later":1`) + `}`)); err != nil {
		t.Errorf("a world that is as it should be: %v", err)
	}
	for _, p := range []Place{{math.NaN()}, {0, math.Inf(1)}, {0, 0, math.NaN()}} { // no JSON says so
		w := room
		w.Pose = p
		if err := w.Check(); err == nil {
			t.Errorf("%v was taken", p)
		}
	}
}

// TestPlaces: a place that is reckoned from another.
func TestPlaces(t *testing.T) {
	got := Place{1, 2, math.Pi / 2}.At(Place{0.5, 0.1, math.Pi})
	if want := (Place{0.9, 2.5, -math.Pi / 2}); math.Abs(got[0]-want[0]) > 1e-9 || math.Abs(got[1]-want[1]) > 1e-9 || math.Abs(got[2]-want[2]) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLargestWorld: a world that is as large as may be fits a frame, and leaves as much again for the tree and its values.
func TestLargestWorld(t *testing.T) {
	m := Map{Name: strings.Repeat("x", 40)}
	w := World{Rev: strings.Repeat("f", maxRev), Map: &m, Posture: "on its right side", Pose: Place{-999.9999, -999.9999, -3.1416}}
	for range MaxWalls {
		m.Walls = append(m.Walls, Wall{Point{-12.3456, -12.3456}, Point{-12.3456, -12.3456}})
	}
	for range MaxCliffs {
		m.Cliffs = append(m.Cliffs, slices.Repeat([]Point{{-12.3456, -12.3456}}, MaxCorners/MaxCliffs))
	}
	for range MaxLines {
		m.Lines = append(m.Lines, Line{Point{-12.3456, -12.3456}, Point{-12.3456, -12.3456}, 12.3456})
	}
	for range MaxThings {
		m.Shapes = append(m.Shapes, Shape{Name: strings.Repeat("x", 40), Size: &Point{12.3456, 12.3456}, Fixed: true})
		w.Things = append(w.Things, Thing{At: Place{-12.3456, -12.3456, -3.1416}, Gone: true})
	}
	w.Trail = slices.Repeat([]Point{{-12.3456, -12.3456}}, MaxTrail)
	b, err := Frame{World: &w}.Encode()
	if err != nil || len(b) > MaxFrame*5/8 {
		t.Errorf("%d bytes, %v; want at most %d", len(b), err, MaxFrame*5/8)
	}
	if _, err := ParseFrame(b); err != nil {
		t.Error(err)
	}
}

// FuzzFrame: what is taken is stable, and can be kept.
func FuzzFrame(f *testing.F) {
	b, _ := whole.Encode()
	f.Add(b)
	f.Add([]byte(`{"v":1,"values":[{"slot":1,"age_ms":0,"text":""}]}`))
	b, _ = Frame{Display: pictureOf(f, 16, 8)}.Encode()
	f.Add(b)
	f.Add([]byte(`{"v":1,"values":[],"world":{"rev":"1","pose":[0,0],"map":{"cliffs":[[]],"shapes":[{"size":[1]}]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseFrame(b)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(again, []byte(`\u0000`)) {
			t.Fatalf("U+0000 in %s", again)
		}
		if w := m.World; w != nil {
			for _, v := range []float64{w.Pose[0], w.Pose[1], w.Origin[0], w.Range, w.Height} {
				if !(math.Abs(v) <= farthest) {
					t.Fatalf("%v in %+v", v, w)
				}
			}
		}
		if len(again) > MaxFrame {
			return // what was short may need escapes
		}
		if back, err := ParseFrame(again); err != nil {
			t.Fatalf("%s: %+v, %v", again, back, err)
		}
	})
}

// FuzzLook: what is taken is within the bounds.
func FuzzLook(f *testing.F) {
	f.Add([]byte(`{"v":1,"for_ms":15000}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := ParseLook(b); err == nil && (l.For() <= 0 || l.For() > MaxLook) {
			t.Fatalf("%+v", l)
		}
	})
}
