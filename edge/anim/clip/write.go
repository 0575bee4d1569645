package clip

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kennel/edge/anim/flatbuf"
)

// AppendText appends clips in the form that ParseText reads, the keyframes of all tracks by time. Sounds are numbers: their names cannot be computed. ErrClip
// for clips that ParseText refuses, among them those with values that no face has.
func AppendText(dst []byte, clips []Clip) ([]byte, error) {
	if err := form(clips); err != nil {
		return dst, err
	}
	out := dst
	for i := range clips {
		lines, err := clips[i].lines()
		if err != nil {
			return dst, err
		}
		if i > 0 {
			out = append(out, '\n')
		}
		out = fmt.Appendf(out, "clip %s\n", quote(clips[i].Name))
		slices.SortStableFunc(lines, func(a, b line) int { return int(int64(a.at) - int64(b.at)) })
		for _, l := range lines {
			out = fmt.Appendf(out, "%-6d %s\n", l.at, strings.TrimRight(l.text, " "))
		}
	}
	return out, nil
}

// line is one line of a clip's text.
type line struct {
	at   uint32
	text string
}

// quote returns a text as a line's word.
func quote(s string) string {
	if s == "" || strings.ContainsAny(s, " \t#\"=|\r\n") || strconv.Quote(s) != `"`+s+`"` {
		return strconv.Quote(s)
	}
	return s
}

// lines returns the lines of a clip, track by track.
func (c *Clip) lines() (lines []line, err error) {
	k := &c.Tracks
	add := func(at uint32, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	for i := range k.Face {
		p, err := k.Face[i].Params()
		if err != nil {
			return nil, fmt.Errorf("%w: %.60s: ProceduralFaceKeyFrame[%d]: %w", ErrClip, c.Name, i, err)
		}
		add(k.Face[i].Trigger, "%-7s %s", "face", strings.Join(p.Words(), " "))
	}
	for i := range k.Audio {
		k.Audio[i].lines(add)
	}
	for _, b := range k.Backpack {
		text := ""
		for _, l := range [...]struct {
			key  string
			rgba []float32
		}{{"front", b.Front}, {"middle", b.Middle}, {"back", b.Back}} {
			if len(l.rgba) > 0 {
				text += l.key + "=" + lightText(l.rgba) + " "
			}
		}
		if b.Duration > 0 {
			text += fmt.Sprintf("for=%d", b.Duration)
		}
		add(b.Trigger, "%-7s %s", "lights", text)
	}
	for _, name := range [...]string{"lift", "head", "body", "record", "return", "sprites", "box", "event"} {
		track := reflect.ValueOf(k).Elem().FieldByName(lineOf[name])
		for i := range track.Len() {
			frame := track.Index(i)
			add(uint32(frame.FieldByName("Trigger").Uint()), "%-7s %s", name, valuesText(frame))
		}
	}
	return lines, nil
}

// number returns the shortest text of a float.
func number(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }

// lightText returns "#rrggbb" if that is exact, else the numbers.
func lightText(rgba []float32) string {
	var parts []string
	hex := "#"
	for i, v := range rgba {
		parts = append(parts, number(v))
		n := uint8(min(max(v, 0), 1)*255 + 0.5)
		if i < 3 && float32(n)/255 == v {
			hex += fmt.Sprintf("%02x", n)
		}
	}
	if len(hex) == 7 && len(rgba) == 4 && rgba[3] == 1 {
		return hex
	}
	return strings.Join(parts, ",")
}

// valuesText returns the values of a keyframe that are not its defaults.
func valuesText(frame reflect.Value) string {
	plain := reflect.New(frame.Type())
	flatbuf.Defaults(plain.Interface())
	var first, rest []string
	for i := range frame.NumField() {
		f, key := frame.Field(i), frame.Type().Field(i).Tag.Get("text")
		text := fmt.Sprint(f.Interface())
		switch f.Kind() {
		case reflect.String:
			text = quote(f.String())
		case reflect.Float32:
			text = number(float32(f.Float()))
		}
		switch {
		case key == "0" || key == "1":
			first = append(first, text)
		case key != "" && !f.Equal(plain.Elem().Field(i)):
			rest = append(rest, key+"="+text)
		}
	}
	return strings.Join(append(first, rest...), " ")
}

// lines adds the lines of one keyframe of sounds.
func (a *Audio) lines(add func(at uint32, format string, args ...any)) {
	for _, g := range a.Groups {
		var parts []string
		for i, id := range g.Events {
			s := strconv.FormatUint(uint64(id), 10)
			if i < len(g.Volumes) && g.Volumes[i] != 1 {
				s += " volume=" + number(g.Volumes[i])
			}
			if i < len(g.Probabilities) && g.Probabilities[i] != 1 {
				s += " chance=" + number(g.Probabilities[i])
			}
			parts = append(parts, s)
		}
		add(a.Trigger, "%-7s %s", "sound", strings.Join(parts, " | "))
	}
	for _, s := range a.States {
		add(a.Trigger, "%-7s %d %d", "state", s.Group, s.State)
	}
	for _, s := range a.Switches {
		add(a.Trigger, "%-7s %d %d", "switch", s.Group, s.State)
	}
	for _, p := range a.Parameters {
		text := ""
		if p.Time != 0 {
			text += fmt.Sprintf(" over=%d", p.Time)
		}
		if p.Curve != 0 {
			text += fmt.Sprintf(" curve=%d", p.Curve)
		}
		add(a.Trigger, "%-7s %d %s%s", "parameter", p.Parameter, number(p.Value), text)
	}
}
