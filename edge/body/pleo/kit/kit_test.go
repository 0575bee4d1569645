package kit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/pawn/amx"
	"kennel/infra/wav"
)

// folder makes files in a new folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fixed() time.Time { return time.Date(2008, 7, 24, 21, 59, 17, 0, time.UTC) }

// build builds a project and returns the bundle and the log.
func build(t testing.TB, dir string, o Options) (*Result, *format.Bundle, string) {
	t.Helper()
	var log bytes.Buffer
	o.Log, o.Now = &log, fixed
	r, err := Build(dir, o)
	if err != nil {
		var e *Error
		errors.As(err, &e)
		t.Fatalf("%v %+v\n%s", err, e, log.String())
	}
	file, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	b, err := format.ReadBundle(file)
	if err != nil {
		t.Fatal(err)
	}
	return r, b, log.String()
}

// TestInit: a new project builds as it is, into one file that is named after it (A15, A19, A22, PLEO-PRJ-01, PLEO-PRJ-02, PLEO-PRJ-04, PLEO-PRJ-06, PLEO-PRJ-08, PLEO-PDK-09).
func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	names, err := Init(dir, lifeos.Profile11)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"demo.upf", "sensors.p", "main.p", "sounds/beep.wav", "motions/bow.csv", "commands/nod.csv"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not written: %v", want, names)
		}
	}
	if _, err := Init(dir, lifeos.Profile11); err == nil {
		t.Error("a folder that is there is written again")
	}
	r, b, log := build(t, dir, Options{})
	if r.File != filepath.Join(dir, "build", "demo.urf") || len(r.Warnings) > 0 {
		t.Errorf("%+v\n%s", r, log)
	}
	want := map[string]uint16{"snd_beep": 0x1000, "mot_bow": 0x2000, "scr_sensors": 0x4000, "scr_main": 0x4001}
	if !maps.Equal(r.IDs, want) {
		t.Errorf("ids %v, want %v", r.IDs, want)
	}
	s, err := format.ReadSound(b.Resources[format.Sounds][0].Data)
	if err != nil || s.Rate != 11025 || s.Name != "beep" || len(s.Data) < 2700 {
		t.Errorf("%+v, %v", s, err)
	}
	p, err := amx.Read(b.Resources[format.Scripts][0].Data)
	if err != nil || p.Version != 10 || p.Flags&amx.FlagOverlay == 0 {
		t.Errorf("script %+v, %v", p, err)
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), ".x"), filepath.Join(t.TempDir(), strings.Repeat("n", 40))} {
		if _, err := Init(bad, lifeos.Profile11); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestInitKit: the folders of the kit, whose example takes sounds from the media and headers from the include folder (A19, PLEO-PDK-07, PLEO-PDK-08, PLEO-PDK-10, PLEO-API-02).
func TestInitKit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pdk")
	names, err := InitKit(dir, lifeos.Profile11)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bin/build.sh", "bin/build.bat", "include/default.inc", "include/common/mood.inc", "include/pleo/properties.inc", "include/pleo/sensors.inc",
		"include/pleo/joints.inc", "examples/template/template.upf", "examples/template/sensors.p", "media/motions/bow.csv", "media/sounds/beep.wav", "media/commands/nod.csv",
		"tools/drivers/readme.txt"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not written", want)
		}
	}
	for _, unit := range strings.Fields("Animation Application Joint Log Motion Property Resource Script Sensor Sound String Time Util File") {
		if !slices.Contains(names, "include/"+unit+".inc") {
			t.Errorf("%s.inc is not written", unit)
		}
	}
	_, _, log := build(t, filepath.Join(dir, "examples", "template"), Options{})
	if !strings.Contains(log, "../../media/sounds/beep.wav") || !strings.Contains(log, "-iinclude -i../../include") {
		t.Error(log)
	}
}

// TestLog: phases, lines and their order are those of the original's log (A17, PLEO-BLD-01, PLEO-BLD-02, PLEO-BLD-03, PLEO-BLD-08, PLEO-BLD-09, PLEO-BLD-10, PLEO-BLD-13, PLEO-BLD-14,
// PLEO-BLD-15, PLEO-PBT-01, PLEO-PBT-03, PLEO-PBT-04, PLEO-PBT-05, PLEO-BLD-11).
func TestLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	if _, err := Init(dir, lifeos.Profile11); err != nil {
		t.Fatal(err)
	}
	build(t, dir, Options{})
	_, _, log := build(t, dir, Options{Clean: true})
	want := `*** Cleaning ***
  Removing include/sounds.inc
  Removing include/sounds.xml
  Removing include/motions.inc
  Removing include/motions.xml
  Removing include/scripts.inc
  Removing include/scripts.xml
  Complete Clean: Removing build directory 'build'
*** Prepocessing ***
  Updating enumeration XML 'sounds.xml'
  Creating enumeration 'include/sounds.inc'
  Updating enumeration XML 'motions.xml'
  Creating enumeration 'include/motions.inc'
  Updating enumeration XML 'commands.xml'
  no data for commands
  Updating enumeration XML 'scripts.xml'
  Creating enumeration 'include/scripts.inc'
  Updating enumeration XML 'user_properties.xml'
  no data for user_properties
*** Processing ***
  Converting sounds/beep.wav to temp/sounds/beep.usf adpcm:0 pitch:1 freq:11025
  Converting motions/bow.csv to temp/motions/bow.umf, UMF3 format
`
	if !strings.HasPrefix(log, want) {
		t.Errorf("log\n%s", log)
	}
	at := 0
	for _, line := range []string{"done writing umf3 file; average vector length=", "frames=61", "  Building script 'sensors.p'", "  execute 'sensors.p'",
		"  @ pawncc sensors.p -V2048 -O2 -S64 -v2 -C- -iinclude TARGET=100 -otemp/scripts/sensors.amx", "Header size:", "Code size:", "Max. overlay size:     2048 bytes; largest overlay=",
		"Data size:", "Stack/heap size:        256 bytes; estimated max. usage=", " cells (", "Total requirements:", "  Building script 'main.p'", "estimated max. usage=unknown, due to sleep instruction", "*** Writing build/demo.urf ***", "Version is 0",
		"Build Time is 1216936757 (Thu Jul 24 21:59:17 2008)", "writing temp/sounds/beep.usf (0x1000) at 0x200L", "writing temp/motions/bow.umf (0x2000) at 0xe00L",
		"writing temp/scripts/sensors.amx (0x4000) at 0x", "writing temp/scripts/main.amx (0x4001) at 0x", "writing UGSF toc at 0x", "writing UGMF toc at 0x", "writing UGCF toc at 0x",
		"writing AMX toc at 0x", "writing PROP toc at 0x", "  URF file fits: ", "Adler32 crc is ", "build time: "} {
		i := strings.Index(log[at:], line)
		if i < 0 {
			t.Fatalf("%q is not behind byte %d of the log\n%s", line, at, log)
		}
		at += i
	}
	if !strings.Contains(log, fmt.Sprintf(" of 3649536. %d free", Capacity-size(t, filepath.Join(dir, "build", "demo.urf")))) {
		t.Errorf("free bytes are wrong\n%s", log)
	}
	if _, err := Build(dir, Options{Clean: true, Only: true}); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"build", "temp", "include/sounds.inc"} {
		if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("%s is there after a clean", gone)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "sounds/beep.wav")); err != nil {
		t.Error(err)
	}
}

func size(t *testing.T, file string) int {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// upf is a project of these resource elements.
func upf(resources string) string {
	return `<ugobe_project name="app"><options><include value="./include"/></options><resources>` + resources + `</resources></ugobe_project>`
}

func tone(n int) string {
	return string(wav.Append(nil, &wav.Sound{Rate: 11025, Channels: 1, Samples: make([]int16, n)}))
}

// TestIDs: ids follow the project, stay when it changes, and are in the include files (A7, A8, A22, PLEO-MOT-15, PLEO-BLD-04, PLEO-BLD-05, PLEO-BLD-06, PLEO-BLD-07, PLEO-MBT-06, PLEO-CBT-06, PLEO-UPF-21).
func TestIDs(t *testing.T) {
	motion := "Body\nTime,Frame,HD,SD\n0,0,1,growl\n0,1,2,0\n"
	dir := folder(t, map[string]string{"app.upf": upf(`<sound path="growl.wav"/><sound path="yawn.wav"/><motion path="my-motion.csv"/><command path="hunt.csv"/>
		<script path="main.p"/><user_property path="grass_available"/><user_property path="hunger"/>`),
		"growl.wav": tone(100), "yawn.wav": tone(50), "my-motion.csv": motion, "hunt.csv": "property_hunger,mood,sound\n>3,mood_happy,yawn\n",
		"main.p": "#include <Property.inc>\n#include \"user_properties.inc\"\n#include \"commands.inc\"\nmain() return get(property_hunger) + _:cmd_hunt\n"})
	r, b, _ := build(t, dir, Options{})
	want := map[string]uint16{"snd_growl": 4096, "snd_yawn": 4097, "mot_my_motion": 8192, "cmd_hunt": 12288, "scr_main": 16384, "property_grass_available": 20480, "property_hunger": 20481}
	if !maps.Equal(r.IDs, want) {
		t.Errorf("ids %v, want %v", r.IDs, want)
	}
	inc, err := os.ReadFile(filepath.Join(dir, "include/motions.inc"))
	if err != nil || !strings.Contains(string(inc), "enum motion_name\n{\n\tmot_none = 0,\n\tmot_min = 8192,\n\tmot_my_motion = 8192,\n\tmot_max\n};") {
		t.Errorf("%s, %v", inc, err)
	}
	inc, err = os.ReadFile(filepath.Join(dir, "include/user_properties.inc"))
	if err != nil || !strings.Contains(string(inc), "{\n\tproperty_min = 20480,\n\tproperty_grass_available = 20480,\n\tproperty_hunger = 20481,\n\tproperty_max\n};") {
		t.Errorf("%s, %v", inc, err)
	}
	c, err := format.ReadCommand(b.Resources[format.Commands][0].Data)
	if err != nil || !reflect.DeepEqual(c.Entries[0], []format.Tag{{ID: 20481, Type: format.TagMin, Value: 3}, {ID: 8, Type: format.TagValue, Value: 2}, {ID: 29, Type: format.TagValue, Value: 4097}}) {
		t.Errorf("%+v, %v", c, err)
	}
	m, err := format.ReadMotion(b.Resources[format.Motions][0].Data)
	if err != nil || m.Vectors[0] != (format.Vector{Joint: format.SoundChannel, Position: 4096}) && m.Vectors[1] != (format.Vector{Joint: format.SoundChannel, Position: 4096}) {
		t.Errorf("%+v, %v", m, err)
	}
	// growl goes, snore comes: yawn keeps its id, and the one of growl stays free
	if err := os.WriteFile(filepath.Join(dir, "app.upf"), []byte(upf(`<sound path="snore.wav"/><sound path="yawn.wav"/>`)), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "snore.wav"), []byte(tone(9)), 0o666); err != nil {
		t.Fatal(err)
	}
	r, b, _ = build(t, dir, Options{})
	if want := map[string]uint16{"snd_snore": 4098, "snd_yawn": 4097}; !maps.Equal(r.IDs, want) {
		t.Errorf("ids %v, want %v", r.IDs, want)
	}
	if s := b.Resources[format.Sounds]; len(s) != 3 || s[0].Name != "" || s[1].Name != "yawn" || s[2].Name != "snore" {
		t.Errorf("sounds %+v", s)
	}
	r, _, _ = build(t, dir, Options{Clean: true})
	if want := map[string]uint16{"snd_snore": 4096, "snd_yawn": 4097}; !maps.Equal(r.IDs, want) {
		t.Errorf("ids after a clean %v, want %v", r.IDs, want)
	}
}

// TestProblems: a mistake is told with its file, and leaves no bundle (PLEO-BLD-05, PLEO-BLD-12, PLEO-CBT-05, PLEO-MBT-05, PLEO-UPF-11; part of PLEO-PBT-10).
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		resources string
		files     map[string]string
		want      string
	}{
		"missing file":    {`<sound path="growl.wav"/>`, nil, "growl.wav"},
		"not a sound":     {`<sound path="growl.wav"/>`, map[string]string{"growl.wav": "words"}, "growl.wav: "},
		"bad motion":      {`<motion path="m.csv"/>`, map[string]string{"m.csv": "Body\nTime,Frame,HD\n0,0,x\n"}, "m.csv: csv: line 3, column 5"},
		"unknown cue":     {`<motion path="m.csv"/>`, map[string]string{"m.csv": "Body\nTime,Frame,SD\n0,0,x\n"}, "m.csv: csv: line 3, column 5"},
		"bad command":     {`<command path="c.csv"/>`, map[string]string{"c.csv": "motion\nbow\n"}, "c.csv: csv: line 2, column 1"},
		"bad script":      {`<script path="main.p"/>`, map[string]string{"main.p": "main()\n{\n\tfoo();\n}\n"}, "main.p(3,2) : error 017"},
		"macro":           {`<sound path="${NONE}/a.wav"/>`, nil, "app.upf(1): macro"},
		"same name":       {`<sound path="a/b.wav"/><sound path="c/b.wav"/>`, nil, "app.upf(1): a/b.wav and c/b.wav"},
		"same identifier": {`<sound path="a-b.wav"/><sound path="a_b.wav"/>`, nil, "app.upf(1): a-b.wav and a_b.wav"},
		"removed folder":  {`<sound path="build/a.wav"/>`, nil, "app.upf(1): build/a.wav"},
		"damaged usf":     {`<sound path="a.usf"/>`, map[string]string{"a.usf": "UGSF"}, "a.usf: usf: byte 4"},
		"too large":       {`<sound path="a.usf"/>`, map[string]string{"a.usf": "UGSF\x01" + strings.Repeat("\x00", 33) + "\x08\x01\x11\x2b\x01\x00\xff\xff\xff\xff" + strings.Repeat("\x80", Capacity)}, "build/app.urf: "},
		"rate":            {`<sound path="a.wav" rate="many"/>`, map[string]string{"a.wav": tone(3)}, "a.wav: rate"},
	} {
		files := map[string]string{"app.upf": upf(c.resources)}
		maps.Copy(files, c.files)
		dir := folder(t, files)
		_, err := Build(dir, Options{Now: fixed})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Problems[0], c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "build", "app.urf")); err == nil {
			t.Errorf("%s: a bundle is written", name)
		}
	}
	for kind, n := range map[string]int{"sound": maxOfKind, "user_property": maxProperties} {
		var list strings.Builder
		for i := range n + 1 {
			fmt.Fprintf(&list, "<%s path=\"r%d\"/>", kind, i)
		}
		var e *Error
		if _, err := Build(folder(t, map[string]string{"app.upf": upf(list.String())}), Options{}); !errors.As(err, &e) || len(e.Problems) != 1 || !strings.Contains(e.Problems[0], fmt.Sprint("more than ", n)) {
			t.Errorf("%d of %s: %v", n+1, kind, err)
		}
	}
	for name, text := range map[string]string{
		"compact":       `<ugobe_project name="app"><options><tools><pawn value="pawncc %i -C+ -o%o"/></tools></options><resources><script path="main.p"/></resources></ugobe_project>`,
		"option":        `<ugobe_project name="app"><options><tools><pawn value="pawncc %i -q"/></tools></options><resources><script path="main.p"/></resources></ugobe_project>`,
		"outside":       `<ugobe_project name="app"><options><directories><build value="../x"/></directories></options></ugobe_project>`,
		"itself":        `<ugobe_project name="app"><options><directories><build value="."/></directories></options></ugobe_project>`,
		"motion format": `<ugobe_project name="app"><options><umf value="2"/></options></ugobe_project>`,
		"no XML":        `words`,
	} {
		dir := folder(t, map[string]string{"app.upf": text, "main.p": "main() {}\n"})
		var e *Error
		if _, err := Build(dir, Options{Clean: true}); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "main.p")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Build(folder(t, nil), Options{}); err == nil {
		t.Error("a folder without project is built")
	}
}

// TestWarnings: what Pleo may not load is told, and built (PLEO-BLD-12, part of PLEO-LIM-01, PLEO-LIM-02, PLEO-LIM-05, PLEO-SBT-04, PLEO-SBT-07).
func TestWarnings(t *testing.T) {
	long := strings.Repeat("n", 40)
	dir := folder(t, map[string]string{"app.upf": `<upf_project name="app"><options><music/><tools><pawn value="pawncc %i -O2 -V8192 -S128 -C- %I -o%o" /></tools></options>
		<resources><sound path="` + long + `.wav" rate="44100"/><script path="sensors.p"/><script path="eat.p"/><script path="small.p"/></resources></upf_project>`,
		long + ".wav": tone(9), "sensors.p": "new a[800]\npublic init() a[1] = a[2]\n", "eat.p": "new a[600]\nmain() { new b = 1; a[1] = a[2]; }\n", "small.p": "main() {}\n"})
	r, b, _ := build(t, dir, Options{})
	for i, want := range []string{"music", "cut to 32", "44100", "3072 of the sensor VM", "warning 204", "2560 of the behavior VM"} {
		if i >= len(r.Warnings) || !strings.Contains(r.Warnings[i], want) {
			t.Errorf("warning %d of %q: want %q", i, r.Warnings, want)
		}
	}
	if len(r.Warnings) != 6 {
		t.Errorf("warnings %q", r.Warnings)
	}
	if n := b.Resources[format.Sounds][0].Name; n != long[:32] {
		t.Errorf("name %q", n)
	}
}

// TestStack: a script that needs more stack than it has is built with a warning that says how much to give it.
func TestStack(t *testing.T) {
	dir := folder(t, map[string]string{"app.upf": upf(`<script path="deep.p"/>`), "deep.p": "f(n) { new a[60]; a[n] = n; return a[n]; }\nmain() return f(3);\n"})
	r, _, _ := build(t, dir, Options{})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "use -S") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// TestUnpack: what unpack writes builds the same bundle, ids, gaps and properties included (PLEO-URF-13, PLEO-URF-10, PLEO-URF-11).
func TestUnpack(t *testing.T) {
	dir := folder(t, map[string]string{"app.upf": upf(`<sound path="growl.wav"/><sound path="yawn.wav" adpcm="true"/><motion path="m.csv"/><command path="hunt.csv"/><script path="main.p"/>
		<user_property path="hunger"/>`), "growl.wav": tone(100), "yawn.wav": tone(50), "m.csv": "Body\nTime,Frame,HD,SD\n0,0,1,growl\n0,1,2,0\n", "hunt.csv": "motion\nm\n", "main.p": "main() {}\n",
		"include/sounds.xml": `<enum name="sound_name"><e id="4099" name="yawn"/></enum>`})
	r, b, _ := build(t, dir, Options{})
	if r.IDs["snd_growl"] != 4100 || r.IDs["snd_yawn"] != 4099 || len(b.Resources[format.Sounds]) != 5 {
		t.Fatalf("%v", r.IDs)
	}
	file, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, open := range []bool{false, true} {
		to := filepath.Join(t.TempDir(), "out")
		names, err := Unpack("app.urf", file, to, open)
		if err != nil {
			t.Fatal(err)
		}
		end := map[bool]string{false: "sounds/growl.usf", true: "sounds/growl.wav"}[open]
		if !slices.Contains(names, end) || !slices.Contains(names, "app.upf") || !slices.Contains(names, "scripts/main.amx") {
			t.Errorf("files %v", names)
		}
		again, other, _ := build(t, to, Options{})
		if !maps.Equal(again.IDs, r.IDs) || other.Revision != b.Revision {
			t.Errorf("ids %v, want %v", again.IDs, r.IDs)
		}
		if back, err := os.ReadFile(again.File); err != nil || !open && !bytes.Equal(back, file) {
			t.Errorf("another bundle: %v", err)
		}
		if _, err := Unpack("app.urf", file, to, open); err == nil {
			t.Error("a folder that is there is written again")
		}
	}
	evil := &format.Bundle{Major: 1}
	evil.Resources[format.Sounds] = []format.Resource{{Name: "../x", Data: []byte("x")}}
	if file, err = evil.Append(nil); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if _, err := Unpack("e.urf", file, filepath.Join(out, "a"), false); err == nil {
		t.Error("a name with a path is accepted")
	}
	file[len(file)-1]++
	if _, err := Unpack("e.urf", file, filepath.Join(out, "b"), false); err == nil {
		t.Error("a wrong sum is accepted")
	}
}

// TestInspect: each kind of file is known by its signature, and damage is told.
func TestInspect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	if _, err := Init(dir, lifeos.Profile11); err != nil {
		t.Fatal(err)
	}
	r, b, _ := build(t, dir, Options{})
	file, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Inspect(file)
	if err != nil || report.Format != "urf" || len(report.Resources) != 4 || report.Resources[1].ID != 0x2000 || report.Resources[1].Offset != 0xe00 || report.Resources[0].About == "" {
		t.Errorf("%+v, %v", report, err)
	}
	for kind, want := range map[format.ResourceKind]string{format.Sounds: "usf", format.Motions: "umf", format.Scripts: "amx"} {
		if report, err := Inspect(b.Resources[kind][0].Data); err != nil || report.Format != want || len(report.Facts) < 3 {
			t.Errorf("%+v, %v, want %s", report, err, want)
		}
	}
	for _, bad := range [][]byte{nil, []byte("UG"), file[:100], []byte("UGCF"), []byte("UGMF")} {
		if report, err := Inspect(bad); err == nil {
			t.Errorf("%x: %+v", bad, report)
		}
	}
}
