package anim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"kennel/infra/bench"
)

var body = []Joint{
	{"robot.body.head.yaw", -1_500_000, 1_500_000, 3_010_000},
	{"robot.body.head.pitch", -700_000, 1_400_000, 2_110_000},
	{"robot.body.head.mouth", 0, 0, 0}, // nothing is known of it
	{"robot.body.tail.yaw", -380_000, 380_000, 4_470_000},
}

func play(t testing.TB, m *Motion, o Options, at []int32) (rows [][]int32, events []Events, p *Player) {
	t.Helper()
	p, err := New(m, body, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(at); err != nil {
		t.Fatal(err)
	}
	out := make([]int32, len(body))
	for range 2_000_000 {
		e := p.Step(out)
		if e.Has(Finished) || e.Has(Stopped) {
			return rows, append(events, e), p
		}
		rows, events = append(rows, slices.Clone(out)), append(events, e)
	}
	t.Fatal("the motion does not end")
	return nil, nil, nil
}

// nod moves the yaw and the mouth, and is at its first keyframe when the body is at home.
var nod = &Motion{Name: "nod", Joints: []string{"robot.body.head.yaw", "robot.body.head.mouth"}, Keyframes: []Keyframe{
	{0, []int32{1000, -5}}, {4, []int32{1010, -12}}, {2, []int32{-7, -12}},
}}

var home = []int32{1000, 77, -5, -300_000}

// TestTruncated: the rows that the vendor's rule gives by hand (MTN-54): whole steps, cut toward zero, and no row for the last keyframe. Joints that are not
// listed keep their position (MTN-56).
func TestTruncated(t *testing.T) {
	rows, events, p := play(t, nod, Options{}, home)
	want := [][]int32{
		{1000, 77, -5, -300_000}, {1002, 77, -6, -300_000}, {1004, 77, -7, -300_000}, {1006, 77, -8, -300_000},
		{1010, 77, -12, -300_000}, {502, 77, -12, -300_000},
	}
	if !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("%v\nwant %v", rows, want)
	}
	if !slices.Equal(events, []Events{Began | Reached, 0, 0, 0, Reached, 0, Finished}) || p.Progress() != 1 || p.Playing() || p.Keyframe() != 1 {
		t.Errorf("%v, progress %v, keyframe %d", events, p.Progress(), p.Keyframe())
	}
}

// TestLast: the other rules end with the last keyframe and pass all the others (MTN-54).
func TestLast(t *testing.T) {
	for _, rule := range []Rule{Linear, Cosine, Cubic} {
		rows, events, _ := play(t, nod, Options{Rule: rule}, home)
		if len(rows) != 7 || rows[0][0] != 1000 || rows[4][0] != 1010 || rows[6][0] != -7 || !events[6].Has(Reached) || events[7] != Finished {
			t.Errorf("%v: %v %v", rule, rows, events)
		}
	}
	// Between two keyframes each rule has its own way: 100 000 in 4 rows, after a way that went on in the same direction.
	m := &Motion{Joints: nod.Joints[:1], Keyframes: []Keyframe{{0, []int32{0}}, {4, []int32{100_000}}, {4, []int32{200_000}}}}
	for rule, want := range map[Rule][]int32{
		Linear: {0, 25_000, 50_000, 75_000, 100_000},
		Cosine: {0, 14_645, 50_000, 85_355, 100_000},
		Cubic:  {0, 10_938, 37_500, 70_313, 100_000}, // begins at rest, is at full speed in the middle keyframe
	} {
		rows, _, _ := play(t, m, Options{Rule: rule}, make([]int32, len(body)))
		for i, w := range want {
			if rows[i][0] != w {
				t.Errorf("%v, row %d: %d, want %d", rule, i, rows[i][0], w)
			}
		}
	}
}

// TestCubicOvershoot: where the next way is much steeper, Cubic is held back to one and a half times the flatter way; where it turns back, it stops.
func TestCubicOvershoot(t *testing.T) {
	m := &Motion{Joints: nod.Joints[:1], Keyframes: []Keyframe{{0, []int32{0}}, {4, []int32{100_000}}, {4, []int32{900_000}}, {4, []int32{0}}}}
	rows, _, _ := play(t, m, Options{Rule: Cubic}, make([]int32, len(body)))
	for i, want := range map[int]int32{3: 63_281, 4: 100_000, 8: 900_000, 9: 759_375} {
		if rows[i][0] != want {
			t.Errorf("row %d: %d, want %d", i, rows[i][0], want)
		}
	}
}

// TestLeadIn: the joints go to the first keyframe at half their speed, and in half a second at least (MTN-53).
func TestLeadIn(t *testing.T) {
	for _, tc := range []struct {
		yaw  int32
		rows int
	}{{1000, 0}, {1001, 63}, {1_001_000, 84}} { // 1 rad at 1.505 rad/s are 664 ms
		at := slices.Clone(home)
		at[0] = tc.yaw
		rows, events, _ := play(t, nod, Options{}, at)
		first := slices.Index(events, Began|Reached)
		if got := first; got != max(0, tc.rows-1) || rows[first][0] != 1000 {
			t.Errorf("from %d: %d rows before the first keyframe, want %d", tc.yaw, got, tc.rows)
		}
		for i := range first {
			if step := distance(rows[i][0], rows[i+1][0]); step > 12_041 {
				t.Errorf("from %d, row %d: %d at once", tc.yaw, i, step)
			}
		}
	}
}

// TestControls: pause, resume, stop, loops, speed and progress (MTN-57).
func TestControls(t *testing.T) {
	p, err := New(nod, body, Options{Loops: Forever})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int32, len(body))
	if e := p.Step(out); e != 0 || p.Playing() {
		t.Error("a player that was not started plays")
	}
	if p.Start(home[1:]) == nil {
		t.Error("three positions for four joints")
	}
	_ = p.Start(home)
	p.Step(out)
	p.Step(out)
	p.Pause()
	for range 5 {
		if e := p.Step(out); e != 0 || out[0] != 1002 || !p.Playing() || p.Progress() != 2./6 {
			t.Errorf("paused: %v %v, progress %v", e, out, p.Progress())
		}
	}
	p.Resume()
	if p.Step(out); out[0] != 1004 {
		t.Errorf("resumed: %v", out)
	}
	loops := 0
	for range 10 * 70 {
		if p.Step(out).Has(Looped) {
			loops++
		}
	}
	if loops != 11 || p.Loop() != 12 { // after the 6 rows of the first loop, each one is 62 rows of lead-in and 6
		t.Errorf("%d loops, in loop %d", loops, p.Loop())
	}
	was := slices.Clone(out)
	p.Stop()
	if e := p.Step(out); e != Stopped || !slices.Equal(out, was) || p.Playing() || p.Step(out) != 0 {
		t.Errorf("stopped: %v", e)
	}
	for speed, want := range map[float64]int{0: 6, 1: 6, 2: 3, 4: 2, 0.1: 60} {
		if rows, _, _ := play(t, nod, Options{Speed: speed}, home); len(rows) != want {
			t.Errorf("speed %v: %d rows, want %d", speed, len(rows), want)
		}
	}
	if rows, events, _ := play(t, nod, Options{Loops: 2}, home); len(rows) != 6+62+6 || events[6] != Looped {
		t.Errorf("%d rows, %v", len(rows), events)
	}
	// A motion of one keyframe has no rows by the vendor's rule, and one by the others.
	still := &Motion{Joints: nod.Joints, Keyframes: nod.Keyframes[:1]}
	for rule, want := range map[Rule]int{Truncated: 0, Linear: 1} {
		if rows, _, p := play(t, still, Options{Rule: rule, Loops: 3}, home); len(rows) < want || p.Progress() != 1 {
			t.Errorf("%v: %v", rule, rows)
		}
	}
	if p, _ = New(still, body, Options{Loops: Forever}); p.Start(home) == nil {
		for range 100 {
			p.Step(out)
		}
		p.Stop()
		if p.Step(out) != Stopped {
			t.Error("not stopped")
		}
	}
}

// TestLimits: what a body cannot reach is cut, what is too fast takes longer, and both are reported (MTN-58).
func TestLimits(t *testing.T) {
	m := &Motion{Joints: []string{"robot.body.tail.yaw", "robot.body.wing", "robot.body.head.mouth", "robot.body.tail.yaw"}, Keyframes: []Keyframe{
		{0, []int32{-390_000, 0, 0, 9}}, {10, []int32{400_000, 0, 2_000_000, 9}}, {1000, []int32{0, 0, 0, 9}},
	}}
	_, _, p := play(t, m, Options{Limits: true}, home)
	want := Report{
		Ignored:   []string{"robot.body.wing", "robot.body.tail.yaw"},
		Clamped:   []Clamp{{"robot.body.tail.yaw", 1, 400_000, 380_000}},
		Stretched: []Stretch{{1, 10, 22}}, // 0.76 rad at 4.47 rad/s
	}
	if got := p.Report(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, _, p := play(t, m, Options{}, home); len(p.Report().Clamped)+len(p.Report().Stretched) != 0 || p.Rows() != 1010 {
		t.Errorf("without limits: %+v", p.Report())
	}
}

// TestRefuses: motions and options that cannot be played.
func TestRefuses(t *testing.T) {
	good := nod.Keyframes
	for name, tc := range map[string]struct {
		m Motion
		o Options
	}{
		"no keyframe":       {Motion{}, Options{}},
		"uneven":            {Motion{Joints: nod.Joints, Keyframes: []Keyframe{{0, []int32{1}}}}, Options{}},
		"time of the first": {Motion{Joints: nod.Joints, Keyframes: good[1:]}, Options{}},
		"no time":           {Motion{Joints: nod.Joints, Keyframes: []Keyframe{good[0], good[0]}}, Options{}},
		"back in time":      {Motion{Joints: nod.Joints, Keyframes: []Keyframe{good[0], {-1, []int32{1, 2}}}}, Options{}},
		"long":              {Motion{Joints: nod.Joints, Keyframes: []Keyframe{good[0], {math.MaxInt64, []int32{1, 2}}}}, Options{}},
		"slow":              {*nod, Options{Speed: 0.05}},
		"fast":              {*nod, Options{Speed: 4.1}},
		"no number":         {*nod, Options{Speed: math.NaN()}},
		"rule":              {*nod, Options{Rule: 4}},
		"loops":             {*nod, Options{Loops: -2}},
	} {
		if _, err := New(&tc.m, body, tc.o); !errors.Is(err, ErrMotion) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range []Rule{Truncated, Linear, Cosine, Cubic} {
		if got, err := ParseRule(r.String()); got != r || err != nil {
			t.Errorf("%v: %v %v", r, got, err)
		}
	}
	if _, err := ParseRule("bouncing"); err == nil {
		t.Error("a rule that is none")
	}
}

// random returns a motion for the test body.
func random(rnd *rand.Rand) *Motion {
	m := &Motion{}
	for _, i := range rnd.Perm(len(body))[:1+rnd.IntN(len(body))] {
		m.Joints = append(m.Joints, body[i].Name)
	}
	for i := range 1 + rnd.IntN(8) {
		k := Keyframe{Values: make([]int32, len(m.Joints))}
		if i > 0 {
			k.Rows = 2 + 2*rnd.Int64N(60)
		}
		for c := range k.Values {
			k.Values[c] = int32(rnd.Uint32()) >> (rnd.IntN(12) + 8)
		}
		m.Keyframes = append(m.Keyframes, k)
	}
	return m
}

// TestProperties: with limits, every rule but the vendor's keeps every joint within its range and its speed from row to row, which is also how far a position
// can jump; each keyframe is passed, and no position leaves the span of its keyframes.
func TestProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 2))
	for n := range 400 {
		m, rule := random(rnd), Rule(rnd.IntN(4))
		o := Options{Rule: rule, Limits: true, Speed: []float64{0.1, 0.7, 1, 4}[rnd.IntN(4)], Loops: 1 + rnd.IntN(2)}
		at := make([]int32, len(body))
		for j := range at {
			at[j] = int32(rnd.IntN(600_000) - 300_000)
		}
		rows, events, p := play(t, m, o, at)
		before, reached := at, 0
		for i, row := range rows {
			for j := range body {
				step, most := distance(row[j], before[j]), int64(float64(body[j].Speed)*Row.Seconds())
				if rule == Truncated {
					most += 400 // of the rest of a division by as many rows, which comes at the end of a segment
				}
				if body[j].Speed > 0 && step > most {
					t.Fatalf("motion %d, %v, row %d: %s moves by %d, most is %d", n, rule, i, body[j].Name, step, most)
				}
				if r := body[j]; (r.Min != 0 || r.Max != 0) && (row[j] < r.Min || row[j] > r.Max) {
					t.Fatalf("motion %d, %v, row %d: %s at %d", n, rule, i, r.Name, row[j])
				}
				if !slices.Contains(m.Joints, body[j].Name) && row[j] != at[j] {
					t.Fatalf("motion %d, row %d: %s moved, and is not listed", n, i, body[j].Name)
				}
			}
			if events[i].Has(Reached) {
				k := reached % len(m.Keyframes)
				if rule == Truncated && len(m.Keyframes) > 1 {
					k = reached % (len(m.Keyframes) - 1)
				}
				for c, j := range p.score.joints {
					if row[j] != p.score.values[k*len(p.score.joints)+c] {
						t.Fatalf("motion %d, %v, row %d: keyframe %d missed", n, rule, i, k)
					}
				}
				reached++
			}
			before = row
		}
	}
}

// TestAllocations: a row costs no memory.
func TestAllocations(t *testing.T) {
	for _, rule := range []Rule{Truncated, Linear, Cosine, Cubic} {
		p, _ := New(nod, body, Options{Rule: rule, Loops: Forever})
		_ = p.Start(home)
		out := make([]int32, len(body))
		if n := testing.AllocsPerRun(1000, func() { p.Step(out) }); n != 0 {
			t.Errorf("%v: %v allocations", rule, n)
		}
	}
}

// BenchmarkMotionPlayBesideBudget plays 20 joints by each rule: the share of a core that one row takes every 8 ms, of which less than 1 % is allowed (issue 35, what
// must hold 6).
func BenchmarkMotionPlayBesideBudget(b *testing.B) { motionPlayBesideBudget(b) }

func TestMotionPlayBesideBudget(t *testing.T) { motionPlayBesideBudget(t) }

func motionPlayBesideBudget(tb testing.TB) {
	const budget = 1 // % of a core
	var joints []Joint
	m := &Motion{}
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 20 {
		joints = append(joints, Joint{fmt.Sprint("robot.joint", i), -2_000_000, 2_000_000, 3_000_000})
		m.Joints = append(m.Joints, joints[i].Name)
	}
	for i := range 20 {
		k := Keyframe{Rows: int64(min(i, 1)) * 80}
		for range m.Joints {
			k.Values = append(k.Values, int32(rnd.IntN(3_000_000)-1_500_000))
		}
		m.Keyframes = append(m.Keyframes, k)
	}
	rules := []Rule{Truncated, Linear, Cosine, Cubic}
	pairs := make([][]bench.Pair, len(rules))
	bench.Turns(tb, func() error {
		for i, rule := range rules {
			p, err := New(m, joints, Options{Rule: rule, Loops: Forever, Limits: true})
			if err != nil {
				return err
			}
			out := make([]int32, len(joints))
			if err := p.Start(out); err != nil {
				return err
			}
			rows := bench.Fastest(bench.Part(tb, 200), 2000, func() { p.Step(out) })
			pairs[i] = append(pairs[i], bench.Pair{Value: 100 / rows / Row.Seconds(), Reference: budget})
		}
		return nil
	})
	for i, rule := range rules {
		bench.Report(tb, bench.Line{Name: "motion play/" + rule.String(), Unit: "%", Less: true, Bound: 1, Note: "20 joints at a row in 8 ms, within limits, in % of a core; reference: the budget"}, pairs[i])
	}
}
