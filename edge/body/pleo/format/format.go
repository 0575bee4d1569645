// Package format reads and writes the files that Pleo plays and runs, byte for byte as its tools write them: sounds (USF), motions (UMF), commands (UCF), and the
// bundle that holds those of an application (URF). It also reads and writes what these are made of: project files (UPF), motions and commands as tables (CSV), and
// sounds as WAV files (PLEO-FMT-01). Scripts have package kennel/edge/pawn/amx.
//
// All are little-endian. A reader refuses a wrong signature or version, data that is cut off, and counts, offsets and sizes beyond the file; an *Error says
// where, what was found and what was expected (PLEO-FMT-02).
package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

var order = binary.LittleEndian

// MaxName is the longest name of a sound, motion, command or resource, in bytes.
const MaxName = 32

// Error says what is wrong in a file, or in a value that no file can hold.
type Error struct {
	Format      string // "usf", "umf", "ucf" or "urf"
	Offset      int    // byte of the file
	Field       string
	Found, Want string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: byte %d: %s is %s, want %s", e.Format, e.Offset, e.Field, e.Found, e.Want)
}

// kind is a format, for errors.
type kind string

func (k kind) refuse(offset int, field string, found any, want string, args ...any) error {
	return &Error{string(k), offset, field, fmt.Sprint(found), fmt.Sprintf(want, args...)}
}

// begin refuses a file that is shorter than its header, or has another signature.
func (k kind) begin(file []byte, signature string, size int) error {
	if len(file) < size {
		return k.refuse(len(file), "file", fmt.Sprintf("%d bytes long", len(file)), "a header of %d bytes", size)
	}
	if string(file[:4]) != signature {
		return k.refuse(0, "signature", fmt.Sprintf("%q", file[:4]), "%q", signature)
	}
	return nil
}

// name returns the name in a field of 32 bytes, which need not end with a zero.
func name(field []byte) string {
	before, _, _ := bytes.Cut(field[:MaxName], []byte{0})
	return string(before)
}

// appendName appends a field of 32 bytes.
func appendName(dst []byte, s string) []byte {
	dst = append(dst, s...)
	return append(dst, make([]byte, MaxName-len(s))...)
}

// checkName refuses a name that the field cannot hold.
func (k kind) checkName(offset int, field, s string) error {
	if len(s) > MaxName || bytes.IndexByte([]byte(s), 0) >= 0 {
		return k.refuse(offset, field, fmt.Sprintf("%.40q", s), "at most %d bytes without zeros", MaxName)
	}
	return nil
}
