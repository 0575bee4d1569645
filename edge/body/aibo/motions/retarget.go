package motions

import (
	"math"
	"slices"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// Retarget returns the motion for another model, with what could not be kept. Every joint that both models have keeps its angle, cut to the range of the
// target: so each paw keeps its path as long as every joint of its leg stays within 5 degrees, which Change.Keeps says. A head that nods in one joint and one
// that nods in two keep the direction of the nose: the joints of a pair share the way from the posture stand of the model. Joints that the target lacks are
// left out and named.
func Retarget(f *mtn.File, to aibo.Model) (*mtn.File, []Change, error) {
	from, names, err := known(f)
	if err != nil {
		return nil, nil, err
	}
	target := platform(to)
	out := mtn.New(target, f.Name)
	out.Author, out.Joints = f.Author, nil
	for i := range f.Keyframes {
		k := &f.Keyframes[i]
		out.Keyframes = append(out.Keyframes, mtn.Keyframe{Interp: k.Interp, RPY: k.RPY})
	}
	r := retarget{f: f, out: out, column: map[string]int{}}
	for i, n := range names {
		if n.Name != "" && n.Match != mtn.Lacking {
			r.column[n.Name] = i
		}
	}
	_, nods := r.column[pitch]
	one, two := has(from, pitch2), has(target, pitch2)
	for _, j := range target.Joints {
		head := nods && one != two && (j.Name == pitch || j.Name == pitch2)
		switch i, listed := r.column[j.Name]; {
		case head && two:
			r.split(to, j)
		case head:
			r.add(to, j, r.nose)
		case listed:
			r.add(to, j, func(k int) float64 { return float64(f.Keyframes[k].Joints[i]) })
		}
	}
	for i, n := range names {
		if n.Name == "" || has(target, n.Name) && n.Match != mtn.Lacking || n.Name == pitch2 && nods {
			continue
		}
		r.lacking(n.Name, i)
	}
	return out, r.changes, nil
}

// The joints in which heads nod.
const (
	pitch  = "HEAD_PITCH"
	pitch2 = "HEAD_PITCH2"
)

func has(p mtn.Platform, name string) bool {
	return slices.ContainsFunc(p.Joints, func(j mtn.Joint) bool { return j.Name == name })
}

type retarget struct {
	f, out  *mtn.File
	column  map[string]int // of each joint of the source
	changes []Change
}

// nose returns the direction of the nose in keyframe k, in micro-radian.
func (r *retarget) nose(k int) float64 {
	v := float64(r.f.Keyframes[k].Joints[r.column[pitch]])
	if i, two := r.column[pitch2]; two {
		v += float64(r.f.Keyframes[k].Joints[i])
	}
	return v
}

// add appends a joint with an angle for each keyframe, in micro-radian, cut to the joint's range.
func (r *retarget) add(to aibo.Model, j mtn.Joint, angle func(k int) float64) {
	r.out.Joints = append(r.out.Joints, j.Key)
	for k := range r.out.Keyframes {
		r.out.Keyframes[k].Joints = append(r.out.Keyframes[k].Joints, saturate(int64(math.Round(angle(k)))))
	}
	own, _ := joint(to, j.Name)
	if c, cut := cut(r.out, len(r.out.Joints)-1, own); cut {
		r.changes = append(r.changes, c)
	}
}

// split appends one of the two joints of a head that nods in two. The upper one goes first, as far as it can; the neck does the rest.
func (r *retarget) split(to aibo.Model, j mtn.Joint) {
	stand, _ := aibo.Posture(to, "stand")
	neck, head := float64(mtn.MicroRadian(stand[pitch])), float64(mtn.MicroRadian(stand[pitch2]))
	own, _ := joint(to, pitch2)
	lo, hi := span(own)
	upper := func(k int) float64 { return min(max(head+r.nose(k)-(neck+head), float64(lo)), float64(hi)) }
	if j.Name == pitch2 {
		r.add(to, j, upper)
		return
	}
	r.add(to, j, func(k int) float64 { return r.nose(k) - upper(k) })
}

// lacking names a joint that the target does not have, with the angle that is farthest from where it began.
func (r *retarget) lacking(name string, i int) {
	c := Change{Joint: name, What: "lacking", Keeps: true}
	for k := range r.f.Keyframes {
		v, first := r.f.Keyframes[k].Joints[i], r.f.Keyframes[0].Joints[i]
		if k == 0 {
			c.Wanted, c.Got = mtn.Degrees(v), mtn.Degrees(v)
		}
		if off := math.Abs(mtn.Degrees(v) - c.Got); v != first && off > math.Abs(c.Wanted-c.Got) {
			c.Keyframe, c.Wanted, c.Keeps = k, mtn.Degrees(v), false
		}
	}
	r.changes = append(r.changes, c)
}
