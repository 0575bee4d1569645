package commands

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of RobotDrive and RobotDo.
const (
	MaxDrive     = 10 * time.Second // how long one drive may move the robot; then it stops by itself
	DefaultDrive = 5 * time.Second
	// MaxWait is how late a drive may begin: nobody wants a robot to set off long after they asked.
	MaxWait = 30 * time.Second
	// MaxLine is the longest line of a Do, in bytes.
	MaxLine = 400
)

// Drive are the arguments of RobotDrive: exactly one of a pair of wheel speeds, a way, a turn, an angle of the head and a height of the lift. SI, signs as
// in the structure tree.
type Drive struct {
	Left     *float64 `json:"left,omitempty"`     // m/s of the left tread, with Right
	Right    *float64 `json:"right,omitempty"`    //
	Straight *float64 `json:"straight,omitempty"` // m forward, negative backward
	Turn     *float64 `json:"turn,omitempty"`     // rad to the left on the spot, negative to the right
	Head     *float64 `json:"head,omitempty"`     // rad, nose down is positive
	Lift     *float64 `json:"lift,omitempty"`     // m above the ground
	Speed    float64  `json:"speed,omitempty"`    // m/s or rad/s; 0: the robot's recommended one
	Seconds  float64  `json:"seconds,omitempty"`  // at most 10; 0: 5
}

// For is how long the drive may last.
func (d Drive) For() time.Duration { return lasting(d.Seconds) }

func lasting(seconds float64) time.Duration {
	if seconds == 0 {
		return DefaultDrive
	}
	return time.Duration(seconds * float64(time.Second))
}

func checkSeconds(kind string, seconds float64) error {
	if seconds < 0 || seconds > MaxDrive.Seconds() || seconds != 0 && seconds < 0.1 {
		return fmt.Errorf("%s: seconds %v: want 0.1 to %v", kind, seconds, MaxDrive.Seconds())
	}
	return nil
}

// ParseDrive reads the arguments of RobotDrive. What a body can really do it decides itself.
func ParseDrive(args json.RawMessage) (Drive, error) {
	var d Drive
	if err := strict(args, &d); err != nil {
		return Drive{}, fmt.Errorf("%s: %w", RobotDrive, err)
	}
	ways := 0
	for _, w := range []struct {
		name  string
		value *float64
		most  float64
	}{{"straight", d.Straight, 5}, {"turn", d.Turn, 20}, {"head", d.Head, math.Pi}, {"lift", d.Lift, 1}, {"left", d.Left, 2}, {"right", d.Right, 2}} {
		if w.value == nil {
			continue
		}
		if math.Abs(*w.value) > w.most {
			return Drive{}, fmt.Errorf("%s: %s %v: want at most %v (m, m/s or rad)", RobotDrive, w.name, *w.value, w.most)
		}
		if w.name != "right" {
			ways++
		}
	}
	switch {
	case (d.Left == nil) != (d.Right == nil):
		return Drive{}, fmt.Errorf("%s: want both left and right", RobotDrive)
	case ways != 1:
		return Drive{}, fmt.Errorf("%s: want one of left and right, straight, turn, head, lift; got %d", RobotDrive, ways)
	case d.Straight != nil && *d.Straight == 0, d.Turn != nil && *d.Turn == 0:
		return Drive{}, fmt.Errorf("%s: a way of 0 leads nowhere", RobotDrive)
	case d.Speed < 0 || d.Speed > 20:
		return Drive{}, fmt.Errorf("%s: speed %v: want above 0, at most 20; or none", RobotDrive, d.Speed)
	}
	if err := checkSeconds(RobotDrive, d.Seconds); err != nil {
		return Drive{}, err
	}
	return d, nil
}

// Do are the arguments of RobotDo: a line in the syntax of the structure tree, such as headPitch = 0.3 or robot.go(0.2).
type Do struct {
	Line    string  `json:"line"`
	Seconds float64 `json:"seconds,omitempty"` // what moves ends then at the latest: at most 10; 0: 5
}

// For is how long what it moves may last.
func (d Do) For() time.Duration { return lasting(d.Seconds) }

// ParseDo reads the arguments of RobotDo. Names and values are for the robot to judge, whose tree they are.
func ParseDo(args json.RawMessage) (Do, error) {
	var d Do
	if err := strict(args, &d); err != nil {
		return Do{}, fmt.Errorf("%s: %w", RobotDo, err)
	}
	d.Line = strings.TrimSpace(d.Line)
	switch {
	case d.Line == "" || len(d.Line) > MaxLine:
		return Do{}, fmt.Errorf("%s: a line of %d bytes, want 1 to %d, such as headPitch = 0.3 or robot.go(0.2)", RobotDo, len(d.Line), MaxLine)
	case !utf8.ValidString(d.Line) || strings.ContainsFunc(d.Line, unicode.IsControl):
		return Do{}, fmt.Errorf("%s: line %.60q: want one line of text", RobotDo, d.Line)
	}
	return d, checkSeconds(RobotDo, d.Seconds)
}

// Moves reports whether a command of that kind moves one robot while somebody looks: it begins soon or never, and not after a later stop.
func Moves(kind string) bool { return kind == RobotDrive || kind == RobotDo || kind == RobotPoke }

// MaxTTLOf is how long a command of that kind may wait to begin.
func MaxTTLOf(kind string) time.Duration {
	if Moves(kind) || kind == RobotStop {
		return MaxWait
	}
	return MaxTTL
}

// Urgent reports whether a command of that kind goes before all that wait, and beside what is being done.
func Urgent(kind string) bool { return kind == RobotStop }
