package mtn

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// fileJSON is a File as JSON has it. It holds all that the file has, so that the file made of it is the same to the byte.
type fileJSON struct {
	Version   string         `json:"version,omitempty"`
	Rate      *uint16        `json:"rate,omitempty"`
	Options   uint32         `json:"options,omitempty"`
	Strings   stringsJSON    `json:"strings"`
	Joints    []text         `json:"joints"`
	DataType  uint32         `json:"data_type,omitempty"`
	Keyframes []keyframeJSON `json:"keyframes"`
	Layout    Layout         `json:"layout,omitzero"`
}

type stringsJSON struct {
	Name   text  `json:"name"`
	Author *text `json:"author,omitempty"`
	Format text  `json:"format"`
}

// keyframeJSON is a keyframe with its numbers as files have them. People may write ms instead of interp, and degrees instead of joints.
type keyframeJSON struct {
	Interp  *uint32   `json:"interp,omitempty"`
	MS      *float64  `json:"ms,omitempty"`
	RPY     [3]int32  `json:"rpy"`
	Joints  []int32   `json:"joints,omitempty"`
	Degrees []float64 `json:"degrees,omitempty"`
}

// text is a string of a file: JSON's own, or {"hex": digits} if it is not UTF-8 or would be taken for a joint's symbolic name.
type text struct {
	s       string
	literal bool
}

// MarshalJSON writes the string.
func (t text) MarshalJSON() ([]byte, error) {
	if t.literal || !utf8.ValidString(t.s) {
		return json.Marshal(map[string]string{"hex": hex.EncodeToString([]byte(t.s))})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(t.s)
	return bytes.TrimSpace(b.Bytes()), err
}

// UnmarshalJSON reads a string or digits.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		t.literal = false
		return json.Unmarshal(b, &t.s)
	}
	var raw struct {
		Hex *Bytes `json:"hex"`
	}
	if err := json.Unmarshal(b, &raw); err != nil || raw.Hex == nil {
		return fmt.Errorf(`expected a string or {"hex": digits}, found %.40s`, b)
	}
	*t = text{string(*raw.Hex), true}
	return nil
}

// MarshalJSON writes the file with everything in it: UnmarshalJSON of the result gives the same file.
func (f *File) MarshalJSON() ([]byte, error) {
	author := text{s: f.Author}
	j := fileJSON{Version: fmt.Sprintf("%d.%d", f.Major, f.Minor), Rate: &f.Rate, Options: f.Options, DataType: f.DataType, Layout: f.Layout,
		Strings: stringsJSON{text{s: f.Name}, &author, text{s: f.Format}},
		Joints:  make([]text, len(f.Joints)), Keyframes: make([]keyframeJSON, len(f.Keyframes))}
	for i, s := range f.Joints {
		j.Joints[i] = text{s, named(s)}
	}
	for i := range f.Keyframes {
		k := &f.Keyframes[i]
		j.Keyframes[i] = keyframeJSON{Interp: &k.Interp, RPY: k.RPY, Joints: k.Joints}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(&j)
	return b.Bytes(), err
}

// UnmarshalJSON is ParseJSON.
func (f *File) UnmarshalJSON(b []byte) error {
	got, err := ParseJSON(b)
	if err == nil {
		*f = *got
	}
	return err
}

// ParseJSON builds a file from JSON, as MarshalJSON writes it or a person does: joints by symbolic names, times in ms, angles in degrees. What is not said
// is as New has it. The error is a TextError.
func ParseJSON(b []byte) (*File, error) {
	var j fileJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(&j)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("expected the end behind the motion")
		}
	}
	if err != nil {
		at := d.InputOffset()
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = e.Offset
		} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = e.Offset
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			at, err = int64(len(b)), errors.New("unexpected end")
		}
		before := b[:min(at, int64(len(b)))]
		return nil, &TextError{Line: 1 + bytes.Count(before, []byte("\n")), Column: len(before) - bytes.LastIndexByte(before, '\n'), What: err.Error()}
	}
	return j.file()
}

// file returns the file that is described.
func (j *fileJSON) file() (*File, error) {
	f := &File{Name: j.Strings.Name.s, Author: Author, Format: j.Strings.Format.s, Options: j.Options, DataType: j.DataType, Layout: j.Layout}
	if j.Strings.Author != nil {
		f.Author = j.Strings.Author.s
	}
	p, _ := PlatformOf(f.Format)
	f.defaults(p)
	if j.Rate != nil {
		f.Rate = *j.Rate
	}
	if j.Version != "" {
		if err := f.version(j.Version); err != nil {
			return nil, err
		}
	}
	for _, t := range j.Joints {
		if !t.literal {
			t.s = p.key(t.s)
		}
		f.Joints = append(f.Joints, t.s)
	}
	for i := range j.Keyframes {
		k, err := j.Keyframes[i].keyframe(len(f.Joints))
		if err != nil {
			return nil, &TextError{What: fmt.Sprintf("keyframe %d: %v", i, err)}
		}
		f.Keyframes = append(f.Keyframes, k)
	}
	if _, err := check(f); err != nil {
		return nil, &TextError{What: err.Error()}
	}
	return f, nil
}

// version takes in a version such as "1.2".
func (f *File) version(s string) error {
	var rest string
	if n, _ := fmt.Sscanf(s+" .", "%d.%d %s", &f.Major, &f.Minor, &rest); n != 3 || rest != "." {
		return &TextError{What: "version", Expected: "two numbers such as 1.2", Found: fmt.Sprintf("%.40q", s)}
	}
	return nil
}

// keyframe returns the keyframe of n joints that is described.
func (j *keyframeJSON) keyframe(n int) (k Keyframe, err error) {
	k.RPY = j.RPY
	switch {
	case j.MS != nil && j.Interp != nil:
		return k, errors.New("expected interp or ms, found both")
	case j.MS != nil && !(*j.MS >= 0 && *j.MS <= 1e12):
		return k, fmt.Errorf("ms: expected 0 to 1e12, found %v", *j.MS)
	case j.MS != nil:
		k.Interp, err = Interp(time.Duration(*j.MS * float64(time.Millisecond)))
	case j.Interp != nil:
		k.Interp = *j.Interp
	}
	switch {
	case err != nil:
	case j.Degrees != nil && j.Joints != nil:
		return k, errors.New("expected joints or degrees, found both")
	case len(j.Degrees)+len(j.Joints) != n:
		return k, fmt.Errorf("expected %d angles, found %d", n, len(j.Degrees)+len(j.Joints))
	case j.Degrees == nil:
		k.Joints = j.Joints
	}
	for _, d := range j.Degrees {
		v, err := microRadian(d)
		if err != nil {
			return k, err
		}
		k.Joints = append(k.Joints, v)
	}
	return k, err
}
