package pleosim

import (
	"math"

	"kennel/edge/body/pleo/legs"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/motion"
)

// topples is the lean in rad beyond which a Pleo falls over. Own choice.
const topples = 32 * math.Pi / 180

// floor is the place on which a Pleo is.
type floor struct {
	pose  motion.Pose
	falls int

	known  bool // what follows
	angles legs.Angles
	feet   legs.Feet
	stance legs.Stance
}

// lying are the readings of the tilt sensor after a fall (PLEO-SEN-29).
var lying = [...]int32{legs.LeftSide: 2, legs.RightSide: 3, legs.Nose: 4, legs.Tail: 5}

// limbs are the joints of each leg in the order of legs, upper and lower.
var limbs = [legs.Count][2]lifeos.Joint{{lifeos.JointLeftShoulder, lifeos.JointLeftElbow}, {lifeos.JointRightShoulder, lifeos.JointRightElbow},
	{lifeos.JointLeftHip, lifeos.JointLeftKnee}, {lifeos.JointRightHip, lifeos.JointRightKnee}}

// stand lets the legs move the body over the floor, and presses the switches of the feet that carry it. A body that is held, or lies, goes nowhere.
func (r *Robot) stand() {
	f := &r.floor
	if r.inHand || r.body.Read(sensorTilt) != onFeet {
		f.known = false
		return
	}
	var a legs.Angles
	for i, l := range limbs {
		a.Upper[i], a.Lower[i] = r.body.Joint(l[0]).Position, r.body.Joint(l[1]).Position
	}
	a.Torso = r.body.Joint(lifeos.JointTorso).Position
	if f.known && a == f.angles {
		return
	}
	feet := a.Place()
	stance := feet.Rest()
	if f.known {
		both := stance.Down
		for i := range both {
			both[i] = both[i] && f.stance.Down[i]
		}
		step := legs.Step(&f.feet, &feet, both)
		rest := 1 - r.cfg.Slip
		f.pose = legs.Moved(f.pose, motion.Pose{X: rest * step.X, Y: rest * step.Y, Theta: rest * step.Theta})
		for i, down := range stance.Down { // where nothing changed, a test may have set them
			if down != f.stance.Down[i] {
				r.body.Set(lifeos.SensorFrontLeft+lifeos.Sensor(i), count(down))
			}
		}
	}
	f.known, f.angles, f.feet, f.stance = true, a, feet, stance
	if stance.Lean > topples {
		r.feet(0)
		r.body.Set(sensorTilt, lying[stance.Low])
		f.falls++
	}
}
