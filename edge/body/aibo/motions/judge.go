package motions

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/body/aibo/statics"
	"kennel/infra/api/motionwire"
)

// The codes of findings of Judge alone.
const (
	CodeForm  = "form"          // neither a motion file nor a text form of one
	CodeModel = "model"         // for another model than the body
	CodeLong  = "too-long"      // more time or keyframes than a robot keeps
	CodeNone  = "moves-nothing" // no joint of the body
)

// shown is how many findings a verdict has at most.
const shown = 20

// Open reads a motion that a person uploaded for a model: a motion file, one of its text forms, or a motion of a page (motionwire.Edited). The findings end with
// the reason if it cannot be read.
func Open(b []byte, name string, m aibo.Model) (*mtn.File, []mtn.Finding) {
	var f *mtn.File
	var found []mtn.Finding
	var err error
	switch {
	case motionwire.IsEdited(b):
		f, err = edited(b, name, m)
	case IsText(b):
		f, err = mtn.Build(b)
	default:
		f, found, err = mtn.Parse(b, mtn.Lenient)
	}
	if err == nil {
		return f, found
	}
	if x, is := errors.AsType[mtn.Finding](err); is {
		if len(found) == 0 || found[len(found)-1] != x {
			found = append(found, x)
		}
		return nil, found
	}
	x := mtn.Finding{Severity: mtn.Fault, Code: CodeForm, Offset: -1, Block: -1, What: err.Error()}
	if t, is := errors.AsType[*mtn.TextError](err); is && t.Line > 0 {
		x.What, x.Expected, x.Found = fmt.Sprintf("line %d, column %d: %s", t.Line, t.Column, t.What), t.Expected, t.Found
	}
	return nil, append(found, x)
}

// IsText reports whether bytes are one of the text forms of a motion rather than a motion file.
func IsText(b []byte) bool {
	first := bytes.TrimLeft(b, " \t\r\n")
	return bytes.HasPrefix(first, []byte("{")) || bytes.HasPrefix(first, []byte("mtn")) || bytes.HasPrefix(first, []byte("#"))
}

// edited returns the file of a motion that a page wrote.
func edited(b []byte, name string, m aibo.Model) (*mtn.File, error) {
	e, err := motionwire.ParseEdited(b)
	if err != nil {
		return nil, err
	}
	f := mtn.New(platform(m), mtn.Name{Part: 'a', Start: e.Start, Stop: e.Stop, Description: name}.String())
	var columns []int // in the page's motion, of each joint of the file
	var signs []int32
	f.Joints = nil
	for i, j := range joints(m) {
		if c := slices.Index(e.Joints, j.Path); c >= 0 {
			f.Joints, columns, signs = append(f.Joints, platform(m).Joints[i].Key), append(columns, c), append(signs, int32(j.Sign))
		}
	}
	at := int64(0)
	for n, k := range e.Keyframes {
		out := mtn.Keyframe{Joints: make([]int32, len(columns))}
		if n > 0 {
			if out.Interp, err = mtn.Interp(time.Duration(k.AtMS-at) * time.Millisecond); err != nil {
				return nil, fmt.Errorf("keyframe %d: %w", n, err)
			}
		}
		at = k.AtMS
		for i, c := range columns {
			out.Joints[i] = saturate(int64(k.Values[c]) * int64(signs[i]))
		}
		f.Keyframes = append(f.Keyframes, out)
	}
	return f, nil
}

// Judge says whether a model can play a motion that a person uploaded: whether it can be read, is for this model, keeps the range and the speed of each joint,
// and leaves the body on its paws. The verdict has no hash; the caller knows it. It takes at most a second, whatever the numbers in b say.
func Judge(b []byte, name string, m aibo.Model) motionwire.Verdict {
	v := motionwire.Verdict{V: 1, Ref: motionwire.Ref{Name: name}}
	f, found := Open(b, name, m)
	if f == nil {
		conclude(&v, found)
		return v
	}
	own, known := ModelOf(f)
	reason := func(code, what, expected, have string, at int64) {
		found = append(found, mtn.Finding{Severity: mtn.Fault, Code: code, Offset: at, Block: -1, What: what, Expected: expected, Found: have})
	}
	offsets := f.Offsets()
	switch {
	case !known || own != m:
		reason(CodeModel, "format", platform(m).Format+" of "+m.String(), fmt.Sprintf("%.60q", f.Format), offsets.Format)
	case len(f.Keyframes) == 0:
		reason(mtn.CodeEmpty, "keyframes", "at least 1", "0", -1)
	case f.Duration() > motionwire.MaxSpanMS*time.Millisecond:
		reason(CodeLong, "duration", fmt.Sprintf("at most %d s", motionwire.MaxSpanMS/1000), f.Duration().String(), -1)
	case len(f.Keyframes) > mostFrames:
		reason(CodeLong, "keyframes", fmt.Sprintf("at most %d", mostFrames), strconv.Itoa(len(f.Keyframes)), -1)
	}
	if len(found) > 0 && found[len(found)-1].Severity == mtn.Fault {
		conclude(&v, found)
		return v
	}
	motion, err := Motion(f, m, false)
	if err != nil || len(motion.Joints) == 0 {
		reason(CodeNone, "joints", "some of "+m.String(), "none", -1)
		conclude(&v, found)
		return v
	}
	v.Motion = shownMotion(f, motion, name)
	for _, x := range append(Check(f), CheckBalance(f)...) {
		if x.Code == CodeRange || x.Code == CodeSpeed || x.Code == CodeTip {
			x.Severity = mtn.Fault // a robot would not do it, or fall
		}
		found = append(found, x)
	}
	if made, err := mtn.Append(nil, f); err == nil && len(made) <= motionwire.MaxFile {
		v.File = made
	}
	conclude(&v, found)
	return v
}

// mostFrames is how many keyframes a motion has at most, as motionwire bounds it.
const mostFrames = 4096

// conclude fills in what was found, the reasons for a refusal first.
func conclude(v *motionwire.Verdict, found []mtn.Finding) {
	v.Kept = true
	for _, worst := range []mtn.Severity{mtn.Fault, mtn.Warning, mtn.Note} {
		for _, x := range found {
			if x.Severity != worst || len(v.Findings) == shown {
				continue
			}
			if worst == mtn.Fault && v.Kept {
				v.Kept, v.Why = false, x.Error()
			}
			v.Findings = append(v.Findings, motionwire.Finding{Severity: x.Severity.String(), Code: x.Code, Offset: x.Offset, What: clipped(x.What), Expected: clipped(x.Expected), Found: clipped(x.Found)})
		}
	}
	v.Why = clipped(v.Why)
}

// clipped returns a text that fits a message.
func clipped(s string) string {
	const most = 280
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

// shownMotion returns a motion as pages have it.
func shownMotion(f *mtn.File, motion *anim.Motion, name string) *motionwire.Sequence {
	n := mtn.ParseName(f.Name)
	out := &motionwire.Sequence{Name: name, Start: n.Start, Stop: n.Stop, Joints: motion.Joints}
	rows := int64(0)
	for _, k := range motion.Keyframes {
		rows += k.Rows
		out.SpanMS = rows * anim.Row.Milliseconds()
		out.Keyframes = append(out.Keyframes, motionwire.Keyframe{AtMS: out.SpanMS, Values: k.Values})
	}
	return out
}

// Describe returns how a model is made, with the motions of our own that it can do.
func Describe(m aibo.Model) (motionwire.Body, error) {
	out := motionwire.Body{V: 1, Model: m.String(), Ending: "mtn"}
	out.Links, out.Bones = statics.New(m).Skeleton()
	body := Body(m)
	for i, j := range joints(m) {
		out.Joints = append(out.Joints, motionwire.Joint{Name: j.Path, Slot: j.Slot(), Min: body[i].Min, Max: body[i].Max, Speed: body[i].Speed})
	}
	for _, name := range Library() {
		f, err := Load(m, name)
		if err != nil {
			return out, err
		}
		motion, err := Motion(f, m, false)
		if err != nil {
			return out, err
		}
		out.Motions = append(out.Motions, *shownMotion(f, motion, name))
	}
	return out, nil
}
