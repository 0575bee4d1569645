package spine

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"
)

// Indices of the tables in data frames (VEC-BODY-20).
const (
	LeftTread  = 0 // motors
	RightTread = 1
	Lift       = 2
	Head       = 3

	FrontLeft  = 0 // cliff sensors
	FrontRight = 1
	BackLeft   = 2
	BackRight  = 3
)

// Sizes of the body's data frame (VEC-BODY-B02, VEC-BODY-25).
const (
	BodyDataSize   = 768
	MicChannels    = 4
	MicSamples     = 80 // a channel
	micOffset      = 128
	motorOffset    = 8
	motorSize      = 12
	cliffOffset    = 56
	unknownOffset  = 102
	unknownSize    = micOffset - unknownOffset
	allMicSamples  = MicChannels * MicSamples
	numMotors      = 4
	numCliffs      = 4
	numLights      = 4
	FaultNone      = 0x00 // FaultDevice: no fault (part of VEC-BODY-18)
	FaultProximity = 0x52 // the time-of-flight sensor failed
	FaultCliff     = 0xa6 // a cliff sensor failed; FaultItem is its index
)

// Status is the status word of a body data frame.
type Status uint16

// Bits of Status.
const (
	SensorsPowered Status = 1 << iota // cliff and time-of-flight sensors are on
	EncodersOff
	HeadMoved
	LiftMoved
)

// Power is the battery word of a body data frame (VEC-BODY-23).
type Power uint16

// Bits of Power; bit 4 is reserved.
const (
	PadsPowered         Power = 1 << 0
	Charging            Power = 1 << 1
	BatteryDisconnected Power = 1 << 2
	Overheated          Power = 1 << 3
	BelowCritical       Power = 1 << 5
	ShutdownImminent    Power = 1 << 6
)

// MotorStatus is one motor as the body reports it (VEC-BODY-19).
type MotorStatus struct {
	Position int32  // encoder counts
	Delta    int32  // counts since the previous position
	Ticks    uint32 // since the last change; the unit is not documented
}

// BodyData is the data frame that the body sends each 5.12 ms (section 12.4 of the rows). Undocumented bytes are kept (VEC-BODY-21); their fields
// are named by their offset in a Genuine payload.
type BodyData struct {
	Layout          Layout // of the payload; ParsePayload and AppendFrame read it
	Seq             uint32 // not named in the source; counts frames
	Status          Status
	FaultDevice     uint8
	FaultItem       uint8
	Motors          [numMotors]MotorStatus
	Cliffs          [numCliffs]uint16 // reflected light (VEC-HW-14)
	BatteryRaw      int16             // 2.8 V / 2048 a count (VEC-BODY-22)
	ChargerRaw      int16             // same scale
	Temperature     int16             // degrees Celsius
	Power           Power
	Gap72           [2]byte
	ProxSigma       uint8 // mm; the low 4 bits are some state
	Gap75           uint8
	ProxRange       uint16 // mm
	ProxSignal      uint16 // mega counts per second, fixed point
	ProxAmbient     uint16 // same unit
	ProxSPADs       uint16
	ProxSamples     uint16 // changes when a new sample exists
	Gap86           [2]byte
	ProxCalibration uint32
	Touch           uint16 // ADC counts
	Button          uint16 // 0: released; a signal of its own (VEC-HW-05)
	MicIndices      [2]uint16
	ButtonRelated   uint16
	Gap102          [unknownSize]byte
	Mics            [allMicSamples]int16 // see Mic
}

// ParsePayload fills m from the payload of a TypeData frame, body to head.
func (m *BodyData) ParsePayload(p []byte) error {
	if len(p) != BodyDataSize {
		return fmt.Errorf("%w: body data has %d bytes, got %d", ErrSize, BodyDataSize, len(p))
	}
	m.parse((*[BodyDataSize]byte)(p)) // of a known length: checked once
	return nil
}

func (m *BodyData) parse(p *[BodyDataSize]byte) {
	le := binary.LittleEndian
	m.Seq = le.Uint32(p[0:])
	m.Status = Status(le.Uint16(p[4:]))
	m.FaultDevice, m.FaultItem = p[6], p[7]
	for i := range m.Motors {
		q := p[motorOffset+motorSize*i:]
		m.Motors[i] = MotorStatus{int32(le.Uint32(q[0:])), int32(le.Uint32(q[4:])), le.Uint32(q[8:])}
	}
	for i := range m.Cliffs {
		m.Cliffs[i] = le.Uint16(p[cliffOffset+2*i:])
	}
	m.BatteryRaw = int16(le.Uint16(p[64:]))
	m.ChargerRaw = int16(le.Uint16(p[66:]))
	m.Temperature = int16(le.Uint16(p[68:]))
	block, gap := m.Layout.power()
	q := p[block:][:blockSize]
	m.Power = Power(le.Uint16(q[0:]))
	m.Gap72 = [2]byte(q[2:])
	m.ProxSigma, m.Gap75 = q[4], q[5]
	m.ProxRange = le.Uint16(q[6:])
	m.ProxSignal = le.Uint16(q[8:])
	m.ProxAmbient = le.Uint16(q[10:])
	m.ProxSPADs = le.Uint16(q[12:])
	m.ProxSamples = le.Uint16(q[14:])
	m.Gap86 = [2]byte(p[gap:])
	m.ProxCalibration = le.Uint32(p[88:])
	m.Touch = le.Uint16(p[92:])
	m.Button = le.Uint16(p[94:])
	m.MicIndices = [2]uint16{le.Uint16(p[96:]), le.Uint16(p[98:])}
	m.ButtonRelated = le.Uint16(p[100:])
	m.Gap102 = [unknownSize]byte(p[unknownOffset:])
	copy(m.micBytes(), p[micOffset:])
	m.swapMics()
}

// micBytes returns the samples as bytes in memory, which equals their wire form on little-endian machines: 320 samples are most of a frame,
// and copying them one by one would take longer than all the rest.
func (m *BodyData) micBytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&m.Mics)), 2*allMicSamples)
}

// bigEndian is whether memory is not as the wire is. No robot's is.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// swapMics reorders samples between wire order and memory order.
func (m *BodyData) swapMics() {
	if bigEndian {
		for i, s := range m.Mics {
			m.Mics[i] = int16(bits.ReverseBytes16(uint16(s)))
		}
	}
}

// AppendFrame appends m as a frame, body to head.
func (m *BodyData) AppendFrame(dst []byte) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = open(dst, ToHead, TypeData)
	dst = append(dst, zeros[:]...)
	p := (*[BodyDataSize]byte)(dst[start+HeaderSize:])
	le.PutUint32(p[0:], m.Seq)
	le.PutUint16(p[4:], uint16(m.Status))
	p[6], p[7] = m.FaultDevice, m.FaultItem
	for i := range m.Motors {
		q := p[motorOffset+motorSize*i:][:motorSize]
		le.PutUint32(q[0:], uint32(m.Motors[i].Position))
		le.PutUint32(q[4:], uint32(m.Motors[i].Delta))
		le.PutUint32(q[8:], m.Motors[i].Ticks)
	}
	for i, c := range m.Cliffs {
		le.PutUint16(p[cliffOffset+2*i:], c)
	}
	le.PutUint16(p[64:], uint16(m.BatteryRaw))
	le.PutUint16(p[66:], uint16(m.ChargerRaw))
	le.PutUint16(p[68:], uint16(m.Temperature))
	block, gap := m.Layout.power()
	q := p[block:][:blockSize]
	le.PutUint16(q[0:], uint16(m.Power))
	q[2], q[3] = m.Gap72[0], m.Gap72[1]
	q[4], q[5] = m.ProxSigma, m.Gap75
	le.PutUint16(q[6:], m.ProxRange)
	le.PutUint16(q[8:], m.ProxSignal)
	le.PutUint16(q[10:], m.ProxAmbient)
	le.PutUint16(q[12:], m.ProxSPADs)
	le.PutUint16(q[14:], m.ProxSamples)
	p[gap], p[gap+1] = m.Gap86[0], m.Gap86[1]
	le.PutUint32(p[88:], m.ProxCalibration)
	le.PutUint16(p[92:], m.Touch)
	le.PutUint16(p[94:], m.Button)
	le.PutUint16(p[96:], m.MicIndices[0])
	le.PutUint16(p[98:], m.MicIndices[1])
	le.PutUint16(p[100:], m.ButtonRelated)
	copy(p[unknownOffset:micOffset], m.Gap102[:])
	m.swapMics()
	copy(p[micOffset:], m.micBytes())
	m.swapMics()
	return seal(dst, start)
}

// zeros make room for a payload.
var zeros [BodyDataSize]byte

// MicLayout is the layout of the microphone samples in a frame. The zero value is our reading of the source; the others exist because
// it names neither order nor sign (VEC-BODY-25).
type MicLayout struct {
	ChannelMajor bool // 80 samples of channel 0, then of channel 1, ...; else sample 0 of all four, then sample 1, ...
	Unsigned     bool // samples are 0 to 65535 around 32768; else signed
}

// Mic copies the samples of one channel, 0 to 3, at 15,625 Hz, signed, into out.
func (m *BodyData) Mic(out *[MicSamples]int16, channel int, layout MicLayout) {
	first, step := channel, MicChannels
	if layout.ChannelMajor {
		first, step = channel*MicSamples, 1
	}
	var flip int16
	if layout.Unsigned {
		flip = -1 << 15
	}
	for i := range out {
		out[i] = m.Mics[first+i*step] ^ flip
	}
}
