package vectordriver

import (
	"math/bits"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/vector/spine"
)

// converter turns the frames of one body into measurements. It remembers what is not in a single frame: the last good touch and distance,
// and the positions of the motors.
type converter struct {
	cal   Calibration
	sense Sense
	begun bool // sense holds a frame of this epoch
	prev  [4]int32
	prox  uint16 // sample count of the last distance seen

	proxRefused, touchRefused uint64
}

// restart begins a new epoch: the body counts frames and encoders from the start again.
func (c *converter) restart() {
	c.begun = false
	c.sense.Epoch++
}

// take converts m, which was read at the given time, into c.sense.
func (c *converter) take(m *spine.BodyData, at time.Duration) {
	s := &c.sense
	if c.begun && int32(m.Seq-s.Seq) < 0 {
		c.restart()
	}
	// How many frames the body made since the last one seen; at least this one, should the field count something else after all.
	frames := max(1, m.Seq-s.Seq)
	overtaken, slept := s.Fresh, s.Power.Has(body.EncodersOff) // the frame before
	s.At, s.Seq, s.Fresh = at, m.Seq, true
	s.Power = power(m)
	s.Fault = uint16(selfTestFault(m.FaultDevice, m.FaultItem))

	for i := range m.Motors {
		position := m.Motors[i].Position
		s.Motors[i].Position = float64(position) / c.cal.CountsPerRad[i]
		s.Motors[i].Speed = 0
		if c.begun {
			// From positions, not from the frame's delta: frames may be missing between the two.
			moved := float64(position-c.prev[i]) / c.cal.CountsPerRad[i]
			s.Motors[i].Speed = moved / (float64(frames) * Period.Seconds())
		}
		c.prev[i] = position
	}
	// The board reports in a single frame that a part moved while its encoder slept. A missing frame may be that one. A frame that Read has not
	// delivered passes its flag on to the next.
	encodersOff := s.Power.Has(body.EncodersOff)
	missed := c.begun && frames > 1 && (slept || encodersOff)
	unseen := func(motor int, moved spine.Status) {
		p := &s.Motors[motor]
		p.Unseen = overtaken && p.Unseen || missed || encodersOff && m.Status&moved != 0
	}
	unseen(spine.Head, spine.HeadMoved)
	unseen(spine.Lift, spine.LiftMoved)

	s.BatteryVolts = float64(m.BatteryRaw) * c.cal.VoltsPerCount
	s.ChargerVolts = max(0, float64(m.ChargerRaw)*c.cal.VoltsPerCount)
	s.Temperature = float64(m.Temperature)
	s.Button = m.Button != 0
	if m.Touch < c.cal.TouchMin || m.Touch > c.cal.TouchMax {
		c.touchRefused++
	} else {
		s.Touch, s.TouchAt = min(1, float64(m.Touch)/c.cal.TouchFullScale), at
	}
	if m.Status&spine.SensorsPowered != 0 {
		for i, raw := range m.Cliffs {
			s.Cliffs[i] = min(1, float64(raw)/c.cal.CliffFullScale)
		}
		c.takeProx(m, at)
	}
	c.begun = true
}

// takeProx keeps the distance if it is a new sample, and counts distances outside the sensor's range (VEC-BODY-26): the senses decide
// whether they mean free sight or nonsense (VEC-IO-24). The sample in the first frame has an unknown age, so the first frame's counter only
// starts the comparison.
func (c *converter) takeProx(m *spine.BodyData, at time.Duration) {
	millimetres, samples, signal, ambient := m.ProxRange, m.ProxSamples, m.ProxSignal, m.ProxAmbient
	if c.cal.ProxSwap {
		millimetres, samples = bits.ReverseBytes16(millimetres), bits.ReverseBytes16(samples)
		signal, ambient = bits.ReverseBytes16(signal), bits.ReverseBytes16(ambient)
	}
	isNew := c.begun && samples != c.prox
	c.prox = samples
	if !isNew {
		return
	}
	metres := float64(millimetres) / 1000
	if metres < c.cal.ProxMin || metres > c.cal.ProxMax {
		c.proxRefused++
	}
	c.sense.ProxMetres, c.sense.ProxAt = metres, at
	c.sense.ProxSignal, c.sense.ProxAmbient = float64(signal)*c.cal.ProxRate, float64(ambient)*c.cal.ProxRate
}

// powerBits pairs the battery word of a frame with body.Power (VEC-BODY-23).
var powerBits = [...]struct {
	raw spine.Power
	bit body.Power
}{
	{spine.PadsPowered, body.OnCharger},
	{spine.Charging, body.Charging},
	{spine.BatteryDisconnected, body.BatteryDisconnected},
	{spine.Overheated, body.Overheated},
	{spine.BelowCritical, body.BelowCritical},
	{spine.ShutdownImminent, body.ShutdownImminent},
}

func power(m *spine.BodyData) body.Power {
	var p body.Power
	for _, b := range powerBits {
		if m.Power&b.raw != 0 {
			p |= b.bit
		}
	}
	if m.Status&spine.EncodersOff != 0 {
		p |= body.EncodersOff
	}
	if m.Status&spine.SensorsPowered == 0 {
		p |= body.SensorsOff
	}
	return p
}

// fill writes the commands of a into m.
func (c *converter) fill(m *spine.HeadData, a *Act) {
	m.Control = c.cal.Control
	if a.Off&ChargerPart != 0 {
		m.Control |= c.cal.ChargerOff
	}
	if a.Off&SensorsPart != 0 {
		m.Control |= c.cal.SensorsOff
	}
	for i := range m.Motors {
		m.Motors[i] = duty(a.Motors[i], c.cal.MaxDuty[i])
	}
	for i, wire := range c.cal.LightOrder {
		l := a.Lights[i]
		m.Lights[wire] = spine.RGB{R: l.R, G: l.G, B: l.B}
	}
}
