package amigobotsim

import (
	"math"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
)

// command carries out a command of an open session (AMIGO-CMD-00 to 43, 45 to 92, part of AMIGO-CMD-44).
func (r *Robot) command(c sip.Command, out Lines) Lines {
	v := c.Value()
	if c.Arg != argument(c.Number) && argument(c.Number) != sip.None && (argument(c.Number) == sip.String || c.Arg != sip.Negative) {
		r.stats.Ignored++ // AMIGO-ARG-06
		return out
	}
	if r.version < 13 && since13(c.Number) {
		r.stats.Ignored++
		return out
	}
	switch c.Number {
	case sip.Pulse, sip.BatteryInfo, sip.HostBaud:
	case sip.BumpStall:
		if v >= 0 && v <= 3 {
			r.bumpStall = v
		}
	case sip.Open:
		r.stepping = false
	case sip.Close:
		r.closeSession()
	case sip.Polling:
		r.sonar.poll(c.Text)
	case sip.Enable:
		r.enable(v != 0)
	case sip.SetA:
		r.setAcc(c, &r.limit.transAcc, &r.limit.transDec, flash.TransAccTop)
	case sip.SetRA:
		r.setAcc(c, &r.limit.rotAcc, &r.limit.rotDec, flash.RotAccTop)
	case sip.SetV:
		r.limit.transVel = uint16(min(max(v, 0), r.params.Int(flash.TransVelTop)))
	case sip.SetRV:
		r.limit.rotVel = uint16(min(max(v, 0), r.params.Int(flash.RotVelTop)))
	case sip.SetO:
		r.pose = [3]float64{} // encoders keep counting (AMIGO-POS-06)
		if r.motion.headed {
			r.turnTo(0)
		}
	case sip.Move, sip.Rotate, sip.Vel, sip.Head, sip.DHead, sip.RVel, sip.DCHead, sip.Stop, sip.Vel2, sip.EStop:
		if r.motors { // AMIGO-MOT-11
			r.move(c)
		}
	case sip.GetConfig:
		return r.config(out)
	case sip.Encoder:
		r.reports.encoders = v != 0
	case sip.Sonar:
		r.sonar.on = v != 0
	case sip.DigOut:
		mask, state := c.Unpack()
		r.io.out = r.io.out&^mask | state&mask // what is no output does not show
	case sip.ADSel:
		if v >= 1 && v <= analogPorts {
			r.io.selected = v
		}
	case sip.IORequest:
		r.reports.io = v
		if r.version < 12 {
			r.reports.io = 0
		}
	case sip.TTY2:
		out[r.aux1()] = append(out[r.aux1()], c.Text...)
	case sip.TTY3:
		out[AUX2] = append(out[AUX2], c.Text...)
	case sip.GetAux:
		r.io.request(r.aux1(), v)
	case sip.GetAux2:
		r.io.request(AUX2, v)
	case sip.Step:
		r.stepping = true
		r.steps++
	case sip.RotKP, sip.RotKV, sip.RotKI, sip.TransKP, sip.TransKV, sip.TransKI:
		t := &r.tune
		*[...]*uint16{&t.rotKp, &t.rotKv, &t.rotKi, &t.transKp, &t.transKv, &t.transKi}[c.Number-sip.RotKP] = uint16(max(v, 0))
	case sip.RevCount:
		if v > 0 {
			r.tune.revCount = uint16(v)
		}
	case sip.Sound:
		r.play(v)
	case sip.Say:
		r.say(c.Text)
	case sip.GetPlaylist:
		r.reports.list(v)
	case sip.SoundTog:
		r.sound.mute(v == 0)
	default: // grippers, servos, compass and numbers that the manual does not have (AMIGO-CMD-XX, AMIGO-OPEN-14)
		r.stats.Ignored++
	}
	return out
}

// argument is the kind that a command must have; None: any or none.
func argument(number uint8) sip.ArgKind {
	switch number {
	case sip.Polling, sip.Say, sip.TTY2, sip.TTY3:
		return sip.String
	case sip.Enable, sip.SetA, sip.SetV, sip.Move, sip.Rotate, sip.SetRV, sip.Vel, sip.Head, sip.DHead, sip.GetConfig, sip.Encoder, sip.RVel,
		sip.DCHead, sip.SetRA, sip.Sonar, sip.DigOut, sip.Vel2, sip.ADSel, sip.IORequest, sip.GetAux, sip.GetAux2, sip.RotKP, sip.RotKV, sip.RotKI,
		sip.TransKP, sip.TransKV, sip.TransKI, sip.RevCount, sip.Sound, sip.GetPlaylist, sip.SoundTog:
		return sip.Positive
	}
	return sip.None
}

// since13 reports whether AmigOS knows a command since 1.3 (AMIGO-OPEN-15).
func since13(number uint8) bool {
	return number == sip.TTY3 || number == sip.GetAux2 || number >= sip.RotKP && number <= sip.RevCount
}

// setAcc sets an acceleration, or with a negative argument a deceleration (AMIGO-CMD-05, AMIGO-CMD-23).
func (r *Robot) setAcc(c sip.Command, acc, dec *uint16, top flash.Key) {
	if c.Int == 0 {
		return
	}
	if c.Arg == sip.Negative {
		acc = dec
	}
	*acc = uint16(min(int(c.Int), r.params.Int(top)))
}

// move carries out a motion command (AMIGO-MOT).
func (r *Robot) move(c sip.Command) {
	s, v := &r.motion, float64(c.Value())
	trans, rot := &s.axes[0], &s.axes[1]
	switch c.Number {
	case sip.Stop:
		trans.stop()
		rot.stop()
		s.headed = false
		return
	case sip.EStop:
		for i := range s.axes {
			s.axes[i].stop()
			s.axes[i].braking = true
		}
		s.headed = false
		return
	case sip.Vel2:
		s.switchTo(true)
		left, right := c.Unpack()
		s.axes[0].run(float64(int8(left)) * sip.Vel2Unit * sip.TicksPerMetre)
		s.axes[1].run(float64(int8(right)) * sip.Vel2Unit * sip.TicksPerMetre)
		return
	}
	s.switchTo(false)
	switch c.Number {
	case sip.Vel:
		trans.run(v / 1000 * sip.TicksPerMetre)
	case sip.Move:
		trans.travel(s.measured[0] + float64(v/1000*sip.TicksPerMetre))
	case sip.RVel, sip.Rotate:
		rot.run(v * deg * r.tune.ticksPerRad())
		s.headed = false
	case sip.Head:
		r.turnTo(v * deg)
	case sip.DHead:
		r.turnTo(r.pose[2] + float64(v*deg))
	case sip.DCHead:
		r.turnTo(r.heading() + float64(v*deg))
	}
}

// heading returns the heading set-point, rad: the present heading without one (AMIGO-MOT-13).
func (r *Robot) heading() float64 {
	if r.motion.headed {
		return r.motion.head
	}
	return r.pose[2]
}

// turnTo makes the robot turn to an absolute heading, rad, the shorter way; a half turn goes counter-clockwise (AMIGO-MOT-12).
func (r *Robot) turnTo(head float64) {
	s := &r.motion
	s.headed, s.head = true, math.Remainder(head, 2*math.Pi)
	turn := math.Remainder(head-r.pose[2], 2*math.Pi)
	if turn < 1e-9-math.Pi {
		turn = math.Pi
	}
	s.axes[1].travel(s.measured[1] + float64(turn*r.tune.ticksPerRad()))
}
