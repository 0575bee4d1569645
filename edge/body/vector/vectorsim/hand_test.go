package vectorsim_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/rt"
)

// A hand moves head and lift, also while their encoders sleep, the line loses frames and the board stalls. The robot notices each
// time that a position may be wrong, so no order pushes a part against its stop for a second (VEC-BODY-24, VEC-MOT-07). Homing
// touches a stop for less.
func TestNoPartIsDrivenIntoItsStop(t *testing.T) {
	const degree = math.Pi / 180
	stops := map[int][2]float64{
		spine.Lift: {math.Asin((32 - 45) / 66.), math.Asin((92 - 45) / 66.)}, // VEC-MOT-02
		spine.Head: {-22 * degree, 45 * degree},                              // VEC-MOT-01
	}
	for _, seed := range []uint64{1, 3} {
		rng := rand.New(rand.NewPCG(seed, 99))
		s := vectorsim.NewStepped(vectorsim.Config{Seed: seed, DischargePerMinute: -1})
		var order []byte
		pushed, longest := map[int]int{}, 0 // periods
		s.Each = func(time.Duration) {
			st := s.State()
			for part, at := range stops {
				pushed[part]++
				if duty, a := st.Duty[part], st.Angle[part]; !(a <= at[0] && duty < -0.02 || a >= at[1] && duty > 0.02) {
					pushed[part] = 0
				}
				longest = max(longest, pushed[part])
			}
			switch rng.IntN(4000) {
			case 0, 1, 2, 3, 4, 5:
				order = appendFloats([]byte{byte(orderHead + rng.IntN(2))}, 0.8*rng.Float64()-0.2, 0.8*rng.Float64()-0.2)
			case 6, 7:
				s.SetNoise(vectorsim.Noise{Loss: 0.3 * float64(rng.IntN(2))})
			case 8:
				s.Stall(time.Duration(rng.IntN(45)) * time.Millisecond)
			case 9, 10, 11, 12:
				s.MoveByHand(spine.Lift+rng.IntN(2), rng.Float64()-0.5)
			}
		}
		loop, err := rt.New(rt.Config{}, s, tasks(t, rt.NewTape(1<<20), func() []byte {
			b := order
			order = nil
			return b
		})...)
		if err != nil {
			t.Fatal(err)
		}
		drv, err := vectordriver.Open(t.Context(), vectordriver.Config{Device: "simulated", Port: untilEnd{s, s.Now() + 15*time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if err := loop.Run(t.Context(), drv); !errors.Is(err, body.ErrLink) { // the end
			t.Fatal(err)
		}
		if push := time.Duration(longest) * vectordriver.Period; push >= time.Second || push == 0 {
			t.Errorf("seed %d: a part was driven against its stop for %v, want less than a second", seed, push)
		}
	}
}
