package core

import (
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/robot"
	"kennel/infra/api/live"
)

func TestOrder(t *testing.T) {
	look := Set("headPitch", 1.0/3)
	for _, tc := range []struct {
		o     Order
		text  string
		moves []string
		most  time.Duration
	}{
		{Go(-0.1), "robot.go(-0.1)", []string{"robot.go"}, time.Minute},
		{Turn(math.Pi).For(2500 * time.Millisecond), "robot.turn(3.141592653589793)", []string{"robot.turn"}, 2500 * time.Millisecond},
		{look.And(Set("led.val", 1)), "headPitch = 0.3333333333333333; led.val = 1", []string{"headPitch", "led.val"}, time.Minute},
		{look.And(Go(1)).Then(look).And(Set("a", 0)).For(time.Second), "headPitch = 0.3333333333333333; robot.go(1), then headPitch = 0.3333333333333333; a = 0",
			[]string{"headPitch", "robot.go", "headPitch", "a"}, 2 * time.Second},
		{Order{}.And(Go(1)), "robot.go(1)", []string{"robot.go"}, time.Minute},
		{Order{}, "", nil, 0},
	} {
		if tc.o.String() != tc.text || !slices.Equal(tc.o.Moves(), tc.moves) || tc.o.Longest() != tc.most {
			t.Errorf("%s moves %q for at most %v; want %s, %q, %v", tc.o, tc.o.Moves(), tc.o.Longest(), tc.text, tc.moves, tc.most)
		}
	}
	if look.String() != "headPitch = 0.3333333333333333" || len(look.Steps) != 1 {
		t.Errorf("an order that was put together with others became %s", look)
	}
	half := Go(1).Then(Turn(1))
	one, other := half.Then(Go(2)), half.Then(Go(3))
	if one.String() == other.String() {
		t.Errorf("two orders share their steps: %s", one)
	}
	o, err := Parse("laser; headPitch = 0.1 time:90s; robot.type")
	if err != nil || !slices.Equal(o.Moves(), []string{"headPitch"}) || o.Longest() != 90*time.Second {
		t.Errorf("%s, %v, %v", o, o.Longest(), err)
	}
	if _, err := Parse("headPitch ="); err == nil {
		t.Error("half a line is an order")
	}
}

// FuzzParse: what a person wrote is printed so that it is the same order.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"headPitch = 0.3 speed:2", `a="x;y"; b(1)`, "robot.go(0.1)", "a = [1, true] time:2s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := Parse(s)
		if err != nil {
			return
		}
		for i := range o.Steps[0] {
			if err := o.Steps[0][i].Check(); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
		}
		text := o.String()
		if again, err := Parse(text); len(text) <= 1000 && (err != nil || again.String() != text) {
			t.Fatalf("%q is printed %q, which is %q, %v", s, text, again, err)
		}
	})
}

// TestTake: what changed, and a number whatever it is.
func TestTake(t *testing.T) {
	number, text := 0.5, "x"
	v := Value{Slot: live.Slot{ID: 7}}
	for i, tc := range []struct {
		all     []live.Value
		changed bool
		n       float64
		ok      bool
	}{
		{nil, true, 0, false}, // the first
		{[]live.Value{{Slot: 6, Infinite: 1}}, false, 0, false},
		{[]live.Value{{Slot: 6}, {Slot: 7, Number: &number}}, true, 0.5, true},
		{[]live.Value{{Slot: 7, Number: new(float64), AgeMS: 5}}, true, 0, true},
		{[]live.Value{{Slot: 7, Number: new(float64), AgeMS: 9}}, false, 0, true},
		{[]live.Value{{Slot: 7, Infinite: -1}}, true, math.Inf(-1), true},
		{[]live.Value{{Slot: 7, Text: &text}}, true, 0, false},
		{nil, true, 0, false},
	} {
		v.Take(tc.all, i == 0)
		if n, ok := v.Number(); v.Changed != tc.changed || n != tc.n || ok != tc.ok {
			t.Errorf("%d: changed %v, %v, %v; want %v, %v, %v", i, v.Changed, n, ok, tc.changed, tc.n, tc.ok)
		}
	}
}

// TestCheck: what no person could write no program may send (robot.ParseLine).
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		l  robot.Line
		ok bool
	}{
		"reads":              {robot.Line{Name: "a.b"}, true},
		"writes a list":      {robot.Line{Name: "a", Verb: robot.Put, Value: robot.L(robot.F(1), robot.B(true)), Speed: 1}, true},
		"calls":              {robot.Line{Name: "a", Verb: robot.Call, Args: []robot.Value{robot.S("x"), robot.L()}, Time: time.Second}, true},
		"writes a sound":     {robot.Line{Name: "a", Verb: robot.Put, Value: robot.Value{Type: robot.Bytes, Handle: "bark"}}, true},
		"no name":            {robot.Line{}, false},
		"another verb":       {robot.Line{Name: "a", Verb: 3}, false},
		"writes nothing":     {robot.Line{Name: "a", Verb: robot.Put}, false},
		"reads a value":      {robot.Line{Name: "a", Value: robot.F(1)}, false},
		"reads with a speed": {robot.Line{Name: "a", Speed: 1}, false},
		"writes arguments":   {robot.Line{Name: "a", Verb: robot.Put, Value: robot.F(1), Args: []robot.Value{robot.F(1)}}, false},
		"no number":          {robot.Line{Name: "a", Verb: robot.Put, Value: robot.F(math.NaN())}, false},
		"infinite within":    {robot.Line{Name: "a", Verb: robot.Put, Value: robot.L(robot.F(math.Inf(1)))}, false},
		"another type":       {robot.Line{Name: "a", Verb: robot.Put, Value: robot.Value{Type: 9}}, false},
		"list in a list":     {robot.Line{Name: "a", Verb: robot.Put, Value: robot.L(robot.L())}, false},
		"nothing in a list":  {robot.Line{Name: "a", Verb: robot.Put, Value: robot.L(robot.Value{})}, false},
		"items of a number":  {robot.Line{Name: "a", Verb: robot.Put, Value: robot.Value{Type: robot.Float, Items: []robot.Value{robot.F(1)}}}, false},
		"speed and time":     {robot.Line{Name: "a", Verb: robot.Put, Value: robot.F(1), Speed: 1, Time: time.Second}, false},
		"backward speed":     {robot.Line{Name: "a", Verb: robot.Put, Value: robot.F(1), Speed: -1}, false},
		"too long":           {robot.Line{Name: "a", Verb: robot.Put, Value: robot.F(1), Adaptive: 2 * time.Hour}, false},
		"too short":          {robot.Line{Name: "a", Verb: robot.Put, Value: robot.F(1), Time: -1}, false},
	} {
		if err := tc.l.Check(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
