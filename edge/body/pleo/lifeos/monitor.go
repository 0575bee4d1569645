package lifeos

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kennel/edge/body/pleo/format"
)

// Prompt ends each answer of the monitor (PLEO-MON-01).
const Prompt = "> "

// unknownCommand is the answer to a line that is none of the monitor's commands.
const unknownCommand = "unknown command\n"

// monitorCommand is a command of the monitor: its words, and how many more it takes at least.
type monitorCommand struct {
	words, args string
	least       int
	run         func(s *System, arg []string) string
}

// commandList returns the commands of the monitor (part of PLEO-MON-09).
func commandList() []monitorCommand {
	return append(append(playCommands(), reportCommands()...), []monitorCommand{
		{"pkt send", "PACKET", 1, func(s *System, a []string) string { // PLEO-MON-02
			s.sendPacket([]byte(strings.Join(a, " ")))
			return ""
		}},
		{"log enable", "TYPE", 1, func(s *System, a []string) string { return s.monitorLog(a[0], true) }},
		{"log disable", "TYPE", 1, func(s *System, a []string) string { return s.monitorLog(a[0], false) }},
		{"log", "", 0, func(s *System, _ []string) string {
			var on []string
			for t, name := range logNames {
				if s.logTypes&(1<<t) != 0 {
					on = append(on, name)
				}
			}
			return strings.Join(on, " ") + "\n"
		}},
		{"access", "[LEVEL [KEY]]", 0, func(s *System, a []string) string { return s.accessCommand(a) }},
		{"app unload", "", 0, func(s *System, _ []string) string { s.unloadApp(); return "" }},
		{"joint angle", "ID DEGREES", 2, func(s *System, a []string) string { return s.monitorJoint(a) }},
		{"joint move", "ID DEGREES", 2, func(s *System, a []string) string { return s.monitorJoint(a) }},
		{"joint neutral", "", 0, func(s *System, _ []string) string {
			for j := range JointCount {
				if s.joints[j].held {
					continue
				}
				s.moveTo(j, s.joints[j].neutral, jointKinds[j].Speed)
			}
			return ""
		}},
		{"stats power", "", 0, func(s *System, _ []string) string {
			return fmt.Sprintf("Battery sensor value = %d (%d C)\n", s.sensors.all[SensorBattery].value, s.sensors.all[SensorBatteryTemp].value)
		}},
		{"chdrv", "DRIVE", 1, func(s *System, a []string) string {
			i := slices.IndexFunc(s.drives[:], func(d drive) bool { return strings.EqualFold(strings.TrimSuffix(a[0], ":"), d.letter) })
			if i < 0 {
				return "no such drive\n"
			}
			s.device = i
			return ""
		}},
		{"sensor read", "ID", 1, func(s *System, a []string) string {
			n, _ := strconv.Atoi(a[0])
			v, ok := s.Sensor(Sensor(n))
			if !ok {
				return "no such sensor\n"
			}
			return fmt.Sprintln(v)
		}},
		{"property get", "ID", 1, func(s *System, a []string) string {
			n, _ := strconv.ParseInt(a[0], 0, 32)
			return fmt.Sprintln(s.getProperty(Property(n)))
		}},
		{"property set", "ID VALUE", 2, func(s *System, a []string) string {
			n, err1 := strconv.ParseInt(a[0], 0, 32)
			v, err2 := strconv.ParseInt(a[1], 0, 32)
			if err1 != nil || err2 != nil {
				return "want two whole numbers\n"
			}
			s.SetProperty(Property(n), int32(v))
			return ""
		}},
		{"script exec", "NAME", 1, func(s *System, a []string) string {
			r, err := s.find(format.Scripts, a[0])
			if err == nil {
				s.exec(VMAux, r)
			}
			return said(err)
		}},
		{"version", "", 0, func(s *System, _ []string) string { return fmt.Sprintf("LifeOS %s\n", s.cfg.Profile) }},
		{"help", "", 0, func(*System, []string) string {
			var b strings.Builder
			for _, c := range commandList() {
				fmt.Fprintln(&b, strings.TrimSpace(c.words+" "+c.args))
			}
			return b.String()
		}},
	}...)
}

// playCommands are those of motions and sounds.
func playCommands() []monitorCommand {
	return []monitorCommand{
		{"motion play", "NAME", 1, func(s *System, a []string) string {
			r, err := s.find(format.Motions, a[0])
			if err == nil {
				s.playMotion(r)
			}
			return said(err)
		}},
		{"motion speed", "PERCENT", 1, number(func(s *System, n int32) { s.setMotionSpeed(n) })},
		{"sound play", "NAME", 1, func(s *System, a []string) string {
			r, err := s.find(format.Sounds, a[0])
			if err == nil {
				s.playSound(r, true)
			}
			return said(err)
		}},
		{"sound speed", "PERCENT", 1, number(func(s *System, n int32) { s.sound.speed = min(max(n, minSoundSpeed), maxSoundSpeed) })},
		{"sound volume", "PERCENT", 1, number(func(s *System, n int32) { s.sound.volume = min(max(n, minVolume), maxVolume) })},
	}
}

func said(err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	return ""
}

// number makes a command of a function that takes a whole number.
func number(set func(s *System, n int32)) func(*System, []string) string {
	return func(s *System, a []string) string {
		n, err := strconv.ParseInt(a[0], 10, 32)
		if err != nil {
			return "want a whole number\n"
		}
		set(s, int32(n))
		return ""
	}
}

// Monitor runs a command of the monitor and returns its answer, without the prompt. Case does not matter in the words of a command (PLEO-MON-01).
func (s *System) Monitor(line string) string {
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	for _, c := range commandList() {
		n := len(strings.Fields(c.words))
		if len(words) < n || !strings.EqualFold(strings.Join(words[:n], " "), c.words) {
			continue
		}
		if len(words) < n+c.least {
			return fmt.Sprintf("%s: want %s\n", c.words, c.args)
		}
		if need := needsAccess[c.words]; s.access < need {
			return refused(need)
		}
		return c.run(s, words[n:])
	}
	return unknownCommand
}

// monitorLog switches a type of messages on or off (PLEO-MON-03).
func (s *System) monitorLog(name string, on bool) string {
	bits, ok := logTypesOf(strings.ToLower(name))
	if !ok {
		return "no such type\n"
	}
	if on {
		s.logTypes |= bits
	} else {
		s.logTypes &^= bits
	}
	return ""
}

// monitorJoint moves a joint to an angle.
func (s *System) monitorJoint(a []string) string {
	j, deg, ok := jointAngle(a)
	switch {
	case !ok:
		return wantJoint
	case s.joints[j].held:
		return "held by a computer\n"
	}
	s.moveTo(j, deg, jointKinds[j].Speed)
	return ""
}

const wantJoint = "want a joint from 0 to 13 and an angle\n"

// jointAngle reads the arguments of a command that moves a joint.
func jointAngle(a []string) (j Joint, deg float64, ok bool) {
	id, err1 := strconv.Atoi(a[0])
	deg, err2 := strconv.ParseFloat(a[1], 64)
	return Joint(id), deg, err1 == nil && err2 == nil && !math.IsNaN(deg) && id >= 0 && id < int(JointCount)
}
