package lifeos

import (
	"slices"
	"time"
)

// beaconEvery is the time between two beacons (PLEO-SEN-38).
const beaconEvery = 2 * time.Second

// Signal is something that one Pleo sends over infra-red and others near it receive: a beacon, which may carry a message, or data (PLEO-ARC-06).
type Signal struct {
	From    uint8 // the Pleo's id: the low 8 bits of its serial number
	Beacon  bool
	Payload [3]byte // of a beacon
	Message *Letter // of a beacon; nil: none
	Data    []byte  // lines of text, or the bytes of a script, if it is no beacon
}

// Letter is a message from script to script (PLEO-XAPI-14).
type Letter struct {
	To        uint8
	Data      [2]int32
	Broadcast bool // for all that receive it
}

// mail is a message that arrived.
type mail struct {
	Letter
	repeated int32 // how often it came
}

// infrared is the transmitter of a Pleo, and what came.
type infrared struct {
	silent  bool // the beacon is off
	payload [3]byte
	next    time.Duration
	message *Letter // goes with each beacon
	mail    map[uint8]*mail
	total   int32 // messages that came
}

func (s *System) id() uint8 { return byte(s.cfg.Serial) }

// transmit gives a signal to those who can receive it.
func (s *System) transmit(sig Signal) {
	sig.From = s.id()
	if s.cfg.Transmit != nil {
		s.cfg.Transmit(sig)
	}
}

// stepInfrared sends the beacon when it is due.
func (s *System) stepInfrared() {
	r := &s.infrared
	if r.silent || s.now < r.next || s.asleep(SensorBeacon) {
		return
	}
	r.next = s.now + beaconEvery
	s.transmit(Signal{Beacon: true, Payload: r.payload, Message: r.message})
}

// Receive takes a signal of another Pleo. A head that has its infra-red switched off does not.
func (s *System) Receive(sig Signal) {
	if s.asleep(SensorIR) {
		return
	}
	if !sig.Beacon {
		s.Infrared(sig.Data)
		return
	}
	if m := sig.Message; m != nil && (m.Broadcast || m.To == s.id()) {
		s.infrared.total++
		if s.infrared.mail == nil {
			s.infrared.mail = map[uint8]*mail{}
		}
		if old := s.infrared.mail[sig.From]; old != nil && old.Letter == *m {
			old.repeated++
		} else {
			s.infrared.mail[sig.From] = &mail{*m, 1}
		}
	}
	s.Beacon(sig.From, sig.Payload)
}

// setBeacon sets the bytes that go with the beacon; none switch it off (PLEO-SEN-38).
func (s *System) setBeacon(b []byte) int32 {
	r := &s.infrared
	if r.silent = len(b) == 0; !r.silent {
		r.payload = [3]byte{}
		copy(r.payload[:], b)
	}
	return int32(min(len(b), len(r.payload)))
}

// infraredNatives are those by which two Pleos talk. A message goes with each beacon until it is stopped; a later one takes its place.
func infraredNatives() []Native {
	return []Native{
		{"Attention", "bool: p2p_reset(from)", func(e *env) int32 {
			from := uint8(e.Arg(0))
			_, known := e.s.infrared.mail[from]
			delete(e.s.infrared.mail, from)
			return truth(known)
		}},
		{"Attention", "bool: p2p_stop_msg()", func(e *env) int32 {
			was := e.s.infrared.message != nil
			e.s.infrared.message = nil
			return truth(was)
		}},
		{"Attention", "bool: p2p_set_msg(recipient, data1, data2, broadcast)", func(e *env) int32 {
			if e.s.infrared.silent {
				return 0 // nothing would carry it
			}
			e.s.infrared.message = &Letter{uint8(e.Arg(0)), [2]int32{e.Arg(1), e.Arg(2)}, e.Arg(3) != 0}
			return 1
		}},
		{"Attention", "bool: p2p_get_msg(from, &data1, &data2, &broadcast, &repeat_count, &total_count)", func(e *env) int32 {
			m := e.s.infrared.mail[uint8(e.Arg(0))]
			if m == nil {
				return 0
			}
			for i, v := range [...]int32{m.Data[0], m.Data[1], truth(m.Broadcast), m.repeated, e.s.infrared.total} {
				if !e.M.SetCell(e.Arg(i+1), v) {
					return 0
				}
			}
			return 1
		}},
	}
}

// irData sends the bytes of a script over infra-red (PLEO-SEN-G06).
func (s *System) irData(b []byte) int32 {
	if s.asleep(SensorIR) || len(b) == 0 {
		return 0
	}
	s.transmit(Signal{Data: slices.Clone(b)})
	return int32(len(b))
}
