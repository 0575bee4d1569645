package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kennel/infra/errs"
)

// Machine describes the machines that an installation is built of, and how far each may be used. The sizes are the caller's; the shares are ours.
type Machine struct {
	Cores  float64 `json:"cores"`
	Memory float64 `json:"memory_bytes"`
	Share  float64 `json:"share"` // of processors and memory that is planned for, 0 to 1: the rest is for peaks and for a node that died
}

// Limits of parts that are not a machine's size. Ours unless a setting is named.
const (
	mib, gib       = 1 << 20, 1 << 30
	walPerSecond   = 200 * mib     // of Postgres' log that disks and a synchronous standby take: a cautious figure for one primary
	natsPerConn    = 104 * 1000    // bytes of all NATS servers together for a connection, measured (ADR 0057)
	natsLogins     = 256           // logins a second of three NATS servers on two processors, measured there
	natsConns      = 50_000        // connections of a server (natsserver.Node.MaxConnections)
	backTime       = 10 * 60       // seconds in which all robots of a dead server are back
	poolConns      = 20            // of one kenneld (postgres.max_conns)
	postgresConns  = 500           // of one primary without a pooler before it
	leastNodes     = 3             // of brokers, of which one may die
	leastClouds    = 2             // kenneld
	indexAndBloat  = 1.3           // what vacuum has not given back yet
	postgresMemory = 0.25          // of a machine's memory for shared buffers; the hot tables must fit
	hotBytes       = 6000.0        // of tables and indexes that a connected robot's own rows touch
	day            = 86_400.0      // seconds
	month          = 30.4375 * day // seconds
)

// Options are decided by an operator.
type Options struct {
	Robots    int
	Behaviour Behaviour
	KeepDays  int // events.keep_days
	Machine   Machine
}

// Validate reports the first option that cannot work (kind Invalid).
func (o Options) Validate() error {
	switch {
	case o.Robots < 1 || o.Robots > 100_000_000:
		return errs.New(errs.Invalid, "robots %d: want 1 to 100,000,000", o.Robots)
	case o.KeepDays < 1 || o.KeepDays > 3650:
		return errs.New(errs.Invalid, "keep-days %d: want 1 to 3650", o.KeepDays)
	case !(o.Machine.Cores >= 1 && o.Machine.Cores <= 1024):
		return errs.New(errs.Invalid, "cores %v: want 1 to 1024", o.Machine.Cores)
	case !(o.Machine.Memory >= gib && o.Machine.Memory <= 64<<40):
		return errs.New(errs.Invalid, "memory %.0f bytes: want 1 GiB to 64 TiB", o.Machine.Memory)
	case !(o.Machine.Share > 0 && o.Machine.Share <= 1):
		return errs.New(errs.Invalid, "share %v: want above 0, at most 1", o.Machine.Share)
	}
	return nil
}

// Need lists the machines and amounts of an installation. Amounts are for the steady state; a storm of logins has its own line.
type Need struct {
	Robots int     `json:"robots"`
	Nodes  []Nodes `json:"nodes"`

	MessagesPerSecond   float64 `json:"messages_per_second"`
	EventsPerDay        float64 `json:"events_per_day"`
	StatementsPerSecond float64 `json:"statements_per_second"`
	UpPerSecond         float64 `json:"bytes_up_per_second"`
	DownPerSecond       float64 `json:"bytes_down_per_second"`
	WALPerSecond        float64 `json:"wal_bytes_per_second"`
	PostgresBytes       float64 `json:"postgres_bytes"` // of one server
	ObjectsPerMonth     float64 `json:"objects_per_month"`
	ObjectBytes         float64 `json:"object_bytes"` // stored, after KeepDays

	Limits []Limit `json:"limits"` // the first five, the nearest first
	Price  *Price  `json:"price,omitempty"`
}

// Nodes are machines of one kind.
type Nodes struct {
	Part   string  `json:"part"`
	Count  int     `json:"count"`
	Cores  float64 `json:"cores"`        // busy, of all together
	Memory float64 `json:"memory_bytes"` // likewise
	Disk   float64 `json:"disk_bytes"`   // each
}

// Limit is a bound that a growing installation meets.
type Limit struct {
	Name   string `json:"name"`
	Robots int    `json:"robots"` // at which it is reached
	Lift   string `json:"lift"`   // how it is lifted
}

// Plan returns what an installation with these options needs, by the costs c.
func Plan(c Costs, o Options) (Need, error) {
	if err := o.Validate(); err != nil {
		return Need{}, err
	}
	robots := float64(o.Robots)
	processes := leastClouds // kenneld: more of them make smaller groups, which cost more
	use := c.Second(o.Robots, processes, o.Behaviour)
	for range 10 {
		more := nodes(o.Machine, use[CPUKenneld], 0, leastClouds)
		if more <= processes {
			break
		}
		processes, use = more, c.Second(o.Robots, more, o.Behaviour)
	}
	events := c.ActsOf(o.Robots, processes, o.Behaviour)[Event] * day
	n := Need{
		Robots: o.Robots, MessagesPerSecond: use[Requests], EventsPerDay: events, StatementsPerSecond: use[Statements], UpPerSecond: use[Up], DownPerSecond: use[Down], WALPerSecond: use[WAL],
		PostgresBytes:   indexAndBloat * (robots*c.RowsPerRobot + events*float64(o.KeepDays)*c.RowsPerEvent),
		ObjectsPerMonth: use[Objects] * month, ObjectBytes: use[ObjectBytes] * day * float64(o.KeepDays),
	}
	kenneldMemory, _ := c.Memory(o.Robots)
	brokerMemory := robots * natsPerConn
	conns := int(math.Ceil(robots / (natsConns * o.Machine.Share)))
	n.Nodes = []Nodes{
		{"kenneld", nodes(o.Machine, use[CPUKenneld], kenneldMemory, leastClouds), use[CPUKenneld], kenneldMemory, 0},
		{"broker", max(conns, nodes(o.Machine, use[CPUBroker], brokerMemory, leastNodes)), use[CPUBroker], brokerMemory, 0},
		{"postgres", 2, use[CPUPostgres], robots * hotBytes / postgresMemory, n.PostgresBytes}, // the primary and its standby
		{"object store", nodes(o.Machine, use[CPUStore], 0, 1), use[CPUStore], 0, n.ObjectBytes},
	}
	n.Limits = c.limits(o, n, use)
	return n, nil
}

// nodes returns how many machines take so many busy processors and so much memory.
func nodes(m Machine, cores, memory float64, least int) int {
	return max(least, int(math.Ceil(cores/(m.Cores*m.Share))), int(math.Ceil(memory/(m.Memory*m.Share))))
}

// limits returns the five limits that a growing installation meets first.
func (c Costs) limits(o Options, n Need, use Use) []Limit {
	robots := float64(o.Robots)
	at := func(capacity, used float64) int { // robots at which used, which grows with them, reaches capacity
		if used <= 0 {
			return math.MaxInt32
		}
		return int(min(capacity/used*robots, math.MaxInt32))
	}
	m := o.Machine
	all := []Limit{
		{"processors of one Postgres primary", at(m.Cores*m.Share, use[CPUPostgres]), "a larger machine for Postgres; longer intervals of status and events; then a second installation"},
		{"log that one Postgres primary writes", at(walPerSecond, use[WAL]), "faster disks and network to the standby; larger batches of events (a longer flush)"},
		{"memory of one Postgres primary for the rows in use", at(m.Memory*postgresMemory, robots*hotBytes), "more memory for Postgres"},
		{"disk of one Postgres server (4 TiB)", at(4<<40, n.PostgresBytes), "a shorter events.keep_days: older events stay in the object store as Parquet; a larger disk"},
		{"processors of the embedded broker, which is one process on one machine", at(m.Cores*m.Share, use[CPUBroker]), "mqtt.broker: nats, with three servers or more"},
		{"memory of the embedded broker", at(m.Memory*m.Share, robots*c.BrokerPerRobot), "mqtt.broker: nats, with three servers or more"},
		{fmt.Sprintf("logins when one of %d brokers dies: all its robots back within %d minutes at %d a second", n.Nodes[1].Count, backTime/60, natsLogins),
			at(natsLogins*backTime*m.Cores/2, robots/float64(n.Nodes[1].Count)), "more broker servers, each with fewer robots"},
		{fmt.Sprintf("connections to Postgres (%d, %d for each kenneld)", postgresConns, poolConns), at(postgresConns/poolConns, float64(n.Nodes[0].Count)), "larger machines for kenneld, a smaller postgres.max_conns, or a pooler that keeps sessions"},
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return cmp.Compare(a.Robots, b.Robots) })
	return all[:5]
}
