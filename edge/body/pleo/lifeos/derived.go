package lifeos

import (
	"math"
	"time"
)

// The times and angles of derived sensors, where the guide gives none.
const (
	tapLimit      = 500 * time.Millisecond // a shorter touch is a tap, a longer one a hold (PLEO-SEN-107, PLEO-SEN-108)
	petGap        = time.Second            // between two pads of a stroke (PLEO-SEN-110)
	petStop       = 2 * time.Second
	abuseAngle    = 10.0 // degrees (PLEO-SEN-111)
	abuseEnd      = 3 * time.Second
	liftTime      = 500 * time.Millisecond // PLEO-SEN-112
	neckSide      = 20.0                   // degrees (PLEO-SEN-102)
	lightTime     = 2 * time.Second        // PLEO-SEN-27
	loudShort     = 250 * time.Millisecond // PLEO-SEN-37
	loudLong      = 10 * time.Second
	touchFirst    = SensorHead
	touchLast     = SensorTail
	touchPads     = int(touchLast-touchFirst) + 1
	pettedStopped = 1
)

// strokes are the sequences of pads and the manner of petting that they are; the longest that fits wins.
var strokes = []struct {
	pads   []Sensor
	petted int32
}{
	{[]Sensor{SensorHead, SensorBack, SensorTail}, 6},
	{[]Sensor{SensorTail, SensorBack, SensorHead}, 7},
	{[]Sensor{SensorBack, SensorTail}, 2},
	{[]Sensor{SensorTail, SensorBack}, 3},
	{[]Sensor{SensorHead, SensorBack}, 4},
	{[]Sensor{SensorBack, SensorHead}, 5},
}

// edgeLimits are the angles of the neck and the readings by which edges and objects are told (PLEO-SEN-G09).
type edgeLimits struct {
	objectNeck, edgeNeck                   int32 // degrees
	objectLow, objectHigh, edgeLow, edgeHi int32
	objectLinger, edgeLinger               int32 // ms
}

type derived struct {
	limits     edgeLimits
	touched    [touchPads]time.Duration // since when; -1: it is not
	held       [touchPads]bool
	was        [touchPads]bool
	pads       []Sensor // of the stroke
	padAt      time.Duration
	petting    bool
	abused     time.Duration // latest
	lifted     time.Duration // since when the feet say something else
	neckAt     time.Duration // since when the neck looks where it does
	neckZone   int
	light      float64
	lightBegan bool
	loudS      float64
	loudL      float64
	stuck      [JointCount]bool
	friends    map[int32]time.Duration // Pleos and when they were heard
}

func (d *derived) init() {
	d.limits = edgeLimits{0, -40, 20, 40, 20, 40, 500, 500}
	for i := range d.touched {
		d.touched[i] = -1
	}
	d.abused = -1
	d.lifted = -1
	d.friends = map[int32]time.Duration{}
}

// derive computes the derived sensors from readings (PLEO-SEN-G02).
func (s *System) derive() {
	s.deriveTouch()
	s.derivePetted()
	s.deriveAbuse()
	s.derivePickedUp()
	s.deriveFront()
	s.deriveChanges()
	s.deriveStuck()
	s.deriveTimer()
	s.deriveFriends()
}

// deriveTouch finds taps, holds and releases.
func (s *System) deriveTouch() {
	d := &s.sensors.derived
	for i := range touchPads {
		id := touchFirst + Sensor(i)
		on := s.sensors.all[id].value != 0
		switch {
		case on && d.touched[i] < 0:
			d.touched[i] = s.now
			s.touchPad(id)
		case on && !d.held[i] && s.now-d.touched[i] >= tapLimit:
			d.held[i] = true
			s.SetProperty(PropHoldFlags, s.getProperty(PropHoldFlags)|1<<i)
			s.trigger(s.sensors.all[SensorHold], int32(id))
		case !on && d.touched[i] >= 0:
			kind := SensorTap
			if d.held[i] {
				kind = SensorRelease
				s.SetProperty(PropHoldFlags, s.getProperty(PropHoldFlags)&^(1<<i))
			}
			d.touched[i], d.held[i] = -1, false
			s.trigger(s.sensors.all[kind], int32(id))
		}
	}
}

// touchPad adds a touched pad to the stroke.
func (s *System) touchPad(id Sensor) {
	d := &s.sensors.derived
	if len(d.pads) > 0 && s.now-d.padAt > petGap {
		d.pads = nil
	}
	d.padAt = s.now
	d.pads = append(d.pads, id)
	if len(d.pads) > 3 {
		d.pads = d.pads[len(d.pads)-3:]
	}
	for _, k := range strokes {
		if n := len(k.pads); len(d.pads) >= n && equalPads(d.pads[len(d.pads)-n:], k.pads) {
			d.petting = true
			s.trigger(s.sensors.all[SensorPetted], k.petted)
			return
		}
	}
}

func equalPads(a, b []Sensor) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// derivePetted finds the end of petting.
func (s *System) derivePetted() {
	d := &s.sensors.derived
	if !d.petting {
		return
	}
	for _, since := range d.touched {
		if since >= 0 {
			d.padAt = s.now
			return
		}
	}
	if s.now-d.padAt >= petStop {
		d.petting, d.pads = false, nil
		s.trigger(s.sensors.all[SensorPetted], pettedStopped)
	}
}

// deriveAbuse finds joints that an external force moves.
func (s *System) deriveAbuse() {
	d := &s.sensors.derived
	for j := range JointCount {
		if math.Abs(s.hw.Joint(j).Loaded) > abuseAngle {
			d.abused = s.now
		}
	}
	abused := d.abused >= 0 && s.now-d.abused < abuseEnd
	s.reading(s.sensors.all[SensorAbuse], truth(abused))
}

func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// derivePickedUp finds from the feet whether Pleo is held in the air.
func (s *System) derivePickedUp() {
	d, st := &s.sensors.derived, s.sensors.all[SensorPickedUp]
	down := int32(0)
	for id := SensorFrontLeft; id <= SensorBackRight; id++ {
		down += s.sensors.all[id].value
	}
	differs := st.value == 0 && down == 0 || st.value != 0 && down >= 2
	switch {
	case !differs:
		d.lifted = -1
	case d.lifted < 0:
		d.lifted = s.now
	case s.now-d.lifted >= liftTime:
		d.lifted = -1
		s.reading(st, 1-st.value)
	}
	if !st.began {
		s.reading(st, st.value)
	}
}

// deriveFront finds edges and objects from the infra-red reading and the direction of the neck (PLEO-SEN-101 to PLEO-SEN-106).
func (s *System) deriveFront() {
	d := &s.sensors.derived
	yaw, pitch := s.hw.Joint(JointNeckHorizontal).Position, s.hw.Joint(JointNeckVertical).Position
	side := 0 // in front; the next ids are left and right
	if yaw < -neckSide {
		side = 1
	} else if yaw > neckSide {
		side = 2
	}
	zone := side
	switch {
	case pitch < float64(d.limits.edgeNeck):
		zone += 10
	case pitch > float64(d.limits.objectNeck):
		zone += 20
	default:
		zone = -1
	}
	if zone != d.neckZone {
		d.neckZone, d.neckAt = zone, s.now
	}
	object := s.sensors.all[SensorObject]
	for i := range 3 {
		edge, thing := s.sensors.all[SensorEdgeInFront+Sensor(i)], s.sensors.all[SensorObjectInFront+Sensor(i)]
		for _, st := range []*sensorState{edge, thing} {
			if !st.began {
				s.reading(st, 0)
			}
		}
		if i != side || !object.enabled {
			continue
		}
		switch {
		case zone/10 == 1 && s.now-d.neckAt >= ms(d.limits.edgeLinger):
			if object.value < d.limits.edgeLow {
				s.reading(edge, 1)
			} else if object.value > d.limits.edgeHi {
				s.reading(edge, 0)
			}
		case zone/10 == 2 && s.now-d.neckAt >= ms(d.limits.objectLinger):
			if object.value > d.limits.objectHigh {
				s.reading(thing, 1)
			} else if object.value < d.limits.objectLow {
				s.reading(thing, 0)
			}
		}
	}
}

func ms(n int32) time.Duration { return time.Duration(n) * time.Millisecond }

// deriveChanges compares light and loudness with their averages.
func (s *System) deriveChanges() {
	d := &s.sensors.derived
	light, loud := float64(s.sensors.all[SensorLight].value), float64(s.sensors.all[SensorSoundLoud].value)
	if !d.lightBegan {
		d.lightBegan, d.light, d.loudS, d.loudL = true, light, loud, loud
	}
	toward := func(from, to float64, in time.Duration) float64 {
		return from + (to-from)*float64(sensorTick)/float64(in)
	}
	s.reading(s.sensors.all[SensorLightChange], int32(math.Round(light-d.light)))
	d.light = toward(d.light, light, lightTime)
	d.loudS, d.loudL = toward(d.loudS, loud, loudShort), toward(d.loudL, loud, loudLong)
	s.reading(s.sensors.all[SensorSoundChange], int32(math.Round(d.loudS-d.loudL)))
}

// deriveStuck finds joints that begin and cease to be stuck.
func (s *System) deriveStuck() {
	d := &s.sensors.derived
	for j := range JointCount {
		stuck := s.hw.Joint(j).Stalled && !s.host.noStall
		if stuck == d.stuck[j] {
			continue
		}
		d.stuck[j] = stuck
		kind := SensorJointUnstuck
		if stuck {
			kind = SensorJointStuck
		}
		s.trigger(s.sensors.all[kind], int32(j))
	}
}

// deriveTimer triggers when the interval is over; the value is the time since the trigger before.
func (s *System) deriveTimer() {
	t := &s.sensors
	if t.timer > 0 && s.now-t.timerAt >= t.timer {
		since := int32((s.now - t.timerAt) / time.Millisecond)
		t.timerAt = s.now
		s.trigger(t.all[SensorTimer], min(since, 65535))
	}
}

// deriveFriends finds Pleos that are no longer heard (PLEO-SEN-126).
func (s *System) deriveFriends() {
	d := &s.sensors.derived
	for id := range int32(256) {
		at, known := d.friends[id]
		if known && s.now-at > ms(s.properties.values[PropP2PTimeout]) {
			delete(d.friends, id)
			s.trigger(s.sensors.all[SensorMsgGone], id)
		}
		if len(d.friends) == 0 {
			return
		}
	}
}

// Beacon takes the beacon of another Pleo: its id and three bytes (PLEO-SEN-38, PLEO-SEN-125).
func (s *System) Beacon(id uint8, payload [3]byte) {
	d, st := &s.sensors.derived, s.sensors.all[SensorBeacon]
	st.data = append(st.data[:0], id, payload[0], payload[1], payload[2])
	s.trigger(st, int32(id))
	if _, known := d.friends[int32(id)]; !known {
		s.trigger(s.sensors.all[SensorMsgReceived], int32(id))
	}
	d.friends[int32(id)] = s.now
}

// Infrared takes lines of text that arrive over infra-red, each ended by a line feed or a zero; the key of a remote control is a line of four hexadecimal digits
// in capitals (PLEO-SEN-03).
func (s *System) Infrared(data []byte) {
	st := s.sensors.all[SensorIR]
	st.data = append(st.data, data...)
	const most = 64
	st.data = st.data[max(0, len(st.data)-most):]
	lines := int32(0)
	for _, c := range st.data {
		if c == '\n' || c == 0 {
			lines++
		}
	}
	s.trigger(st, lines)
}
