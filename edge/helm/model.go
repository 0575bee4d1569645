package helm

import (
	"errors"
	"fmt"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector"
	"kennel/edge/body/vector/spine"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
	"kennel/edge/sense"
)

// Binding carries measurements to the slots of a tree, and lights back (edge/body/vector.Binding).
type Binding interface {
	Home(motor int, angle float64)
	Sense(s *body.Sense)
	Light(a *body.Act, id int, v float64, now time.Duration) bool
}

// Joint names a joint of the body in the three tables that know it.
type Joint struct {
	Device string // compact name
	Motor  int    // in body.Sense.Motors
	Index  int    // in motion.Config.Joints
	// Angle turns what the tree says of it, metres or radians, into the joint's angle as the wire counts; Value is the way back.
	Angle, Value func(float64) float64
}

// Model is what the helm must know of a kind of body.
type Model struct {
	Tree       *robot.Tree
	Bind       func(*state.Board) (Binding, error)
	Body       body.Description // what never changes of it
	Sense      sense.Config
	Motion     motion.Config
	Wheels     []string // compact names of the devices
	Head, Lift Joint
	Lights     []string
	Cliffs     []string
	Indicators []Indicator // what the lights say by themselves; the first that holds
	// Straight and Turn are the speeds of an order that names none, m/s and rad/s.
	Straight, Turn motion.Ramp
}

// Vector returns the model of a Vector.
func Vector() (Model, error) {
	tree, err := vector.Tree()
	if err != nil {
		return Model{}, err
	}
	negative := func(v float64) float64 { return -v } // in the tree nose down is positive (GOSTAI-FRAME-05)
	return Model{
		Tree: tree,
		Bind: func(b *state.Board) (Binding, error) { return vector.Bind(b) },
		Body: body.Description{Species: "vic", Cliffs: make([]string, 4)},
		// The wire's order (VEC-BODY-20).
		Cliffs:     []string{spine.FrontLeft: "cliffFL", spine.FrontRight: "cliffFR", spine.BackLeft: "cliffBL", spine.BackRight: "cliffBR"},
		Sense:      sense.Default(),
		Motion:     motion.VectorConfig(),
		Wheels:     []string{"wheelL", "wheelR"},
		Head:       Joint{Device: "headPitch", Motor: spine.Head, Index: motion.VectorHead, Angle: negative, Value: negative},
		Lift:       Joint{Device: "arm", Motor: spine.Lift, Index: motion.VectorLift, Angle: motion.VectorLiftAngle, Value: motion.VectorLiftHeight},
		Lights:     []string{"led[0]", "led[1]", "led[2]", "led[3]"},
		Indicators: vectorIndicators(),
		// Own defaults: half of what the treads can do.
		Straight: motion.Ramp{Speed: 0.1, Accel: 0.3, Decel: 0.3},
		Turn:     motion.Ramp{Speed: 2, Accel: 6, Decel: 6},
	}, nil
}

// slots is the IDs of the slots that the helm itself knows the value of; -1 where the body has none.
type slots struct {
	touch, laser             int
	detected                 []int
	accel, gyro              [3]int // by axis
	moving, xSpeed, yawSpeed int
	trackerYaw, trackerPitch int
	lights                   [][3]int
}

// devices is the numbers of actuators.
type devices struct {
	wheels claim.Set
	joint  [2]claim.Set // by jointOf
	lights []int
}

// finder looks names up, all errors together.
type finder struct {
	tree *robot.Tree
	err  error
}

func (f *finder) slot(name string) int {
	target, err := f.tree.Lookup(name)
	if err == nil && len(target.Refs) != 1 {
		err = fmt.Errorf("%s is %d slots, want one", name, len(target.Refs))
	}
	if err != nil {
		f.err = errors.Join(f.err, err)
		return -1
	}
	return target.Refs[0].ID
}

func (f *finder) actuators(names ...string) claim.Set {
	var all []int
	for _, name := range names {
		target, err := f.tree.Lookup(name)
		if err == nil && len(f.tree.ActuatorsOf(target)) == 0 {
			err = fmt.Errorf("%s is no actuator", name)
		}
		if err != nil {
			f.err = errors.Join(f.err, err)
			continue
		}
		all = append(all, f.tree.ActuatorsOf(target)...)
	}
	return claim.SetOf(all...)
}
