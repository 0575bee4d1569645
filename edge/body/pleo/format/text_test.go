package format

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kennel/infra/wav"
)

// bowCSV is a motion of all columns, with the faults of real files: wrong number of frames, commas at the end of each line, CR LF, and an empty TR.
func bowCSV(frames int) string {
	var b strings.Builder
	b.WriteString("Header,,,\r\nrate=30,,\r\nframes=7,\r\nduration=3.3,\r\ntype=degree,\r\nBody,\r\nTime,Frame,RE,RS,LE,LS,RK,RH,LK,LH,HD,NV,NH,TV,TH,TO,SD,TR,\r\n")
	c := &Curves{Rate: 30, Frames: frames}
	for range 14 {
		c.Angles = append(c.Angles, make([]float64, frames))
	}
	for f := range frames {
		for j := range c.Angles {
			c.Angles[j][f] = 30 * math.Sin(float64(f*(j+3))/40) // up to 15 degrees a second and more
		}
	}
	for line := range strings.Lines(string(c.AppendCSV(nil)[bytes.Index(c.AppendCSV(nil), []byte("Frame"))+6:])) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, ",") {
			continue
		}
		sound := "0"
		if strings.HasPrefix(line, "0.333333,") {
			sound = "growl"
		}
		b.WriteString(line + "," + sound + ",0,\r\n")
	}
	return b.String()
}

func growlID(name string) (uint16, bool) { return 0x100D, name == "growl" }

// TestMotionCSV: a real table becomes 15 joints in their order, its rows are counted, and the motion keeps within 3 degrees of the curves (PLEO-MBT-02, PLEO-MBT-03,
// PLEO-MBT-04, PLEO-MBT-05, PLEO-MBT-08).
func TestMotionCSV(t *testing.T) {
	for _, ends := range []string{"\r\n", "\n", "\r"} {
		c, err := ReadMotionCSV([]byte(strings.ReplaceAll(bowCSV(102), "\r\n", ends)))
		if err != nil {
			t.Fatal(err)
		}
		if c.Frames != 102 || c.Rate != 30 || len(c.Joints) != 15 || len(c.Cues) != 1 || c.Cues[0].Frame != 10 || c.Cues[0].Name != "growl" {
			t.Fatalf("curves of %d frames, rate %d, %d joints, cues %+v", c.Frames, c.Rate, len(c.Joints), c.Cues)
		}
		m, err := c.Motion("bow", growlID)
		if err != nil {
			t.Fatal(err)
		}
		var table []string
		for _, j := range m.Joints {
			table = append(table, j.String())
		}
		if got := strings.Join(table, " "); got != "HN TS LE RS VT LK LH HD RE LS HT SD RH VN RK" {
			t.Errorf("joints %s", got)
		}
		if m.Timebase != 33 || m.End != 102 {
			t.Errorf("timebase %d, end %d", m.Timebase, m.End)
		}
		file, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if m, err = ReadMotion(file); err != nil {
			t.Fatal(err)
		}
		checkVectors(t, m, c)
		back := m.Curves(func(id uint16) string { return map[uint16]string{0x100D: "growl"}[id] })
		if back.Frames != c.Frames || back.Rate != c.Rate || len(back.Cues) != 1 || back.Cues[0].Name != "growl" {
			t.Fatalf("back: %d frames, rate %d, %+v", back.Frames, back.Rate, back.Cues)
		}
		for i, j := range back.Joints {
			want := c.Angles[slices.Index(c.Joints, j)]
			for f, a := range back.Angles[i] {
				if math.Abs(a-want[f]) > 3 {
					t.Fatalf("%s, frame %d: %v, want %v", j, f, a, want[f])
				}
			}
		}
		again, err := ReadMotionCSV(back.AppendCSV(nil))
		if err != nil || !reflect.DeepEqual(again.Angles, back.Angles) {
			t.Errorf("table of the motion: %v", err)
		}
	}
}

// checkVectors checks what each vector of a motion must be.
func checkVectors(t *testing.T, m *Motion, c *Curves) {
	t.Helper()
	next, last := map[Joint]int{}, map[Joint]int{}
	for _, v := range m.Vectors {
		if v.Joint == SoundChannel {
			if v != (Vector{SoundChannel, 10, 0, 0, 0x100D}) {
				t.Errorf("cue %+v", v)
			}
			continue
		}
		curve := c.Angles[slices.Index(c.Joints, v.Joint)]
		if int(v.Start) != next[v.Joint] || v.Goal < v.Start || v.Goal-v.Start >= 61 || int(v.Position) != int(curve[v.Goal]) {
			t.Fatalf("%s: %+v, want start %d and position %v", v.Joint, v, next[v.Joint], curve[v.Goal])
		}
		from := last[v.Joint]
		if want := (curve[v.Goal] - curve[from]) / (float64(int(v.Goal)-from) / 30); int(v.Velocity) != int(want) {
			t.Errorf("%s: %+v, want velocity %v", v.Joint, v, want)
		}
		next[v.Joint], last[v.Joint] = int(v.Goal)+1, int(v.Goal)
	}
	for j, n := range next {
		if n != c.Frames {
			t.Errorf("%s ends at %d, want %d", j, n, c.Frames)
		}
	}
}

// TestMotionCSVErrors: each says line and column.
func TestMotionCSVErrors(t *testing.T) {
	const head = "Header\nrate=30\ntype=degree\nBody\nTime,Frame,RE,SD\n"
	for text, want := range map[string][2]int{
		"": {1, 1}, "Header\nrate=30\n": {2, 1}, "Header\nrate=2\nBody\nTime,Frame,RE\n": {2, 1}, "Header\nspeed=2\nBody\n": {2, 1},
		"Header\ntype=radian\nBody\nTime,Frame,RE\n": {2, 1}, "Header\nBody\nTime,Frame,RE,XX\n": {3, 15}, "Body\nTime,Frame,RE,RE\n": {2, 15},
		"Body\nFrame,Time,RE\n": {2, 1}, "Body\nTime,Frame\n": {2, 6}, head + "0,0,1,0\n0,1,x,0\n": {7, 5}, head + "0,0\n": {6, 3}, head + "0,0,1,0,9\n": {6, 9},
		head + "0,0,900,0\n": {6, 5}, head + "0,0,NaN,0\n": {6, 5}, head + "0,0,1,\x00\n": {6, 7},
	} {
		_, err := ReadMotionCSV([]byte(text))
		var e *TextError
		if !errors.As(err, &e) || [2]int{e.Line, e.Column} != want {
			t.Errorf("%q: %v, want line %d, column %d", text, err, want[0], want[1])
		}
	}
	c, err := ReadMotionCSV([]byte(head + "0,0,1,growl\n0,1,1,0\n0,2,1,\n"))
	if err != nil || c.Frames != 3 {
		t.Fatal(c, err)
	}
	_, err = c.Motion("m", func(string) (uint16, bool) { return 0, false })
	var e *TextError
	if !errors.As(err, &e) || e.Line != 6 || e.Column != 7 {
		t.Errorf("unknown cue: %v", err)
	}
	for _, frames := range []int{0, 1, 2} {
		c, err := ReadMotionCSV([]byte(head + strings.Repeat("0,0,7.9,0\n", frames)))
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.Motion("m", growlID)
		if err != nil || len(m.Vectors) != min(frames, 1) || frames > 0 && m.Vectors[0].Position != 7 {
			t.Errorf("%d frames: %+v, %v", frames, m, err)
		}
	}
}

// TestCommandCSV: names become ids, words values, and comparisons types (PLEO-CBT-03, PLEO-CBT-04, PLEO-CBT-05, PLEO-UCF-07).
func TestCommandCSV(t *testing.T) {
	names := Names{Resource: func(k ResourceKind, name string) uint16 {
		return map[string]uint16{"sounds growl": 0x1005, "motions bow": 0x2000}[k.String()+" "+name]
	}}
	got, err := ReadCommandCSV("bark", []byte("mood,age,property_energy,sound\rmood_happy,none,>5,growl\rmood_sad,,<-3,growl,\r"), names)
	want := &Command{Name: "bark", Properties: 4, Entries: [][]Tag{
		{{8, TagValue, 2}, {4, TagNone, 0}, {6, TagMin, 5}, {29, TagValue, 0x1005}},
		{{8, TagValue, 3}, {4, TagNone, 0}, {6, TagMax, 0xFFFD}, {29, TagValue, 0x1005}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	text := got.AppendCSV(nil, func(id uint16) string { return SystemProperties[id-1] }, func(uint16) string { return "growl" })
	if again, err := ReadCommandCSV("bark", text, names); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("%s: %+v, %v", text, again, err)
	}
	if got, err = ReadCommandCSV("c", []byte("motion\nbow\nbow\n"), names); err != nil || len(got.Entries) != 2 || got.Entries[0][0] != (Tag{13, TagValue, 0x2000}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string][2]int{
		"": {1, 1}, "motion\n": {1, 1}, "hunger,motion\n1,bow\n": {1, 1}, "motion,mood\nbow,1\n": {1, 1}, "mood\n1\n": {1, 1}, "mood,motion\n1.5,bow\n": {2, 1},
		"mood,motion\n40000,bow\n": {2, 1}, "mood,motion\n 1,cow\n": {2, 4}, "mood,motion\nbow\n": {2, 1}, "mood,motion\n1,bow,2\n": {2, 7},
		"mood,motion\nmood_odd,bow\n": {2, 1}, "sound\nbow\n": {2, 1},
	} {
		_, err := ReadCommandCSV("c", []byte(text), names)
		var e *TextError
		if !errors.As(err, &e) || [2]int{e.Line, e.Column} != want {
			t.Errorf("%q: %v, want line %d, column %d", text, err, want[0], want[1])
		}
	}
}

// TestConvert: a WAV file becomes the samples that the rules give by hand (PLEO-SBT-01, PLEO-SBT-02, PLEO-SBT-03, PLEO-SBT-04, PLEO-SBT-06, PLEO-PRJ-03).
func TestConvert(t *testing.T) {
	file := func(rate, channels int, s ...int16) []byte {
		return wav.Append(nil, &wav.Sound{Rate: rate, Channels: channels, Samples: s})
	}
	bytes8 := func(rate int, s ...byte) []byte {
		b := file(rate, 1, make([]int16, len(s))...)
		b[34], b[16] = 8, 16
		order.PutUint32(b[40:], uint32(len(s)))
		return append(b[:44], s...)
	}
	for name, c := range map[string]struct {
		file []byte
		o    SoundOptions
		want []byte
	}{
		// 98 % of 1000, -1000, 32767 and -32768 are 980, -980, 32111 and -32112; the upper bytes 3, -4, 125 and -126
		"same rate":         {file(11025, 1, 1000, -1000, 32767, -32768), SoundOptions{}, []byte{131, 124, 253, 2}},
		"stereo adds":       {file(11025, 2, 1000, 200, 30000, 30000, -30000, -30000), SoundOptions{}, []byte{128 + 1176/256, 253, 2}},
		"8 bits are signed": {bytes8(11025, 0x80, 0x81, 0x7F, 0, 0xFF, 100), SoundOptions{}, []byte{131, 132, 124, 0, 0, 98}},
		// half the rate: filtered 0.98 * 2000 = 1960 -> 980, 1470, 1715, 1837; every second one
		"half the rate": {file(22050, 1, 2000, 2000, 2000, 2000), SoundOptions{}, []byte{128 + 980/256, 128 + 1715/256}},
		// twice the rate: 980, the mean with the next, 1470
		"twice the rate": {file(11025, 1, 2000, 2000), SoundOptions{Rate: 22050}, []byte{128 + 980/256, 128 + 1225/256, 128 + 1470/256}},
	} {
		s, err := Convert("beep", c.file, c.o)
		if err != nil {
			t.Fatal(name, err)
		}
		if !bytes.Equal(s.Data, c.want) {
			t.Errorf("%s: % d, want % d", name, s.Data, c.want)
		}
		rate := uint16(DefaultRate)
		if c.o.Rate > 0 {
			rate = uint16(c.o.Rate)
		}
		if s.Rate != rate || s.Loops != 1 || s.Samples != AllSamples || s.DontPitchShift || s.Version != 1 || s.Name != "beep" {
			t.Errorf("%s: %+v", name, s)
		}
		if back, err := wav.Parse(s.WAV()); err != nil || len(back.Samples) != len(s.Data) || back.Rate != int(rate) {
			t.Errorf("%s: back %+v, %v", name, back, err)
		}
	}
	s, err := Convert("b", file(11025, 1, make([]int16, 101)...), SoundOptions{ADPCM: true})
	if err != nil || !s.ADPCM || len(s.Data) != 50 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range [][]byte{nil, []byte("RIFF"), file(11025, 1), file(300, 1, 1)} {
		if _, err := Convert("b", bad, SoundOptions{}); err == nil {
			t.Errorf("%x is accepted", bad)
		}
	}
	if _, err := Convert("b", file(11025, 1, 1), SoundOptions{Rate: 1 << 20}); err == nil {
		t.Error("a rate of 1048576 is accepted")
	}
}

// TestProject: the project of the programming guide, put right, and all other elements (A15, A16, PLEO-UPF-01, PLEO-UPF-02, PLEO-UPF-08, PLEO-UPF-12, PLEO-UPF-13, PLEO-UPF-14,
// PLEO-UPF-15, PLEO-UPF-16, PLEO-UPF-18, PLEO-UPF-20).
func TestProject(t *testing.T) {
	const text = `<?xml version="1.0"?>
<ugobe_project name="template">
  <options version="4">
    <set name="top" value="../.." />
    <include value="./include:${top}/include" />
    <tools><pawn value="pawncc %i -V2048 -O2 -S64 -v2 -C- %I TARGET=100 -o%o" /></tools>
    <directories><build value="out" /><include value="inc" /></directories>
    <sound adpcm="true" rate="11025" />
    <umf value="2" /><motion version="3" />
    <folders />
  </options>
  <set-default name="MEDIA" value="../../media" />
  <set name="SOUNDS" value="${MEDIA}/sounds" />
  <resources>
    <!-- Sounds <sound path="off.wav" /> -->
    <sound path="${SOUNDS}/growl.wav" adpcm="false" rate="22050"/>
    <motion path="bow.csv" />
    <command path="hunt.csv" />
    <script path="sensors.p" /><script path="main.p" />
    <user_property path="my_prop" />
    <music path="x" />
  </resources>
</ugobe_project>`
	p, err := ReadProject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Source{{Sounds, "${SOUNDS}/growl.wav", "false", "22050", 16}, {Kind: Motions, Path: "bow.csv", Line: 17}, {Kind: Commands, Path: "hunt.csv", Line: 18},
		{Kind: Scripts, Path: "sensors.p", Line: 19}, {Kind: Scripts, Path: "main.p", Line: 19}, {Kind: Properties, Path: "my_prop", Line: 20}}
	if !reflect.DeepEqual(p.Resources, want) || p.Name != "template" || p.UMF != "3" || !p.Folders || p.Build != "out" || p.Generated != "inc" || p.Temp != "temp" {
		t.Errorf("%+v", p)
	}
	if len(p.Unknown) != 1 || p.Unknown[0].Line != 21 {
		t.Errorf("unknown %v", p.Unknown)
	}
	if v, err := p.Revision(); v != 4 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	if o, err := p.SoundOptions(p.Resources[0]); err != nil || o != (SoundOptions{Rate: 22050}) {
		t.Errorf("sound %+v, %v", o, err)
	}
	if o, err := p.SoundOptions(Source{}); err != nil || o != (SoundOptions{ADPCM: true, Rate: 11025}) {
		t.Errorf("sound %+v, %v", o, err)
	}
	for given, want := range map[string]string{"": "../../media/sounds/growl.wav", "/m": "/m/sounds/growl.wav"} {
		got, err := p.Expander(func(name string) (string, bool) { return given, name == "MEDIA" && given != "" })(p.Resources[0].Path)
		if err != nil || got != want {
			t.Errorf("MEDIA=%q: %q, %v, want %q", given, got, err, want)
		}
	}
	again, err := ReadProject(p.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []*Project{p, again} {
		q.Unknown = nil
		for i := range q.Resources {
			q.Resources[i].Line = 0
		}
	}
	if !reflect.DeepEqual(again, p) {
		t.Errorf("written and read again: %+v, want %+v", again, p)
	}
}

// TestProjectErrors: each says where it is.
func TestProjectErrors(t *testing.T) {
	for text, line := range map[string]int{
		"": 1, "<a/>": 1, "<upf_project/>": 1, "<upf_project name='a/b'/>": 1, "<upf_project name='a'>\n<resources>\n<sound/></resources></upf_project>": 3,
		"<upf_project name='a'>\nwords</upf_project>": 2, "<upf_project name='a'>\n<options>": 2, "<upf_project name='a'/><upf_project name='b'/>": 1,
		"<upf_project name='a'>\n<options><set value='x'/></options></upf_project>": 2, "<upf_project name='a'>\n</options></upf_project>": 2,
	} {
		_, err := ReadProject([]byte(text))
		var e *TextError
		if !errors.As(err, &e) || e.Line != line || e.Column < 1 {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
	p := &Project{Macros: []Macro{{Name: "a", Value: "${b}${b}"}, {Name: "b", Value: "${a}"}, {Name: "w", Value: strings.Repeat("x", 60_000)}}}
	wide := "${0}"
	for i := range 30 {
		p.Macros = append(p.Macros, Macro{Name: string(rune('A' + i)), Value: strings.Repeat("${"+string(rune('A'+i+1))+"}", 2)})
	}
	p.Macros = append(p.Macros, Macro{Name: string(rune('A' + 30)), Value: ""})
	for _, s := range []string{"${a}", "${", "${none}", "${w}${w}", wide, "${A}"} {
		if v, err := p.Expander(nil)(s); err == nil {
			t.Errorf("%q becomes %.20q", s, v)
		}
	}
	for _, q := range []*Project{{Rate: "x"}, {Rate: "99999999"}, {ADPCM: "perhaps"}} {
		if _, err := q.SoundOptions(Source{}); err == nil {
			t.Errorf("%+v is accepted", q)
		}
	}
	if _, err := (&Project{Version: "x"}).Revision(); err == nil {
		t.Error("version x is accepted")
	}
}

// FuzzMotionCSV: what is read can be written as a table and as a motion, and read again.
func FuzzMotionCSV(f *testing.F) {
	f.Add([]byte(bowCSV(5)))
	f.Add([]byte("Body\rTime,Frame,HD\r0,0,1.5\r"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ReadMotionCSV(text)
		if err != nil || c.Frames > 2000 {
			return
		}
		again, err := ReadMotionCSV(c.AppendCSV(nil))
		if err != nil || again.Frames != c.Frames || !reflect.DeepEqual(again.Angles, c.Angles) && c.Frames > 0 {
			t.Fatalf("%v: %+v, want %+v", err, again, c)
		}
		m, err := c.Motion("m", func(string) (uint16, bool) { return 0x1000, true })
		if err != nil {
			t.Fatal(err)
		}
		file, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadMotion(file); err != nil {
			t.Fatal(err)
		}
		back := m.Curves(func(uint16) string { return "x" })
		for i, j := range back.Joints {
			want := c.Angles[slices.Index(c.Joints, j)]
			for f, a := range back.Angles[i] {
				if math.Abs(a-want[f]) > 3 {
					t.Fatalf("%s, frame %d: %v, want %v", j, f, a, want[f])
				}
			}
		}
	})
}

// FuzzCommandCSV: what is read can be written and read again.
func FuzzCommandCSV(f *testing.F) {
	f.Add([]byte("mood,age,sound\r\nmood_happy,>2,x\r\n"))
	names := Names{Resource: func(ResourceKind, string) uint16 { return 0x1000 }}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ReadCommandCSV("c", text, names)
		if err != nil {
			return
		}
		out := c.AppendCSV(nil, func(id uint16) string { return SystemProperties[id-1] }, func(uint16) string { return "x" })
		if again, err := ReadCommandCSV("c", out, names); err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%s: %v, %+v, want %+v", out, err, again, c)
		}
	})
}

// FuzzConvert: no WAV file makes more than its samples allow.
func FuzzConvert(f *testing.F) {
	f.Add(wav.Append(nil, &wav.Sound{Rate: 22050, Channels: 2, Samples: make([]int16, 20)}), uint16(11025))
	f.Fuzz(func(t *testing.T, file []byte, rate uint16) {
		s, err := Convert("s", file, SoundOptions{Rate: int(rate)})
		if err != nil {
			return
		}
		b, err := s.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSound(b); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzProject: what is read can be written and read again.
func FuzzProject(f *testing.F) {
	f.Add([]byte(`<upf_project name="a"><options><set name="x" value="${y}"/></options><resources><sound path="a" rate="1"/></resources></upf_project>`))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := ReadProject(file)
		if err != nil {
			return
		}
		for _, s := range p.Resources {
			_, _ = p.Expander(nil)(s.Path) // ends
		}
		again, err := ReadProject(p.Append(nil))
		if err != nil || again.Name != p.Name || len(again.Resources) != len(p.Resources) || again.Include != p.Include || again.Compiler != p.Compiler {
			t.Fatalf("%v: %+v, want %+v", err, again, p)
		}
	})
}
