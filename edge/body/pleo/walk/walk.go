// Package walk has the steps by which a Pleo goes and turns: motions in the text form of the development kit, and a Walker that plays them for as many steps as
// a way takes.
//
// A Pleo walks by pairs of legs across its body: two push while the other two swing. A motion is one cycle, a push of either pair. It begins and ends with all
// feet down, and its length is scaled by a mix with marching on the spot. Motions keep the ranges and speeds of the joints (PLEO-JNT-13).
package walk

import (
	"embed"
	"fmt"
	"math"
	"time"

	"kennel/edge/anim"
	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/legs"
)

//go:embed motions/*.csv
var files embed.FS

// Way is a way to walk.
type Way int

// The ways.
const (
	Forward Way = iota
	Back
	Left // turns on the spot
	Right
	ways
)

var names = [ways]string{"forward", "back", "left", "right"}

// String returns "forward".
func (w Way) String() string { return names[w] }

// Joints are those of the legs that a Walker moves, in the order of its angles.
var Joints = [...]format.Joint{format.LeftShoulder, format.LeftElbow, format.RightShoulder, format.RightElbow, format.LeftHip, format.LeftKnee, format.RightHip, format.RightKnee}

// Angles are set-points for Joints in degrees, as Pleo counts.
type Angles [len(Joints)]float64

// Legs returns the angles as those of legs, with a straight torso.
func (a *Angles) Legs() (l legs.Angles) {
	for i, v := range a {
		foot := [...]int{legs.FrontLeft, legs.FrontRight, legs.BackLeft, legs.BackRight}[i/2]
		if i%2 == 0 {
			l.Upper[foot] = v
		} else {
			l.Lower[foot] = v
		}
	}
	return l
}

// Own defaults.
const (
	settle   = 25.0 // degrees a second, to the first posture and back to the last
	stepRate = 2.0  // steps in a cycle
)

// Read returns the motion of that name: "march" or a way.
func Read(name string) (*format.Curves, error) {
	text, err := files.ReadFile("motions/" + name + ".csv")
	if err != nil {
		return nil, err
	}
	c, err := format.ReadMotionCSV(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// motion returns curves for a player, and the posture in which they begin.
func motion(name string) (*anim.Motion, Angles, error) {
	var first Angles
	c, err := Read(name)
	if err != nil {
		return nil, first, err
	}
	m := &anim.Motion{Name: name}
	rows := int64(time.Second) / int64(c.Rate) / int64(anim.Row)
	for _, j := range Joints {
		m.Joints = append(m.Joints, j.String())
	}
	for frame := range c.Frames {
		k := anim.Keyframe{Rows: rows}
		if frame == 0 {
			k.Rows = 0
		}
		for i, j := range Joints {
			v, ok := angleOf(c, j, frame)
			if !ok {
				return nil, first, fmt.Errorf("%s: no column of %s", name, j)
			}
			if frame == 0 {
				first[i] = v
			}
			k.Values = append(k.Values, micro(v))
		}
		m.Keyframes = append(m.Keyframes, k)
	}
	return m, first, nil
}

func angleOf(c *format.Curves, joint format.Joint, frame int) (float64, bool) {
	for i, j := range c.Joints {
		if j == joint {
			return c.Angles[i][frame], true
		}
	}
	return 0, false
}

func micro(deg float64) int32   { return int32(math.Round(deg * math.Pi / 180 * 1e6)) }
func degrees(rad int32) float64 { return float64(rad) * 180 / math.Pi / 1e6 }

// gait is one motion with its player.
type gait struct {
	player *anim.Player
	first  Angles
	start  [len(Joints)]int32
	now    [len(Joints)]int32
}

func newGait(name string) (*gait, error) {
	m, first, err := motion(name)
	if err != nil {
		return nil, err
	}
	g := &gait{first: first}
	body := make([]anim.Joint, len(m.Joints))
	for i, j := range m.Joints {
		body[i] = anim.Joint{Name: j}
		g.start[i] = micro(first[i])
	}
	g.player, err = anim.New(m, body, anim.Options{Rule: anim.Linear, Loops: anim.Forever})
	return g, err
}

func (g *gait) begin() error { return g.player.Start(g.start[:]) }

// phase says how far a Walker is.
type phase uint8

const (
	off phase = iota
	gathering
	stepping
	standing // and on the way to it
)

// Walker gives set-points for the legs. It reads no clock, and allocates nothing after New. It belongs to one goroutine.
type Walker struct {
	march *gait
	gaits [ways]*gait
	step  [ways]float64 // m or rad of a full step

	phase phase
	gait  *gait
	scale float64
	rate  float64
	steps int // still to go
	rows  float64
	half  bool // the first step of this cycle is behind
	at    Angles
}

// New returns a Walker without power over the legs.
func New() (*Walker, error) {
	w := &Walker{}
	var err error
	if w.march, err = newGait("march"); err != nil {
		return nil, err
	}
	for way := range ways {
		if w.gaits[way], err = newGait(way.String()); err != nil {
			return nil, err
		}
		if w.gaits[way].player.Rows() != w.march.player.Rows() {
			return nil, fmt.Errorf("%s: %d rows, want %d as march has", way, w.gaits[way].player.Rows(), w.march.player.Rows())
		}
		w.step[way] = w.measure(way)
	}
	return w, nil
}

// measure walks one cycle, and returns how far a step of it leads where nothing slips.
func (w *Walker) measure(way Way) float64 {
	const cycle = 2
	w.Begin(way, 1, cycle, 1, w.gaits[way].first)
	l := w.at.Legs()
	before := l.Place()
	down := before.Rest().Down
	var forward, turned float64
	for w.phase != standing {
		w.Step(anim.Row)
		l = w.at.Legs()
		after := l.Place()
		now := after.Rest().Down
		var both [legs.Count]bool
		for i := range both {
			both[i] = down[i] && now[i]
		}
		moved := legs.Step(&before, &after, both)
		forward, turned = forward+moved.X, turned+moved.Theta
		before, down = after, now
	}
	w.phase = off
	if way == Left || way == Right {
		return math.Abs(turned) / cycle
	}
	return math.Abs(forward) / cycle
}

// StepOf returns how far a full step goes, in m or rad.
func (w *Walker) StepOf(way Way) float64 { return w.step[way] }

// StepTime returns how long a step takes at full rate.
func (w *Walker) StepTime() time.Duration {
	return time.Duration(float64(w.march.player.Rows()) / stepRate * float64(anim.Row))
}

// Begin takes so many steps of a scale from above 0 to 1, at a rate from above 0 to 1, from where the legs are. It replaces what the Walker did.
func (w *Walker) Begin(way Way, scale float64, steps int, rate float64, at Angles) {
	w.gait, w.scale, w.steps, w.rate, w.at = w.gaits[way], scale, steps, rate, at
	w.phase, w.rows, w.half = gathering, 0, false
}

// Stand ends walking: the legs go to the posture between steps and stay there.
func (w *Walker) Stand() {
	if w.phase != off {
		w.phase = standing
	}
}

// Off gives up the power over the legs.
func (w *Walker) Off() { w.phase = off }

// On reports whether the Walker has power over the legs.
func (w *Walker) On() bool { return w.phase != off }

// Angles returns the set-points.
func (w *Walker) Angles() *Angles { return &w.at }

// Step lets dt pass. It returns true once the steps were taken and the legs stand still, while it still has power.
func (w *Walker) Step(dt time.Duration) (ended bool) {
	switch w.phase {
	case gathering:
		if w.toward(dt, func(i int) float64 { return w.mix(w.march.first[i], w.gait.first[i]) }) {
			if w.march.begin() != nil || w.gait.begin() != nil { // they have as many joints as New gave them
				w.phase = standing
				return false
			}
			w.phase = stepping
		}
	case stepping:
		w.rows += dt.Seconds() / anim.Row.Seconds() * w.rate
		for ; w.rows >= 1 && w.phase == stepping; w.rows-- {
			w.row()
		}
	case standing:
		return w.toward(dt, func(i int) float64 { return w.march.first[i] })
	}
	return false
}

func (w *Walker) mix(march, full float64) float64 { return march + w.scale*(full-march) }

// row plays one row, and counts the steps.
func (w *Walker) row() {
	w.march.player.Step(w.march.now[:])
	events := w.gait.player.Step(w.gait.now[:])
	for i := range w.at {
		w.at[i] = w.mix(degrees(w.march.now[i]), degrees(w.gait.now[i]))
	}
	if looped := events.Has(anim.Looped); looped || !w.half && w.gait.player.Progress() >= 0.5 {
		w.half = !looped
		if w.steps--; w.steps <= 0 {
			w.phase = standing
		}
	}
}

// toward moves all joints to a posture, so that they arrive together. It returns true when they have.
func (w *Walker) toward(dt time.Duration, want func(i int) float64) bool {
	most := 0.0
	for i, v := range w.at {
		most = max(most, math.Abs(want(i)-v))
	}
	part := 1.0
	if way := settle * dt.Seconds(); most > way {
		part = way / most
	}
	for i := range w.at {
		w.at[i] += part * (want(i) - w.at[i])
	}
	return part == 1
}
