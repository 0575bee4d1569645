package release

import (
	"context"
	"net/http"

	"kennel/edge/agent/host"
	"kennel/edge/agent/localapi"
	"kennel/infra/api/ack"
	"kennel/infra/api/topics"
	"kennel/infra/runner"
)

// Part is the robot's updates as a part of agentd. Its requests are the command line's, and those of the programs that serve the robot's API and
// Bluetooth (part of VEC-UPD-01, VEC-SRV-08).
//
//	POST /update/start    Order -> Report   begins one, or says how far the one that runs is
//	POST /update/status   {} -> Report
//	POST /update/stop     {} -> Report
//	POST /update/restart  {} -> {}          starts the system that was installed
func (a *Agent) Part() host.Part {
	return host.Part{
		Name:     "updates",
		Services: []runner.Service{{Name: "release", Run: a.Run}},
		Hears: []host.Hearing{
			host.On(func(host.LinkUp) { a.Connected(true) }),
			host.On(func(host.LinkDown) { a.Connected(false) }),
			host.On(func(k ack.Ack) { a.HandleAck(k) }),
		},
		Down: map[string]func([]byte){topics.OTA: a.Hint},
		Local: map[string]http.Handler{
			"POST /update/start":  localapi.Answer(func(_ context.Context, o Order) (Report, error) { return a.Start(o) }),
			"POST /update/status": localapi.Answer(func(context.Context, localapi.Nothing) (Report, error) { return a.Report() }),
			"POST /update/stop":   localapi.Answer(func(context.Context, localapi.Nothing) (Report, error) { return a.Stop() }),
			"POST /update/restart": localapi.Answer(func(ctx context.Context, _ localapi.Nothing) (localapi.Nothing, error) {
				return localapi.Nothing{}, a.Restart(ctx)
			}),
		},
	}
}
