package motions

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/body/aibo/statics"
)

// ErrRefused: a motion cannot begin from where the body is, or the body would fall; the error says which of them and where.
var ErrRefused = errors.New("motion refused")

// ways are the edges of the graph of postures, in both directions: a body gets up from sleep by way of sitting. Each is a straight way of the joints.
var ways = [][2]string{{"sleep", "sit"}, {"sit", "stand"}}

// near is how far a joint may be from its angle in a posture for the body to be in that posture, micro-radian: own default.
const near = 260_000

// The slowest way between two postures (MTN-U02).
const (
	wayShare = 0.5
	wayRows  = 63 // half a second
)

// Plan is a motion and the ways through known postures to where it begins.
type Plan struct {
	From   string         // the posture in which the body is; "": none that is known
	Ways   []*anim.Motion // each named for its posture, one after the other
	Motion *anim.Motion
}

// Through returns the names of the postures on the way.
func (p *Plan) Through() (names []string) {
	for _, w := range p.Ways {
		names = append(names, w.Name)
	}
	return names
}

// NewPlan returns the way from where the joints of a body are, as Body has them, to the first keyframe of a motion for its model, and the motion. up is the
// world's direction up in the body's frame, as it rests now. Each part is tried on the statics of the model. ErrRefused says why there is no plan: the body is
// not on its paws, no way leads there without a fall, or the motion itself would make it tip.
func NewPlan(f *mtn.File, m aibo.Model, at []int32, up statics.Vec) (*Plan, error) {
	motion, err := Motion(f, m, false)
	if err != nil {
		return nil, err
	}
	if len(motion.Keyframes) == 0 {
		return nil, fmt.Errorf("%w: keyframes: expected at least 1, found 0", anim.ErrMotion)
	}
	p := &planner{model: m, body: Body(m), at: at, up: up}
	if s := NewBalance(m, up).Step(at); s.Attitude == statics.OnSide || s.Attitude == statics.OnBack {
		return nil, fmt.Errorf("%w: the body lies %v; put it on its paws", ErrRefused, s.Attitude)
	}
	out := &Plan{Motion: motion, From: p.posture(at)}
	if moves(motion) { // a motion of the head begins in any posture
		start := mtn.ParseName(f.Name).Start
		if err := p.lead(out, start); err != nil {
			return nil, err
		}
	}
	first := append([]int32(nil), p.at...)
	for i, j := range p.body {
		for c, name := range motion.Joints {
			if name == j.Name {
				first[i] = motion.Keyframes[0].Values[c]
			}
		}
	}
	if err := p.straight(out, "first keyframe", first); err != nil {
		return nil, err
	}
	fall, falls, err := Falls(m, motion, p.at, p.up)
	if err != nil {
		return nil, err
	}
	if falls {
		return nil, fmt.Errorf("%w: row %d, way from keyframe %d: the body would tip to the %v", ErrRefused, fall.Row, fall.Keyframe, fall.Toward)
	}
	return out, nil
}

// moves reports whether a motion moves legs, so that it matters how the body rests when it begins.
func moves(m *anim.Motion) bool {
	for _, name := range m.Joints {
		if strings.HasPrefix(name, "robot.body.leg") {
			return true
		}
	}
	return false
}

// planner finds the ways.
type planner struct {
	model aibo.Model
	body  []anim.Joint
	at    []int32
	up    statics.Vec
}

// posture returns the known posture whose legs are nearest to at, if all of them are near enough.
func (p *planner) posture(at []int32) string {
	best, name := int64(near), ""
	for _, word := range []string{"stand", "sit", "sleep"} {
		want, _ := Posture(p.model, word) // every model has them
		off := int64(0)
		for i, j := range p.body {
			if strings.HasPrefix(j.Name, "robot.body.leg") {
				off = max(off, max(int64(at[i])-int64(want[i]), int64(want[i])-int64(at[i])))
			}
		}
		if off < best {
			best, name = off, word
		}
	}
	return name
}

// path returns the postures after one to another, the shortest way.
func path(from, to string) (names []string) {
	before := map[string]string{from: from}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, w := range ways {
			for _, d := range [][2]string{w, {w[1], w[0]}} {
				if _, seen := before[d[1]]; d[0] == queue[0] && !seen {
					before[d[1]] = d[0]
					queue = append(queue, d[1])
				}
			}
		}
	}
	for at := to; at != from; at = before[at] {
		if _, reached := before[at]; !reached {
			return nil
		}
		names = append([]string{at}, names...)
	}
	return names
}

// lead adds the ways to a posture. A posture of which only the name is known leads through none: the way to the first keyframe is all.
func (p *planner) lead(out *Plan, to string) error {
	if _, known := Posture(p.model, to); !known {
		return nil
	}
	var routes [][]string
	if out.From != "" {
		routes = append(routes, path(out.From, to))
	} else {
		for _, first := range []string{to, "sit", "sleep", "stand"} { // whichever it reaches without a fall
			routes = append(routes, append([]string{first}, path(first, to)...))
		}
	}
	var refusals []error
	for _, route := range routes {
		q, ways := *p, len(out.Ways)
		var err error
		for _, word := range route {
			want, _ := Posture(p.model, word)
			if err = q.straight(out, word, want); err != nil {
				break
			}
		}
		if err == nil {
			*p = q
			return nil
		}
		out.Ways, refusals = out.Ways[:ways], append(refusals, err)
	}
	return errors.Join(refusals...)
}

// straight adds the straight way to where the joints shall be, unless they are there.
func (p *planner) straight(out *Plan, name string, want []int32) error {
	rows := int64(0)
	way := &anim.Motion{Name: name}
	for i, j := range p.body {
		off := math.Abs(float64(want[i]) - float64(p.at[i]))
		if off > 0 {
			rows = max(rows, wayRows)
		}
		if j.Speed > 0 {
			rows = max(rows, int64(math.Ceil(off/(wayShare*float64(j.Speed)*anim.Row.Seconds()))))
		}
		way.Joints = append(way.Joints, j.Name)
	}
	if rows == 0 {
		return nil
	}
	way.Keyframes = []anim.Keyframe{{Values: append([]int32(nil), p.at...)}, {Rows: rows, Values: append([]int32(nil), want...)}}
	fall, falls, err := Falls(p.model, way, p.at, p.up)
	if err != nil {
		return err
	}
	if falls {
		return fmt.Errorf("%w: the body would tip to the %v on the way to %s, after %d ms", ErrRefused, fall.Toward, name, fall.Row*anim.Row.Milliseconds())
	}
	p.up, p.at = fall.Up, append([]int32(nil), want...)
	out.Ways = append(out.Ways, way)
	return nil
}
