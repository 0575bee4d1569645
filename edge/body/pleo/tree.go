// Package pleo is the Pleo: its parts by their standard names, its driver, which speaks to the monitor of LifeOS, and its plant. Package lifeos is the operating system
// of a simulated Pleo, pleosim its body, and kit builds applications for it.
package pleo

import (
	"fmt"
	"math"

	"kennel/edge/body/pleo/reportline"
	"kennel/edge/robot"
)

// joint is one of Pleo's joints: its name in the programming guide, and its limits and highest speed there in degrees (PLEO-JNT-13). Pleo counts forward, up
// and right as positive (PLEO-JNT-12); the standard nose down, limb backward and left (GOSTAI-FRAME-05), so every one is turned.
type joint struct {
	path, native    string
	min, max, speed float64
}

// joints are those of the body in the order of their ids (PLEO-JNT-01, PLEO-ARC-03). One motor drives eyes and mouth: positive degrees are eyes, negative mouth
// (PLEO-JNT-14); its part is a plain motor, in Pleo's sense of rotation.
var joints = [...]joint{
	{"body.leg[front][right].hip.pitch", "JOINT_RIGHT_SHOULDER", -30, 55, 30},
	{"body.leg[front][right].knee.pitch", "JOINT_RIGHT_ELBOW", 0, 90, 70},
	{"body.leg[front][left].hip.pitch", "JOINT_LEFT_SHOULDER", -30, 55, 30},
	{"body.leg[front][left].knee.pitch", "JOINT_LEFT_ELBOW", 0, 90, 70},
	{"body.leg[back][left].hip.pitch", "JOINT_LEFT_HIP", -45, 40, 50},
	{"body.leg[back][left].knee.pitch", "JOINT_LEFT_KNEE", -70, 0, 50},
	{"body.leg[back][right].hip.pitch", "JOINT_RIGHT_HIP", -45, 40, 50},
	{"body.leg[back][right].knee.pitch", "JOINT_RIGHT_KNEE", -70, 0, 50},
	{"body.torso.yaw", "JOINT_TORSO", -15, 15, 20},
	{"body.tail.yaw", "JOINT_TAIL_HORIZONTAL", -90, 90, 200},
	{"body.tail.pitch", "JOINT_TAIL_VERTICAL", -90, 90, 200},
	{"body.neck.yaw", "JOINT_NECK_HORIZONTAL", -65, 55, 60},
	{"body.neck.pitch", "JOINT_NECK_VERTICAL", -75, 75, 40},
	{"body.head.mouth", "JOINT_HEAD", -80, 85, 220},
}

// plain reports whether the joint's part is a plain motor, whose value is its angle.
func (j *joint) plain() bool { return j.native == "JOINT_HEAD" }

// sign returns the device's angle in Pleo's.
func (j *joint) sign() float64 {
	if j.plain() {
		return 1
	}
	return -1
}

// span returns the range of the device's angle in rad.
func (j *joint) span() robot.Range {
	a, b := j.sign()*j.min*math.Pi/180, j.sign()*j.max*math.Pi/180
	return robot.Range{Min: min(a, b), Max: max(a, b)}
}

// pads are the parts that feel a touch, with their sensors: eight pads, four feet and the mouth (PLEO-ARC-04, PLEO-ARC-05, PLEO-ARC-07).
var pads = [...]struct {
	path, native string
	sensor       uint8
}{
	{"body.head.touch[up]", "SENSOR_HEAD", 6}, {"body.head.touch[down]", "SENSOR_CHIN", 7},
	{"body.touch[front]", "SENSOR_BACK", 8}, {"body.touch[back]", "SENSOR_TAIL", 13},
	{"body.leg[front][left].touch", "SENSOR_LEFT_ARM", 11}, {"body.leg[front][right].touch", "SENSOR_RIGHT_ARM", 12},
	{"body.leg[back][left].touch", "SENSOR_LEFT_LEG", 9}, {"body.leg[back][right].touch", "SENSOR_RIGHT_LEG", 10},
	{"body.leg[front][left].foot.touch", "SENSOR_FRONT_LEFT", 14}, {"body.leg[front][right].foot.touch", "SENSOR_FRONT_RIGHT", 15},
	{"body.leg[back][left].foot.touch", "SENSOR_BACK_LEFT", 16}, {"body.leg[back][right].foot.touch", "SENSOR_BACK_RIGHT", 17},
	{"body.head.mouth.touch", "SENSOR_MOUTH", 24},
}

// moods are the slots of the part mood, in the order of reportline.Properties.
var moods = [len(reportline.Properties)]string{"arousal", "valence", "age", "damage", "energy", "health", "val", "command", "fatigue", "behavior", "drive"}

// Parts returns the body's parts (GOSTAI-MAP-P-01 to 27, 30, 34, 35, 37 to 39; part of 29, part of 31, part of 33, part of 36). Front limbs touch the ground when Pleo walks, so they are legs, although Pleo
// calls them arms. Its front is where the camera looks (GOSTAI-FRAME-02).
func Parts() []robot.Part {
	legs := []string{"[front][left]", "[front][right]", "[back][left]", "[back][right]"}
	var legJoints []string
	for _, l := range legs {
		legJoints = append(legJoints, "robot.body.leg"+l)
	}
	parts := []robot.Part{{Path: "robot", Is: []string{"Identity", "Network", "Mobile", "Tracker"},
		Has:   []string{"stop", "moving", "finished", "aborted"},
		Fixed: map[string]robot.Value{"type": robot.S("four-legged"), "model": robot.S("Pleo")},
		Uses:  map[string][]string{"Mobile": append(legJoints, "robot.body.torso"), "Tracker": {"robot.body.neck"}}}}
	for _, j := range joints {
		p := robot.Part{Path: j.path, Is: []string{"RotationalMotor"}, Props: map[string]robot.Value{"native": robot.S(j.native), "sign": robot.I(int(j.sign()))},
			Ranges: map[string]robot.Range{"angle": j.span()}}
		if j.plain() {
			p.Is, p.Ranges = []string{"Motor"}, map[string]robot.Range{"val": j.span()}
			p.Props = map[string]robot.Value{"native": robot.S(j.native), "unit": robot.S("rad")}
		}
		parts = append(parts, p)
	}
	for _, t := range pads {
		parts = append(parts, robot.Part{Path: t.path, Is: []string{"TouchSensor"}, Props: map[string]robot.Value{"native": robot.S(t.native),
			"unit": robot.S("")},
			Ranges: map[string]robot.Range{"pressure": {Max: 1}}})
	}
	sensor := func(path, native string, most float64) robot.Part {
		return robot.Part{Path: path, Is: []string{"Sensor"}, Props: map[string]robot.Value{"native": robot.S(native)},
			Ranges: map[string]robot.Range{"val": {Max: most}}}
	}
	// Pleo's inner state: properties that scripts agree on, and the drives of its application. The name of a drive is two numbers of six letters each.
	var feels []string
	for _, name := range moods {
		if name != "val" {
			feels = append(feels, name)
		}
	}
	parts = append(parts, robot.Part{Path: "mood", Is: []string{"Sensor"}, Live: feels, Props: map[string]robot.Value{"native": robot.S("property_mood")}})
	for i := range reportline.MaxDrives {
		parts = append(parts, robot.Part{Path: fmt.Sprintf("drive[%d]", i), Is: []string{"Sensor"}, Live: []string{"low", "high", "name", "rest"}})
	}
	return append(parts,
		robot.Part{Path: "body.head.camera", Is: []string{"VideoIn"}, // PLEO-ARC-11
			Fixed: map[string]robot.Value{"xfov": robot.F(50 * math.Pi / 180), "yfov": robot.F(40 * math.Pi / 180)}},
		robot.Part{Path: "body.head.camera.blob", Is: []string{"BlobDetector"}},
		robot.Part{Path: "body.head.light", Is: []string{"Sensor"}, Props: map[string]robot.Value{"native": robot.S("SENSOR_LIGHT")}},
		// The direction and loudness of a sound are beside the microphone that micro means.
		robot.Part{Path: "body.head.micro[left]", Is: []string{"AudioIn"}, Live: []string{"direction", "loudness"}, Aliases: []string{"micro"}},
		robot.Part{Path: "body.head.micro[right]", Is: []string{"AudioIn"}},
		robot.Part{Path: "body.speaker", Is: []string{"AudioOut"}},
		sensor("body.tilt", "SENSOR_TILT", 6),
		sensor("body.shake", "SENSOR_SHAKE", 255),
		robot.Part{
			Path: "body.head.ir", Is: []string{"InfraRed"}, Live: []string{"beacon", "object"},
			Props: map[string]robot.Value{"native": robot.S("SENSOR_IR")},
		},
		robot.Part{Path: "body.battery", Is: []string{"Battery"}},
		robot.Part{Path: "body.battery.temperature", Is: []string{"TemperatureSensor"}},
	)
}

// Tree returns the body's sealed tree. The table of parts is our own, so an error is a bug that the tests find.
func Tree() (*robot.Tree, error) {
	return robot.Build("pleo", robot.FrameFor(true, true, true, true), Parts())
}
