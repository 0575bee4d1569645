package format

import (
	"fmt"
	"slices"
)

const umf kind = "umf"

// Joint is the code of a joint or channel of a motion: two letters, the first in the low byte (PLEO-UMF-01).
type Joint uint16

// The joints and channels.
const (
	RightElbow     Joint = 0x4552
	LeftElbow      Joint = 0x454C
	RightShoulder  Joint = 0x5352
	LeftShoulder   Joint = 0x534C
	RightKnee      Joint = 0x4B52
	LeftKnee       Joint = 0x4B4C
	RightHip       Joint = 0x4852
	LeftHip        Joint = 0x484C
	Torso          Joint = 0x5354
	TailHorizontal Joint = 0x5448
	TailVertical   Joint = 0x5456
	NeckHorizontal Joint = 0x4E48
	NeckVertical   Joint = 0x4E56
	Eyes           Joint = 0x5945
	Jaw            Joint = 0x574A
	SoundChannel   Joint = 0x4453 // plays a resource
	Transition     Joint = 0x5254
	FootSwitch     Joint = 0x5346
	Head           Joint = 0x4448
)

// String returns the two letters.
func (j Joint) String() string { return string([]byte{byte(j), byte(j >> 8)}) }

const (
	umfSignature = "UGMF" // PLEO-UMF-02
	umfVersion   = 3
	umfHeader    = 46
	umfDegrees   = 1  // unit of angles; the others are deprecated (PLEO-UMF-07)
	umfJoints    = 19 // as many as the table in Pleo's memory holds (PLEO-UMF-11)
	umfVector    = 12
	umfGood      = 0xF00D // marks a vector (PLEO-UMF-14)
	umfDone      = 0xDEAD // marks the end
)

// Motion is a UMF file. Times are in units of Timebase.
type Motion struct {
	Name     string  // of the original file, without its end
	Timebase uint8   // milliseconds: 33 (PLEO-UMF-08)
	End      uint16  // when the motion ends (PLEO-UMF-10)
	Joints   []Joint // that Vectors move
	Vectors  []Vector
}

// Vector moves one joint to a position. On SoundChannel it plays the resource whose id is Position at Start (PLEO-UMF-13).
type Vector struct {
	Joint       Joint
	Start, Goal uint16
	Velocity    int16 // degrees a second
	Position    int16 // degrees
}

// ReadMotion returns the motion in file.
func ReadMotion(file []byte) (*Motion, error) {
	if err := umf.begin(file, umfSignature, umfHeader); err != nil {
		return nil, err
	}
	if file[4] != umfVersion {
		return nil, umf.refuse(4, "version", file[4], "%d", umfVersion)
	}
	if file[38] != umfDegrees {
		return nil, umf.refuse(38, "angle range", file[38], "%d, degrees", umfDegrees)
	}
	joints, vectors := int(file[37]), order.Uint32(file[40:])
	if joints > umfJoints {
		return nil, umf.refuse(37, "joints", joints, "at most %d", umfJoints)
	}
	begin := umfHeader + 2*joints
	if want := uint64(begin) + umfVector*uint64(vectors) + 2; want != uint64(len(file)) {
		return nil, umf.refuse(40, "vectors", vectors, "as many as %d bytes hold with %d joints and the end mark", len(file), joints)
	}
	m := &Motion{Name: name(file[5:]), Timebase: file[39], End: order.Uint16(file[44:]), Joints: make([]Joint, joints), Vectors: make([]Vector, vectors)}
	for i := range m.Joints {
		m.Joints[i] = Joint(order.Uint16(file[umfHeader+2*i:]))
	}
	for i := range m.Vectors {
		v := file[begin+umfVector*i:]
		if tag := order.Uint16(v); tag != umfGood {
			return nil, umf.refuse(begin+umfVector*i, fmt.Sprintf("vectors[%d].tag", i), fmt.Sprintf("%#x", tag), "%#x", umfGood)
		}
		m.Vectors[i] = Vector{Joint(order.Uint16(v[2:])), order.Uint16(v[4:]), order.Uint16(v[6:]), int16(order.Uint16(v[8:])), int16(order.Uint16(v[10:]))}
	}
	if tag := order.Uint16(file[len(file)-2:]); tag != umfDone {
		return nil, umf.refuse(len(file)-2, "end mark", fmt.Sprintf("%#x", tag), "%#x", umfDone)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// check refuses what no player can play.
func (m *Motion) check() error {
	if len(m.Joints) > umfJoints {
		return umf.refuse(37, "joints", len(m.Joints), "at most %d", umfJoints)
	}
	if m.Timebase == 0 {
		return umf.refuse(39, "timebase", m.Timebase, "at least 1 ms")
	}
	for i, v := range m.Vectors {
		at := umfHeader + 2*len(m.Joints) + umfVector*i
		if !slices.Contains(m.Joints, v.Joint) {
			return umf.refuse(at+2, fmt.Sprintf("vectors[%d].joint", i), fmt.Sprintf("%#04x", uint16(v.Joint)), "one of the table")
		}
		if i > 0 && v.Start < m.Vectors[i-1].Start {
			return umf.refuse(at+4, fmt.Sprintf("vectors[%d].start", i), v.Start, "at least %d: they are sorted", m.Vectors[i-1].Start) // PLEO-UMF-12
		}
	}
	return nil
}

// Append appends the file of m to dst.
func (m *Motion) Append(dst []byte) ([]byte, error) {
	if err := umf.checkName(5, "name", m.Name); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	dst = append(append(dst, umfSignature...), umfVersion)
	dst = appendName(dst, m.Name)
	dst = append(dst, byte(len(m.Joints)), umfDegrees, m.Timebase)
	dst = order.AppendUint32(dst, uint32(len(m.Vectors)))
	dst = order.AppendUint16(dst, m.End)
	for _, j := range m.Joints {
		dst = order.AppendUint16(dst, uint16(j))
	}
	for _, v := range m.Vectors {
		for _, word := range [...]uint16{umfGood, uint16(v.Joint), v.Start, v.Goal, uint16(v.Velocity), uint16(v.Position)} {
			dst = order.AppendUint16(dst, word)
		}
	}
	return order.AppendUint16(dst, umfDone), nil
}
