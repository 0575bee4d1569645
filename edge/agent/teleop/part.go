package teleop

import (
	"kennel/edge/agent/host"
	"kennel/infra/api/owners"
	"kennel/infra/api/topics"
	"kennel/infra/runner"
)

// Part is the pilot as a part of agentd.
func (p *Pilot) Part() host.Part {
	return host.Part{
		Name:     "teleop",
		Services: []runner.Service{{Name: "pilot", Run: p.Run}},
		Hears:    []host.Hearing{host.On(p.Handle), host.On(p.consent)},
		Down:     map[string]func([]byte){topics.Live: p.Look},
		Commands: p.Executors(),
	}
}

// consent applies the owner's consent to data collection to the pictures of the display.
func (p *Pilot) consent(c host.Consent) {
	if p.display != nil {
		p.display.allowed.Store(owners.Status(c).MayCollect())
	}
}
