package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"kennel/infra/api/live"
)

// table is a table with a cube on it, the robot on its left.
func table() World {
	const x, y, far = 0.4, 0.3, 3.0
	return World{Title: "A world", Text: "Simulated.", Belief: &live.Place{-0.19, 0, 0.1}, World: live.World{Pose: live.Place{-0.2, 0, math.Pi / 2}, Posture: "on treads", Range: 0.25,
		Things: []live.Thing{{At: live.Place{0.2, 0.1, 0}}}, Trail: []live.Point{{0, 0}, {-0.1, 0}, {-0.2, 0}},
		Map: &live.Map{Lines: []live.Line{{From: live.Point{-0.3, -0.2}, To: live.Point{0.3, -0.2}, Width: 0.02}}, Shapes: []live.Shape{{Name: "cube", Size: &live.Point{0.044, 0.044}}}, Body: live.Body{Nose: 0.045, Tail: 0.055, Width: 0.06, Finder: live.Point{0.045, 0}, Sight: 1.2},
			Cliffs: [][]live.Point{{{x, -far}, {far, -far}, {far, far}, {x, far}}, {{-far, -far}, {-x, -far}, {-x, far}, {-far, far}}, {{-x, y}, {x, y}, {x, far}, {-x, far}}, {{-x, -far}, {x, -far}, {x, -y}, {-x, -y}}}}}}
}

// sound reports what is wrong with markup: it is read as XML, has no number that is none, no style, and is not large.
func sound(t *testing.T, what, markup string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(markup))
	d.Strict = true
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v in %.300s", what, err, markup)
		}
	}
	if bad := regexp.MustCompile(`NaN|Inf|style=|<script|e\+`).FindString(markup); bad != "" || len(markup) > 150_000 {
		t.Errorf("%s: %d bytes with %q", what, len(markup), bad)
	}
}

// TestWorld: everything is where it is, north up, and said in words.
func TestWorld(t *testing.T) {
	w := table()
	v := w.all()
	if v.west > -0.4 || v.west < -0.6 || v.west+v.width < 0.4 || v.north < 0.3 || v.north > 0.6 {
		t.Errorf("the view of a table is %+v, want all of it and little more", v)
	}
	all := string(w.All())
	sound(t, "all", all)
	for _, want := range []string{`role="img" aria-labelledby="plan-title plan-text"`, `<title id="plan-title">A world</title>`, `<desc id="plan-text">Simulated.</desc>`, ">cube</text>", `class="beam"`, `class="hit"`,
		`class="trail new"`, `class="edge"`, `<path class="paint" stroke-width="` + coord(0.02*v.each) + `" d="M`, `data-glide="all-robot"`, `rotate(-90)" data-glide="all-robot"`, `data-glide="all-ghost"`} {
		if !strings.Contains(all, want) {
			t.Errorf("without %q: %s", want, all)
		}
	}
	near := string(w.Near())
	sound(t, "near", near)
	if strings.Contains(near, "id=\"plan") || !strings.Contains(near, `aria-hidden="true"`) || !strings.Contains(near, `class="eye"`) {
		t.Errorf("the close-up: %s", near)
	}
	robot := regexp.MustCompile(`translate\(([0-9.-]+) ([0-9.-]+)\)[^>]*all-robot`).FindStringSubmatch(all)
	if want := short(v.x(-0.2)); robot == nil || robot[1] != want || robot[2] != short(v.y(0)) {
		t.Errorf("the robot is drawn at %q, want %s %s", robot, want, short(v.y(0)))
	}
	w.Pose[0] += 0.02 // a little: the picture does not move
	if w.all() != v {
		t.Errorf("the view went from %+v to %+v with the robot", v, w.all())
	}
	w.Range, w.Posture, w.Map = 0, "on its back", nil
	if got := string(w.All()); !strings.Contains(got, "robot fallen") || strings.Contains(got, "beam") {
		t.Errorf("a robot that fell: %s", got)
	}
	w.Posture = "in a hand"
	if got := string(w.All()); !strings.Contains(got, "robot lifted") || strings.Contains(got, "beam") {
		t.Errorf("a robot in a hand, without a body that sees: %s", got)
	}
}

// TestRays: a ray begins within the outline of the body, at the bearing of its sensor; a body that is a disc is drawn as a disc, and its close-up is
// large enough for it.
func TestRays(t *testing.T) {
	w := table()
	w.Range, w.Rays = 0, []Ray{{0, 0.5}, {math.Pi / 2, 0.25}, {-math.Pi / 2, 0}}
	for _, tt := range []struct {
		name        string
		body        live.Body
		ahead, left float64 // where its rays begin
	}{
		{"a box", live.Body{Nose: 0.05, Tail: 0.06, Width: 0.06}, inside * 0.05, inside * 0.03},
		{"a disc", live.Body{Nose: 0.18, Tail: 0.18, Width: 0.36}, inside * 0.18, inside * 0.18},
	} {
		w.Map.Body = tt.body
		for _, v := range []view{w.all(), w.near()} {
			got, u := string(w.draw(v)), v.each
			sound(t, tt.name, got)
			for _, want := range []string{
				`<path class="beam" d="M` + coord(tt.ahead*u) + ` 0L` + coord((tt.ahead+0.5)*u) + ` 0"/>`,
				`L0 ` + coord(-(tt.left+0.25)*u) + `"/><circle class="hit" cx="0" cy="` + coord(-(tt.left+0.25)*u) + `"`,
				`<path class="beam none" d="M0 ` + coord(tt.left*u) + `L0 ` + coord((tt.left+blindRay)*u) + `"/>`,
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%s, %s: without %q: %s", tt.name, v.id, want, got)
				}
			}
			if strings.Contains(got, `class="visor"`) == w.body().round() {
				t.Errorf("%s, %s: %s", tt.name, v.id, got)
			}
		}
		if near := w.near(); near.width < 3*(tt.body.Nose+tt.body.Tail)-0.02 {
			t.Errorf("%s: a close-up of %v m", tt.name, near.width)
		}
	}
}

// TestLargeWorlds: a picture of more than fits is of what is round the robot, and follows it.
func TestLargeWorlds(t *testing.T) {
	w := table()
	w.Map.Walls = []live.Wall{{From: live.Point{-900, -900}, To: live.Point{900, 900}}}
	w.Pose = live.Place{412.3, -77.7, 0}
	if v := w.all(); v.width > mostView/mostTall+1e-9 || w.Pose[0] < v.west || w.Pose[0] > v.west+v.width || w.Pose[1] > v.north || w.Pose[1] < v.north-v.height {
		t.Errorf("the robot at %v is not in %+v", w.Pose, v)
	}
	sound(t, "large", string(w.All()))
	w = World{World: live.World{Map: &live.Map{}, Pose: live.Place{2, 2, 0}}}
	if v := w.all(); v.west > 0 || v.north-v.height > 0 || v.west+v.width < 2 || v.north < 2 {
		t.Errorf("an endless floor: %+v, want where it began and where it is", v)
	}
}

// TestWorldsThatLie: whatever a robot says that the cloud takes, its picture is one, and is not large.
func TestWorldsThatLie(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ends := []float64{0, 1e-300, -1e-9, 0.05, 1, -999.9, 1e3, 1e5, -1e5}
	n := func() float64 { return ends[rng.IntN(len(ends))] }
	point := func() live.Point { return live.Point{n(), n()} }
	size := func() float64 { return math.Min(math.Abs(n()), 1e3) }
	evil := []string{`"><script>alert(1)</script>`, `' onload='x`, "]]>", "&", strings.Repeat("ö", 100), ""}
	for range 300 {
		w := World{Title: evil[rng.IntN(6)], Text: evil[rng.IntN(6)], World: live.World{Rev: "1", Pose: live.Place{n(), n(), rng.Float64()*200 - 100}, Posture: evil[rng.IntN(6)], Range: size(), NoFloor: []bool{true}}}
		if rng.IntN(2) == 0 {
			w.Belief = &live.Place{n(), n(), n()}
		}
		for range rng.IntN(4) {
			w.Trail = append(w.Trail, point())
			w.Things = append(w.Things, live.Thing{At: live.Place{n(), n(), 0}, Gone: rng.IntN(4) == 0})
		}
		if rng.IntN(5) > 0 {
			w.Map = &live.Map{Body: live.Body{Nose: size(), Tail: size(), Width: size(), Sight: size(), Finder: point(), Cliffs: []live.Point{point(), point()}}}
			for range rng.IntN(4) {
				w.Map.Walls = append(w.Map.Walls, live.Wall{From: point(), To: point()})
				w.Map.Cliffs = append(w.Map.Cliffs, []live.Point{point(), point(), point()}[:rng.IntN(4)])
				w.Map.Shapes = append(w.Map.Shapes, live.Shape{Name: evil[rng.IntN(6)], Radius: size()}, live.Shape{Name: evil[rng.IntN(6)], Size: &live.Point{size(), size()}})
			}
		}
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		sound(t, "all", string(w.All()))
		sound(t, "near", string(w.Near()))
	}
}

// TestSide: head and lift are as they are, and within the picture whatever is said of them.
func TestSide(t *testing.T) {
	num := func(v float64) *float64 { return &v }
	for _, s := range []Side{{}, {Head: num(-0.3), Lift: num(0.08)}, {Head: num(1e9), Lift: num(-1e9)}, {Head: num(math.Inf(1)), Lift: num(math.Inf(-1))}} {
		sound(t, "side", string(s.HTML()))
	}
	if up := string(Side{Head: num(-math.Pi / 8)}.HTML()); !strings.Contains(up, "rotate(-22.5)") || strings.Contains(up, "arm") {
		t.Errorf("a head that looks up, and a lift that nobody knows: %s", up)
	}
}
