package mtn

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// Encode writes f to w, with one call of Write.
func Encode(w io.Writer, f *File) error {
	b, err := Append(nil, f)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// Append appends the bytes of f to dst. What Parse read comes out as it was (MTN-49); a File with the zero Layout gets the constants, the padding and the
// form of its version (MTN-50). ErrTooLong and ErrUneven name what the format cannot hold; then dst is returned unchanged.
func Append(dst []byte, f *File) ([]byte, error) {
	h, err := check(f)
	if err != nil {
		return dst, err
	}
	stride := frameSize + 4*len(f.Joints)
	l := &f.Layout
	b := append(slices.Grow(dst, size(f, h)), signature...)

	le := binary.LittleEndian
	b, start := begin(b, l, 0)
	b = le.AppendUint32(b, value(l.Sections, 4))
	b = le.AppendUint16(le.AppendUint16(b, f.Major), f.Minor)
	b = le.AppendUint16(le.AppendUint16(b, value(l.Count, uint16(len(f.Keyframes)))), f.Rate)
	b = end(le.AppendUint32(b, f.Options), f, 0, start)

	b, start = begin(b, l, 1)
	for _, s := range []string{f.Name, f.Author, f.Format} {
		b = append(append(b, byte(len(s))), s...)
	}
	b = end(b, f, 1, start)

	b, start = begin(b, l, 2)
	b = le.AppendUint16(b, uint16(len(f.Joints)))
	for _, s := range f.Joints {
		b = append(append(b, byte(len(s))), s...)
	}
	b = end(b, f, 2, start)

	b = append(b, l.Gap[3]...)
	own := h + len(f.Keyframes)*stride + len(l.Pad[3])
	if l.Length == nil && h == shortHead && own > math.MaxUint16 {
		return dst, tooLong("bytes of block 3 in version 1.0 and 1.1", own, math.MaxUint16) // MTN-39
	}
	b = le.AppendUint32(b, 3)
	if length := value(l.Length, uint32(own)); h == shortHead {
		b = le.AppendUint16(b, uint16(length))
	} else {
		b = le.AppendUint32(b, length)
	}
	b = appendFrames(b, f, stride)
	return append(append(b, l.Pad[3]...), l.Tail...), nil
}

// size returns how many bytes f has with the head h of block 3.
func size(f *File, h int) int {
	l := &f.Layout
	blocks := [4]int{header, headSize + 3 + len(f.Name) + len(f.Author) + len(f.Format), headSize + 2, h + len(f.Keyframes)*(frameSize+4*len(f.Joints))}
	for _, s := range f.Joints {
		blocks[2] += 1 + len(s)
	}
	all := len(signature) + len(l.Tail)
	for n, b := range blocks {
		pad := len(l.Pad[n])
		if l.Pad[n] == nil {
			pad = padding(f.Minor, n, b)
		}
		all += len(l.Gap[n]) + b + pad
	}
	return all
}

// value returns what a layout says, or else the writer's choice.
func value[T any](said *T, own T) T {
	if said != nil {
		return *said
	}
	return own
}

// begin appends what comes before block n, and its head without the length. It returns where the block begins.
func begin(b []byte, l *Layout, n int) ([]byte, int) {
	b = append(b, l.Gap[n]...)
	return append(b, byte(n), 0, 0, 0, 0, 0, 0, 0), len(b)
}

// end appends the padding of block n, and enters its length.
func end(b []byte, f *File, n, start int) []byte {
	if pad := f.Layout.Pad[n]; pad != nil {
		b = append(b, pad...)
	} else {
		b = append(b, make([]byte, padding(f.Minor, n, len(b)-start))...)
	}
	binary.LittleEndian.PutUint32(b[start+4:], uint32(len(b)-start))
	return b
}

// check refuses what the format cannot hold, and returns the bytes of block 3 before its data type.
func check(f *File) (h int, err error) {
	for _, s := range []struct{ what, text string }{{"chunk name", f.Name}, {"author", f.Author}, {"format", f.Format}} {
		if len(s.text) > maxString {
			return 0, tooLong(s.what, len(s.text), maxString)
		}
	}
	for i, s := range f.Joints {
		if len(s) > maxString {
			return 0, tooLong(fmt.Sprint("name of joint ", i), len(s), maxString)
		}
	}
	if len(f.Joints) > math.MaxUint16 {
		return 0, tooLong("joints", len(f.Joints), math.MaxUint16)
	}
	if len(f.Keyframes) > math.MaxUint16 {
		return 0, tooLong("keyframes", len(f.Keyframes), math.MaxUint16)
	}
	for i := range f.Keyframes {
		if n := len(f.Keyframes[i].Joints); n != len(f.Joints) {
			return 0, fmt.Errorf("keyframe %d: expected %d angles, found %d: %w", i, len(f.Joints), n, ErrUneven)
		}
	}
	switch h = head(f.Minor); f.Layout.Head {
	case 0:
	case shortHead + 4, headSize + 4:
		h = f.Layout.Head - 4
	default:
		return 0, fmt.Errorf("layout: bytes before the first keyframe: expected 10 or 12, found %d", f.Layout.Head)
	}
	if len(f.Keyframes) > 0 && f.Keyframes[0].Interp != 0 {
		return 0, fmt.Errorf("keyframe 0: interp: expected 0, since nothing is before it, found %d", f.Keyframes[0].Interp)
	}
	if len(f.Keyframes) == 0 && f.DataType != 0 {
		return 0, fmt.Errorf("data type: expected 0 in a file without keyframes, found %d", f.DataType)
	}
	if f.Layout.Gap[0] != nil {
		return 0, fmt.Errorf("layout: gap before block 0: expected none, found %d bytes", len(f.Layout.Gap[0]))
	}
	return h, nil
}

// appendFrames appends the keyframes, each of stride bytes; b has the room.
func appendFrames(b []byte, f *File, stride int) []byte {
	le, first := binary.LittleEndian, f.DataType
	for i := range f.Keyframes {
		k := &f.Keyframes[i]
		at := len(b)
		b = slices.Grow(b, stride)[:at+stride]
		p := b[at:]
		le.PutUint32(p, k.Interp|first) // the data type is in the place of the first keyframe's interp, which is 0
		le.PutUint32(p[4:], uint32(k.RPY[0]))
		le.PutUint32(p[8:], uint32(k.RPY[1]))
		le.PutUint32(p[12:], uint32(k.RPY[2]))
		putAngles(p[frameSize:], k.Joints)
		first = 0
	}
	return b
}

// putAngles fills b with numbers, four at a time.
func putAngles(b []byte, from []int32) {
	le := binary.LittleEndian
	for len(from) >= 4 && len(b) >= 16 {
		le.PutUint32(b, uint32(from[0]))
		le.PutUint32(b[4:8], uint32(from[1]))
		le.PutUint32(b[8:12], uint32(from[2]))
		le.PutUint32(b[12:16], uint32(from[3]))
		b, from = b[16:], from[4:]
	}
	for i, x := range from {
		le.PutUint32(b[4*i:], uint32(x))
	}
}
