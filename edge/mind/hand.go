package mind

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot"
	"kennel/edge/robot/claim"
)

// Our own limits.
const (
	lightsEvery = 90 * time.Millisecond  // orders of lights, while colours blend
	driveSpare  = 500 * time.Millisecond // that the deadline of a speed outlives its keyframe: a mindd that died must not drive on
	settleFor   = 400 * time.Millisecond // that the last motions may take after the clip
	queued      = 16                     // orders that wait for robotd
	shortest    = 20 * time.Millisecond  // of a motion of a joint
)

// hand moves the body for one clip: it has the claims, turns frames into orders, and hears how their motions end. frame and close belong to the loop; do sends
// the orders, so that the loop never waits for robotd.
type hand struct {
	core   *coreclient.Client
	body   *body
	lease  *coreclient.Lease // nil: the clip moves nothing
	orders chan order
	sent   chan struct{}        // closed when do has ended
	stop   func(why, by string) // ends the clip, once; does not block

	devices []string // that are claimed

	began  time.Duration
	moves  [2]int // number of the newest keyframe of head and lift
	speeds [2]float64
	drove  bool
	lights [3][3]uint8 // as a light of 255 steps shows them
	lit    bool
	litAt  time.Duration

	mu      sync.Mutex
	without clip.Parts // that are left out
	left    []mindlink.LeftOut
	newest  map[clip.Parts]int // number of the newest order
	moving  sync.WaitGroup
}

// order is one order of a part.
type order struct {
	part clip.Parts
	core.Order
}

// grab claims what a clip moves. The error says who has it.
func grab(ctx context.Context, c *coreclient.Client, b *body, parts clip.Parts, p claim.Priority) (*hand, error) {
	h := &hand{core: c, body: b, orders: make(chan order, queued), sent: make(chan struct{}), newest: map[clip.Parts]int{}, without: clip.AllParts &^ parts}
	if h.devices = b.claims(parts); len(h.devices) == 0 {
		return h, nil
	}
	var err error
	h.lease, err = c.Claim(ctx, 0, p, h.devices...)
	return h, err
}

// frame gives the orders that a frame is about.
func (h *hand) frame(now time.Duration, f *clip.Frame) {
	h.mu.Lock()
	has := f.Has &^ h.without
	h.mu.Unlock()
	for i, j := range [...]struct {
		part clip.Parts
		name string
		move clip.Move
	}{{clip.HeadMotor, "robot.body.head.pitch", f.HeadMove}, {clip.LiftMotor, "robot.body.arm.z", f.LiftMove}} {
		if has&j.part != 0 && j.move.N != h.moves[i] {
			h.moves[i] = j.move.N
			line := robot.Line{Name: j.name, Verb: robot.Put, Value: robot.F(j.move.To), Time: max(j.move.Takes, shortest)}
			h.give(order{j.part, core.Order{Steps: [][]robot.Line{{line}}}})
		}
	}
	if speeds := [2]float64{f.Speed, f.Turn}; has&clip.Wheels != 0 && (speeds != h.speeds || !h.drove && speeds != [2]float64{}) {
		h.drove = true
		o := core.Set("robot.xSpeed", f.Speed)
		if f.Turn != 0 || h.speeds[1] != 0 {
			o = o.And(core.Set("robot.yawSpeed", f.Turn))
		}
		h.speeds = speeds
		h.give(order{clip.Wheels, o.For(longestDrive)})
	}
	if lights := steps(&f.Lights); has&clip.BackpackLights != 0 && (lights != h.lights || !h.lit) && (!h.lit || now-h.litAt >= lightsEvery) {
		h.lights, h.lit, h.litAt = lights, true, now
		h.give(order{clip.BackpackLights, lightOrder(h.body, &f.Lights)})
	}
}

// sound plays a sound that the body stores, by its number.
func (h *hand) sound(n int) {
	h.mu.Lock()
	has := h.without&clip.Speaker == 0
	h.mu.Unlock()
	if has && h.body.bank != "" {
		h.give(order{clip.Speaker, storedOrder(h.body, n)})
	}
}

// storedOrder plays a sound that the body stores (part of GOSTAI-MAP-A-14).
func storedOrder(b *body, n int) core.Order {
	return core.Order{Steps: [][]robot.Line{{{Name: b.bank + ".play", Verb: robot.Call, Args: []robot.Value{robot.I(n)}}}}}
}

// turnBack turns the robot by an angle, counter-clockwise positive, in the time and with the offset and the half turns of a keyframe (part of VEC-AFF-19).
func (h *hand) turnBack(angle float64, r *clip.Return) {
	angle = math.Remainder(angle+float64(r.Offset)*math.Pi/180, 2*math.Pi)
	if !r.Shortest {
		angle += math.Copysign(float64(r.HalfRevs)*math.Pi, float64(r.Speed))
	}
	if math.Abs(angle) <= float64(r.Tolerance)*math.Pi/180 {
		return
	}
	o := core.Turn(-angle) // its right is positive
	o.Steps[0][0].Time = max(r.Takes(), shortest)
	h.give(order{clip.Wheels, o})
}

// longestDrive is the deadline of a speed; own default. Keyframes that drive longer are few, and their speed ends.
const longestDrive = 10*time.Second + driveSpare

// steps returns what lights of 255 steps show of colours.
func steps(lights *[3][3]float32) (s [3][3]uint8) {
	for i := range lights {
		for c, v := range lights[i] {
			s[i][c] = uint8(min(max(v, 0), 1)*math.MaxUint8 + 0.5)
		}
	}
	return s
}

// lightOrder sets the lights that a body has.
func lightOrder(b *body, lights *[3][3]float32) (o core.Order) {
	var step []robot.Line
	for i, name := range b.devices[clip.BackpackLights] {
		for c, channel := range [3]string{".r", ".g", ".b"} {
			step = append(step, robot.Line{Name: name + channel, Verb: robot.Put, Value: robot.F(float64(lights[i][c]))})
		}
	}
	return core.Order{Steps: [][]robot.Line{step}}
}

// give queues an order. robotd answers within a frame: a full queue is a robotd that hangs.
func (h *hand) give(o order) {
	select {
	case h.orders <- o:
	default:
		h.stop("the real-time core (robotd) does not answer", "")
	}
}

// do sends the orders until close.
func (h *hand) do(ctx context.Context) {
	defer close(h.sent)
	for o := range h.orders {
		h.mu.Lock()
		skip := h.without&o.part != 0
		h.newest[o.part]++
		n := h.newest[o.part]
		h.mu.Unlock()
		if skip {
			continue
		}
		m, err := h.core.Do(ctx, o.Order)
		if err != nil {
			h.refused(ctx, o.part, err)
			continue
		}
		h.moving.Add(1)
		m.Then(func() {
			end, err := m.Wait(context.Background()) // it has ended
			if err != nil {
				h.stop(err.Error(), "")
			}
			if err == nil && end.Outcome != corelink.Done && h.isNewest(o.part, n) {
				go func() { // the callback must not wait for robotd
					defer h.moving.Done()
					h.ended(ctx, o.part, end)
				}()
				return
			}
			h.moving.Done()
		})
	}
}

// isNewest reports whether no newer order of the part was sent: robotd ends the motion of one that was.
func (h *hand) isNewest(part clip.Parts, n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest[part] == n
}

// refused takes the refusal of an order.
func (h *hand) refused(ctx context.Context, part clip.Parts, err error) {
	var r *coreclient.Refused
	switch {
	case ctx.Err() != nil:
	case !errors.As(err, &r):
		h.stop(err.Error(), "")
	case r.Code == "not_held", r.Code == "gone", r.Code == "busy":
		h.stop(r.Detail, "")
	case coreclient.Passing(corelink.Ended{}, err): // the next keyframe may do
	default:
		h.leave(part, r.Detail)
	}
}

// ended takes the end of a motion that did not go as asked, and that no newer one replaced.
func (h *hand) ended(ctx context.Context, part clip.Parts, end corelink.Ended) {
	switch {
	case end.Outcome == "cancelled", end.Outcome == "released":
		// Another program has the part, or all motors were stopped: asking for it again says which.
		lease, err := h.core.Claim(ctx, time.Second, claim.Idle, h.body.claims(part)...)
		var r *coreclient.Refused
		switch {
		case err == nil:
			lease.Release()
			h.stop("all motors were stopped", "")
		case errors.As(err, &r):
			h.stop(r.Detail, "")
		}
	case end.Outcome == "expired", coreclient.Passing(end, nil):
	default:
		h.leave(part, end.Words())
	}
}

// leave leaves a part out of the rest of the clip.
func (h *hand) leave(part clip.Parts, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.without&part == 0 {
		h.without |= part
		h.left = append(h.left, mindlink.LeftOut{Track: part.String(), Reason: why})
	}
	if h.without == clip.AllParts {
		h.stop(why, "")
	}
}

// leftOut returns what was left out on the way.
func (h *hand) leftOut() []mindlink.LeftOut {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.left)
}

// owners looks whether another program has one of the clip's devices, as robotd reports the owners.
func (h *hand) owners(now time.Duration, program string, m *corelink.Motion) {
	if h.lease == nil || time.Duration(m.AtUS)*time.Microsecond < h.began || now < h.began+settleFor {
		return
	}
	for _, o := range m.Owners {
		if o.Program != program && slices.ContainsFunc(h.devices, func(d string) bool { return h.body.compact[d] == o.Device }) {
			h.stop(fmt.Sprintf("%s belongs to %s with priority %d", o.Device, o.Program, o.Priority), o.Program)
		}
	}
}

// close ends the orders, darkens the lights, gives the claims back and returns when that is done. A clip that was played to its end lets its last motions end.
func (h *hand) close(ctx context.Context, done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), coreclient.Patience)
	defer cancel()
	close(h.orders)
	<-h.sent
	if h.lit {
		_, _ = h.core.Do(ctx, lightOrder(h.body, &[3][3]float32{})) // a robotd that is gone shows nothing
	}
	if done {
		ended := make(chan struct{})
		go func() {
			h.moving.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(settleFor):
		}
	}
	_ = h.lease.End(ctx) // likewise
}
