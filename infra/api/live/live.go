// Package live holds the messages by which the cloud watches a robot's structure tree while a person looks at it.
//
//	kennel/<thing>/down/live   Look, from the cloud: show yourself for so long
//	kennel/<thing>/up/live     Frame, from the robot: at most two a second, and none without a look
//	world.go                   where a simulated robot really is, which is part of its frames
//
// Nothing of this is kept or sent again: the next frame replaces one that was lost, and who still looks asks again. Ages are in a frame instead of
// times, because robot clocks lie.
package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Limits.
const (
	Every   = 500 * time.Millisecond // between two frames
	MaxLook = 30 * time.Second       // one Look; who looks longer asks again

	MaxFrame   = 96 << 10 // bytes
	MaxDisplay = 24 << 10 // likewise
	maxSide    = 1024     // pixels of a display
	maxNodes   = 512
	maxValues  = 2048
	maxText    = 200 // bytes of a name
	maxAliases = 64  // of a node
	maxParts   = 32
)

// Look asks a robot to show itself.
type Look struct {
	V     int   `json:"v"`
	ForMS int64 `json:"for_ms"`
}

// For is how long.
func (l Look) For() time.Duration { return time.Duration(l.ForMS) * time.Millisecond }

// Encode returns the look as JSON.
func (l Look) Encode() ([]byte, error) { l.V = 1; return json.Marshal(l) }

// ParseLook reads a look; a longer one is MaxLook.
func ParseLook(b []byte) (Look, error) {
	var l Look
	if err := json.Unmarshal(b, &l); err != nil {
		return Look{}, fmt.Errorf("look: %w", err)
	}
	if l.V != 1 || l.ForMS < 1 {
		return Look{}, fmt.Errorf("look: version %d, for %d ms: want version 1 and a time above 0", l.V, l.ForMS)
	}
	l.ForMS = min(l.ForMS, MaxLook.Milliseconds())
	return l, nil
}

// Frame is how a robot is at one moment.
type Frame struct {
	V      int     `json:"v"`
	Tree   *Tree   `json:"tree,omitempty"` // in the first frame of a look, and from time to time
	Values []Value `json:"values"`         // of the slots that have a value
	Gone   []Gone  `json:"gone,omitempty"` // devices that are gone, with all their parts
	Motion *Motion `json:"motion,omitempty"`
	World  *World  `json:"world,omitempty"` // of a simulated robot
	// Playing is the animation or motion that a person asked for by a command; nil: none.
	Playing *Playing `json:"playing,omitempty"`
	// Display is a picture of the robot's display, as JPEG; nil: it has none, or its owner does not allow data collection.
	Display []byte `json:"display,omitempty"`
}

// Playing is an animation under way.
type Playing struct {
	Name   string `json:"name"`
	AtMS   int64  `json:"at_ms"`             // since it began
	SpanMS int64  `json:"span_ms,omitempty"` // absent: it is not known
}

// Tree is a structure tree: what there is, without its values.
type Tree struct {
	Body  string `json:"body"`
	Nodes []Node `json:"nodes"` // parents first
}

// Node is a component, localizer or device.
type Node struct {
	Full      string   `json:"full"`
	Compact   string   `json:"compact,omitempty"`
	Kind      string   `json:"kind"`
	Interface string   `json:"interface,omitempty"` // separated by ", "
	Actuator  bool     `json:"actuator,omitempty"`
	Slots     []Slot   `json:"slots,omitempty"`
	Aliases   []string `json:"aliases,omitempty"` // further short names
	Bearing   *float64 `json:"bearing,omitempty"` // rad, where a sensor looks, counter-clockwise from the front; absent: it is not known
}

// Slot is an attribute of a device.
type Slot struct {
	ID   int      `json:"id"`
	Name string   `json:"name"`
	Type string   `json:"type"`
	Unit string   `json:"unit,omitempty"`
	Min  *float64 `json:"min,omitempty"`
	Max  *float64 `json:"max,omitempty"`
}

// Value is the value of a slot: one of Number, Infinite and Text.
type Value struct {
	_ struct{} `cbor:",toarray"` // half the time and bytes between the programs of a robot

	Slot     int      `json:"slot"`
	AgeMS    int64    `json:"age_ms"` // when the frame was made; -1: it never changes
	Number   *float64 `json:"number,omitempty"`
	Infinite int      `json:"infinite,omitempty"` // 1 or -1: nothing in range
	Text     *string  `json:"text,omitempty"`
}

// Same reports whether v and o read alike; how old they are does not matter.
func (v Value) Same(o Value) bool {
	return v.Slot == o.Slot && v.Infinite == o.Infinite && equal(v.Number, o.Number) && equal(v.Text, o.Text)
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Gone is a device that is gone: its slots are unavailable, but for what never changes (GOSTAI-OPEN-13).
type Gone struct {
	Full  string `json:"full"`
	ForMS int64  `json:"for_ms"` // when the frame was made
	Why   string `json:"why,omitempty"`
}

// Motion is how the body moves; SI, angles counter-clockwise.
type Motion struct {
	X       float64 `json:"x"`
	Y       float64 `json:"y"`
	Theta   float64 `json:"theta"`
	Speed   float64 `json:"speed"`
	Turning float64 `json:"turning"`
	Moving  bool    `json:"moving"`
	Way     float64 `json:"way"` // m, the body's odometer

	Unreliable bool     `json:"unreliable,omitempty"` // it was pushed: the pose is wrong
	Posture    string   `json:"posture,omitempty"`    // upright, on its side and so on; "": not known
	Stop       []string `json:"stop,omitempty"`       // why it may not move
	Parts      []Part   `json:"parts,omitempty"`      // what it can move
	Owners     []Owner  `json:"owners,omitempty"`     // of the actuators that have one
}

// Part is a group of actuators that move together, such as the wheels or a joint.
type Part struct {
	Name    string `json:"name"`
	State   string `json:"state,omitempty"` // such as "homing"
	Outcome string `json:"outcome"`         // how its newest motion went
	Known   bool   `json:"known,omitempty"` // its position is known
}

// Owner says who may move a device.
type Owner struct {
	Device   string `json:"device"`
	Program  string `json:"program"`
	Priority int    `json:"priority"`
}

// Encode returns the frame as JSON.
func (f Frame) Encode() ([]byte, error) {
	f.V = 1
	if f.Values == nil {
		f.Values = []Value{}
	}
	return json.Marshal(f)
}

// ParseFrame reads a frame, and refuses what no robot of ours says. Unknown fields are left for newer robots.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) > MaxFrame {
		return Frame{}, fmt.Errorf("live frame of %d bytes: want at most %d", len(b), MaxFrame)
	}
	if !utf8.Valid(b) {
		return Frame{}, fmt.Errorf("live frame: want UTF-8")
	}
	var f Frame
	if err := json.Unmarshal(b, &f); err != nil {
		return Frame{}, fmt.Errorf("live frame: %w", err)
	}
	return f, f.check()
}

// checkDisplay checks a picture of a display as far as its head says.
func checkDisplay(b []byte) error {
	if len(b) > MaxDisplay {
		return fmt.Errorf("%d bytes: want at most %d", len(b), MaxDisplay)
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if c.Width < 1 || c.Height < 1 || c.Width > maxSide || c.Height > maxSide {
		return fmt.Errorf("%d x %d pixels: want at most %d x %d", c.Width, c.Height, maxSide, maxSide)
	}
	return nil
}

func (f *Frame) check() error {
	if f.V != 1 {
		return fmt.Errorf("live frame: version %d: want 1", f.V)
	}
	if f.Tree != nil {
		if err := f.Tree.check(); err != nil {
			return fmt.Errorf("live frame: %w", err)
		}
	}
	if len(f.Values) > maxValues {
		return fmt.Errorf("live frame: %d values: want at most %d", len(f.Values), maxValues)
	}
	for _, v := range f.Values {
		ways := 0
		for _, is := range []bool{v.Number != nil, v.Infinite != 0, v.Text != nil} {
			if is {
				ways++
			}
		}
		if v.Slot < 0 || v.Slot > math.MaxUint16 || v.AgeMS < -1 || ways != 1 || v.Infinite < -1 || v.Infinite > 1 || v.Text != nil && !good(*v.Text) {
			return fmt.Errorf("live frame: value %+v: want a slot, an age and one of number, infinite (1 or -1), text", v)
		}
	}
	if p := f.Playing; p != nil && (!good(p.Name) || p.AtMS < 0 || p.SpanMS < 0) {
		return fmt.Errorf("live frame: playing %+v: want a name of at most %d bytes, and times of at least 0", *p, maxText)
	}
	if len(f.Display) > 0 {
		if err := checkDisplay(f.Display); err != nil {
			return fmt.Errorf("live frame: display: %w", err)
		}
	}
	if len(f.Gone) > maxNodes {
		return fmt.Errorf("live frame: %d missing devices: want at most %d", len(f.Gone), maxNodes)
	}
	for _, g := range f.Gone {
		if g.Full == "" || !good(g.Full) || !good(g.Why) || g.ForMS < 0 {
			return fmt.Errorf("live frame: gone %+v: want a name, words of at most %d bytes and no time below 0", g, maxText)
		}
	}
	if f.World != nil {
		if err := f.World.Check(); err != nil {
			return fmt.Errorf("live frame: %w", err)
		}
	}
	if m := f.Motion; m != nil {
		words := append(slices.Clone(m.Stop), m.Posture)
		for _, p := range m.Parts {
			words = append(words, p.Name, p.State, p.Outcome)
		}
		for _, o := range m.Owners {
			words = append(words, o.Device, o.Program)
		}
		bad := slices.ContainsFunc(words, func(w string) bool { return !good(w) })
		if bad || len(m.Stop) > maxParts || len(m.Parts) > maxParts || len(m.Owners) > maxNodes {
			return fmt.Errorf("live frame: motion with %d reasons, %d parts and %d owners: want fewer, and words of at most %d bytes",
				len(m.Stop), len(m.Parts), len(m.Owners), maxText)
		}
	}
	return nil
}

func (t *Tree) check() error {
	if len(t.Nodes) > maxNodes || !good(t.Body) {
		return fmt.Errorf("tree %.40q with %d nodes: want at most %d", t.Body, len(t.Nodes), maxNodes)
	}
	slots := 0
	for _, n := range t.Nodes {
		slots += len(n.Slots)
		words := append([]string{n.Full, n.Compact, n.Kind, n.Interface}, n.Aliases...)
		for _, s := range n.Slots {
			words = append(words, s.Name, s.Type, s.Unit)
			if s.ID < 0 || s.ID > math.MaxUint16 {
				return fmt.Errorf("tree: %.80s: slot %d: want 0 to %d", n.Full, s.ID, math.MaxUint16)
			}
		}
		if n.Bearing != nil && !within(math.Abs(*n.Bearing), 0, mostTurn) {
			return fmt.Errorf("tree: %.80s: bearing %v: want at most %d rad", n.Full, *n.Bearing, mostTurn)
		}
		if n.Full == "" || slots > maxValues || len(n.Aliases) > maxAliases || slices.ContainsFunc(words, func(w string) bool { return !good(w) }) {
			return fmt.Errorf("tree: node %.80q: want a name, words of at most %d bytes and %d slots in all", n.Full, maxText, maxValues)
		}
	}
	return nil
}

// good reports whether s can be kept and shown: Postgres knows no U+0000.
func good(s string) bool {
	if len(s) > maxText {
		return false
	}
	for i := range len(s) {
		if s[i] == 0 {
			return false
		}
	}
	return true
}
