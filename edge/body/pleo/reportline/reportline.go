// Package reportline is the line of text by which Pleo tells a computer on its serial port how it is: where its joints are, and what its sensors read.
//
//	report 1 SEQ FIRMWARE HELD STALLED APP SOUNDS LEFT JOINT... SENSOR... *FCS
//
// All fields are whole numbers in decimal, between single spaces; FCS is the check sequence of RFC 1662 over all before the asterisk, as four hexadecimal
// digits. LifeOS prints it when the monitor is told "report MS", at that period, beside all else that the monitor prints. The programming guide has no such
// command: it is an own addition, because the commands that are known cannot read a joint.
//
// A second line follows now and then, with what moves Pleo from within: its properties and drives.
//
//	drives 1 PROPERTY... COUNT [NAME VALUE LOW HIGH]... *FCS
package reportline

import (
	"bytes"
	"fmt"
	"strconv"

	"kennel/edge/body/pleo/hdlc"
)

// Joints is how many joints there are, in the order of their ids (PLEO-JNT-01).
const Joints = 14

// Sensors are the ids of the sensors in a report, in its order.
var Sensors = [...]uint8{2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 23, 24, 26, 28, 29, 31, 32, 33, 34, 35, 36, 38, 39, 112, 113}

// Index returns the place of a sensor in a report; -1: it is not in it.
func Index(id uint8) int { return bytes.IndexByte(Sensors[:], id) }

// MaxLine is longer than any report, in bytes.
const MaxLine = 640

// version of the line.
const version = 1

// Report holds the fields of one line. A body that was never heard has the zero value.
type Report struct {
	Seq      uint32              // counts reports since power-on
	Firmware uint16              // 110 of 1.1
	Held     uint16              // a bit for each joint that the computer holds
	Stalled  uint16              // a bit for each joint whose motor cannot move it
	App      bool                // an application runs
	Sounds   uint32              // how many sounds have begun since power-on
	Left     uint32              // ms of the sound that plays; 0: none does
	Joints   [Joints]int16       // tenths of a degree, as Pleo counts (PLEO-JNT-12)
	Sensors  [len(Sensors)]int32 // by Index
}

// Sensor returns the reading of a sensor that is in a report.
func (r *Report) Sensor(id uint8) int32 { return r.Sensors[Index(id)] }

const start = "report "

// Error says where a line is not a report.
type Error struct {
	Column          int // from 1, in bytes
	What            string
	Expected, Found string
}

// Error names the column, and what was expected and found.
func (e *Error) Error() string {
	return fmt.Sprintf("reportline: column %d: %s: expected %s, found %.40q", e.Column, e.What, e.Expected, e.Found)
}

// Append appends a report without the end of its line.
func Append(dst []byte, r *Report) []byte {
	at := len(dst)
	dst = append(dst, start...)
	dst = strconv.AppendInt(dst, version, 10)
	app := uint64(0)
	if r.App {
		app = 1
	}
	for _, v := range [...]uint64{uint64(r.Seq), uint64(r.Firmware), uint64(r.Held), uint64(r.Stalled), app, uint64(r.Sounds), uint64(r.Left)} {
		dst = strconv.AppendUint(append(dst, ' '), v, 10)
	}
	for _, v := range r.Joints {
		dst = strconv.AppendInt(append(dst, ' '), int64(v), 10)
	}
	for _, v := range r.Sensors {
		dst = strconv.AppendInt(append(dst, ' '), int64(v), 10)
	}
	return end(dst, at)
}

// Is reports whether a line of the monitor is meant to be a report.
func Is(line []byte) bool { return len(line) >= len(start) && string(line[:len(start)]) == start }

// begin checks the word that begins a line, its check sequence and its version, and returns what is behind them.
func begin(line []byte, start string) (fields, error) {
	if len(line) < len(start) || string(line[:len(start)]) != start || len(line) > MaxLine {
		return fields{}, &Error{1, "line", start + "and at most 640 bytes in all", string(line[:min(len(line), 40)])}
	}
	star := bytes.LastIndexByte(line, '*')
	if star < 0 || len(line) != star+5 {
		return fields{}, &Error{len(line), "check sequence", "* and four digits at the end", string(line[max(star, 0):])}
	}
	fcs, ok := hex16(line[star+1:])
	if want := hdlc.FCS(line[:star]); !ok || fcs != want {
		return fields{}, &Error{star + 2, "check sequence", fmt.Sprintf("%04x", want), string(line[star+1:])}
	}
	f := fields{line: line[:star], at: len(start)}
	if v := f.next("version", 0, 1<<16); v != version && f.err == nil {
		return f, &Error{len(start) + 1, "version", strconv.Itoa(version), strconv.FormatInt(v, 10)}
	}
	return f, f.err
}

// end appends the check sequence to the line that begins at byte at of dst.
func end(dst []byte, at int) []byte {
	dst = append(dst, ' ')
	fcs := hdlc.FCS(dst[at:])
	const digits = "0123456789abcdef"
	return append(dst, '*', digits[fcs>>12], digits[fcs>>8&15], digits[fcs>>4&15], digits[fcs&15])
}

const word, long = 1<<16 - 1, 1<<32 - 1

// Parse reads a line, without its end, into r, which is unchanged after an error. It allocates nothing but errors.
func Parse(line []byte, r *Report) error {
	f, err := begin(line, start)
	if err != nil {
		return err
	}
	var out Report
	out.Seq = uint32(f.next("sequence", 0, long))
	out.Firmware = uint16(f.next("firmware", 0, word))
	out.Held = uint16(f.next("joints that are held", 0, 1<<Joints-1))
	out.Stalled = uint16(f.next("joints that are stalled", 0, 1<<Joints-1))
	out.App = f.next("application", 0, 1) == 1
	out.Sounds = uint32(f.next("sounds", 0, long))
	out.Left = uint32(f.next("rest of the sound", 0, long))
	for i := range out.Joints {
		out.Joints[i] = int16(f.next("joint", -1800, 1800))
	}
	for i := range out.Sensors {
		out.Sensors[i] = int32(f.next("sensor", -1<<31, 1<<31-1))
	}
	if err := f.end(); err != nil {
		return err
	}
	*r = out
	return nil
}

// end returns the first error, or that something is left.
func (f *fields) end() error {
	if f.err == nil && f.at != len(f.line) {
		f.fail("end", "*", string(f.line[f.at:]))
	}
	return f.err
}

func hex16(b []byte) (v uint16, ok bool) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint16(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint16(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// fields reads numbers, each with a space behind it, until one is wrong.
type fields struct {
	line []byte
	at   int
	err  error
}

func (f *fields) fail(what, expected, found string) {
	f.err = &Error{f.at + 1, what, expected, found}
}

// next reads a number as Append writes it: no leading zero, no plus.
func (f *fields) next(what string, low, high int64) int64 {
	if f.err != nil {
		return 0
	}
	rest := f.line[f.at:]
	i, negative := 0, false
	if i < len(rest) && rest[0] == '-' {
		i, negative = 1, true
	}
	begin, v := i, int64(0)
	for ; i < len(rest) && rest[i] >= '0' && rest[i] <= '9' && v <= 1<<40; i++ {
		v = 10*v + int64(rest[i]-'0')
	}
	odd := i == begin || rest[begin] == '0' && (i > begin+1 || negative)
	if negative {
		v = -v
	}
	if odd || i == len(rest) || rest[i] != ' ' || v < low || v > high {
		f.fail(what, fmt.Sprintf("a number from %d to %d and a space", low, high), string(rest[:min(len(rest), 20)]))
		return 0
	}
	f.at += i + 1
	return v
}
