package motions

import (
	"fmt"
	"math"

	"kennel/edge/body/aibo/mtn"
)

// Difference is one thing in which two motions differ.
type Difference struct {
	What string `json:"what"` // such as "author", or "keyframe 3, HEAD_YAW"
	A    string `json:"a"`
	B    string `json:"b"`
}

// Diff returns in which two motions differ, in the order of their files; angles only if by more than so many degrees. Joints are compared by place, for files
// list some twice. A list of more than most differences is cut, and its last one says so.
func Diff(a, b *mtn.File, tolerance float64, most int) (out []Difference) {
	left := 0
	add := func(what string, x, y any) {
		if x == y {
			return
		}
		if len(out) >= most {
			left++
			return
		}
		out = append(out, Difference{what, fmt.Sprint(x), fmt.Sprint(y)})
	}
	add("version", fmt.Sprintf("%d.%d", a.Major, a.Minor), fmt.Sprintf("%d.%d", b.Major, b.Minor))
	add("rate", a.Rate, b.Rate)
	add("options", a.Options, b.Options)
	add("name", a.Name, b.Name)
	add("author", a.Author, b.Author)
	add("format", a.Format, b.Format)
	add("data type", a.DataType, b.DataType)
	add("joints", len(a.Joints), len(b.Joints))
	for i := range min(len(a.Joints), len(b.Joints)) {
		add(fmt.Sprint("joint ", i), a.Joints[i], b.Joints[i])
	}
	add("keyframes", len(a.Keyframes), len(b.Keyframes))
	p, _ := mtn.PlatformOf(a.Format)
	names := p.Resolve(a.Joints)
	for i := range min(len(a.Keyframes), len(b.Keyframes)) {
		x, y := &a.Keyframes[i], &b.Keyframes[i]
		at := fmt.Sprintf("keyframe %d", i)
		add(at+", interp", x.Interp, y.Interp)
		angle := func(what string, v, w int32) {
			if v != w && !(math.Abs(mtn.Degrees(v)-mtn.Degrees(w)) <= tolerance) {
				add(at+", "+what, v, w)
			}
		}
		for c, what := range [...]string{"roll", "pitch", "yaw"} {
			angle(what, x.RPY[c], y.RPY[c])
		}
		for c := range min(len(x.Joints), len(y.Joints)) {
			what := names[c].Name
			if what == "" {
				what = fmt.Sprint("joint ", c)
			}
			angle(what, x.Joints[c], y.Joints[c])
		}
	}
	if left > 0 {
		out = append(out, Difference{What: fmt.Sprintf("and %d more", left)})
	}
	return out
}
