package lifeos_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/pawn/compiler"
)

// compile returns the AMX file of a script, compiled with the include files of this package and these resources.
func compile(t testing.TB, src string, more map[string]string) []byte {
	t.Helper()
	includes := lifeos.Includes()
	r := compiler.Compile("script.p", []byte(src), compiler.Options{Optimise: 2, Debug: 1, Overlay: 8192, StackHeap: 128, Prefix: "default.inc", Include: []string{"."},
		Defines: []compiler.Define{{Name: "TARGET", Value: 100}}, Open: func(name string) ([]byte, error) {
			for _, files := range []map[string]string{more, includes} {
				if s, ok := files[strings.TrimSuffix(name, ".inc")]; ok {
					return []byte(s), nil
				}
			}
			return nil, fs.ErrNotExist
		}})
	if r.Program == nil || r.Errors() > 0 {
		t.Fatalf("compile: %v\n%s", r.Messages, src)
	}
	file, err := r.Program.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// beep is a sound of 100 ms.
func beep(t testing.TB, name string, samples int) []byte {
	t.Helper()
	s := format.Sound{Version: 1, Name: name, Bits: 8, Channels: 1, Rate: 11025, Loops: 1, Samples: format.AllSamples, Data: make([]byte, samples)}
	for i := range s.Data {
		s.Data[i] = byte(128 + 64*(i%2))
	}
	file, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// enums are generated include files as a build makes them.
var enums = map[string]string{
	"sounds":          "enum sound_name { snd_none = 0, snd_min = 4096, snd_beep = 4096, snd_growl, snd_max };\n",
	"motions":         "enum motion_name { mot_none = 0, mot_min = 8192, mot_nod = 8192, mot_wag, mot_max };\n",
	"commands":        "enum command_name { cmd_none = 0, cmd_min = 12288, cmd_noises = 12288, cmd_moves, cmd_max };\n",
	"scripts":         "enum script_name { scr_none = 0, scr_min = 16384, scr_sensors = 16384, scr_main, scr_eat_grass, scr_play, scr_max };\n",
	"user_properties": "enum user_property_name { property_blood_sugar = 20480, property_grass_available };\n",
}

// urf returns a bundle with these scripts, and the sounds, motions and commands of enums.
func urf(t testing.TB, scripts map[string]string) []byte {
	t.Helper()
	b := &format.Bundle{Major: 1}
	b.Resources[format.Sounds] = []format.Resource{{Name: "beep", Data: beep(t, "beep", 1102)}, {Name: "growl", Data: beep(t, "growl", 5512)}}
	b.Resources[format.Motions] = []format.Resource{{Name: "nod", Data: nod(t)}, {Name: "wag", Data: wag(t)}}
	b.Resources[format.Commands] = []format.Resource{{Name: "noises", Data: noises(t)}, {Name: "moves", Data: moves(t)}}
	for _, name := range []string{"sensors", "main", "eat_grass", "play"} {
		r := format.Resource{}
		if src, ok := scripts[name]; ok {
			r = format.Resource{Name: name, Data: compile(t, src, enums)}
		}
		b.Resources[format.Scripts] = append(b.Resources[format.Scripts], r)
	}
	b.Resources[format.Properties] = []format.Resource{{Name: "blood_sugar"}, {Name: "grass_available"}}
	file, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// nod moves the neck down in a second, up in the next, and beeps at half a second.
func nod(t testing.TB) []byte {
	return motionFile(t, &format.Motion{Name: "nod", Timebase: 33, End: 61, Joints: []format.Joint{format.NeckVertical, format.SoundChannel}, Vectors: []format.Vector{
		{Joint: format.NeckVertical, Start: 0, Goal: 30, Velocity: -20, Position: -20}, {Joint: format.SoundChannel, Start: 15, Position: 4096},
		{Joint: format.NeckVertical, Start: 31, Goal: 60, Velocity: 20, Position: 0},
	}})
}

func wag(t testing.TB) []byte {
	return motionFile(t, &format.Motion{Name: "wag", Timebase: 33, End: 30, Joints: []format.Joint{format.TailHorizontal}, Vectors: []format.Vector{
		{Joint: format.TailHorizontal, Start: 0, Goal: 29, Velocity: 45, Position: 45},
	}})
}

func motionFile(t testing.TB, m *format.Motion) []byte {
	t.Helper()
	file, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// noises plays beep when Pleo is happy (mood 2), growl when it is angry (mood 7).
func noises(t testing.TB) []byte {
	return commandFile(t, &format.Command{Name: "noises", Properties: 2, Entries: [][]format.Tag{
		{{ID: 8, Type: format.TagValue, Value: 2}, {ID: format.PropertySound, Type: format.TagValue, Value: 4096}},
		{{ID: 8, Type: format.TagMin, Value: 6}, {ID: format.PropertySound, Type: format.TagValue, Value: 4097}},
	}})
}

func moves(t testing.TB) []byte {
	return commandFile(t, &format.Command{Name: "moves", Properties: 1, Entries: [][]format.Tag{{{ID: format.PropertyMotion, Type: format.TagValue, Value: 8193}}}})
}

func commandFile(t testing.TB, c *format.Command) []byte {
	t.Helper()
	file, err := c.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// pleo is a Pleo of a test.
type pleo struct {
	*lifeos.System
	body *pleosim.Body
	log  []lifeos.Message
	t    testing.TB
}

func start(t testing.TB, cfg lifeos.Config) *pleo {
	p := &pleo{body: pleosim.New(), t: t}
	cfg.Hardware = p.body
	cfg.Log = func(m lifeos.Message) { p.log = append(p.log, m) }
	p.System = lifeos.New(cfg)
	return p
}

// card is an SD card with these scripts as single files.
func card(t testing.TB, scripts map[string]string) pleosim.Card {
	c := pleosim.Card{}
	for name, src := range scripts {
		c[name+".amx"] = compile(t, src, enums)
	}
	return c
}

// run continues for a time.
func (p *pleo) run(d time.Duration) { p.body.Run(p.System, p.Now()+d) }

// said returns the lines that scripts have printed since the last call.
func (p *pleo) said() (lines []string) {
	for _, m := range p.log {
		if m.Type == lifeos.LogScript {
			lines = append(lines, m.Text)
		}
	}
	p.log = nil
	return lines
}

// want compares what scripts have printed.
func (p *pleo) want(lines ...string) {
	p.t.Helper()
	log := p.log
	if got := p.said(); !slices.Equal(got, lines) {
		p.t.Errorf("printed %q, want %q\nlog %v", got, lines, log)
	}
}

// logged reports whether a message of that level and type was logged.
func (p *pleo) logged(l lifeos.Level, t lifeos.LogType) bool {
	return slices.ContainsFunc(p.log, func(m lifeos.Message) bool { return m.Level == l && m.Type == t })
}

func property(t testing.TB, p *pleo, id lifeos.Property) int32 {
	t.Helper()
	v, ok := p.Property(id)
	if !ok {
		t.Fatalf("no property %d", id)
	}
	return v
}

const second = time.Second
