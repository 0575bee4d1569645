package kit

import (
	"fmt"
	"time"

	"kennel/edge/body/pleo/format"
	"kennel/edge/pawn/amx"
)

// Fact is a line about a file.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Inside is a resource of a bundle.
type Inside struct {
	ID     uint16 `json:"id"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Offset int    `json:"offset"`
	Bytes  int    `json:"bytes"`
	About  string `json:"about,omitempty"` // what it is, or what is wrong with it
}

// Report holds what Inspect finds in a file.
type Report struct {
	Format    string   `json:"format"`
	Facts     []Fact   `json:"facts"`
	Resources []Inside `json:"resources,omitempty"`
}

func (r *Report) add(name, form string, args ...any) {
	r.Facts = append(r.Facts, Fact{name, fmt.Sprintf(form, args...)})
}

// Inspect says what is in a file of Pleo: a bundle, sound, motion, command or script. It is an error if the file is none of these, or is damaged.
func Inspect(file []byte) (*Report, error) {
	var signature string
	if len(file) >= 4 {
		signature = string(file[:4])
	}
	r := &Report{}
	var err error
	switch signature {
	case "UGRF":
		r.Format, err = "urf", r.bundle(file)
	case "UGSF":
		r.Format, err = "usf", r.sound(file)
	case "UGMF":
		r.Format, err = "umf", r.motion(file)
	case "UGCF":
		r.Format, err = "ucf", r.command(file)
	default:
		r.Format, err = "amx", r.script(file)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Report) bundle(file []byte) error {
	b, err := format.ReadBundle(file)
	if err != nil {
		return err
	}
	places, err := format.Places(file)
	if err != nil {
		return err
	}
	r.add("version", "%d.%d", b.Major, b.Minor)
	r.add("built", "%s", time.Unix(int64(b.Built), 0).UTC().Format(time.RFC3339))
	r.add("revision", "%d", b.Revision)
	r.add("bytes", "%d of %d", len(file), Capacity)
	sum := "right"
	if b.StandardSum {
		sum = "begins with 1; Pleo's tools begin with 0" // PLEO-URF-09
	}
	r.add("adler", "%08X, %s", sumOf(file), sum)
	for kind := range format.ResourceKind(len(b.Resources)) {
		for i, e := range b.Resources[kind] {
			in := Inside{ID: kind.FirstID() + uint16(i), Kind: kind.String(), Name: e.Name, Offset: places.Resources[kind][i], Bytes: len(e.Data)}
			switch {
			case e.Name == "" && len(e.Data) == 0:
				in.About = "free"
			case kind != format.Properties:
				in.About = about(kind, e.Data)
			}
			r.Resources = append(r.Resources, in)
		}
	}
	return nil
}

// about is a resource in a few words, or what is wrong with it.
func about(kind format.ResourceKind, data []byte) string {
	if err := check(kind, data); err != nil {
		return "damaged: " + err.Error()
	}
	r, err := Inspect(data)
	if err != nil || len(r.Facts) == 0 {
		return "damaged"
	}
	return r.Facts[len(r.Facts)-1].Value
}

func (r *Report) sound(file []byte) error {
	s, err := format.ReadSound(file)
	if err != nil {
		return err
	}
	r.add("name", "%s", s.Name)
	r.add("version", "%d", s.Version)
	r.add("adpcm", "%v", s.ADPCM)
	r.add("pitch shift", "%v", !s.DontPitchShift)
	r.add("loops", "%d", s.Loops)
	n := len(s.PCM())
	r.add("length", "%d samples at %d Hz, %.3f s", n, s.Rate, float64(n)/float64(s.Rate))
	return nil
}

func (r *Report) motion(file []byte) error {
	m, err := format.ReadMotion(file)
	if err != nil {
		return err
	}
	r.add("name", "%s", m.Name)
	r.add("joints", "%v", m.Joints)
	for _, v := range m.Vectors {
		if v.Joint == format.SoundChannel {
			r.add("cue", "%#04x at %d", uint16(v.Position), v.Start)
		}
	}
	r.add("length", "%d vectors of %d joints, %d frames of %d ms", len(m.Vectors), len(m.Joints), m.End, m.Timebase)
	return nil
}

func (r *Report) command(file []byte) error {
	c, err := format.ReadCommand(file)
	if err != nil {
		return err
	}
	plays, err := c.Plays()
	if err != nil {
		return err
	}
	r.add("name", "%s", c.Name)
	for _, e := range c.Entries {
		line := ""
		for _, t := range e {
			name := fmt.Sprintf("%#x", t.ID)
			if t.ID >= 1 && int(t.ID) <= len(format.SystemProperties) {
				name = format.SystemProperties[t.ID-1]
			}
			switch t.Type {
			case format.TagNone:
			case format.TagValue:
				line += fmt.Sprintf(" %s=%d", name, t.Value)
			case format.TagMin:
				line += fmt.Sprintf(" %s>%d", name, int16(t.Value))
			case format.TagMax:
				line += fmt.Sprintf(" %s<%d", name, int16(t.Value))
			}
		}
		r.add("entry", "%s", line)
	}
	what := "motions"
	if plays == format.PropertySound {
		what = "sounds"
	}
	r.add("length", "%d entries that play %s", len(c.Entries), what)
	return nil
}

func (r *Report) script(file []byte) error {
	p, err := amx.Read(file)
	if err != nil {
		return fmt.Errorf("neither a bundle, sound, motion nor command, and as a script: %w", err)
	}
	r.add("version", "%d", p.Version)
	r.add("flags", "%#x", uint16(p.Flags))
	for _, e := range p.Publics {
		r.add("public", "%s", e.Name)
	}
	for _, e := range p.Natives {
		r.add("native", "%s", e.Name)
	}
	r.add("length", "%d bytes of code in %d overlays, %d of data, %d of stack and heap", len(p.Code), len(p.Overlays), len(p.Data), amx.CellSize*int(p.StackHeapCells))
	return nil
}
