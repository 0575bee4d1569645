// Package plan says what an installation for a number of robots needs: from costs that were measured on one machine, by acts of a robot that anyone can
// count, to processors, memory, disks and traffic, the limits that are met first, and with prices the cost of a robot and month.
//
//	Behaviour -> acts of a robot and second -> times the measured cost of an act -> Need of the installation -> nodes, limits, price
//
// Everything is linear in the number of robots but for what one machine can hold. cmd/bench measures the costs (bench -costs) and compares what the
// model says of more robots with what they use.
package plan

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"kennel/infra/errs"
)

// Act is something a robot does that costs the cloud something.
type Act string

// The acts. Connected is a second of being connected; Login includes the requests that a robot makes when it connects.
const (
	Connected Act = "connected"
	Status    Act = "status"
	Batch     Act = "batch" // of events
	Group     Act = "group" // of batches that one transaction stores, with one object
	Event     Act = "event"
	Setting   Act = "setting"
	Login     Act = "login"
)

// Acts lists them.
var Acts = []Act{Connected, Status, Batch, Group, Event, Setting, Login}

// Quantity is something that acts cost.
type Quantity string

// The quantities: processor time in seconds, sizes in bytes.
const (
	CPUKenneld  Quantity = "cpu_kenneld"
	CPUBroker   Quantity = "cpu_broker"
	CPUPostgres Quantity = "cpu_postgres"
	CPUStore    Quantity = "cpu_store"
	Up          Quantity = "bytes_up"   // from robots, as TLS carries them
	Down        Quantity = "bytes_down" // to robots
	WAL         Quantity = "wal_bytes"
	Statements  Quantity = "statements"
	Requests    Quantity = "messages" // from robots: MQTT publications that kenneld got
	Objects     Quantity = "objects"  // put into the object store
	ObjectBytes Quantity = "object_bytes"
)

// Quantities lists them.
var Quantities = []Quantity{CPUKenneld, CPUBroker, CPUPostgres, CPUStore, Up, Down, WAL, Statements, Requests, Objects, ObjectBytes}

// Use is an amount of each quantity.
type Use map[Quantity]float64

// CPU returns the processor time of all parts, in seconds.
func (u Use) CPU() float64 { return u[CPUKenneld] + u[CPUBroker] + u[CPUPostgres] + u[CPUStore] }

// Costs holds what acts cost on one machine.
type Costs struct {
	Measured string `json:"measured"` // date
	Machine  string `json:"machine"`
	Version  string `json:"version"`
	Command  string `json:"command"` // that measures it again
	Note     string `json:"note,omitempty"`
	Robots   int    `json:"robots"` // light robots that it was measured with

	Idle Use         `json:"idle_second"` // of a second without any robot
	Acts map[Act]Use `json:"acts"`

	KenneldBytes    float64 `json:"kenneld_bytes"`    // memory without robots
	KenneldPerRobot float64 `json:"kenneld_per_conn"` // and for each connected one
	BrokerBytes     float64 `json:"broker_bytes"`
	BrokerPerRobot  float64 `json:"broker_per_conn"`
	RowsPerRobot    float64 `json:"postgres_per_robot"` // bytes in Postgres of a registered robot that has done nothing yet
	RowsPerEvent    float64 `json:"postgres_per_event"` // bytes in Postgres, with indexes, as long as events are kept

	GroupSeconds       float64 `json:"group_seconds"`        // from the first batch of a group until the next group can begin; batches that arrive meanwhile join it
	EventsPerTelemetry float64 `json:"events_per_telemetry"` // that the agent makes at each period
	EventsPerLogin     float64 `json:"events_per_login"`
}

//go:embed costs.json
var measured []byte

// Measured returns the costs that are part of this version.
func Measured() (Costs, error) { return ParseCosts(measured) }

// most bounds a number of the file: far above every real one, and no overflow when it is multiplied.
const most = 1e12

// ParseCosts reads the file that bench -costs writes.
func ParseCosts(b []byte) (Costs, error) {
	var c Costs
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, errs.New(errs.Invalid, "costs: %w", err)
	}
	for _, a := range Acts {
		u, ok := c.Acts[a]
		if !ok {
			return c, errs.New(errs.Invalid, "costs: the act %s is missing", a)
		}
		for q, v := range u {
			if !slices.Contains(Quantities, q) || !(v >= 0 && v <= most) {
				return c, errs.New(errs.Invalid, "costs: %s of %s is %v: want a known quantity of 0 to %v", q, a, v, most)
			}
		}
	}
	for q, v := range c.Idle {
		if !slices.Contains(Quantities, q) || !(v >= 0 && v <= most) {
			return c, errs.New(errs.Invalid, "costs: %s of an idle second is %v: want a known quantity of 0 to %v", q, v, most)
		}
	}
	for _, v := range []float64{c.KenneldBytes, c.KenneldPerRobot, c.BrokerBytes, c.BrokerPerRobot, c.RowsPerRobot, c.RowsPerEvent, c.GroupSeconds, c.EventsPerTelemetry, c.EventsPerLogin} {
		if !(v >= 0 && v <= most) {
			return c, errs.New(errs.Invalid, "costs: a number is %v: want 0 to %v", v, most)
		}
	}
	if len(c.Acts) != len(Acts) || c.Robots < 1 || c.BrokerPerRobot <= 0 || c.RowsPerEvent <= 0 {
		return c, errs.New(errs.Invalid, "costs: %d acts, %d robots, %v and %v bytes: want %d acts and positive numbers", len(c.Acts), c.Robots, c.BrokerPerRobot, c.RowsPerEvent, len(Acts))
	}
	return c, nil
}

// Phase is a measurement: what happened, and what it cost beyond the idle cost of its time.
type Phase struct {
	Done map[Act]float64
	Used Use
}

// Fit returns the cost of each act that explains the phases best (least squares, none below 0). It needs at least as many phases as acts, in which
// the acts' shares differ.
func Fit(phases []Phase) (map[Act]Use, error) {
	if len(phases) < len(Acts) {
		return nil, errs.New(errs.Invalid, "%d phases for %d acts", len(phases), len(Acts))
	}
	out := map[Act]Use{}
	for _, a := range Acts {
		out[a] = Use{}
	}
	for _, q := range Quantities {
		free := slices.Clone(Acts)
		for {
			c, err := solve(phases, free, q)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", q, err)
			}
			least := 0
			for i := range c {
				if c[i] < c[least] {
					least = i
				}
			}
			if c[least] >= 0 {
				for i, a := range free {
					out[a][q] = c[i]
				}
				break
			}
			out[free[least]][q] = 0
			if free = slices.Delete(free, least, least+1); len(free) == 0 {
				break
			}
		}
	}
	return out, nil
}

// solve is the least-squares solution for one quantity, by the normal equations of weighted columns that are scaled to length 1.
func solve(phases []Phase, acts []Act, q Quantity) ([]float64, error) {
	n := len(acts)
	most := 0.0
	for _, p := range phases {
		most = max(most, p.Used[q])
	}
	// An error counts by its share of what the phase used, so that a busy phase does not decide alone.
	weight := func(p Phase) float64 {
		used := max(p.Used[q], most/50)
		if used == 0 {
			return 1
		}
		return 1 / (used * used)
	}
	length := make([]float64, n)
	for i, a := range acts {
		for _, p := range phases {
			length[i] += weight(p) * p.Done[a] * p.Done[a]
		}
		if length[i] = math.Sqrt(length[i]); length[i] == 0 {
			return nil, errs.New(errs.Invalid, "the act %s never happened", a)
		}
	}
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n+1)
		for _, p := range phases {
			w := weight(p)
			for j := range n {
				m[i][j] += w * p.Done[acts[i]] / length[i] * p.Done[acts[j]] / length[j]
			}
			m[i][n] += w * p.Done[acts[i]] / length[i] * p.Used[q]
		}
	}
	for i := range n { // Gauss, with the largest pivot
		best := i
		for k := i; k < n; k++ {
			if math.Abs(m[k][i]) > math.Abs(m[best][i]) {
				best = k
			}
		}
		if m[i], m[best] = m[best], m[i]; math.Abs(m[i][i]) < 1e-9 {
			return nil, errs.New(errs.Invalid, "the phases do not tell the act %s from others", acts[i])
		}
		for k := range n {
			if k == i {
				continue
			}
			f := m[k][i] / m[i][i]
			for j := i; j <= n; j++ {
				m[k][j] -= f * m[i][j]
			}
		}
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = m[i][n] / m[i][i] / length[i]
	}
	return out, nil
}
