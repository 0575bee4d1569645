// Package status is the health and presence message a robot publishes on kennel/<thing>/up/status, and its last will.
//
// Presence is a lease: a robot is present until Lease after its last message was received. A will (State Gone) only shortens the lease
// of the very connection it belongs to. Messages are ordered by ConnectSeq, which the robot keeps on disk and raises at every connect,
// so that an old will or a reordered message is ignored.
package status

import (
	"encoding/json"
	"fmt"
	"time"

	"kennel/infra/api/envelope"
)

// State says whether this is the robot speaking or its will.
type State string

// The states.
const (
	Online State = "online"
	Gone   State = "gone"
)

// Message is one status. Fields that a robot does not know are absent.
type Message struct {
	V          int             `json:"v"`
	State      State           `json:"state"`
	BootID     string          `json:"boot_id"`
	ConnectSeq uint64          `json:"connect_seq"`
	Seq        uint64          `json:"seq"` // counts messages within one connection; the will has 0
	Lease      envelope.Millis `json:"lease_ms"`
	TS         int64           `json:"ts"` // robot's clock, ms since 1970
	UptimeMS   int64           `json:"uptime_ms"`

	Agent    string            `json:"agent,omitempty"`    // agentd's version
	OS       string            `json:"os,omitempty"`       // robot_version of the release it runs
	Recovery bool              `json:"recovery,omitempty"` // it started its recovery system, and leaves the user data alone (VEC-BOOT-07)
	Body     *Body             `json:"body,omitempty"`
	Loop     *Loop             `json:"loop,omitempty"`
	Spool    *Spool            `json:"spool,omitempty"`
	Docs     map[string]uint64 `json:"docs,omitempty"`     // document -> synced version
	Dirty    []string          `json:"dirty,omitempty"`    // documents with changes not yet accepted by the cloud
	Problems []string          `json:"problems,omitempty"` // what is wrong now, for people; Told reads it
	// Codes are the tokens of Problems, in the same order; agents of before send none.
	Codes []string `json:"problem_codes,omitempty"`
	// Intents are the user intents that the robot can act on; none of an agent of before, or without its body.
	Intents []string `json:"intents,omitempty"`
	// Gateway is where programs reach the robot in its own network, as host:port; "": it serves none.
	Gateway string `json:"gateway,omitempty"`
	// Uses are the newest things that programs did through the gateway, the newest first.
	Uses []Use `json:"program_uses,omitempty"`
}

// Use is a thing that a program did through the robot's gateway: calls within a minute that are alike are one.
type Use struct {
	Program string    `json:"program"`           // the name of its token
	Call    string    `json:"call"`              // as the robot's API names it, or OtherCalls
	What    string    `json:"what,omitempty"`    // an order as text, names of parts or settings
	Outcome string    `json:"outcome,omitempty"` // "done", "answered", "begun" of a stream, the outcome of an order, or the code of a refusal
	Times   int       `json:"times"`
	At      time.Time `json:"at"` // the last time, by the robot's clock
}

// OtherCalls is the call of a use that holds more calls than are told one by one.
const OtherCalls = "others"

// Body is the body's condition, from robotd.
type Body struct {
	Model        string  `json:"model,omitempty"`
	Firmware     string  `json:"firmware,omitempty"`
	BatteryVolts float64 `json:"battery_volts"`
	BatteryLevel string  `json:"battery_level"` // unknown, low, nominal, full (VEC-PWR-02)
	OnCharger    bool    `json:"on_charger"`
	Charging     bool    `json:"charging"`
	TemperatureC float64 `json:"temperature_c"`
	Fault        int     `json:"fault,omitempty"`   // numbered fault now shown, 0: none
	Posture      string  `json:"posture,omitempty"` // on its feet, on its side and so on; "": not known
	FramesGood   uint64  `json:"frames_good,omitempty"`
	FramesBad    uint64  `json:"frames_bad,omitempty"`
}

// Loop is the real-time loop's health since its start (VEC-WDOG-03). Times in microseconds.
type Loop struct {
	Steps    uint64  `json:"steps"`
	Missed   uint64  `json:"missed"` // whole periods skipped
	Late     uint64  `json:"late"`   // started more than 10 ms late
	Long     uint64  `json:"long"`   // took more than 5 ms
	LateP50  float64 `json:"late_p50_us"`
	LateP99  float64 `json:"late_p99_us"`
	LateP999 float64 `json:"late_p999_us"`
	LateMax  float64 `json:"late_max_us"`
	StepP50  float64 `json:"step_p50_us"`
	StepP99  float64 `json:"step_p99_us"`
	StepMax  float64 `json:"step_max_us"`
	FIFO     bool    `json:"fifo"`    // SCHED_FIFO was permitted
	Dropped  uint64  `json:"dropped"` // messages robotd could not hand to slow peers

	Simulated bool `json:"simulated,omitempty"` // the body is simulated on a computer that also does other work
}

// Spool counts the events that wait on the robot's disk.
type Spool struct {
	Events      uint64 `json:"events"`
	Bytes       int64  `json:"bytes"`
	Dropped     uint64 `json:"dropped"`     // events the quota removed, since boot
	Quarantined uint64 `json:"quarantined"` // events the cloud refused, kept aside
}

// Encode returns the message as JSON.
func (m Message) Encode() ([]byte, error) { m.V = 1; return json.Marshal(m) }

// Parse reads and checks a message.
func Parse(b []byte) (Message, error) {
	var m Message
	if err := json.Unmarshal(b, &m); err != nil {
		return Message{}, fmt.Errorf("status: %w", err)
	}
	switch {
	case m.V != 1:
		return Message{}, fmt.Errorf("status: version %d: want 1", m.V)
	case m.State != Online && m.State != Gone:
		return Message{}, fmt.Errorf("status: state %.20q: want online or gone", m.State)
	case m.BootID == "" || len(m.BootID) > 64:
		return Message{}, fmt.Errorf("status: boot_id %.80q: want 1 to 64 characters", m.BootID)
	case len(m.Problems) > 32 || len(m.Codes) > 32 || len(m.Intents) > 256 || len(m.Docs) > 64 || len(m.Dirty) > 64:
		return Message{}, fmt.Errorf("status: too many entries")
	}
	return m, nil
}
