package voice

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"kennel/edge/core"
	"kennel/edge/coreclient"
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
	failTime = 2 * time.Second
	lampTime = 2 * time.Second // of a step
)

// lights shows the newest light on the body's lights that no program has, until ctx ends. It is beside the machine, so that a robotd that hangs
// delays no sound.
func lights(ctx context.Context, client *coreclient.Client, want <-chan light, log *slog.Logger) {
	var lease *coreclient.Lease
	for {
		var l light
		select {
		case <-ctx.Done():
			if lease != nil {
				lease.Release()
			}
			return
		case l = <-want:
		}
		if err := show(ctx, client, l, &lease); err != nil {
			log.DebugContext(ctx, "microphone lights not shown", logging.Err, err)
		}
	}
}

func show(ctx context.Context, client *coreclient.Client, l light, lease **coreclient.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, lampTime)
	defer cancel()
	tree, err := client.Tree(ctx)
	if err != nil {
		*lease = nil
		return err
	}
	var names []string
	var o core.Order
	for i := range tree.Nodes {
		if n := &tree.Nodes[i]; n.Actuator && slices.Contains(strings.Split(n.Interface, ", "), "RGBLed") && strings.HasPrefix(n.Full, "robot.body.led") {
			names = append(names, n.Full)
			o = o.And(core.Set(n.Full+".r", l[0])).And(core.Set(n.Full+".g", l[1])).And(core.Set(n.Full+".b", l[2]))
		}
	}
	if len(names) == 0 {
		return nil
	}
	if *lease == nil {
		if l == dark {
			return nil
		}
		if *lease, err = client.Claim(ctx, 0, claim.Behavior, names...); err != nil {
			*lease = nil
			return err
		}
	}
	if _, err = client.Do(ctx, o); err != nil || l == dark {
		(*lease).Release()
		*lease = nil
	}
	return err
}
