// Package pleo is the Pleo: so far its parts by their standard names.
package pleo

import (
	"math"

	"kennel/edge/robot"
)

// joint is one of Pleo's joints: its name in the programming guide and its limits there in degrees
// (PLEO-JNT-13). Pleo counts forward, up and right as positive (PLEO-JNT-12); the standard nose
// down, limb backward and left (GOSTAI-FRAME-05), so every one is turned.
type joint struct {
	path, native string
	min, max     float64
}

var joints = []joint{
	{"body.neck.yaw", "JOINT_NECK_HORIZONTAL", -65, 55},
	{"body.neck.pitch", "JOINT_NECK_VERTICAL", -75, 75},
	{"body.torso.yaw", "JOINT_TORSO", -15, 15},
	{"body.tail.yaw", "JOINT_TAIL_HORIZONTAL", -90, 90},
	{"body.tail.pitch", "JOINT_TAIL_VERTICAL", -90, 90},
	{"body.leg[front][left].hip.pitch", "JOINT_LEFT_SHOULDER", -30, 55},
	{"body.leg[front][left].knee.pitch", "JOINT_LEFT_ELBOW", 0, 90},
	{"body.leg[front][right].hip.pitch", "JOINT_RIGHT_SHOULDER", -30, 55},
	{"body.leg[front][right].knee.pitch", "JOINT_RIGHT_ELBOW", 0, 90},
	{"body.leg[back][left].hip.pitch", "JOINT_LEFT_HIP", -45, 40},
	{"body.leg[back][left].knee.pitch", "JOINT_LEFT_KNEE", -70, 0},
	{"body.leg[back][right].hip.pitch", "JOINT_RIGHT_HIP", -45, 40},
	{"body.leg[back][right].knee.pitch", "JOINT_RIGHT_KNEE", -70, 0},
}

// Parts returns the body's parts (GOSTAI-MAP-P-01 to 39). Front limbs touch the ground when Pleo walks, so they are legs, although Pleo
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
		parts = append(parts, robot.Part{Path: j.path, Is: []string{"RotationalMotor"},
			Props:  map[string]robot.Value{"native": robot.S(j.native), "sign": robot.I(-1)},
			Ranges: map[string]robot.Range{"angle": {Min: -j.max * math.Pi / 180, Max: -j.min * math.Pi / 180}}})
	}
	// One motor drives eyes and mouth: positive degrees are eyes, negative mouth (PLEO-JNT-14).
	parts = append(parts, robot.Part{Path: "body.head.mouth", Is: []string{"Motor"},
		Props:  map[string]robot.Value{"native": robot.S("JOINT_HEAD"), "unit": robot.S("rad")},
		Ranges: map[string]robot.Range{"val": {Min: -80 * math.Pi / 180, Max: 85 * math.Pi / 180}}})
	for _, t := range []struct{ path, native string }{
		{"body.head.touch[up]", "SENSOR_HEAD"}, {"body.head.touch[down]", "SENSOR_CHIN"},
		{"body.touch[front]", "SENSOR_BACK"}, {"body.touch[back]", "SENSOR_TAIL"},
		{"body.leg[front][left].touch", "SENSOR_LEFT_ARM"}, {"body.leg[front][right].touch", "SENSOR_RIGHT_ARM"},
		{"body.leg[back][left].touch", "SENSOR_LEFT_LEG"}, {"body.leg[back][right].touch", "SENSOR_RIGHT_LEG"},
		{"body.leg[front][left].foot.touch", "SENSOR_FRONT_LEFT"}, {"body.leg[front][right].foot.touch", "SENSOR_FRONT_RIGHT"},
		{"body.leg[back][left].foot.touch", "SENSOR_BACK_LEFT"}, {"body.leg[back][right].foot.touch", "SENSOR_BACK_RIGHT"},
		{"body.head.mouth.touch", "SENSOR_MOUTH"},
	} {
		parts = append(parts, robot.Part{Path: t.path, Is: []string{"TouchSensor"}, Props: map[string]robot.Value{"native": robot.S(t.native),
			"unit": robot.S("")},
			Ranges: map[string]robot.Range{"pressure": {Max: 1}}})
	}
	sensor := func(path, native string, most float64) robot.Part {
		return robot.Part{Path: path, Is: []string{"Sensor"}, Props: map[string]robot.Value{"native": robot.S(native)},
			Ranges: map[string]robot.Range{"val": {Max: most}}}
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
