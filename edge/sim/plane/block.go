package plane

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"kennel/edge/marker"
	"kennel/infra/api/poke"
)

// Own defaults of a cube and a hand on it.
const (
	tapTime     = 0.02 // s
	tapG        = 3    // peak, downwards
	takeTime    = 0.5  // s from the floor into a hand
	takeHeight  = 0.15 // m
	rollTime    = 0.4  // s of a quarter turn
	scrapeSpeed = 0.005
	scrapeG     = 0.2 // standard deviation of what the floor shakes a cube that slides
	restNoise   = 0.004
	handNoise   = 0.15
	smooth      = 0.02 // s: a knock is as long as a cube is soft
	mostKnock   = 4 * Gravity
	quarter     = math.Pi / 2
)

// block is a cube in the world. Its heading is of its object.
type block struct {
	object  int
	own     [3][3]float64 // its own axes, ahead, to the left and up of its heading
	tilt    float64       // rad by which it is tipped over since
	toward  [2]float64    // where its top went then: ahead or to the left
	roll    float64       // rad that a hand still rolls it
	raised  float64       // m, by a lift
	loose   bool          // it falls from a lift
	falling float64       // m/s
	taken   bool          // in a hand, away from the floor
	height  float64       // m
	since   float64       // s, in which it was taken or put
	tapped  float64       // s that are left of a tap
	shaking float64       // s
	shaken  float64       // s since it began

	at    Vec
	speed Vec     // m/s, smoothed
	rise  float64 // m/s, likewise
	accel [3]float64
}

// blocksOf returns the cubes of a map.
func blocksOf(m *Map) (all []block) {
	for i := range m.Objects {
		if o := &m.Objects[i]; o.Marker == marker.Cube && !o.Fixed {
			all = append(all, block{object: i, at: o.At.place(), own: [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, accel: [3]float64{0, 0, Gravity}})
		}
	}
	return all
}

func blockNoise(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x626c6f636b)) }

// Cubes returns how many cubes there are.
func (w *World) Cubes() int { return len(w.blocks) }

// CubeFeels returns the acceleration that cube i feels along its own axes in m/s2, and how far it is from the robot in metres. At rest the axis that points up has 1 g.
func (w *World) CubeFeels(i int) (accel [3]float64, away float64) {
	b := &w.blocks[i]
	return b.accel, math.Hypot(w.objects[b.object].place().to(w.pose.place()).norm(), b.height)
}

// cubeSides are what Poke does to the first cube, by the side that it names.
var cubeSides = map[string]func(*World, *block) error{
	poke.Tap: func(_ *World, b *block) error { b.tapped = tapTime; return nil },
	poke.Roll: func(w *World, b *block) error {
		if w.onLift(b) {
			return errors.New("world: the cube is on the lift, want it on the floor or in a hand")
		}
		b.roll, b.toward = b.roll+quarter, [2]float64{1, 0}
		return nil
	},
	poke.Take: func(w *World, b *block) error {
		if b.taken {
			return errors.New("world: the cube is in a hand, want it on the floor")
		}
		if w.onLift(b) {
			w.fork.held, w.fork.pulled = -1, -1
			b.tilt = 0
		}
		b.raised, b.loose = 0, false
		b.taken, b.since, w.gone[b.object] = true, 0, true
		return nil
	},
	poke.Place: func(w *World, b *block) error {
		if !b.taken {
			return errors.New("world: the cube is on the floor, want it in a hand")
		}
		o := w.m.Objects[b.object].shape(w.objects[b.object])
		if body := w.body(w.pose); !w.clear(&o, b.object) || w.posture == OnTreads && meet(&body, &o) {
			return errors.New("world: no room for the cube where it was")
		}
		b.taken, b.since, w.gone[b.object] = false, 0, false
		return nil
	},
	poke.Rattle: func(_ *World, b *block) error { b.shaking, b.shaken = 1, 0; return nil },
}

// onLift reports whether the robot's lift has a cube on its hooks, or pulls it over.
func (w *World) onLift(b *block) bool {
	for _, i := range [...]int{w.fork.held, w.fork.pulled} {
		if i >= 0 && &w.blocks[i] == b {
			return true
		}
	}
	return false
}

// pokeCube does p to the first cube.
func (w *World) pokeCube(p poke.Poke) error {
	do := cubeSides[p.Side]
	switch {
	case do == nil:
		return p.Refused()
	case len(w.blocks) == 0:
		return errors.New("world: there is no cube")
	}
	b := &w.blocks[0]
	if w.gone[b.object] && !b.taken {
		return errors.New("world: the cube fell, and lies where no hand reaches it")
	}
	return do(w, b)
}

// PushCube moves cube i over the floor, as a hand that pushes it at once would. The error says what is in the way.
func (w *World) PushCube(i int, by Vec) error {
	b := &w.blocks[i]
	at := w.objects[b.object]
	at[0], at[1] = at[0]+by[0], at[1]+by[1]
	o := w.m.Objects[b.object].shape(at)
	if body := w.body(w.pose); b.taken || w.onLift(b) || !w.clear(&o, b.object) || meet(&body, &o) {
		return fmt.Errorf("world: no room for the cube at %v", at)
	}
	w.objects[b.object], w.outline[b.object] = at, o
	w.gone[b.object] = w.Cliff(at.place())
	return nil
}

// feelBlocks lets s seconds pass for the cubes, after everything has moved.
func (w *World) feelBlocks(s float64) {
	if s <= 0 {
		return
	}
	for i := range w.blocks {
		b := &w.blocks[i]
		b.since += s
		to := 0.0
		if b.taken {
			to = takeHeight
		}
		share, _ := ease(b.since / takeTime)
		height := b.height + float64((to-b.height)*share)
		if i == w.fork.held || b.loose {
			height = b.raised
		}
		turn := min(b.roll, quarter*s/rollTime)
		if b.roll, b.tilt = b.roll-turn, b.tilt+turn; turn > 0 && b.tilt >= quarter-1e-9 {
			b.turnOver()
			b.tilt = max(0, b.tilt-quarter)
		}

		at := w.objects[b.object].place()
		way, rise := b.at.to(at), height-b.height
		b.at, b.height = at, height
		blend := min(1, s/smooth)
		speed := b.speed.plus(b.speed.to(way.times(1 / s)).times(blend))
		climb := b.rise + float64((rise/s-b.rise)*blend)
		a := [3]float64{(speed[0] - b.speed[0]) / s, (speed[1] - b.speed[1]) / s, Gravity + (climb-b.rise)/s}
		b.speed, b.rise = speed, climb

		noise := restNoise
		switch {
		case b.taken:
			noise = handNoise
		case i == w.fork.held && (w.fork.moved || speed.norm() > scrapeSpeed):
			noise = rideG
		case i == w.fork.held || b.loose:
		case speed.norm() > scrapeSpeed || turn > 0:
			noise = scrapeG
		}
		if b.tapped > 0 {
			a[2] -= float64(tapG * Gravity * math.Sin(math.Pi*(tapTime-b.tapped)/tapTime))
			b.tapped = max(0, b.tapped-s)
		}
		if b.shaking > 0 {
			a[0] += float64(shakeG * Gravity * math.Sin(float64(2*math.Pi*shakeRate*b.shaken)))
			b.shaking, b.shaken = b.shaking-s, b.shaken+s
		}
		sy, cy := math.Sincos(w.objects[b.object][2])
		flat := Vec{a[0], a[1]}.rotated(-sy, cy) // ahead and left of the cube
		b.accel = b.feels([3]float64{flat[0], flat[1], a[2]})
		for k := range b.accel {
			b.accel[k] = min(max(b.accel[k]+float64(noise*Gravity*w.dice.NormFloat64()), -mostKnock), mostKnock)
		}
	}
	w.fork.moved = false
}
