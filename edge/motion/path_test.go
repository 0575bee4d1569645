package motion

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var gentle = Ramp{0.1, 0.4, 0.4}

func TestPathIsRefused(t *testing.T) { // VEC-MOT-09, VEC-MCT-02
	good := func() *Path {
		var p Path
		p.Append(Segment{Kind: Line, Length: 0.2, Ramp: gentle})
		p.Append(Segment{Kind: Arc, Length: 0.2, Radius: -0.1, Ramp: gentle})
		p.Append(Segment{Kind: PointTurn, Length: 1, Ramp: gentle})
		return &p
	}
	if err := good().Validate(MaxSegments); err != nil {
		t.Fatal(err)
	}
	m := newRig(t, newPlant(1), nil).m
	for _, c := range []struct {
		name    string
		segment int
		change  func(*Path)
	}{
		{"empty", 0, func(p *Path) { p.N = 0 }},
		{"too long", MaxSegments + 1, func(p *Path) { p.N = MaxSegments + 1 }},
		{"unknown kind", 1, func(p *Path) { p.Segments[1].Kind = 9 }},
		{"no kind", 0, func(p *Path) { p.Segments[0].Kind = NoKind }},
		{"gap of 2 mm", 1, func(p *Path) { p.Segments[1].Start.X += 0.002 }},
		{"kink of 2 degrees", 1, func(p *Path) { p.Segments[1].Start.Theta += 2 * degree }},
		{"gap at the turn", 2, func(p *Path) { p.Segments[2].Start.Y -= 0.01 }},
		{"no length", 0, func(p *Path) { p.Segments[0].Length = 0 }},
		{"no number", 2, func(p *Path) { p.Segments[2].Length = math.NaN() }},
		{"infinite", 0, func(p *Path) { p.Segments[0].Start.Y = math.Inf(1) }},
		{"no radius", 1, func(p *Path) { p.Segments[1].Radius = 0 }},
		{"no speed", 1, func(p *Path) { p.Segments[1].Ramp.Speed = 0 }},
		{"no braking", 1, func(p *Path) { p.Segments[1].Ramp.Decel = -1 }},
	} {
		p := good()
		c.change(p)
		var e *PathError
		if err := p.Validate(MaxSegments); !errors.As(err, &e) || e.Segment != c.segment || !errors.Is(err, ErrPath) {
			t.Errorf("%s: %v, want a refusal of segment %d", c.name, err, c.segment)
		}
		if err := m.Follow(p); !errors.Is(err, ErrPath) {
			t.Errorf("%s: Follow says %v", c.name, err)
		}
	}
	p := good()
	p.Segments[1].Start.X += 0.0009
	p.Segments[1].Start.Theta += 0.9 * degree
	if err := p.Validate(2); err == nil {
		t.Error("3 segments where 2 are allowed")
	}
	for i := 2; i < p.N; i++ { // the rest joined to what was moved
		p.Segments[i].Start = p.Segments[i-1].End()
	}
	if err := p.Validate(3); err != nil {
		t.Errorf("a joint within 1 mm and 1 degree: %v", err)
	}
	far := good()
	far.Segments[0].Start = Pose{X: 1}
	for i := 1; i < far.N; i++ {
		far.Segments[i].Start = far.Segments[i-1].End()
	}
	if err := m.Follow(far); err != ErrStart {
		t.Errorf("a path that starts 1 m away: %v", err)
	}
	var full Path
	for full.Append(Segment{Kind: Line, Length: 0.01, Ramp: gentle}) {
	}
	if full.N != MaxSegments || full.Validate(MaxSegments) != nil {
		t.Errorf("a full path has %d segments", full.N)
	}
}

// TestPathsAreDriven: lines, arcs and point turns in order, forwards and backwards, within 10 mm and 2 degrees of the pose that the body
// believes and near the true one (VEC-MCT-01, VEC-MOT-03, VEC-MOT-10).
func TestPathsAreDriven(t *testing.T) {
	turn := Ramp{3, 10, 10}
	brisk := Ramp{0.15, 0.5, 0.5}
	for name, segments := range map[string][]Segment{
		"line":          {{Kind: Line, Length: 0.5, Ramp: brisk}},
		"backwards":     {{Kind: Line, Length: -0.3, Ramp: brisk}},
		"turn left":     {{Kind: PointTurn, Length: math.Pi / 2, Ramp: turn}},
		"turn right":    {{Kind: PointTurn, Length: -3, Ramp: turn}},
		"arc left":      {{Kind: Arc, Length: 0.3, Radius: 0.15, Ramp: brisk}},
		"arc right":     {{Kind: Arc, Length: 0.3, Radius: -0.1, Ramp: brisk}},
		"arc backwards": {{Kind: Arc, Length: -0.2, Radius: 0.1, Ramp: brisk}},
		"all": {{Kind: Line, Length: 0.3, Ramp: brisk}, {Kind: Arc, Length: 0.15, Radius: 0.1, Ramp: gentle}, {Kind: Line, Length: 0.2, Ramp: brisk},
			{Kind: PointTurn, Length: -2, Ramp: turn}, {Kind: Line, Length: -0.2, Ramp: brisk}, {Kind: Arc, Length: -0.2, Radius: -0.08, Ramp: gentle}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newPlant(11), nil)
			var p Path
			for _, s := range segments {
				p.Append(s)
			}
			r.must(r.m.Follow(&p))
			last, order := 0, true
			r.after = func() { order = order && r.rep.Segment >= last; last = r.rep.Segment }
			r.step()
			r.until(name, 30*time.Second, func() bool { return r.rep.Treads != Running })
			r.run(300 * ms)
			end := p.End(Pose{})
			if r.rep.Treads != Done || !order || last != len(segments)-1 {
				t.Errorf("ended %v in segment %d at %v, want %v", r.rep.Treads, last, r.rep.Pose, end)
			}
			for who, got := range map[string]Pose{"believed": r.rep.Pose, "true": r.p.pose} {
				if math.Hypot(got.X-end.X, got.Y-end.Y) > 0.015 || math.Abs(wrap(got.Theta-end.Theta)) > 3*degree {
					t.Errorf("%s end %v, want %v", who, got, end)
				}
			}
			if r.rep.Moving {
				t.Error("it has power at the end (VEC-MCT-08)")
			}
		})
	}
}

// TestTurnTolerance: VEC-MOT-03: 2 degrees at least, whatever is asked for.
func TestTurnTolerance(t *testing.T) {
	for asked, want := range map[float64]float64{0.1 * degree: 2 * degree, 2 * degree: 2 * degree, 5 * degree: 5 * degree} {
		r := newRig(t, newPlant(3), func(c *Config) { c.Follow.TurnTolerance = asked })
		if got := r.m.fol.cfg.TurnTolerance; math.Abs(got-want) > 1e-9 {
			t.Errorf("asked for %.1f degrees it is %.2f, want %.1f", asked/degree, got/degree, want/degree)
		}
	}
}

// TestGoTo: any place by turn, line, turn (Go to Pose, part of VEC-MCT-14).
func TestGoTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pose := func(name string) Pose {
			return Pose{rapid.Float64Range(-2, 2).Draw(t, name), rapid.Float64Range(-2, 2).Draw(t, name), rapid.Float64Range(-3, 3).Draw(t, name)}
		}
		from, to := pose("from"), pose("to")
		p := GoTo(from, to, gentle, gentle)
		end := p.End(from)
		if math.Hypot(end.X-to.X, end.Y-to.Y) > 0.0011 || math.Abs(wrap(end.Theta-to.Theta)) > 1.01*degree {
			t.Fatalf("from %v to %v ends at %v", from, to, end)
		}
		if p.N > 0 && p.Segments[0].Kind != NoKind {
			if err := p.Validate(3); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSegmentsFlow: two lines in a row are driven without a stop between them, and a turn is preceded by a stop.
func TestSegmentsFlow(t *testing.T) {
	r := newRig(t, newPlant(2).ideal(), nil)
	var p Path
	p.Append(Segment{Kind: Line, Length: 0.2, Ramp: gentle})
	p.Append(Segment{Kind: Line, Length: 0.2, Ramp: gentle})
	p.Append(Segment{Kind: PointTurn, Length: 1, Ramp: Ramp{2, 5, 5}})
	r.must(r.m.Follow(&p))
	var at []float64
	last := 0
	r.after = func() {
		if r.rep.Segment != last {
			last = r.rep.Segment
			at = append(at, math.Abs(r.rep.Twist.V))
		}
	}
	r.step()
	r.until("path", 20*time.Second, func() bool { return r.rep.Treads != Running })
	if len(at) != 2 || at[0] < 0.09 || at[1] > 0.02 {
		t.Errorf("speeds at the joints %v, want 0.1 and 0", at)
	}
}
