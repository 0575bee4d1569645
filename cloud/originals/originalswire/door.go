package originalswire

import (
	"kennel/cloud/fleet/registry"
	"kennel/cloud/originals/door"
	"kennel/cloud/originals/door/doorapi"
	"kennel/cloud/originals/door/doorpg"
	"kennel/cloud/page"
	"kennel/cloud/wire"
	"kennel/infra/telemetry"
)

// Watched is the door of a process.
type Watched struct{ *door.Door }

// Watch returns what watches its calls. prove returns the robot that a certificate or an access token proves.
func (w Watched) Watch(prove doorapi.Prove) *doorapi.Watch { return doorapi.NewWatch(w.Door, prove) }

// Door wires what watches the port, and its meter: one count for each code of package door, and one for all refusals of the token service.
func Door(b wire.Base, robots *registry.Service) (Watched, wire.Slice, error) {
	refused, err := b.Meters.Count(telemetry.Metric{Name: "kennel_door_refused_total",
		Help: "Calls and connections at the port of original robots that were refused or broke off. proof: what the token service did not believe."}, "code")
	if err != nil {
		return Watched{}, wire.Slice{}, err
	}
	known := map[string]bool{}
	for _, code := range door.Codes {
		known[code] = true
		refused.WithLabelValues(code) // a rate begins at 0
	}
	d := door.New(doorpg.New(b.Pool), robots, func(_, code string) {
		if !known[code] {
			code = "proof"
		}
		refused.WithLabelValues(code).Inc()
	}, b.Log)
	robots.Refuses(d.WhyNot)
	return Watched{d}, wire.Slice{
		Operations: func(wire.Doors) wire.Operations { return doorapi.Operations(d) },
		Runs:       []wire.Run{{Name: "original robots' door", Run: d.Run}},
		Pages:      []page.Extra{doorapi.Page(d)},
	}, nil
}
