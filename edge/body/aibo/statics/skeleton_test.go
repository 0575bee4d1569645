package statics

import (
	"math/rand/v2"
	"testing"

	"kennel/edge/body/aibo"
	"kennel/infra/api/motionwire"
	"kennel/infra/api/motionwire/skeleton"
)

// TestSkeleton: the bones that are drawn of each model end where its statics have knees, paws and nose, for random angles of all joints.
func TestSkeleton(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 6))
	for _, m := range aibo.Models {
		b := New(m)
		var told motionwire.Body
		told.Links, told.Bones = b.Skeleton()
		for range 50 {
			angles, named := b.random(rnd), map[string]float64{}
			for i, j := range b.joints {
				named[j.Path] = angles[i]
			}
			f, bones := b.Pose(angles), skeleton.Pose(&told, named)
			same := func(what string, got skeleton.Vec, want Vec) {
				t.Helper()
				if Vec(got).minus(want).length() > 1e-9 {
					t.Fatalf("%v, %s: the bone ends at %v, want %v", m, what, got, want)
				}
			}
			for l, leg := range LegNames {
				same("knee "+leg, bones[1+2*l].To, f.At[knee+l])
				same("paw "+leg, bones[2+2*l].To, f.At[Paw+l])
			}
			same("nose", bones[10].To, f.At[head])
		}
	}
}
