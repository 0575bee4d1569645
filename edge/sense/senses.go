package sense

import (
	"time"

	"kennel/edge/body"
)

// Inertial is the newest sample of the inertial sensors, in their own frame: m/s2 and rad/s.
type Inertial struct {
	Accel, Gyro Vec
	At          time.Duration // when it was measured, 0: the body has none
}

// Reading holds the newest values that a body's driver measured, and when.
type Reading struct {
	At      time.Duration // when the frame was read
	Epoch   uint32        // as body.Sense.Epoch
	Fresh   bool          // it came since the step before
	Power   body.Power
	Touch   float64       // 0 to 1 of the sensor's scale
	TouchAt time.Duration // 0: never
	Cliffs  [MaxCliffs]float64
	Button  bool
}

// Input is all that a step looks at.
type Input struct {
	Reading
	Inertial Inertial
	// Facts from the body's plant beyond its frames.
	HeadAngle, HeadRate float64 // rad, rad/s; raised is positive
	HeadUnknown         bool    // they are unknown
	LiftHeight          float64 // m
	Loaded              bool
	Driven              bool      // a motor is commanded or moves
	Prox                ProxInput // the sample; its lift and load are the two above
}

// State is the state of the senses after a step: a plain value to publish.
type State struct {
	Touched, Petting bool
	TouchRaw         float64 // the reading, 0 to 1
	TouchStats       TouchStats
	Cliffs           Set  // sensors that see no floor
	CliffsKnown      bool // they have power and were read
	Prox             Prox
	Button           bool
	Motion           Motion
}

// statusCliff is the bit of RobotStatus while any sensor sees no floor (VEC-IO-20).
const statusCliff = 0x4000

// RobotStatus returns the bits of RobotStatus that the senses decide, and that hold.
func (s *State) RobotStatus() uint32 {
	bits := s.Motion.RobotStatus()
	if s.CliffsKnown && s.Cliffs != 0 {
		bits |= statusCliff
	}
	return bits
}

// Events lists the events of one step.
type Events struct {
	Touch   TouchEvents
	Cliff   CliffEvents
	Prox    ProxEvents
	Gesture Gesture
	Motion  MotionEvents
}

// Senses are all of them for one body. Not safe for concurrent use: the loop's goroutine owns it.
type Senses struct {
	Touch  Touch
	Cliffs Cliffs
	Prox   Ranging
	Button Button
	Motion *Mover

	epoch      uint32
	begun      bool
	frame, imu time.Duration // of the newest of each that was taken
}

// New returns the senses of a body with that many cliff sensors.
func New(cfg Config, cliffs int) (*Senses, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Senses{
		Touch: NewTouch(cfg.Touch), Cliffs: NewCliffs(cfg.Cliff, cliffs), Prox: NewRanging(cfg.Prox),
		Button: NewButton(cfg.Button), Motion: NewMover(cfg.Motion),
	}, nil
}

// Step takes in what is new at the time now, dt after the step before. A frame that is not fresh moves time only.
func (s *Senses) Step(now, dt time.Duration, in *Input) (st State, ev Events) {
	b := &in.Reading
	ev.Touch = s.Touch.Step(dt, TouchInput{Value: b.Touch, At: b.TouchAt, OnCharger: b.Power.Has(body.OnCharger)})
	if b.Fresh {
		between := b.At - s.frame
		if !s.begun || b.Epoch != s.epoch {
			between = 0
		}
		s.begun, s.epoch, s.frame = true, b.Epoch, b.At
		if b.Power.Has(body.SensorsOff) {
			s.Cliffs.Dark()
		} else {
			ev.Cliff = s.Cliffs.Step(between, &b.Cliffs)
		}
		ev.Gesture = s.Button.Step(now, b.Button, b.Power.Has(body.OnCharger))
	}
	prox := in.Prox
	prox.LiftHeight, prox.Loaded = in.LiftHeight, in.Loaded
	ev.Prox = s.Prox.Step(now, prox)
	if in.Inertial.At == 0 || now-in.Inertial.At > s.Motion.cfg.Stale {
		ev.Motion = s.Motion.Forget()
		s.imu = 0
	} else if in.Inertial.At > s.imu {
		between := in.Inertial.At - s.imu
		if s.imu == 0 {
			between = 0
		}
		s.imu = in.Inertial.At
		ev.Motion = s.Motion.Step(between, MotionInput{
			Accel: in.Inertial.Accel, Gyro: in.Inertial.Gyro, HeadAngle: in.HeadAngle, HeadRate: in.HeadRate, HeadUnknown: in.HeadUnknown,
			LiftHeight: in.LiftHeight, NoFloor: s.Cliffs.Known() && s.Cliffs.All(), Driven: in.Driven,
		})
		if ev.Motion&OffTreadsChanged != 0 && s.Motion.Motion().OffTreads == OnTreads {
			s.Cliffs.Relearn() // another floor
		}
	}
	return State{
		Touched: s.Touch.Touched(), Petting: s.Touch.Petting(), TouchRaw: b.Touch, TouchStats: s.Touch.Stats(),
		Cliffs: s.Cliffs.Low(), CliffsKnown: s.Cliffs.Known(), Prox: s.Prox.Prox(), Button: s.Button.Pressed(), Motion: s.Motion.Motion(),
	}, ev
}
