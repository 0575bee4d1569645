// Package motionwire holds the messages of cloud and robot about the motions that a robot can do by its joints: those of its body's own library, and those that
// its owner uploaded.
//
//	down/motion          empty: the owner's motions changed
//	req/motion/sync      Have -> Want     at every connection and after down/motion: what the robot has, and what it should have
//	req/motion/file      Ref -> File      the bytes of one that it lacks
//	req/motion/verdict   Verdict -> {}    what the robot found when it checked one
//	req/motion/body      Body -> {}       how the robot's body is made, and its library, when Want asks for it
//
// The robot judges, because the rules for a motion are its body's: cloud and pages know no species (infra/adr/0059). Either side may see anything twice: a
// verdict is about the bytes whose hash it names, and counts as long as the cloud has these.
package motionwire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"
)

// Names of the requests, and of the message below down/.
const (
	Service       = "motion"
	SyncMethod    = "sync"
	FileMethod    = "file"
	VerdictMethod = "verdict"
	BodyMethod    = "body"
)

// Limits; own defaults.
const (
	MaxFile     = 192 << 10 // bytes of an upload: the longest known motion has 91 keyframes of 20 joints, 9 kB, and its text form some 20 kB
	MaxMotions  = 40        // uploaded ones of a robot
	MaxBody     = 256 << 10 // bytes of a Body or a Verdict as JSON
	maxFindings = 100
	maxJoints   = 64
	maxFrames   = 4096
	maxText     = 300 // bytes of a word
	maxWhy      = 600
)

// Prefix begins the names of motions among a robot's animations: "motion/sit".
const Prefix = "motion/"

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// IsName reports whether s can be the name of a motion: a lower-case letter, then up to 39 letters, digits and underscores. It is safe in the name of a file.
func IsName(s string) bool { return namePattern.MatchString(s) }

// Sum returns the hash of a file: SHA-256 in hexadecimal digits.
func Sum(file []byte) string {
	h := sha256.Sum256(file)
	return hex.EncodeToString(h[:])
}

// Ref names a motion and its bytes.
type Ref struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

func (r Ref) check() error {
	if b, err := hex.DecodeString(r.SHA256); !IsName(r.Name) || err != nil || len(b) != sha256.Size {
		return fmt.Errorf("motion %.60q, SHA-256 %.80q: want a name and 64 hexadecimal digits", r.Name, r.SHA256)
	}
	return nil
}

// Have says which body a robot has.
type Have struct {
	V    int    `json:"v"`
	Body string `json:"body,omitempty"` // Sum of its Body as it would send it; "": it has no joints that move by motions
}

// Want lists the motions that it should have.
type Want struct {
	V       int     `json:"v"`
	Body    bool    `json:"body"` // it is to send its Body before it judges anything
	Motions []Asked `json:"motions"`
}

// Asked is a motion that a robot should have.
type Asked struct {
	Ref
	Judge bool `json:"judge,omitempty"` // there is no verdict of this body yet
}

// File is a motion's bytes: as its owner uploaded it.
type File struct {
	V    int    `json:"v"`
	File []byte `json:"file"`
}

// Verdict says what a robot found in a motion.
type Verdict struct {
	V int `json:"v"`
	Ref
	Kept     bool      `json:"kept"`          // it can be played
	Why      string    `json:"why,omitempty"` // if not: the first reason, in words
	Findings []Finding `json:"findings,omitempty"`
	Motion   *Sequence `json:"motion,omitempty"` // as it moves the body; nil if it cannot be read
	File     []byte    `json:"file,omitempty"`   // in the format of the body's own motion files
}

// Finding is one thing that a robot noticed in a motion.
type Finding struct {
	Severity string `json:"severity"` // error, warning or note
	Code     string `json:"code"`     // stable, for programs
	Offset   int64  `json:"offset"`   // in the file, in bytes; -1: it concerns no place
	What     string `json:"what"`     // with its row, keyframe and joint
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
}

// Sequence is a motion as it moves a body.
type Sequence struct {
	Name      string     `json:"name"`
	Start     string     `json:"start,omitempty"` // the posture in which it begins, and
	Stop      string     `json:"stop,omitempty"`  // in which it ends; "": none that is known
	SpanMS    int64      `json:"span_ms"`
	Joints    []string   `json:"joints"` // standard names
	Keyframes []Keyframe `json:"keyframes"`
}

// Keyframe is one posture of a motion.
type Keyframe struct {
	AtMS   int64   `json:"at_ms"`  // from the first keyframe
	Values []int32 `json:"values"` // micro-radian, one for each joint, with the signs of the device model
}

// Edited is a motion as a page writes it: Sequence, with the version by which it is told from other forms of motions.
type Edited struct {
	V int `json:"v"`
	Sequence
}

// Body is how a robot's body is made, and the motions that it knows without its owner.
type Body struct {
	V       int        `json:"v"`
	Model   string     `json:"model"`
	Ending  string     `json:"ending"` // of its motion files: "mtn"
	Joints  []Joint    `json:"joints"`
	Links   []Link     `json:"links"` // parents first
	Bones   []Bone     `json:"bones"`
	Motions []Sequence `json:"motions"`
}

// Joint is a joint that motions move.
type Joint struct {
	Name  string `json:"name"`
	Slot  string `json:"slot"` // full name of the slot with its angle in rad
	Min   int32  `json:"min"`  // micro-radian; both 0: no range is known
	Max   int32  `json:"max"`
	Speed int32  `json:"speed"` // micro-radian a second; 0: not known
}

// Link is a frame that a joint turns. Metres; X forward, Y left, Z up.
type Link struct {
	Joint  string     `json:"joint,omitempty"` // "": it does not turn
	Parent int        `json:"parent"`          // in Links; -1: the trunk
	At     [3]float64 `json:"at"`              // its origin, in the parent's frame
	Axis   [3]float64 `json:"axis"`            // about which it turns, in its own frame
}

// Bone is a line to draw.
type Bone struct {
	Link int        `json:"link"` // in whose frame From and To are; -1: the trunk
	From [3]float64 `json:"from"`
	To   [3]float64 `json:"to"`
	Wide float64    `json:"wide"` // m
}

func parse[T any](what string, b []byte, most int, version func(*T) int) (v T, err error) {
	if len(b) > most {
		return v, fmt.Errorf("%s of %d bytes: want at most %d", what, len(b), most)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err = d.Decode(&v); err != nil {
		return v, fmt.Errorf("%s, byte %d: %w", what, d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return v, fmt.Errorf("%s, byte %d: want nothing behind it", what, d.InputOffset())
	}
	if n := version(&v); n != 1 {
		return v, fmt.Errorf("%s: version %d: want 1", what, n)
	}
	return v, nil
}

// ParseHave reads a Have.
func ParseHave(b []byte) (Have, error) {
	return parse("motion sync", b, MaxBody, func(h *Have) int { return h.V })
}

// ParseRef reads a Ref.
func ParseRef(b []byte) (Ref, error) {
	r, err := parse("motion", b, MaxBody, func(*Ref) int { return 1 })
	if err == nil {
		err = r.check()
	}
	return r, err
}

// ParseWant reads a Want.
func ParseWant(b []byte) (Want, error) {
	w, err := parse("motions", b, MaxBody, func(w *Want) int { return w.V })
	if err == nil && len(w.Motions) > MaxMotions {
		err = fmt.Errorf("motions: %d of them: want at most %d", len(w.Motions), MaxMotions)
	}
	for _, m := range w.Motions {
		if err == nil {
			err = m.check()
		}
	}
	return w, err
}

// ParseFile reads a File of at most MaxFile bytes.
func ParseFile(b []byte) (File, error) {
	f, err := parse("motion file", b, 2*MaxFile, func(f *File) int { return f.V })
	if err == nil && len(f.File) > MaxFile {
		err = fmt.Errorf("motion file of %d bytes: want at most %d", len(f.File), MaxFile)
	}
	return f, err
}

// ParseVerdict reads a Verdict and refuses what no robot of ours says.
func ParseVerdict(b []byte) (Verdict, error) {
	v, err := parse("verdict", b, 2*MaxBody+2*MaxFile, func(v *Verdict) int { return v.V })
	if err == nil {
		err = v.check()
	}
	return v, err
}

func (v *Verdict) check() error {
	if err := v.Ref.check(); err != nil {
		return err
	}
	if len(v.Findings) > maxFindings || len(v.File) > MaxFile || len(v.Why) > maxWhy || !utf8.ValidString(v.Why) {
		return fmt.Errorf("verdict: %d findings, file of %d bytes, reason of %d: want at most %d, %d and %d", len(v.Findings), len(v.File), len(v.Why), maxFindings, MaxFile, maxWhy)
	}
	for _, f := range v.Findings {
		for _, s := range []string{f.Severity, f.Code, f.What, f.Expected, f.Found} {
			if len(s) > maxText || !utf8.ValidString(s) {
				return fmt.Errorf("verdict: finding %.60q: want at most %d bytes of text", s, maxText)
			}
		}
	}
	if v.Motion == nil {
		return nil
	}
	return v.Motion.check()
}

func (m *Sequence) check() error {
	if len(m.Joints) > maxJoints || len(m.Keyframes) > maxFrames || len(m.Name) > maxText {
		return fmt.Errorf("motion %.60q: %d joints, %d keyframes: want at most %d and %d", m.Name, len(m.Joints), len(m.Keyframes), maxJoints, maxFrames)
	}
	at := int64(-1)
	for i, k := range m.Keyframes {
		if len(k.Values) != len(m.Joints) {
			return fmt.Errorf("motion %.60q, keyframe %d: %d values: want %d, one for each joint", m.Name, i, len(k.Values), len(m.Joints))
		}
		if k.AtMS <= at || i == 0 && k.AtMS != 0 || k.AtMS > MaxSpanMS {
			return fmt.Errorf("motion %.60q, keyframe %d: at_ms %d: want 0 for the first, then more each time, at most %d", m.Name, i, k.AtMS, MaxSpanMS)
		}
		at = k.AtMS
	}
	return nil
}

// MaxSpanMS is the longest motion that a robot keeps, in milliseconds: our own limit.
const MaxSpanMS = 120_000

// ParseEdited reads a motion of a page.
func ParseEdited(b []byte) (Edited, error) {
	e, err := parse("motion", b, MaxFile, func(e *Edited) int { return e.V })
	if err == nil {
		err = e.check()
	}
	return e, err
}

// IsEdited reports whether bytes are a motion of a page, and no other form of one.
func IsEdited(b []byte) bool {
	var probe struct {
		V *int `json:"v"`
	}
	return len(b) <= MaxFile && json.Unmarshal(b, &probe) == nil && probe.V != nil
}

// ParseBody reads a Body and refuses what no robot of ours says.
func ParseBody(b []byte) (Body, error) {
	o, err := parse("body", b, MaxBody, func(o *Body) int { return o.V })
	if err != nil {
		return o, err
	}
	if len(o.Joints) > maxJoints || len(o.Links) > maxJoints || len(o.Bones) > 4*maxJoints || len(o.Motions) > maxJoints || len(o.Model) > maxText || !namePattern.MatchString(o.Ending) {
		return o, fmt.Errorf("body: %d joints, %d links, %d bones, %d motions, ending %.40q: want at most %d, %[6]d, %[7]d and %[6]d, and a word", len(o.Joints), len(o.Links), len(o.Bones), len(o.Motions), o.Ending, maxJoints, 4*maxJoints)
	}
	for i, l := range o.Links {
		if l.Parent < -1 || l.Parent >= i {
			return o, fmt.Errorf("body: link %d: parent %d: want -1 or one before it", i, l.Parent)
		}
	}
	for i, n := range o.Bones {
		if n.Link < -1 || n.Link >= len(o.Links) {
			return o, fmt.Errorf("body: bone %d: link %d: want -1 to %d", i, n.Link, len(o.Links)-1)
		}
	}
	for i := range o.Motions {
		if !IsName(o.Motions[i].Name) {
			return o, fmt.Errorf("body: motion %d: name %.60q: want a word", i, o.Motions[i].Name)
		}
		if err := o.Motions[i].check(); err != nil {
			return o, fmt.Errorf("body: %w", err)
		}
	}
	return o, nil
}
