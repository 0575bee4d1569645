package mtn

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The text form has one record a line; fields are separated by blanks, or in CSV by commas, and those of any other characters are quoted as in Go. A
// # begins a comment.
//
//	mtn 1.2                                        first; the version, or without it the platform's own
//	format DRX-910                                 before the joints
//	name a_sit#stand_rise
//	author kennel
//	joints interp roll pitch yaw HEAD_PITCH ...    by symbolic names or keys; "joints all" are the platform's; the four first words may be left out
//	unit deg                                       of the angles that follow: deg, or urad for micro-radian
//	keyframe 39 0 0 0 -10 ...                      interp, roll, pitch, yaw, and an angle for each joint
//	pose 640ms HEAD_PITCH=-10 MOUTH=-3             likewise, with the joints that change
//
// A time is interp or has a unit, such as 640ms or 1.5s. An angle that ends in u is micro-radian in any unit. Further records hold what is odd in a file:
// rate, options, type (of the data) and layout (a Layout in JSON).

// record is one line of a text form.
type record struct {
	fields  []string
	line    int
	columns []int // of each field, from 1
}

// Marks of the two forms in their first record.
const (
	firstWord = "mtn"
	all       = "all"
)

var columns = []string{"interp", "roll", "pitch", "yaw"}

// Build makes a file of any of the text forms: JSON, text or CSV, by how it begins. The error is a TextError.
func Build(b []byte) (*File, error) {
	switch trimmed := bytes.TrimLeft(b, " \t\r\n"); {
	case bytes.HasPrefix(trimmed, []byte("{")):
		return ParseJSON(b)
	case bytes.HasPrefix(trimmed, []byte(firstWord+",")):
		return parse(csvRecords(b))
	default:
		return parse(textRecords(b))
	}
}

// fault returns an error at field i of a record; past its fields, at the end of it.
func (r *record) fault(i int, what, expected, found string) error {
	column := 1
	if i < len(r.columns) {
		column = r.columns[i]
	} else if n := len(r.columns); n > 0 {
		column = r.columns[n-1] + len(r.fields[n-1])
	}
	return &TextError{r.line, column, what, expected, found}
}

// textRecords yields the records of text, until the first error.
func textRecords(b []byte) func(yield func(*record, error) bool) {
	return func(yield func(*record, error) bool) {
		n := 0
		for line := range bytes.Lines(b) {
			n++
			r, err := split(string(line), n)
			if err == nil && len(r.fields) == 0 {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// split takes a line apart. A quoted field keeps its quotes.
func split(line string, n int) (*record, error) {
	r := &record{line: n}
	for at := 0; at < len(line); {
		switch c := line[at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			at++
			continue
		case c == '#':
			return r, nil
		}
		field := line[at:]
		if field[0] == '"' {
			quoted, err := strconv.QuotedPrefix(field)
			if err != nil {
				return r, &TextError{n, at + 1, "quoted text", "a closing quote and the escapes of Go", fmt.Sprintf("%.20q", field)}
			}
			field = quoted
		} else if end := strings.IndexAny(field, " \t\r\n"); end >= 0 {
			field = field[:end]
		}
		r.fields, r.columns = append(r.fields, field), append(r.columns, at+1)
		at += len(field)
	}
	return r, nil
}

// csvRecords yields the records of CSV, without the empty fields at the end that spreadsheets add.
func csvRecords(b []byte) func(yield func(*record, error) bool) {
	return func(yield func(*record, error) bool) {
		c := csv.NewReader(bytes.NewReader(b))
		c.FieldsPerRecord = -1
		for {
			fields, err := c.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if e, ok := errors.AsType[*csv.ParseError](err); ok {
				err = &TextError{Line: e.Line, Column: e.Column, What: "CSV", Expected: "fields between commas", Found: e.Err.Error()}
			}
			r := &record{}
			for i := range fields {
				line, column := c.FieldPos(i)
				r.line, r.columns = line, append(r.columns, column)
			}
			for len(fields) > 0 && fields[len(fields)-1] == "" {
				fields = fields[:len(fields)-1]
			}
			r.fields, r.columns = fields, r.columns[:len(fields)]
			if err == nil && (len(fields) == 0 || strings.HasPrefix(fields[0], "#")) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// builder makes a file of records.
type builder struct {
	f        *File
	platform Platform
	urad     bool // the unit of angles
	begun    bool
	joints   bool
	version  bool
	rate     bool
	named    []Resolved
}

// parse makes a file of records.
func parse(records func(yield func(*record, error) bool)) (*File, error) {
	b := builder{f: &File{Author: Author}}
	for r, err := range records {
		if err == nil {
			err = b.take(r)
		}
		if err != nil {
			return nil, err
		}
	}
	if !b.begun {
		return nil, &TextError{1, 1, "first word", firstWord, "an empty text"}
	}
	if _, err := check(b.f); err != nil {
		return nil, &TextError{What: err.Error()}
	}
	return b.f, nil
}

// take takes in one record.
func (b *builder) take(r *record) error {
	word, args := r.fields[0], r.fields[1:]
	if !b.begun {
		if b.begun = true; word != firstWord {
			return r.fault(0, "first word", firstWord, fmt.Sprintf("%.40q", word))
		}
		b.f.defaults(b.platform)
		if b.version = len(args) > 0; b.version && b.f.version(args[0]) != nil {
			return r.fault(1, "version", "two numbers such as 1.2", fmt.Sprintf("%.40q", args[0]))
		}
		return b.most(r, 1)
	}
	switch word {
	case "name", "author", "format", "rate", "options", "type", "layout", "unit":
		if len(args) != 1 {
			return r.fault(1, word, "one value", fmt.Sprint(len(args)))
		}
		return b.value(r, word, args[0])
	case "joints":
		return b.list(r, args)
	case "keyframe":
		return b.keyframe(r, args)
	case "pose":
		return b.pose(r, args)
	}
	return r.fault(0, "record", "name, author, format, rate, options, type, layout, unit, joints, keyframe or pose", fmt.Sprintf("%.40q", word))
}

// most refuses more than n fields behind the first.
func (b *builder) most(r *record, n int) error {
	if len(r.fields) > n+1 {
		return r.fault(n+1, r.fields[0], fmt.Sprintf("at most %d values", n), fmt.Sprint(len(r.fields)-1))
	}
	return nil
}

// unquote returns a field without quotes, and whether it had some.
func unquote(s string) (string, bool) {
	if plain, err := strconv.Unquote(s); err == nil && s[0] == '"' {
		return plain, true
	}
	return s, false
}

// value takes in a record with one value.
func (b *builder) value(r *record, word, arg string) error {
	number := func(bits int) (uint64, error) {
		n, err := strconv.ParseUint(arg, 10, bits)
		if err != nil {
			err = r.fault(1, word, fmt.Sprintf("a number below %d", uint64(1)<<bits), fmt.Sprintf("%.40q", arg))
		}
		return n, err
	}
	plain, _ := unquote(arg)
	switch word {
	case "name":
		b.f.Name = plain
	case "author":
		b.f.Author = plain
	case "format":
		if b.joints {
			return r.fault(0, word, "a place before the joints", "one after them")
		}
		b.f.Format = plain
		b.platform, _ = PlatformOf(plain)
		fresh := File{}
		fresh.defaults(b.platform)
		if !b.version {
			b.f.Minor = fresh.Minor
		}
		if !b.rate {
			b.f.Rate = fresh.Rate
		}
	case "rate":
		n, err := number(16)
		b.f.Rate, b.rate = uint16(n), true
		return err
	case "options":
		n, err := number(32)
		b.f.Options = uint32(n)
		return err
	case "type":
		n, err := number(32)
		b.f.DataType = uint32(n)
		return err
	case "layout":
		d := json.NewDecoder(strings.NewReader(plain))
		d.DisallowUnknownFields()
		if err := d.Decode(&b.f.Layout); err != nil {
			return r.fault(1, word, "JSON of a layout", err.Error())
		}
	case "unit":
		if plain != "deg" && plain != "urad" {
			return r.fault(1, word, "deg or urad", fmt.Sprintf("%.40q", arg))
		}
		b.urad = plain == "urad"
	}
	return nil
}

// list takes in the joints.
func (b *builder) list(r *record, args []string) error {
	if b.joints {
		return r.fault(0, "joints", "one list", "another one")
	}
	b.joints = true
	if len(args) >= len(columns) && slices.Equal(args[:len(columns)], columns) {
		args = args[len(columns):]
	}
	if len(args) == 1 && args[0] == all {
		if b.platform.ERS == 0 {
			return r.fault(1, "joints", "a format with known joints before it", fmt.Sprintf("%.40q", b.f.Format))
		}
		args = nil
		for _, j := range b.platform.Joints {
			args = append(args, j.Key)
		}
	}
	for _, s := range args {
		plain, literal := unquote(s)
		if !literal {
			plain = b.platform.key(plain)
		}
		b.f.Joints = append(b.f.Joints, plain)
	}
	b.named = b.platform.Resolve(b.f.Joints)
	return nil
}

// time reads field i as interp or as a time.
func (b *builder) time(r *record, i int) (uint32, error) {
	s := r.fields[i]
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return uint32(n), nil
	}
	d, err := time.ParseDuration(s)
	var interp uint32
	if err == nil {
		interp, err = Interp(d)
	}
	if err != nil {
		return 0, r.fault(i, "time", "interp, or a time such as 640ms", fmt.Sprintf("%.40q", s))
	}
	if len(b.f.Keyframes) == 0 {
		interp = 0 // of the first keyframe
	}
	return interp, nil
}

// angle reads an angle in field i.
func (b *builder) angle(r *record, i int, s string) (int32, error) {
	digits, raw := strings.CutSuffix(s, "u")
	if raw || b.urad {
		if n, err := strconv.ParseInt(digits, 10, 32); err == nil {
			return int32(n), nil
		}
		return 0, r.fault(i, "angle", "a whole number of 32 bits in micro-radian", fmt.Sprintf("%.40q", s))
	}
	d, err := strconv.ParseFloat(s, 64)
	v := int32(0)
	if err == nil {
		v, err = microRadian(d)
	}
	if err != nil {
		return 0, r.fault(i, "angle", "a number of degrees, to 123000", fmt.Sprintf("%.40q", s))
	}
	return v, nil
}

// keyframe takes in a keyframe with all its numbers.
func (b *builder) keyframe(r *record, args []string) (err error) {
	if want := len(columns) + len(b.f.Joints); len(args) != want {
		return r.fault(len(r.fields), "keyframe", fmt.Sprintf("%d numbers: interp, roll, pitch, yaw and %d angles", want, len(b.f.Joints)), fmt.Sprint(len(args)))
	}
	k := Keyframe{Joints: make([]int32, len(b.f.Joints))}
	if k.Interp, err = b.time(r, 1); err != nil {
		return err
	}
	for i := range args[1:] {
		v, err := b.angle(r, i+2, args[i+1])
		if err != nil {
			return err
		}
		if i < len(k.RPY) {
			k.RPY[i] = v
		} else {
			k.Joints[i-len(k.RPY)] = v
		}
	}
	b.f.Keyframes = append(b.f.Keyframes, k)
	return nil
}

// maxPoses bounds the numbers of poses, each of which may be longer than its text.
const maxPoses = MaxSize / 8

// pose takes in a keyframe that says what is not as in the one before.
func (b *builder) pose(r *record, args []string) (err error) {
	if len(args) == 0 {
		return r.fault(1, "pose", "a time", "nothing")
	}
	if (len(b.f.Keyframes)+1)*(len(b.f.Joints)+len(columns)) > maxPoses {
		return r.fault(0, "pose", fmt.Sprintf("at most %d numbers in all keyframes", maxPoses), "more")
	}
	k := Keyframe{Joints: make([]int32, len(b.f.Joints))}
	if n := len(b.f.Keyframes); n > 0 {
		k.RPY = b.f.Keyframes[n-1].RPY
		copy(k.Joints, b.f.Keyframes[n-1].Joints)
	}
	if k.Interp, err = b.time(r, 1); err != nil {
		return err
	}
	for i, s := range args[1:] {
		name, angle, ok := strings.Cut(s, "=")
		at := slices.IndexFunc(b.named, func(r Resolved) bool { return r.Name == name })
		if rpy := slices.Index(columns[1:], name); ok && rpy >= 0 {
			if k.RPY[rpy], err = b.angle(r, i+2, angle); err != nil {
				return err
			}
			continue
		}
		if !ok || at < 0 {
			return r.fault(i+2, "pose", "JOINT=ANGLE with one of the joints, such as "+sample(b.named), fmt.Sprintf("%.60q", s))
		}
		if k.Joints[at], err = b.angle(r, i+2, angle); err != nil {
			return err
		}
	}
	b.f.Keyframes = append(b.f.Keyframes, k)
	return nil
}

// decimals are enough digits behind the point of a degree for every micro-radian.
const decimals = 6

// degreesText returns the shortest number of degrees that becomes v again.
func degreesText(v int32) string {
	half := math.Copysign(0.5, float64(v)) / perDegree
	for n := range decimals {
		for _, d := range []float64{Degrees(v), Degrees(v) + half} {
			s := strconv.FormatFloat(d, 'f', n, 64)
			if d, err := strconv.ParseFloat(s, 64); err == nil && MicroRadian(d) == v {
				if v == 0 {
					return "0"
				}
				return s
			}
		}
	}
	return strconv.Itoa(int(v)) + "u"
}

// AppendText appends the text form, with angles in degrees. Build of the result gives the same file (MTN-59).
func AppendText(dst []byte, f *File) []byte {
	for _, r := range f.records(degreesText, "deg", true) {
		dst = append(append(dst, strings.Join(r, " ")...), '\n')
	}
	return dst
}

// AppendCSV appends the text form as CSV, with angles in micro-radian. Build of the result gives the same file (MTN-59).
func AppendCSV(dst []byte, f *File) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.WriteAll(f.records(func(v int32) string { return strconv.Itoa(int(v)) }, "urad", false)) // a buffer takes everything
	return append(dst, b.Bytes()...)
}

// quote returns a string as a field: as it is if it is plain.
func quote(s string) string {
	plain := s != "" && s[0] != '"' && s[0] != '#' && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || !strconv.IsPrint(c) })
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// records returns a file as records of the text form. With symbolic, joints have the names of their platform.
func (f *File) records(angle func(int32) string, unit string, symbolic bool) [][]string {
	out := [][]string{{firstWord, fmt.Sprintf("%d.%d", f.Major, f.Minor)}, {"format", quote(f.Format)}, {"name", quote(f.Name)},
		{"author", quote(f.Author)}, {"rate", fmt.Sprint(f.Rate)}}
	if f.Options != 0 {
		out = append(out, []string{"options", fmt.Sprint(f.Options)})
	}
	if f.DataType != 0 {
		out = append(out, []string{"type", fmt.Sprint(f.DataType)})
	}
	if !f.Layout.IsZero() {
		text, _ := json.Marshal(f.Layout) // numbers and digits
		out = append(out, []string{"layout", strconv.Quote(string(text))})
	}
	p, _ := PlatformOf(f.Format)
	joints := append([]string{"joints"}, columns...)
	for i, r := range p.Resolve(f.Joints) {
		switch s := f.Joints[i]; {
		case named(s) || s == all:
			joints = append(joints, strconv.Quote(s))
		case symbolic && (r.Match == ByKey || r.Match == Lacking):
			joints = append(joints, r.Name)
		default:
			joints = append(joints, quote(s))
		}
	}
	out = append(out, joints, []string{"unit", unit})
	for i := range f.Keyframes {
		k := &f.Keyframes[i]
		row := []string{"keyframe", fmt.Sprint(k.Interp)}
		for _, v := range slices.Concat(k.RPY[:], k.Joints) {
			row = append(row, angle(v))
		}
		out = append(out, row)
	}
	return out
}
