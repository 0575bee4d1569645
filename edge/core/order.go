// Package core has the words in which programs on a robot and its real-time core speak of the robot's body: an Order and its Steps, and the Values of a
// subscription. The messages around them are those of edge/core/corelink, and edge/core/coreclient is how a program uses them.
//
//	text of a person ──Parse──► Order ──► coreclient ──► corelink ──► coreserver ──► control.Order, step by step
//	text for a person ◄─String─┘  ▲
//	Go, Turn, Set of a program ───┘
package core

import (
	"strings"
	"time"

	"kennel/edge/robot"
)

// Order asks a body for one thing, or with several Steps for one thing after another. A position is a goal, which the body reaches later; a speed, a
// light or a gain is a level, which is set at once; a sound or an image is named by a handle (robot.Value.Handle). An order that a body cannot do is
// refused with the code "unable", and nothing of it is done.
type Order struct {
	// Steps are the lines that are done together, all or none, before the next ones; several steps are a trajectory, which ends with the first step
	// that does not end well. Where a step ends the body rests.
	Steps [][]robot.Line `json:"steps,omitempty"`
	// ForMS is the deadline of each step in ms, for parts that need one, such as wheels; 0: as late as the core allows.
	ForMS uint32 `json:"for_ms"`
}

// Parse returns the order of a line of text (robot.ParseLines).
func Parse(line string) (Order, error) {
	lines, err := robot.ParseLines(line)
	if err != nil {
		return Order{}, err
	}
	return one(lines...), nil
}

func one(lines ...robot.Line) Order { return Order{Steps: [][]robot.Line{lines}} }

// Set writes v to a slot, in the slot's own unit.
func Set(name string, v float64) Order {
	return one(robot.Line{Name: name, Verb: robot.Put, Value: robot.F(v)})
}

func call(name string, arg float64) Order {
	return one(robot.Line{Name: name, Verb: robot.Call, Args: []robot.Value{robot.F(arg)}})
}

// Go drives so many metres forward, with a negative number back (GOSTAI-IF-15.1).
func Go(metres float64) Order { return call("robot.go", metres) }

// Turn turns on the spot, to the right, by so many radians (GOSTAI-IF-15.2).
func Turn(radians float64) Order { return call("robot.turn", radians) }

// And returns the order to do p together with the last step of o.
func (o Order) And(p Order) Order {
	if len(o.Steps) == 0 || len(p.Steps) == 0 {
		return o.Then(p)
	}
	last := len(o.Steps) - 1
	steps := append(o.Steps[:last:last], append(o.Steps[last][:len(o.Steps[last]):len(o.Steps[last])], p.Steps[0]...))
	o.Steps = append(steps, p.Steps[1:]...)
	return o
}

// Then returns the order to do p after o, by the deadline of o.
func (o Order) Then(p Order) Order {
	o.Steps = append(o.Steps[:len(o.Steps):len(o.Steps)], p.Steps...)
	return o
}

// For returns o with the deadline d of each step, in whole milliseconds.
func (o Order) For(d time.Duration) Order {
	o.ForMS = uint32(d.Milliseconds())
	return o
}

// Moves returns the names of what o writes or calls: what has to be claimed for it.
func (o Order) Moves() (names []string) {
	for _, step := range o.Steps {
		for _, l := range step {
			if l.Verb != robot.Get {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

// longestStep is the deadline of a step that names none: the latest that the core allows.
const longestStep = time.Minute

// Deadline returns how long each step may last, for parts that need a deadline.
func (o Order) Deadline() time.Duration {
	if o.ForMS == 0 {
		return longestStep
	}
	return time.Duration(o.ForMS) * time.Millisecond
}

// Longest returns how long o may last at most: each step until its deadline, or as long as it gives a motor.
func (o Order) Longest() time.Duration {
	each := o.Deadline()
	for _, step := range o.Steps {
		for _, l := range step {
			within, _ := l.Within()
			each = max(each, within)
		}
	}
	return time.Duration(len(o.Steps)) * each
}

// String returns o as text: the lines of one step as Parse reads them.
func (o Order) String() string {
	steps := make([]string, len(o.Steps))
	for i, step := range o.Steps {
		lines := make([]string, len(step))
		for k, l := range step {
			lines[k] = l.String()
		}
		steps[i] = strings.Join(lines, "; ")
	}
	return strings.Join(steps, ", then ")
}
