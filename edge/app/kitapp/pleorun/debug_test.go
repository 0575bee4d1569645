package pleorun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
)

// debug runs the command debug with these commands, and returns its output without times.
func debug(t *testing.T, card string, commands ...string) string {
	t.Helper()
	var out, errOut strings.Builder
	root := &cobra.Command{Use: "pleo"}
	root.AddCommand(DebugCommand())
	root.SetIn(strings.NewReader(strings.Join(commands, "\n")))
	cli.AddOutput(root)
	if code := cli.Run(t.Context(), root, []string{"debug", card}, func(string) string { return "" }, &out, &errOut); code != cli.ExitOK {
		t.Fatalf("exit code %d, %s", code, errOut.String())
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		if _, text, timed := strings.Cut(line, " s  "); timed {
			line = text
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

const counter = `#include <Sensor.inc>
#include <Log.inc>

new total = 5;
add(amount, const word[]) {
	new twice = amount * 2;
	total += twice;
	return word[0];
}
public on_sensor(time, sensor_name: sensor, value) {
	if (sensor != SENSOR_HEAD) return true;
	new word[] = "hello";
	new n = add(value + 1, word);
	printf("%d %d", n, total);
	return true;
}
`

// TestDebug: scripts pause at lines, functions and changes of variables, and continue by statements, over functions and to their ends; variables show their values, and no
// time passes meanwhile.
func TestDebug(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sensors.amx")
	if err := os.WriteFile(file, script(t, counter), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ commands, want []string }{
		"function": {[]string{"b add", "touch head", "c", "p", "where"},
			[]string{"1: break add", "1: break add, at script.p:6 in add (sensors)", "amount = 2", `word = {104, 101, 108, 108, 111, 0} "hello"`, "total = 5"}},
		"line and steps": {[]string{"break script.p:13", "touch head", "c", "s", "s", "p twice", "finish", "n", "p n", "c 1s"},
			[]string{"1: break script.p:13", "1: break script.p:13, at script.p:13 in on_sensor (sensors)", "step, at script.p:6 in add (sensors)",
				"step, at script.p:7 in add (sensors)", "twice = 4", "step, at script.p:14 in on_sensor (sensors)", "script: 104 9", "step, at script.p:15 in on_sensor (sensors)", "n = 104"}},
		"next": {[]string{"b 13", "touch head", "c", "next", "print total", "info", "delete 1", "info", "c 200ms"},
			[]string{"1: break 13", "1: break 13, at script.p:13 in on_sensor (sensors)", "step, at script.p:14 in on_sensor (sensors)", "total = 9", "1: break 13", "script: 104 9",
				"no stop in 200ms"}},
		"watch": {[]string{"b on_sensor", "touch head", "c", "d 1", "w total", "c", "p amount", "c 50ms", "where"},
			[]string{"1: break on_sensor", "1: break on_sensor, at script.p:11 in on_sensor (sensors)", "2: watch total", "2: total changed from 5 to 9, at script.p:8 in add (sensors)",
				"amount = 2", "script: 104 9", "no stop in 50ms"}},
	} {
		got := debug(t, file, c.commands...)
		for _, line := range c.want {
			before, after, found := strings.Cut("\n"+got+"\n", "\n"+line+"\n")
			if !found {
				t.Errorf("%s: no %q in\n%s", name, line, got)
				break
			}
			got = "\n" + after
			_ = before // what else was said
		}
	}
	needy := filepath.Join(t.TempDir(), "main.amx")
	if err := os.WriteFile(needy, script(t, "#include <Drive.inc>\n#include <Property.inc>\nnew h;\nforward hunger_eval();\npublic hunger_eval() return ++h\n"+
		"main() { drive_add(\"hunger\", 0, 5, 100); set(property_mood, 7); for (;;) sleep 1000; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	drawn := debug(t, needy, "curves", "c 1s", "curves", "curves mood", "curves nothing")
	for _, word := range []string{"no such drive", "active drive", "▁▂", "hunger", "mood", "7, from 7 to 7"} {
		if !strings.Contains(drawn, word) {
			t.Errorf("%q is not drawn:\n%s", word, drawn)
		}
	}
	// A minute at a breakpoint is no time for Pleo, and what is wrong is said.
	got := debug(t, file, "touch nose", "touch head", "b add", "c", "p nothing", "frobnicate", "c 1x", "delete 7", "next", "q", "where")
	for _, word := range []string{`no pad "nose"`, `"nothing"`, `"frobnicate"`, `"1x"`, `"7"`} {
		if !strings.Contains(got, word) {
			t.Errorf("%q is not said:\n%s", word, got)
		}
	}
}
