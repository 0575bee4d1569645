// Package statics says how an AIBO rests on a level floor: which paws touch it, whether its centre of mass is above what carries it, and if not, which way it
// tips and how it then lies. It moves nothing by itself and knows no forces of motion: a body is where its joints and its weight leave it.
//
//	angles ──Figure──► points and masses in the body's frame ──Settle(up)──► Stance: up, touching, margin, tipped
//	                                                              ▲              │
//	                                                              └── the next row of a motion begins where the one before rested
//
// The body's frame is the device model's: X forward, Y left, Z up, metres, with its origin in the middle between the four hips.
package statics

import (
	"math"

	"kennel/edge/body/aibo"
)

// build is how a model is made, in metres and kilograms.
type build struct {
	hipX, hipY   float64 // from the origin to a hip
	upper, lower float64 // of a leg: hip to knee, knee to the tip of the paw
	nose, tail   float64 // the trunk's ends along X
	wide         float64 // half of the trunk's width
	back, belly  float64 // its height above the hips, and below them
	neck         Vec     // where the head's first joint is
	throat       float64 // from there to the second
	muzzle       float64 // from there to the nose
	crown        float64 // likewise, to the top of the head

	trunkKg, headKg, upperKg, lowerKg float64
}

// builds are own defaults, near the lengths of legs and the whole weight that public descriptions of the robots give, and with masses so placed that each
// model rests in its nominal postures.
var builds = map[aibo.Model]build{
	aibo.ERS110: {0.060, 0.052, 0.064, 0.065, 0.085, 0.085, 0.040, 0.045, 0.028, Vec{0.075, 0, 0.045}, 0.030, 0.095, 0.045, 0.78, 0.22, 0.08, 0.07},
	aibo.ERS210: {0.060, 0.059, 0.064, 0.069, 0.080, 0.080, 0.045, 0.050, 0.028, Vec{0.075, 0, 0.050}, 0.048, 0.095, 0.050, 0.74, 0.22, 0.08, 0.06},
	aibo.ERS220: {0.060, 0.059, 0.064, 0.069, 0.080, 0.080, 0.045, 0.050, 0.028, Vec{0.075, 0, 0.050}, 0.048, 0.080, 0.045, 0.78, 0.16, 0.08, 0.06},
	aibo.ERS310: {0.055, 0.060, 0.055, 0.060, 0.065, 0.090, 0.045, 0.055, 0.028, Vec{0.060, 0, 0.045}, 0.030, 0.070, 0.060, 0.84, 0.14, 0.07, 0.06},
	aibo.ERS7:   {0.065, 0.0625, 0.0695, 0.0765, 0.090, 0.085, 0.045, 0.050, 0.030, Vec{0.0675, 0, 0.0195}, 0.080, 0.085, 0.035, 0.85, 0.25, 0.08, 0.06},
}

// The points at which a body can touch the floor. A paw comes before the knee of its leg; the legs have the order of LegNames.
const (
	Paw   = 0 // 4
	knee  = 4 // 4
	trunk = 8 // 8 corners, those of the belly first
	head  = 16
	// Points is how many there are.
	Points = 18
)

// LegNames are the legs in the order of paws: "FL", "FR", "BL", "BR", as motion files have them.
var LegNames = [4]string{"FL", "FR", "BL", "BR"}

// hinge is one joint of a chain: it turns about an axis of the frame that the joints before it have turned.
type hinge struct {
	joint int // index in aibo.Joints; -1: the model has none
	axis  int // 0: X, 1: Y, 2: Z
}

// Body is one model, ready to pose. It does not change; safe for concurrent use.
type Body struct {
	Model  aibo.Model
	b      build
	joints []aibo.Joint
	legs   [4][3]hinge
	head   []hinge
}

// New returns the body of a model; ERS-7 for one that has no build, such as aibo.Every.
func New(m aibo.Model) *Body {
	b, known := builds[m]
	if !known {
		m, b = aibo.ERS7, builds[aibo.ERS7]
	}
	s := &Body{Model: m, b: b, joints: aibo.Joints(m)}
	index := map[string]int{}
	for i, j := range s.joints {
		index[j.Native] = i
	}
	for l, name := range LegNames {
		for i, part := range [...]string{"VERT", "LAT", "KNEE"} {
			s.legs[l][i] = hinge{index[name+"_LEG_"+part], [...]int{1, 0, 1}[i]}
		}
	}
	order := [...]string{"HEAD_PITCH", "HEAD_YAW", "HEAD_ROLL", "HEAD_PITCH2"}
	if m == aibo.ERS310 {
		order = [...]string{"HEAD_PITCH", "HEAD_PITCH2", "HEAD_YAW", "HEAD_ROLL"}
	}
	for _, name := range order {
		if i, has := index[name]; has {
			s.head = append(s.head, hinge{i, map[string]int{"HEAD_YAW": 2, "HEAD_ROLL": 0}[name]})
			if name == "HEAD_PITCH" || name == "HEAD_PITCH2" {
				s.head[len(s.head)-1].axis = 1
			}
		}
	}
	return s
}

// Joints returns how many angles Pose takes: those of aibo.Joints.
func (s *Body) Joints() int { return len(s.joints) }

// Figure is a body in one posture.
type Figure struct {
	At     [Points]Vec // where it can touch the floor
	Centre Vec         // of mass
	Weight float64     // N
	hips   [4][3]Vec   // where the joints of each leg are
	axes   [4][3]Vec   // about which they turn
}

// Pose returns the body with the given angles, one for each of aibo.Joints, in radian with the signs of the device model. Missing ones are 0.
func (s *Body) Pose(angles []float64) (f Figure) {
	angle := func(h hinge) float64 {
		if h.joint < 0 || h.joint >= len(angles) {
			return 0
		}
		return angles[h.joint]
	}
	var moment Vec
	mass := 0.0
	add := func(kg float64, at Vec) { mass, moment = mass+kg, moment.plus(at.times(kg)) }
	b := &s.b
	add(b.trunkKg, Vec{(b.nose - b.tail) / 2, 0, (b.back - b.belly) / 2})
	for i := range 8 {
		p := Vec{b.nose, b.wide, -b.belly}
		if i&1 != 0 {
			p[0] = -b.tail
		}
		if i&2 != 0 {
			p[1] = -b.wide
		}
		if i&4 != 0 {
			p[2] = b.back
		}
		f.At[trunk+i] = p
	}
	for l := range 4 {
		hip := Vec{b.hipX, b.hipY, 0}
		if l >= 2 {
			hip[0] = -b.hipX
		}
		if l&1 != 0 {
			hip[1] = -b.hipY
		}
		turn := identity
		for i, h := range s.legs[l] {
			f.axes[l][i] = turn.column(h.axis)
			turn = turn.turned(h.axis, angle(h))
			if i == 1 {
				f.At[knee+l] = hip.plus(turn.apply(Vec{0, 0, -b.upper}))
			}
		}
		f.hips[l] = [3]Vec{hip, hip, f.At[knee+l]}
		f.At[Paw+l] = f.At[knee+l].plus(turn.apply(Vec{0, 0, -b.lower}))
		add(b.upperKg, hip.plus(f.At[knee+l]).times(0.5))
		add(b.lowerKg, f.At[knee+l].plus(f.At[Paw+l]).times(0.5))
	}
	turn, at := identity, b.neck
	for i, h := range s.head {
		turn = turn.turned(h.axis, angle(h))
		if i == 0 {
			at = at.plus(turn.apply(Vec{0, 0, b.throat}))
		}
	}
	f.At[head] = at.plus(turn.apply(Vec{b.muzzle, 0, 0}))
	f.At[head+1] = at.plus(turn.apply(Vec{b.muzzle / 3, 0, b.crown}))
	add(b.headKg, at.plus(turn.apply(Vec{b.muzzle / 3, 0, 0})))
	f.Centre, f.Weight = moment.times(1/mass), mass*gravity
	return f
}

const gravity = 9.80665 // m/s²

// Vec is a place or a direction in the frame of a body: X forward, Y left, Z up.
type Vec [3]float64

func (a Vec) plus(b Vec) Vec      { return Vec{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }
func (a Vec) minus(b Vec) Vec     { return Vec{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func (a Vec) times(k float64) Vec { return Vec{a[0] * k, a[1] * k, a[2] * k} }
func (a Vec) dot(b Vec) float64   { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a Vec) length() float64     { return math.Sqrt(a.dot(a)) }
func (a Vec) unit() Vec           { return a.times(1 / a.length()) }
func (a Vec) angle(b Vec) float64 { return math.Atan2(a.cross(b).length(), a.dot(b)) }
func (a Vec) cross(b Vec) Vec {
	return Vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}
func (a Vec) turned(axis Vec, by float64) Vec { // about a unit vector
	sin, cos := math.Sincos(by)
	return a.times(cos).plus(axis.cross(a).times(sin)).plus(axis.times(axis.dot(a) * (1 - cos)))
}

// matrix is a rotation, by columns.
type matrix [3]Vec

var identity = matrix{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}

func (m matrix) column(i int) Vec { return m[i] }
func (m matrix) apply(v Vec) Vec {
	return m[0].times(v[0]).plus(m[1].times(v[1])).plus(m[2].times(v[2]))
}

// turned turns about an own axis of the frame, counter-clockwise.
func (m matrix) turned(axis int, by float64) matrix {
	about := m[axis]
	for i := range m {
		m[i] = m[i].turned(about, by)
	}
	return m
}
