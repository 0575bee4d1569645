package voice

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"kennel/edge/coreclient"
	"kennel/edge/robot/claim"
	"kennel/infra/logging"
)

// light is a state of the robot's ears that its lights show.
type light string

// The lights, as red, green and blue. The source has blue (VEC-MIC-09); the others are own defaults.
const (
	dark     light = ""
	blue     light = "0 0 1"
	orange   light = "1 0.4 0" // it cannot understand now
	dimRed   light = "0.3 0 0" // its microphones are switched off (VEC-WAK-06)
	failTime       = 2 * time.Second
	lampTime       = 2 * time.Second // of a step
)

// lights shows the newest light on the body's lights that no program has, until ctx ends. It is beside the machine, so that a robotd that hangs
// delays no sound.
func lights(ctx context.Context, core *coreclient.Client, want <-chan light, log *slog.Logger) {
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
		if err := show(ctx, core, l, &lease); err != nil {
			log.DebugContext(ctx, "lights of the microphones not shown", logging.Err, err)
		}
	}
}

func show(ctx context.Context, core *coreclient.Client, l light, lease **coreclient.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, lampTime)
	defer cancel()
	tree, err := core.Tree(ctx)
	if err != nil {
		*lease = nil
		return err
	}
	var names, lines []string
	rgb := strings.Fields(string(l))
	if l == dark {
		rgb = []string{"0", "0", "0"}
	}
	for i := range tree.Nodes {
		if n := &tree.Nodes[i]; n.Actuator && slices.Contains(strings.Split(n.Interface, ", "), "RGBLed") && strings.HasPrefix(n.Full, "robot.body.led") {
			names = append(names, n.Full)
			for c, v := range rgb {
				lines = append(lines, n.Full+"."+"rgb"[c:c+1]+" = "+v)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	if *lease == nil {
		if l == dark {
			return nil
		}
		if *lease, err = core.Claim(ctx, 0, claim.Behavior, names...); err != nil {
			*lease = nil
			return err
		}
	}
	if _, err = core.Do(ctx, strings.Join(lines, "; "), lampTime); err != nil || l == dark {
		(*lease).Release()
		*lease = nil
	}
	return err
}
