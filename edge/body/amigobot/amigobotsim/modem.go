package amigobotsim

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/sim/uart"
)

// Modem is the pair of radio modems between a host's line and the robot's Control port (AMIGO-RF). It begins in command mode: a host sends WMS2
// to link to the robot's modem, and from then on the line is transparent. Its answers are OK and ERROR, which the manual does not give.
// Losses of the radio are set in Faults (AMIGO-RF-18).
type Modem struct {
	set     [26]string // settings by the letter of their command
	command []byte     // characters of a command so far
	recent  []byte     // the last bytes of data mode
	data    bool       // mode
	linked  bool
	deaf    time.Duration // input before it is ignored, after an escape (AMIGO-RF-16)
}

// robotAddress is the address of the robot's modem, as in the manual's example; its other settings are those of the factory.
const robotAddress = "2"

// escape makes the modem leave data mode. The manual's scan lost the character; client programs send vertical bars (AMIGO-RF-16).
const (
	escape      = "|||\r"
	escapePause = 100 * time.Millisecond
)

// modemCommands are what may follow WM and a letter (AMIGO-RF-02 to 15).
var modemCommands = map[byte]*regexp.Regexp{
	'B': regexp.MustCompile(`^[1-5]$`), 'D': regexp.MustCompile(`^$`), 'E': regexp.MustCompile(`^[A-P]$`),
	'F': regexp.MustCompile(`^0{0,3}([1-9]\d{0,2}|10[01]\d|102[0-4])$`), 'I': regexp.MustCompile(`^[[:xdigit:]]{6}$`),
	'J': regexp.MustCompile(`^.{0,32}$`), 'L': regexp.MustCompile(`^$`), 'M': regexp.MustCompile(modemAddress), 'N': regexp.MustCompile(`^$`),
	'O': regexp.MustCompile(`^[[:xdigit:]]{32}$`), 'P': regexp.MustCompile(`^([[:xdigit:]]{32}|0?[1-9]|1[0-6])$`),
	'Q': regexp.MustCompile(`^[A-Z]$`), 'R': regexp.MustCompile(`^[PR]$`), 'S': regexp.MustCompile(modemAddress),
}

const modemAddress = `^0{0,2}([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])$`

// kept are the settings, in the order of WML (AMIGO-RF-08), with those of the factory.
const kept = "BEFIJMOPR"

var factory = map[byte]string{
	'B': "5", 'E': "A", 'F': "1024", 'I': "000000", 'J': "AmigoWIREFREE", 'M': "1", 'O': strings.Repeat("0", 32), 'P': "1", 'R': "R",
}

// NewModem returns a modem with the settings of the factory (AMIGO-RF-01).
func NewModem() *Modem {
	m := new(Modem)
	for letter, v := range factory {
		m.set[letter-'A'] = v
	}
	return m
}

// Linked reports whether the DCD light is on: the radio link to the robot is up (AMIGO-RF-17).
func (m *Modem) Linked() bool { return m.linked }

// FromHost takes in bytes from the host's line at now, and returns what goes to the robot and what the modem answers.
func (m *Modem) FromHost(now time.Duration, in []byte) (robot, answer []byte) {
	for _, c := range in {
		switch {
		case now < m.deaf:
		case m.data:
			robot = append(robot, c)
			m.recent = append(m.recent, c)
			m.recent = m.recent[max(0, len(m.recent)-len(escape)):]
			if string(m.recent) == escape {
				m.data, m.recent, m.deaf = false, nil, now+escapePause
			}
		case c != '\r':
			if c != '\n' && len(m.command) < 64 {
				m.command = append(m.command, c)
			}
		default:
			answer = append(answer, m.obey(string(m.command))...)
			m.command = m.command[:0]
		}
	}
	return robot, answer
}

// FromRobot returns those of the robot's bytes that reach the host.
func (m *Modem) FromRobot(b []byte) []byte {
	if !m.data {
		return nil
	}
	return b
}

func (m *Modem) obey(command string) string {
	if command == "" {
		return ""
	}
	rest, ok := strings.CutPrefix(command, "WM")
	if !ok || rest == "" || modemCommands[rest[0]] == nil || !modemCommands[rest[0]].MatchString(rest[1:]) {
		return "ERROR\r\n"
	}
	switch letter, value := rest[0], rest[1:]; letter {
	case 'D':
		m.linked = false
	case 'L':
		var b strings.Builder
		for _, k := range kept {
			fmt.Fprintf(&b, "%c=%s\r\n", k, m.set[k-'A'])
		}
		return b.String()
	case 'N':
		if !m.linked {
			return "ERROR\r\n"
		}
		m.data = true
	case 'Q':
		if !m.linked || factory[value[0]] == "" {
			return "ERROR\r\n"
		}
		far := factory[value[0]]
		if value == "M" {
			far = robotAddress
		}
		return value + "=" + far + "\r\n"
	case 'S': // modems link within their group, and with the same code (AMIGO-RF-06, AMIGO-RF-12)
		if strings.TrimLeft(value, "0") != robotAddress || m.set['I'-'A'] != factory['I'] || m.set['P'-'A'] != factory['P'] {
			return "ERROR\r\n"
		}
		m.linked, m.data = true, true
	default:
		m.set[letter-'A'] = value
	}
	return "OK\r\n"
}

// On returns line with the modems between it and the robot.
func (m *Modem) On(line uart.Line) uart.Line { return &modemLine{m, line} }

type modemLine struct {
	*Modem
	uart.Line
}

func (l *modemLine) Read() ([]byte, error) {
	in, err := l.Line.Read()
	if err != nil {
		return nil, err
	}
	robot, answer := l.FromHost(monoclock.Now(), in)
	if len(answer) > 0 {
		_, err = l.Line.Write(answer)
	}
	return robot, err
}

func (l *modemLine) Write(b []byte) (bool, error) { return l.Line.Write(l.FromRobot(b)) }
