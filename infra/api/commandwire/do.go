package commandwire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of RobotDo and RobotHold.
const (
	MaxDrive     = 10 * time.Second // how long one line may move the robot; then it stops by itself
	DefaultDrive = 5 * time.Second
	// MaxWait is how late a motion may begin: a robot must not set off long after it was asked to.
	MaxWait = 30 * time.Second
	// MaxLine is the longest line of a Do, in bytes.
	MaxLine = 400
	// MaxReason is the longest text of a Hold, in bytes.
	MaxReason = 90
)

// Do are the arguments of RobotDo: a line in the syntax of the structure tree, such as headPitch = 0.3 or robot.go(0.2), or several separated by ';'.
type Do struct {
	Line    string  `json:"line"`
	Seconds float64 `json:"seconds,omitempty"` // what moves ends then at the latest: at most 10; 0: 5
	Wait    bool    `json:"wait,omitempty"`    // the result says how what moves has ended, not that it has begun
}

// For is how long what it moves may last.
func (d Do) For() time.Duration {
	if d.Seconds == 0 {
		return DefaultDrive
	}
	return time.Duration(d.Seconds * float64(time.Second))
}

// ParseDo reads the arguments of RobotDo. Names and values are for the robot to judge, whose tree they are.
func ParseDo(args json.RawMessage) (Do, error) {
	var d Do
	if err := strict(args, &d); err != nil {
		return Do{}, fmt.Errorf("%s: %w; want line, seconds and wait", RobotDo, err)
	}
	d.Line = strings.TrimSpace(d.Line)
	switch {
	case d.Line == "" || len(d.Line) > MaxLine:
		return Do{}, fmt.Errorf("%s: line of %d bytes: want 1 to %d, such as headPitch = 0.3 or robot.go(0.2)", RobotDo, len(d.Line), MaxLine)
	case !utf8.ValidString(d.Line) || strings.ContainsFunc(d.Line, unicode.IsControl):
		return Do{}, fmt.Errorf("%s: line %.60q: want one line of text", RobotDo, d.Line)
	case d.Seconds < 0 || d.Seconds > MaxDrive.Seconds() || d.Seconds != 0 && d.Seconds < 0.1:
		return Do{}, fmt.Errorf("%s: seconds %v: want 0.1 to %v", RobotDo, d.Seconds, MaxDrive.Seconds())
	}
	return d, nil
}

// Hold are the arguments of RobotHold.
type Hold struct {
	By     string `json:"by,omitempty"` // the person; the cloud says who it is
	Reason string `json:"reason"`
}

// ParseHold reads the arguments of RobotHold.
func ParseHold(args json.RawMessage) (Hold, error) {
	var h Hold
	if err := strict(args, &h); err != nil {
		return Hold{}, fmt.Errorf("%s: %w; want a reason", RobotHold, err)
	}
	for name, s := range map[string]string{"by": h.By, "reason": h.Reason} {
		if len(s) > MaxReason || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return Hold{}, fmt.Errorf("%s: %s %.60q: want at most %d bytes of text", RobotHold, name, s, MaxReason)
		}
	}
	if strings.TrimSpace(h.Reason) == "" {
		return Hold{}, fmt.Errorf("%s: want a reason", RobotHold)
	}
	return h, nil
}

// Moves reports whether a command of that kind moves one robot, or lets it move: it begins soon or never, and not after a later stop.
func Moves(kind string) bool {
	return kind == RobotDo || kind == RobotPoke || kind == RobotRelease || kind == Play
}

// MaxTTLOf is how long a command of that kind may wait to begin.
func MaxTTLOf(kind string) time.Duration {
	if Moves(kind) || Urgent(kind) || kind == Intent { // like one that is said, and many move the robot
		return MaxWait
	}
	return MaxTTL
}

// Urgent reports whether a command of that kind goes before all that wait, and beside what is being done.
func Urgent(kind string) bool { return slices.Contains(UrgentKinds, kind) }

// Waits reports whether a command of that kind waits for those that were given before it. A release of a hold does not, and follows what is urgent.
func Waits(kind string) bool { return !Urgent(kind) && kind != RobotRelease }

// UrgentKinds are those kinds.
var UrgentKinds = []string{RobotStop, RobotHold}
