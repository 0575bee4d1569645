package mtn

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Author is the author of motions that say none (MTN-21).
const Author = "kennel"

// New returns a motion without keyframes that moves all joints of a platform, with the constants of its version: 1.1 for ERS-110, 1.2 for the others
// (MTN-12, MTN-50).
func New(p Platform, name string) *File {
	f := &File{Name: name, Author: Author, Format: p.Format, Joints: make([]string, len(p.Joints))}
	f.defaults(p)
	for i, j := range p.Joints {
		f.Joints[i] = j.Key
	}
	return f
}

// defaults fills in version and rate as the files of a platform have them.
func (f *File) defaults(p Platform) {
	f.Major, f.Minor, f.Rate = 1, 2, uint16(Frame.Milliseconds())
	if p.ERS == 110 {
		f.Minor, f.Rate = 1, 0
	}
}

// Add appends a keyframe that is reached some time after the one before, in whole frames and at least one; the first one has no time of its own. Joints
// are named as the platform does, or by their keys, with their angles in degrees as AIBO counts; the others keep their angle, which begins at 0 (MTN-34,
// MTN-50). An unknown joint and an angle that is no number are errors, and then nothing is added.
func (f *File) Add(after time.Duration, degrees map[string]float64) error {
	interp, err := Interp(after)
	if err != nil {
		return err
	}
	k := Keyframe{Joints: make([]int32, len(f.Joints))}
	if n := len(f.Keyframes); n > 0 {
		k = Keyframe{interp, f.Keyframes[n-1].RPY, slices.Clone(f.Keyframes[n-1].Joints)}
	} // else there is nothing to come from, and no time
	p, _ := PlatformOf(f.Format)
	names := p.Resolve(f.Joints)
	for _, name := range slices.Sorted(maps.Keys(degrees)) {
		i := slices.IndexFunc(names, func(r Resolved) bool { return r.Name == name })
		if i < 0 {
			i = slices.Index(f.Joints, name)
		}
		if i < 0 {
			return fmt.Errorf("joint %q: expected one of the motion's, such as %s", name, sample(names))
		}
		v, err := microRadian(degrees[name])
		if err != nil {
			return fmt.Errorf("joint %s: %w", name, err)
		}
		k.Joints[i] = v
	}
	f.Keyframes = append(f.Keyframes, k)
	return nil
}

// sample names a few joints, for an error.
func sample(names []Resolved) string {
	var out []string
	for _, r := range names {
		if r.Name != "" && len(out) < 3 {
			out = append(out, r.Name)
		}
	}
	return strings.Join(out, ", ")
}

// Interp returns the frames between two keyframes, less one, for a time of at least 0: the nearest number, since a keyframe takes one frame at least
// (MTN-35).
func Interp(d time.Duration) (uint32, error) {
	if frames := (d + Frame/2) / Frame; d >= 0 && frames <= math.MaxUint32 {
		return uint32(max(1, frames) - 1), nil
	}
	return 0, fmt.Errorf("time: expected 0 to %v, found %v", math.MaxUint32*Frame, d)
}

// microRadian is MicroRadian with an error for what does not fit.
func microRadian(degrees float64) (int32, error) {
	if most := float64(math.MaxInt32) / perDegree; !(math.Abs(degrees) <= most) {
		return 0, fmt.Errorf("angle: expected -%.0f to %.0f degrees, found %v", most, most, degrees)
	}
	return MicroRadian(degrees), nil
}

// key returns the key of a joint as a text form names it: the platform's own for a symbolic name, else what is said.
func (p Platform) key(said string) string {
	for _, j := range slices.Concat(p.Joints, p.Absent) {
		if j.Name == said {
			return j.Key
		}
	}
	return said
}

// named reports whether a text form would take a string for a symbolic name, and so must say that it is a key.
func named(s string) bool {
	return slices.ContainsFunc(platforms, func(p Platform) bool { return p.key(s) != s })
}

// TextError says where a text form is wrong.
type TextError struct {
	Line, Column int // from 1, in bytes; 0: nowhere in particular
	What         string
	Expected     string
	Found        string
}

// Error returns "line 3, column 7: angle: expected a number, found "x"".
func (e *TextError) Error() string {
	text := e.What
	if e.Expected != "" {
		text += ": expected " + e.Expected
	}
	if e.Found != "" {
		text += ", found " + e.Found
	}
	if e.Line == 0 {
		return text
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, text)
}
