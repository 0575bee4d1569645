package kit

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/pawn"
	"kennel/edge/pawn/amx"
)

// script compiles a script as a build does and returns it with the warnings.
func script(t *testing.T, text string, resources string, files map[string]string) (*amx.Program, []string) {
	t.Helper()
	all := map[string]string{"app.upf": upf(resources + `<script path="sensors.p"/>`), "sensors.p": text}
	maps.Copy(all, files)
	r, b, _ := build(t, folder(t, all), Options{})
	p, err := amx.Read(b.Resources[format.Scripts][0].Data)
	if err != nil {
		t.Fatal(err)
	}
	return p, r.Warnings
}

// TestSamples: the scripts of the programming guide compile without warnings, as they are printed there (A1, A2, A4, A5, A6, A9, A10, A11, A12, A13, A14, PLEO-BHV-09).
func TestSamples(t *testing.T) {
	sound := map[string]string{"beep.wav": tone(9), "bow.csv": "Body\nTime,Frame,HD\n0,0,1\n", "eat_grass.p": "main() {}\n"}
	for name, text := range map[string]string{
		"A1": "#include <Log.inc>\n#include <Script.inc>\n#include <Sensor.inc>\n#include <Sound.inc>\n#include \"sounds.inc\"\npublic init() {}\n" +
			"public on_sensor(time, sensor_name: sensor, value)\n{\n\tswitch (sensor)\n\t{\n\t\tcase SENSOR_HEAD: sound_play(snd_beep);\n\t}\n\treturn true;\n}\n",
		"A2": "#include <Sensor.inc>\npublic bool: on_sensor(time, sensor_name: sensor, value) return value > time || sensor == SENSOR_HEAD\n",
		"A4": "#include <Joint.inc>\nmain() { new x = joint_get_min(JOINT_HEAD, angle_degrees) + joint_get_neutral(JOINT_HEAD) + joint_get_max(JOINT_HEAD, angle_vr);\n" +
			"\tjoint_move_to(JOINT_TORSO, x);\n\tjoint_move_to(JOINT_TORSO, 5, 20, angle_mu);\n\tjoint_control(JOINT_TORSO, 1);\n\twhile (joint_is_moving(JOINT_TORSO)) sleep 10;\n" +
			"\treturn joint_get_position(JOINT_HEAD);\n}\n",
		"A5": "#include <Joint.inc>\nmain() return joint_get_attribute(JOINT_HEAD, ja_threshold) + _:ja_status\n",
		"A6": "#include <Motion.inc>\n#include \"motions.inc\"\nmain()\n{\n\tnew Motion: m = motion_play(mot_bow);\n\tmotion_pause(m, true);\n\tmotion_pause(mot_bow, false);\n" +
			"\tmotion_set_playback_speed(2 * motion_get_playback_speed());\n\tif (motion_is_playing(Motion_Any)) motion_stop(m);\n\tm = motion_play_file(\"bow\");\n\tmotion_stop(mot_bow);\n" +
			"\tmotion_stop(Motion_Any);\n\treturn _: (m == Motion_Invalid);\n}\n",
		"A9": "#include <Sound.inc>\n#include \"sounds.inc\"\nmain()\n{\n\tnew Sound: s = sound_play(snd_beep, true);\n\tsound_play_file(\"beep\");\n\tsound_stop();\n\tsound_stop(s);\n" +
			"\tif (sound_is_playing() || sound_is_playing(snd_beep)) sound_set_volume(sound_get_volume() / 2);\n\tsound_set_speed(sound_get_speed());\n}\n",
		"A10": "#include <Property.inc>\n#include \"scripts.inc\"\n#include \"user_properties.inc\"\npublic hunger_behavior_eval(behavior_id)\n{\n\tswitch (behavior_id)\n\t{\n" +
			"\t\tcase scr_eat_grass:\n\t\t{\n\t\t\tif (get(property_grass_available) == 1)\n\t\t\t\treturn 50;\n\t\t\treturn -50;\n\t\t}\n\t}\n\treturn 0;\n}\n",
		"A12": "#include <Util.inc>\nmain() monitor_exec(\"pkt send ?\");\n",
		"A13": "#include <Sensor.inc>\nmain() sensor_write_data(SENSOR_PACKET, \"?\");\n",
		"A14": "// include sensor functions and types\n#include <Sensor.inc>\npublic init()\n{\n\tsensor_set_config(SENSOR_PACKET,\nsensor_config_packet_filter, PACKET_TOUCH);\n}\n\n" +
			"public on_sensor(time, sensor_name:sensor, value)\n{\n\tswitch (sensor)\n\t{\n\t\tcase SENSOR_PACKET:\n\t\t{\n\t\t\tnew buffer[32];\n\t\t\tsensor_read_data(SENSOR_PACKET,\nbuffer);\n" +
			"\t\t\tprintf(\"%d: %s\\n\", value, buffer);\n\t\t}\n\t\tdefault: printf(\"%d\\n\", _: sensor);\n\t}\n\treturn true;\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings := script(t, text, `<sound path="beep.wav"/><motion path="bow.csv"/><script path="eat_grass.p"/><user_property path="grass_available"/>`, sound)
			for _, w := range warnings {
				if !strings.Contains(w, "217") { // indentation: lines are broken as they are in print
					t.Error(w)
				}
			}
		})
	}
}

// TestBeep runs the script of a new project: a touch of the head plays the beep, other sensors do not (A1).
func TestBeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	if _, err := Init(dir, lifeos.Profile11); err != nil {
		t.Fatal(err)
	}
	_, b, _ := build(t, dir, Options{})
	p, err := amx.Read(b.Resources[format.Scripts][0].Data)
	if err != nil {
		t.Fatal(err)
	}
	var played []int32
	m, err := pawn.New(p, pawn.Options{Natives: func(name string) pawn.Native {
		return func(c pawn.Call) (int32, pawn.Code) {
			if name == "sound_play" {
				played = append(played, c.Arg(0))
			}
			return 0, pawn.OK
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	index, ok := m.Public("on_sensor")
	if !ok {
		t.Fatal("no public on_sensor")
	}
	for _, sensor := range []int32{6, 7, 6} {
		var r pawn.Running
		if code := m.Begin(&r, index, 1000, sensor, 1); code != pawn.OK {
			t.Fatal(code)
		}
		if got := m.Run(&r, 100_000); got.State != pawn.Ended || got.Code != pawn.OK || got.Value != 1 {
			t.Errorf("sensor %d: %+v", sensor, got)
		}
	}
	if !slices.Equal(played, []int32{0x1000, 0x1000}) {
		t.Errorf("played %v", played)
	}
}

// TestNatives: a script that includes every file, twice, calls every native that our include files declare (PLEO-API-02, PLEO-API-07, PLEO-PBT-11, PLEO-LIM-04; part of PLEO-API-08), and the names have the values
// of the rows (A3).
func TestNatives(t *testing.T) {
	dir, err := includes.ReadDir("include")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for range 2 {
		for _, d := range dir {
			if strings.HasSuffix(d.Name(), ".inc") && d.Name() != "default.inc" {
				fmt.Fprintf(&text, "#include <%s>\n", d.Name())
			}
		}
		for _, name := range []string{"common/age.inc", "common/mood.inc", "common/pose.inc", "common/command_status.inc", "pleo/limits.inc"} {
			fmt.Fprintf(&text, "#include <%s>\n", name)
		}
	}
	values := map[string]int{"JOINT_RIGHT_ELBOW": 1, "JOINT_HEAD": 13, "JOINT_TAIL_HORIZONTAL": 9, "JOINT_SOUND": 15, "SENSOR_HEAD": 6, "SENSOR_TAIL": 13, "SENSOR_PACKET": 40, "SENSOR_PLOG": 128,
		"SENSOR_TIMER": 124, "TILT_ON_BACK": 6, "TARGET_PLEO": 100, "PLEO_API": 110, "AUX_RAM_MAX": 2560, "MAIN_RAM_MAX": 4096, "prop_error": -1, "ja_threshold": 9, "PACKET_ERROR": 1 << 23,
		"JOINT_STATUS_DISPLACED": 9, "sensor_config_packet_filter": 11, "command_status_searching": 4, "SCRIPT_BASE": 0x4000, "Motion_Any": 0xAA, "msg_manager": 1 << 29}
	for i, name := range format.SystemProperties {
		values["property_"+name] = i + 1
	}
	for _, word := range []string{"mood_happy", "mood_pain", "age_adult", "pose_pickedup"} {
		v, ok := format.PropertyWord(word)
		if values[word] = int(v); !ok {
			t.Errorf("%s has no value", word)
		}
	}
	text.WriteString("main()\n{\n")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "\t#assert _: %s == %d\n", name, values[name])
	}
	text.WriteString("\tnew a[8], b, c, d, e, f; a[0] = b = c = d = e = f = 0;\n\tset_object_edge_parms(); p2p_get_msg(0, b, c, d, e, f); set(property_mood, get(property_age));\n" +
		"\tsensor_set_config(SENSOR_TIMER, sensor_config_timer_interval, 100); string_printf(a, sizeof a, true, \"%d\", 3); property_set_leak(property_energy, -3, 2000, 100, 0);\n" +
		"\tdrive_add(\"hunger\", -25, 25, 1000); file_close(file_open(\"a:/x\", io_read)); vm_exec(\"x\"); printf(\"%s %d\", a, time());\n}\n")
	if _, warnings := script(t, text.String(), "", nil); len(warnings) > 0 {
		t.Error(warnings)
	}
}

// full makes a project that fills a card: 240 sounds of a second and more.
func full(t testing.TB) string {
	files := map[string]string{"sensors.p": "public init() {}\n"}
	var list strings.Builder
	for i := range 240 {
		name := fmt.Sprintf("s%03d.wav", i)
		files[name] = tone(15_100)
		fmt.Fprintf(&list, `<sound path="%s"/>`, name)
	}
	files["app.upf"] = upf(list.String() + `<script path="sensors.p"/>`)
	return folder(t, files)
}

// TestFullCard: a card is filled to the last pages, and one more sound is too much (PLEO-BLD-14).
func TestFullCard(t *testing.T) {
	dir := full(t)
	r, _, _ := build(t, dir, Options{})
	if r.Bytes < Capacity*99/100 || r.Bytes > Capacity {
		t.Errorf("%d bytes of %d", r.Bytes, Capacity)
	}
}

// BenchmarkFullCard builds a full card from its WAV files.
func BenchmarkFullCard(b *testing.B) {
	dir := full(b)
	for b.Loop() {
		if _, err := Build(dir, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzUnpack: a bundle is taken apart inside its folder or refused, whatever the names in it; the project that comes of it is one.
func FuzzUnpack(f *testing.F) {
	b := &format.Bundle{Major: 1}
	b.Resources[format.Sounds] = []format.Resource{{}, {Name: "beep", Data: []byte("UGSF\x00\x00\x08\x01\x11\x2b\x01\x00\xff\xff\xff\xffabc")}}
	b.Resources[format.Properties] = []format.Resource{{Name: "hunger"}}
	file, err := b.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file, "beep")
	f.Add([]byte("UGSF"), "../x")
	f.Fuzz(func(t *testing.T, file []byte, name string) {
		_, _ = Inspect(file) // ends
		b := &format.Bundle{Major: 1}
		b.Resources[format.Motions] = []format.Resource{{Name: name, Data: file}}
		packed, err := b.Append(nil)
		if err != nil {
			return
		}
		if _, err := Inspect(packed); err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		names, err := Unpack("app.urf", packed, filepath.Join(parent, "out"), len(file)%2 == 0)
		if entries, _ := os.ReadDir(parent); len(entries) > 1 {
			t.Fatalf("%q is outside of the folder", entries)
		}
		if err != nil || name == "" && len(file) == 0 {
			return
		}
		text, err := os.ReadFile(filepath.Join(parent, "out", "app.upf"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := format.ReadProject(text)
		if err != nil || len(p.Resources) != 1 || !slices.Contains(names, p.Resources[0].Path) {
			t.Fatalf("%v: %s", err, text)
		}
	})
}
