package sense

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const unexpectedStep = 5 * time.Millisecond

// VEC-IMU-15: each type and side, told once, after it held.
func TestUnexpectedMovement(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   UnexpectedInput
		want []Movement
	}{
		{"still", UnexpectedInput{}, nil},
		{"turns as wanted", UnexpectedInput{Turn: 1.1, WantTurn: 1}, nil},
		{"slips a little", UnexpectedInput{Turn: 0.5, WantTurn: 1}, nil},
		{"drives straight", UnexpectedInput{Turn: 0.1, WantSpeed: 0.1}, nil},
		{"held while it turns left", UnexpectedInput{Turn: 0.1, WantTurn: 1}, []Movement{{TurnedButStopped, SideLeft}}},
		{"held while it turns right", UnexpectedInput{Turn: 0, WantTurn: -1}, []Movement{{TurnedButStopped, SideRight}}},
		{"held on an arc", UnexpectedInput{Turn: 0, WantTurn: 1, WantSpeed: 0.1}, []Movement{{TurnedButStopped, SideFront}}},
		{"turned further", UnexpectedInput{Turn: 3, WantTurn: 1}, []Movement{{TurnedInSameDirection, SideLeft}}},
		{"turned back", UnexpectedInput{Turn: -1, WantTurn: 1}, []Movement{{TurnedInOppositeDirection, SideLeft}}},
		{"an edge on its way back", UnexpectedInput{Turn: 1, WantSpeed: -0.1}, []Movement{{TurnedInOppositeDirection, SideBack}}},
		{"turned by hand", UnexpectedInput{Turn: -1}, []Movement{{RotatingWithoutMotors, SideUnknown}}},
		{"no number", UnexpectedInput{Turn: math.NaN(), WantTurn: 1}, nil},
	} {
		for _, onTreads := range []bool{true, false} {
			u := NewUnexpected(DefaultUnexpected)
			tc.in.OnTreads = onTreads
			var got []Movement
			at := time.Duration(0)
			for ; at < 2*time.Second; at += unexpectedStep {
				m, ok := u.Step(unexpectedStep, tc.in)
				if !ok {
					continue
				}
				if at < DefaultUnexpected.Hold {
					t.Errorf("%s: told after %v, want it held for %v", tc.name, at, DefaultUnexpected.Hold)
				}
				got = append(got, m)
			}
			want := tc.want
			if !onTreads {
				want = nil
			}
			if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
				t.Errorf("%s, on treads %t: %v, want %v", tc.name, onTreads, got, want)
			}
		}
	}
}

// It is told again only after all was as wanted for a while, and never of what is shorter than it must hold.
func TestUnexpectedMovementIsToldOnce(t *testing.T) {
	u := NewUnexpected(DefaultUnexpected)
	told := 0
	run := func(in UnexpectedInput, d time.Duration) {
		in.OnTreads = true
		for ; d > 0; d -= unexpectedStep {
			if _, ok := u.Step(unexpectedStep, in); ok {
				told++
			}
		}
	}
	held, fine := UnexpectedInput{WantTurn: 1}, UnexpectedInput{Turn: 1, WantTurn: 1}
	run(held, time.Second)
	run(fine, 200*time.Millisecond)
	run(held, time.Second)
	if told != 1 {
		t.Errorf("told %d times of one hold with a short break, want once", told)
	}
	run(fine, time.Second)
	run(held, time.Second)
	if told != 2 {
		t.Errorf("told %d times of two holds", told)
	}
	rng := rand.New(rand.NewPCG(1, 9))
	u, told = NewUnexpected(DefaultUnexpected), 0
	for range 2000 { // jolts
		run(held, time.Duration(rng.Int64N(int64(DefaultUnexpected.Hold))))
		run(fine, 20*time.Millisecond)
	}
	if told != 0 {
		t.Errorf("told %d times of jolts", told)
	}
	if n := testing.AllocsPerRun(100, func() { u.Step(unexpectedStep, held) }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestWordsOfUnexpectedMovement(t *testing.T) {
	for got, want := range map[string]string{TurnedButStopped.String(): "TURNED_BUT_STOPPED", RotatingWithoutMotors.String(): "ROTATING_WITHOUT_MOTORS",
		Unexpectedness(9).String(): "unexpected(9)", SideUnknown.String(): "UNKNOWN", SideRight.String(): "RIGHT", Side(9).String(): "side(9)"} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if TurnedInSameDirection != 1 || TurnedInOppositeDirection != 2 || RotatingWithoutMotors != 3 || SideFront != 1 || SideBack != 2 ||
		SideLeft != 3 || SideRight != 4 {
		t.Error("values are published (VEC-IMU-15)")
	}
}
