package spine

import (
	"encoding/binary"
	"fmt"
)

// HeadDataSize is the payload size of the head's data frame (VEC-BODY-H02).
const HeadDataSize = 64

const (
	afterMotors = 16
	lightSize   = 3 * numLights
	headGap     = HeadDataSize - afterMotors - lightSize
)

// RGB is one light.
type RGB struct{ R, G, B uint8 }

// HeadData is the data frame with which the head answers each one of the body (VEC-BODY-30).
type HeadData struct {
	Layout  Layout           // of the payload; ParsePayload and AppendFrame read it
	Seq     uint32           // question mark in the source
	Control uint32           // power or charger control; meaning unknown, 0 until verified (VEC-BODY-32)
	Motors  [numMotors]int16 // sign = direction, magnitude = duty, 32767 = all (VEC-BODY-31)
	Lights  [numLights]RGB
	Gap     [headGap]byte // all others, in their order; a genuine head leaves garbage there
}

// ParsePayload fills m from the payload of a TypeData frame, head to body.
func (m *HeadData) ParsePayload(p []byte) error {
	if len(p) != HeadDataSize {
		return fmt.Errorf("%w: head data has %d bytes, got %d", ErrSize, HeadDataSize, len(p))
	}
	le := binary.LittleEndian
	m.Seq = le.Uint32(p[0:])
	m.Control = le.Uint32(p[4:])
	for i := range m.Motors {
		m.Motors[i] = int16(le.Uint16(p[8+2*i:]))
	}
	at := m.Layout.lights()
	parseLights(&m.Lights, p[at:])
	copy(m.Gap[copy(m.Gap[:], p[afterMotors:at]):], p[at+lightSize:])
	return nil
}

// AppendFrame appends m as a frame, head to body.
func (m *HeadData) AppendFrame(dst []byte) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = open(dst, ToBody, TypeData)
	dst = le.AppendUint32(dst, m.Seq)
	dst = le.AppendUint32(dst, m.Control)
	for _, v := range m.Motors {
		dst = le.AppendUint16(dst, uint16(v))
	}
	before := m.Layout.lights() - afterMotors
	dst = append(dst, m.Gap[:before]...)
	dst = appendLights(dst, &m.Lights)
	dst = append(dst, m.Gap[before:]...)
	return seal(dst, start)
}

func parseLights(lights *[numLights]RGB, p []byte) {
	for i := range lights {
		lights[i] = RGB{p[3*i], p[3*i+1], p[3*i+2]}
	}
}

func appendLights(dst []byte, lights *[numLights]RGB) []byte {
	for _, c := range lights {
		dst = append(dst, c.R, c.G, c.B)
	}
	return dst
}
