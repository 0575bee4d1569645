package vectorsim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"kennel/edge/cube/cubesim"
	"kennel/edge/sim/plane"
)

// cubesOf returns a light cube for each thing of the world that is one. Its factory id depends on the seed.
func cubesOf(ground *plane.World, seed uint64) (all []*cubesim.Cube) {
	rng := rand.New(rand.NewPCG(seed, 0x63756265))
	for range ground.Cubes() {
		n := rng.Uint64()
		all = append(all, cubesim.New(cubesim.Config{Address: fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x",
			byte(n>>40)|0xc0, byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))}))
	}
	return all
}

// feelCubes lets a period pass for the cubes.
func (w *world) feelCubes(dt time.Duration) {
	for i, c := range w.cubes {
		accel, away := w.ground.CubeFeels(i)
		c.Step(dt, accel, away)
	}
}

// Cubes returns the light cubes in the body's world.
func (b *Board) Cubes() []*cubesim.Cube { return b.cubes }
