// Package skeleton draws the body that a robot told the cloud (motionwire.Body): the ends of its bones for given angles of its joints, a motion as an animated SVG,
// and the body as URDF.
//
//	Angles(motion, ms) ──► Pose(body, angles) ──► Rest ──► lines of a view ──► AppendSVG
//	body ──► AppendURDF
//
// A page draws in the browser by the same rules (cloud/web/console/assets/motion.js); the test of the owner's page compares the two. Functions are pure and safe
// for concurrent use.
package skeleton

import (
	"cmp"
	"math"
	"slices"

	"kennel/infra/api/motionwire"
)

// Vec is a point or a direction in metres: X forward, Y left, Z up.
type Vec [3]float64

// Segment is a bone as it is: a line of some width.
type Segment struct {
	From, To Vec
	Wide     float64 // m
}

// Angles returns the angles of a motion's joints in rad, ms milliseconds after its first keyframe, over those in base, which may be nil. Between two keyframes a
// joint moves evenly.
func Angles(m *motionwire.Sequence, ms float64, base map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(base)+len(m.Joints))
	for joint, v := range base {
		out[joint] = v
	}
	k := m.Keyframes
	if len(k) == 0 {
		return out
	}
	i := slices.IndexFunc(k, func(f motionwire.Keyframe) bool { return float64(f.AtMS) > ms })
	if i < 0 {
		i = len(k)
	}
	a, b, way := k[max(i-1, 0)], k[min(i, len(k)-1)], 0.0
	if b.AtMS > a.AtMS {
		way = min(max((ms-float64(a.AtMS))/float64(b.AtMS-a.AtMS), 0), 1)
	}
	for c, joint := range m.Joints {
		from, to := float64(a.Values[c]), float64(b.Values[c])
		out[joint] = (from + (to-from)*way) / 1e6
	}
	return out
}

// turned returns p turned by an angle about the unit vector k.
func turned(p, k Vec, by float64) Vec {
	s, c := math.Sincos(by)
	dot := (p[0]*k[0] + p[1]*k[1] + p[2]*k[2]) * (1 - c)
	return Vec{
		p[0]*c + (k[1]*p[2]-k[2]*p[1])*s + k[0]*dot,
		p[1]*c + (k[2]*p[0]-k[0]*p[2])*s + k[1]*dot,
		p[2]*c + (k[0]*p[1]-k[1]*p[0])*s + k[2]*dot,
	}
}

// Pose returns the bones of a body in the frame of its trunk for angles by joints in rad, in the order in which the body has them. A joint without an angle is at 0.
func Pose(b *motionwire.Body, angles map[string]float64) []Segment {
	place := func(p Vec, link int) Vec {
		for ; link >= 0; link = b.Links[link].Parent {
			l := &b.Links[link]
			p = turned(p, l.Axis, angles[l.Joint])
			for i := range p {
				p[i] += l.At[i]
			}
		}
		return p
	}
	out := make([]Segment, 0, len(b.Bones))
	for _, n := range b.Bones {
		out = append(out, Segment{place(n.From, n.Link), place(n.To, n.Link), n.Wide})
	}
	return out
}

// Rest turns a posed body forward or backward so that it rests as it would with its weight in the middle of the trunk, seen from the side, and moves it up or down so
// that its lowest point has height 0. That is enough for a drawing; the real statics are known to the body alone.
func Rest(all []Segment) []Segment {
	var points [][2]float64
	for _, s := range all {
		points = append(points, [2]float64{s.From[0], s.From[2] - s.Wide/2}, [2]float64{s.To[0], s.To[2] - s.Wide/2})
	}
	slices.SortFunc(points, func(a, b [2]float64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	var hull [][2]float64 // its lower side, from the back to the front
	for _, p := range points {
		for len(hull) > 1 {
			a, b := hull[len(hull)-2], hull[len(hull)-1]
			if (b[0]-a[0])*(p[1]-a[1]) > (b[1]-a[1])*(p[0]-a[0]) {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	tilt := 0.0
	for i := 1; i < len(hull); i++ {
		if a, b := hull[i-1], hull[i]; a[0] <= 0 && b[0] > 0 {
			tilt = math.Atan2(b[1]-a[1], b[0]-a[0])
		}
	}
	s, c := math.Sincos(-tilt)
	out, low := slices.Clone(all), math.Inf(1)
	for i := range out {
		for _, p := range []*Vec{&out[i].From, &out[i].To} {
			*p = Vec{p[0]*c - p[2]*s, p[1], p[0]*s + p[2]*c}
			low = min(low, p[2]-out[i].Wide/2)
		}
	}
	for i := range out {
		out[i].From[2] -= low
		out[i].To[2] -= low
	}
	return out
}
