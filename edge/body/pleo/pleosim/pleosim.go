// Package pleosim is a simulated Pleo below LifeOS: 14 joints with limits and speeds, sensors that tests and people set, a loudspeaker that is recorded, and
// cards in memory or in a folder.
//
// Like LifeOS it has no clock: Step moves the joints by the time between two calls. A Body belongs to one goroutine; a Robot is a Body with its LifeOS, its ports and
// its battery, for everyone.
package pleosim

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"kennel/edge/body/pleo/lifeos"
)

// joint is a motor and its limb.
type joint struct {
	position, target, speed float64
	blocked                 bool
	pushed                  float64 // by a hand, degrees
	moving                  bool
}

// Body is the hardware of a Pleo.
type Body struct {
	now      time.Duration
	joints   [lifeos.JointCount]joint
	readings map[lifeos.Sensor]int32
	// Speaker has all samples that were played, of lifeos.SampleRate, unless the body is the one of a Robot.
	Speaker []int16
	played  int  // samples
	deaf    bool // Speaker is not kept
}

// New returns a Pleo that is on its feet, rested and awake, in daylight, with a full battery at room temperature.
func New() *Body {
	b := &Body{readings: map[lifeos.Sensor]int32{lifeos.SensorBattery: 100, lifeos.SensorBatteryTemp: 22, lifeos.SensorLight: 100}}
	for id := lifeos.SensorFrontLeft; id <= lifeos.SensorBackRight; id++ {
		b.readings[id] = 1
	}
	b.readings[sensorTilt] = 1
	for j := range b.joints {
		k := lifeos.Joint(j).Kind()
		b.joints[j].position = min(max(0, k.Min), k.Max)
		b.joints[j].target = b.joints[j].position
	}
	return b
}

const (
	sensorTilt    lifeos.Sensor = 29
	sensorCurrent lifeos.Sensor = 39
)

// Set gives a raw sensor a reading, which it keeps.
func (b *Body) Set(id lifeos.Sensor, v int32) { b.readings[id] = v }

// Block holds a joint, or lets it go: its motor cannot move it.
func (b *Body) Block(j lifeos.Joint, blocked bool) { b.joints[j].blocked = blocked }

// Push is a hand that holds a joint away from its place by an angle in degrees; 0 lets it go.
func (b *Body) Push(j lifeos.Joint, deg float64) { b.joints[j].pushed = deg }

// Read returns the reading of a raw sensor. The current follows from the motors: 150 mA, and 200 mA for each joint that moves (PLEO-SEN-39).
func (b *Body) Read(id lifeos.Sensor) int32 {
	if id == sensorCurrent {
		current := int32(150)
		for i := range b.joints {
			if b.joints[i].moving {
				current += 200
			}
		}
		return current
	}
	return b.readings[id]
}

// Joint returns the state of a joint.
func (b *Body) Joint(j lifeos.Joint) lifeos.JointState {
	t := &b.joints[j]
	s := lifeos.JointState{Position: t.position + t.pushed, Loaded: t.pushed, Stalled: t.blocked && t.position != t.target}
	if t.moving {
		s.Speed = t.speed
	}
	return s
}

// Move gives a joint a target, within the range and speed of its motor.
func (b *Body) Move(j lifeos.Joint, target, speed float64) {
	k := j.Kind()
	b.joints[j].target = min(max(target, k.Min), k.Max)
	b.joints[j].speed = min(speed, k.Speed)
}

// Play records samples.
func (b *Body) Play(samples []int16) {
	b.played += len(samples)
	if !b.deaf {
		b.Speaker = append(b.Speaker, samples...)
	}
}

// Step moves the joints until now.
func (b *Body) Step(now time.Duration) {
	dt := (now - b.now).Seconds()
	b.now = now
	for i := range b.joints {
		t := &b.joints[i]
		way := t.target - t.position
		t.moving = way != 0 && !t.blocked
		if t.moving {
			t.position += math.Copysign(min(math.Abs(way), t.speed*dt), way)
		}
	}
}

// Run steps a LifeOS and its body until now, tick by tick, or until a script is paused.
func (b *Body) Run(s *lifeos.System, now time.Duration) {
	for s.Now() < now && s.Power() == lifeos.On {
		if _, stopped := s.Stopped(); stopped {
			return
		}
		t := s.Now() + lifeos.Tick
		b.Step(t)
		s.Step(t)
	}
}

// Card is a drive in memory: files by their names.
type Card map[string][]byte

// Files returns the names of all files, sorted.
func (c Card) Files() ([]string, error) {
	var names []string
	for n := range c {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, nil
}

// Read returns a file.
func (c Card) Read(name string, limit int) ([]byte, error) {
	data, ok := c[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if len(data) > limit {
		return nil, fmt.Errorf("%s: %d bytes, want at most %d", name, len(data), limit)
	}
	return data, nil
}

// Write replaces a file.
func (c Card) Write(name string, data []byte) error {
	c[name] = slices.Clone(data)
	return nil
}

// Remove deletes a file.
func (c Card) Remove(name string) error {
	if _, ok := c[name]; !ok {
		return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	delete(c, name)
	return nil
}
