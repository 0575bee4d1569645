package mic

import (
	"fmt"

	"kennel/edge/mic/geometry"
)

// Defect says how a microphone fails.
type Defect uint8

// The defects. StuckBit + n says that bit n of its samples never changes.
const (
	Works    Defect = 0
	Dead     Defect = 1 // its level never changes
	StuckBit Defect = 16
)

// stuckFrames is how long microphones are watched before a judgement: 2 s.
const stuckFrames = 390

// deadRange is the range of a microphone that is dead. A quiet room moves a working one by some tens.
const deadRange = 3

// stuck watches the raw samples.
type stuck struct {
	frames   int
	low, top [geometry.Mics]int16
	or, and  [geometry.Mics]uint16

	known bool
	found [geometry.Mics]Defect
}

func (s *stuck) feed(f *geometry.Frame) {
	if s.frames == 0 {
		for ch := range geometry.Mics {
			v := f[ch]
			s.low[ch], s.top[ch], s.or[ch], s.and[ch] = v, v, uint16(v), uint16(v)
		}
	}
	for i := 0; i < len(f); i += geometry.Mics {
		for ch := range geometry.Mics {
			v := f[i+ch]
			s.low[ch], s.top[ch] = min(s.low[ch], v), max(s.top[ch], v)
			s.or[ch] |= uint16(v)
			s.and[ch] &= uint16(v)
		}
	}
	if s.frames++; s.frames < stuckFrames {
		return
	}
	s.frames, s.known = 0, true
	s.judge()
}

// judge finds the defects. A bit must change if the microphone moves by four times its weight, unless no microphone moves it: then the converter is not
// that fine.
func (s *stuck) judge() {
	moving := uint16(0)
	for ch := range geometry.Mics {
		moving |= s.or[ch] &^ s.and[ch]
	}
	for ch := range geometry.Mics {
		s.found[ch] = Works
		span := int(s.top[ch]) - int(s.low[ch])
		if span <= deadRange {
			s.found[ch] = Dead
			continue
		}
		for bit := 0; bit < 14 && span >= 4<<bit; bit++ {
			if m := uint16(1) << bit; moving&m != 0 && (s.or[ch]&m == 0 || s.and[ch]&m != 0) {
				s.found[ch] = StuckBit + Defect(bit)
				break
			}
		}
	}
}

// String says what is wrong.
func (d Defect) String() string {
	switch {
	case d == Works:
		return "works"
	case d == Dead:
		return "its level never changes"
	}
	return fmt.Sprintf("bit %d of its samples never changes", d-StuckBit)
}
