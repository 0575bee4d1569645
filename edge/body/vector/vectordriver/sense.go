package vectordriver

import (
	"math"
	"time"

	"kennel/edge/body"
)

// Light is one RGB light, 0 to 255 a channel.
type Light struct{ R, G, B uint8 }

// PowerParts is a set of parts that the body can switch off (VEC-HW-07, VEC-PWR-53).
type PowerParts uint8

// Bits of PowerParts.
const (
	ChargerPart PowerParts = 1 << iota // it does not charge
	SensorsPart                        // cliff and distance sensors; Sense.Power says SensorsOff then
)

// Sense is a frame of measurements in the body's own terms.
type Sense struct {
	At    time.Duration
	Seq   uint32
	Epoch uint32
	Fresh bool
	Fault uint16

	Motors [4]body.Motor // in the order of the wire (VEC-BODY-20)
	Cliffs [4]float64    // reflected light, 0 to 1; low means no floor

	BatteryVolts float64
	ChargerVolts float64 // 0 away from the charger
	Temperature  float64 // degrees Celsius
	Power        body.Power

	ProxMetres float64       // distance ahead as the sensor says it: beyond its range is nothing there, below it is no measurement (VEC-BODY-26)
	ProxAt     time.Duration // when that distance was measured; 0: never
	// The light reflected from there, and the ambient light, in 1e6 counts a second (VEC-IO-24); both 0: the body does not report them.
	ProxSignal, ProxAmbient float64
	Touch                   float64       // 0 to 1 of the sensor's scale; the last good reading (VEC-BODY-27)
	TouchAt                 time.Duration // when Touch was measured; 0: never
	Button                  bool

	Inertial body.Inertial
}

// Act is a frame of commands in the body's own terms.
type Act struct {
	Motors [4]float64 // duty, -1 to 1
	Lights [4]Light
	Off    PowerParts // without power
}

// The channels and drives of a Vector, by number.
const (
	chMotor       = 0 // position, speed and unseen of each motor
	chCliff       = chMotor + 3*4
	chBattery     = chCliff + 4
	chCharger     = chBattery + 1
	chTemperature = chBattery + 2
	chPower       = chBattery + 3
	chProx        = chBattery + 4
	chSignal      = chBattery + 5
	chAmbient     = chBattery + 6
	chTouch       = chBattery + 7
	chButton      = chBattery + 8
	chAccel       = chBattery + 9
	chGyro        = chAccel + 3

	drMotor   = 0
	drLight   = drMotor + 4 // red, green and blue of each light
	drCharger = drLight + 3*4
	drSensors = drCharger + 1
)

// description holds the fixed facts of a Vector.
var description = func() body.Description {
	d := body.Description{Species: "vic", Model: "Vector", Timing: body.Timing{Rhythm: Period, Stale: Stale, Silent: time.Second}}
	for _, m := range motorNames {
		d.Channels = append(d.Channels, body.Channel{Name: m + ".position", Unit: "rad"}, body.Channel{Name: m + ".speed", Unit: "rad/s"},
			body.Channel{Name: m + ".unseen"})
		d.Drives = append(d.Drives, body.Drive{Device: m, Takes: body.Duty})
	}
	for _, c := range cliffNames {
		d.Channels = append(d.Channels, body.Channel{Name: c + ".val"})
	}
	d.Channels = append(d.Channels,
		body.Channel{Name: "battery.voltage", Unit: "V"}, body.Channel{Name: "charger.voltage", Unit: "V"},
		body.Channel{Name: "temperature.temperature", Unit: "Celsius"}, body.Channel{Name: "battery.facts"},
		body.Channel{Name: "laser.distance", Unit: "m"}, body.Channel{Name: "laser.signal", Unit: "1e6/s"},
		body.Channel{Name: "laser.ambient", Unit: "1e6/s"},
		body.Channel{Name: "touch.pressure"}, body.Channel{Name: "button.pressure"})
	for _, sensor := range []struct{ name, unit string }{{"accel", "m/s2"}, {"gyro", "rad/s"}} {
		for _, axis := range []string{"X", "Y", "Z"} {
			d.Channels = append(d.Channels, body.Channel{Name: sensor.name + axis, Unit: sensor.unit})
		}
	}
	for _, l := range lightNames {
		for _, c := range []string{".r", ".g", ".b"} {
			d.Drives = append(d.Drives, body.Drive{Device: l + c, Takes: body.Level})
		}
	}
	d.Drives = append(d.Drives, body.Drive{Device: "charger", Takes: body.Level}, body.Drive{Device: "sensors", Takes: body.Level})
	return d
}()

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Pack writes s as the frame that the loop carries.
func (s *Sense) Pack(out *body.Sense) {
	out.At, out.Seq, out.Epoch, out.Fresh, out.Fault = s.At, s.Seq, s.Epoch, s.Fresh, s.Fault
	at := s.At
	for i, m := range s.Motors {
		out.Set(chMotor+3*i, m.Position, at)
		out.Set(chMotor+3*i+1, m.Speed, at)
		out.Set(chMotor+3*i+2, number(m.Unseen), at)
	}
	for i, v := range s.Cliffs {
		out.Set(chCliff+i, v, at)
	}
	out.Set(chBattery, s.BatteryVolts, at)
	out.Set(chCharger, s.ChargerVolts, at)
	out.Set(chTemperature, s.Temperature, at)
	out.Set(chPower, float64(s.Power), at)
	out.Set(chProx, s.ProxMetres, s.ProxAt)
	out.Set(chSignal, s.ProxSignal, s.ProxAt)
	out.Set(chAmbient, s.ProxAmbient, s.ProxAt)
	out.Set(chTouch, s.Touch, s.TouchAt)
	out.Set(chButton, number(s.Button), at)
	for i := range s.Inertial.Accel {
		out.Set(chAccel+i, s.Inertial.Accel[i], s.Inertial.At)
		out.Set(chGyro+i, s.Inertial.Gyro[i], s.Inertial.At)
	}
}

// Unpack reads a frame that Pack wrote.
func (s *Sense) Unpack(in *body.Sense) {
	s.At, s.Seq, s.Epoch, s.Fresh, s.Fault = in.At, in.Seq, in.Epoch, in.Fresh, in.Fault
	v := &in.Values
	for i := range s.Motors {
		s.Motors[i] = body.Motor{Position: v[chMotor+3*i], Speed: v[chMotor+3*i+1], Unseen: v[chMotor+3*i+2] != 0}
	}
	copy(s.Cliffs[:], v[chCliff:])
	s.BatteryVolts, s.ChargerVolts, s.Temperature = v[chBattery], v[chCharger], v[chTemperature]
	s.Power = 0
	if p := v[chPower]; p >= 0 && p <= math.MaxUint16 { // a recording may hold anything
		s.Power = body.Power(p)
	}
	s.ProxMetres, s.ProxSignal, s.ProxAmbient, s.ProxAt = v[chProx], v[chSignal], v[chAmbient], in.Times[chProx]
	s.Touch, s.TouchAt, s.Button = v[chTouch], in.Times[chTouch], v[chButton] != 0
	copy(s.Inertial.Accel[:], v[chAccel:])
	copy(s.Inertial.Gyro[:], v[chGyro:])
	s.Inertial.At = in.Times[chAccel]
}

// Pack writes a as the frame that the loop carries.
func (a *Act) Pack(out *body.Act) {
	for i, v := range a.Motors {
		out.Set(drMotor+i, body.Duty, v)
	}
	for i, l := range a.Lights {
		for c, v := range [...]uint8{l.R, l.G, l.B} {
			out.Set(drLight+3*i+c, body.Level, float64(v)/math.MaxUint8)
		}
	}
	out.Set(drCharger, body.Level, number(a.Off&ChargerPart == 0))
	out.Set(drSensors, body.Level, number(a.Off&SensorsPart == 0))
}

// Unpack reads a frame of Pack or of any other writer: a drive without its goal is at rest, a part without one has power.
func (a *Act) Unpack(in *body.Act) {
	*a = Act{}
	for i := range a.Motors {
		if in.Goals[drMotor+i] == body.Duty {
			a.Motors[i] = in.Values[drMotor+i]
		}
	}
	for i := range a.Lights {
		for c, channel := range [...]*uint8{&a.Lights[i].R, &a.Lights[i].G, &a.Lights[i].B} {
			if d := drLight + 3*i + c; in.Goals[d] == body.Level {
				*channel = level(in.Values[d])
			}
		}
	}
	if in.Goals[drCharger] == body.Level && in.Values[drCharger] == 0 {
		a.Off |= ChargerPart
	}
	if in.Goals[drSensors] == body.Level && in.Values[drSensors] == 0 {
		a.Off |= SensorsPart
	}
}

// level converts a brightness of 0 to 1; NaN is dark.
func level(v float64) uint8 {
	if math.IsNaN(v) {
		return 0
	}
	return uint8(math.Round(min(max(v, 0), 1) * math.MaxUint8))
}
