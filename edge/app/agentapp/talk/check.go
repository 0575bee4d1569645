package talk

import (
	"context"
	"net"

	"kennel/edge/agent/health/conncheck"
	"kennel/edge/agent/host"
	"kennel/edge/agent/link"
	"kennel/edge/agent/voice/chipperlink"
	"kennel/edge/env/platform"
	"kennel/infra/cli/version"
)

// Check tries the way to the cloud, to its end at the speech service (VEC-CLD-07). dial is below TLS; nil: the system's.
func Check(robot host.Robot, cloud *link.Cloud, dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context) conncheck.Report {
	speech := &chipperlink.Link{Thing: robot.Thing, OS: robot.OS, Secure: cloud.Secure, Dial: dial}
	return func(ctx context.Context) conncheck.Report {
		e, _ := platform.LoadEndpoints(robot.Root, robot.Hardware) // without them there is no connection, which the sound finds
		return conncheck.Run(ctx, conncheck.Config{Check: e.Check, ESN: robot.Thing.Serial(), AnkiVersion: robot.OS, VictorVersion: version.String(), TLS: cloud.TLS, Dial: dial,
			Speech: func(ctx context.Context) (int, error) {
				return speech.Check(ctx, conncheck.Frames, conncheck.FrameTime)
			}})
	}
}
