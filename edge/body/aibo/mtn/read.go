package mtn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// Mode says what a reader does about deviations that it can understand.
type Mode int

// The modes. Lenient keeps and reports them; Strict returns the first one that is a Warning as the error.
const (
	Lenient Mode = iota
	Strict
)

var signature = []byte("OMTN") // MTN-01

// The fixed sizes, in bytes.
const (
	headSize  = 8  // number and length of a block (MTN-03)
	header    = 24 // block 0 (MTN-09)
	shortHead = 6  // block 3 of ERS-110: number, and a length of 16 bits (MTN-37)
	frameSize = 16 // interp, roll, pitch, yaw; before the first keyframe the data type instead of interp (MTN-30)
	maxString = 255
)

// MaxSize is how much Decode reads: more than any motion of an AIBO, whose flash card had 8 MB.
const MaxSize = 64 << 20

// Decode reads r to its end as one file of at most MaxSize bytes.
func Decode(r io.Reader, m Mode) (*File, []Finding, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, nil, err
	}
	if len(b) > MaxSize {
		return nil, nil, tooLong("bytes of the file", len(b), MaxSize)
	}
	return Parse(b, m)
}

// Parse reads a file. The error is a Finding with the place; findings are what else was noticed, in the order of the file. The result shares no memory
// with b, and holds at most a small multiple of len(b), whatever the numbers in b say (MTN-07).
func Parse(b []byte, m Mode) (*File, []Finding, error) {
	f := &File{}
	found, err := f.Parse(b, m)
	if err != nil {
		return nil, found, err
	}
	return f, found, nil
}

// Parse is the function Parse, into the memory that f has; strings that are as they were stay. After an error f is of no meaning.
func (f *File) Parse(b []byte, m Mode) ([]Finding, error) {
	r := reader{b: b, mode: m}
	*f = File{Name: f.Name, Author: f.Author, Format: f.Format, Joints: f.Joints, Keyframes: f.Keyframes[:0], angles: f.angles}
	_ = r.read(f) // it is r.err
	return r.found, r.err
}

// reader walks through the blocks of a file.
type reader struct {
	b     []byte
	mode  Mode
	found []Finding
	err   error

	count uint16 // of keyframes, as the header says
}

// fail ends reading.
func (r *reader) fail(code string, at, block int, what, expected, found string) error {
	r.err = Finding{Fault, code, int64(at), block, what, expected, found}
	return r.err
}

// note records a finding; in Strict mode a Warning ends reading.
func (r *reader) note(s Severity, code string, at, block int, what, expected, found string) error {
	f := Finding{s, code, int64(at), block, what, expected, found}
	if r.mode == Strict && s == Warning {
		f.Severity = Fault
		r.err = f
		return r.err
	}
	r.found = append(r.found, f)
	return nil
}

// number notes a number that is not the one expected.
func (r *reader) number(s Severity, code string, at, block int, what string, expected, found uint64) error {
	if expected == found {
		return nil
	}
	return r.note(s, code, at, block, what, fmt.Sprint(expected), fmt.Sprint(found))
}

func (r *reader) read(f *File) error {
	if !bytes.HasPrefix(r.b, signature) {
		return r.fail(CodeSignature, 0, -1, "not an MTN file: signature", fmt.Sprintf("%q", signature), fmt.Sprintf("%q", r.b[:min(4, len(r.b))]))
	}
	at, err := r.header(f)
	if err == nil {
		at, err = r.strings(f, at)
	}
	if err == nil {
		at, err = r.joints(f, at)
	}
	if err == nil {
		err = r.keyframes(f, at)
	}
	return err
}

// block finds block n at or shortly behind an offset and returns where its content begins and where it ends (MTN-04).
func (r *reader) block(f *File, at, n int) (from, to int, err error) {
	start, need := at, headSize
	if n == 3 {
		need = head(f.Minor)
	}
	if n > 0 && !r.begins(at, n, need) {
		for _, align := range []int{4, 8} {
			if next := (at + align - 1) &^ (align - 1); next != at && r.begins(next, n, need) {
				start = next
				break
			}
		}
	}
	switch {
	case start+need > len(r.b):
		return 0, 0, r.fail(CodeTruncated, at, n, "head of the block", fmt.Sprintf("%d bytes", need), fmt.Sprintf("%d", max(0, len(r.b)-start)))
	case start == at && !r.begins(at, n, need):
		return 0, 0, r.fail(CodeBlockNumber, at, n, "block number", fmt.Sprint(n), fmt.Sprint(binary.LittleEndian.Uint32(r.b[at:])))
	case start != at:
		f.Layout.Gap[n] = bytes.Clone(r.b[at:start])
		if err := r.note(Warning, CodeRepaired, start, n, "block begins behind the end of the block before", fmt.Sprintf("%#x", at), fmt.Sprintf("%#x", start)); err != nil {
			return 0, 0, err
		}
	}
	if n == 3 {
		return start, 0, nil // its length is not always 32 bits
	}
	least := headSize
	if n == 0 {
		least = header
	}
	length := uint64(binary.LittleEndian.Uint32(r.b[start+4:]))
	if length < uint64(least) {
		return 0, 0, r.fail(CodeBlockLength, start+4, n, "block length", fmt.Sprintf("at least %d", least), fmt.Sprint(length))
	}
	if length > uint64(len(r.b)-start) {
		return 0, 0, r.fail(CodeBlockLength, start+4, n, "block length", fmt.Sprintf("at most %d, the rest of the file", len(r.b)-start), fmt.Sprint(length))
	}
	return start + headSize, start + int(length), nil
}

// begins reports whether the number of block n is at an offset, with a head of so many bytes.
func (r *reader) begins(at, n, need int) bool {
	return at+need <= len(r.b) && binary.LittleEndian.Uint32(r.b[at:]) == uint32(n)
}

// header reads block 0 (MTN-08 to 15) and returns where block 1 is expected.
func (r *reader) header(f *File) (int, error) {
	at, end, err := r.block(f, len(signature), 0)
	if err != nil {
		return 0, err
	}
	le, b := binary.LittleEndian, r.b
	sections := le.Uint32(b[at:])
	f.Major, f.Minor, r.count = le.Uint16(b[at+4:]), le.Uint16(b[at+6:]), le.Uint16(b[at+8:])
	f.Rate, f.Options = le.Uint16(b[at+10:]), le.Uint32(b[at+12:])
	if sections != 4 {
		f.Layout.Sections = new(sections)
		err = r.number(Warning, CodeSections, at, 0, "number of sections", 4, uint64(sections))
	}
	if err == nil && (f.Major != 1 || f.Minor > 2) {
		err = r.note(Warning, CodeVersion, at+4, 0, "version", "1.0, 1.1 or 1.2", fmt.Sprintf("%d.%d", f.Major, f.Minor))
	}
	if err == nil && (f.Rate != 0 || f.Minor > 1) {
		err = r.number(Note, CodeRate, at+10, 0, "ms of a frame, which are played as 16", 16, uint64(f.Rate))
	}
	if err == nil {
		err = r.number(Warning, CodeOptions, at+12, 0, "options", 0, uint64(f.Options))
	}
	if err == nil && end != at-headSize+header {
		err = r.number(Warning, CodeBlockLength, at-4, 0, "block length", header, uint64(end-at+headSize))
	}
	if err == nil {
		err = r.padding(f, 0, at-headSize, at-headSize+header, end)
	}
	return end, err
}

// padding takes in the bytes from an offset to the end of a block that begins at start (MTN-05).
func (r *reader) padding(f *File, n, start, from, end int) error {
	pad, clean := r.b[from:end], true
	for i, c := range pad {
		if c != 0 {
			clean = false
			if err := r.note(Warning, CodePadding, from+i, n, "padding", "0", fmt.Sprint(c)); err != nil {
				return err
			}
			break
		}
	}
	if !clean || len(pad) != padding(f.Minor, n, from-start) {
		f.Layout.Pad[n] = append(Bytes{}, pad...)
	}
	return nil
}

// padding returns how many zeros the writer adds to a block with so many bytes: none in version 1.0, in others up to a multiple of 4 (MTN-05, MTN-40).
func padding(minor uint16, block, size int) int {
	if minor == 0 || block == 0 || block == 3 {
		return 0
	}
	return -size & 3
}

// text returns the string at an offset of block n and where the next one begins.
func (r *reader) text(at, end, n int, what string) (from, next int, err error) {
	if at >= end {
		return 0, 0, r.fail(CodeString, at, n, "length of "+what, "1 byte", "the end of the block")
	}
	size := int(r.b[at])
	if size > end-at-1 {
		return 0, 0, r.fail(CodeString, at, n, "length of "+what, fmt.Sprintf("at most %d, the rest of the block", end-at-1), fmt.Sprint(size))
	}
	return at + 1, at + 1 + size, nil
}

// strings reads block 1 (MTN-16, MTN-24) and returns where block 2 is expected.
func (r *reader) strings(f *File, at int) (int, error) {
	from, end, err := r.block(f, at, 1)
	if err != nil {
		return 0, err
	}
	start, base, all := from-headSize, from, "" // the three strings are parts of one
	for i, to := range [...]*string{&f.Name, &f.Author, &f.Format} {
		first, next, err := r.text(from, end, 1, [...]string{"the chunk name", "the author", "the format"}[i])
		if err != nil {
			return 0, err
		}
		if *to != string(r.b[first:next]) {
			if all == "" {
				all = string(r.b[base:end])
			}
			*to = all[first-base : next-base]
		}
		from = next
	}
	return end, r.padding(f, 1, start, from, end)
}

// joints reads block 2 (MTN-25, MTN-26) and returns where block 3 is expected.
func (r *reader) joints(f *File, at int) (int, error) {
	from, end, err := r.block(f, at, 2)
	if err != nil {
		return 0, err
	}
	start := from - headSize
	if end-from < 2 {
		return 0, r.fail(CodeBlockLength, start+4, 2, "block length", fmt.Sprint("at least ", headSize+2), fmt.Sprint(end-start))
	}
	count := int(binary.LittleEndian.Uint16(r.b[from:]))
	from += 2
	if count > end-from { // each name has a byte of length at least
		return 0, r.fail(CodeString, from-2, 2, "number of joints", fmt.Sprintf("at most %d, the rest of the block", end-from), fmt.Sprint(count))
	}
	had := f.Joints
	if len(had) != count {
		f.Joints, had = make([]string, count), nil
	}
	names, base := "", from // of all joints: each name is a part of it
	for i := range f.Joints {
		if from >= end || int(r.b[from]) > end-from-1 {
			_, _, err := r.text(from, end, 2, fmt.Sprint("the name of joint ", i))
			return 0, err
		}
		next := from + 1 + int(r.b[from])
		if had == nil || had[i] != string(r.b[from+1:next]) {
			if names == "" {
				names = string(r.b[base:end])
			}
			f.Joints[i] = names[from+1-base : next-base]
		}
		from = next
	}
	return end, r.padding(f, 2, start, from, end)
}

// head returns how many bytes of block 3 come before the data type, by the version (MTN-12, MTN-38).
func head(minor uint16) int {
	if minor < 2 {
		return shortHead
	}
	return headSize
}

// length returns what block 3 says of its length.
func (r *reader) length(at, head int) uint32 {
	if head == shortHead {
		return uint32(binary.LittleEndian.Uint16(r.b[at+4:]))
	}
	return binary.LittleEndian.Uint32(r.b[at+4:])
}

// keyframes reads block 3 (MTN-30 to 42) and what is behind it (MTN-06).
func (r *reader) keyframes(f *File, at int) error {
	at, _, err := r.block(f, at, 3)
	if err != nil {
		return err
	}
	stride := frameSize + 4*len(f.Joints)
	size, h := int64(r.count)*int64(stride), head(f.Minor)
	// The length confirms the version. A block 3 that fits another version to the byte, and not its own, is read as the other.
	own, other := int64(r.length(at, h)), shortHead+headSize-h
	fits := own == int64(h)+size || own == headSize+size || own == (int64(h)+size)&math.MaxUint16
	if whole := int64(other) + size; size > 0 && !fits && int64(len(r.b)-at) == whole && int64(r.length(at, other)) == whole {
		h, f.Layout.Head = other, other+4
		if err := r.number(Warning, CodeForm, at, 3, "bytes before the first keyframe", uint64(head(f.Minor)+4), uint64(other+4)); err != nil {
			return err
		}
	}
	from := at + h
	count := min(int(r.count), (len(r.b)-from)/stride)
	if err := r.missing(f, from, count, stride); err != nil {
		return err
	}
	if count > 0 {
		f.DataType = binary.LittleEndian.Uint32(r.b[from:])
		if err := r.number(Warning, CodeDataType, from, 3, "data type", 0, uint64(f.DataType)); err != nil {
			return err
		}
		f.frames(r.b[from:from+count*stride], count, len(f.Joints))
	}
	return r.rest(f, at, h, from+count*stride)
}

// missing says that the file has fewer keyframes than its header, if so (MTN-13, MTN-32).
func (r *reader) missing(f *File, at, count, stride int) error {
	switch {
	case r.count == 0:
		return r.note(Warning, CodeEmpty, -1, 3, "keyframes", "at least 1", "0")
	case count == 0:
		return r.fail(CodeTruncated, at, 3, "bytes of keyframes", fmt.Sprintf("%d of %d each", r.count, stride), fmt.Sprint(len(r.b)-at))
	case count < int(r.count):
		f.Layout.Count = new(r.count)
		return r.number(Warning, CodeMissing, at, 3, "keyframes", uint64(r.count), uint64(count))
	}
	return nil
}

// rest takes in the length of block 3, which begins at an offset and whose keyframes end at another, its padding and the bytes behind it.
func (r *reader) rest(f *File, at, h, end int) error {
	length := r.length(at, h)
	stop := at + int(min(uint64(length), uint64(len(r.b)-at))) // the block's end in the file
	stop = max(stop, end)
	own := uint32(stop - at)
	wrapped := h == shortHead && length == uint32(uint16(end-at)) // MTN-39
	switch {
	case length == own:
	case h == shortHead && length == own+headSize-shortHead || wrapped:
		f.Layout.Length = new(length) // MTN-41
		if err := r.number(Note, CodeLength, at+4, 3, "block length", uint64(own), uint64(length)); err != nil {
			return err
		}
	default:
		f.Layout.Length = new(length)
		if err := r.number(Warning, CodeLength, at+4, 3, "block length", uint64(own), uint64(length)); err != nil {
			return err
		}
	}
	if f.Layout.Count != nil { // a keyframe that is there in part
		f.Layout.Pad[3] = append(Bytes{}, r.b[end:stop]...)
		if len(f.Layout.Pad[3]) == 0 {
			f.Layout.Pad[3] = nil
		}
	} else if err := r.padding(f, 3, at, end, stop); err != nil {
		return err
	}
	if stop < len(r.b) {
		f.Layout.Tail = bytes.Clone(r.b[stop:])
		return r.number(Warning, CodeTail, stop, -1, "bytes behind the last block", 0, uint64(len(r.b)-stop))
	}
	return nil
}

// frames reads count keyframes of n angles, which b holds exactly.
func (f *File) frames(b []byte, count, n int) {
	f.Keyframes = slices.Grow(f.Keyframes[:0], count)[:count]
	f.angles = slices.Grow(f.angles[:0], count*n)[:count*n]
	angles, le := f.angles, binary.LittleEndian
	for i := range f.Keyframes {
		k := &f.Keyframes[i]
		k.Interp = le.Uint32(b)
		k.RPY = [3]int32{int32(le.Uint32(b[4:])), int32(le.Uint32(b[8:])), int32(le.Uint32(b[12:]))}
		k.Joints = angles[:n:n]
		readAngles(k.Joints, b[frameSize:frameSize+4*n])
		angles, b = angles[n:], b[frameSize+4*n:]
	}
	f.Keyframes[0].Interp = 0 // the data type
}

// readAngles fills to with the numbers in b, four at a time, since this is most of the work with a file.
func readAngles(to []int32, b []byte) {
	le := binary.LittleEndian
	for len(to) >= 4 && len(b) >= 16 {
		to[0], to[1] = int32(le.Uint32(b)), int32(le.Uint32(b[4:8]))
		to[2], to[3] = int32(le.Uint32(b[8:12])), int32(le.Uint32(b[12:16]))
		to, b = to[4:], b[16:]
	}
	for i := range to {
		to[i] = int32(le.Uint32(b[4*i:]))
	}
}
