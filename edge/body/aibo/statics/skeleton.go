package statics

import (
	"kennel/infra/api/motionwire"
)

// Skeleton returns how the body is made, for drawings and for other programs: a link for each joint that turns legs, neck and tail, and lines along the bones.
// Links and bones at zero angles are where Pose has them.
func (s *Body) Skeleton() (links []motionwire.Link, bones []motionwire.Bone) {
	b := &s.b
	link := func(h hinge, parent int, at Vec) int {
		l := motionwire.Link{Parent: parent, At: at}
		l.Axis[h.axis] = 1
		if h.joint >= 0 {
			l.Joint = s.joints[h.joint].Path
		}
		links = append(links, l)
		return len(links) - 1
	}
	bone := func(of int, from, to Vec, wide float64) {
		bones = append(bones, motionwire.Bone{Link: of, From: from, To: to, Wide: wide})
	}
	height := b.back + b.belly
	bone(-1, Vec{-b.tail + height/2, 0, (b.back - b.belly) / 2}, Vec{b.nose - height/2, 0, (b.back - b.belly) / 2}, height)
	for l := range 4 {
		at := Vec{b.hipX, b.hipY, 0}
		if l >= 2 {
			at[0] = -b.hipX
		}
		if l&1 != 0 {
			at[1] = -b.hipY
		}
		of := -1
		for i, h := range s.legs[l] {
			of = link(h, of, at)
			at = Vec{}
			if i == 1 {
				at = Vec{0, 0, -b.upper}
				bone(of, Vec{}, at, legWide)
			}
		}
		bone(of, Vec{}, Vec{0, 0, -b.lower}, legWide)
	}
	of, at := -1, b.neck
	for i, h := range s.head {
		of = link(h, of, at)
		if at = (Vec{}); i == 0 {
			at = Vec{0, 0, b.throat}
			bone(of, Vec{}, at, neckWide)
		}
	}
	bone(of, at, at.plus(Vec{b.muzzle, 0, 0}), b.crown)
	of, at = -1, Vec{-b.tail, 0, b.back / 2}
	for _, part := range []struct {
		native string
		axis   int
	}{{"TAIL_VERT", 1}, {"TAIL_HORZ", 2}} {
		for i := range s.joints {
			if s.joints[i].Native == part.native {
				of = link(hinge{i, part.axis}, of, at)
				at = Vec{}
			}
		}
	}
	if of >= 0 {
		bone(of, Vec{}, Vec{-tailLong, 0, tailLong / 2}, neckWide/2)
	}
	return links, bones
}

// Of drawings only; own defaults, in metres.
const (
	legWide  = 0.028
	neckWide = 0.030
	tailLong = 0.050
)
