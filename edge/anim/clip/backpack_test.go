package clip

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// walk is a pattern whose light goes from the front to the back, and whose front also fades.
const walk = `{
	"onColors": [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]], "offColors": [[0, 0, 0, 1], [0, 0, 0, 1], [0.5, 0.5, 0.5, 1]],
	"onPeriod_ms": [100, 200, 300], "offPeriod_ms": [300, 200, 100], "transitionOffPeriod_ms": [200, 0, 100], "transitionOnPeriod_ms": [0, 200, 100], "offset": [0, 50, 450]}`

// TestPattern: each light shows its colour of on, moves to off, shows that and moves back, by a clock of its own that its offset advances (VEC-LGT-01).
func TestPattern(t *testing.T) {
	p, err := ParsePattern([]byte(walk))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		light int
		ms    int
		want  [3]float32
	}{
		{0, 0, [3]float32{1, 0, 0}}, {0, 99, [3]float32{1, 0, 0}}, {0, 200, [3]float32{0.5, 0, 0}}, {0, 300, [3]float32{}}, {0, 599, [3]float32{}}, {0, 600, [3]float32{1, 0, 0}}, {0, 6200, [3]float32{0.5, 0, 0}},
		{1, 0, [3]float32{0, 1, 0}}, {1, 149, [3]float32{0, 1, 0}}, {1, 150, [3]float32{}}, {1, 349, [3]float32{}}, {1, 450, [3]float32{0, 0.5, 0}}, {1, 550, [3]float32{0, 1, 0}},
		{2, 0, [3]float32{0.5, 0.5, 0.5}}, {2, 100, [3]float32{0.25, 0.25, 0.75}}, {2, 150, [3]float32{0, 0, 1}}, {2, 449, [3]float32{0, 0, 1}}, {2, 500, [3]float32{0.25, 0.25, 0.75}},
	} {
		if got := p.At(time.Duration(tc.ms) * time.Millisecond)[tc.light]; got != tc.want {
			t.Errorf("light %d at %d ms: %v, want %v", tc.light, tc.ms, got, tc.want)
		}
	}
}

// same compares a pattern with the clip of it that a player plays in a loop, every 7 ms: of those that jump, not within 2 ms of a jump.
func same(t *testing.T, p *Pattern) {
	t.Helper()
	c := p.Clip("lights_x")
	for _, problem := range c.Check(Vector) {
		t.Fatal(problem)
	}
	if again, err := roundJSON(&c); err != nil {
		t.Fatalf("%v: %+v", err, again)
	}
	player := NewPlayer(Vector, &Locks{}, 1)
	if err := player.Start(0, &c, Options{Loops: Forever}); err != nil {
		t.Fatal(err)
	}
	loop := c.Span()
	var f Frame
	for now := time.Duration(0); now < 2*loop+time.Second && now < 30*time.Second; now += 7 * time.Millisecond {
		player.Step(now, &f, nil)
		in := now % loop
		for l, want := range p.At(in) {
			near := false
			for _, d := range []time.Duration{-2, -1, 1, 2} {
				beside := p.At(max(0, in+d*time.Millisecond))[l]
				for i := range beside {
					near = near || math.Abs(float64(beside[i]-want[i])) > 0.04
				}
			}
			for i := range want {
				if got := f.Lights[l][i]; !near && math.Abs(float64(got-want[i])) > 0.03 {
					t.Fatalf("light %d at %v of %v: %v, want %v", l, in, loop, f.Lights[l], want)
				}
			}
		}
	}
}

func roundJSON(c *Clip) (*Clip, error) {
	b, err := AppendJSON(nil, []Clip{*c})
	if err != nil {
		return nil, err
	}
	all, err := ParseJSON(b)
	if err != nil || len(all) != 1 {
		return nil, err
	}
	return &all[0], nil
}

// TestPatternClip: a player shows a pattern as it is, over all its loops.
func TestPatternClip(t *testing.T) {
	p, err := ParsePattern([]byte(walk))
	if err != nil {
		t.Fatal(err)
	}
	same(t, &p)
	if c := p.Clip("x"); c.Span() != 600*time.Millisecond || c.Parts() != BackpackLights {
		t.Errorf("%v, %v", c.Span(), c.Parts())
	}
	still := p
	for _, times := range []*[]uint32{&still.OnPeriod, &still.OffPeriod, &still.TransitionOn, &still.TransitionOff} {
		*times = []uint32{0, 0, 0}
	}
	same(t, &still)
	odd := p
	odd.OnPeriod, odd.Offset = []uint32{101, 207, 311}, []uint32{60_000, 59_999, 1}
	same(t, &odd)
	if c := odd.Clip("x"); c.Span() > maxCycle*time.Millisecond {
		t.Errorf("it takes %v", c.Span())
	}
}

// TestPatternRefused: errors name the field.
func TestPatternRefused(t *testing.T) {
	for _, tc := range [][3]string{
		{`[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]`, `[1, 0, 0, 1], [0, 1, 0, 1]`, "onColors: expected 3 colours, found 2"},
		{`[1, 0, 0, 1], [0`, `[1, 0, 0], [0`, "onColors[0]: expected 4 numbers"},
		{`[1, 0, 0, 1], [0`, `[1, 1.5, 0, 1], [0`, "onColors[0][1]: expected 0 to 1, found 1.5"},
		{`[300, 200, 100]`, `[300, 200]`, "offPeriod_ms: expected 3 times, found 2"},
		{`[0, 50, 450]`, `[0, 50, 60001]`, "offset[2]: expected at most 60000 ms"},
		{`[0, 50, 450]`, `[0, -1, 450]`, "offset"},
		{`"offset"`, `"offsets"`, "line 3"},
		{`"offset": [0, 50, 450]`, `"offset": null`, "offset: expected 3 times"},
	} {
		_, err := ParsePattern([]byte(strings.Replace(walk, tc[0], tc[1], 1)))
		if !errors.Is(err, ErrClip) || !strings.Contains(err.Error(), tc[2]) {
			t.Errorf("%s: %v, want %q", tc[1], err, tc[2])
		}
	}
}

// FuzzPattern: a file is refused, or is a clip that a Vector can play for ever and that looks like the pattern.
func FuzzPattern(f *testing.F) {
	f.Add([]byte(walk))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePattern(b)
		if err != nil {
			if !errors.Is(err, ErrClip) {
				t.Fatal(err)
			}
			return
		}
		same(t, &p)
	})
}
