package aibo

import (
	"math"
	"slices"
	"strings"
)

// Joint is one joint of a model, as motion files name it and as the device model does (MTN-60).
type Joint struct {
	Native   string  // such as "HEAD_PITCH"
	Path     string  // such as "robot.body.head.pitch"
	Sign     int     // the device's angle is Sign times AIBO's
	Min, Max float64 // degrees, as AIBO counts; both 0: the joint knows two positions
	Speed    float64 // rad/s at most; 0: not known
}

// EarTurn is the angle of an ear that is flicked, rad; one at rest is at 0 (MTN-U03). Own default.
const EarTurn = 0.5

// ear reports whether the joint knows two positions.
func (j *Joint) ear() bool { return j.Min == j.Max }

// plain reports whether the device model has the joint as a plain motor, whose value is its angle.
func (j *Joint) plain() bool { return j.ear() || j.Native == "MOUTH" }

// Slot returns the full name of the slot with the angle of the joint, in rad.
func (j *Joint) Slot() string {
	if j.plain() {
		return j.Path + ".val"
	}
	return j.Path + ".angle"
}

// Span returns the range of the joint in radian, with AIBO's sign.
func (j *Joint) Span() (lo, hi float64) {
	if j.ear() {
		return -EarTurn, EarTurn
	}
	return j.Min * math.Pi / 180, j.Max * math.Pi / 180
}

// Joints returns the joints of a model; Every has none of its own. Ranges and speeds are those that public motion tools use, since Sony published
// none; ERS-110, 220 and 310 take the numbers of ERS-210 where they have none.
func Joints(m Model) (all []Joint) {
	for _, j := range joints() {
		if !slices.Contains(j.models, m) {
			continue
		}
		native := j.native
		if j.path == "body.head.pitch" && m != ERS310 && m != ERS7 {
			native = "HEAD_PITCH"
		}
		lo, hi, _ := limits(m, native)
		all = append(all, Joint{native, "robot." + j.path, int(j.sign), lo, hi, speed(m, native)})
	}
	return all
}

// speed returns the highest speed of a joint in rad/s.
func speed(m Model, native string) float64 {
	_, part, isLeg := strings.Cut(native, "_LEG_")
	if !isLeg {
		part = native
	}
	v := map[string][2]float64{
		"VERT": {2.81, 4.87}, "LAT": {2.50, 5.28}, "KNEE": {2.84, 5.28}, "HEAD_PITCH": {2.11, 3.19}, "HEAD_YAW": {3.01, 10.06}, "HEAD_ROLL": {3.01, 5.78},
		"HEAD_PITCH2": {3.01, 5.78}, "TAIL_VERT": {4.47, 15.16}, "TAIL_HORZ": {4.47, 15.16}, "MOUTH": {4.37, 10.14},
	}[part]
	if m == ERS7 {
		return v[1]
	}
	return v[0]
}

// legs returns the angles of a posture with the same numbers for left and right: vert, lat and knee of the fore legs and of the hind legs.
func legs(fore, hind [3]float64, others map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, v := range others {
		out[name] = v
	}
	for _, side := range []string{"L", "R"} {
		for i, part := range []string{"VERT", "LAT", "KNEE"} {
			out["F"+side+"_LEG_"+part], out["B"+side+"_LEG_"+part] = fore[i], hind[i]
		}
	}
	return out
}

// postures are the nominal postures of each model, in degrees as AIBO counts (part of MTN-19). Those of ERS-210 are the two of the source's example and the
// others public tools' values. Joints not named are 0.
var postures = map[Model]map[string]map[string]float64{
	ERS110: {
		"sleep": legs([3]float64{35, -12, 40}, [3]float64{-110, 0, 100}, map[string]float64{"HEAD_PITCH": -10}),
		"sit":   legs([3]float64{-30, 0, 15}, [3]float64{-65, 0, 110}, map[string]float64{"HEAD_PITCH": -33}),
		"stand": legs([3]float64{-10, 0, 30}, [3]float64{-10, 0, 30}, nil),
	},
	ERS210: {
		"sleep": legs([3]float64{60, 0, 30}, [3]float64{-115, 0, 145}, map[string]float64{"HEAD_PITCH": -10, "MOUTH": -3}),
		"sit":   legs([3]float64{0, 0, 10}, [3]float64{-90, 0, 135}, map[string]float64{"HEAD_PITCH": -25, "MOUTH": -3}),
		"stand": legs([3]float64{-10, 0, 30}, [3]float64{0, 0, 24}, map[string]float64{"MOUTH": -3}),
	},
	ERS220: {
		"sleep": legs([3]float64{60, 0, 30}, [3]float64{-117, 5, 147}, map[string]float64{"HEAD_PITCH": -10}),
		"sit":   legs([3]float64{0, 0, 10}, [3]float64{-90, 0, 135}, map[string]float64{"HEAD_PITCH": -25}),
		"stand": legs([3]float64{-10, 0, 30}, [3]float64{0, 0, 24}, nil),
	},
	ERS310: {
		"sleep": legs([3]float64{58, 20, 30}, [3]float64{-64, 30, -15}, map[string]float64{"HEAD_PITCH2": 10}),
		"sit":   legs([3]float64{-30, -5, 5}, [3]float64{-35, 30, 0}, map[string]float64{"HEAD_PITCH": -25, "HEAD_PITCH2": -15}),
		"stand": legs([3]float64{-5, 3, 30}, [3]float64{-5, 3, 30}, map[string]float64{"HEAD_PITCH2": 10}),
	},
	ERS7: {
		"sleep": legs([3]float64{59, 0, 30}, [3]float64{-119, 4, 122}, map[string]float64{"HEAD_PITCH": -25, "HEAD_PITCH2": 25, "MOUTH": -5, "TAIL_VERT": 5}),
		"sit":   legs([3]float64{-25, -4, 20}, [3]float64{-78, 20, 110}, map[string]float64{"HEAD_PITCH": -40, "HEAD_PITCH2": 5, "MOUTH": -5, "TAIL_VERT": 5}),
		"stand": legs([3]float64{-5, 3, 30}, [3]float64{-5, 3, 30}, map[string]float64{"HEAD_PITCH": -20, "HEAD_PITCH2": 25, "MOUTH": -5, "TAIL_VERT": 5}),
	},
}

// Posture returns the nominal angles of a posture of a model by native names, in degrees as AIBO counts; false if none is known. Joints not named are 0.
func Posture(m Model, name string) (map[string]float64, bool) {
	p, ok := postures[m][name]
	return p, ok
}

// Named reports whether a word is a posture that motions of a model may name; of some only the name is known (part of MTN-19).
func Named(m Model, posture string) bool {
	_, ok := postures[m][posture]
	return ok || posture == "walk" || posture == "situp" && m == ERS7
}
