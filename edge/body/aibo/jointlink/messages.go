package jointlink

import (
	"encoding/binary"
	"fmt"
)

// Sizes of payloads, in bytes.
const (
	identitySize = 6
	goalSize     = 5
	stateHead    = 12
	stateJoint   = 6
)

// Identity says which body is at the other end.
type Identity struct {
	Version  uint8  // of the protocol
	Model    uint16 // the number of its ERS, such as 210
	Firmware uint16 // major version in the high byte, minor in the low one
	Joints   uint8
}

// Goal says where one joint shall be.
type Goal struct {
	Held     bool  // false: without power, a hand may move it
	Position int32 // micro-radian; 0 without power
}

// Goals are those of all joints. The zero value has none.
type Goals struct {
	N      int // how many joints count
	Joints [MaxJoints]Goal
}

// Status is a set of facts about the body.
type Status uint8

// Bits of Status.
const (
	PawFL   Status = 1 << iota // the paw is on the ground: front left
	PawFR                      // front right
	PawBL                      // back left
	PawBR                      // back right
	Charger                    // it is on its charger
	Fell                       // it tipped over since its paws were last on the ground
	Asleep                     // the joints have no power, because no Goals came
)

// Has reports whether all bits of q are set.
func (s Status) Has(q Status) bool { return s&q == q }

// Joint holds the measurements of one joint.
type Joint struct {
	Position int32 // micro-radian
	Load     int16 // thousandths of what the joint can bear, with the sign of its effort
}

// State holds the measurements of the body, sent every Period.
type State struct {
	Seq         uint32 // counts States; it begins again when the body restarts
	Status      Status
	MilliVolts  uint16 // of the battery
	Pitch, Roll int16  // mrad; a body that looks down has a positive pitch, one that leans to its right a positive roll
	N           int    // how many joints count
	Joints      [MaxJoints]Joint
}

// PayloadError says where a payload is not as its type demands.
type PayloadError struct {
	Type            Type
	What            string
	Offset          int // in the payload
	Expected, Found int
}

// Error names the field, its offset, and what was expected and found.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("jointlink: type %#02x, offset %d: %s: expected %d, found %d", uint8(e.Type), e.Offset, e.What, e.Expected, e.Found)
}

// AppendAsk appends the question for an Identity.
func AppendAsk(dst []byte) []byte { return seal(open(dst, AskType), len(dst)) }

// AppendIdentity appends an Identity.
func AppendIdentity(dst []byte, id Identity) []byte {
	start := len(dst)
	dst = append(open(dst, IdentityType), id.Version)
	dst = binary.LittleEndian.AppendUint16(dst, id.Model)
	dst = binary.LittleEndian.AppendUint16(dst, id.Firmware)
	return seal(append(dst, id.Joints), start)
}

// ParseIdentity reads the payload of an Identity.
func ParseIdentity(p []byte) (id Identity, err error) {
	if len(p) != identitySize {
		return id, &PayloadError{IdentityType, "bytes", len(p), identitySize, len(p)}
	}
	id = Identity{p[0], binary.LittleEndian.Uint16(p[1:]), binary.LittleEndian.Uint16(p[3:]), p[5]}
	if id.Joints > MaxJoints {
		return Identity{}, &PayloadError{IdentityType, "joints at most", 5, MaxJoints, int(id.Joints)}
	}
	return id, nil
}

// AppendGoals appends the goals of the first g.N joints, at most MaxJoints.
func AppendGoals(dst []byte, g *Goals) []byte {
	start, n := len(dst), min(max(g.N, 0), MaxJoints)
	dst = append(open(dst, GoalsType), byte(n))
	for _, j := range g.Joints[:n] {
		held := byte(0)
		if j.Held {
			held = 1
		}
		dst = binary.LittleEndian.AppendUint32(append(dst, held), uint32(j.Position))
	}
	return seal(dst, start)
}

// ParseGoals reads the payload of Goals into g, which is unchanged after an error.
func ParseGoals(p []byte, g *Goals) error {
	n, err := count(GoalsType, p, 0, 1, goalSize)
	if err != nil {
		return err
	}
	for i := range n {
		if held := p[1+i*goalSize]; held > 1 {
			return &PayloadError{GoalsType, "held at most", 1 + i*goalSize, 1, int(held)}
		}
	}
	*g = Goals{N: n}
	for i := range n {
		at := p[1+i*goalSize:]
		g.Joints[i] = Goal{at[0] == 1, int32(binary.LittleEndian.Uint32(at[1:]))}
	}
	return nil
}

// AppendState appends what a body with s.N joints measures, at most MaxJoints of them.
func AppendState(dst []byte, s *State) []byte {
	start, n := len(dst), min(max(s.N, 0), MaxJoints)
	dst = binary.LittleEndian.AppendUint32(open(dst, StateType), s.Seq)
	dst = append(dst, byte(s.Status))
	dst = binary.LittleEndian.AppendUint16(dst, s.MilliVolts)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(s.Pitch))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(s.Roll))
	dst = append(dst, byte(n))
	for _, j := range s.Joints[:n] {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(j.Position))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(j.Load))
	}
	return seal(dst, start)
}

// ParseState reads the payload of a State into s, which is unchanged after an error.
func ParseState(p []byte, s *State) error {
	n, err := count(StateType, p, stateHead-1, stateHead, stateJoint)
	if err != nil {
		return err
	}
	*s = State{
		Seq: binary.LittleEndian.Uint32(p), Status: Status(p[4]), MilliVolts: binary.LittleEndian.Uint16(p[5:]),
		Pitch: int16(binary.LittleEndian.Uint16(p[7:])), Roll: int16(binary.LittleEndian.Uint16(p[9:])), N: n,
	}
	for i := range n {
		at := p[stateHead+i*stateJoint:]
		s.Joints[i] = Joint{int32(binary.LittleEndian.Uint32(at)), int16(binary.LittleEndian.Uint16(at[4:]))}
	}
	return nil
}

// count returns the number of joints, which is at offset at of a payload, after checking the payload's size: head bytes and size bytes a joint.
func count(t Type, p []byte, at, head, size int) (int, error) {
	if len(p) < head {
		return 0, &PayloadError{t, "bytes at least", len(p), head, len(p)}
	}
	n := int(p[at])
	switch {
	case n > MaxJoints:
		return 0, &PayloadError{t, "joints at most", at, MaxJoints, n}
	case len(p) != head+n*size:
		return 0, &PayloadError{t, "bytes", len(p), head + n*size, len(p)}
	}
	return n, nil
}
