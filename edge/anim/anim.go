// Package anim plays keyframe motions on the joints of a body: it turns a list of postures with times into a set-point for each joint every 8 ms.
//
//	Motion ──New──► Player ──Start(where the joints are)──► lead-in ──► segment, segment, ... ──► Finished
//	                  ▲ ranges, speeds of the body's joints     Step, Step, Step: one row of set-points each
//
// A joint has its standard name, such as "robot.body.head.yaw", so a motion moves any body that has the joints; which file a motion comes from and which
// body plays it, this package does not know. A joint that the motion does not list keeps its position (MTN-56).
//
// Angles are whole micro-radian with the signs of the device model, and a row takes 8 ms, because the motions that robots came with were played in such
// rows: with the rule Truncated, the default, a motion gives the very set-points of AIBO's own player (MTN-54).
//
// A Player is a pure step: no clock, no lock, no allocation after Start. It belongs to one goroutine.
package anim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Row is the time of one row of set-points.
const Row = 8 * time.Millisecond

// Motion is a list of postures.
type Motion struct {
	Name      string
	Joints    []string // standard names, in the order of Keyframe.Values
	Keyframes []Keyframe
}

// Keyframe is one posture and how many rows the way to it takes.
type Keyframe struct {
	Rows   int64   // after the keyframe before, at least 1; 0 in the first one
	Values []int32 // micro-radian, one for each of Motion.Joints
}

// Rows returns how long the motion takes from its first keyframe to its last.
func (m *Motion) Rows() (n int64) {
	for _, k := range m.Keyframes {
		n += k.Rows
	}
	return n
}

// Joint is one joint of a body.
type Joint struct {
	Name     string // standard name
	Min, Max int32  // its range, micro-radian; both 0: none is known
	Speed    int32  // the most that it can, micro-radian a second; 0: not known
}

// Rule says how joints move from one keyframe to the next.
type Rule int

// The rules. Truncated adds the same whole number of micro-radian each row, and never sends the last keyframe: it ends a row before it (MTN-54). Linear is the
// straight line, Cosine begins and ends each segment gently, Cubic passes keyframes without stopping where the joint goes the same way before and
// after; these three end with the last keyframe, and none leaves the span between two keyframes.
const (
	Truncated Rule = iota
	Linear
	Cosine
	Cubic
)

var rules = []string{"vendor", "linear", "cosine", "cubic"}

// String returns "vendor", "linear", "cosine" or "cubic".
func (r Rule) String() string { return rules[r] }

// ParseRule returns the rule with a name.
func ParseRule(s string) (Rule, error) {
	if i := slices.Index(rules, s); i >= 0 {
		return Rule(i), nil
	}
	return 0, fmt.Errorf("rule: expected one of %v, found %.40q", rules, s)
}

// peak is how much faster than its mean a joint is at most.
func (r Rule) peak() float64 {
	switch r {
	case Cosine:
		return math.Pi / 2
	case Cubic:
		return steepest
	}
	return 1
}

// steepest is the slope of Cubic at a keyframe, as a multiple of the mean slope beside it: the fastest that a segment is anyway.
const steepest = 1.5

// Forever is the number of loops of a motion that plays until it is stopped.
const Forever = -1

// The limits of Options.Speed (MTN-57).
const (
	MinSpeed = 0.1
	MaxSpeed = 4
)

// Options say how to play.
type Options struct {
	Rule   Rule
	Speed  float64 // 0.1 to 4 times as fast as the motion says; 0: 1
	Loops  int     // how often; 0: once; Forever
	Limits bool    // keep the ranges of the joints, and take longer where one would be too fast (MTN-58)
}

// ErrMotion: a motion cannot be played; the error says where it is wrong.
var ErrMotion = errors.New("motion cannot be played")

// Report says how a Player differs from its motion.
type Report struct {
	Ignored   []string  // joints that the body does not have, or that were listed before
	Clamped   []Clamp   // of each joint the worst one
	Stretched []Stretch // segments that take longer, for a joint's speed
}

// Clamp is a position that a joint cannot reach.
type Clamp struct {
	Joint    string
	Keyframe int
	Wanted   int32 // micro-radian
	Got      int32
}

// Stretch is a segment that takes longer than the motion says.
type Stretch struct {
	Keyframe int   // at its end
	Wanted   int64 // rows
	Got      int64
}

// score is a motion as a Player has it: for one body, in one speed.
type score struct {
	rule      Rule
	joints    []int     // of the body, for each column
	keyframes int       // how many
	values    []int32   // a row of columns for each keyframe
	rows      []int64   // of each keyframe, from the one before
	slopes    []float64 // of Cubic, at each keyframe, micro-radian a row
	total     int64     // rows of set-points, with the last keyframe if it is sent
}

// compile checks a motion and fits it to a body.
func compile(m *Motion, body []Joint, o Options) (s score, rep Report, err error) {
	if len(m.Keyframes) == 0 {
		return s, rep, fmt.Errorf("%w: keyframes: expected at least 1, found 0", ErrMotion)
	}
	if o.Speed < MinSpeed || !(o.Speed <= MaxSpeed) {
		return s, rep, fmt.Errorf("%w: speed: expected %v to %v, found %v", ErrMotion, MinSpeed, float64(MaxSpeed), o.Speed)
	}
	if o.Rule < Truncated || o.Rule > Cubic {
		return s, rep, fmt.Errorf("%w: rule: expected one of %v, found %d", ErrMotion, rules, o.Rule)
	}
	s.rule, s.keyframes = o.Rule, len(m.Keyframes)
	var columns []int
	for c, name := range m.Joints {
		i := slices.IndexFunc(body, func(j Joint) bool { return j.Name == name })
		if i < 0 || slices.Contains(s.joints, i) {
			rep.Ignored = append(rep.Ignored, name)
			continue
		}
		s.joints, columns = append(s.joints, i), append(columns, c)
	}
	worst := map[int]Clamp{}
	for i, k := range m.Keyframes {
		switch {
		case len(k.Values) != len(m.Joints):
			return s, rep, fmt.Errorf("%w: keyframe %d: expected %d values, found %d", ErrMotion, i, len(m.Joints), len(k.Values))
		case (i == 0) != (k.Rows == 0), k.Rows < 0, k.Rows > maxRows:
			return s, rep, fmt.Errorf("%w: keyframe %d: expected 1 to %d rows, or 0 in the first keyframe, found %d", ErrMotion, i, maxRows, k.Rows)
		}
		for n, c := range columns {
			v, j := k.Values[c], body[s.joints[n]]
			if got := min(max(v, j.Min), j.Max); o.Limits && got != v && (j.Min != 0 || j.Max != 0) {
				w, known := worst[n]
				if !known || distance(v, got) > distance(w.Wanted, w.Got) {
					worst[n] = Clamp{j.Name, i, v, got}
				}
				v = got
			}
			s.values = append(s.values, v)
		}
	}
	for n := range columns {
		if w, known := worst[n]; known {
			rep.Clamped = append(rep.Clamped, w)
		}
	}
	s.time(m, body, o, &rep)
	return s, rep, nil
}

// maxRows bounds a segment: over a thousand years, more than any file says.
const maxRows int64 = 1 << 42

// distance returns how far two positions are apart.
func distance(a, b int32) int64 {
	d := int64(a) - int64(b)
	return max(d, -d)
}

// time gives each segment its rows, and Cubic its slopes.
func (s *score) time(m *Motion, body []Joint, o Options, rep *Report) {
	for i, k := range m.Keyframes {
		rows := int64(math.Ceil(float64(k.Rows) / o.Speed))
		if i > 0 && o.Limits {
			if need := s.need(i, body); need > rows {
				rep.Stretched = append(rep.Stretched, Stretch{i, rows, need})
				rows = need
			}
		}
		s.rows = append(s.rows, rows)
		s.total += rows
	}
	if s.rule != Truncated {
		s.total++
	}
	if s.rule != Cubic {
		return
	}
	n := len(s.joints)
	s.slopes = make([]float64, len(s.values))
	for i := 1; i < s.keyframes-1; i++ {
		for c := range n {
			at := i*n + c
			before := float64(int64(s.values[at])-int64(s.values[at-n])) / float64(s.rows[i])
			after := float64(int64(s.values[at+n])-int64(s.values[at])) / float64(s.rows[i+1])
			if before*after > 0 {
				most := steepest * min(math.Abs(before), math.Abs(after))
				s.slopes[at] = math.Copysign(min(math.Abs(before+after)/2, most), before)
			}
		}
	}
}

// need returns the rows in which every joint can move from keyframe i-1 to i.
func (s *score) need(i int, body []Joint) (rows int64) {
	n := len(s.joints)
	for c, j := range s.joints {
		rows = max(rows, rowsFor(distance(s.values[i*n+c], s.values[(i-1)*n+c]), body[j].Speed, s.rule.peak(), s.rule != Truncated))
	}
	return rows
}

// rowsFor returns in how many rows a joint can move by d, given how much faster than its mean it moves at most. rounds: a row may be one micro-radian
// longer than computed.
func rowsFor(d int64, speed int32, peak float64, rounds bool) int64 {
	if speed <= 0 {
		return 0
	}
	step := float64(speed) * Row.Seconds()
	if rounds {
		step--
	}
	return int64(math.Ceil(float64(d) * peak / max(step, 1)))
}

// row puts row f of the segment that ends with keyframe i into out, whose places are those of the body's joints. Row 0 is keyframe i-1.
func (s *score) row(i int, f int64, out []int32) {
	n, rows := len(s.joints), s.rows[i]
	from, to := s.values[(i-1)*n:i*n], s.values[i*n:(i+1)*n]
	t := float64(f) / float64(rows)
	switch s.rule {
	case Truncated:
		for c, j := range s.joints {
			out[j] = int32(int64(from[c]) + f*((int64(to[c])-int64(from[c]))/rows))
		}
	case Cubic:
		a, b := s.slopes[(i-1)*n:i*n], s.slopes[i*n:(i+1)*n]
		h1, ha, hb := t*t*(3-2*t), t*(1-t)*(1-t)*float64(rows), t*t*(t-1)*float64(rows)
		for c, j := range s.joints {
			out[j] = mix(from[c], to[c], h1, ha*a[c]+hb*b[c])
		}
	default:
		if s.rule == Cosine {
			t = (1 - math.Cos(math.Pi*t)) / 2
		}
		for c, j := range s.joints {
			out[j] = mix(from[c], to[c], t, 0)
		}
	}
}

// mix returns the position a share t of the way from a to b and a bit further, between the two.
func mix(a, b int32, t, further float64) int32 {
	v := int64(math.Round(float64(a) + (float64(b)-float64(a))*t + further))
	return int32(min(max(v, int64(min(a, b))), int64(max(a, b))))
}
