// Package motions brings AIBO's motion files and its bodies together: which joints of which model a file moves, whether that body can do it, and how the
// motion looks mirrored, slower, blended or on another model.
//
//	mtn.File ──Motion──► anim.Motion ──► anim.Player on Body(model)      to play
//	         ──Check───► findings: names, postures, ranges, speeds       to judge
//	         ──Mirror, Reverse, Scale, Limit, Blend, Retarget──► File    to edit
//
// Files count angles as AIBO does, and Motion turns them into those of the device model: device = sign × AIBO (MTN-60). Editing works on the file, whose numbers
// it keeps as whole micro-radian.
package motions

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// ErrModel: the motion is for another model than the body, or for none that is known.
var ErrModel = errors.New("motion is not for this model")

// ModelOf returns the model that a file is for; false for an unknown format.
func ModelOf(f *mtn.File) (aibo.Model, bool) {
	p, ok := mtn.PlatformOf(f.Format)
	return aibo.Model(p.ERS), ok
}

// platform returns the platform of a model: each of aibo.Models has one.
func platform(m aibo.Model) mtn.Platform {
	p, _ := mtn.PlatformFor(int(m))
	return p
}

// ordered are the joints of each model in the order of its files.
var ordered = func() map[aibo.Model][]aibo.Joint {
	all := map[aibo.Model][]aibo.Joint{}
	for _, m := range aibo.Models {
		have := aibo.Joints(m)
		for _, j := range platform(m).Joints {
			i := slices.IndexFunc(have, func(a aibo.Joint) bool { return a.Native == j.Name })
			all[m] = append(all[m], have[i])
		}
	}
	return all
}()

// joints returns the joints of a model in the order of its files, which must not be changed.
func joints(m aibo.Model) []aibo.Joint { return ordered[m] }

// joint returns a joint of a model by its native name.
func joint(m aibo.Model, native string) (aibo.Joint, bool) {
	for _, j := range joints(m) {
		if j.Native == native {
			return j, true
		}
	}
	return aibo.Joint{}, false
}

// span returns the range of a joint in micro-radian as AIBO counts; both 0: none.
func span(j aibo.Joint) (lo, hi int32) { return mtn.MicroRadian(j.Min), mtn.MicroRadian(j.Max) }

// Body returns the joints of a model in the order of its files, with the signs of the device model.
func Body(m aibo.Model) (body []anim.Joint) {
	for _, j := range joints(m) {
		lo, hi := span(j)
		lo, hi = lo*int32(j.Sign), hi*int32(j.Sign)
		body = append(body, anim.Joint{Name: j.Path, Min: min(lo, hi), Max: max(lo, hi), Speed: int32(math.Floor(j.Speed * 1e6))})
	}
	return body
}

// Posture returns where the joints of Body are in a posture; false if the model has none with that name.
func Posture(m aibo.Model, name string) (at []int32, ok bool) {
	p, ok := aibo.Posture(m, name)
	if !ok {
		return nil, false
	}
	for _, j := range joints(m) {
		at = append(at, mtn.MicroRadian(p[j.Native])*int32(j.Sign))
	}
	return at, true
}

// Start returns the motion that brings a model into the posture in which a file's motion begins, as its name says: one keyframe of all joints, to which a player
// moves at limited speed from wherever the robot is (MTN-53). False if the name says none or the model's angles of it are not known; then the way to
// the first keyframe of the motion itself must do.
func Start(f *mtn.File, m aibo.Model) (*anim.Motion, bool) {
	n := mtn.ParseName(f.Name)
	at, ok := Posture(m, n.Start)
	if !ok {
		return nil, false
	}
	out := &anim.Motion{Name: n.Start, Keyframes: []anim.Keyframe{{Values: at}}}
	for _, j := range joints(m) {
		out.Joints = append(out.Joints, j.Path)
	}
	return out, true
}

// rowsOf returns the rows of a segment: two for each frame (MTN-35, MTN-54).
func rowsOf(interp uint32) int64 { return 2*int64(interp) + 2 }

// Motion returns the motion of a file on a model by standard names: of the joints that the file lists and the part of its name drives, those that the
// model has (MTN-55). ErrModel if the file is for another model, unless byName, which takes every joint that has the same name on both (MTN-52); the caller
// may prefer Retarget.
func Motion(f *mtn.File, m aibo.Model, byName bool) (*anim.Motion, error) {
	own, ok := ModelOf(f)
	if !ok {
		return nil, fmt.Errorf("%w: expected the format of %v, %s, found %.40q", ErrModel, m, platform(m).Format, f.Format)
	}
	if own != m && !byName {
		return nil, fmt.Errorf("%w: expected the format of %v, %s, found %s, of %v", ErrModel, m, platform(m).Format, f.Format, own)
	}
	name := mtn.ParseName(f.Name)
	out := &anim.Motion{Name: f.Name}
	var columns, signs []int
	for c, r := range platform(own).Resolve(f.Joints) {
		if j, has := joint(m, r.Name); has && r.Match != mtn.Lacking && name.Drives(r.Name) {
			out.Joints, columns, signs = append(out.Joints, j.Path), append(columns, c), append(signs, j.Sign)
		}
	}
	for i := range f.Keyframes {
		k := anim.Keyframe{Values: make([]int32, len(columns))}
		if i > 0 {
			k.Rows = rowsOf(f.Keyframes[i].Interp)
		}
		for n, c := range columns {
			k.Values[n] = saturate(int64(f.Keyframes[i].Joints[c]) * int64(signs[n]))
		}
		out.Keyframes = append(out.Keyframes, k)
	}
	return out, nil
}

// saturate returns v within 32 bits.
func saturate(v int64) int32 { return int32(min(max(v, math.MinInt32), math.MaxInt32)) }

// Columns returns the motion of a file as it is: every place of its list is a joint of its own, in AIBO's signs, and the second result is a body that has
// exactly these. So it is played as the vendor's own player does, which knows no ranges and no parts.
func Columns(f *mtn.File) (*anim.Motion, []anim.Joint) {
	out, body := &anim.Motion{Name: f.Name}, make([]anim.Joint, len(f.Joints))
	for c := range f.Joints {
		body[c].Name = fmt.Sprint(c)
		out.Joints = append(out.Joints, body[c].Name)
	}
	for i, k := range f.Keyframes {
		rows := int64(0)
		if i > 0 {
			rows = rowsOf(k.Interp)
		}
		out.Keyframes = append(out.Keyframes, anim.Keyframe{Rows: rows, Values: k.Joints})
	}
	return out, body
}
