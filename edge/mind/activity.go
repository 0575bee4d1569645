package mind

import (
	"math"
	"time"

	"kennel/edge/anim/clip"
)

// activity tells the engine of sounds how head, lift and treads move, so that a sound may depend on it (part of VEC-SND-07): positions in degrees and millimetres, up positive, speeds and
// accelerations a second, with the sign of their direction. Parameters are set while a part moves, and once more when it has stopped. It belongs to the loop.
type activity struct {
	set               func(parameter string, value float64)
	head, lift, tread course
	spin              float64 // deg/s, as it was told last
	accelerates       float64 // mm/s², of the treads
}

// course is how one part moved.
type course struct {
	known, moving bool
	at            time.Duration
	pos, speed    float64
}

// frame tells of the joints that a clip moves.
func (a *activity) frame(now time.Duration, f *clip.Frame) {
	a.joint(&a.head, "Robot_Vic_Head", now, -f.Head*180/math.Pi, f.Has&clip.HeadMotor != 0)
	a.joint(&a.lift, "Robot_Vic_Lift", now, f.Lift*1000, f.Has&clip.LiftMotor != 0)
}

// joint tells of one joint; has is false if nothing moves it.
func (a *activity) joint(c *course, name string, now time.Duration, pos float64, has bool) {
	if !has {
		if c.moving {
			a.set(name+"_Speed", 0)
			a.set(name+"_Accelerate", 0)
		}
		*c = course{}
		return
	}
	if !c.known {
		*c = course{known: true, at: now, pos: pos}
		return
	}
	if now <= c.at {
		return
	}
	dt := (now - c.at).Seconds()
	speed := (pos - c.pos) / dt
	if speed != 0 || c.moving {
		a.set(name+"_Position", pos)
		a.set(name+"_Speed", speed)
		a.set(name+"_Accelerate", (speed-c.speed)/dt)
		c.moving = speed != 0 || c.speed != 0 // its acceleration is told once more
	}
	c.at, c.pos, c.speed = now, pos, speed
}

// drives tells of the treads: m/s forward and rad/s counter-clockwise, as robotd measured them. While they turn against each other the robot spins, and has no tread speed.
func (a *activity) drives(now time.Duration, forward, turning float64) {
	speed, spin := forward*1000, turning*180/math.Pi
	if math.Abs(turning)*clip.Vector.Track/2 > math.Abs(speed) {
		speed = 0
	} else {
		spin = 0
	}
	dt, t := (now - a.tread.at).Seconds(), &a.tread
	a.accelerates = 0
	if t.moving || speed != 0 {
		if t.known && dt > 0 {
			a.accelerates = (speed - t.speed) / dt
		}
		a.set("Robot_Vic_Tread_Speed", speed)
		a.set("Robot_Vic_Tread_Accelerate", a.accelerates)
	}
	if spin != 0 || a.spin != 0 {
		a.set("Robot_Vic_Tread_Spin_Speed", spin)
	}
	*t, a.spin = course{known: true, moving: speed != 0 || t.speed != 0, at: now, speed: speed}, spin
}

// moving returns how fast the treads drove the body when robotd told of it last: m/s and m/s² forward.
func (a *activity) moving() (speed, acceleration float64) {
	return a.tread.speed / 1000, a.accelerates / 1000
}
