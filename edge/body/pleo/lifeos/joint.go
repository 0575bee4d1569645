package lifeos

import (
	"math"

	"kennel/edge/body/pleo/format"
)

// Joint is the id of a motor (PLEO-JNT-01).
type Joint int32

// The joints. One motor moves eyes and mouth: a positive angle the eyes, a negative one the mouth (PLEO-JNT-14).
const (
	JointRightShoulder Joint = iota
	JointRightElbow
	JointLeftShoulder
	JointLeftElbow
	JointLeftHip
	JointLeftKnee
	JointRightHip
	JointRightKnee
	JointTorso
	JointTailHorizontal
	JointTailVertical
	JointNeckHorizontal
	JointNeckVertical
	JointHead
	JointCount
)

// JointKind describes a joint: name, range in degrees, and the most that its motor can in degrees a second (PLEO-JNT-13).
type JointKind struct {
	Name            string // without "JOINT_", in capitals
	Min, Max, Speed float64
	codes           []format.Joint // in motions
}

var jointKinds = [JointCount]JointKind{
	{"RIGHT_SHOULDER", -30, 55, 30, []format.Joint{format.RightShoulder}},
	{"RIGHT_ELBOW", 0, 90, 70, []format.Joint{format.RightElbow}},
	{"LEFT_SHOULDER", -30, 55, 30, []format.Joint{format.LeftShoulder}},
	{"LEFT_ELBOW", 0, 90, 70, []format.Joint{format.LeftElbow}},
	{"LEFT_HIP", -45, 40, 50, []format.Joint{format.LeftHip}},
	{"LEFT_KNEE", -70, 0, 50, []format.Joint{format.LeftKnee}},
	{"RIGHT_HIP", -45, 40, 50, []format.Joint{format.RightHip}},
	{"RIGHT_KNEE", -70, 0, 50, []format.Joint{format.RightKnee}},
	{"TORSO", -15, 15, 20, []format.Joint{format.Torso}},
	{"TAIL_HORIZONTAL", -90, 90, 200, []format.Joint{format.TailHorizontal}},
	{"TAIL_VERTICAL", -90, 90, 200, []format.Joint{format.TailVertical}},
	{"NECK_HORIZONTAL", -65, 55, 60, []format.Joint{format.NeckHorizontal}},
	{"NECK_VERTICAL", -75, 75, 40, []format.Joint{format.NeckVertical}},
	{"HEAD", -80, 85, 220, []format.Joint{format.Head, format.Eyes, format.Jaw}},
}

// Kind returns the description of a joint; j must be one.
func (j Joint) Kind() JointKind { return jointKinds[j] }

// String returns the name, such as NECK_HORIZONTAL.
func (j Joint) String() string {
	if j >= 0 && j < JointCount {
		return jointKinds[j].Name
	}
	return "NONE"
}

// jointOf returns the joint of a motion's channel, and whether it is one.
func jointOf(code format.Joint) (Joint, bool) {
	for j, k := range jointKinds {
		for _, c := range k.codes {
			if c == code {
				return Joint(j), true
			}
		}
	}
	return 0, false
}

// The units of angles (PLEO-JNT-02).
const (
	angleDegrees = iota
	angleVR      // 0 to 255 over the range of the joint
	angleMotor   // likewise
)

// The attributes of a joint (PLEO-JNT-07).
const (
	jointStatus = 1 + iota
	jointPosition
	jointPWM
	jointLoad
	jointSpeed
	jointTime
	jointSetpoint
	jointDeadband
	jointThreshold
)

// The status of a joint (PLEO-JNT-11).
const (
	jointIdle    = 0
	jointRunning = 1
	jointStalled = 4
)

// jointState is a joint as scripts see it.
type jointState struct {
	scripted          bool // only scripts move it (PLEO-JNT-10)
	held              bool // only a computer on the serial port moves it
	target            float64
	speed             float64
	given             bool // target was given
	deadband          int32
	threshold         int32
	min, max, neutral float64
	limited           bool // min, max and neutral were set
	offset            int32
}

// joint returns a joint of a script's argument; it logs an unknown one (PLEO-JNT-15).
func (s *System) joint(id int32) (*jointState, Joint, bool) {
	if id < 0 || id >= int32(JointCount) {
		s.log(Warning, LogJoint, "joint %d: want 0 to %d", id, JointCount-1)
		return nil, 0, false
	}
	j, k := &s.joints[id], &jointKinds[id]
	if !j.limited {
		j.min, j.max, j.limited, j.deadband = k.Min, k.Max, true, 1
	}
	return j, Joint(id), true
}

// toUnit converts degrees to the unit of a script.
func (j *jointState) toUnit(deg float64, unit int32) int32 {
	if unit == angleVR || unit == angleMotor {
		return int32(math.Round((deg - j.min) / (j.max - j.min) * 255))
	}
	return int32(math.Round(deg))
}

// degrees converts an angle of a script.
func (j *jointState) degrees(v, unit int32) float64 {
	if unit == angleVR || unit == angleMotor {
		return j.min + float64(v)/255*(j.max-j.min)
	}
	return float64(v)
}

// moveJoint lets a script move a joint, with a speed in units of the angle a second (PLEO-JNT-06). A joint that a motion moves is left to it, unless scripts
// control the joint (PLEO-JNT-10).
func (s *System) moveJoint(id, value, speed, unit int32) bool {
	j, joint, ok := s.joint(id)
	if !ok {
		return false
	}
	if j.held {
		s.log(Info, LogJoint, "%s: held by a computer", joint)
		return false
	}
	if !j.scripted && s.motions.owns(joint) {
		s.log(Info, LogJoint, "%s: moved by a motion", joint)
		return false
	}
	rate := math.Abs(j.degrees(speed, unit) - j.degrees(0, unit))
	s.moveTo(joint, j.degrees(value, unit), rate)
	s.log(Info, LogJoint, "%s to %.0f degrees at %.0f degrees a second", joint, j.target, j.speed)
	return true
}

// moveTo moves a joint within its range and speed.
func (s *System) moveTo(joint Joint, deg, speed float64) {
	j, _, _ := s.joint(int32(joint))
	if s.power != On {
		return
	}
	j.target, j.given = min(max(deg, j.min), j.max), true
	j.speed = min(max(speed, 1), jointKinds[joint].Speed)
	s.hw.Move(joint, j.target, j.speed)
}

// moving reports whether a joint is away from its target by more than its deadband (PLEO-JNT-09).
func (s *System) moving(id int32) bool {
	j, joint, ok := s.joint(id)
	return ok && j.given && math.Abs(s.hw.Joint(joint).Position-j.target) > float64(j.deadband)
}

// jointAttribute returns an attribute of a joint (PLEO-JNT-07).
func (s *System) jointAttribute(id, what int32) int32 {
	j, joint, ok := s.joint(id)
	if !ok {
		return 0
	}
	now := s.hw.Joint(joint)
	switch what {
	case jointStatus:
		switch {
		case now.Stalled:
			return jointStalled
		case s.moving(id):
			return jointRunning
		}
		return jointIdle
	case jointPosition:
		return int32(math.Round(now.Position))
	case jointPWM:
		return int32(math.Round(100 * now.Speed / jointKinds[joint].Speed))
	case jointLoad:
		return int32(math.Round(now.Loaded))
	case jointSpeed:
		return int32(math.Round(now.Speed))
	case jointTime:
		if !s.moving(id) {
			return 0
		}
		return int32(math.Round(1000 * math.Abs(j.target-now.Position) / j.speed))
	case jointSetpoint:
		return int32(math.Round(j.target))
	case jointDeadband:
		return j.deadband
	case jointThreshold:
		return j.threshold
	}
	return 0
}
