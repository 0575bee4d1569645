package clip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"kennel/edge/anim/flatbuf"
)

// ParseJSON reads the JSON form: an object of clips by name, each an array of keyframes whose "Name" says of which track they are, with the field names of the
// binary schema (VEC-TRG-08). Fields that a keyframe leaves out have the schema's defaults. ErrClip with line and column for another form, an unknown field, a
// number that the field cannot hold, and for what ParseBinary refuses.
func ParseJSON(b []byte) ([]Clip, error) {
	if len(b) > flatbuf.MaxSize {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrClip, flatbuf.MaxSize, len(b))
	}
	r := jsonReader{b: b, d: json.NewDecoder(bytes.NewReader(b))}
	clips, err := r.clips()
	if err != nil {
		line, column := position(b, r.at)
		return nil, fmt.Errorf("%w: line %d, column %d: %w", ErrClip, line, column, err)
	}
	return clips, form(clips)
}

// position returns line and column, both from 1, of a byte.
func position(b []byte, at int64) (line, column int) {
	before := b[:min(max(at, 0), int64(len(b)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// jsonReader reads the JSON form.
type jsonReader struct {
	b  []byte
	d  *json.Decoder
	at int64 // of an error
}

// delim reads a delimiter.
func (r *jsonReader) delim(want json.Delim) error {
	t, err := r.d.Token()
	if r.at = r.d.InputOffset(); err != nil {
		return r.syntax(err)
	}
	if t != want {
		return fmt.Errorf("expected %q, found %.40q", want.String(), fmt.Sprint(t))
	}
	return nil
}

// syntax returns an error of the JSON package, and notes where it was.
func (r *jsonReader) syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.at = int64(len(r.b))
		return errors.New("expected more, found the end")
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		r.at = s.Offset
	}
	return err
}

func (r *jsonReader) clips() (clips []Clip, err error) {
	if err := r.delim('{'); err != nil {
		return nil, err
	}
	for r.d.More() {
		t, err := r.d.Token()
		if err != nil {
			return nil, r.syntax(err)
		}
		name, _ := t.(string) // a key always is
		c := Clip{Name: name}
		if err := r.delim('['); err != nil {
			return nil, err
		}
		for r.d.More() {
			var raw json.RawMessage
			if err := r.d.Decode(&raw); err != nil {
				r.at = r.d.InputOffset()
				return nil, r.syntax(err)
			}
			r.at = r.d.InputOffset() - int64(len(raw))
			if err := r.keyframe(&c.Tracks, raw); err != nil {
				return nil, err
			}
		}
		if err := r.delim(']'); err != nil {
			return nil, err
		}
		clips = append(clips, c)
	}
	if err := r.delim('}'); err != nil {
		return nil, err
	}
	if r.d.More() {
		r.at = r.d.InputOffset()
		return nil, errors.New("expected the end, found more")
	}
	return clips, nil
}

// keyframe reads one keyframe into its track.
func (r *jsonReader) keyframe(tracks *Tracks, raw []byte) error {
	var head struct{ Name string }
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	v := reflect.ValueOf(tracks).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") != head.Name {
			continue
		}
		track := v.Field(i)
		return r.frame(track, raw)
	}
	return fmt.Errorf("expected the Name of a track such as HeadAngleKeyFrame, found %.40q", head.Name)
}

// frame appends the keyframe to a track.
func (r *jsonReader) frame(track reflect.Value, raw []byte) error {
	elem := track.Type().Elem()
	// The keyframe with its Name; audio frames may say "state" for "states" (part of VEC-AFF-08).
	fields := []reflect.StructField{{Name: "TrackName", Type: reflect.TypeFor[string](), Tag: `json:"Name"`}}
	for i := range elem.NumField() {
		fields = append(fields, elem.Field(i))
	}
	if elem == reflect.TypeFor[Audio]() {
		fields = append(fields, reflect.StructField{Name: "State", Type: reflect.TypeFor[[]AudioState](), Tag: `json:"state"`})
	}
	if track.Len() >= MaxFrames {
		return fmt.Errorf("expected at most %d keyframes, found more", MaxFrames)
	}
	keyframe := reflect.New(elem).Elem()
	flatbuf.Defaults(keyframe.Addr().Interface())
	wide := reflect.New(reflect.StructOf(fields)).Elem()
	for i := range elem.NumField() {
		wide.Field(i + 1).Set(keyframe.Field(i))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(wide.Addr().Interface()); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			r.at += t.Offset
			return fmt.Errorf("%s: expected %v, found %s", t.Field, t.Type, t.Value)
		}
		return err
	}
	for i := range elem.NumField() {
		keyframe.Field(i).Set(wide.Field(i + 1))
	}
	if a, ok := keyframe.Addr().Interface().(*Audio); ok {
		a.States = append(a.States, wide.FieldByName("State").Interface().([]AudioState)...)
	}
	plain(keyframe)
	track.Set(reflect.Append(track, keyframe))
	return nil
}

// plain makes empty slices nil, as the binary form has them.
func plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			plain(v.Field(i))
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
		}
		for i := range v.Len() {
			plain(v.Index(i))
		}
	}
}

// AppendJSON appends clips in the JSON form, one keyframe a line. ErrClip for clips that ParseJSON refuses, and for numbers that JSON cannot say.
func AppendJSON(dst []byte, clips []Clip) ([]byte, error) {
	if err := form(clips); err != nil {
		return dst, err
	}
	out := append(bytes.Clone(dst), '{')
	for i := range clips {
		name, _ := json.Marshal(clips[i].Name) // a string always can
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, "\n "...), name...), ": ["...)
		v, first := reflect.ValueOf(&clips[i].Tracks).Elem(), true
		for t := range v.NumField() {
			for k := range v.Field(t).Len() {
				b, err := json.Marshal(v.Field(t).Index(k).Interface())
				if err != nil {
					return dst, fmt.Errorf("%w: %.60s: %s[%d]: %w", ErrClip, clips[i].Name, v.Type().Field(t).Tag.Get("json"), k, err)
				}
				if !first {
					out = append(out, ',')
				}
				first = false
				out = fmt.Appendf(out, "\n  {\"Name\": %q, %s", v.Type().Field(t).Tag.Get("json"), b[1:])
			}
		}
		out = append(out, "\n ]"...)
	}
	return append(out, "\n}\n"...), nil
}

// AppendManifest appends the manifest of clips: a JSON array of name and length_ms (VEC-TRG-09).
func AppendManifest(dst []byte, clips []Clip) []byte {
	dst = append(dst, '[')
	for i := range clips {
		name, _ := json.Marshal(clips[i].Name) // a string always can
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = fmt.Appendf(dst, "\n  {\"length_ms\": %d, \"name\": %s}", clips[i].Span().Milliseconds(), name)
	}
	return append(dst, "\n]\n"...)
}
