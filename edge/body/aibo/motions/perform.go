package motions

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot/claim"
	"kennel/infra/backoff"
)

// Where returns where the joints of a running robot are, as Body has them. An error if one was not measured, or the robot has no such joint.
func Where(ctx context.Context, c *coreclient.Client, m aibo.Model) (at []int32, err error) {
	var names []string
	for _, j := range joints(m) {
		names = append(names, j.Slot())
	}
	values, err := c.Read(ctx, names...)
	if err != nil {
		return nil, err
	}
	for i := range values {
		rad, ok := values[i].Number()
		if !ok {
			return nil, fmt.Errorf("%s: not measured", names[i])
		}
		at = append(at, int32(math.Round(rad*1e6)))
	}
	return at, nil
}

// Span returns how long the plan takes: its ways and its motion.
func (p *Plan) Span() time.Duration {
	rows := int64(0)
	for _, part := range p.parts() {
		rows += part.Rows()
	}
	return time.Duration(rows) * anim.Row
}

// Perform does a plan on a running robot: its ways, then its motion, keyframe by keyframe, each within the time that the plan gives. The joints are claimed
// with a priority meanwhile. tell hears what begins: the name of a posture or of the motion. The error says what did not end as planned; the joints then rest where they are.
func (p *Plan) Perform(ctx context.Context, c *coreclient.Client, priority claim.Priority, tell func(name string)) error {
	var names []string
	for _, part := range p.parts() {
		names = append(names, part.Joints...)
	}
	lease, err := c.Claim(ctx, 0, priority, names...)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	defer lease.Release()
	for _, part := range p.parts() {
		tell(part.Name)
		o, err := part.Order()
		if err != nil {
			return err
		}
		for i := range o.Steps {
			if i == 0 {
				continue // the way before it leads there
			}
			one := o
			one.Steps = o.Steps[i : i+1]
			if err := keyframe(ctx, c, one); err != nil {
				return fmt.Errorf("%s, keyframe %d: %w", part.Name, i, err)
			}
		}
	}
	return nil
}

// Tries of a keyframe that the robot's own computer interrupts, because it is busy for a moment; own defaults.
const (
	tries      = 50
	retryAfter = 100 * time.Millisecond
)

// keyframe brings the joints where o says, also if it takes several tries.
func keyframe(ctx context.Context, c *coreclient.Client, o core.Order) error {
	for n := 1; ; n++ {
		end, err := once(ctx, c, o)
		if err == nil && end.Outcome == corelink.Done {
			return nil
		}
		if n == tries || !coreclient.Passing(end, err) {
			return cmp.Or(err, error(&coreclient.Unfinished{Ended: end}))
		}
		if err := backoff.Sleep(ctx, retryAfter); err != nil {
			return err
		}
	}
}

func once(ctx context.Context, c *coreclient.Client, o core.Order) (corelink.Ended, error) {
	motion, err := c.Do(ctx, o)
	if err != nil {
		return corelink.Ended{}, err
	}
	limit, cancel := context.WithTimeout(ctx, o.Longest())
	defer cancel()
	return motion.Wait(limit)
}

// parts returns the ways and the motion.
func (p *Plan) parts() []*anim.Motion { return append(p.Ways[:len(p.Ways):len(p.Ways)], p.Motion) }
