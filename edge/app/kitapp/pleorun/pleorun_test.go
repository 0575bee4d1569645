package pleorun

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos/lifeostest"
	"kennel/infra/cli"
	"kennel/infra/wav"
)

// robotkit runs the command and returns its output, its errors and its exit code.
func robotkit(t *testing.T, args ...string) (string, string, int) {
	t.Helper()
	var out, errOut strings.Builder
	root := &cobra.Command{Use: "pleo"}
	root.AddCommand(Command())
	cli.AddOutput(root)
	code := cli.Run(t.Context(), root, args, func(string) string { return "" }, &out, &errOut)
	return out.String(), errOut.String(), code
}

// script compiles a script.
func script(t *testing.T, src string) []byte { t.Helper(); return lifeostest.Compile(t, src) }

const beeper = `#include <Sensor.inc>
#include <Sound.inc>
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor == SENSOR_HEAD) { printf("head %d", value); sound_play_file("beep"); }
	return true;
}
`

// TestRun: a touch at a time beeps, from a folder and from a bundle, at the same times in each run, and what is played can be heard.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	sound := format.Sound{Version: 1, Name: "beep", Bits: 8, Channels: 1, Rate: 11025, Loops: 1, Samples: format.AllSamples, Data: slices.Repeat([]byte{64, 192}, 551)}
	usf, err := sound.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := format.Bundle{Major: 1}
	b.Resources[format.Sounds] = []format.Resource{{Name: "beep", Data: usf}}
	b.Resources[format.Scripts] = []format.Resource{{Name: "sensors", Data: script(t, beeper)}}
	urf, err := b.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	card := filepath.Join(dir, "card")
	for name, data := range map[string][]byte{"card/sensors.amx": script(t, beeper), "card/sounds/beep.usf": usf, "demo.urf": urf} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{card, filepath.Join(dir, "demo.urf")} {
		said := filepath.Join(dir, "said.wav")
		out, errOut, code := robotkit(t, "run", what, "-touch", "head@2s+1s", "-for", "5s", "-wav", said, "-o", "json")
		if code != cli.ExitOK {
			t.Fatalf("%s: %d %s", what, code, errOut)
		}
		var r report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		var got []entry
		for _, e := range r.Log {
			if e.Type == "script" || e.Type == "sound" && strings.Contains(e.Text, "begins") {
				got = append(got, e)
			}
		}
		want := []entry{{2010, "info", "script", "head 1"}, {2010, "info", "sound", "beep begins, 99 ms"}, {3010, "info", "script", "head 0"}, {3010, "info", "sound", "beep begins, 99 ms"}}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v\n%s", what, got, want, out)
		}
		file, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		s, err := wav.Parse(file)
		if err != nil || len(s.Samples) != 2*1102 || s.Samples[0] != -16384 || r.Samples != len(s.Samples) {
			t.Errorf("%s: WAV of %d samples, %v", what, len(s.Samples), err)
		}
	}
}

// TestRunErrors: a script that fails makes the exit code 1 and is named with its line; wrong flags and files are refused.
func TestRunErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.amx")
	if err := os.WriteFile(bad, script(t, "main()\n{\n\tnew a = 0\n\treturn 1 / a\n}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := robotkit(t, "run", bad, "-for", "100ms")
	if code == cli.ExitOK || !strings.Contains(out, "script.p:4 in main") || errOut == "" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	for _, args := range [][]string{
		{"missing.urf"}, {bad, "-for", "0s"}, {bad, "-for", "2h"}, {bad, "-touch", "head"}, {bad, "-touch", "nose@1s"}, {bad, "-touch", "light@1s"}, {bad, "-touch", "head@-1s"},
		{bad, "-touch", "head@1s+x"}, {bad, "-set", "light@1s"}, {bad, "-set", "light=x@1s"}, {bad, "-set", "nothing=1@1s"}, {bad, "-profile", "2.0"}, {bad, "-type", "help"},
		{bad, "-flash", filepath.Join(dir, "none")},
	} {
		if _, errOut, code := robotkit(t, append([]string{"run"}, args...)...); code == cli.ExitOK || errOut == "" {
			t.Errorf("%v is accepted", args)
		}
	}
}

// TestInputs: readings and lines of the monitor arrive, and an empty battery ends the run.
func TestInputs(t *testing.T) {
	dir := t.TempDir()
	out, errOut, code := robotkit(t, "run", dir, "-set", "battery=5@2s", "-type", "stats power@1s", "-type", "joint move 8 10@100ms", "-o", "json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitOK {
		t.Fatal(code, err, errOut)
	}
	if r.Power != "off" || r.Joints["torso"] != 10 || !slices.Contains(r.Log, entry{1000, "info", "monitor", "Battery sensor value = 100 (22 C)"}) {
		t.Errorf("%+v", r)
	}
}

// TestA20: the dialogue of a terminal with the monitor, over TCP: prompts, the version of the head where nxp is on, what a script prints, and the terminal's
// line at the script (PLEO-MON-04, PLEO-MON-10, PLEO-SEN-30, PLEO-SEN-32; PLEO-MON-01).
func TestA20(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sensors.amx")
	if err := os.WriteFile(file, script(t, `#include <Sensor.inc>
public on_sensor(time, sensor_name: sensor, value) { if (sensor == SENSOR_TERMINAL || sensor == SENSOR_USB_DETECT) printf("sensor %d is %d", sensor, value); return true; }
`), 0o666); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", running(t, file, "-monitor", "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	var text string
	until := func(want string) {
		t.Helper()
		for !strings.Contains(text, want) {
			b, err := in.ReadByte()
			if err != nil {
				t.Fatalf("read %q, want %q: %v", text, want, err)
			}
			text += string(b)
		}
		text = text[strings.Index(text, want)+len(want):]
	}
	until("> ")
	until("script: sensor 32 is 1\n")
	for _, c := range []struct{ typed, want string }{
		{"log enable nxp\n", "> "}, {"pkt send ?\r\n", "INFO: nxp: 7361 - Nov 15 2007 21:34:25\n> "}, {"VERSION\n", "LifeOS 1.1\n> "}, {"\n", "script: sensor 30 is 1\n"}, {"dance\n", "unknown command\n> "},
		{"", "script: sensor 30 is 5\n"},
	} {
		if _, err := conn.Write([]byte(c.typed)); err != nil {
			t.Fatal(err)
		}
		until(c.want)
	}
}
