package pleokit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kennel/edge/body/pleo/kit"
	"kennel/infra/cli"
)

func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	root := &cobra.Command{Use: "robotkit"}
	root.AddCommand(Pleo())
	cli.AddOutput(root)
	var o, e bytes.Buffer
	code = cli.Main(root, append([]string{"pleo"}, args...), func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// TestPleo goes from nothing to a card's file and back, with the command lines of the original tool (A18, PLEO-BLD-01, PLEO-BLD-18, PLEO-PDK-02; part of PLEO-PRJ-07 and part of PLEO-PDK-01).
func TestPleo(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, errOut := run(t, "init", "demo"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	code, out, errOut := run(t, "build", "demo")
	if code != cli.ExitOK || !strings.Contains(out, filepath.Join("demo", "build", "demo.urf")) || !strings.Contains(errOut, "*** Processing ***") {
		t.Fatal(code, out, errOut)
	}
	for _, tool := range []string{"ugobe_project_tool", "ugobe_project_tool.exe", "ugobe_project_tool.py", "ugobe_build_tool.exe"} {
		if code, _, errOut := run(t, tool, "demo/demo.upf", "rebuild"); code != cli.ExitOK || !strings.Contains(errOut, "*** Cleaning ***") {
			t.Errorf("%s: %d %s", tool, code, errOut)
		}
	}
	code, out, errOut = run(t, "build", "demo", "-q", "-o", "json", "-D", "SOUNDS=sounds")
	var r kit.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitOK || errOut != "" || r.IDs["snd_beep"] != 0x1000 || r.Bytes+r.Free != kit.Capacity {
		t.Errorf("%d %v %s %s", code, err, out, errOut)
	}
	code, out, _ = run(t, "inspect", "demo/build/demo.urf")
	if code != cli.ExitOK || !strings.Contains(out, "0x1000") || !strings.Contains(out, "beep") {
		t.Errorf("inspect: %d %s", code, out)
	}
	if code, _, errOut = run(t, "unpack", "demo/build/demo.urf", "-to", "parts", "-open"); code != cli.ExitOK {
		t.Error(errOut)
	}
	if _, err := os.Stat("parts/sounds/beep.wav"); err != nil {
		t.Error(err)
	}
	if code, _, errOut = run(t, "build", "parts", "-q"); code != cli.ExitOK {
		t.Error(errOut)
	}
	if code, _, errOut = run(t, "build", "demo", "clean"); code != cli.ExitOK {
		t.Error(errOut)
	}
	if _, err := os.Stat("demo/build"); err == nil {
		t.Error("the folder build is there after a clean")
	}
	if code, _, errOut = run(t, "init", "pdk", "-kit"); code != cli.ExitOK {
		t.Error(errOut)
	}
}

// TestProfile: a project for firmware 1.0 beeps on a Pleo with that firmware, and one of 1.1 refuses its scripts. -profile builds it for the other one (part of PLEO-PDK-01).
func TestProfile(t *testing.T) {
	t.Chdir(t.TempDir())
	beeps := func(profile string) (int, int) {
		t.Helper()
		code, out, errOut := run(t, "run", "old/build", "-profile", profile, "-touch", "head@2s", "-for", "3s", "-o", "json")
		var r struct{ Samples, Errors int }
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(code, out, errOut)
		}
		return r.Samples, r.Errors
	}
	if code, _, errOut := run(t, "init", "old", "-profile", "1.0"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	for _, c := range []struct{ build, profile, other string }{{"", "1.0", "1.1"}, {"1.1", "1.1", "1.0"}} {
		args := []string{"build", "old", "-q", "-o", "json"}
		if c.build != "" {
			args = append(args, "-profile", c.build)
		}
		code, out, errOut := run(t, args...)
		var r kit.Result
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.ExitOK || r.Profile != c.profile {
			t.Fatal(code, out, errOut)
		}
		if samples, errs := beeps(c.profile); samples == 0 || errs > 0 {
			t.Errorf("built for %s: %d samples, %d errors on it", c.profile, samples, errs)
		}
		if samples, errs := beeps(c.other); samples > 0 || errs != 2 {
			t.Errorf("built for %s: %d samples, %d errors on %s", c.profile, samples, errs, c.other)
		}
	}
	for _, args := range [][]string{{"init", "x", "-profile", "2"}, {"build", "old", "-profile", "1"}, {"run", "old/build", "-profile", "1"}, {"debug", "old/build", "-profile", "1"}} {
		if code, _, errOut := run(t, args...); code != cli.ExitUsage || !strings.Contains(errOut, "-profile") {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
}

// TestConvert: single tools, of which those for tables know the ids of a project that was built (PLEO-BLD-16).
func TestConvert(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, errOut := run(t, "init", "demo"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	if err := os.WriteFile("cued.csv", []byte("Body\nTime,Frame,HD,SD\n0,0,1,0\n0,1,2,beep\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"convert", "demo/sounds/beep.wav", "beep.usf"}, {"wav2usf", "demo/sounds/beep.wav", "small.usf", "-adpcm", "-rate", "8000"},
		{"convert", "beep.usf", "back.wav"}, {"csv2umf.py", "demo/motions/bow.csv", "bow.umf"}, {"convert", "bow.umf", "bow.csv"}, {"inspect", "bow.umf"}, {"inspect", "small.usf"}, {"build", "demo", "-q"},
		{"csv2ucf", "demo/commands/nod.csv", "nod.ucf", "-ids", "demo/include"}, {"convert", "cued.csv", "cued.umf", "-ids", "demo/include"}} {
		if code, _, errOut := run(t, args...); code != cli.ExitOK {
			t.Errorf("%v: %s", args, errOut)
		}
	}
	for file, want := range map[string]string{"nod.ucf": "motion=8192", "cued.umf": "0x1000 at 1"} {
		if code, out, errOut := run(t, "inspect", file); code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("%s: %s %s, want %s", file, out, errOut, want)
		}
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "line 2, column 1", []string{"convert", "demo/commands/nod.csv", "x.ucf"}}, {cli.ExitUsage, "line 4, column 7", []string{"convert", "cued.csv", "x.umf"}},
		{cli.ExitNotFound, "nowhere", []string{"convert", "demo/commands/nod.csv", "x.ucf", "-ids", "nowhere"}},
	} {
		if code, _, errOut := run(t, c.args...); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%v: %d %s, want %d %s", c.args, code, errOut, c.code, c.want)
		}
	}
}

// TestMistakes: each has the exit code of its kind, and says where it is.
func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, errOut := run(t, "init", "demo"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	if err := os.WriteFile("demo/main.p", []byte("main()\n{\n\tfoo();\n}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "main.p(3,2) : error 017", []string{"build", "demo", "-q"}},
		{cli.ExitNotFound, "nowhere", []string{"build", "nowhere"}},
		{cli.ExitUsage, "again", []string{"build", "demo", "again"}},
		{cli.ExitUsage, "-D", []string{"build", "demo", "-D", "x"}},
		{cli.ExitFailed, "demo", []string{"init", "demo"}},
		{cli.ExitNotFound, "nowhere", []string{"inspect", "nowhere"}},
		{cli.ExitUsage, "demo.upf", []string{"inspect", "demo/demo.upf"}},
		{cli.ExitUsage, "urf", []string{"unpack", "demo/demo.upf"}},
		{cli.ExitUsage, ".p", []string{"convert", "demo/main.p", "x.amx"}},
	} {
		if code, out, errOut := run(t, c.args...); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%v: %d %q %q, want %d %q", c.args, code, out, errOut, c.code, c.want)
		}
	}
}
