package mtn

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// File is one motion. Its slices may be shared with nothing else: a File belongs to one goroutine at a time.
type File struct {
	Major, Minor uint16 // version; minor 0 and 1 are ERS-110's, 2 is everyone else's (MTN-11, MTN-12)
	Rate         uint16 // as written: ms of a frame, and 0 in files of ERS-110 (MTN-14); see Frame
	Options      uint32 // 0 in all known files (MTN-15)

	Name   string // of the chunk, such as "a_sleep#sit_Sleep_To_Sit"; see ParseName. At most 255 bytes, as the two others (MTN-23)
	Author string
	Format string // of the robot, such as "DRX-910"; see PlatformOf (MTN-22)

	Joints    []string // keys in the order of Keyframe.Joints; doubled and wrong ones included (MTN-26)
	DataType  uint32   // 0 in all known files (MTN-30)
	Keyframes []Keyframe

	Layout Layout // the zero value is the writer's own

	angles []int32 // the memory of Keyframe.Joints, for the next Parse
}

// Keyframe is one posture and how long the way to it takes.
type Keyframe struct {
	Interp uint32   // frames after the keyframe before, less one; 0 in the first, which has no time of its own (MTN-35)
	RPY    [3]int32 // roll, pitch and yaw of the body, micro-radian; AIBO's player ignores them (MTN-31)
	Joints []int32  // micro-radian, one for each of File.Joints (MTN-33)
}

// Frame is the time of a frame, whatever File.Rate says: the vendor's player never reads it (MTN-14, MTN-54).
const Frame = 16 * time.Millisecond

// Duration returns the time from the first keyframe to the last (MTN-36). It saturates after 292 years.
func (f *File) Duration() time.Duration {
	var frames uint64
	for i := 1; i < len(f.Keyframes); i++ {
		frames += uint64(f.Keyframes[i].Interp) + 1
	}
	return time.Duration(min(frames, math.MaxInt64/uint64(Frame))) * Frame
}

// Layout says where the bytes of a file differ from those that Append would choose. What is nil or 0 does not differ.
type Layout struct {
	Sections *uint32  `json:"sections,omitempty"` // instead of 4 (MTN-10)
	Count    *uint16  `json:"count,omitempty"`    // of keyframes in the header, instead of as many as there are (MTN-32)
	Length   *uint32  `json:"length,omitempty"`   // of block 3, instead of its own (MTN-32, MTN-39)
	Head     int      `json:"head,omitempty"`     // bytes of block 3 before its first keyframe: 10 or 12, against the version (MTN-38)
	Pad      [4]Bytes `json:"pad,omitzero"`       // at the end of each block, counted in its length (MTN-05)
	Gap      [4]Bytes `json:"gap,omitzero"`       // before each block, counted nowhere (MTN-04); always nil for block 0
	Tail     Bytes    `json:"tail,omitempty"`     // behind block 3 (MTN-06)
}

// IsZero reports whether the layout is the writer's own.
func (l Layout) IsZero() bool {
	for i := range l.Pad {
		if l.Pad[i] != nil || l.Gap[i] != nil {
			return false
		}
	}
	return l.Sections == nil && l.Count == nil && l.Length == nil && l.Head == 0 && l.Tail == nil
}

// Bytes are hexadecimal digits in JSON. Nil is "as the writer would" and null.
type Bytes []byte

// MarshalJSON writes the digits.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(hex.EncodeToString(b))
}

// UnmarshalJSON reads digits.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var digits *string
	if err := json.Unmarshal(text, &digits); err != nil {
		return err
	}
	if *b = nil; digits == nil {
		return nil
	}
	raw, err := hex.DecodeString(*digits)
	*b = append(Bytes{}, raw...)
	return err
}

// Errors of Append and Encode.
var (
	ErrTooLong = errors.New("too long for the format")
	ErrUneven  = errors.New("keyframe has not one angle for each joint")
)

// tooLong says what is longer than the format can say.
func tooLong(what string, has, most int) error {
	return fmt.Errorf("%s: expected at most %d, found %d: %w", what, most, has, ErrTooLong)
}

// perDegree is the micro-radian of a degree, with the source's own pi.
const perDegree = 1e6 * 3.141592654 / 180

// MicroRadian returns an angle in degrees as files have it: truncated toward zero (MTN-34). Beyond 32 bits it saturates; NaN is 0.
func MicroRadian(degrees float64) int32 {
	switch v := math.Trunc(degrees * perDegree); {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt32:
		return math.MaxInt32
	case v <= math.MinInt32:
		return math.MinInt32
	default:
		return int32(v)
	}
}

// Degrees returns micro-radian in degrees (MTN-34).
func Degrees(microRadian int32) float64 { return float64(microRadian) / perDegree }

// Offsets are the places of a file's parts in its bytes, for findings.
type Offsets struct {
	Name, Format int64
	Joints       []int64 // of the length of each name
	first        int64
	stride       int64
}

// Offsets returns where the parts of f are.
func (f *File) Offsets() Offsets {
	var o Offsets
	end := func(block, from, content int) (next int) {
		pad := len(f.Layout.Pad[block])
		if f.Layout.Pad[block] == nil {
			pad = padding(f.Minor, block, content)
		}
		return from + content + pad
	}
	at := end(0, len(signature), header) + len(f.Layout.Gap[1])
	o.Name = int64(at + headSize)
	o.Format = o.Name + int64(2+len(f.Name)+len(f.Author))
	at = end(1, at, headSize+3+len(f.Name)+len(f.Author)+len(f.Format)) + len(f.Layout.Gap[2])
	name := at + headSize + 2
	o.Joints = make([]int64, len(f.Joints))
	for i, s := range f.Joints {
		o.Joints[i] = int64(name)
		name += 1 + len(s)
	}
	at = end(2, at, name-at) + len(f.Layout.Gap[3])
	h := head(f.Minor)
	if f.Layout.Head != 0 {
		h = f.Layout.Head - 4
	}
	o.first, o.stride = int64(at+h), int64(frameSize+4*len(f.Joints))
	return o
}

// Keyframe returns where keyframe i begins, with its interp.
func (o Offsets) Keyframe(i int) int64 { return o.first + int64(i)*o.stride }

// Angle returns where the angle of joint j in keyframe i is.
func (o Offsets) Angle(i, j int) int64 { return o.Keyframe(i) + frameSize + 4*int64(j) }
