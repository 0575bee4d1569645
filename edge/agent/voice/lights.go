package voice

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/infra/logging"
)

// light is a state of the robot's ears that its lights show, as red, green and blue.
type light [3]float64

// The lights. The source has blue (VEC-MIC-09); the others are own defaults.
var (
	dark   = light{}
	blue   = light{0, 0, 1}
	orange = light{1, 0.4, 0} // it cannot understand now
	dimRed = light{0.3, 0, 0} // its microphones are switched off (VEC-WAK-06); own default
)

const (
	failTime  = 2 * time.Second
	lampTime  = 2 * time.Second // of a step
	lampAgain = 2 * time.Second
)

// lights shows the newest light on the body's lights that no program has, until ctx ends. It is beside the machine, so that a robotd that hangs
// delays no sound. After again it looks whether what it shows is still there: a robotd that was restarted shows nothing, and a program that had the lights may be done.
func lights(ctx context.Context, client *coreclient.Client, want <-chan light, again time.Duration, log *slog.Logger) {
	var held lamps
	var l light
	var look <-chan time.Time // nil: nothing is to be shown
	for {
		select {
		case <-ctx.Done():
			held.lease.Release()
			return
		case l = <-want:
		case <-look:
			if held.kept(ctx) {
				look = time.After(again)
				continue
			}
		}
		if err := held.show(ctx, client, l); err != nil {
			log.DebugContext(ctx, "microphone lights not shown", logging.Err, err)
		}
		if look = nil; l != dark {
			look = time.After(again)
		}
	}
}

// lamps are the lights that are claimed. Those that say that the microphones are switched off go before every program, but are not the ones that clips use, so
// that a clip plays as ever; the others give way (part of VEC-LGT-06).
type lamps struct {
	lease *coreclient.Lease // nil: none
	at    claim.Priority
}

// kept reports whether lights are still held.
func (h *lamps) kept(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lampTime)
	defer cancel()
	if h.lease == nil {
		return false
	}
	if h.lease.Renew(ctx, 0) == nil {
		return true
	}
	h.lease.Release() // of a robotd that was only slow
	h.lease = nil
	return false
}

func (h *lamps) show(ctx context.Context, client *coreclient.Client, l light) error {
	ctx, cancel := context.WithTimeout(ctx, lampTime)
	defer cancel()
	at := claim.Behavior
	switch {
	case l == dark:
		at = h.at
	case l == dimRed:
		at = claim.Indicator
	}
	if h.lease != nil && at != h.at {
		if err := h.show(ctx, client, dark); err != nil {
			return err
		}
	}
	tree, err := client.Tree(ctx)
	if err != nil {
		h.lease = nil
		return err
	}
	var names []string
	for i := range tree.Nodes {
		if n := &tree.Nodes[i]; n.Actuator && slices.Contains(strings.Split(n.Interface, ", "), "RGBLed") && strings.HasPrefix(n.Full, "robot.body.led") {
			names = append(names, n.Full)
		}
	}
	if at == claim.Indicator && len(names) > mindlink.Lights {
		names = names[mindlink.Lights:]
	}
	if len(names) == 0 || h.lease == nil && l == dark {
		return nil
	}
	var o core.Order
	for _, name := range names {
		o = o.And(core.Set(name+".r", l[0])).And(core.Set(name+".g", l[1])).And(core.Set(name+".b", l[2]))
	}
	if h.lease == nil {
		if h.lease, err = client.Claim(ctx, 0, at, names...); err != nil {
			h.lease = nil
			return err
		}
		h.at = at
	}
	if _, err = client.Do(ctx, o); err != nil || l == dark {
		h.lease.Release()
		h.lease = nil
	}
	return err
}
