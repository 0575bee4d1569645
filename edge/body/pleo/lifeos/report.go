package lifeos

import (
	"math"
	"strconv"
	"strings"
	"time"

	"kennel/edge/body/pleo/reportline"
)

// shortest and longest are the limits of the period of reports.
const (
	shortest = 10 * time.Millisecond
	longest  = 10 * time.Second
)

// reports are the lines of package reportline that the serial port gets.
type reports struct {
	every, next time.Duration // 0: none
	nextDrives  time.Duration
	seq         uint32
	line        []byte
}

// drivesEvery is the shortest period of lines of drives: evaluators take seconds.
const drivesEvery = 400 * time.Millisecond

// appendReport appends how the Pleo is now.
func (s *System) appendReport(dst []byte) []byte {
	s.reports.seq++
	r := reportline.Report{Seq: s.reports.seq, Firmware: s.cfg.Profile.API(), App: s.app.loaded, Sounds: s.sound.begun, Left: s.sound.left()}
	for j := range JointCount {
		now := s.hw.Joint(j)
		r.Joints[j] = int16(math.Round(10 * now.Position))
		if s.joints[j].held {
			r.Held |= 1 << j
		}
		if now.Stalled {
			r.Stalled |= 1 << j
		}
	}
	for i, id := range reportline.Sensors {
		r.Sensors[i] = s.sensors.all[id].value
	}
	return reportline.Append(dst, &r)
}

// stepReports prints the report that is due.
func (s *System) stepReports() {
	r := &s.reports
	if r.every == 0 || s.now < r.next || s.cfg.Print == nil {
		return
	}
	r.next = s.now + r.every
	r.line = append(s.appendReport(r.line[:0]), '\n')
	s.cfg.Print(r.line)
	if s.now >= r.nextDrives {
		r.nextDrives = s.now + max(r.every, drivesEvery)
		r.line = append(s.appendDrives(r.line[:0]), '\n')
		s.cfg.Print(r.line)
	}
}

// appendDrives appends what moves the Pleo from within.
func (s *System) appendDrives(dst []byte) []byte {
	var d reportline.Drives
	for i, id := range reportline.Properties {
		d.Properties[i] = s.properties.values[Property(id)]
	}
	for _, m := range s.drivers.list[:min(len(s.drivers.list), reportline.MaxDrives)] {
		x := &d.Drives[d.Count]
		if copy(x.Name[:], m.name) == 0 || strings.ContainsFunc(m.name, func(c rune) bool { return c > 0x7f || !reportline.Letter(byte(c)) }) {
			continue // no compiler makes such a name
		}
		x.Value, x.Low, x.High = m.value, m.low, m.high
		d.Count++
	}
	return reportline.AppendDrives(dst, &d)
}

// left returns how much of the sound is left, in milliseconds, at least 1 while one plays.
func (v *voice) left() uint32 {
	if !v.playing {
		return 0
	}
	return uint32(max((int64(len(v.pcm))*scale-v.at)*1000/v.step()/SampleRate, 1))
}

// reportCommands are those for a computer that is beside the Pleo. They are own additions.
func reportCommands() []monitorCommand {
	return []monitorCommand{
		{"report", "[MS]", 0, func(s *System, a []string) string {
			if len(a) == 0 {
				return string(s.appendReport(nil)) + "\n"
			}
			n, err := strconv.ParseUint(a[0], 10, 32)
			every := time.Duration(n) * time.Millisecond
			if err != nil || n != 0 && (every < shortest || every > longest) {
				return "want 0, or 10 to 10000 ms\n"
			}
			s.reports.every, s.reports.next, s.reports.nextDrives = every, s.now, s.now
			return ""
		}},
		{"joint hold", "ID DEGREES [SPEED]", 2, func(s *System, a []string) string {
			j, deg, ok := jointAngle(a)
			if !ok {
				return wantJoint
			}
			speed := jointKinds[j].Speed
			if len(a) > 2 {
				v, err := strconv.ParseFloat(a[2], 64)
				if err != nil || !(v > 0) {
					return "want a speed above 0 degrees a second\n"
				}
				speed = min(v, speed)
			}
			s.joints[j].held = true
			s.moveTo(j, deg, speed)
			return ""
		}},
		{"joint free", "ID", 1, func(s *System, a []string) string {
			j, _, ok := jointAngle([]string{a[0], "0"})
			if !ok {
				return wantJoint
			}
			s.joints[j].held = false
			return ""
		}},
		{"joint stop", "", 0, func(s *System, _ []string) string {
			s.stopMotions(motionAny)
			for j := range JointCount {
				s.joints[j].held = false
				s.moveTo(j, s.hw.Joint(j).Position, jointKinds[j].Speed)
			}
			return ""
		}},
	}
}
