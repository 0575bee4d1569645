package clip

import (
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"kennel/edge/anim/flatbuf"
	"kennel/edge/face"
)

// ParseText reads the form that people write: a line "clip NAME" begins a clip, and each further line is a keyframe, with its time in milliseconds, its track,
// and values. "#" begins a comment, and a text with blanks is quoted as in Go.
//
//	clip anim_greeting_hello_01
//	0     face   happy eye_center_y=-2         an expression, and values by name; both eyes, or "left." and "right."
//	0     head   20 over=300 vary=2            degrees, milliseconds, degrees
//	0     lift   50 over=200                   millimetres above the ground
//	100   body   TURN_IN_PLACE 90 for=300      or STRAIGHT, or a radius in mm; degrees a second, or mm/s
//	0     lights front=#00ff80 middle=0.2,0,0 for=400
//	100   sound  greeting_hello volume=0.8 chance=0.5 | greeting_hi chance=0.5
//	900   record
//	1200  return over=500 speed=180
//	300   sprites weather_sunny
//	300   event  TAPPED_BLOCK
//
// Lines "state", "switch" and "parameter" belong to the sounds, "box" places a sprite. Several lines of sounds at one time are one keyframe. Lines may come in
// any order of time. ErrClip with line and column.
func ParseText(b []byte) ([]Clip, error) {
	if len(b) > flatbuf.MaxSize {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrClip, flatbuf.MaxSize, len(b))
	}
	var clips []Clip
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		words, err := split(strings.TrimRight(line, "\r\n"))
		if err == nil && len(words) > 0 {
			err = addLine(&clips, words)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d, %w", ErrClip, n, err)
		}
	}
	for i := range clips {
		clips[i].Tracks.sort()
	}
	return clips, form(clips)
}

// word is a word of a line, and the column where it begins, from 1.
type word struct {
	text   string
	column int
	quoted bool // from its first letter: not a key and a value
}

// errorf returns an error at the word.
func (w word) errorf(format string, args ...any) error {
	return fmt.Errorf("column %d: "+format, append([]any{w.column}, args...)...)
}

// split returns the words of a line.
func split(line string) (words []word, err error) {
	for at := 0; at < len(line); {
		if c := line[at]; c == ' ' || c == '\t' {
			at++
			continue
		}
		if line[at] == '#' {
			return words, nil
		}
		w := word{column: utf8.RuneCountInString(line[:at]) + 1, quoted: line[at] == '"'}
		begin := at
		for at < len(line) && line[at] != ' ' && line[at] != '\t' {
			if line[at] != '"' {
				at++
				continue
			}
			quoted, err := strconv.QuotedPrefix(line[at:])
			if err != nil {
				return nil, w.errorf("expected a closed quotation, found %.40q", line[begin:])
			}
			text, _ := strconv.Unquote(quoted) // QuotedPrefix took it
			w.text += line[begin:at] + text
			at += len(quoted)
			begin = at
		}
		w.text += line[begin:at]
		words = append(words, w)
	}
	return words, nil
}

// lineOf are the tracks by the word that names them, whose lines are values of the tags "text".
var lineOf = map[string]string{"lift": "Lift", "head": "Head", "sprites": "Sprites", "event": "Events", "body": "Body", "record": "Record", "return": "Return", "box": "Boxes"}

// addLine adds what one line says.
func addLine(clips *[]Clip, words []word) error {
	first := words[0]
	if first.text == "clip" {
		if len(words) != 2 || !isText(words[1].text) {
			return first.errorf("expected \"clip NAME\", found %d words", len(words))
		}
		*clips = append(*clips, Clip{Name: words[1].text})
		return nil
	}
	if len(*clips) == 0 {
		return first.errorf("expected \"clip NAME\" first, found %.40q", first.text)
	}
	time, err := strconv.ParseUint(first.text, 10, 32)
	if err != nil {
		return first.errorf("expected a time in milliseconds or \"clip\", found %.40q", first.text)
	}
	if len(words) < 2 {
		return first.errorf("expected a track after the time, found the end of the line")
	}
	k, at := &(*clips)[len(*clips)-1].Tracks, uint32(time)
	switch words[1].text {
	case "face":
		return k.addFace(at, words[2:])
	case "lights":
		return k.addLights(at, words[2:])
	case "sound", "state", "switch", "parameter":
		return k.addAudio(at, words[1:])
	}
	name, ok := lineOf[words[1].text]
	if !ok {
		return words[1].errorf("expected a track: face, head, lift, body, lights, sound, state, switch, parameter, sprites, event, record, return or box, found %.40q", words[1].text)
	}
	track := reflect.ValueOf(k).Elem().FieldByName(name)
	frame := reflect.New(track.Type().Elem())
	flatbuf.Defaults(frame.Interface())
	frame.Elem().FieldByName("Trigger").SetUint(time)
	if err := values(frame.Elem(), words[1], words[2:]); err != nil {
		return err
	}
	track.Set(reflect.Append(track, frame.Elem()))
	return nil
}

// values sets the fields of a keyframe: words without a key in the order of the tags "0" and "1", the others by their key.
func values(frame reflect.Value, track word, words []word) error {
	place, given := 0, map[string]bool{}
	for _, w := range words {
		key, value, keyed := strings.Cut(w.text, "=")
		if !keyed || w.quoted {
			key, value = strconv.Itoa(place), w.text
			place++
		}
		i := frame.NumField() - 1
		for i >= 0 && frame.Type().Field(i).Tag.Get("text") != key {
			i--
		}
		if i < 0 || given[key] {
			return w.errorf("expected other values of %s, found %.40q", track.text, w.text)
		}
		given[key] = true
		if err := set(frame.Field(i), w, value); err != nil {
			return err
		}
	}
	for i := range frame.NumField() {
		if key := frame.Type().Field(i).Tag.Get("text"); (key == "0" || key == "1") && !given[key] {
			return track.errorf("expected %s after %s, found none", frame.Type().Field(i).Tag.Get("json"), track.text)
		}
	}
	return nil
}

// set sets one field to a value.
func set(f reflect.Value, w word, value string) (err error) {
	switch {
	case f.Kind() == reflect.String:
		f.SetString(value)
	case f.Kind() == reflect.Bool:
		var v bool
		v, err = strconv.ParseBool(value)
		f.SetBool(v)
	case f.Kind() == reflect.Float32:
		var v float32
		v, err = float(value)
		f.SetFloat(float64(v))
	case f.CanInt():
		var v int64
		v, err = strconv.ParseInt(value, 10, f.Type().Bits())
		f.SetInt(v)
	default:
		var v uint64
		v, err = strconv.ParseUint(value, 10, f.Type().Bits())
		f.SetUint(v)
	}
	if err != nil {
		return w.errorf("expected %s, found %.40q", f.Kind(), value)
	}
	return nil
}

// float reads a finite number.
func float(s string) (float32, error) {
	v, err := strconv.ParseFloat(s, 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, strconv.ErrRange
	}
	return float32(v), nil
}

// addFace adds a keyframe of the face.
func (k *Tracks) addFace(at uint32, words []word) error {
	p := face.Neutral
	for _, w := range words {
		if err := p.Apply(w.text); err != nil {
			return w.errorf("%w", err)
		}
	}
	k.Face = append(k.Face, FaceOf(at, &p))
	return nil
}

// addLights adds a keyframe of the backpack's lights.
func (k *Tracks) addLights(at uint32, words []word) error {
	f := Backpack{Trigger: at}
	for _, w := range words {
		key, value, _ := strings.Cut(w.text, "=")
		var err error
		switch key {
		case "front":
			f.Front, err = light(value)
		case "middle":
			f.Middle, err = light(value)
		case "back":
			f.Back, err = light(value)
		case "for":
			err = set(reflect.ValueOf(&f.Duration).Elem(), w, value)
		default:
			return w.errorf("expected front=, middle=, back= or for=, found %.40q", w.text)
		}
		if err != nil {
			return w.errorf("expected #rrggbb or red,green,blue for a light and milliseconds for \"for\", found %.40q", w.text)
		}
	}
	k.Backpack = append(k.Backpack, f)
	return nil
}

// light reads a colour: "#rrggbb", or three or four numbers of 0 to 1.
func light(s string) ([]float32, error) {
	if hex, ok := strings.CutPrefix(s, "#"); ok && len(hex) == 6 {
		n, err := strconv.ParseUint(hex, 16, 32)
		return []float32{float32(n>>16) / 255, float32(n>>8&255) / 255, float32(n&255) / 255, 1}, err
	}
	parts := strings.Split(s, ",")
	if len(parts) == 3 {
		parts = append(parts, "1")
	}
	if len(parts) != 4 {
		return nil, strconv.ErrSyntax
	}
	out := make([]float32, 4)
	for i, p := range parts {
		var err error
		if out[i], err = float(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addAudio adds what a line says of sounds.
func (k *Tracks) addAudio(at uint32, words []word) error {
	kind, rest := words[0], words[1:]
	if kind.text == "sound" {
		g, err := sounds(kind, rest)
		if err == nil {
			k.Audio = append(k.Audio, Audio{Trigger: at, Groups: []AudioGroup{g}})
		}
		return err
	}
	if len(rest) < 2 {
		return kind.errorf("expected two values after %s, found %d", kind.text, len(rest))
	}
	id, err := soundID(rest[0])
	if err != nil {
		return err
	}
	if kind.text == "parameter" {
		p := AudioParameter{Parameter: id}
		if err := set(reflect.ValueOf(&p.Value).Elem(), rest[1], rest[1].text); err != nil {
			return err
		}
		for _, w := range rest[2:] {
			key, value, _ := strings.Cut(w.text, "=")
			to := map[string]reflect.Value{"over": reflect.ValueOf(&p.Time).Elem(), "curve": reflect.ValueOf(&p.Curve).Elem()}[key]
			if !to.IsValid() {
				return w.errorf("expected over= or curve=, found %.40q", w.text)
			}
			if err := set(to, w, value); err != nil {
				return err
			}
		}
		k.Audio = append(k.Audio, Audio{Trigger: at, Parameters: []AudioParameter{p}})
		return nil
	}
	state, err := soundID(rest[1])
	if err != nil || len(rest) > 2 {
		return kind.errorf("expected a group and a state after %s, found %d words", kind.text, len(rest))
	}
	a := Audio{Trigger: at, States: []AudioState{{id, state}}}
	if kind.text == "switch" {
		a.States, a.Switches = nil, a.States
	}
	k.Audio = append(k.Audio, a)
	return nil
}

// sounds reads alternatives: NAME volume= chance= | NAME ...
func sounds(kind word, words []word) (g AudioGroup, err error) {
	open := true
	for _, w := range words {
		key, value, keyed := strings.Cut(w.text, "=")
		n := len(g.Events) - 1
		switch {
		case w.text == "|" && !open:
			open = true
		case open && !keyed && w.text != "|":
			id, err := soundID(w)
			if err != nil {
				return g, err
			}
			g.Events, g.Volumes, g.Probabilities = append(g.Events, id), append(g.Volumes, 1), append(g.Probabilities, 1)
			open = false
		case !open && key == "volume":
			err = set(reflect.ValueOf(&g.Volumes[n]).Elem(), w, value)
		case !open && key == "chance":
			err = set(reflect.ValueOf(&g.Probabilities[n]).Elem(), w, value)
		default:
			return g, w.errorf("expected the name of a sound, volume=, chance= or |, found %.40q", w.text)
		}
		if err != nil {
			return g, err
		}
	}
	if open {
		return g, kind.errorf("expected the name of a sound, found the end of the line")
	}
	return g, nil
}

// soundID returns the id of a word: of a number as it is, of a name its hash.
func soundID(w word) (uint32, error) {
	if w.text == "" || strings.Contains(w.text, "=") {
		return 0, w.errorf("expected a name or a number, found %.40q", w.text)
	}
	if n, err := strconv.ParseUint(w.text, 10, 32); err == nil {
		return uint32(n), nil
	}
	return SoundID(w.text), nil
}

// SoundID returns the number by which files call a sound, a group, a state or a parameter: FNV-1 of its name in lower case (VEC-SND-03).
func SoundID(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = h*16777619 ^ uint32(c)
	}
	return h
}

// sort puts the keyframes of every track into the order of their times, and makes one of the sounds of one time.
func (k *Tracks) sort() {
	v := reflect.ValueOf(k).Elem()
	for i := range v.NumField() {
		track := v.Field(i)
		trigger := func(j int) uint64 { return track.Index(j).FieldByName("Trigger").Uint() }
		sort.SliceStable(track.Interface(), func(a, b int) bool { return trigger(a) < trigger(b) })
	}
	all := k.Audio
	k.Audio = nil
	for _, a := range all {
		n := len(k.Audio)
		if n == 0 || k.Audio[n-1].Trigger != a.Trigger {
			k.Audio = append(k.Audio, a)
			continue
		}
		last := &k.Audio[n-1]
		last.Groups = append(last.Groups, a.Groups...)
		last.States = append(last.States, a.States...)
		last.Switches = append(last.Switches, a.Switches...)
		last.Parameters = append(last.Parameters, a.Parameters...)
	}
}
