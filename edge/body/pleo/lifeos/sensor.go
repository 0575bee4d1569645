package lifeos

import (
	"slices"
	"time"

	"kennel/edge/pawn"
)

// Sensor is the id of a sensor: 2 to 40 are read from hardware, 101 to 128 derived from the others (PLEO-SEN-G02).
type Sensor int32

// The sensors that services name.
const (
	SensorBattery        Sensor = 2
	SensorIR             Sensor = 3
	SensorHead           Sensor = 6
	SensorChin           Sensor = 7
	SensorBack           Sensor = 8
	SensorTail           Sensor = 13
	SensorFrontLeft      Sensor = 14
	SensorBackRight      Sensor = 17
	SensorCardDetect     Sensor = 18
	SensorObject         Sensor = 23
	SensorSoundDirection Sensor = 26
	SensorLight          Sensor = 21
	SensorLightChange    Sensor = 27
	SensorSoundLoud      Sensor = 28
	SensorTerminal       Sensor = 30
	SensorWakeup         Sensor = 33
	SensorBatteryTemp    Sensor = 34
	SensorShake          Sensor = 36
	SensorSoundChange    Sensor = 37
	SensorBeacon         Sensor = 38
	SensorPacket         Sensor = 40

	SensorEdgeInFront   Sensor = 101
	SensorObjectInFront Sensor = 104
	SensorTap           Sensor = 107
	SensorHold          Sensor = 108
	SensorRelease       Sensor = 109
	SensorPetted        Sensor = 110
	SensorAbuse         Sensor = 111
	SensorPickedUp      Sensor = 112
	SensorTrackable     Sensor = 113
	SensorEdge          Sensor = 119
	SensorTouchBundle   Sensor = 120
	SensorSequence      Sensor = 121
	SensorJointStuck    Sensor = 122
	SensorJointUnstuck  Sensor = 123
	SensorTimer         Sensor = 124
	SensorMsgReceived   Sensor = 125
	SensorMsgGone       Sensor = 126
	SensorPlog          Sensor = 128
)

// rule says when a reading is a trigger.
type rule uint8

const (
	byHand     rule = iota // never by its reading: the service triggers it
	onChange               // at each change
	onQuarter              // in another quarter of 0 to 100
	onCrossing             // when it crosses one of two levels
	onLeaving              // when it leaves the range from -level to level
	onSwing                // from below the lower level to above the upper one, or back
)

// SensorKind describes a sensor: its id, its range and when it triggers (PLEO-SEN-G01).
type SensorKind struct {
	ID       Sensor
	Name     string // without "SENSOR_", in capitals
	Min, Max int32
	rule     rule
	levels   [2]int32
	derived  bool
	silent   bool // never calls on_sensor: a bundle
}

// sensorKinds are all sensors of the programming guide, and those that only its include files have (PLEO-SEN-G03, PLEO-SEN-G14).
var sensorKinds = []SensorKind{
	{ID: SensorBattery, Name: "BATTERY", Max: 100, rule: onQuarter}, // part of PLEO-SEN-02
	{ID: SensorIR, Name: "IR", Max: 64},                             // PLEO-SEN-03
	{ID: 4, Name: "IR_ACTIVITY", Max: 1},
	{ID: SensorHead, Name: "HEAD", Max: 1, rule: onChange}, // PLEO-SEN-06 to PLEO-SEN-13
	{ID: SensorChin, Name: "CHIN", Max: 1, rule: onChange},
	{ID: SensorBack, Name: "BACK", Max: 1, rule: onChange},
	{ID: 9, Name: "LEFT_LEG", Max: 1, rule: onChange},
	{ID: 10, Name: "RIGHT_LEG", Max: 1, rule: onChange},
	{ID: 11, Name: "LEFT_ARM", Max: 1, rule: onChange},
	{ID: 12, Name: "RIGHT_ARM", Max: 1, rule: onChange},
	{ID: SensorTail, Name: "TAIL", Max: 1, rule: onChange},
	{ID: SensorFrontLeft, Name: "FRONT_LEFT", Max: 1, rule: onChange}, // PLEO-SEN-14 to PLEO-SEN-17
	{ID: 15, Name: "FRONT_RIGHT", Max: 1, rule: onChange},
	{ID: 16, Name: "BACK_LEFT", Max: 1, rule: onChange},
	{ID: SensorBackRight, Name: "BACK_RIGHT", Max: 1, rule: onChange},
	{ID: SensorCardDetect, Name: "CARD_DETECT", Max: 1, rule: onChange}, // PLEO-SEN-18
	{ID: 19, Name: "WRITE_PROTECT", Max: 1, rule: onChange},             // PLEO-SEN-19
	{ID: 20, Name: "LEFT_LOUD", Max: 100},
	{ID: SensorLight, Name: "LIGHT", Max: 255, rule: onCrossing, levels: [2]int32{30, 150}}, // PLEO-SEN-21
	{ID: 22, Name: "RIGHT_LOUD", Max: 100},
	{ID: SensorObject, Name: "OBJECT", Max: 100, rule: onCrossing, levels: [2]int32{10, 40}},                                     // PLEO-SEN-23
	{ID: 24, Name: "MOUTH", Max: 1, rule: onChange},                                                                              // PLEO-SEN-24
	{ID: SensorSoundDirection, Name: "SOUND_DIR", Min: -128, Max: 90, rule: onChange},                                            // PLEO-SEN-26
	{ID: SensorLightChange, Name: "LIGHT_CHANGE", Min: -127, Max: 127, rule: onLeaving, levels: [2]int32{30, 30}, derived: true}, // PLEO-SEN-27
	{ID: SensorSoundLoud, Name: "SOUND_LOUD", Max: 100, rule: onSwing, levels: [2]int32{30, 40}},                                 // PLEO-SEN-28
	{ID: 29, Name: "TILT", Max: 6, rule: onChange},                                                                               // PLEO-SEN-29
	{ID: SensorTerminal, Name: "TERMINAL", Max: 64},                                                                              // PLEO-SEN-30
	{ID: 31, Name: "POWER_DETECT", Max: 1, rule: onChange},
	{ID: 32, Name: "USB_DETECT", Max: 1, rule: onChange},                                                // PLEO-SEN-32
	{ID: SensorWakeup, Name: "WAKEUP", Max: 1, rule: onChange},                                          // PLEO-SEN-33
	{ID: SensorBatteryTemp, Name: "BATTERY_TEMP", Max: 100, rule: onCrossing, levels: [2]int32{51, 55}}, // PLEO-SEN-34
	{ID: 35, Name: "CHARGER_STATE", Max: 255, rule: onChange},
	{ID: SensorShake, Name: "SHAKE", Max: 255, rule: onSwing, levels: [2]int32{75, 150}},                                              // PLEO-SEN-36
	{ID: SensorSoundChange, Name: "SOUND_LOUD_CHANGE", Min: -127, Max: 127, rule: onLeaving, levels: [2]int32{30, 30}, derived: true}, // PLEO-SEN-37
	{ID: SensorBeacon, Name: "BEACON", Max: 255},                                                                                      // PLEO-SEN-38
	{ID: 39, Name: "BATTERY_CURRENT", Max: 5000},                                                                                      // PLEO-SEN-39
	{ID: SensorPacket, Name: "PACKET", Max: 400},                                                                                      // PLEO-SEN-40
	{ID: SensorEdgeInFront, Name: "EDGE_IN_FRONT", Max: 1, rule: onChange, derived: true},                                             // PLEO-SEN-101 to PLEO-SEN-106
	{ID: 102, Name: "EDGE_ON_LEFT", Max: 1, rule: onChange, derived: true},
	{ID: 103, Name: "EDGE_ON_RIGHT", Max: 1, rule: onChange, derived: true},
	{ID: SensorObjectInFront, Name: "OBJECT_IN_FRONT", Max: 1, rule: onChange, derived: true},
	{ID: 105, Name: "OBJECT_ON_LEFT", Max: 1, rule: onChange, derived: true},
	{ID: 106, Name: "OBJECT_ON_RIGHT", Max: 1, rule: onChange, derived: true},
	{ID: SensorTap, Name: "TOUCH_TAP", Max: 13, derived: true},                     // PLEO-SEN-107
	{ID: SensorHold, Name: "TOUCH_HOLD", Max: 13, derived: true},                   // PLEO-SEN-108
	{ID: SensorRelease, Name: "TOUCH_RELEASE", Max: 13, derived: true},             // PLEO-SEN-109
	{ID: SensorPetted, Name: "TOUCH_PETTED", Max: 7, derived: true},                // PLEO-SEN-110
	{ID: SensorAbuse, Name: "ABUSE", Max: 1, rule: onChange, derived: true},        // PLEO-SEN-111
	{ID: SensorPickedUp, Name: "PICKED_UP", Max: 1, rule: onChange, derived: true}, // PLEO-SEN-112
	{ID: SensorTrackable, Name: "TRACKABLE_OBJECT", Max: 9, derived: true},         // part of PLEO-SEN-113
	{ID: 114, Name: "FACE_DETECTION", Max: 1, derived: true},
	{ID: 115, Name: "ROCKING", Max: 1, derived: true},
	{ID: 117, Name: "LIGHT_BRIGHT_CHANGE", Max: 255, derived: true},
	{ID: 118, Name: "ANTICIPATED_CUE", Max: 1, derived: true},
	{ID: SensorEdge, Name: "EDGE", derived: true, silent: true},                  // PLEO-SEN-119
	{ID: SensorTouchBundle, Name: "TOUCH_TAP_HOLD", derived: true, silent: true}, // PLEO-SEN-120
	{ID: SensorSequence, Name: "SEQUENCE", Max: 1<<31 - 1, derived: true},
	{ID: SensorJointStuck, Name: "JOINT_STUCK", Max: 13, derived: true},
	{ID: SensorJointUnstuck, Name: "JOINT_UNSTUCK", Max: 13, derived: true},
	{ID: SensorTimer, Name: "TIMER", Max: 65535, derived: true},            // PLEO-SEN-124
	{ID: SensorMsgReceived, Name: "MSG_RECEIVED", Max: 255, derived: true}, // PLEO-SEN-125
	{ID: SensorMsgGone, Name: "MSG_GONE", Max: 255, derived: true},         // PLEO-SEN-126
	{ID: 127, Name: "MILESTONE", Max: 255, derived: true},
	{ID: SensorPlog, Name: "PLOG", derived: true, silent: true}, // PLEO-SEN-128
}

// SensorKinds returns the description of every sensor, sorted by id.
func SensorKinds() []SensorKind { return slices.Clone(sensorKinds) }

// maxSensor is above every id of a sensor.
const maxSensor = 130

// sensorState is a sensor with its latest trigger.
type sensorState struct {
	*SensorKind
	value    int32
	began    bool // value was read
	enabled  bool
	muted    bool // on_sensor is not called for it (sensor_call_script)
	levels   [2]int32
	swing    int8 // -1 after the lower level, 1 after the upper one
	pending  bool
	calling  bool
	newer    bool          // triggered again while on_sensor had it
	due      time.Duration // not delivered before
	at, last time.Duration // of the latest trigger and the one before
	pendingV int32
	count    int32
	data     []byte
	filter   int32 // of SENSOR_PACKET
}

type sensors struct {
	all     [maxSensor]*sensorState
	order   []Sensor // triggers that wait, in the order of delivery
	timer   time.Duration
	timerAt time.Duration
	derived derived
	plog    plog
}

func (s *System) initSensors() {
	for i := range sensorKinds {
		k := &sensorKinds[i]
		s.sensors.all[k.ID] = &sensorState{SensorKind: k, enabled: k.ID != SensorPlog, levels: k.levels}
	}
	s.sensors.derived.init()
}

// sensor returns a sensor; nil for an unknown id.
func (s *System) sensor(id Sensor) *sensorState {
	if id < 0 || id >= maxSensor {
		return nil
	}
	return s.sensors.all[id]
}

// Sensor returns the reading of a sensor, and whether there is one of that id.
func (s *System) Sensor(id Sensor) (int32, bool) {
	if st := s.sensor(id); st != nil {
		return st.value, true
	}
	return 0, false
}

// readSensors reads the hardware and derives what follows from it.
func (s *System) readSensors() {
	for _, st := range s.sensors.all {
		if st != nil && !st.derived && st.ID != SensorIR && st.ID != SensorTerminal && st.ID != SensorPacket && st.ID != SensorBeacon && !s.asleep(st.ID) {
			s.reading(st, s.hw.Read(st.ID))
		}
	}
	s.derive()
	s.stepHead()
	s.nextPacket()
}

// reading takes a new value of a sensor, and triggers where its rule says so (PLEO-SEN-G13).
func (s *System) reading(st *sensorState, v int32) {
	v = min(max(v, st.Min), st.Max)
	old := st.value
	st.value = v
	first := !st.began
	st.began = true
	if first && st.rule != onSwing { // a reading is compared with the one before
		return
	}
	if st.changed(old, v) {
		s.trigger(st, v)
	}
}

// changed reports whether a reading is a trigger (PLEO-VM-08).
func (st *sensorState) changed(old, v int32) bool {
	crossed := func(level int32) bool { return old < level != (v < level) }
	low, high := st.levels[0], st.levels[1]
	switch st.rule {
	case onChange:
		return old != v
	case onQuarter:
		return old/25 != v/25
	case onCrossing:
		return crossed(low) || crossed(high)
	case onLeaving:
		return v > high && old <= high || v < -low && old >= -low
	case onSwing:
		was := st.swing
		switch {
		case v > high:
			st.swing = 1
		case v < low:
			st.swing = -1
		}
		return was != 0 && was != st.swing
	}
	return false
}

// trigger notes that a sensor has something to tell. The latest value wins until on_sensor has taken it (PLEO-VM-20).
func (s *System) trigger(st *sensorState, v int32) {
	if !st.enabled || st.silent {
		return
	}
	st.value = v
	st.last, st.at = st.at, s.now
	st.count++
	st.pendingV = v
	s.log(Debug, LogSensor, "%s %d", st.Name, v)
	s.plog(st, v)
	if st.calling {
		st.newer = true
		return
	}
	if !st.pending {
		st.pending, st.due = true, s.now
		s.sensors.order = append(s.sensors.order, st.ID)
	}
}

// resetTrigger forgets the trigger of a sensor.
func (s *System) resetTrigger(st *sensorState) {
	st.pending, st.newer = false, false
	if i := slices.Index(s.sensors.order, st.ID); i >= 0 {
		s.sensors.order = slices.Delete(s.sensors.order, i, i+1)
	}
}

// deliver calls on_sensor for the trigger that waits longest (PLEO-VM-06). True resets the trigger; otherwise it is delivered again, after the others
// (PLEO-VM-07).
func (s *System) deliver(m *machine) {
	if _, ok := m.amx.Public("on_sensor"); !ok {
		return
	}
	for i, id := range s.sensors.order {
		st := s.sensors.all[id]
		if st.muted || s.now < st.due {
			continue
		}
		s.sensors.order = slices.Delete(s.sensors.order, i, i+1)
		st.calling, st.newer = true, false
		done := func(value int32, code pawn.Code) {
			st.calling = false
			if !st.pending || (value != 0 || code != pawn.OK) && !st.newer {
				s.resetTrigger(st)
				return
			}
			st.due = s.now + sensorTick
			if st.newer {
				st.due = s.now
			}
			st.newer = false
			s.sensors.order = append(s.sensors.order, id)
		}
		if !s.begin(m, "on_sensor", done, int32(st.at/time.Millisecond), int32(id), st.pendingV) {
			st.calling = false
			s.resetTrigger(st)
		}
		return
	}
}

// abandonTriggers makes the triggers deliverable again that a closing script had in hand.
func (s *System) abandonTriggers() {
	for _, st := range s.sensors.all {
		if st != nil && st.calling {
			st.calling = false
			s.resetTrigger(st)
		}
	}
}

// enable switches the triggers of a sensor; those of a bundle for all of its sensors (PLEO-SEN-G11).
func (s *System) enable(st *sensorState, on bool) {
	st.enabled = on
	switch st.ID {
	case SensorEdge:
		for id := SensorEdgeInFront; id < SensorObjectInFront; id++ {
			s.sensors.all[id].enabled = on
		}
	case SensorTouchBundle:
		for id := SensorTap; id <= SensorPetted; id++ {
			s.sensors.all[id].enabled = on
		}
	}
}

// setTimer sets the interval of SENSOR_TIMER in milliseconds and returns the former one; 0 switches it off (PLEO-SEN-G08).
func (s *System) setTimer(ms int32) int32 {
	old := int32(s.sensors.timer / time.Millisecond)
	s.sensors.timer = time.Duration(min(max(ms, 0), 65535)) * time.Millisecond
	s.sensors.timerAt = s.now
	return old
}

// checkPower protects the battery: the power goes off below 11 percent, or at 58 degrees Celsius (part of PLEO-SEN-02, PLEO-SEN-34).
func (s *System) checkPower() {
	switch {
	case s.sensors.all[SensorBattery].value < 11:
		s.shutdown("battery empty")
	case s.sensors.all[SensorBatteryTemp].value >= 58:
		s.shutdown("battery too hot")
	}
}

// tired reports whether the battery forbids motions (PLEO-MOT-14).
func (s *System) tired() bool {
	return s.sensors.all[SensorBattery].value < 23 && s.sensors.all[SensorBattery].began
}
