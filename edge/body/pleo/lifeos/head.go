package lifeos

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kennel/edge/body/pleo/hdlc"
)

// serialRAM is the size of the head's memory in bytes; own default.
const serialRAM = 8 << 10

// head is the processor in the head: camera, microphones, infra-red, mouth, two pads and a memory, which the body reaches by packets alone (part of PLEO-PKT-02; PLEO-ARC-02).
type head struct {
	in   hdlc.Reader // from the body
	out  hdlc.Reader // to the body
	sent uint64      // packets
	off  int32       // a bit for each type that is switched off (PLEO-PKT-04)
	ram  [serialRAM]byte
	was  [2]int32 // readings of the pads
	buf  []byte
}

// headSensors are the sensors in the head by the type of their packets.
var headSensors = map[Sensor]byte{SensorHead: 't', SensorChin: 't', SensorLight: 'c', SensorSoundDirection: 'a', SensorSoundLoud: 'a', 20: 'a', 22: 'a',
	sensorMouth: 'm', SensorIR: 'i', 4: 'i', SensorObject: 'i', SensorBeacon: 'i', SensorTrackable: 'c'}

const sensorMouth Sensor = 24

// asleep reports whether a sensor is in the head and switched off: it keeps its reading.
func (s *System) asleep(id Sensor) bool {
	return s.head.off&packetFilter(headSensors[id]) != 0
}

// sendPacket sends a packet to the head in a frame (PLEO-PKT-01). What the line breaks is lost.
func (s *System) sendPacket(p []byte) {
	frame, err := hdlc.Append(s.head.buf[:0], p[:min(len(p), maxPacket)])
	if err != nil {
		return // an empty packet
	}
	s.head.in.Take(s.line(frame), func(p []byte) { s.obey(slices.Clone(p)) })
}

// answer sends a packet from the head to the body.
func (s *System) answer(format string, args ...any) {
	text := fmt.Appendf(nil, format, args...)
	frame, err := hdlc.Append(nil, text[:min(len(text), maxPacket)])
	if err != nil {
		return
	}
	s.head.sent++
	s.head.out.Take(s.line(frame), func(p []byte) { s.headPacket(slices.Clone(p)) })
}

// line returns what arrives of the bytes of a frame.
func (s *System) line(frame []byte) []byte {
	if s.cfg.Line == nil {
		return frame
	}
	return s.cfg.Line(frame)
}

// obey is how the head answers a packet (PLEO-PKT-03).
func (s *System) obey(p []byte) {
	h, op := &s.head, byte(0)
	if len(p) > 1 {
		op = p[1]
	}
	switch {
	case p[0] == '?':
		s.answer("v%s", headVersion)
	case p[0] == 'e' || p[0] == 'l':
		s.answer("%s", p)
	case p[0] == 'p':
		s.answer("p rx=%d tx=%d err=%d", h.in.Packets, h.sent, h.in.Corrupt+h.in.Long)
	case len(p) == 2 && strings.IndexByte("acimt", p[0]) >= 0 && (op == 'e' || op == 'd'):
		if h.off |= packetFilter(p[0]); op == 'e' {
			h.off &^= packetFilter(p[0])
		}
	case string(p) == "m":
		s.answer("m%d", s.sensors.all[sensorMouth].value)
	case string(p) == "t":
		s.touchPacket(SensorHead)
		s.touchPacket(SensorChin)
	case string(p) == "ag":
		s.answer("ag %d", s.sensors.all[SensorSoundLoud].value)
	case string(p) == "cg":
		s.answer("cg %d", s.sensors.all[SensorLight].value)
	case p[0] == 'i' && op == 't' && s.flash(strings.TrimSpace(string(p[2:]))):
	case p[0] == 's' && s.memory(strings.Fields(string(p[1:]))):
	default:
		s.answer("x%s", p) // PLEO-PKT-10
	}
}

// flash sends bytes in hexadecimal digits over infra-red, and reports whether they are some.
func (s *System) flash(text string) bool {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) == 0 || s.head.off&packetFilter('i') != 0 {
		return false
	}
	s.transmit(Signal{Data: b})
	return true
}

// memory reads ("r ADDRESS N") or writes ("w ADDRESS HEX") the head's memory, and reports whether it can.
func (s *System) memory(words []string) bool {
	if len(words) != 3 {
		return false
	}
	at, err := strconv.ParseUint(words[1], 0, 16)
	if err != nil {
		return false
	}
	switch words[0] {
	case "r":
		n, err := strconv.ParseUint(words[2], 0, 16)
		if err != nil || at+n > serialRAM || 2*n > maxPacket-2 {
			return false
		}
		s.answer("s %x", s.head.ram[at:at+n])
	case "w":
		b, err := hex.DecodeString(words[2])
		if err != nil || at+uint64(len(b)) > serialRAM {
			return false
		}
		copy(s.head.ram[at:], b)
	default:
		return false
	}
	return true
}

// touchPacket is the packet of a pad of the head (PLEO-PKT-13).
func (s *System) touchPacket(pad Sensor) {
	letter := "h"
	if pad == SensorChin {
		letter = "c"
	}
	s.answer("t%s%d", letter, s.sensors.all[pad].value)
}

// stepHead sends a packet for each pad whose reading changed.
func (s *System) stepHead() {
	for i, pad := range [...]Sensor{SensorHead, SensorChin} {
		if v := s.sensors.all[pad].value; v != s.head.was[i] {
			s.head.was[i] = v
			s.touchPacket(pad)
		}
	}
}
