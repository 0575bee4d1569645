package vectorsim

import (
	"math"
	"math/rand/v2"
	"time"

	"kennel/edge/body/bodysim"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/cube/cubesim"
	"kennel/edge/sim/plane"
)

// world is the body without its wire: motors, sensors and battery. A step is one period. Products are rounded before they are added, by
// float64(): a processor that fuses both would get other results from the same seed.
type world struct {
	cfg   Config
	rng   *rand.Rand
	speed [4]float64 // rad/s at full power

	duty   [4]float64 // as commanded
	angle  [4]float64 // rad, where the parts really are
	rate   [4]float64 // rad/s
	zero   [4]float64 // rad, the angle at which the encoder counts 0
	counts [4]int32
	sent   [4]int32         // counts in the last frame
	still  [4]time.Duration // since the last change of counts

	idle                 time.Duration // since the last motor command
	resting              time.Duration // since a motor last had power
	headMoved, liftMoved bool          // by hand, unseen, since the last frame

	volts      float64
	onCharger  bool
	charging   bool
	topUp      bool // charging has not reached full since the battery was low
	chargerOff bool // by the control word
	sensorsOff bool // by the control word
	degrees    float64
	imminent   time.Duration
	forced     spine.Power

	cliffs      [4]uint16
	touch       uint16
	weather     time.Duration // since it was as dry as it is damp
	button      bool
	fingers     fingers
	prox        uint16 // mm
	proxSample  uint16 // as last measured
	proxSamples uint16
	proxWait    int
	sound       *Sound
	soundAt     int
	soundOnce   bool
	heard       bodysim.Heard

	ground    *plane.World    // nil: a body that is nowhere
	cubes     []*cubesim.Cube // in the order of the ground
	flat      plane.Inertia   // what that feels
	flatSpeed float64         // m/s ahead
}

func newWorld(cfg Config) *world {
	w := &world{
		cfg:       cfg,
		rng:       rand.New(rand.NewPCG(cfg.Seed, 0x766563746f72)),
		speed:     maxSpeed(&cfg.Calibration),
		volts:     cfg.Volts,
		onCharger: cfg.OnCharger,
		topUp:     true,
		degrees:   cfg.Ambient,
		cliffs:    [4]uint16{floorCounts, floorCounts, floorCounts, floorCounts},
		touch:     touchCounts,
		prox:      defaultProxRange,
	}
	w.flat.Accel[2] = plane.Gravity
	w.reset()
	if cfg.World != nil {
		w.enter(cfg.World)
	}
	return w
}

// reset forgets what the board forgets without power: it counts from where the parts are now.
func (w *world) reset() {
	w.duty, w.rate = [4]float64{}, [4]float64{}
	w.zero, w.counts, w.sent, w.still = w.angle, [4]int32{}, [4]int32{}, [4]time.Duration{}
	w.idle, w.imminent = 0, 0
	w.headMoved, w.liftMoved = false, false
	w.chargerOff, w.sensorsOff = false, false
	w.proxSamples, w.proxWait = 0, 0
}

// step lets one period pass. It reports whether the battery holds.
func (w *world) step() bool {
	const dt = vectordriver.Period
	w.weather = (w.weather + dt) % touchWeather
	w.fingers.step(dt)
	w.move(dt)
	w.power(dt)
	every := proxEvery
	if w.encodersOff() {
		every = proxIdle
	}
	if w.proxWait++; w.proxWait >= every && !w.sensorsOff {
		w.proxWait = 0
		w.proxSamples++
		w.proxSample = w.jitter(w.ahead(), 2)
	}
	return w.imminent < imminentFor
}

// rest lets one period pass without power: only the charger works, which needs no board (VEC-HW-04).
func (w *world) rest() {
	const dt = vectordriver.Period
	w.fingers.step(dt)
	for i := range w.still {
		w.still[i] += dt
	}
	if w.ground != nil {
		w.ground.Step(dt, 0, 0)
		w.feelCubes(dt)
		w.feelCharger()
	} else {
		w.feelFlat(dt)
	}
	w.charge(dt.Minutes())
	w.warm(w.cfg.Ambient, dt)
}

func (w *world) move(dt time.Duration) {
	w.idle += dt
	const blend = float64(vectordriver.Period) / float64(motorLag)
	for i := range w.angle {
		if w.duty[i] != 0 {
			w.idle = 0
		}
		w.rate[i] += float64((float64(w.duty[i]*w.speed[i]) - w.rate[i]) * blend)
		if math.Abs(w.rate[i]) < 1e-3 {
			w.rate[i] = 0 // friction has the last word
		}
		if w.ground == nil || i > spine.RightTread {
			w.shift(i, float64(w.rate[i]*dt.Seconds()))
		} else if i == spine.RightTread {
			w.roll(dt)
		}
	}
	if w.ground == nil {
		w.feelFlat(dt)
	}
	for i := range w.angle {
		if counts := w.count(i); counts != w.counts[i] {
			w.counts[i], w.still[i] = counts, 0
		} else {
			w.still[i] += dt
		}
	}
}

// shift turns a part, up to its hard stop.
func (w *world) shift(motor int, rad float64) {
	a := w.angle[motor] + rad
	stops := [2]float64{math.Inf(-1), math.Inf(1)}
	switch motor {
	case spine.Lift:
		stops = liftStops
	case spine.Head:
		stops = headStops
	}
	if a < stops[0] || a > stops[1] {
		a = min(max(a, stops[0]), stops[1])
		w.rate[motor] = 0
	}
	if motor == spine.Lift && w.ground != nil && !w.ground.MoveFork(forkAt(a)) {
		w.rate[motor] = 0
		return
	}
	w.angle[motor] = a
}

func (w *world) count(motor int) int32 {
	return int32(int64(math.Floor((w.angle[motor] - w.zero[motor]) * w.cfg.Calibration.CountsPerRad[motor])))
}

func (w *world) encodersOff() bool { return w.idle >= idleAfter }

// byHand turns a part from outside. Encoders that are off notice the movement and not how far it went (VEC-BODY-24, VEC-HW-13).
func (w *world) byHand(motor int, rad float64) {
	before := w.angle[motor]
	w.shift(motor, rad)
	if w.encodersOff() && w.angle[motor] != before {
		w.zero[motor] += w.angle[motor] - before
		w.headMoved = w.headMoved || motor == spine.Head
		w.liftMoved = w.liftMoved || motor == spine.Lift
	}
}

func (w *world) power(dt time.Duration) {
	minutes := dt.Minutes()
	w.volts -= float64(max(0, w.cfg.DischargePerMinute) * (1 + float64(loadDrain*w.load())) * minutes)
	if w.load() > 0 {
		w.resting = 0
	} else {
		w.resting += dt
	}
	if w.cfg.Caretaker && w.resting >= caretakerWaits {
		if w.volts <= lowVolts {
			w.setCharger(true)
		} else if w.onCharger && !w.topUp {
			w.setCharger(false)
		}
	}
	if w.volts < resumeVolts {
		w.topUp = true
	}
	w.charge(minutes)
	target := w.cfg.Ambient + 6 + float64(10*w.load())
	if w.charging {
		target += 8
	}
	w.warm(target, dt)
	if w.volts < imminentVolts && !w.onCharger {
		w.imminent += dt
	} else {
		w.imminent = 0
	}
}

// warm lets the board follow a temperature: its processor measures its own, which is above the room's (VEC-HW-17).
func (w *world) warm(target float64, dt time.Duration) {
	w.degrees += float64((target - w.degrees) * (float64(dt) / float64(warmUp)))
}

// charge fills the battery if the body is on the charger and charging is permitted.
func (w *world) charge(minutes float64) {
	w.charging = w.onCharger && !w.chargerOff && w.topUp && w.degrees < hotDegrees
	if w.charging {
		w.volts += float64(max(0, w.cfg.ChargePerMinute) * minutes)
		if w.volts >= fullVolts {
			w.volts, w.topUp = fullVolts, false
		}
	}
	w.volts = max(w.volts, 0)
}

// load is the share of all motor power in use, 0 to 1.
func (w *world) load() float64 {
	var sum float64
	for _, d := range w.duty {
		sum += math.Abs(d)
	}
	return sum / float64(len(w.duty))
}

// obey takes over the head's commands.
func (w *world) obey(m *spine.HeadData) {
	for i, v := range m.Motors {
		w.duty[i] = max(-1, float64(v)/math.MaxInt16)
		if v != 0 {
			w.idle = 0 // encoders are on before the motor is (VEC-PWR-22)
		}
	}
	w.chargerOff = m.Control&vectordriver.SimChargerOff != 0
	w.sensorsOff = m.Control&vectordriver.SimSensorsOff != 0
}

// report writes the board's measurements of a time into m, and clears values that are reported only once.
func (w *world) report(m *spine.BodyData, now time.Duration) {
	m.Status = 0
	if !w.sensorsOff {
		m.Status |= spine.SensorsPowered
	}
	if w.encodersOff() {
		m.Status |= spine.EncodersOff
	}
	if w.headMoved || w.counts[spine.Head] != w.sent[spine.Head] {
		m.Status |= spine.HeadMoved
	}
	if w.liftMoved || w.counts[spine.Lift] != w.sent[spine.Lift] {
		m.Status |= spine.LiftMoved
	}
	w.headMoved, w.liftMoved = false, false
	m.FaultDevice, m.FaultItem = w.cfg.FaultDevice, w.cfg.FaultItem
	for i := range m.Motors {
		m.Motors[i] = spine.MotorStatus{
			Position: w.counts[i],
			Delta:    w.counts[i] - w.sent[i],
			Ticks:    uint32(w.still[i] / tickUnit),
		}
		w.sent[i] = w.counts[i]
	}
	perVolt := 1 / w.cfg.Calibration.VoltsPerCount
	m.BatteryRaw = int16(math.Round((w.volts-float64(sagVolts*w.load()))*perVolt)) + int16(w.rng.IntN(5)-2)
	m.ChargerRaw = 0
	if w.onCharger {
		m.ChargerRaw = int16(math.Round(padVolts*perVolt)) + int16(w.rng.IntN(5)-2)
	}
	m.Temperature = int16(math.Round(w.degrees))
	m.Power = w.powerFlags()
	for i := range m.Cliffs {
		m.Cliffs[i] = w.jitter(w.below(i), 5)
	}
	m.Touch = w.touch
	if m.Touch > 0 && m.Touch < touchSaturated { // a saturated converter is steady
		m.Touch = w.jitter(uint16(min(max(int(m.Touch)+w.touchShift(), 1), touchSaturated-1)), 3)
	}
	m.Button = 0
	if w.button || w.fingers.button > 0 {
		m.Button = 1
	}
	m.ProxRange, m.ProxSamples = w.proxSample, w.proxSamples
	m.ProxSigma, m.ProxSignal, m.ProxAmbient, m.ProxSPADs = 0x20, 0x0400, 0x0010, 0x0b00
	w.listen(m, now)
}

// touchShift returns the change on the touch wire: a finger, the charger's contacts, a hand that holds, the weather (VEC-HW-16).
func (w *world) touchShift() int {
	shift := 0
	if w.fingers.back > 0 {
		shift += touchFinger
	}
	if w.onCharger {
		shift += touchOnCharger
	}
	if w.ground != nil && w.ground.Posture() == plane.InHand {
		shift += touchInHand
	}
	const quarter = int(touchWeather / vectordriver.Period / 4)
	at := int(w.weather / vectordriver.Period)
	switch {
	case at <= quarter:
	case at <= 3*quarter:
		at = 2*quarter - at
	default:
		at -= 4 * quarter
	}
	return shift + touchHumid*at/quarter
}

func (w *world) powerFlags() spine.Power {
	flags := w.forced
	set := func(on bool, flag spine.Power) {
		if on {
			flags |= flag
		}
	}
	set(w.onCharger, spine.PadsPowered)
	set(w.charging, spine.Charging)
	set(w.degrees >= hotDegrees, spine.Overheated)
	set(w.volts < criticalVolts, spine.BelowCritical)
	set(w.imminent > 0, spine.ShutdownImminent)
	return flags
}

// jitter returns v give or take up to n, within the range of v's type; 0 and 65535 are sensors that see nothing and stay.
func (w *world) jitter(v uint16, n int) uint16 {
	if v == 0 || v == math.MaxUint16 {
		return v
	}
	return uint16(min(max(int(v)+w.rng.IntN(2*n+1)-n, 1), math.MaxUint16-1))
}
