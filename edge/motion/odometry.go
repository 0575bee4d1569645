package motion

import (
	"math"
	"time"
)

// OdometryConfig sets the fusion of encoders and gyro. All are own defaults; width and slip are measured per model (VEC-MCT-13).
type OdometryConfig struct {
	Slip        float64       // share of a tread's travel that moves nothing, 0 to 1
	PushSlip    float64       // what a full load adds to it
	GyroShare   float64       // of the change of heading, the rest is the treads'
	SlipRate    float64       // rad/s between gyro and treads that means slip: then only the gyro counts
	RestRate    float64       // rad/s while the treads rest: a slower turn is noise, a faster one a hand that turns the body
	GyroStale   time.Duration // an older reading does not count
	GyroSpan    time.Duration // the longest time between two measurements that one reading can speak for; beyond it only the treads count
	Coast       time.Duration // a tread may move this long after its power went
	CoastMetres float64       // and this far later, before it is a hand
}

// Gyro is one reading of the rate about Z.
type Gyro struct {
	Rate float64       // rad/s, counter-clockwise positive, without the bias
	At   time.Duration // when it was measured; 0: there is none
}

// Odometers grow with travel, in metres, from 0 at each start. What they grow by survives a reboot in the lifetime statistics, which the agent keeps
// (VEC-MCT-16).
type Odometers struct{ Left, Right, Body float64 }

// Odometer sums up a way, back and forth. What is less than hesitation in either direction waits:
// encoders count in steps, and on the spot one tread's step forward and the other's back are no way
// of the body. The zero value has counted nothing.
type Odometer struct{ total, waits float64 }

// hesitation is more than the steps of an encoder and less than a way that counts, in metres; own default.
const hesitation = 0.001

// Add takes in a signed way in metres.
func (o *Odometer) Add(way float64) {
	if o.waits += way; math.Abs(o.waits) >= hesitation {
		o.total += math.Abs(o.waits)
		o.waits = 0
	}
}

// Metres returns the way so far; it only grows.
func (o *Odometer) Metres() float64 { return o.total }

// Odometry follows the body's pose by its treads and gyro. It starts at the origin.
type Odometry struct {
	cfg       OdometryConfig
	drive     Drive
	pose      Pose
	twist     Twist
	meters    Odometers
	body      Odometer
	begun     bool
	last      [2]float64
	lastAt    time.Duration
	unpowered time.Duration
	byHand    float64
	slipping  bool
	lost      bool
}

// observe takes in the travel of both treads in metres at that time. load is how hard they push, 0 to 1; powered whether they are driven.
func (o *Odometry) observe(left, right float64, at time.Duration, g Gyro, load float64, powered bool) {
	if !o.begun {
		o.begun, o.last, o.lastAt = true, [2]float64{left, right}, at
		return
	}
	since := at - o.lastAt
	if since <= 0 {
		return
	}
	dt := since.Seconds()
	dl, dr := left-o.last[0], right-o.last[1]
	o.last, o.lastAt = [2]float64{left, right}, at
	o.meters.Left += math.Abs(dl)
	o.meters.Right += math.Abs(dr)

	moved := dl != 0 || dr != 0
	switch {
	case powered:
		o.unpowered, o.byHand = 0, 0
	case o.unpowered < o.cfg.Coast:
		o.unpowered += since
	case moved:
		// The body moves without being driven: a hand moves it, and encoders of one channel do not show the direction (VEC-MOT-11).
		if o.byHand += math.Abs(dl) + math.Abs(dr); o.byHand > o.cfg.CoastMetres {
			o.lost = true
		}
	}

	slip := min(max(o.cfg.Slip+o.cfg.PushSlip*load, 0), 1)
	dl, dr = dl*(1-slip), dr*(1-slip)
	turn := (dr - dl) / o.drive.Track
	o.slipping = false
	known := g.At > 0 && at-g.At <= o.cfg.GyroStale && since <= o.cfg.GyroSpan && finite(g.Rate)
	if turns := moved || powered || math.Abs(g.Rate) > o.cfg.RestRate; known && turns {
		share := o.cfg.GyroShare
		if math.Abs(g.Rate-turn/dt) > o.cfg.SlipRate {
			share, o.slipping = 1, true
		}
		turn = share*g.Rate*dt + (1-share)*turn
	}
	length := (dl + dr) / 2
	o.body.Add(length)
	o.meters.Body = o.body.Metres()
	o.pose = o.pose.advance(length, turn)
	o.twist = Twist{length / dt, turn / dt}
}

// rebase continues from new encoder positions after the body has restarted its count.
func (o *Odometry) rebase() { o.begun, o.twist = false, Twist{} }

// set puts the body elsewhere: something that sees knows better. Its odometry is reliable again.
func (o *Odometry) set(p Pose) { o.pose, o.lost, o.byHand = p, false, 0 }
