package vectordriver

import (
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
	"kennel/edge/robot"
	"kennel/edge/robot/state"
)

// Facts of the body that the tree states.
const (
	headUp   = 45 * math.Pi / 180 // rad (VEC-MOT-01)
	headDown = 22 * math.Pi / 180
	armLow   = 0.032 // m above the ground (VEC-MOT-02)
	armHigh  = 0.092

	armJoint  = 0.045 // m, height of the lift's joint; own geometry, as the simulated board has it
	armLength = 0.066 // m, from the joint to the fork

	laserMin = 0.03 // m (VEC-BODY-26)
	laserMax = 1.2

	batteryEmpty = 3.6 // V (GOSTAI-MAP-V-32)
	batteryFull  = 4.1
)

// Limits of the camera's settings; own defaults. The longest exposure is the time between two pictures at 15 a second.
const (
	MostExposure = 0.066 // s
	LeastGain    = 0.1
	MostGain     = 4.0
)

// Parts returns the body's parts (GOSTAI-MAP-V-01 to 33). Its front is where the camera looks (GOSTAI-FRAME-02). The wire counts a raised
// head as positive; in the tree, as everywhere above the driver, positive pitch is nose down (GOSTAI-FRAME-05).
func Parts() []robot.Part {
	wheel := []string{"RotationalMotor", "RotationalSpeedMotor"}
	head := map[string]robot.Range{"angle": {Min: -headUp, Max: headDown}}
	parts := []robot.Part{
		{Path: "robot", Is: []string{"Identity", "Network", "Mobile", "Tracker"},
			Has: []string{"stop", "moving", "xSpeed", "yawSpeed", "watchdogInterval", "finished", "aborted", "unreachable"},
			Fixed: map[string]robot.Value{
				"type": robot.S("wheeled"), "model": robot.S("Vector"),
			},
			Ranges: map[string]robot.Range{"pitch": head["angle"]},
			Uses: map[string][]string{
				"Mobile":  {"robot.body.wheel"},
				"Tracker": {"robot.body.wheel", "robot.body.head.pitch"}, // yaw is a turn of the body
			}},
		{Path: "voice", Is: []string{"TextToSpeech"}, Has: []string{"lang", "speed", "pitch"},
			Uses: map[string][]string{"TextToSpeech": {"robot.body.head.speaker"}}},
		{Path: "speech", Is: []string{"SpeechRecognizer"}, Has: []string{"lang"}},
		{Path: "body.wheel[left]", Is: wheel, Endless: true},
		{Path: "body.wheel[right]", Is: wheel, Endless: true},
		{
			Path: "body.arm.z", Is: []string{"LinearMotor"}, Ranges: map[string]robot.Range{"position": {Min: armLow, Max: armHigh}},
			Aliases: []string{"lift"},
		},
		{Path: "body.head.pitch", Is: []string{"RotationalMotor"}, Ranges: head},
		{Path: "body.head.camera", Is: []string{"VideoIn"}, Has: []string{"format", "exposure", "gain", "resolution", "quality", "jpeg", "rgb", "grey8"},
			Ranges: map[string]robot.Range{"exposure": {Max: MostExposure}, "gain": {Min: LeastGain, Max: MostGain}, "resolution": {Max: 1}},
			Fixed:  map[string]robot.Value{"xfov": robot.F(90 * math.Pi / 180), "yfov": robot.F(50 * math.Pi / 180)}},
		{Path: "body.head.display", Is: []string{"VideoOut"}, // part of VEC-HW-09: RGB565
			Fixed: map[string]robot.Value{"width": robot.I(184), "height": robot.I(96), "format": robot.I(100)}},
		{Path: "body.head.speaker", Is: []string{"AudioOut"}, Has: []string{"volume"}},
	}
	for _, m := range []string{"body.micro[0]", "body.micro[1]", "body.micro[2]", "body.micro[3]"} {
		parts = append(parts, robot.Part{Path: m, Is: []string{"AudioIn"}})
	}
	pressed, plain := map[string]robot.Range{"pressure": {Max: 1}}, map[string]robot.Value{"unit": robot.S("")} // 0 or 1
	parts = append(parts,
		robot.Part{Path: "body.touch", Is: []string{"TouchSensor"}, Live: []string{"raw"}, Ranges: pressed, Props: plain},
		robot.Part{Path: "body.button", Is: []string{"TouchSensor"}, Ranges: pressed, Props: plain},
	)
	for _, c := range []string{"[front][left]", "[front][right]", "[back][left]", "[back][right]"} {
		parts = append(parts, robot.Part{Path: "body.cliff" + c, Is: []string{"CliffSensor"}})
	}
	parts = append(parts, robot.Part{Path: "body.laser", Is: []string{"DistanceSensor"},
		Props: map[string]robot.Value{"measuremin": robot.F(laserMin), "measuremax": robot.F(laserMax)}})
	for _, s := range []struct{ name, is string }{{"accel", "AccelerationSensor"}, {"gyro", "GyroSensor"}} {
		for _, axis := range []string{"[x]", "[y]", "[z]"} {
			parts = append(parts, robot.Part{Path: "body." + s.name + axis, Is: []string{s.is}})
		}
	}
	for _, l := range []string{"body.led[0]", "body.led[1]", "body.led[2]", "body.led[3]"} {
		parts = append(parts, robot.Part{Path: l, Is: []string{"RGBLed"}})
	}
	return append(parts,
		robot.Part{Path: "body.battery", Is: []string{"Battery"}, Fixed: map[string]robot.Value{"capacity": robot.F(0.32)}},
		robot.Part{Path: "body.battery.temperature", Is: []string{"TemperatureSensor"}},
	)
}

// Tree returns the body's sealed tree. The table of parts is our own, so an error is a bug that the tests find.
func Tree() (*robot.Tree, error) {
	return robot.Build("vector", robot.FrameFor(true, true, true, true), Parts())
}

// Compact structure-tree names in the order of the wire's indices (VEC-BODY-20) or, for lights, of the tree (GOSTAI-MAP-V-28 to 31).
var (
	motorNames = []string{spine.LeftTread: "wheelL", spine.RightTread: "wheelR", spine.Lift: "arm", spine.Head: "headPitch"}
	cliffNames = []string{spine.FrontLeft: "cliffFL", spine.FrontRight: "cliffFR", spine.BackLeft: "cliffBL", spine.BackRight: "cliffBR"}
	lightNames = []string{"led[0]", "led[1]", "led[2]", "led[3]"}
)

// Binding carries the driver's measurements to the slots of the tree, and the lights of the tree to the driver. It belongs to the goroutine
// of the loop and allocates nothing. Fields of a Sense that need interpretation, such as whether a touch is one, are left to the senses.
type Binding struct {
	board *state.Board

	turn, speed   [2]int // slot IDs of the wheels
	arm, head     int
	cliffs        [4]int
	lights        [4][3]int
	laser         int
	raw, button   int
	volts, remain int
	temperature   int
	epoch         uint32
	begun         bool
	offset, last  [2]float64 // rad; wheels keep their turns when the body restarts its counters
	home          [4]float64 // rad of the joint where the driver's position is 0
	homed         [4]bool
}

// Bind returns the binding of a board of Tree's.
func Bind(board *state.Board) (*Binding, error) {
	b, f := &Binding{board: board}, robot.Finder{Tree: board.Tree()}
	for i := range b.turn {
		b.turn[i], b.speed[i] = f.Slot(motorNames[i]+".turn"), f.Slot(motorNames[i]+".speed")
	}
	b.arm, b.head = f.Slot(motorNames[spine.Lift]+".position"), f.Slot(motorNames[spine.Head]+".turn")
	for i, name := range cliffNames {
		b.cliffs[i] = f.Slot(name + ".val")
	}
	for i, name := range lightNames {
		b.lights[i] = [3]int{f.Slot(name + ".r"), f.Slot(name + ".g"), f.Slot(name + ".b")}
	}
	b.laser, b.button = f.Slot("laser.distance"), f.Slot("button.pressure")
	b.volts, b.remain, b.temperature = f.Slot("battery.voltage"), f.Slot("battery.remain"), f.Slot("temperature.temperature")
	b.raw = -1
	if target, e := board.Tree().Lookup("touch.val"); e == nil {
		for _, r := range target.Refs[0].Node.Slots() {
			if r.Property && r.Slot.Name == "raw" {
				b.raw = r.ID
			}
		}
	}
	return b, f.Err
}

// Home says at which angle of its joint, in radians as the wire counts, the driver's position of the lift or the head (spine.Lift,
// spine.Head) is 0: what calibration found. Until then, and again after the encoder missed a movement or the body restarted, their
// positions are unknown and their slots are not measured.
func (b *Binding) Home(motor int, angle float64) {
	if motor == spine.Lift || motor == spine.Head {
		b.home[motor], b.homed[motor] = angle, true
	}
}

// Sense sets the slots that s measured. Each keeps the time of its own measurement.
func (b *Binding) Sense(s *Sense) {
	if s.At == 0 {
		return
	}
	if b.begun && s.Epoch != b.epoch {
		for i := range b.turn {
			b.offset[i] = b.last[i]
		}
		b.homed = [4]bool{}
	}
	b.begun, b.epoch = true, s.Epoch
	for i := range b.turn {
		b.last[i] = b.offset[i] + s.Motors[i].Position
		b.board.Set(b.turn[i], b.last[i]/(2*math.Pi), s.At)
		b.board.Set(b.speed[i], s.Motors[i].Speed, s.At)
	}
	for _, m := range [...]int{spine.Lift, spine.Head} {
		if s.Motors[m].Unseen {
			b.homed[m] = false
		}
	}
	if b.homed[spine.Lift] {
		b.board.Set(b.arm, armJoint+armLength*math.Sin(b.home[spine.Lift]+s.Motors[spine.Lift].Position), s.At)
	} else {
		b.board.Forget(b.arm)
	}
	if b.homed[spine.Head] {
		b.board.Set(b.head, -(b.home[spine.Head]+s.Motors[spine.Head].Position)/(2*math.Pi), s.At)
	} else {
		b.board.Forget(b.head)
	}
	if !s.Power.Has(body.SensorsOff) {
		for i, id := range b.cliffs {
			b.board.Set(id, s.Cliffs[i], s.At)
		}
	}
	if s.ProxMetres >= laserMin && s.ProxMetres <= laserMax { // the senses detect free sight
		b.stamped(b.laser, s.ProxMetres, s.ProxAt)
	}
	b.stamped(b.raw, s.Touch, s.TouchAt)
	pressed := 0.0
	if s.Button {
		pressed = 1
	}
	b.board.Set(b.button, pressed, s.At)
	b.board.Set(b.volts, s.BatteryVolts, s.At)
	b.board.Set(b.remain, min(max((s.BatteryVolts-batteryEmpty)/(batteryFull-batteryEmpty), 0), 1), s.At)
	b.board.Set(b.temperature, s.Temperature, s.At)
}

func (b *Binding) stamped(id int, v float64, at time.Duration) {
	if at > 0 {
		b.board.Set(id, v, at)
	}
}

// Light gives one colour of a light, the slot of that ID, a brightness of 0 to 1 in a and on the board; false if it is no light's.
func (b *Binding) Light(a *Act, id int, v float64, now time.Duration) bool {
	for i := range b.lights {
		l := &a.Lights[i]
		for c, channel := range [...]*uint8{&l.R, &l.G, &l.B} {
			if b.lights[i][c] == id {
				*channel = uint8(math.Round(min(max(v, 0), 1) * math.MaxUint8))
				b.board.Set(id, float64(*channel)/math.MaxUint8, now)
				return true
			}
		}
	}
	return false
}
