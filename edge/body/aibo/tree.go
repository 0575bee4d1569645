// Package aibo is the AIBO: the parts of each model by their standard names, its driver and its plant. Package mtn has the files of the motions that were made
// for it, motions what can be done with them, statics how a body rests, and aibosim the simulated body.
package aibo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kennel/edge/robot"
)

// Model is a model of AIBO: the number of its ERS.
type Model int

// The models. Every is all of them in one tree: what a motion file of any model may move.
const (
	Every  Model = 0
	ERS7   Model = 7
	ERS110 Model = 110
	ERS210 Model = 210
	ERS220 Model = 220
	ERS310 Model = 310
)

// Models are the models there are.
var Models = []Model{ERS110, ERS210, ERS220, ERS310, ERS7}

// String returns "ers-7".
func (m Model) String() string {
	if m == Every {
		return "aibo"
	}
	return fmt.Sprintf("ers-%d", int(m))
}

// joint is one joint as motion files name it. Device angle = sign × AIBO's angle (MTN-60).
type joint struct {
	path    string
	is      string
	native  string
	sign    float64
	models  []Model
	aliases []string // of the older Urbi vocabulary
}

var (
	rotational = "RotationalMotor"
	tailed     = []Model{ERS110, ERS210, ERS7}
	eared      = []Model{ERS210, ERS7}
)

func joints() []joint {
	out := []joint{
		{"body.neck.pitch", rotational, "HEAD_PITCH", -1, []Model{ERS310, ERS7}, nil},
		{"body.head.pitch", rotational, "HEAD_PITCH2", -1, Models, []string{"headTilt"}}, // HEAD_PITCH of those without a neck
		{"body.head.yaw", rotational, "HEAD_YAW", 1, Models, []string{"headPan"}},
		{"body.head.roll", rotational, "HEAD_ROLL", 1, []Model{ERS110, ERS210, ERS220}, nil},
		{"body.head.mouth", "Motor", "MOUTH", 1, tailed, nil},
		{"body.head.ear[left]", "Motor", "LEFT_EAR", 1, eared, nil},
		{"body.head.ear[right]", "Motor", "RIGHT_EAR", 1, eared, nil},
	}
	for _, l := range []struct {
		at, native, old string
		outward         float64 // leg-outward is +roll on the left, -roll on the right
	}{{"[front][left]", "FL", "LF", 1}, {"[front][right]", "FR", "RF", -1}, {"[back][left]", "BL", "LH", 1}, {"[back][right]", "BR", "RH", -1}} {
		out = append(out,
			joint{"body.leg" + l.at + ".hip.pitch", rotational, l.native + "_LEG_VERT", -1, Models, []string{"leg" + l.old + "1"}},
			joint{"body.leg" + l.at + ".hip.roll", rotational, l.native + "_LEG_LAT", l.outward, Models, []string{"leg" + l.old + "2"}},
			joint{"body.leg" + l.at + ".knee.pitch", rotational, l.native + "_LEG_KNEE", -1, Models, []string{"leg" + l.old + "3"}})
	}
	return append(out,
		joint{"body.tail.yaw", rotational, "TAIL_HORZ", 1, tailed, []string{"tailPan"}},
		joint{"body.tail.pitch", rotational, "TAIL_VERT", -1, tailed, []string{"tailTilt"}})
}

// limits returns a joint's range in degrees as AIBO counts (spec/aibo-mtn.md section 9); ERS-110 and ERS-310 take the numbers of ERS-210.
func limits(m Model, native string) (lo, hi float64, known bool) {
	leg, part, isLeg := strings.Cut(native, "_LEG_")
	seven := m == ERS7
	pick := func(a, b, lo7, hi7 float64) (float64, float64, bool) {
		if seven {
			return lo7, hi7, true
		}
		return a, b, true
	}
	switch {
	case m == Every:
		return 0, 0, false // models differ
	case isLeg && part == "VERT" && leg[0] == 'F':
		return pick(-117, 117, -115, 130)
	case isLeg && part == "VERT":
		return pick(-117, 117, -130, 115)
	case isLeg && part == "LAT" && m == ERS110:
		return -20, 90, true // so that its sleeping posture fits
	case isLeg && part == "LAT":
		return pick(-11, 89, -10, 88)
	case isLeg:
		return pick(-27, 147, -25, 122)
	}
	switch native {
	case "HEAD_PITCH":
		if m == ERS220 {
			return -88.5, 43, true
		}
		return pick(-82, 43, -75, 0)
	case "HEAD_YAW":
		return pick(-89.6, 89.6, -88, 88)
	case "HEAD_ROLL":
		return -29, 29, true
	case "HEAD_PITCH2":
		if seven {
			return -15, 45, true
		}
		return -29, 29, true
	case "TAIL_VERT":
		return pick(-22, 22, 5, 60)
	case "TAIL_HORZ":
		return pick(-22, 22, -45, 45)
	case "MOUTH":
		if m == ERS110 {
			return -47, 0, true // so that its postures, which do not name the mouth, fit
		}
		return pick(-47, -3, -55, -3)
	}
	return 0, 0, false // ears know two positions
}

// Own defaults.
const (
	capacity    = 2.2 // Ah, of the battery
	full, empty = 8.2, 6.6
	low         = 7.0 // V
)

// Parts returns the parts of a model (GOSTAI-MAP-I-01 to 22), and beside them a battery and a switch in each paw, under the names that other bodies have for
// them. Its front is where the camera looks (GOSTAI-FRAME-02).
func Parts(m Model) []robot.Part {
	name := "AIBO"
	if m != Every {
		name = strings.ToUpper(m.String())
	}
	parts := []robot.Part{{Path: "robot", Is: []string{"Identity", "Network", "Mobile", "Tracker"},
		Has:   []string{"stop", "moving", "finished", "aborted"},
		Fixed: map[string]robot.Value{"type": robot.S("four-legged"), "model": robot.S(name)},
		Uses:  map[string][]string{"Mobile": {"robot.body.leg"}, "Tracker": {"robot.body.head.yaw", "robot.body.head.pitch"}}}}
	for _, j := range joints() {
		if m != Every && !slices.Contains(j.models, m) {
			continue
		}
		if j.path == "body.head.pitch" && m != Every && m != ERS310 && m != ERS7 {
			j.native = "HEAD_PITCH"
		}
		p := robot.Part{Path: j.path, Is: []string{j.is}, Aliases: j.aliases,
			Props: map[string]robot.Value{"native": robot.S(j.native), "sign": robot.F(j.sign)}}
		slot := "angle"
		if j.is == "Motor" {
			slot = "val"
			p.Props["unit"] = robot.S("rad")
		}
		if lo, hi, ok := limits(m, j.native); ok {
			a, b := j.sign*lo*math.Pi/180, j.sign*hi*math.Pi/180
			p.Ranges = map[string]robot.Range{slot: {Min: min(a, b), Max: max(a, b)}}
		}
		parts = append(parts, p)
	}
	for _, at := range paws {
		parts = append(parts, robot.Part{Path: "body.leg" + at + ".foot.touch", Is: []string{"TouchSensor"},
			Ranges: map[string]robot.Range{"pressure": {Max: 1}}, Props: map[string]robot.Value{"unit": robot.S("")}}) // 0 or 1
	}
	return append(parts, robot.Part{Path: "body.battery", Is: []string{"Battery"}, Fixed: map[string]robot.Value{"capacity": robot.F(capacity)}})
}

// paws are the legs in the order of a body's own bits.
var paws = [...]string{"[front][left]", "[front][right]", "[back][left]", "[back][right]"}

// Tree returns the sealed tree of a model. The table of parts is our own, so an error is a bug that the tests find.
func Tree(m Model) (*robot.Tree, error) {
	return robot.Build(m.String(), robot.FrameFor(true, true, true, true), Parts(m))
}
