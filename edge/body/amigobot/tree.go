// Package amigobot is the AmigoBot: its driver, its plant and the standard names of its parts.
package amigobot

import (
	"fmt"
	"math"

	"kennel/edge/robot"
)

// Facts of the body that the tree states.
const (
	capacity  = 2.2 // Ah (GOSTAI-MAP-A-15)
	maxSpeed  = 127 // VEL2's largest step, 20 mm/s each (AMIGO-CMD-32)
	stepSpeed = 0.020
	radius    = 0.050 // m, of a wheel (AMIGO-POS-03)

	ticksPerTurn = 9550                               // of a wheel (AMIGO-POS-03)
	track        = 23310. / ticksPerTurn * 2 * radius // m, between the wheels (AMIGO-POS-04)
)

// Sonars are the bearings of AmigOS's sonars in degrees, counter-clockwise from the front, by AmigOS's number (AMIGO-SON-02). AmigOS
// counts them clockwise from the left side, the standard counter-clockwise from the front (GOSTAI-LOC-07).
var Sonars = [8]float64{90, 44, 12, -12, -44, -90, -144, 144}

// Parts returns the body's parts (part of GOSTAI-MAP-A-01 to 39). It has no camera: its front is the way it drives (GOSTAI-FRAME-02). led and
// button exist in the simulator only.
func Parts() []robot.Part {
	wheel := func(side string) robot.Part {
		return robot.Part{Path: "body.wheel[" + side + "]", Is: []string{"RotationalMotor", "RotationalSpeedMotor"}, Endless: true,
			Has:    []string{"PGain", "IGain", "DGain"},
			Ranges: map[string]robot.Range{"speed": {Min: -maxSpeed * stepSpeed / radius, Max: maxSpeed * stepSpeed / radius}}}
	}
	pressed, plain := map[string]robot.Range{"pressure": {Max: 1}}, map[string]robot.Value{"unit": robot.S("")} // 0 or 1
	parts := []robot.Part{
		{Path: "robot", Is: []string{"Identity", "Network", "Mobile"},
			Has:   []string{"stop", "moving", "xSpeed", "yawSpeed", "watchdogInterval", "finished", "aborted"},
			Fixed: map[string]robot.Value{"type": robot.S("wheeled")},
			Uses:  map[string][]string{"Mobile": {"robot.body.wheel"}}},
		wheel("left"), wheel("right"),
		{Path: "body.bumper[left]", Is: []string{"TouchSensor"}, Ranges: pressed, Props: plain},
		{Path: "body.bumper[right]", Is: []string{"TouchSensor"}, Ranges: pressed, Props: plain},
	}
	bearings := make([]float64, len(Sonars))
	for i, b := range Sonars {
		bearings[i] = b * math.Pi / 180
	}
	for i, native := range robot.Ring(bearings) {
		parts = append(parts, robot.Part{Path: fmt.Sprintf("body.sonar[%d]", i), Is: []string{"DistanceSensor"},
			Props: map[string]robot.Value{"native": robot.I(native), "bearing": robot.F(bearings[native]), "measuremax": robot.F(5)}})
	}
	parts = append(parts,
		robot.Part{Path: "body.speaker", Is: []string{"AudioOut", "SoundBank"}},
		robot.Part{Path: "body.battery", Is: []string{"Battery"}, Fixed: map[string]robot.Value{"capacity": robot.F(capacity)}})
	for _, g := range []struct {
		name string
		n    int
		is   string
	}{{"digin", 6, "DigitalIn"}, {"digout", 6, "DigitalOut"}, {"analog", 5, "AnalogIn"}, {"serial", 2, "SerialPort"}, {"led", 3, "Led"},
		{"button", 2, "TouchSensor"}} {
		for i := range g.n {
			p := robot.Part{Path: fmt.Sprintf("body.%s[%d]", g.name, i), Is: []string{g.is}}
			switch g.name {
			case "button":
				p.Ranges, p.Props = pressed, plain
			case "analog":
				p.Ranges = map[string]robot.Range{"val": {Max: 5}}
			}
			parts = append(parts, p)
		}
	}
	return parts
}

// Tree returns the body's sealed tree. The table of parts is our own, so an error is a bug that the tests find.
func Tree() (*robot.Tree, error) {
	return robot.Build("amigobot", robot.FrameFor(false, true, true, true), Parts())
}
