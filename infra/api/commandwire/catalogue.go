package commandwire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kennel/infra/api/poke"
)

// The kinds of commands.
const (
	SetLights    = "set_lights"    // Lights: the body's lights, until they are set again
	Ping         = "ping"          // nothing happens; the result says that the robot listens
	Sync         = "sync"          // documents are brought in step with the cloud now
	FlushEvents  = "flush_events"  // events that wait are sent now
	SendLogs     = "send_logs"     // LogRequest: the robot collects its logs and uploads them; its result names the file
	RestartAgent = "restart_agent" // the robot's network side restarts once the result is stored
	RobotDo      = "robot_do"      // Do: a line that reads, writes or calls what the structure tree names; its result says what was read or taken
	RobotPoke    = "robot_poke"    // poke.Poke: what a person beside a simulated robot does to it by hand
	RobotStop    = "robot_stop"    // all motors stop; it overtakes what waits
	RobotHold    = "robot_hold"    // Hold: as robot_stop, and nothing moves until robot_release, also after a restart
	RobotRelease = "robot_release" // ends robot_hold
	Intent       = "intent"        // IntentArgs: a person's wish, as if it had been spoken
	Play         = "play"          // PlayArgs: an animation or a motion; its result comes when it has ended
)

// Light is one RGB light, 0 to 255 a channel.
type Light struct {
	R uint8 `json:"r"`
	G uint8 `json:"g"`
	B uint8 `json:"b"`
}

// LightCount is how many lights SetLights sets.
const LightCount = 4

// Lights are the arguments of SetLights, in the body's order of its lights.
type Lights struct {
	Lights []Light `json:"lights"`
}

// IntentArgs are the arguments of Intent.
type IntentArgs struct {
	Intent string          `json:"intent"`           // such as intent_system_charger
	Params json.RawMessage `json:"params,omitempty"` // an object
}

// PlayArgs are the arguments of Play.
type PlayArgs struct {
	Name string `json:"name"` // of an animation, as the robot lists it: "motion/sit"
}

// MaxPlay is the longest time that a robot plays for one command.
const MaxPlay = 3 * time.Minute

var (
	playPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./-]{0,99}$`)
	intentPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// catalogue says of every kind how its arguments are checked.
var catalogue = map[string]func(json.RawMessage) error{
	SetLights:    func(args json.RawMessage) error { _, err := ParseLights(args); return err },
	RobotDo:      func(args json.RawMessage) error { _, err := ParseDo(args); return err },
	RobotPoke:    func(args json.RawMessage) error { _, err := poke.Parse(args); return err },
	RobotStop:    noArgs,
	RobotHold:    func(args json.RawMessage) error { _, err := ParseHold(args); return err },
	RobotRelease: noArgs,
	Intent:       func(args json.RawMessage) error { _, err := ParseIntent(args); return err },
	Play:         func(args json.RawMessage) error { _, err := ParsePlay(args); return err },
	Ping:         noArgs,
	Sync:         noArgs,
	FlushEvents:  noArgs,
	SendLogs:     func(args json.RawMessage) error { _, err := ParseLogRequest(args); return err },
	RestartAgent: noArgs,
}

// Kinds returns the kinds by name.
func Kinds() []string {
	out := make([]string, 0, len(catalogue))
	for k := range catalogue {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Check reports whether kind is known and args fit it.
func Check(kind string, args json.RawMessage) error {
	check, ok := catalogue[kind]
	if !ok {
		return fmt.Errorf("kind %.40q: want one of %s", kind, strings.Join(Kinds(), ", "))
	}
	if err := checkObject(kind, args); err != nil {
		return err
	}
	return check(args)
}

// ParseLights reads the arguments of SetLights.
func ParseLights(args json.RawMessage) (Lights, error) {
	var l Lights
	if err := strict(args, &l); err != nil {
		return Lights{}, fmt.Errorf("%s: %w; want %d lights {r, g, b} from 0 to 255", SetLights, err, LightCount)
	}
	if len(l.Lights) != LightCount {
		return Lights{}, fmt.Errorf("%s: %d lights: want %d {r, g, b} from 0 to 255", SetLights, len(l.Lights), LightCount)
	}
	return l, nil
}

// ParseIntent reads the arguments of Intent.
func ParseIntent(args json.RawMessage) (IntentArgs, error) {
	var i IntentArgs
	if err := strict(args, &i); err != nil {
		return IntentArgs{}, fmt.Errorf("%s: %w; want intent and params", Intent, err)
	}
	if !intentPattern.MatchString(i.Intent) {
		return IntentArgs{}, fmt.Errorf("%s: intent %.80q: want a word such as intent_system_charger", Intent, i.Intent)
	}
	if err := checkObject(Intent+": params", i.Params); err != nil {
		return IntentArgs{}, err
	}
	return i, nil
}

// ParsePlay reads the arguments of Play.
func ParsePlay(args json.RawMessage) (PlayArgs, error) {
	var p PlayArgs
	if err := strict(args, &p); err != nil {
		return PlayArgs{}, fmt.Errorf("%s: %w; want a name", Play, err)
	}
	if !playPattern.MatchString(p.Name) {
		return PlayArgs{}, fmt.Errorf("%s: name %.120q: want an animation's, such as motion/sit", Play, p.Name)
	}
	return p, nil
}

func noArgs(args json.RawMessage) error {
	if err := strict(args, &struct{}{}); err != nil {
		return fmt.Errorf("%w; want no arguments", err)
	}
	return nil
}

// strict reads args, refusing fields that v does not have: who misspells one must hear of it before the robot does something else.
func strict(args json.RawMessage, v any) error {
	if len(args) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		return fmt.Errorf("%s: got a %s", cmp.Or(kind.Field, "arguments"), kind.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
