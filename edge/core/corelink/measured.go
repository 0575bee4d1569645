package corelink

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"kennel/infra/api/live"
)

// Measured are values as Packed has them: one string of bytes, since up to 50 updates a second of many slots come to each program.
//
//	value = slot (uvarint), age in ms (varint), flags, number (8 bytes of float64, the low byte first) if numberFlag, length (uvarint) and text if textFlag,
//	        infinite (varint) if infiniteFlag
//
// In JSON they are a list.
type Measured []live.Value

// The flags of a value.
const (
	numberFlag = 1 << iota
	textFlag
	infiniteFlag
	allFlags = numberFlag | textFlag | infiniteFlag
)

// leastNumber is how many bytes a value with a number has at least.
const leastNumber = 11

// MarshalCBOR returns m as a string of bytes. ErrMalformed: a number is not finite, a text is not UTF-8, or there are too many.
func (m Measured) MarshalCBOR() ([]byte, error) {
	if len(m) > maxElements {
		return nil, fmt.Errorf("%w: %d values, want at most %d", ErrMalformed, len(m), maxElements)
	}
	b := make([]byte, 0, 14*len(m))
	for i := range m {
		v, flags := &m[i], byte(0)
		if v.Number != nil {
			flags |= numberFlag
		}
		if v.Text != nil {
			flags |= textFlag
		}
		if v.Infinite != 0 {
			flags |= infiniteFlag
		}
		if v.Slot < 0 || v.Slot > math.MaxInt32 {
			return nil, fmt.Errorf("%w: slot %d", ErrMalformed, v.Slot)
		}
		b = append(binary.AppendVarint(binary.AppendUvarint(b, uint64(v.Slot)), v.AgeMS), flags)
		if v.Number != nil {
			if math.IsNaN(*v.Number) || math.IsInf(*v.Number, 0) {
				return nil, fmt.Errorf("%w: slot %d is %v", ErrMalformed, v.Slot, *v.Number)
			}
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*v.Number))
		}
		if v.Text != nil {
			if !utf8.ValidString(*v.Text) {
				return nil, fmt.Errorf("%w: text of slot %d is not UTF-8", ErrMalformed, v.Slot)
			}
			b = append(binary.AppendUvarint(b, uint64(len(*v.Text))), *v.Text...)
		}
		if v.Infinite != 0 {
			b = binary.AppendVarint(b, int64(v.Infinite))
		}
	}
	return encoding.Marshal(b)
}

// UnmarshalCBOR reads what MarshalCBOR wrote, and nothing else.
func (m *Measured) UnmarshalCBOR(data []byte) error {
	var b []byte
	if err := decoding.Unmarshal(data, &b); err != nil {
		return err
	}
	r := packed{b}
	numbers := make([]float64, 0, len(b)/leastNumber) // never grows: values point into it
	all := make(Measured, 0, cap(numbers))
	for len(r.b) > 0 {
		if len(all) == maxElements {
			return fmt.Errorf("%w: more than %d values", ErrMalformed, maxElements)
		}
		slot, ok := r.uvarint(math.MaxInt32)
		age, aged := r.varint()
		flags, flagged := r.take(1)
		if !ok || !aged || !flagged || flags[0] > allFlags {
			return r.wrong(len(all))
		}
		v := live.Value{Slot: int(slot), AgeMS: age}
		if flags[0]&numberFlag != 0 {
			raw, ok := r.take(8)
			if !ok {
				return r.wrong(len(all))
			}
			f := math.Float64frombits(binary.LittleEndian.Uint64(raw))
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return r.wrong(len(all))
			}
			numbers = append(numbers, f)
			v.Number = &numbers[len(numbers)-1]
		}
		if flags[0]&textFlag != 0 {
			n, ok := r.uvarint(MaxPayload)
			raw, there := r.take(int(n))
			if !ok || !there || !utf8.Valid(raw) {
				return r.wrong(len(all))
			}
			text := string(raw)
			v.Text = &text
		}
		if flags[0]&infiniteFlag != 0 {
			n, ok := r.varint()
			if v.Infinite = int(n); !ok || n == 0 || int64(v.Infinite) != n {
				return r.wrong(len(all))
			}
		}
		all = append(all, v)
	}
	if *m = nil; len(all) > 0 {
		*m = all
	}
	return nil
}

// packed reads the bytes of Measured. Its methods return false if bytes are missing or an encoding is longer than necessary.
type packed struct{ b []byte }

func (r *packed) wrong(n int) error {
	return fmt.Errorf("%w: value %d of an update, %d bytes before its end", ErrMalformed, n, len(r.b))
}

func (r *packed) take(n int) ([]byte, bool) {
	if n > len(r.b) {
		return nil, false
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head, true
}

func (r *packed) uvarint(most uint64) (uint64, bool) {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most || n > 1 && r.b[n-1] == 0 {
		return 0, false
	}
	r.b = r.b[n:]
	return v, true
}

func (r *packed) varint() (int64, bool) {
	u, ok := r.uvarint(math.MaxUint64)
	return int64(u>>1) ^ -int64(u&1), ok
}
