package parameters

import (
	"kennel/edge/agent/docs"
	"kennel/edge/agent/host"
	"kennel/infra/api/status"
	"kennel/infra/runner"
)

// Part is the keeper as a part of agentd.
func (k *Keeper) Part() host.Part {
	return host.Part{
		Name:     "parameters",
		Services: []runner.Service{{Name: "parameters", Run: k.Run}},
		Hears:    []host.Hearing{host.On(func(c docs.Change) { k.Changed(c.Doc) })},
		Fill: func(m *status.Message) {
			if waiting := k.Waiting(); waiting != "" {
				m.Tell(status.Problem{Kind: status.KindParameters, Text: waiting})
			}
		},
	}
}
