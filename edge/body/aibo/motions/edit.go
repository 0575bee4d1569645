package motions

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// ErrEdit: a motion cannot be edited as asked; the error says why.
var ErrEdit = errors.New("motion cannot be edited so")

// clone returns a copy of f that shares nothing with it, laid out as the writer does.
func clone(f *mtn.File) *mtn.File {
	out := &mtn.File{Major: f.Major, Minor: f.Minor, Rate: f.Rate, Options: f.Options, Name: f.Name, Author: f.Author, Format: f.Format,
		Joints: slices.Clone(f.Joints), DataType: f.DataType, Keyframes: make([]mtn.Keyframe, len(f.Keyframes))}
	for i, k := range f.Keyframes {
		out.Keyframes[i] = mtn.Keyframe{Interp: k.Interp, RPY: k.RPY, Joints: slices.Clone(k.Joints)}
	}
	return out
}

// known returns the joints of a file on its model.
func known(f *mtn.File) (mtn.Platform, []mtn.Resolved, error) {
	p, ok := mtn.PlatformOf(f.Format)
	if !ok {
		return p, nil, fmt.Errorf("%w: format: expected one of a known model, found %s", ErrModel, quoted(f.Format))
	}
	return p, p.Resolve(f.Joints), nil
}

// partner returns the joint that does on the other side what one does on its side, and whether its angle counts the other way round: left and right swap, and
// what turns about the length or height of the body changes its sign. LAT counts outward on both sides.
func partner(name string) (other string, negative bool) {
	switch {
	case strings.HasPrefix(name, "FL_"), strings.HasPrefix(name, "BL_"):
		return name[:1] + "R" + name[2:], false
	case strings.HasPrefix(name, "FR_"), strings.HasPrefix(name, "BR_"):
		return name[:1] + "L" + name[2:], false
	case name == "LEFT_EAR":
		return "RIGHT_EAR", false
	case name == "RIGHT_EAR":
		return "LEFT_EAR", false
	case name == "HEAD_YAW", name == "HEAD_ROLL", name == "TAIL_HORZ":
		return name, true
	}
	return name, false
}

func negate(v int32) int32 { return saturate(-int64(v)) }

// Mirror returns the motion with left and right exchanged. A file that lists a joint without its partner lists the partner afterwards. Mirroring twice gives
// the same motion.
func Mirror(f *mtn.File) (*mtn.File, error) {
	p, names, err := known(f)
	if err != nil {
		return nil, err
	}
	out := clone(f)
	for i, r := range names {
		other, negative := partner(r.Name)
		from := slices.IndexFunc(names, func(r mtn.Resolved) bool { return r.Name == other && r.Name != "" })
		if from < 0 {
			from = i
			for _, j := range slices.Concat(p.Joints, p.Absent) {
				if j.Name == other {
					out.Joints[i] = j.Key
				}
			}
		}
		for n := range out.Keyframes {
			v := f.Keyframes[n].Joints[from]
			if negative {
				v = negate(v)
			}
			out.Keyframes[n].Joints[i] = v
		}
	}
	for n := range out.Keyframes {
		rpy := &out.Keyframes[n].RPY
		rpy[0], rpy[2] = negate(rpy[0]), negate(rpy[2])
	}
	return out, nil
}

// Reverse returns the motion played backwards, with the postures of its name exchanged. Reversing twice gives the same motion.
func Reverse(f *mtn.File) *mtn.File {
	out := clone(f)
	slices.Reverse(out.Keyframes)
	for i := len(out.Keyframes) - 1; i > 0; i-- {
		out.Keyframes[i].Interp = out.Keyframes[i-1].Interp
	}
	if len(out.Keyframes) > 0 {
		out.Keyframes[0].Interp = 0
	}
	if n := mtn.ParseName(f.Name); n.Fits {
		n.Start, n.Stop = n.Stop, n.Start
		out.Name = n.String()
	}
	return out
}

// Scale returns the motion with every time and every way multiplied: angles are scaled about the first keyframe. Times are whole frames, at least one each.
// The factors are from 0.01 to 100, and angles may be multiplied by 0 too.
func Scale(f *mtn.File, time, angle float64) (*mtn.File, error) {
	if !(time >= 0.01 && time <= 100) || !(angle == 0 || angle >= 0.01 && angle <= 100) {
		return nil, fmt.Errorf("%w: factors: expected 0.01 to 100, found %v for time and %v for angles", ErrEdit, time, angle)
	}
	out := clone(f)
	for i := range out.Keyframes {
		k := &out.Keyframes[i]
		if i > 0 {
			k.Interp = uint32(min(max(1, math.Round((float64(k.Interp)+1)*time))-1, math.MaxUint32))
		}
		for j, v := range k.Joints {
			first := f.Keyframes[0].Joints[j]
			k.Joints[j] = saturate(int64(math.Round(float64(first) + (float64(v)-float64(first))*angle)))
		}
	}
	return out, nil
}

// Change is something that an edit could not keep.
type Change struct {
	Joint    string  `json:"joint"`
	Keyframe int     `json:"keyframe"`
	What     string  `json:"what"`            // "range", "speed" or "lacking"
	Wanted   float64 `json:"wanted"`          // degrees, or frames of "speed"
	Got      float64 `json:"got"`             // likewise; of "lacking" the angle at rest
	Keeps    bool    `json:"keeps,omitempty"` // the joint stays within the tolerance of Retarget, or never moves
}

// Limit returns the motion within the ranges and speeds of its model: angles are cut, and segments take longer where a joint would be too fast (MTN-58). The
// changes name the worst of each joint's angles and the joint that each longer segment is for.
func Limit(f *mtn.File) (*mtn.File, []Change, error) {
	p, names, err := known(f)
	if err != nil {
		return nil, nil, err
	}
	out := clone(f)
	var changes []Change
	joints := make([]aibo.Joint, len(names))
	for i, r := range names {
		j, has := joint(aibo.Model(p.ERS), r.Name)
		if !has || r.Match == mtn.Lacking {
			continue
		}
		joints[i] = j
		if c, ok := cut(out, i, j); ok {
			changes = append(changes, c)
		}
	}
	for n := 1; n < len(out.Keyframes); n++ {
		k, before := &out.Keyframes[n], &out.Keyframes[n-1]
		need, slowest := float64(k.Interp)+1, -1
		for i, j := range joints {
			if j.Speed == 0 {
				continue
			}
			way := math.Abs(float64(k.Joints[i]) - float64(before.Joints[i]))
			if frames := math.Ceil(way / (j.Speed * 1e6 * mtn.Frame.Seconds())); frames > need {
				need, slowest = frames, i
			}
		}
		if slowest >= 0 {
			changes = append(changes, Change{Joint: joints[slowest].Native, Keyframe: n, What: CodeSpeed, Wanted: float64(k.Interp) + 1, Got: need})
			k.Interp = uint32(need) - 1
		}
	}
	return out, changes, nil
}

// cut keeps column i of a motion within the range of a joint, and returns the worst cut.
func cut(f *mtn.File, i int, j aibo.Joint) (worst Change, any bool) {
	lo, hi := span(j)
	if lo == 0 && hi == 0 {
		return worst, false
	}
	for n := range f.Keyframes {
		v := f.Keyframes[n].Joints[i]
		got := min(max(v, lo), hi)
		if got == v {
			continue
		}
		f.Keyframes[n].Joints[i] = got
		c := Change{Joint: j.Native, Keyframe: n, What: CodeRange, Wanted: mtn.Degrees(v), Got: mtn.Degrees(got)}
		if c.Keeps = math.Abs(c.Wanted-c.Got) <= tolerance; !any || math.Abs(c.Wanted-c.Got) > math.Abs(worst.Wanted-worst.Got) {
			worst, any = c, true
		}
	}
	return worst, any
}

// Blend returns a mix of two motions of one model that list the same joints: a share of weight of b, from 0 to 1, and the rest of a. Its keyframes are at the
// times of both, between which the motions are straight; the shorter one stays in its last keyframe.
func Blend(a, b *mtn.File, weight float64) (*mtn.File, error) {
	if !(weight >= 0 && weight <= 1) {
		return nil, fmt.Errorf("%w: weight: expected 0 to 1, found %v", ErrEdit, weight)
	}
	pa, na, err := known(a)
	if err != nil {
		return nil, err
	}
	pb, nb, err := known(b)
	if err != nil {
		return nil, err
	}
	if pa.ERS != pb.ERS || len(a.Keyframes) == 0 || len(b.Keyframes) == 0 || len(na) != len(nb) {
		return nil, fmt.Errorf("%w: expected two motions of one model with keyframes and the same joints, found %s and %s with %d and %d joints", ErrEdit,
			quoted(a.Format), quoted(b.Format), len(na), len(nb))
	}
	column := make([]int, len(na))
	for i, r := range na {
		if column[i] = slices.IndexFunc(nb, func(s mtn.Resolved) bool { return s.Name == r.Name }); r.Name == "" || column[i] < 0 {
			return nil, fmt.Errorf("%w: joint %d: expected one that both motions have, found %s", ErrEdit, i, quoted(a.Joints[i]))
		}
	}
	ta, tb := times(a), times(b)
	all := append(slices.Clone(ta), tb...)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > math.MaxUint16 {
		return nil, fmt.Errorf("%w: expected at most %d keyframes, found %d", ErrEdit, math.MaxUint16, len(all))
	}
	out := clone(a)
	out.Keyframes = nil
	for i, t := range all {
		k := mtn.Keyframe{Joints: make([]int32, len(na))}
		if i > 0 {
			gap := t - all[i-1]
			k.Interp = uint32(min(gap-1, math.MaxUint32))
		}
		fa, fb := sample(a, ta, t), sample(b, tb, t)
		mix := func(x, y float64) int32 { return saturate(int64(math.Round(x + (y-x)*weight))) }
		for c := range k.RPY {
			k.RPY[c] = mix(fa(-1-c), fb(-1-c))
		}
		for c := range k.Joints {
			k.Joints[c] = mix(fa(c), fb(column[c]))
		}
		out.Keyframes = append(out.Keyframes, k)
	}
	return out, nil
}

// times returns when each keyframe is reached, in frames.
func times(f *mtn.File) []int64 {
	out := make([]int64, len(f.Keyframes))
	for i := 1; i < len(out); i++ {
		out[i] = out[i-1] + int64(f.Keyframes[i].Interp) + 1
	}
	return out
}

// sample returns where the columns of a motion are at a time: -1, -2 and -3 are roll, pitch and yaw.
func sample(f *mtn.File, at []int64, t int64) func(c int) float64 {
	value := func(k *mtn.Keyframe, c int) float64 {
		if c < 0 {
			return float64(k.RPY[-1-c])
		}
		return float64(k.Joints[c])
	}
	i, exact := slices.BinarySearch(at, t)
	if i == len(at) || exact {
		k := &f.Keyframes[min(i, len(at)-1)]
		return func(c int) float64 { return value(k, c) }
	}
	share := float64(t-at[i-1]) / float64(at[i]-at[i-1])
	return func(c int) float64 {
		from, to := value(&f.Keyframes[i-1], c), value(&f.Keyframes[i], c)
		return from + (to-from)*share
	}
}
