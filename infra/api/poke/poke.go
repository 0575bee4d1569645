// Package poke holds what a person beside a simulated robot can do to it by hand: one table of verbs for simulators, programs and pages.
package poke

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The verbs.
const (
	Touch = "touch"
	Press = "press"
	Lift  = "lift"
	Put   = "put"
	Push  = "push"
	Turn  = "turn"
	Spin  = "spin"
	Shake = "shake"
	Hold  = "hold"
	Drain = "drain"
	Dip   = "dip"
	Reset = "reset"
	Tools = "tools"
	Play  = "play"
	Pat   = "pat"

	Insert = "insert"
	Eject  = "eject"

	Cube = "cube"
)

// The sides of Cube, which does something to the robot's cube.
const (
	Tap    = "tap"
	Roll   = "roll"   // onto its next side
	Take   = "take"   // off the floor
	Place  = "place"  // where it was
	Rattle = "rattle" // shakes it
	Off    = "off"    // takes its cell out
	On     = "on"
)

// The places that Pat touches.
const (
	Head      = "head"
	Chin      = "chin"
	Neck      = "neck" // the back, near the neck
	Rump      = "rump" // the back, near the tail
	ForeLeft  = "fore-left"
	ForeRight = "fore-right"
	HindLeft  = "hind-left"
	HindRight = "hind-right"
)

// The sides that Turn lays a robot on.
const (
	Back  = "back"
	Left  = "left"
	Right = "right"
	Face  = "face"
)

// The names of the arguments.
const (
	For    = "for"
	Height = "height"
	By     = "by"
	Toward = "toward" // counter-clockwise from where the robot faces
	Angle  = "angle"  // counter-clockwise
	Volts  = "volts"
	From   = "direction" // counter-clockwise from where the robot faces
)

// The units of arguments. People write a duration such as 2s for seconds, and degrees for radians.
const (
	seconds = iota
	metres
	radians
	volts
)

type unit struct {
	name  string
	unit  int
	usage string
}

// units are those of each argument, which are the same for all verbs.
var units = []unit{
	{For, seconds, "how long, such as 2s"},
	{Height, metres, "how high above the floor, in metres"},
	{By, metres, "how far, in metres"},
	{Toward, radians, "which way, in degrees: 0 is ahead, 90 to its left"},
	{Angle, radians, "how far it turns to its left, in degrees"},
	{Volts, volts, "the voltage of the battery"},
	{From, radians, "where a sound comes from, in degrees: 0 is ahead, 90 to its left"},
}

// arg is an argument of a verb, in SI units.
type arg struct {
	name          string
	min, max, def float64
}

type verb struct {
	name  string
	does  string
	done  string   // its participle, as in "this body cannot be touched"
	sides []string // a poke names one of them; none: the verb has no side
	file  bool     // a poke names a file
	args  []arg
}

// verbs is the table.
var verbs = []verb{
	{name: Touch, does: "strokes its touch sensor", done: "touched", args: []arg{{For, 0.05, 60, 2}}},
	{name: Pat, does: "touches it at a place", done: "patted", sides: []string{Head, Chin, Neck, Rump, ForeLeft, ForeRight, HindLeft, HindRight},
		args: []arg{{For, 0.05, 60, 0.3}}},
	{name: Press, does: "presses its button", done: "pressed", args: []arg{{For, 0.05, 60, 0.2}}},
	{name: Lift, does: "takes it off the floor into a hand", done: "lifted", args: []arg{{Height, 0.05, 1, 0.2}}},
	{name: Put, does: "puts it down upright where it is, or where it began if it cannot stay there", done: "put down"},
	{name: Push, does: "pushes it over the floor", done: "pushed",
		args: []arg{{By, 0.005, 0.5, 0.05}, {Toward, -2 * math.Pi, 2 * math.Pi, 0}}},
	{name: Turn, does: "lays it on a side", done: "turned over", sides: []string{Back, Left, Right, Face}},
	{name: Spin, does: "turns it on the spot", done: "spun",
		args: []arg{{Angle, -4 * math.Pi, 4 * math.Pi, math.Pi / 2}, {For, 0.05, 60, 1}}},
	{name: Shake, does: "shakes it in the hand that holds it", done: "shaken", args: []arg{{For, 0.05, 60, 2}}},
	{name: Hold, does: "holds its wheels", done: "held by its wheels", args: []arg{{For, 0.05, 60, 5}}},
	{name: Drain, does: "leaves its battery at a voltage", done: "drained", args: []arg{{Volts, 9.5, 13.8, 10.8}}},
	{name: Dip, does: "lets its supply dip, which restarts its controller", done: "browned out"},
	{name: Reset, does: "presses its reset button", done: "reset"},
	{name: Tools, does: "puts it into the mode for tools, with its buttons", done: "put into a mode for tools"},
	{name: Insert, does: "puts the card into its slot", done: "given a card"},
	{name: Eject, does: "takes the card out of its slot", done: "relieved of a card"},
	{name: Cube, does: "taps its cube, rolls it over, takes it away, places it again, shakes it, or takes its cell out and in", done: "given a cube",
		sides: []string{Tap, Roll, Take, Place, Rattle, Off, On}},
	{name: Play, does: "plays a WAV file to its microphones", done: "spoken to", file: true, args: []arg{{From, -2 * math.Pi, 2 * math.Pi, 0}}},
}

func find(name string) (verb, error) {
	var names []string
	for _, v := range verbs {
		if v.name == name {
			return v, nil
		}
		names = append(names, v.name)
	}
	return verb{}, fmt.Errorf("verb %.40q: want one of %s", name, strings.Join(names, ", "))
}

// Poke is one act of a hand.
type Poke struct {
	Verb string             `json:"verb"`
	Side string             `json:"side,omitempty"`
	File string             `json:"file,omitempty"` // its name among the sounds of the simulator
	Args map[string]float64 `json:"args,omitempty"` // by name, in SI units
}

// Parse reads a poke as JSON and completes it. It refuses unknown fields.
func Parse(b []byte) (Poke, error) {
	var p Poke
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return Poke{}, fmt.Errorf("poke: %s; want verb, side, file and args", strings.TrimPrefix(err.Error(), "json: "))
	}
	return p.Complete()
}

// Complete returns p with the default of each argument that is not given. It returns an error if p does not fit the table.
func (p Poke) Complete() (Poke, error) {
	v, err := find(p.Verb)
	if err != nil {
		return Poke{}, fmt.Errorf("poke: %w", err)
	}
	if len(v.sides) > 0 && !slices.Contains(v.sides, p.Side) {
		return Poke{}, fmt.Errorf("poke: %s: side %.40q: want one of %s", v.name, p.Side, strings.Join(v.sides, ", "))
	}
	if len(v.sides) == 0 && p.Side != "" {
		return Poke{}, fmt.Errorf("poke: %s takes no side, got %.40q", v.name, p.Side)
	}
	if v.file != (p.File != "") || v.file && !fileName.MatchString(p.File) {
		return Poke{}, fmt.Errorf("poke: %s: file %.40q: want %s", v.name, p.File, map[bool]string{
			true: "a name of up to 64 letters, digits, dots, dashes and underscores", false: "none"}[v.file])
	}
	full := Poke{Verb: p.Verb, Side: p.Side, File: p.File}
	for _, a := range v.args {
		x, ok := p.Args[a.name]
		if !ok {
			x = a.def
		}
		if !(x >= a.min && x <= a.max) {
			return Poke{}, fmt.Errorf("poke: %s: %s %s: want %s to %s", v.name, a.name, a.text(x), a.text(a.min), a.text(a.max))
		}
		if full.Args == nil {
			full.Args = map[string]float64{}
		}
		full.Args[a.name] = x
	}
	for name := range p.Args {
		if _, ok := full.Args[name]; !ok {
			return Poke{}, fmt.Errorf("poke: %s takes no argument %.40q", v.name, name)
		}
	}
	return full, nil
}

// fileName is a name within one folder.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$`)

// FileName returns the name under which the simulator keeps the file at path: its own, without what is not allowed in one.
func FileName(path string) string {
	path = path[strings.LastIndexByte(path, '/')+1:]
	name := []byte(path[max(0, len(path)-maxFileName):])
	for i, b := range name {
		if ok := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '.' && i > 0; !ok {
			name[i] = '_'
		}
	}
	return string(name)
}

const maxFileName = 64

// Named is Complete for a poke whose verb and side, or file, are words, such as turn and back.
func (p Poke) Named(words ...string) (Poke, error) {
	switch len(words) {
	case 2:
		if v, _ := find(words[0]); v.file { // an unknown verb is refused below
			p.File = words[1]
		} else {
			p.Side = words[1]
		}
		fallthrough
	case 1:
		p.Verb = words[0]
	}
	return p.Complete()
}

// Seconds returns the time of the argument For.
func (p Poke) Seconds() time.Duration { return time.Duration(p.Args[For] * float64(time.Second)) }

// Refused returns the error of a body that does not feel p, which is complete.
func (p Poke) Refused() error {
	v, err := find(p.Verb)
	if err != nil {
		return err
	}
	return fmt.Errorf("this body cannot be %s", v.done)
}

func (p *Poke) set(name, text string) error {
	x, err := parse(name, text)
	if err != nil {
		return err
	}
	if p.Args == nil {
		p.Args = map[string]float64{}
	}
	p.Args[name] = x
	return nil
}

func parse(name, text string) (float64, error) {
	if unitOf(name) == seconds {
		d, err := time.ParseDuration(text)
		return d.Seconds(), err
	}
	x, err := strconv.ParseFloat(text, 64)
	if unitOf(name) == radians {
		x *= math.Pi / 180
	}
	return x, err
}

func unitOf(name string) int {
	return units[slices.IndexFunc(units, func(u unit) bool { return u.name == name })].unit
}

// text is x as a person writes it.
func (a arg) text(x float64) string {
	switch unitOf(a.name) {
	case seconds:
		return time.Duration(x * float64(time.Second)).String()
	case radians:
		x *= 180 / math.Pi
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// String returns p as a person writes it: push -by 0.05 -toward 90.
func (p Poke) String() string {
	words := []string{p.Verb}
	if p.Side != "" {
		words = append(words, p.Side)
	}
	if p.File != "" {
		words = append(words, p.File)
	}
	v, _ := find(p.Verb) // of an unknown one nothing more is written
	for _, a := range v.args {
		if x, ok := p.Args[a.name]; ok {
			words = append(words, "-"+a.name, a.text(x))
		}
	}
	return strings.Join(words, " ")
}

// Flags calls add with each argument as a flag of a command line that sets p.
func (p *Poke) Flags(add func(name, usage string, set func(text string) error)) {
	for _, u := range units {
		add(u.name, u.usage, func(text string) error { return p.set(u.name, text) })
	}
}

// Help lists the verbs for a command line, one a line.
func Help() string {
	var b strings.Builder
	for _, v := range verbs {
		words := v.name
		if len(v.sides) > 0 {
			words += " " + strings.Join(v.sides, "|")
		}
		if v.file {
			words += " FILE"
		}
		fmt.Fprintf(&b, "  %-26s %s", words, v.does)
		for i, a := range v.args {
			fmt.Fprintf(&b, "%s -%s %s to %s (default %s)", [2]string{":", ","}[min(i, 1)], a.name, a.text(a.min), a.text(a.max), a.text(a.def))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Names returns the verbs and, for completion, what each does.
func Names() []string {
	var out []string
	for _, v := range verbs {
		out = append(out, v.name+"\t"+v.does)
	}
	return out
}
