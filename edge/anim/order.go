package anim

import (
	"fmt"
	"time"

	"kennel/edge/core"
	"kennel/edge/robot"
)

// Order returns the motion as a trajectory for a body's real-time core: one step for each keyframe, in which all joints move together for as long as the
// motion says. The way to the first keyframe takes as long as the body thinks right. Between two steps the body rests, so that a motion with close keyframes
// is better played row by row. A joint that is listed twice moves as its first place says. ErrMotion for a segment of more than an hour, or a motion that
// a Player refuses.
func (m *Motion) Order() (core.Order, error) {
	var body []Joint
	for _, name := range m.Joints {
		body = append(body, Joint{Name: name})
	}
	s, _, err := compile(m, body, Options{Speed: 1})
	if err != nil {
		return core.Order{}, err
	}
	var o core.Order
	for i := range s.keyframes {
		var step []robot.Line
		for c, j := range s.joints {
			rad := float64(s.values[i*len(s.joints)+c]) / 1e6
			l := robot.Line{Name: body[j].Name, Verb: robot.Put, Value: robot.F(rad), Time: time.Duration(min(s.rows[i], maxRows/int64(Row))) * Row}
			if err := l.Check(); err != nil {
				return core.Order{}, fmt.Errorf("%w: keyframe %d: %w", ErrMotion, i, err)
			}
			step = append(step, l)
		}
		o.Steps = append(o.Steps, step)
	}
	return o, nil
}
