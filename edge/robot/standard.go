package robot

import "slices"

// StandardName is a component name of the standard with the guidance it gives. "In" and "holds" are advice, not a rule: the standard's own
// examples go beyond them (head.yaw), so nothing is refused for them.
type StandardName struct {
	Name       string
	Doc        string
	In         []string // what it usually is a part of
	Holds      []string // what its parts usually are
	Interfaces []string
	Extra      bool // ours, beside the standard's (GOSTAI-EXT-01 to 05)
}

var (
	orientation   = []string{"yaw", "pitch", "roll"}
	orientationIn = []string{"body", "neck", "knee", "ankle", "shoulder", "elbow", "wrist", "torso", "head", "hip", "tail"}
	rotational    = []string{"RotationalMotor", "RotationalSpeedMotor"}
	linear        = []string{"LinearMotor", "LinearSpeedMotor"}
	motor         = []string{"Motor"}
	touching      = []string{"touch"}
)

// standardNames are GOSTAI-COMP-01 to 42 in their order, then ours. The facets of speaker and micro are printed swapped in the standard
// (GOSTAI-COMP-39, GOSTAI-COMP-40).
var standardNames = []StandardName{
	{Name: "robot", Doc: "the robot, root of the tree", Holds: []string{"body"}, Interfaces: []string{"Identity", "Network", "Mobile", "Tracker"}},
	{Name: "body", Doc: "all hardware", In: []string{"robot"}, Holds: []string{"wheel", "arm", "leg", "neck", "head", "tail", "skin", "torso"}},
	{Name: "wheel", Doc: "a wheel", In: []string{"body"}, Interfaces: rotational},
	{
		Name: "leg", Doc: "a limb that touches the ground in normal operation", In: []string{"body"},
		Holds: []string{"hip", "knee", "ankle", "foot", "joint"},
	},
	{Name: "arm", Doc: "a limb whose end does not always touch the ground; wins over leg", In: []string{"body"},
		Holds: []string{"shoulder", "elbow", "wrist", "hand", "grip", "joint"}},
	{Name: "shoulder", Doc: "upper part of the arm, one to three axes", In: []string{"arm"}, Holds: orientation},
	{Name: "elbow", Doc: "between upper and lower arm, usually one axis", In: []string{"arm"}, Holds: []string{"pitch"}},
	{Name: "wrist", Doc: "between lower arm and hand, usually three axes", In: []string{"arm"}, Holds: orientation},
	{Name: "hand", Doc: "end of the arm that holds fingers", In: []string{"arm"}, Holds: []string{"finger"}},
	{Name: "finger", Doc: "articulated motors at the hand", In: []string{"hand"}, Holds: touching, Interfaces: motor},
	{Name: "grip", Doc: "gripper of two fingers", In: []string{"arm", "hand"}, Holds: touching, Interfaces: motor},
	{Name: "hip", Doc: "upper part of the leg, one to three axes", In: []string{"leg"}, Holds: orientation},
	{Name: "knee", Doc: "between upper and lower leg, usually one axis", In: []string{"leg"}, Holds: []string{"pitch"}},
	{Name: "ankle", Doc: "between lower leg and foot, usually three axes", In: []string{"leg"}, Holds: orientation},
	{Name: "foot", Doc: "end of the leg", In: []string{"leg"}, Holds: []string{"touch", "toe"}},
	{Name: "toe", Doc: "as a finger, at the foot", In: []string{"foot"}, Holds: touching, Interfaces: motor},
	{Name: "neck", Doc: "axes between body and head that are not the head's", In: []string{"body"}, Holds: orientation},
	{Name: "tail", Doc: "chain of motors at the back", In: []string{"body"}, Holds: []string{"joint", "yaw", "pitch"}},
	{Name: "head", Doc: "main pivot of the head", In: []string{"body", "neck"},
		Holds: []string{"camera", "mouth", "ear", "lip", "eye", "eyebrow", "yaw", "pitch", "roll"}},
	{Name: "mouth", Doc: "opens and closes", In: []string{"head"}, Holds: []string{"lip"}, Interfaces: motor},
	{Name: "ear", Doc: "an ear that moves", In: []string{"head"}, Interfaces: motor},
	{Name: "joint", Doc: "any articulation", In: []string{"tail", "arm", "leg", "lip", "spine", "eyebrow"}, Interfaces: motor},
	{Name: "yaw", Doc: "rotation about Z", In: orientationIn, Interfaces: rotational},
	{Name: "pitch", Doc: "rotation about Y", In: orientationIn, Interfaces: rotational},
	{Name: "roll", Doc: "rotation about X", In: orientationIn, Interfaces: rotational},
	{Name: "x", Doc: "translation along X", In: []string{"body", "arm"}, Interfaces: linear},
	{Name: "y", Doc: "translation along Y", In: []string{"body", "arm"}, Interfaces: linear},
	{Name: "z", Doc: "translation along Z", In: []string{"body", "arm"}, Interfaces: linear},
	{Name: "lip", Doc: "animated lips", In: []string{"mouth", "head"}, Holds: []string{"joint"}, Interfaces: motor},
	{Name: "eye", Doc: "pivot of the eyeball", In: []string{"head"}, Holds: []string{"camera"}},
	{Name: "eyebrow", Doc: "an eyebrow, one or more axes", In: []string{"head"}, Holds: []string{"joint"}, Interfaces: motor},
	{Name: "torso", Doc: "axis in the middle of the body", In: []string{"body"}, Holds: []string{"yaw", "pitch", "roll", "spine"}},
	{Name: "spine", Doc: "series of articulations in the back", In: []string{"torso"}, Holds: []string{"joint"}},
	{Name: "clavicle", Doc: "axis that brings the arms together or raises the shoulders", In: []string{"body"}, Interfaces: motor},
	{Name: "touch", Doc: "touch sensor", In: []string{"finger", "grip", "foot", "toe"}, Interfaces: []string{"TouchSensor"}},
	{Name: "gyro", Doc: "gyrometer, an axis each", In: []string{"body"}, Interfaces: []string{"GyroSensor"}},
	{Name: "accel", Doc: "accelerometer, an axis each", In: []string{"body"}, Interfaces: []string{"AccelerationSensor"}},
	{Name: "camera", Doc: "camera; with several, camera is an alias of one", In: []string{"head", "body", "eye"}, Interfaces: []string{"VideoIn"}},
	{Name: "speaker", Doc: "speaker; with several, speaker is an alias of one", In: []string{"head", "body"}, Interfaces: []string{"AudioOut"}},
	{Name: "micro", Doc: "microphone; with several, micro is an alias of one", In: []string{"head", "body"}, Interfaces: []string{"AudioIn"}},
	{Name: "speech", Doc: "speech recognition", In: []string{"robot"}, Interfaces: []string{"SpeechRecognizer"}},
	{Name: "voice", Doc: "voice synthesis", In: []string{"robot"}, Interfaces: []string{"TextToSpeech"}},

	{Name: "battery", Doc: "source of power", In: []string{"body"}, Holds: []string{"temperature"}, Interfaces: []string{"Battery"}, Extra: true},
	{Name: "led", Doc: "a light", In: []string{"body", "eye"}, Interfaces: []string{"Led", "RGBLed"}, Extra: true},
	{
		Name: "laser", Doc: "range finder of one beam, or a scanner", In: []string{"body", "head"},
		Interfaces: []string{"DistanceSensor", "Laser"}, Extra: true,
	},
	{Name: "sonar", Doc: "ultrasonic range finder", In: []string{"body"}, Interfaces: []string{"DistanceSensor"}, Extra: true},
	{Name: "bumper", Doc: "tells what it bumped into", In: []string{"body"}, Interfaces: []string{"TouchSensor"}, Extra: true},
	{Name: "button", Doc: "button", In: []string{"body"}, Interfaces: []string{"TouchSensor"}, Extra: true},
	{Name: "cliff", Doc: "looks down for the floor", In: []string{"body"}, Interfaces: []string{"CliffSensor"}, Extra: true},
	{Name: "tilt", Doc: "how the body lies", In: []string{"body"}, Interfaces: []string{"Sensor"}, Extra: true},
	{Name: "shake", Doc: "how hard the body is shaken", In: []string{"body"}, Interfaces: []string{"Sensor"}, Extra: true},
	{Name: "light", Doc: "brightness around", In: []string{"head"}, Interfaces: []string{"Sensor"}, Extra: true},
	{Name: "ir", Doc: "infrared data", In: []string{"head"}, Interfaces: []string{"InfraRed"}, Extra: true},
	{Name: "display", Doc: "display", In: []string{"head"}, Interfaces: []string{"VideoOut"}, Extra: true},
	{Name: "digin", Doc: "digital input", In: []string{"body"}, Interfaces: []string{"DigitalIn"}, Extra: true},
	{Name: "digout", Doc: "digital output", In: []string{"body"}, Interfaces: []string{"DigitalOut"}, Extra: true},
	{Name: "analog", Doc: "analog input", In: []string{"body"}, Interfaces: []string{"AnalogIn"}, Extra: true},
	{Name: "serial", Doc: "serial port", In: []string{"body"}, Interfaces: []string{"SerialPort"}, Extra: true},
	{Name: "temperature", Doc: "thermometer of its parent", In: []string{"battery", "body"}, Interfaces: []string{"TemperatureSensor"}, Extra: true},
	{Name: "blob", Doc: "what a camera's image is searched for", In: []string{"camera"}, Interfaces: []string{"BlobDetector"}, Extra: true},
}

// StandardNames returns every standard name of a component (GOSTAI-NAME-01), the standard's 42 first.
func StandardNames() []StandardName { return slices.Clone(standardNames) }

// isStandard reports whether name is one of them.
func isStandard(name string) bool {
	return slices.ContainsFunc(standardNames, func(s StandardName) bool { return s.Name == name })
}

// mustResolve are the components whose bare name has to work also where there are several of them (GOSTAI-COMP-38 to 40).
var mustResolve = []string{"camera", "speaker", "micro"}
