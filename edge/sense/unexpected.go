package sense

import (
	"fmt"
	"math"
	"time"
)

// Unexpectedness is how the body turned otherwise than its treads should have turned it, with its published value (VEC-IMU-15). There is no
// zero that means nothing: Unexpected.Step says whether there was one.
type Unexpectedness uint8

// The types.
const (
	TurnedButStopped Unexpectedness = iota
	TurnedInSameDirection
	TurnedInOppositeDirection
	RotatingWithoutMotors
)

var unexpectedNames = [...]string{"TURNED_BUT_STOPPED", "TURNED_IN_SAME_DIRECTION", "TURNED_IN_OPPOSITE_DIRECTION", "ROTATING_WITHOUT_MOTORS"}

func (u Unexpectedness) String() string {
	if int(u) < len(unexpectedNames) {
		return unexpectedNames[u]
	}
	return fmt.Sprintf("unexpected(%d)", uint8(u))
}

// Side is where the cause is, as far as the drive tells: it drove or turned towards it (VEC-IMU-15). The zero value is unknown; the source
// spells it UNKOWN.
type Side uint8

// The sides.
const (
	SideUnknown Side = iota
	SideFront
	SideBack
	SideLeft
	SideRight
)

var sideNames = [...]string{"UNKNOWN", "FRONT", "BACK", "LEFT", "RIGHT"}

func (s Side) String() string {
	if int(s) < len(sideNames) {
		return sideNames[s]
	}
	return fmt.Sprintf("side(%d)", uint8(s))
}

// Movement is one unexpected movement.
type Movement struct {
	Type Unexpectedness
	Side Side
}

// UnexpectedConfig sets what counts; the source gives no number.
type UnexpectedConfig struct {
	Least float64       // rad/s: a slower turn is none
	Share float64       // of the turn wanted; with less it stopped
	More  float64       // times the turn wanted; with more something turned it further
	Drive float64       // m/s: slower is not driving
	Hold  time.Duration // it must be so without a break for this long: treads need time to follow
	Rest  time.Duration // and all must be as wanted for this long until the next one is told
}

// DefaultUnexpected are our own defaults.
var DefaultUnexpected = UnexpectedConfig{Least: 0.35, Share: 0.3, More: 1.7, Drive: 0.01, Hold: 300 * time.Millisecond, Rest: 500 * time.Millisecond}

// UnexpectedInput is one new sample.
type UnexpectedInput struct {
	Turn      float64 // rad/s about Z of the body, by the gyro, without its bias
	WantTurn  float64 // as the treads are commanded
	WantSpeed float64 // m/s
	OnTreads  bool    // in a hand everything turns
}

// Unexpected compares how the body turns with how its treads are commanded. NewUnexpected makes one.
type Unexpected struct {
	cfg  UnexpectedConfig
	last Unexpectedness
	odd  bool // the sample before was as last says
	held time.Duration
	told bool
}

// NewUnexpected returns one that has seen nothing.
func NewUnexpected(cfg UnexpectedConfig) Unexpected { return Unexpected{cfg: cfg} }

// Step takes in a sample, dt after the one before, and reports an unexpected movement once each time.
func (u *Unexpected) Step(dt time.Duration, in UnexpectedInput) (m Movement, ok bool) {
	dt = min(max(dt, 0), maxGap)
	kind, odd := u.classify(&in)
	if !odd {
		if u.odd {
			u.odd, u.held = false, 0
		} else if u.held += dt; u.held >= u.cfg.Rest {
			u.told = false
		}
		return Movement{}, false
	}
	if !u.odd || kind != u.last {
		u.odd, u.last, u.held = true, kind, 0
		return Movement{}, false
	}
	if u.held += dt; u.told || u.held < u.cfg.Hold {
		return Movement{}, false
	}
	u.told = true
	return Movement{Type: kind, Side: u.side(&in)}, true
}

// classify says what a sample is. What is no number, or not on the treads, is nothing.
func (u *Unexpected) classify(in *UnexpectedInput) (kind Unexpectedness, odd bool) {
	c := &u.cfg
	turn, want := math.Abs(in.Turn), math.Abs(in.WantTurn)
	switch {
	case !in.OnTreads || math.IsNaN(in.Turn+in.WantTurn+in.WantSpeed) || math.IsInf(in.Turn+in.WantTurn, 0):
		return 0, false
	case want < c.Least:
		// A straight drive that is turned has motors: what turns it does so against them, in whatever direction they do not want.
		if turn < c.Least {
			return 0, false
		}
		if math.Abs(in.WantSpeed) < c.Drive && want == 0 {
			return RotatingWithoutMotors, true
		}
		if in.Turn*in.WantTurn > 0 {
			return TurnedInSameDirection, turn > want+c.Least
		}
		return TurnedInOppositeDirection, true
	case in.Turn*in.WantTurn < 0 && turn >= c.Least:
		return TurnedInOppositeDirection, true
	case turn < c.Share*want:
		return TurnedButStopped, true
	}
	return TurnedInSameDirection, turn > c.More*want+c.Least
}

// side is where it drove to, or turned to if it drove nowhere.
func (u *Unexpected) side(in *UnexpectedInput) Side {
	switch {
	case in.WantSpeed >= u.cfg.Drive:
		return SideFront
	case in.WantSpeed <= -u.cfg.Drive:
		return SideBack
	case in.WantTurn > 0:
		return SideLeft
	case in.WantTurn < 0:
		return SideRight
	}
	return SideUnknown
}
