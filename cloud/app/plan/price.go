package plan

import (
	"math"

	"kennel/infra/config"
	"kennel/infra/errs"
)

// Prices are those of a provider, each for a month unless it says otherwise. Kennel knows no real price: prices.example.yaml has placeholders.
type Prices struct {
	Currency        string  `koanf:"currency"`
	Core            float64 `koanf:"core"`              // a processor
	MemoryGiB       float64 `koanf:"memory_gib"`        //
	DiskGiB         float64 `koanf:"disk_gib"`          // of a database's disk
	ObjectGiB       float64 `koanf:"object_gib"`        // stored in the object store
	ObjectPuts      float64 `koanf:"object_puts"`       // a million of them
	TrafficIn       float64 `koanf:"traffic_in_gib"`    // from the internet
	TrafficOut      float64 `koanf:"traffic_out_gib"`   // to it
	MessagesMillion float64 `koanf:"messages_million"`  // of a broker that is a service; 0 with one's own
	Connection      float64 `koanf:"connection_months"` // a robot's connection for a month, of a broker that is a service; 0 with one's own
}

// Price is a month's cost.
type Price struct {
	Currency string  `json:"currency"`
	Month    float64 `json:"month"`
	Robot    float64 `json:"robot_month"`
	// Parts are the shares of Month.
	Machines, Disks, Objects, Traffic, Service float64
}

// LoadPrices reads a file of prices (YAML). A key that is unknown, and a price that is missing, is an error (kind Invalid).
func LoadPrices(file string) (Prices, error) {
	unset := math.NaN()
	p := Prices{Core: unset, MemoryGiB: unset, DiskGiB: unset, ObjectGiB: unset, ObjectPuts: unset, TrafficIn: unset, TrafficOut: unset}
	if err := config.Load(&p, file, "", nil); err != nil {
		return p, err
	}
	if p.Currency == "" {
		return p, errs.New(errs.Invalid, "prices %s: currency is missing", file)
	}
	for name, v := range map[string]float64{"core": p.Core, "memory_gib": p.MemoryGiB, "disk_gib": p.DiskGiB, "object_gib": p.ObjectGiB, "object_puts": p.ObjectPuts,
		"traffic_in_gib": p.TrafficIn, "traffic_out_gib": p.TrafficOut, "messages_million": p.MessagesMillion, "connection_months": p.Connection} {
		if math.IsNaN(v) {
			return p, errs.New(errs.Invalid, "prices %s: %s is missing: write 0 for what costs nothing", file, name)
		}
		if v < 0 || math.IsInf(v, 0) {
			return p, errs.New(errs.Invalid, "prices %s: %s is %v: want 0 or more", file, name, v)
		}
	}
	return p, nil
}

// Of returns what an installation that needs n on such machines costs.
func (p Prices) Of(n Need, m Machine) Price {
	out := Price{Currency: p.Currency}
	for _, part := range n.Nodes {
		out.Machines += float64(part.Count) * (m.Cores*p.Core + m.Memory/gib*p.MemoryGiB)
		if part.Part == "postgres" {
			out.Disks += float64(part.Count) * part.Disk / gib * p.DiskGiB
		}
	}
	out.Objects = n.ObjectBytes/gib*p.ObjectGiB + n.ObjectsPerMonth/1e6*p.ObjectPuts
	out.Traffic = month / gib * (n.UpPerSecond*p.TrafficIn + n.DownPerSecond*p.TrafficOut)
	out.Service = n.MessagesPerSecond*month/1e6*p.MessagesMillion + float64(n.Robots)*p.Connection
	out.Month = out.Machines + out.Disks + out.Objects + out.Traffic + out.Service
	out.Robot = out.Month / float64(n.Robots)
	return out
}
