package kitapp

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kennel/infra/cli"
)

func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(args, func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// TestHelp: every command says what it is, with an example.
func TestHelp(t *testing.T) {
	for _, bad := range cli.Lint(command()) {
		t.Error(bad)
	}
	if code, out, _ := run(t, "tree", "-help"); code != cli.ExitOK || !strings.Contains(out, `"wheel[]"`) ||
		!strings.Contains(out, "robotkit tree -f body.json -o json") {
		t.Errorf("code %d\n%s", code, out)
	}
}

func entries(t *testing.T, out string) []map[string]any {
	t.Helper()
	var lines []map[string]any
	if err := json.Unmarshal([]byte(out), &lines); err != nil || lines == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lines
}

// TestTreeOfABody: the JSON is an array of full, compact, kind and interface, one entry per device, for every body; the table has the same.
func TestTreeOfABody(t *testing.T) {
	devices := map[string]int{
		"vector": 33, "vic": 33, "amigobot": 39, "amigo": 39, "pleo": 46, "aibo": 27, "ers-110": 24, "ers-210": 26, "ers-220": 21,
		"ers-310": 21, "ers-7": 26, "ERS7": 26,
	}
	for _, b := range names() { // a body that is new here has devices, however many
		devices[b] += 0
	}
	for name, want := range devices {
		code, out, errOut := run(t, "tree", name, "-o", "json")
		if code != cli.ExitOK || errOut != "" {
			t.Fatalf("%s: %d %s", name, code, errOut)
		}
		lines := entries(t, out)
		if len(lines) == 0 || want > 0 && len(lines) != want {
			t.Errorf("%s: %d devices, want %d", name, len(lines), want)
		}
		_, table, _ := run(t, "tree", name)
		for _, l := range lines {
			if keys := slices.Sorted(maps.Keys(l)); !slices.Equal(keys, []string{"compact", "full", "interface", "kind"}) || l["kind"] != "device" {
				t.Errorf("%s: %v", name, l)
			}
			if !strings.Contains(table, l["full"].(string)+" ") || !strings.Contains(table, l["interface"].(string)) {
				t.Errorf("%s: %v is not in the table", name, l)
			}
		}
	}
	if code, out, _ := run(t, "tree", "vector", "-o", "json", "-all"); code != cli.ExitOK || !strings.Contains(out, `"kind": "localizer"`) ||
		!strings.Contains(out, `"kind": "component"`) {
		t.Errorf("-all: %d\n%s", code, out)
	}
	if code, out, _ := run(t, "tree", "pleo", "-flat"); code != cli.ExitOK || !strings.Contains(out, "*** InfraRed: ir\n*** Mobile: robot\n") {
		t.Errorf("-flat: %d\n%s", code, out)
	}
	if code, out, _ := run(t, "tree", "ers-7", "-dump"); code != cli.ExitOK ||
		!strings.Contains(out, "    leg\n      [front]\n        [left]\n          hip\n") {
		t.Errorf("-dump: %d\n%s", code, out)
	}
}

// TestSlotsOfABody: each device with its slots, units and limits.
func TestSlotsOfABody(t *testing.T) {
	_, out, _ := run(t, "tree", "vector", "-slots", "-o", "json")
	var lines []line
	if err := json.Unmarshal([]byte(out), &lines); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(lines, func(l line) bool { return l.Compact == "headPitch" })
	if i < 0 || len(lines[i].Slots) != 4 { // val, angle, turn, torque; no gains
		t.Fatalf("%+v", lines[i])
	}
	if s := lines[i].Slots[1]; s.Name != "angle" || s.Unit != "rad" || s.Access != "attribute" || s.Min == nil || *s.Min > -0.785 || *s.Max > 0.385 {
		t.Errorf("%+v", s)
	}
	// The second names: the bare name of one of several microphones (GOSTAI-COMP-40), a body's own, and kind for type (GOSTAI-IF-01.1).
	also := map[string][]string{}
	for _, l := range lines {
		also[l.Compact] = l.Aliases
	}
	if !slices.Equal(also["micro[0]"], []string{"micro"}) || !slices.Equal(also["arm"], []string{"lift"}) || also["wheelL"] != nil ||
		lines[0].Slots[0].Alias != "kind" {
		t.Errorf("aliases %v, %+v", also, lines[0].Slots[0])
	}
	// A button is 0 or 1, whatever unit a pressure has (GOSTAI-IF-10.1).
	if i = slices.IndexFunc(lines, func(l line) bool { return l.Compact == "button" }); i < 0 || lines[i].Slots[1].Name != "pressure" ||
		lines[i].Slots[1].Unit != "" || *lines[i].Slots[1].Max != 1 {
		t.Errorf("%+v", lines[i])
	}
	if _, out, _ = run(t, "tree", "vector", "-slots"); !strings.Contains(out, "robot.go(x m)") || !strings.Contains(out, "-0.7854 to 0.384") ||
		!strings.Contains(out, "touch.val->raw") {
		t.Error(out)
	}
}

// TestInterfaces: the catalogue, whole and one by one.
func TestInterfaces(t *testing.T) {
	code, out, _ := run(t, "interfaces", "-o", "json")
	if all := entries(t, out); code != cli.ExitOK || len(all) != 33 {
		t.Errorf("%d interfaces, want 25 of the standard and 8 of ours", len(all))
	}
	if code, out, _ := run(t, "interfaces", "TextToSpeech"); code != cli.ExitOK || !strings.Contains(out, "voicexml?(s)") ||
		!strings.Contains(out, "above 0") {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out, _ := run(t, "interfaces"); code != cli.ExitOK || !strings.Contains(out, "go(x m) turn(x rad)") {
		t.Errorf("%d\n%s", code, out)
	}
	if code, _, errOut := run(t, "interfaces", "Swivel"); code != cli.ExitNotFound || !strings.Contains(errOut, "want one of Identity") {
		t.Errorf("%d %s", code, errOut)
	}
}

// TestTreeOfAFile: a tree from a file, a warning for a name that two devices would share, and each mistake said where it is.
func TestTreeOfAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("rover.json", `{"robot": {"body": {"wheel[]": {"left": "RotationalMotor", "right": "RotationalMotor"}, "head": {"yaw": "Motor"}}}}`)
	code, out, errOut := run(t, "tree", "-f", good, "-o", "json")
	if code != cli.ExitOK || errOut != "" {
		t.Fatal(code, errOut)
	}
	var got []string
	for _, l := range entries(t, out) {
		got = append(got, strings.Join([]string{l["full"].(string), l["compact"].(string), l["kind"].(string), l["interface"].(string)}, " "))
	}
	want := []string{"robot.body.wheel[left] wheelL device RotationalMotor", "robot.body.wheel[right] wheelR device RotationalMotor",
		"robot.body.head.yaw head device Motor"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if code, out, _ := run(t, "tree", "-f", write("empty.json", "{}"), "-o", "json"); code != cli.ExitOK || strings.TrimSpace(out) != "[]" {
		t.Errorf("an empty tree: %d %s", code, out)
	}
	code, out, errOut = run(t, "tree", "-f", write("clash.json", `{"body": {"foo[]": {"x": "Led"}, "fooX": "Led"}}`), "-o", "json")
	if code != cli.ExitOK || len(entries(t, out)) != 2 || !strings.Contains(errOut, "clash.json: warning: name is taken: compact name fooX") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-f", write("bad.json", "{\"body\": {\n \"wheel[]\": {\"lef\": \"Motor\"}}}")}, cli.ExitUsage, "bad.json: line 2, column 14, robot.body.wheel: bad name: localization \"lef\"; want up"},
		{[]string{"-f", write("cut.json", "{\"body\": ")}, cli.ExitUsage, "cut.json: line 1, column 10: truncated"},
		{[]string{"-f", filepath.Join(dir, "none.json")}, cli.ExitNotFound, "none.json"},
		{[]string{"-f", dir}, cli.ExitFailed, dir},
		{[]string{"-f", good, "vector"}, cli.ExitUsage, "-f "},
		{[]string{"cozmo"}, cli.ExitUsage, "want one of vector, amigobot, pleo, aibo"},
		{nil, cli.ExitUsage, "BODY"},
		{[]string{"vector", "pleo"}, cli.ExitUsage, `unexpected argument "pleo"`},
		{[]string{"vector", "-dump", "-flat"}, cli.ExitUsage, "-flat"},
		{[]string{"vector", "-flat", "-o", "json"}, cli.ExitUsage, "-flat"},
	} {
		code, out, errOut := run(t, append([]string{"tree"}, tc.args...)...)
		if code != tc.code || !strings.Contains(errOut, tc.want) || out != "" {
			t.Errorf("%v: %d %s%s; want %d, %q", tc.args, code, out, errOut, tc.code, tc.want)
		}
	}
}
