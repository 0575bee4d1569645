package vectorplant

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/motion"
)

// TestDriveWithLateSteps: drives are as long as asked for while the processor is late for a fifth of the steps: a step after a long gap, or soon after
// another, must not take the travel of a period for a speed ten times as high (VEC-MOT-05).
func TestDriveWithLateSteps(t *testing.T) {
	const length = 0.1 // m
	for seed := range uint64(8) {
		p := newPlace(t, builtin(t, "empty")).calibrated()
		p.claims()
		rng := rand.New(rand.NewPCG(seed, 1))
		p.late = func() time.Duration {
			if rng.IntN(5) > 0 {
				return 0
			}
			return 8*ms + time.Duration(rng.Int64N(int64(20*ms)))
		}
		for range 4 {
			before, fastest := p.around().Pose, 0.0
			p.order(control.Order{Kind: control.Go, A: length, For: 5 * time.Second})
			p.until("a drive", func() bool {
				fastest = max(fastest, p.rep.Base.Twist.V)
				return p.moves.Treads != motion.Running
			})
			p.run(500 * ms)
			after := p.around().Pose
			way := math.Hypot(after[0]-before[0], after[1]-before[1])
			if p.moves.Treads != motion.Done || math.Abs(way-length) > 0.005 || fastest > 0.3 {
				t.Errorf("seed %d: %v after %.4f m, up to %.2f m/s; want %v m at about 0.1 m/s", seed, p.moves.Treads, way, fastest, length)
			}
		}
		p.close()
	}
}
