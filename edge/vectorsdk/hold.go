package vectorsdk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/infra/api/live"
	"kennel/infra/api/vectorpb"
)

// Times of a hold; own defaults.
const (
	claimFor   = 3 * time.Second  // each claim, renewed with each beat: a frozen agentd loses it
	settled    = time.Second      // after this time robotd's report of the owners counts
	driveFor   = 30 * time.Second // the deadline of a speed of the wheels
	driveAgain = 10 * time.Second // it is given again after this time
	reaction   = time.Second      // a reflex ends a motion before its event is heard
	ease       = 2 * time.Second  // that the wait for an action outlives its deadline
)

// The tracks of the body that this interface moves (part of VEC-CTL-23).
const (
	wheels = iota
	head
	lift
	tracks
)

// prefixes of the full names of the tracks' actuators.
var prefixes = [tracks]string{wheels: "robot.body.wheel", head: "robot.body.head.pitch", lift: "robot.body.arm"}

// hold has the claims of the connection with control.
type hold struct {
	f        *Facade
	own      *coreclient.Client
	done     func()
	program  string
	since    time.Time
	tracks   [tracks]*track // nil: the body has none
	priority atomic.Uint32  // claim.Priority
	over     chan struct{}  // closed at the end
	plays    atomic.Int32   // animations under way, for which the robot's character has motors of the holder
	played   atomic.Int64   // when the last of them ended, Unix nanoseconds
	markers  atomic.Bool    // it lets the robot look for objects
}

// track is a part of the body with its claim. An order of the head does not wait for the wheels.
type track struct {
	h       *hold
	devices []string // full names
	names   []string // all names

	mu      sync.Mutex // held while robotd answers
	lease   *coreclient.Lease
	action  *action // under way
	order   core.Order
	ordered time.Time                         // when the order of speed was given last
	levels  [2]float64                        // rad/s of the wheels
	speed   atomic.Pointer[coreclient.Motion] // of a speed that lasts; nil: none
	rested  atomic.Int64                      // when the last motion ended, in ns since 1970
	resume  atomic.Bool                       // the next beat gives order again: the loop was late
}

// newHold claims the motors for a client.
func (f *Facade) newHold(ctx context.Context, c client, p claim.Priority) (*hold, error) {
	own, done, err := f.cfg.Gateway.Connect(ctx, c.Caller)
	if err != nil {
		return nil, err
	}
	return f.holdOf(ctx, own, done, c.Program(), p, wheels, head, lift)
}

// holdOf claims the motors of some tracks for the program with the connection own. done is called once the hold is over, or at once if there is none.
func (f *Facade) holdOf(ctx context.Context, own *coreclient.Client, done func(), program string, p claim.Priority, which ...int) (*hold, error) {
	h := &hold{f: f, own: own, done: done, program: program, since: time.Now(), over: make(chan struct{})}
	h.priority.Store(uint32(p))
	tree, err := own.Tree(ctx)
	if err != nil {
		done()
		return nil, err
	}
	for _, i := range which {
		t := &track{h: h}
		for _, n := range tree.Nodes {
			if n.Actuator && strings.HasPrefix(n.Full, prefixes[i]) {
				t.devices = append(t.devices, n.Full)
				t.names = append(append(t.names, n.Full, n.Compact), n.Aliases...)
			}
		}
		if len(t.devices) == 0 {
			continue
		}
		if t.lease, err = own.Claim(ctx, claimFor, p, t.devices...); err != nil {
			h.end()
			return nil, err
		}
		h.tracks[i] = t
	}
	return h, nil
}

func (h *hold) reserves() bool {
	return claim.Priority(h.priority.Load()) == claimPriority(vectorpb.ControlRequest_RESERVE_CONTROL)
}

// seek lets the robot look for objects, or not for this holder. It reports whether it did.
func (h *hold) seek(on bool) (did bool) {
	did = h.markers.Swap(on)
	switch {
	case on && !did:
		h.f.looks.want(1)
	case !on && did:
		h.f.looks.want(-1)
	}
	return did
}

// end gives all back. What still moves stops, and what the holder let the robot look for ends with an event (part of VEC-IMG-09).
func (h *hold) end() {
	close(h.over)
	if h.seek(false) {
		h.f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_VisionModesAutoDisabled{VisionModesAutoDisabled: &vectorpb.VisionModesAutoDisabled{}}})
	}
	ctx, cancel := context.WithTimeout(context.Background(), coreclient.Patience)
	defer cancel()
	for _, t := range h.tracks {
		if t != nil {
			t.mu.Lock()
			_ = t.lease.End(ctx) // a robotd that is gone holds nothing
			t.mu.Unlock()
		}
	}
	h.done()
}

func (h *hold) ended() bool {
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

// raise claims all with a higher priority. What moves continues.
func (h *hold) raise(ctx context.Context, p claim.Priority) error {
	if claim.Priority(h.priority.Load()) == p {
		return nil
	}
	for _, t := range h.tracks {
		if t == nil {
			continue
		}
		t.mu.Lock()
		lease, err := h.own.Claim(ctx, claimFor, p, t.devices...)
		if err == nil {
			err, t.lease = t.lease.End(ctx), lease
		}
		t.mu.Unlock()
		if err != nil {
			return err
		}
	}
	h.priority.Store(uint32(p))
	return nil
}

// renew lets the claims last, and speeds that were set. It is false when a claim has ended, or a program of higher priority has a motor.
func (h *hold) renew(ctx context.Context) bool {
	for _, t := range h.tracks {
		if t == nil {
			continue
		}
		t.mu.Lock()
		err := t.lease.Renew(ctx, claimFor)
		if resume := t.resume.Swap(false) && t.action == nil; err == nil && (resume || t.speed.Load() != nil && time.Since(t.ordered) > driveAgain) {
			if err = t.set(ctx, t.order); coreclient.Passing(corelink.Ended{}, err) {
				t.resume.Store(true)
				err = nil
			}
		}
		t.mu.Unlock()
		if err != nil {
			return false
		}
	}
	now := h.f.cfg.Gateway.Reports().Motion
	if now == nil || time.Since(h.since) < settled {
		return true
	}
	lent := h.plays.Load() > 0 || time.Since(time.Unix(0, h.played.Load())) < settled // an older report still names the character
	return !slices.ContainsFunc(now.Owners, func(o live.Owner) bool {
		return o.Program != h.program && !(lent && o.Program == mindlink.Program) && slices.ContainsFunc(h.tracks[:], func(t *track) bool { return t != nil && slices.Contains(t.names, o.Device) })
	})
}

// set gives an order for a speed that lasts. t.mu is held.
func (t *track) set(ctx context.Context, o core.Order) error {
	m, err := t.h.own.Do(ctx, o)
	if err != nil {
		return err
	}
	t.order, t.ordered = o, time.Now()
	t.resume.Store(false)
	t.speed.Store(m)
	m.Then(func() {
		end, err := m.Wait(context.Background()) // it has ended
		t.rested.Store(time.Now().UnixNano())
		if t.speed.CompareAndSwap(m, nil) && err == nil && coreclient.Passing(end, nil) {
			t.resume.Store(true)
		}
	})
	return nil
}

// rest ends what moves on the track and keeps the claim, unless another program is faster: robotd has no order that ends one motion, so the claim is given
// back and taken again (ADR 0046). t.mu is held.
func (t *track) rest(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // a client that leaves in between must not cost the claim
	if err := t.lease.End(ctx); err != nil {
		return err
	}
	if m := t.speed.Swap(nil); m != nil {
		patient, cancel := context.WithTimeout(ctx, coreclient.Patience) // all other calls of the holder wait for t.mu
		defer cancel()
		if _, err := m.Wait(patient); err != nil {
			return err
		}
	}
	lease, err := t.h.own.Claim(ctx, claimFor, claim.Priority(t.h.priority.Load()), t.devices...)
	if err == nil {
		t.lease = lease
	}
	return err
}

var (
	errBusy = errors.New("something else moves on the track")
	errOver = errors.New("control has ended")
)

// action is an action under way.
type action struct {
	tag       int32
	cancelled atomic.Bool
}

// begin gives the order of an action.
func (t *track) begin(ctx context.Context, a *action, o core.Order) (*coreclient.Motion, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.h.ended():
		return nil, errOver
	case t.action != nil && t.action != a, t.speed.Load() != nil:
		return nil, errBusy
	}
	m, err := t.h.own.Do(ctx, o)
	if err == nil {
		t.action = a
		t.resume.Store(false)
	}
	return m, err
}

// finish frees the track.
func (t *track) finish(a *action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.action == a {
		t.action = nil
		t.rested.Store(time.Now().UnixNano())
	}
}

// cancel ends the action with a tag, if it is under way.
func (h *hold) cancel(ctx context.Context, tag int32) (found bool, err error) {
	for _, t := range h.tracks {
		if t == nil {
			continue
		}
		t.mu.Lock()
		if t.action != nil && t.action.tag == tag {
			found = true
			t.action.cancelled.Store(true)
			err = t.rest(ctx)
		}
		t.mu.Unlock()
	}
	return found, err
}

// driving reports whether an action or a speed moves the wheels, or did a moment ago.
func (h *hold) driving() bool {
	t := h.tracks[wheels]
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.action != nil || t.speed.Load() != nil || time.Since(time.Unix(0, t.rested.Load())) < reaction
}

// busy reports whether a tag is in use.
func (h *hold) busy(tag int32) bool {
	return slices.ContainsFunc(h.tracks[:], func(t *track) bool {
		if t == nil {
			return false
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.action != nil && t.action.tag == tag
	})
}
