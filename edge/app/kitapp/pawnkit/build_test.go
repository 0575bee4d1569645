package pawnkit

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/edge/pawn/amx"
	"kennel/infra/cli"
)

// scriptFolder makes a folder with these files the current one.
func scriptFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

const danceScript = `#include <moves>
main()
{
	new steps[4] = { STEP, ... }
	new sum
	for (new i = 0; i < sizeof steps; i++)
		sum += steps[i] * TARGET
	move(sum)
	sleep 5
	printf("%d\n", sum)
}
forward on_sensor(id, value)
public on_sensor(id, value) return id / value
`

// TestBuild compiles with the flags of real projects, as they are printed there, and runs the result (PLEO-PBT-06, PLEO-PBT-07, PLEO-PBT-08,
// PLEO-PBT-09; part of PLEO-PBT-10).
func TestBuild(t *testing.T) {
	scriptFolder(t, map[string]string{"dance.p": danceScript, "inc/moves.inc": "const STEP = 3\nnative move(x)\n", "inc/default.inc": "native printf(const f[], ...)\n"})
	out, errOut, code := robotkit(t, "build", "dance.p", "-odance.amx", "-O2", "-V8192", "-S128", "-v2", "-C-", "-iinc", "TARGET=100")
	if code != cli.ExitOK || errOut != "" || !strings.Contains(out, "dance.amx") {
		t.Fatalf("build: %d %q %q", code, out, errOut)
	}
	file, err := os.ReadFile("dance.amx")
	if err != nil {
		t.Fatal(err)
	}
	p, err := amx.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if p.Version != 10 || p.Flags != amx.FlagOverlay|amx.FlagSleep || p.StackHeapCells != 128 || len(p.Publics) != 1 || len(p.Overlays) < 3 {
		t.Errorf("program %+v", p)
	}
	out, errOut, code = robotkit(t, "run", "dance.amx", "-call", "main", "-call", "on_sensor(7,2)", "-call", "on_sensor(1,0)")
	want := "N move(1200)\nS sleep pri=5\n1200\nR main err=0 ret=0 sleeps=1\nR on_sensor err=0 ret=3 sleeps=0\nR on_sensor err=11 ret=0 sleeps=0\n"
	if code == cli.ExitOK || out != want {
		t.Errorf("run: %d %q %q, want %q", code, out, errOut, want)
	}
	for version, flags := range map[int]string{8: "-amx=8 -V8192", 9: "-amx=9 -O2"} { // of firmware 1.0 (PLEO-AMX-04)
		args := append([]string{"build", "dance.p", "-iinc", "TARGET=100"}, strings.Fields(flags)...)
		if _, errOut, code := robotkit(t, args...); code != cli.ExitOK {
			t.Fatalf("%s: %d %s", flags, code, errOut)
		}
		file, err := os.ReadFile("dance.amx")
		if err != nil {
			t.Fatal(err)
		}
		if p, err := amx.Read(file); err != nil || int(p.Version) != version {
			t.Errorf("%s: %+v, %v", flags, p, err)
		}
		if out, _, code := robotkit(t, "run", "dance.amx"); code != cli.ExitOK || !strings.HasPrefix(out, "N move(1200)\n") {
			t.Errorf("%s: %d %q", flags, code, out)
		}
	}
	for _, flags := range []string{"-C+", "-C-", "-O0 -d0", "-O1 -d2", "-d3", "-C+ -V4096"} {
		args := append([]string{"build", "dance.p", "-iinc", "TARGET=100"}, strings.Fields(flags)...)
		if _, errOut, code := robotkit(t, args...); code != cli.ExitOK {
			t.Fatalf("%s: %d %s", flags, code, errOut)
		}
		file, _ := os.ReadFile("dance.amx")
		if compact := file[8]&byte(amx.FlagCompact) != 0; compact != strings.Contains(flags, "C+") {
			t.Errorf("%s: compact encoding %v", flags, compact)
		}
		if out, _, code := robotkit(t, "run", "dance.amx"); code != cli.ExitOK || !strings.HasPrefix(out, "N move(1200)\n") {
			t.Errorf("%s: %d %q", flags, code, out)
		}
	}
}

// TestBuildErrors shows that an error leaves no file and says where it is, and that limits hold (PLEO-PBT-12).
func TestBuildErrors(t *testing.T) {
	scriptFolder(t, map[string]string{"bad.p": "main()\n{\n\tnew counter = 1\n\tcuonter = counter\n}\n", "good.p": "main() return 3\n", "warn.p": "main() { new a = 1; }\n"})
	out, errOut, code := robotkit(t, "build", "bad.p")
	if code == cli.ExitOK || out != "" || !strings.Contains(errOut, "bad.p(4,2) : error 017") {
		t.Errorf("error: %d %q %q", code, out, errOut)
	}
	if _, err := os.Stat("bad.amx"); err == nil {
		t.Error("a file was written after an error")
	}
	out, _, code = robotkit(t, "build", "bad.p", "--json")
	var got built
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&got); err != nil && err != io.EOF {
		t.Fatal(err, out)
	}
	if code == cli.ExitOK || len(got.Messages) != 1 || got.Messages[0].Number != 17 || got.Messages[0].Line != 4 || got.File != "" {
		t.Errorf("JSON: %d %+v", code, got)
	}
	if _, errOut, code = robotkit(t, "build", "warn.p"); code != cli.ExitOK || !strings.Contains(errOut, "warning 204") {
		t.Errorf("warning: %d %q", code, errOut)
	}
	if _, errOut, code = robotkit(t, "build", "warn.p", "-w204"); code != cli.ExitOK || errOut != "" {
		t.Errorf("warning switched off: %d %q", code, errOut)
	}
	for _, flags := range []string{"-X100", "-XD100", "-amx=11", "-X0", "-C?", "-O3", "-d4", "-S0", "-V-1", "TARGET", "=3", "A=x", "-Cmaybe"} {
		if _, _, code := robotkit(t, "build", "good.p", flags); code == cli.ExitOK {
			t.Errorf("%s is accepted", flags)
		}
	}
	if _, errOut, code := robotkit(t, "build", "good.p", "-X20000", "-XD20000"); code != cli.ExitOK {
		t.Errorf("limits that hold: %d %s", code, errOut)
	}
	if _, _, code := robotkit(t, "build", "missing.p"); code == cli.ExitOK {
		t.Error("a missing script is accepted")
	}
}
