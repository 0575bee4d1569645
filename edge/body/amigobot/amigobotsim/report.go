package amigobotsim

import (
	"math"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
)

// reports holds the packets that the session has asked for beside standard ones.
type reports struct {
	wait     int // cycles to the next standard packet
	ticks    [2]int32
	encoders bool // a stream (AMIGO-CMD-19)
	io       int  // 1: one packet; more: a stream (AMIGO-CMD-40)
	next     int  // entry of the playlist to send, 0: its count; see last
	last     int  // 0: no playlist is under way
	readings []sip.Reading
}

// list begins to send one entry of the playlist, or with 0 those of all user sounds (AMIGO-XP-13, AMIGO-XP-14).
func (p *reports) list(sound int) {
	switch {
	case sound == 0:
		p.next, p.last = 0, soundset.Count
	case sound > 0 && sound <= soundset.Count:
		p.next, p.last = sound, sound
	}
}

// cyclesPerReport is the time between standard packets (AMIGO-SIP-01).
func (r *Robot) cyclesPerReport() int {
	if r.params.Int(flash.SInfoCycle) == 1 {
		return 5
	}
	return 10
}

// report sends the packets that are due at the end of a control cycle: the standard packet, then one of each other kind (AMIGO-LINK-08). It
// reports whether it sent a standard packet.
func (r *Robot) report(out Lines) (_ Lines, sent bool) {
	p := &r.reports
	if r.mode != Connected {
		return out, false
	}
	if p.wait--; p.wait > 0 {
		return out, false
	}
	p.wait = r.cyclesPerReport()
	b := r.standard(out[Control])
	room := r.room() - (len(b) - len(out[Control]))
	out = r.sent(out, b)
	r.stats.Sent++
	// Packets that do not fit into the cycle wait for the next one.
	add := func(due bool, size int, build func(dst []byte) []byte) bool {
		if !due || room < size {
			return false
		}
		room -= size
		out = r.sent(out, build(out[Control]))
		return true
	}
	add(p.encoders, 14, sip.Encoders{Left: r.ticks[0], Right: r.ticks[1]}.Append)
	if add(p.io > 0, 21, r.ioPacket) && p.io == 1 {
		p.io = 0
	}
	for i, aux2 := range [2]bool{false, true} {
		port := [2]Port{System, AUX2}[i]
		if n := r.io.fetch[i]; add(n > 0 && len(r.io.aux[i]) >= n, sip.Overhead+1+n, func(dst []byte) []byte {
			dst, _ = sip.Serial{Aux2: aux2 && r.version >= 13, Data: r.io.aux[i][:n]}.Append(dst) // at most MaxSerial
			return dst
		}) {
			r.io.taken(port)
		}
	}
	if add(p.last > 0, 32, r.playlist) {
		switch p.next {
		case p.last:
			p.last = 0
		case 0:
			p.next = soundset.FirstUser
		default:
			p.next++
		}
	}
	return out, true
}

// standard appends the standard packet (AMIGO-SIP-01 to 20).
func (r *Robot) standard(dst []byte) []byte {
	p := &r.reports
	s := sip.Standard{
		X: distance(r.pose[0]), Y: distance(r.pose[1]), Th: angle(r.pose[2]), Control: angle(r.heading()),
		Battery: uint8(min(math.Round(r.power.volts()/sip.VoltageUnit), 255)),
		Sonar:   p.readings, Timer: uint16(r.io.selected), Analog: uint8(r.io.analog[r.io.selected-1] >> 3),
		Digin: r.io.in &^ r.outputs() & digitalPorts, Digout: r.io.out & r.outputs(),
	}
	var speed [2]float64
	for i := range speed {
		speed[i] = float64(r.ticks[i]-p.ticks[i]) / sip.TicksPerMetre / (float64(r.cyclesPerReport()) * cycleSeconds)
	}
	p.ticks = r.ticks
	s.Left, s.Right = int16(math.Round(speed[0]/sip.SpeedUnit)), int16(math.Round(speed[1]/sip.SpeedUnit))
	s.Moving = s.Left != 0 || s.Right != 0
	for i, bit := range [2]uint16{sip.StallLeft, sip.StallRight} {
		if r.motion.stalled[i] {
			s.Bumpers |= bit
		}
	}
	if r.motors {
		s.Flags |= sip.FlagMotors
	}
	if r.sonar.on {
		s.Flags |= sip.FlagSonar
	}
	dst, _ = s.Append(dst) // at most 2 readings
	p.readings = p.readings[:0]
	return dst
}

// distance is m in the 15 bits of a coordinate; angle is rad in the units of a heading, -2048 to 2047.
func distance(m float64) uint16 { return uint16(int(math.Round(m/sip.DistanceUnit))) & 0x7fff }
func angle(rad float64) int16 {
	return int16((int(math.Round(rad/sip.AngleUnit))+2048)&4095 - 2048)
}

// config sends a CONFIGpac (AMIGO-CFG-01 to 36).
func (r *Robot) config(out Lines) Lines {
	v := &r.params
	word, code := func(k flash.Key) uint16 { return uint16(v.Int(k)) }, func(k flash.Key) uint8 { return uint8(v.Int(k)) }
	t, l := &r.tune, &r.limit
	c := sip.Config{
		Type: v.Value(flash.Type), Subtype: r.subclass(), Serial: v.Value(flash.Serial),
		RotVelTop: word(flash.RotVelTop), TransVelTop: word(flash.TransVelTop), RotAccTop: word(flash.RotAccTop),
		TransAccTop: word(flash.TransAccTop), PwmMax: word(flash.PwmMax), Name: v.Value(flash.Name), InfoCycle: code(flash.SInfoCycle),
		HostBaud: code(flash.HostBaud), Aux1Baud: code(flash.Aux1Baud), FrontSonar: 1, LowBattery: word(flash.LowBattery),
		RevCount: t.revCount, WatchDog: word(flash.WatchDog), P2Mpacs: code(flash.Mpacs), StallVal: word(flash.StallVal),
		StallCount: word(flash.StallCount), RotVelMax: l.rotVel, TransVelMax: l.transVel, RotAcc: l.rotAcc, RotDecel: l.rotDec,
		RotKp: t.rotKp, RotKv: t.rotKv, RotKi: t.rotKi, TransAcc: l.transAcc, TransDecel: l.transDec, TransKp: t.transKp, TransKv: t.transKv,
		TransKi: t.transKi,
	}
	b, _ := c.Append(out[Control]) // FLASH texts have at most 20 characters
	return r.sent(out, b)
}
