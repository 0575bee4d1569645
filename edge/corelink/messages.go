package corelink

import (
	"fmt"
	"strconv"
)

// Type numbers a message on the wire. The zero value is none.
type Type uint16

// The message types: from robotd below 64, from a peer from 64 on, both ways from 128 on.
const (
	TypeState     Type = 1
	TypeLoopStats Type = 2
	TypeLinkStats Type = 3
	TypeFault     Type = 4
	TypePong      Type = 5
	TypeTree      Type = 6
	TypeValues    Type = 7
	TypeMotion    Type = 8
	TypeReply     Type = 9
	TypeEnded     Type = 10
	TypeFirmware  Type = 11
	TypePower     Type = 12
	TypeStart     Type = 16
	TypeAbsent    Type = 17
	TypeEvent     Type = 18
	TypeTotals    Type = 19
	TypeHeld      Type = 20

	TypeHalt      Type = 65
	TypeResume    Type = 66
	TypeShutdown  Type = 67
	TypePing      Type = 68
	TypeGetTree   Type = 69
	TypeGetValues Type = 70
	TypeIntroduce Type = 71
	TypeClaim     Type = 72
	TypeRenew     Type = 73
	TypeRelease   Type = 74
	TypeStop      Type = 80
	TypeCalm      Type = 81
	TypeSleep     Type = 82
	TypeDo        Type = 83
	TypeHold      Type = 84
	TypeUnhold    Type = 85

	TypeHello Type = 128
	TypeBye   Type = 129
)

// kinds is every message of this version: its number, its name in JSON, an empty one.
var kinds = []struct {
	t    Type
	name string
	make func() Message
}{
	{TypeState, "state", func() Message { return new(State) }},
	{TypeLoopStats, "loop_stats", func() Message { return new(LoopStats) }},
	{TypeLinkStats, "link_stats", func() Message { return new(LinkStats) }},
	{TypeFault, "fault", func() Message { return new(Fault) }},
	{TypePong, "pong", func() Message { return new(Pong) }},
	{TypeTree, "tree", func() Message { return new(Tree) }},
	{TypeValues, "values", func() Message { return new(Values) }},
	{TypeMotion, "motion", func() Message { return new(Motion) }},
	{TypeReply, "reply", func() Message { return new(Reply) }},
	{TypeEnded, "ended", func() Message { return new(Ended) }},
	{TypeFirmware, "firmware", func() Message { return new(Firmware) }},
	{TypePower, "power", func() Message { return new(Power) }},
	{TypeStart, "start", func() Message { return new(Start) }},
	{TypeAbsent, "absent", func() Message { return new(Absent) }},
	{TypeEvent, "event", func() Message { return new(Event) }},
	{TypeTotals, "totals", func() Message { return new(Totals) }},
	{TypeHeld, "held", func() Message { return new(Held) }},
	{TypeHalt, "halt", func() Message { return new(Halt) }},
	{TypeResume, "resume", func() Message { return new(Resume) }},
	{TypeShutdown, "shutdown", func() Message { return new(Shutdown) }},
	{TypePing, "ping", func() Message { return new(Ping) }},
	{TypeGetTree, "get_tree", func() Message { return new(GetTree) }},
	{TypeGetValues, "get_values", func() Message { return new(GetValues) }},
	{TypeIntroduce, "introduce", func() Message { return new(Introduce) }},
	{TypeClaim, "claim", func() Message { return new(Claim) }},
	{TypeRenew, "renew", func() Message { return new(Renew) }},
	{TypeRelease, "release", func() Message { return new(Release) }},
	{TypeStop, "stop", func() Message { return new(Stop) }},
	{TypeCalm, "calm", func() Message { return new(Calm) }},
	{TypeSleep, "sleep", func() Message { return new(Sleep) }},
	{TypeDo, "do", func() Message { return new(Do) }},
	{TypeHold, "hold", func() Message { return new(Hold) }},
	{TypeUnhold, "unhold", func() Message { return new(Unhold) }},
	{TypeHello, "hello", func() Message { return new(Hello) }},
	{TypeBye, "bye", func() Message { return new(Bye) }},
}

func (t Type) String() string {
	for _, k := range kinds {
		if k.t == t {
			return k.name
		}
	}
	return "type(" + strconv.Itoa(int(t)) + ")"
}

// Message is one of the types below. The set is closed; a peer's newer one is a Raw.
type Message interface {
	Type() Type
	// wire carries every field through c, in either direction.
	wire(c *coder)
}

// maxTasks bounds LoopStats; a loop has at most 16.
const maxTasks = 32

// Hello is each side's first message.
type Hello struct {
	Program string `json:"program"` // "robotd", "agentd", ...
	Version string `json:"version"`
	PID     uint32 `json:"pid"`

	Body BodyInfo `json:"body"` // robotd only; as far as the body has said yet
}

// BodyInfo describes the body (edge/body.Description). What it has is in the Tree.
type BodyInfo struct {
	Species  string `json:"species"`
	Model    string `json:"model"`
	Firmware string `json:"firmware"`
	PeriodUS uint32 `json:"period_us"` // the body's own rhythm; 0: none
}

// State is the state that every body reports, in SI units. Further measurements of a body are in the Tree.
type State struct {
	AtUS  int64  `json:"at_us"` // monotonic time of the measurement (CLOCK_MONOTONIC)
	Link  bool   `json:"link"`  // the body is heard: the rest is at most a quarter of a second old
	Seq   uint32 `json:"seq"`   // the body's frame counter
	Epoch uint32 `json:"epoch"` // changes when the body restarted: Seq and positions begin again
	Fault uint16 `json:"fault"` // the fault of the moment: robotd's own (898), else the body's; 0: none

	BatteryVolts float64 `json:"battery_volts"` // filtered (VEC-PWR-01)
	BatteryLevel uint8   `json:"battery_level"` // edge/power.Level
	ChargerVolts float64 `json:"charger_volts"` // 0 away from the charger
	Power        uint16  `json:"power"`         // bits of edge/body.Power
	Temperature  float64 `json:"temperature"`   // degrees Celsius; 0: not known
	Halted       bool    `json:"halted"`
}

// LoopStats is the health of the real-time loop. Counts and maxima are since robotd started, percentiles of the last one to two minutes. Times in
// microseconds.
type LoopStats struct {
	UptimeUS  int64  `json:"uptime_us"`
	Steps     uint64 `json:"steps"`
	Missed    uint64 `json:"missed"`
	Late      uint64 `json:"late"` // began more than 10 ms late (VEC-WDOG-03)
	Long      uint64 `json:"long"` // took more than 5 ms (VEC-WDOG-03)
	Timeouts  uint64 `json:"timeouts"`
	Stale     uint64 `json:"stale"`
	Shifts    uint64 `json:"shifts"`
	WriteErrs uint64 `json:"write_errs"`
	Reopened  uint64 `json:"reopened"` // times the body was opened again

	PeriodUS uint32 `json:"period_us"`
	FIFO     bool   `json:"fifo"`   // SCHED_FIFO was permitted
	Locked   bool   `json:"locked"` // memory is locked

	Lateness Percentiles `json:"lateness"`
	StepTime Percentiles `json:"step_time"`

	Refused uint64 `json:"refused"` // commands a full mailbox refused
	Drops   uint64 `json:"drops"`   // messages dropped because peers did not read
	Peers   uint32 `json:"peers"`

	Tasks []TaskStats `json:"tasks,omitempty"`
}

// Percentiles of a time in microseconds.
type Percentiles struct {
	P50  uint32 `json:"p50_us"`
	P99  uint32 `json:"p99_us"`
	P999 uint32 `json:"p999_us"`
	Max  uint32 `json:"max_us"` // since robotd started
}

// TaskStats is one row of the loop's task table. Times in microseconds.
type TaskStats struct {
	Name     string `json:"name"`
	Every    uint32 `json:"every"` // steps
	BudgetUS uint32 `json:"budget_us"`
	Runs     uint64 `json:"runs"`
	Late     uint64 `json:"late"`
	Skipped  uint64 `json:"skipped"`
	WorstUS  uint32 `json:"worst_us"`
	RecentUS uint32 `json:"recent_us"`
}

// LinkStats counts what passed between robotd and the body since the port was opened (edge/body.Link).
type LinkStats struct {
	Frames       uint64 `json:"frames"`        // good frames of measurements
	Overtaken    uint64 `json:"overtaken"`     // of those, skipped because a newer one had arrived
	Corrupt      uint64 `json:"corrupt"`       // bad checksum, unknown type or wrong size
	SkippedBytes uint64 `json:"skipped_bytes"` // bytes that belonged to no good frame
	Refused      uint64 `json:"refused"`       // commands the body answered with a refusal
	Full         uint64 `json:"full"`          // frames of commands dropped because the port was full
	ProxRefused  uint64 `json:"prox_refused"`  // distances outside the sensor's range
	TouchRefused uint64 `json:"touch_refused"` // touch readings outside theirs
}

// Fault says that a numbered fault began, or, with code 0, that none is left (edge/faultcode).
type Fault struct {
	Code uint16 `json:"code"`
	Text string `json:"text"`
}

// Firmware says what became of the program of the body's processor when robotd opened the body (VEC-DFU-01, VEC-DFU-04). It comes once for each
// time that a firmware file was looked at, and is the newest for a peer that joins later.
type Firmware struct {
	AtUS      int64  `json:"at_us"`     // CLOCK_MONOTONIC
	File      string `json:"file"`      // below the robot's root, or as robotd was told
	Wanted    string `json:"wanted"`    // version of the file; "": it cannot be used
	Installed string `json:"installed"` // what the body ran before; "": nothing, or it did not say
	Skipped   string `json:"skipped"`   // why a different version was left as it is
	Attempts  uint8  `json:"attempts"`  // 0: no update was needed
	TookMS    uint32 `json:"took_ms"`
	Status    uint16 `json:"status"` // 16 to 19 (VEC-BOOT-09); 0: the body runs what it shall
	Error     string `json:"error"`  // why not
}

// Halt stops all motion until Resume. Reason is for the log.
type Halt struct {
	Reason string `json:"reason"`
}

// Resume lifts a halt, but not a person's Hold.
type Resume struct{}

// Shutdown halts the body and cuts its power: the last thing to send, after everything else on the robot has stopped (VEC-PWR-41).
type Shutdown struct {
	Reason string `json:"reason"`
}

// Ping asks for a Pong of the same number, in both directions. robotd asks each peer that owns an actuator, and frees what a silent one holds.
type Ping struct {
	Nonce uint64 `json:"nonce"`
}

// Pong answers a Ping.
type Pong struct {
	Nonce uint64 `json:"nonce"`
}

// Bye is the last message of a side that closes the connection on purpose.
type Bye struct {
	Reason string `json:"reason"`
}

// Raw is a message that this version does not know; it passes through unchanged.
type Raw struct {
	Number  Type   `json:"number"`
	Payload []byte `json:"payload"`
}

func (*Hello) Type() Type     { return TypeHello }
func (*State) Type() Type     { return TypeState }
func (*LoopStats) Type() Type { return TypeLoopStats }
func (*LinkStats) Type() Type { return TypeLinkStats }
func (*Fault) Type() Type     { return TypeFault }
func (*Firmware) Type() Type  { return TypeFirmware }
func (*Halt) Type() Type      { return TypeHalt }
func (*Resume) Type() Type    { return TypeResume }
func (*Shutdown) Type() Type  { return TypeShutdown }
func (*Ping) Type() Type      { return TypePing }
func (*Pong) Type() Type      { return TypePong }
func (*Bye) Type() Type       { return TypeBye }
func (m *Raw) Type() Type     { return m.Number }

func (m *Hello) wire(c *coder) {
	c.string(&m.Program)
	c.string(&m.Version)
	c.u32(&m.PID)
	c.string(&m.Body.Species)
	c.string(&m.Body.Model)
	c.string(&m.Body.Firmware)
	c.u32(&m.Body.PeriodUS)
}

func (m *State) wire(c *coder) {
	c.i64(&m.AtUS)
	c.bool(&m.Link)
	c.u32(&m.Seq)
	c.u32(&m.Epoch)
	c.u16(&m.Fault)
	c.f64(&m.BatteryVolts)
	c.u8(&m.BatteryLevel)
	c.f64(&m.ChargerVolts)
	c.u16(&m.Power)
	c.f64(&m.Temperature)
	c.bool(&m.Halted)
}

func (m *LoopStats) wire(c *coder) {
	c.i64(&m.UptimeUS)
	for _, v := range []*uint64{&m.Steps, &m.Missed, &m.Late, &m.Long, &m.Timeouts, &m.Stale, &m.Shifts, &m.WriteErrs, &m.Reopened} {
		c.u64(v)
	}
	c.u32(&m.PeriodUS)
	c.bool(&m.FIFO)
	c.bool(&m.Locked)
	m.Lateness.wire(c)
	m.StepTime.wire(c)
	c.u64(&m.Refused)
	c.u64(&m.Drops)
	c.u32(&m.Peers)
	list(c, &m.Tasks, maxTasks, func(c *coder, t *TaskStats) {
		c.string(&t.Name)
		c.u32(&t.Every)
		c.u32(&t.BudgetUS)
		c.u64(&t.Runs)
		c.u64(&t.Late)
		c.u64(&t.Skipped)
		c.u32(&t.WorstUS)
		c.u32(&t.RecentUS)
	})
}

func (p *Percentiles) wire(c *coder) {
	c.u32(&p.P50)
	c.u32(&p.P99)
	c.u32(&p.P999)
	c.u32(&p.Max)
}

func (m *LinkStats) wire(c *coder) {
	for _, v := range []*uint64{&m.Frames, &m.Overtaken, &m.Corrupt, &m.SkippedBytes, &m.Refused, &m.Full, &m.ProxRefused, &m.TouchRefused} {
		c.u64(v)
	}
}

func (m *Fault) wire(c *coder) {
	c.u16(&m.Code)
	c.string(&m.Text)
}

func (m *Firmware) wire(c *coder) {
	c.i64(&m.AtUS)
	c.string(&m.File)
	c.string(&m.Wanted)
	c.string(&m.Installed)
	c.string(&m.Skipped)
	c.u8(&m.Attempts)
	c.u32(&m.TookMS)
	c.u16(&m.Status)
	c.string(&m.Error)
}

func (m *Halt) wire(c *coder)     { c.string(&m.Reason) }
func (*Resume) wire(*coder)       {}
func (m *Shutdown) wire(c *coder) { c.string(&m.Reason) }
func (m *Ping) wire(c *coder)     { c.u64(&m.Nonce) }
func (m *Pong) wire(c *coder)     { c.u64(&m.Nonce) }
func (m *Bye) wire(c *coder)      { c.string(&m.Reason) }

func (m *Raw) wire(c *coder) {
	if !c.dec {
		c.b = append(c.b, m.Payload...)
		return
	}
	if m.Payload = append([]byte(nil), c.b...); len(c.b) > 0 {
		c.b = nil
	}
}

// empty returns an empty message of type t.
func empty(t Type) Message {
	for _, k := range kinds {
		if k.t == t {
			return k.make()
		}
	}
	return &Raw{Number: t}
}

func emptyNamed(name string) (Message, error) {
	for _, k := range kinds {
		if k.name == name {
			return k.make(), nil
		}
	}
	return nil, fmt.Errorf("%w: message type %.40q is unknown", ErrMalformed, name)
}
