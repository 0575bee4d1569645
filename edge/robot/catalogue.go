package robot

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Units of slots.
const (
	radian        Unit = "rad"
	turns         Unit = "turn"
	metre         Unit = "m"
	second        Unit = "s"
	millisecond   Unit = "ms"
	pixel         Unit = "px"
	newton        Unit = "N"
	newtonMetre   Unit = "N·m"
	metrePerS     Unit = "m/s"
	radianPerS    Unit = "rad/s"
	metrePerS2    Unit = "m/s²"
	pascal        Unit = "Pa" // or 0 and 1 for a button
	celsius       Unit = "°C"
	perSecond     Unit = "1/s"
	decibel       Unit = "dB"
	ampere        Unit = "A"
	ampereHour    Unit = "Ah"
	volt          Unit = "V"
	year          Unit = "a"
	bodyGain      Unit = "(body)" // a gain in units of the body's own
	dimensionless      = Unit("")
)

var inf = math.Inf(1)

// Short ways to write a slot down.
func attr(name string, t Type, u Unit, doc string) Slot {
	return Slot{Name: name, Type: t, Unit: u, Min: -inf, Max: inf, Doc: doc}
}

func read(name string, t Type, u Unit, doc string) Slot {
	s := attr(name, t, u, doc)
	s.Access = ReadOnly
	return s
}

func method(name, doc string, args ...Argument) Slot {
	return Slot{Name: name, Access: Method, Min: -inf, Max: inf, Args: args, Doc: doc}
}

func event(name, doc string, args ...Argument) Slot {
	s := method(name, doc, args...)
	s.Access = Event
	return s
}

func (s Slot) opt() Slot                    { s.Optional = true; return s }
func (s Slot) extra() Slot                  { s.Optional, s.Extra = true, true; return s }
func (s Slot) within(min, max float64) Slot { s.Min, s.Max = min, max; return s }
func (s Slot) or(v Value) Slot              { s.Default = v; return s }
func (s Slot) oneOf(words ...string) Slot   { s.Words = words; return s }
func (s Slot) alias(name string) Slot       { s.Alias = name; return s }
func of(name, base, val string, acts bool, doc string, own ...Slot) declared {
	return declared{Interface{Name: name, Val: val, Own: own, Acts: acts, Doc: doc}, base}
}

type declared struct {
	Interface
	base string
}

func (d declared) beside() declared { d.Extra = true; return d }

// declarations is the catalogue, bases before what is made of them. The order is the standard's (GOSTAI-IF-00a); ours follow.
var declarations = []declared{
	of("Identity", "", "", false, "Who the robot is.",
		read("type", String, "", "category of the robot").oneOf("humanoid", "four-legged", "wheeled", "industrial arm").alias("kind"),
		attr("name", String, "", "name of the robot"),
		read("model", String, "", "model of the robot"),
		read("serial", String, "", "serial number, empty when unknown").or(S("")),
	),
	of("Network", "", "", false, "Where the robot is in the network.",
		read("IP", String, "", "IP address; of a body without network: that of the agent that hosts it"),
	),
	of("Motor", "", "", true, "Any motor.",
		attr("val", Float, "", "stands for the more specific slot; of a bare Motor: angle in rad or opening of 0 to 1, see property unit"),
		attr("PGain", Float, bodyGain, "P gain of the controller").opt(),
		attr("IGain", Float, bodyGain, "I gain of the controller").opt(),
		attr("DGain", Float, bodyGain, "D gain of the controller").opt(),
	),
	of("LinearMotor", "Motor", "position", true, "A motor that moves along a line. A wheel may be one, by the way of a point on its tread.",
		attr("position", Float, metre, "position"),
		read("force", Float, newton, "measured or estimated force, 0 when unknown").or(F(0)),
	),
	of("LinearSpeedMotor", "Motor", "speed", true, "A linear motor controlled by its speed.",
		attr("speed", Float, metrePerS, "speed"),
	),
	of("RotationalMotor", "Motor", "angle", true, "A motor that turns, controlled by its position.",
		attr("angle", Float, radian, "angle modulo 2π: above -π up to π for a joint, from 0 below 2π for a wheel; any value may be written"),
		attr("turn", Float, turns, "absolute position, in turns"),
		read("torque", Float, newtonMetre, "measured or estimated torque, 0 when unknown").or(F(0)),
	),
	of("RotationalSpeedMotor", "Motor", "speed", true, "A motor that turns, controlled by its speed.",
		attr("speed", Float, radianPerS, "rotation speed"),
	),
	of("Sensor", "", "", false, "Any sensor.",
		read("val", Float, "", "stands for the more specific slot"),
	),
	of("DistanceSensor", "Sensor", "distance", false, "Infrared, laser, ultrasound.",
		read("distance", Float, metre, "measured distance, infinite with nothing in range (property inRange)").within(0, inf),
	),
	of("TouchSensor", "Sensor", "pressure", false, "Contact, induction, buttons.",
		read("pressure", Float, pascal, "pressure; 0 or 1 of a button, 0 to 1 of an uncalibrated one").within(0, inf),
	),
	of("AccelerationSensor", "Sensor", "acceleration", false, "An accelerometer along one axis.",
		read("acceleration", Float, metrePerS2, "acceleration, gravity included"),
	),
	of("GyroSensor", "Sensor", "speed", false, "A gyrometer about one axis.",
		read("speed", Float, radianPerS, "rotation speed"),
	),
	of("TemperatureSensor", "Sensor", "temperature", false, "A thermometer.",
		read("temperature", Float, celsius, "temperature").within(-273.15, inf),
	),
	of("Laser", "Sensor", "", false, "A scanning range finder. A parameter takes the closest value it can; read it back.",
		read("val", List, metre, "last scan: distances from angleMin to angleMax"),
		attr("angleMin", Float, radian, "start of the scan, from the front of the device"),
		attr("angleMax", Float, radian, "end of the scan"),
		attr("resolution", Float, radian, "angle between two beams").within(0, inf),
		attr("distanceMin", Float, metre, "shortest distance it can measure").within(0, inf),
		attr("distanceMax", Float, metre, "longest distance it can measure").within(0, inf),
		attr("rate", Float, perSecond, "scans a second").within(0, inf).opt(),
	),
	of("Mobile", "", "", true, "A robot that can move about.",
		method("go", "move about x metres forward, backward if negative; ends a go or turn under way", Argument{"x", Float, metre}),
		method("turn", "turn right by about x radians, left if negative: the one angle here that counts clockwise", Argument{"x", Float, radian}),
		method("stop", "end the motion under way").extra(),
		read("moving", Bool, "", "a go or turn is under way").extra(),
		attr("xSpeed", Float, metrePerS, "speed forward").extra(),
		attr("yawSpeed", Float, radianPerS, "rotation speed, counter-clockwise").extra(),
		attr("watchdogInterval", Float, second, "speeds end this long after they were last written").within(0, inf).extra(),
		event("finished", "a go or turn reached its end").extra(),
		event("aborted", "a go or turn was ended by another or by stop").extra(),
		event("unreachable", "a go or turn met something it could not pass").extra(),
	),
	of("Tracker", "", "", true, "Where the camera looks, by whatever moves it: its own motors, the body, or both.",
		attr("yaw", Float, radian, "rotation about Z, left is positive"),
		attr("pitch", Float, radian, "rotation about Y, down is positive"),
	),
	of("VideoIn", "", "", false, "A camera.", slices.Concat([]Slot{
		read("val", Bytes, "", "the image"),
		read("xfov", Float, radian, "horizontal field of view").within(0, 2*math.Pi),
		read("yfov", Float, radian, "vertical field of view").within(0, 2*math.Pi),
		read("height", Int, pixel, "height of the image at the current resolution").within(0, inf),
		read("width", Int, pixel, "width of the image at the current resolution").within(0, inf),
		attr("format", Int, "", "format of the image: 0 unknown, 1 RGB, 2 YCbCr, 3 JPEG, 4 PPM, 5 YUV422, 6 GREY8, 7 GREY4, 8 YUV411 planar, 9 "+
			"NV12, 10 YUV420 planar").
			within(0, 110).opt(),
		attr("exposure", Float, second, "exposure time, 0 if that means nothing").within(0, inf).opt().or(F(0)),
		attr("wb", Int, "", "white balance, 0 if that means nothing").opt().or(I(0)),
		attr("gain", Float, dimensionless, "amplification, 1 if that means nothing").within(0, inf).opt().or(F(1)),
		attr("resolution", Int, "", "0 is the highest, then every size there is, in decreasing order").within(0, inf).opt(),
		attr("quality", Int, "", "of JPEG: 0 small and bad to 100 best").within(0, 100).opt(),
	}, conversions())...),
	of("AudioOut", "", "", true, "A speaker.",
		attr("val", Bytes, "", "the sound, its format in its header; writing plays it"),
		read("remain", Float, millisecond, "sound left in the buffer").within(0, inf),
		read("playing", Bool, "", "the buffer is not empty"),
		attr("volume", Float, decibel, "0 is nominal").opt(),
	),
	of("AudioIn", "", "", false, "A microphone.",
		read("val", Bytes, "", "what was heard since the last update, in the current unit (property unit, WAV of 16 bit by default)"),
		read("duration", Float, millisecond, "length of val").within(0, inf),
		attr("gain", Float, dimensionless, "amplification").within(0, 1).opt(),
	),
	of("BlobDetector", "", "", false, "Finds a ball, a marker, a colour in the image.",
		read("x", Float, pixel, "centre of the blob, from the left"),
		read("y", Float, pixel, "centre of the blob, from the top"),
		read("ratio", Float, dimensionless, "size of the blob; 1 is the whole image").within(0, 1),
		read("visible", Bool, "", "ratio is at least threshold"),
		attr("threshold", Float, dimensionless, "smallest ratio that counts as visible, 0.01 at first").within(0, 1).or(F(0.01)),
		read("orientation", Float, radian, "main axis of the blob, 0 is horizontal").opt(),
		read("elongation", Float, dimensionless, "main by second diameter").within(1, inf).opt(),
	),
	of("TextToSpeech", "", "", true, "Speaks, through the speaker unless told otherwise.",
		attr("lang", String, "", "language, ISO 639: fr, en, it").opt(),
		attr("speed", Float, dimensionless, "1 is regular").within(math.SmallestNonzeroFloat64, inf).opt(),
		attr("pitch", Float, dimensionless, "1 is regular").within(math.SmallestNonzeroFloat64, inf).opt(),
		attr("gender", Int, "", "0 male, 1 female").within(0, 1).opt(),
		attr("age", Float, year, "age of the speaker").within(0, inf).opt(),
		attr("voice", String, "", "the engine's own name of a voice").opt(),
		method("say", "speak a sentence", Argument{"s", String, ""}),
		method("voicexml", "speak VoiceXML", Argument{"s", String, ""}).opt(),
		method("script", "speak text whose markup emits events", Argument{"s", String, ""}).opt(),
	),
	of("SpeechRecognizer", "", "", false, "Listens, to micro unless told otherwise.",
		attr("lang", String, "", "language, ISO 639: fr, en, it").opt(),
		event("hear", "a word or sentence was recognised", Argument{"s", String, ""}),
	),
	of("Led", "", "", true, "A light of one colour.",
		attr("val", Float, dimensionless, "intensity").within(0, 1),
	),
	of("RGBLed", "Led", "", true, "A light of three colours. val reads as the strongest; writing it scales all three, and from black makes white.",
		attr("r", Float, dimensionless, "red").within(0, 1),
		attr("g", Float, dimensionless, "green").within(0, 1),
		attr("b", Float, dimensionless, "blue").within(0, 1),
	),
	of("Battery", "", "", false, "A source of power.",
		read("remain", Float, dimensionless, "energy left; not a number while unknown").within(0, 1).or(F(math.NaN())),
		read("capacity", Float, ampereHour, "capacity").within(0, inf),
		read("current", Float, ampere, "consumption, negative while charging"),
		read("voltage", Float, volt, "voltage").within(0, inf),
	),

	of("VideoOut", "", "", true, "A display (part of GOSTAI-EXT-06).",
		attr("val", Bytes, "", "the image; writing shows it"),
		read("width", Int, pixel, "width").within(0, inf),
		read("height", Int, pixel, "height").within(0, inf),
		attr("format", Int, "", "as VideoIn; 100 is RGB565").within(0, 110),
		method("clear", "show black"),
	).beside(),
	of("SoundBank", "", "", true, "Stored sounds (part of GOSTAI-EXT-07).",
		method("play", "play sound n", Argument{"n", Int, ""}),
		read("count", Int, "", "how many sounds there are").within(0, inf),
		read("names", List, "", "their names"),
		attr("mute", Bool, "", "silent"),
	).beside(),
	of("DigitalIn", "Sensor", "", false, "A digital input (GOSTAI-EXT-08).",
		read("val", Float, dimensionless, "0 or 1").within(0, 1),
	).beside(),
	of("AnalogIn", "Sensor", "", false, "An analog input (GOSTAI-EXT-08).",
		read("val", Float, volt, "voltage"),
	).beside(),
	of("DigitalOut", "", "", true, "A digital output (GOSTAI-EXT-08).",
		attr("val", Float, dimensionless, "0 or 1").within(0, 1),
	).beside(),
	of("SerialPort", "", "", true, "A serial port (part of GOSTAI-EXT-09).",
		method("write", "send bytes", Argument{"bytes", Bytes, ""}),
		method("flush", "drop what was received and not read"),
		event("received", "bytes came", Argument{"bytes", Bytes, ""}),
	).beside(),
	of("CliffSensor", "Sensor", "", false, "Looks down for the floor (GOSTAI-EXT-10).",
		read("val", Float, dimensionless, "reflected light, 0 to 1; low means no floor").within(0, 1),
		read("detected", Bool, "", "there is no floor"),
	).beside(),
	of("InfraRed", "Sensor", "", true, "Infrared data (part of GOSTAI-EXT-11).",
		method("send", "send bytes", Argument{"bytes", Bytes, ""}),
		event("received", "bytes came", Argument{"bytes", Bytes, ""}),
	).beside(),
}

// catalogue and byName are made once from declarations and never change.
var catalogue, byName = makeCatalogue(declarations)

func makeCatalogue(decl []declared) ([]*Interface, map[string]*Interface) {
	all, names := make([]*Interface, 0, len(decl)), make(map[string]*Interface, len(decl))
	for _, d := range decl {
		i := d.Interface
		if d.base != "" {
			i.Base = names[d.base]
			i.Slots = append(i.Slots, i.Base.Slots...)
		}
		for _, s := range i.Own {
			if old := i.Slot(s.Name); old != nil {
				*old = s // Laser has a val of its own
				continue
			}
			i.Slots = append(i.Slots, s)
		}
		if i.Val != "" {
			to, val := i.Slot(i.Val), i.Slot("val")
			val.Points, val.Type, val.Unit, val.Min, val.Max = to.Name, to.Type, to.Unit, to.Min, to.Max
			val.Doc = "stands for " + to.Name
		}
		all, names[i.Name] = append(all, &i), &i
	}
	return all, names
}

// Interfaces returns every interface, the standard's 25 first. They must not be changed.
func Interfaces() []*Interface { return catalogue }

// InterfaceNamed returns the interface of that name. "Interface.VideoIn" and the old "Facet.VideoIn" are VideoIn (GOSTAI-SUP-01).
func InterfaceNamed(name string) (*Interface, error) {
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "Interface."), "Facet.")
	if i := byName[bare]; i != nil {
		return i, nil
	}
	for n := range byName {
		if strings.EqualFold(n, bare) {
			return nil, fmt.Errorf("%w: interface %.40q; did you mean %s?", ErrNotFound, name, n)
		}
	}
	return nil, fmt.Errorf("%w: interface %.40q; want one of %s", ErrNotFound, name, JoinInterfaces(catalogue))
}
