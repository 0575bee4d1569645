package pleo

import (
	"fmt"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/pleo/reportline"
)

// Own defaults of the timing.
const (
	period = 40 * time.Millisecond  // of reports: they take half of what the serial line carries
	stale  = 200 * time.Millisecond // five reports late: the joints are given back until the body is heard again
	silent = 2 * time.Second        // the body is opened again
)

// The channels of a Pleo, by number. After them come the pads, the sensors and the joints.
const (
	chHeld = iota // a bit for each joint that the driver holds
	chStalled
	chApp      // an application runs
	chSounds   // sounds since power-on
	chPlaying  // a sound plays
	chRemain   // ms of it
	chOn       // the charger is connected
	chCharging // it charges
	chCard     // a card is in its slot
	chPicked   // it is off the floor
	chPad
	chSense  = chPad + len(pads)
	chJoint  = chSense + len(senses)
	chMood   = chJoint + len(joints)
	chDrive  = chMood + len(reportline.Properties)
	perDrive = 5 // value, low, high, and the name
)

// The ids of sensors that the plant reads by name.
const (
	sensorBattery = 2
	sensorTilt    = 29
)

// senses are the other sensors that the tree has, each with the number that its reading is divided by.
var senses = [...]struct {
	slot   string
	unit   string
	sensor uint8
	per    float64
}{
	{"battery.remain", "", sensorBattery, 100},
	{"battery.current", "A", 39, 1000},
	{"temperature.temperature", "Celsius", 34, 1},
	{"light.val", "", 21, 1},
	{"tilt.val", "", sensorTilt, 1},
	{"shake.val", "", 36, 1},
	{"ir.val->object", "", 23, 100},
	{"ir.val->beacon", "", 38, 1},
	{"microL.val->direction", "rad", 26, -180 / math.Pi}, // Pleo counts to the right; -128 if the direction is unknown
	{"microL.val->loudness", "", 28, 100},
	{"blob.visible", "", 113, 1},
}

// noDirection is the reading of a loud sound without a direction (PLEO-SEN-26).
const noDirection = -128

// describe returns the fixed facts of a Pleo.
func describe() (body.Description, error) {
	d := body.Description{Species: "pleo", Model: "Pleo", Timing: body.Timing{Rhythm: period, Stale: stale, Silent: silent}}
	tree, err := Tree()
	if err != nil {
		return d, err
	}
	for _, name := range [...]string{"native held", "native stalled", "native application", "native sounds", "speaker.playing", "speaker.remain",
		"native charger", "native charging", "native card", "native picked up"} {
		d.Channels = append(d.Channels, body.Channel{Name: name})
	}
	compact := func(path string) string {
		target, lookErr := tree.Lookup("robot." + path)
		if lookErr != nil {
			err = lookErr
			return path
		}
		return target.Nodes[0].Compact()
	}
	for _, p := range pads {
		d.Channels = append(d.Channels, body.Channel{Name: compact(p.path) + ".pressure"})
	}
	for _, s := range senses {
		d.Channels = append(d.Channels, body.Channel{Name: s.slot, Unit: s.unit})
	}
	for i := range joints {
		name := compact(joints[i].path)
		slot := ".position"
		if joints[i].plain() {
			slot = ".val"
		}
		d.Channels = append(d.Channels, body.Channel{Name: name + slot, Unit: "rad"})
		d.Drives = append(d.Drives, body.Drive{Device: name, Takes: body.Position})
	}
	for _, name := range moods {
		if name != "val" {
			name = "val->" + name
		}
		d.Channels = append(d.Channels, body.Channel{Name: "mood." + name})
	}
	for i := range reportline.MaxDrives {
		for _, name := range [perDrive]string{"val", "val->low", "val->high", "val->name", "val->rest"} {
			d.Channels = append(d.Channels, body.Channel{Name: fmt.Sprintf("drive[%d].%s", i, name)})
		}
	}
	return d, err
}

// fillDrives writes a line of drives, which was heard at the given time.
func fillDrives(s *body.Sense, d *reportline.Drives, at time.Duration) {
	for i, v := range d.Properties {
		s.Set(chMood+i, float64(v), at)
	}
	for i := range d.Drives {
		x, ch := &d.Drives[i], chDrive+i*perDrive // beyond Count all are 0
		s.Set(ch, float64(x.Value), at)
		s.Set(ch+1, float64(x.Low), at)
		s.Set(ch+2, float64(x.High), at)
		s.Set(ch+3, letters(x.Name[:lettersOf]), at)
		s.Set(ch+4, letters(x.Name[lettersOf:]), at)
	}
}

// lettersOf is how many letters of a name fit into a number, which measurements are. The first one is the lowest byte.
const lettersOf = 6

func letters(name []byte) (v float64) {
	for i := len(name) - 1; i >= 0; i-- {
		v = 256*v + float64(name[i])
	}
	return v
}

// fill writes a report as the frame that the loop carries.
func fill(s *body.Sense, r *reportline.Report, at time.Duration) {
	s.Set(chHeld, float64(r.Held), at)
	s.Set(chStalled, float64(r.Stalled), at)
	s.Set(chApp, number(r.App), at)
	s.Set(chSounds, float64(r.Sounds), at)
	s.Set(chPlaying, number(r.Left > 0), at)
	s.Set(chRemain, float64(r.Left), at)
	s.Set(chOn, float64(r.Sensor(31)), at)
	s.Set(chCharging, number(r.Sensor(35) > 0), at)
	s.Set(chCard, float64(r.Sensor(18)), at)
	s.Set(chPicked, float64(r.Sensor(112)), at)
	for i := range pads {
		s.Set(chPad+i, float64(r.Sensor(pads[i].sensor)), at)
	}
	for i := range senses {
		v := r.Sensor(senses[i].sensor)
		switch {
		case senses[i].sensor == 26 && v == noDirection:
			continue // the last direction that was known
		case senses[i].sensor == 113:
			v = min(v, 1) // its place in the picture is a cell, not a pixel
		}
		s.Set(chSense+i, float64(v)/senses[i].per, at)
	}
	for i := range joints {
		s.Set(chJoint+i, joints[i].sign()*float64(r.Joints[i])/10*math.Pi/180, at)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
