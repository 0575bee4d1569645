package teleop

import (
	"kennel/edge/agent/host"
	"kennel/infra/api/topics"
	"kennel/infra/runner"
)

// Part is the pilot as a part of agentd.
func (p *Pilot) Part() host.Part {
	return host.Part{
		Name:     "teleop",
		Services: []runner.Service{{Name: "pilot", Run: p.Run}},
		Hears:    []host.Hearing{host.On(p.Handle)},
		Down:     map[string]func([]byte){topics.Live: p.Look},
		Commands: p.Executors(),
	}
}
