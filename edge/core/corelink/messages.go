package corelink

// Message is a pointer to one of the types of this package. The set is closed; a peer's newer one is a Raw.
type Message any

// messages are all of this version: from robotd, from a peer, from either.
var messages = []Message{
	&State{}, &Motion{}, &Power{}, &Totals{}, &LoopStats{}, &LinkStats{}, &Event{}, &Fault{}, &Absent{}, &Held{}, &Firmware{}, &Start{},
	&Speaks{}, &Tree{}, &Values{}, &Update{}, &Board{}, &Lateness{}, &Reply{}, &Ended{},
	&GetTree{}, &GetValues{}, &GetLateness{}, &GetBoard{}, &Subscribe{}, &Unsubscribe{}, &Order{}, &Do{}, &Claim{}, &Renew{}, &Release{}, &Stop{}, &Calm{}, &Sleep{}, &Hold{}, &Unhold{}, &Halt{}, &Resume{},
	&Shutdown{}, &Introduce{},
	&Hello{}, &Ping{}, &Pong{}, &Bye{},
}

// Hello is each side's first message.
type Hello struct {
	Program string `json:"program"` // "robotd", "agentd", ...
	Version string `json:"version"`
	PID     uint32 `json:"pid"`

	Body BodyInfo `json:"body"` // robotd only; as far as the body has said yet
}

// Speaks names the messages of a peer that this robotd takes and that others of the same version do not: it is robotd's first after Hello. A message
// that is new needs no new version then. A peer without it would have its message ignored.
type Speaks struct {
	Messages []string `json:"messages,omitempty"` // Name of each
}

// BodyInfo describes the body (edge/body.Description). Its parts are in the Tree.
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
	Posture      string  `json:"posture,omitempty"` // as in Motion
}

// GetLateness asks for the Lateness of the loop.
type GetLateness struct {
	Request uint32 `json:"request"`
}

// Lateness is a histogram of how late the loop's steps began since robotd started; the difference of two covers the time between them. Counts[i] steps began more than
// UpToUS[i-1] and at most UpToUS[i] late.
type Lateness struct {
	Request uint32   `json:"request"`
	UpToUS  []uint32 `json:"up_to_us,omitempty"`
	Counts  []uint32 `json:"counts,omitempty"`
}

// Since returns the quantile q (0 to 1) of the lateness of the steps between an earlier Lateness and this one, in microseconds. 0: there were none.
func (l *Lateness) Since(earlier *Lateness, q float64) (us uint32) {
	before := map[uint32]uint32{}
	for i, upTo := range earlier.UpToUS[:min(len(earlier.UpToUS), len(earlier.Counts))] {
		before[upTo] = earlier.Counts[i]
	}
	upTos := l.UpToUS[:min(len(l.UpToUS), len(l.Counts))]
	all := uint32(0)
	for i, upTo := range upTos {
		all += l.Counts[i] - before[upTo]
	}
	seen := uint32(0)
	for i, upTo := range upTos {
		if seen += l.Counts[i] - before[upTo]; seen > 0 && float64(seen) >= q*float64(all) {
			return upTo
		}
	}
	return 0
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

// LinkStats counts the traffic between robotd and the body since the port was opened (edge/body.Link).
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

// Firmware is the outcome of the firmware check when robotd opened the body (VEC-DFU-01, VEC-DFU-04). It is sent once for each check, and
// the newest one to a peer that joins later.
type Firmware struct {
	AtUS      int64  `json:"at_us"`     // CLOCK_MONOTONIC
	File      string `json:"file"`      // below the robot's root, or as robotd was told
	Wanted    string `json:"wanted"`    // version of the file; "": it cannot be used
	Installed string `json:"installed"` // the body's version before; "": none, or unknown
	Skipped   string `json:"skipped"`   // why a different version was left as it is
	Attempts  uint8  `json:"attempts"`  // 0: no update was needed
	TookMS    uint32 `json:"took_ms"`
	Status    uint16 `json:"status"` // 16 to 19 (part of VEC-BOOT-09); 0: the body runs the right program
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
	Name    string `json:"name"`
	Payload []byte `json:"payload"` // CBOR
}
