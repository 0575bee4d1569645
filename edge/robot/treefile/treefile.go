// Package treefile reads a structure tree from JSON:
//
//	{"robot": {
//	    ".": "Identity, Mobile",
//	    "body": {
//	        "wheel[]": {"left": "RotationalMotor", "right": "RotationalMotor"},
//	        "leg[]":   {"front[]": {"left": {"knee": {"pitch": "RotationalMotor"}}}},
//	        "micro[]": {"0": "AudioIn", "1": "AudioIn"},
//	        "battery": {".": "Battery", "temperature": "TemperatureSensor"}
//	}}}
//
// An object is a component, a key that ends in [] a localizer with its places inside, a string a device of that interface, or of several
// with commas between. The key "." means the component itself, so that a device can have parts. In a localizer an object with nothing but
// places for keys is a nested localizer, with or without []; x, y and z are taken for components there, unless the key has []. The
// outermost object is the robot, or holds it as its only key. armR, the old spelling, is arm[right] (GOSTAI-LOC-11).
//
// A device that a file describes has all optional slots of its interfaces: the file cannot say otherwise.
package treefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"kennel/edge/robot"
)

// Bounds of a file; own defaults.
const (
	maxBytes = 8 << 20
	maxNodes = 100_000 // the skin of the standard's example has 59 875 sensors, touch[478][124] the last
	maxDepth = 64
)

// Error says where in the file something is wrong.
type Error struct {
	Line, Column int    // from 1
	At           string // the node, as far as it is known
	Err          error
}

// Error returns "line 3, column 12, robot.body.wheel: what was wrong".
func (e *Error) Error() string {
	where := fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	if e.At != "" {
		where += ", " + e.At
	}
	return where + ": " + e.Err.Error()
}

// Unwrap returns what was wrong.
func (e *Error) Unwrap() error { return e.Err }

// value is one JSON value: a string, or an object with its keys in order.
type value struct {
	at     int // offset of its end for a string, of its opening brace for an object
	text   string
	object bool
	keys   []key
}

type key struct {
	name string
	at   int
	val  value
}

type parser struct {
	src   []byte
	dec   *json.Decoder
	nodes int
	tree  *robot.Tree
	known map[*robot.Node]bool // components and devices described so far
}

// Parse returns the sealed tree that src describes, and a warning for each compact name that several devices would share.
func Parse(name string, src []byte) (t *robot.Tree, warnings []error, err error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff")) // some editors begin a file with it
	p := &parser{src: src, dec: json.NewDecoder(bytes.NewReader(src)), tree: robot.New(name), known: map[*robot.Node]bool{}}
	if len(src) > maxBytes {
		return nil, nil, fmt.Errorf("%d bytes, want at most %d", len(src), maxBytes)
	}
	if !utf8.Valid(src) {
		return nil, nil, errors.New("not UTF-8 text")
	}
	top, err := p.read(0)
	if err != nil {
		return nil, nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, p.fail(int(p.dec.InputOffset()), "", errors.New("data after the tree; want one object"))
	}
	if !top.object {
		return nil, nil, p.fail(top.at, "", errors.New(`want an object, {"robot": ...}`))
	}
	if len(top.keys) == 1 && top.keys[0].name == "robot" {
		top = top.keys[0].val
	}
	if err := p.component("robot", top.at, top); err != nil {
		return nil, nil, err
	}
	warnings, err = p.tree.Seal()
	return p.tree, warnings, err
}

// fail places err in the file.
func (p *parser) fail(at int, node string, err error) error {
	at = min(max(at, 0), len(p.src))
	before := p.src[:at]
	line := bytes.Count(before, []byte("\n"))
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Error{Line: line + 1, Column: utf8.RuneCount(before[start:]) + 1, At: node, Err: err}
}

// token reads one token and returns where it begins. want says what may stand there, for an error.
func (p *parser) token(want string) (json.Token, int, error) {
	at := int(p.dec.InputOffset())
	for at < len(p.src) && strings.IndexByte(" \t\r\n,:", p.src[at]) >= 0 {
		at++
	}
	t, err := p.dec.Token()
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		// The decoder's position: the offset in its error does not count the tokens it took one by one.
		at = int(p.dec.InputOffset())
		return nil, at, p.fail(at, "", fmt.Errorf("%w; want %s", syntax, want))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, at, p.fail(len(p.src), "", fmt.Errorf("truncated text; want %s", want))
	case err != nil:
		return nil, at, p.fail(at, "", err)
	}
	return t, at, nil
}

// The kinds of value that a file may contain, as error texts name them.
const (
	wantValue = "an object in braces (a component) or a string in quotes (a device's interface)"
	wantKey   = "a key in quotes with a colon behind it, a comma between two, or the closing brace"
)

func (p *parser) read(depth int) (value, error) {
	t, at, err := p.token(wantValue)
	if err != nil {
		return value{}, err
	}
	if p.nodes++; p.nodes > maxNodes || depth > maxDepth {
		return value{}, p.fail(at, "", fmt.Errorf("more than %d nodes, or more than %d levels", maxNodes, maxDepth))
	}
	switch t := t.(type) {
	case string:
		return value{at: at, text: t}, nil
	case json.Delim:
		if t == '{' {
			return p.object(at, depth)
		}
	}
	return value{}, p.fail(at, "", errors.New("want "+wantValue))
}

func (p *parser) object(at, depth int) (value, error) {
	v := value{at: at, object: true}
	seen := map[string]bool{}
	for p.dec.More() {
		t, at, err := p.token(wantKey)
		if err != nil {
			return value{}, err
		}
		name, ok := t.(string)
		if !ok {
			return value{}, p.fail(at, "", errors.New("want "+wantKey))
		}
		if seen[name] {
			return value{}, p.fail(at, "", fmt.Errorf("%w: duplicate key %.60q", robot.ErrDuplicate, name))
		}
		seen[name] = true
		val, err := p.read(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.keys = append(v.keys, key{name, at, val})
	}
	_, _, err := p.token(wantKey) // the closing brace
	return v, err
}

// component adds the component or device at path, described by v; its key is at byte at.
func (p *parser) component(path string, at int, v value) error {
	n, err := p.tree.Grow(path)
	if err == nil && p.known[n] {
		err = fmt.Errorf("%w: the file describes %s twice", robot.ErrDuplicate, n.Full())
	}
	if err != nil {
		return p.fail(at, path, err)
	}
	p.known[n] = true
	if !v.object {
		return p.device(path, v)
	}
	for _, k := range v.keys {
		if k.name == "." {
			if k.val.object {
				return p.fail(k.at, path, errors.New(`"." contains the interfaces of the component itself; want a string`))
			}
			if err := p.device(path, k.val); err != nil {
				return err
			}
			continue
		}
		name, localizer := strings.CutSuffix(k.name, "[]")
		if step, old := robot.OldStyle(name); old && !localizer {
			name = step.String()
		}
		below := path + "." + name
		if err := p.checkStep(name); err != nil {
			return p.fail(k.at, path, err)
		}
		if localizer {
			if strings.Contains(name, "[") {
				return p.fail(k.at, path, fmt.Errorf("%w: key %.60q; write a localizer as in \"wheel[]\"", robot.ErrName, k.name))
			}
			if err := p.localizer(below, k.at, k.val); err != nil {
				return err
			}
			continue
		}
		if err := p.component(below, k.at, k.val); err != nil {
			return err
		}
	}
	return nil
}

// checkStep refuses a key that is not exactly one name.
func (p *parser) checkStep(name string) error {
	path, err := robot.ParsePath(name)
	if err == nil && (len(path.Steps) != 1 || path.Body != "" || path.Property != "") {
		err = fmt.Errorf("%w: %.60q; want one name per key", robot.ErrName, name)
	}
	return err
}

// localizer adds the members of the localizer at path, which may end in places already.
func (p *parser) localizer(path string, at int, v value) error {
	if !v.object || len(v.keys) == 0 {
		return p.fail(at, path, errors.New(`a localizer contains an object of places, such as {"left": ..., "right": ...}`))
	}
	for _, k := range v.keys {
		word, nested := strings.CutSuffix(k.name, "[]")
		if _, err := robot.ParseLoc(word); err != nil {
			return p.fail(k.at, path, err)
		}
		below := path + "[" + word + "]"
		if nested || k.val.places() {
			if err := p.localizer(below, k.at, k.val); err != nil {
				return err
			}
			continue
		}
		if err := p.component(below, k.at, k.val); err != nil {
			return err
		}
	}
	return nil
}

// places reports whether v can only be a nested localizer: all its keys are places. The axes do not count, they are components too.
func (v value) places() bool {
	for _, k := range v.keys {
		l, err := robot.ParseLoc(strings.TrimSuffix(k.name, "[]"))
		if err != nil || l == robot.AxisX || l == robot.AxisY || l == robot.AxisZ {
			return false
		}
	}
	return v.object && len(v.keys) > 0
}

func (p *parser) device(path string, v value) error {
	part := robot.Part{Path: path, Has: []string{"*"}}
	for name := range strings.SplitSeq(v.text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			part.Is = append(part.Is, name)
		}
	}
	if _, err := p.tree.Add(part); err != nil {
		return p.fail(v.at, path, err)
	}
	return nil
}
