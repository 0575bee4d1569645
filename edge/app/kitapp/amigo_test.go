package kitapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/amigobotsim"
	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/soundset"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/sim/uart"
	"kennel/infra/cli"
	"kennel/infra/freeaddr"
	"kennel/infra/wav"
)

// runIn is run with what a person types.
func runIn(t *testing.T, typed string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	root := command()
	root.SetIn(strings.NewReader(typed))
	code = cli.Run(t.Context(), root, args, func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// amigo is a simulated robot and the addresses of its ports.
type amigo struct {
	*amigobotsim.Robot
	control, system string
}

// serve serves a robot on TCP until the test ends. Its time passes so many times faster.
func serve(t *testing.T, cfg amigobotsim.Config, faster time.Duration) amigo {
	t.Helper()
	robot, err := amigobotsim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a := amigo{Robot: robot}
	var lines [2]*uart.Socket
	for i, address := range []*string{&a.control, &a.system} {
		line, at, err := uart.ListenTCP("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		lines[i], *address = line, "tcp:"+at.String()
	}
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- func() error {
			ticks := time.NewTicker(10 * time.Millisecond / faster)
			defer ticks.Stop()
			for {
				select {
				case <-end:
					return errors.Join(lines[0].Close(), lines[1].Close())
				case <-ticks.C:
				}
				var in, out amigobotsim.Lines
				for i, l := range lines {
					if in[i], err = l.Read(); err != nil {
						return err
					}
				}
				out = robot.Step(in, out)
				for i, l := range lines {
					if _, err := l.Write(out[i]); err != nil {
						return err
					}
				}
			}
		}()
	}()
	t.Cleanup(func() {
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

// await returns the robot's state when cond holds.
func (a amigo) await(t *testing.T, what string, cond func(amigobotsim.State) bool) amigobotsim.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := a.Await(ctx, cond)
	if err != nil {
		t.Fatalf("%s: %v: %+v", what, err, s)
	}
	return s
}

// patience is how long a test waits for what must happen, on a machine however slow.
const patience = 2 * time.Minute

// systemMode presses the buttons for System mode (AMIGO-UI-06).
func (a amigo) systemMode(t *testing.T) {
	a.SetBlack(true)
	a.SetReset(true)
	a.SetReset(false)
	a.SetBlack(false)
	a.await(t, "System mode", func(s amigobotsim.State) bool { return s.Mode == amigobotsim.SystemMode })
}

// TestAmigoParams: each of the 37 parameters of a robot is read, each variable is stored at both ends of its range and restored from a file;
// what is out of range is refused, and so are constants (AMIGO-FLASH-01 to 39, AMIGO-CF-02 to 12).
func TestAmigoParams(t *testing.T) {
	a := serve(t, amigobotsim.Config{}, 4)
	a.systemMode(t)
	params := func(typed string, args ...string) (out, errOut string) {
		t.Helper()
		code, out, errOut := runIn(t, typed, append([]string{"amigo", "params", "-port", a.system, "-yes"}, args...)...)
		if code != cli.ExitOK {
			t.Errorf("%q: code %d: %s", args, code, errOut)
		}
		return out, errOut
	}
	list := func() (listed []param) {
		t.Helper()
		out, _ := params("", "list", "-o", "json")
		if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed) != int(flash.Count) {
			t.Fatalf("%v, %d parameters", err, len(listed))
		}
		return listed
	}
	backup := filepath.Join(t.TempDir(), flash.FileName)
	params("", "save", backup)
	before := list()
	// The values typed, and then stored in the robot: the lowest, the highest, the lowest in hexadecimal.
	for round, of := range []func(flash.Param) string{
		func(p flash.Param) string { return strconv.Itoa(p.Min) },
		func(p flash.Param) string { return strconv.Itoa(p.Max) },
		func(p flash.Param) string { return fmt.Sprintf("%#x", p.Min) },
	} {
		var typed strings.Builder
		var refusals int
		var want []string
		for k := range flash.Count {
			p := k.Param()
			good, bad := fmt.Sprintf("Rover%d", round), strings.Repeat("x", 21)
			if p.Kind != flash.Text {
				good, bad = of(p), strconv.Itoa(p.Max+1)
			}
			fmt.Fprintf(&typed, "%[1]s %[2]s\n%[1]s %[3]s\n%[1]s\n", strings.ToUpper(p.Keyword), good, bad)
			refusals++
			if p.Constant {
				refusals, good = refusals+1, p.Default
			}
			if n, err := strconv.ParseInt(good, 0, 32); err == nil {
				good = strconv.Itoa(int(n))
			}
			want = append(want, good)
		}
		_, errOut := params(typed.String() + "save\nquit\n")
		if got := strings.Count(errOut, ": want ") + strings.Count(errOut, "is a constant"); got != refusals {
			t.Errorf("round %d: %d values refused, want %d\n%s", round, got, refusals, errOut)
		}
		for k, got := range list() {
			p := flash.Key(k).Param()
			if got.Keyword != p.Keyword || got.Value != want[k] || got.Stored != want[k] || got.Constant != p.Constant || got.Doc == "" {
				t.Errorf("round %d: got %+v, want %s", round, got, want[k])
			}
		}
	}
	if params("", "restore", backup, "-reset"); a.State().Mode == amigobotsim.SystemMode {
		t.Error("the robot is still in System mode")
	}
	a.systemMode(t)
	if got := list(); !slices.Equal(got, before) {
		t.Errorf("restored %+v, want %+v", got, before)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown", []string{"get", "wachdog"}, cli.ExitNotFound, "did you mean WatchDog"},
		{"no value", []string{"set", "watchdog"}, cli.ExitUsage, "a keyword"},
		{"out of range", []string{"set", "hostbaud", "3"}, cli.ExitUsage, "from 0 to 2"},
		{"critical", []string{"set", "rotkp", "3"}, cli.ExitUsage, "-yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, _, errOut := runIn(t, "", append([]string{"amigo", "params", "-p", a.system}, tt.args...)...)
			if code != tt.code || !strings.Contains(errOut, tt.want) {
				t.Errorf("code %d, want %d: %s, want %q", code, tt.code, errOut, tt.want)
			}
		})
	}
}

// TestAmigoParamsEditor: the commands of the manual at the prompt; a question before critical parameters are saved (AMIGO-FLASH-39).
func TestAmigoParamsEditor(t *testing.T) {
	a := serve(t, amigobotsim.Config{}, 4)
	a.systemMode(t)
	file := filepath.Join(t.TempDir(), "mine.cf")
	for _, tt := range []struct {
		name, typed string
		out, err    []string // parts
		watchdog    string
	}{
		{"end of input", "", nil, []string{"FLASH of the robot with AmigOS 1.3", "> "}, "2000"},
		{"show, edit, drop", "watchdog\nwatchdog 0xfa0\nq\n", []string{"WatchDog 2000\nWatchDog 4000\n"}, []string{"discarded"}, "2000"},
		{"lists", "c\nwatchdog 7\nv\nquit\n", []string{"PwmMax", "7 (not saved)"}, nil, "2000"},
		{"mistakes", "\nwachdog\npwmmax 3\nwatchdog x\nq", nil, []string{"did you mean WatchDog", "PwmMax is a constant", "from 0 to 65535 ms"}, "2000"},
		{"save", "watchdog 4000\nsave\nq\n", nil, []string{"next reset"}, "4000"},
		{"to a file, and drop", "watchdog 5000\nsave " + file + "\nr\nwatchdog\nq\n", []string{"5000\nWatchDog 4000\n"}, nil, "4000"},
		{"from the file", "restore " + file + "\nsave\nq\n", nil, nil, "5000"},
		{"critical, declined", "rotkp 1\nwatchdog 1\nsave\nn\nq\n", nil,
			[]string{"With a wrong RotKp the robot drives badly. Save? [y/N] not saved"}, "5000"},
		{"critical, accepted", "revcount 24000\nwatchdog 1\nsave\ny\nq\n", nil, []string{"wrong RevCount", "Saved"}, "1"},
		{"help", "?\nhelp\n", nil, []string{"save FILE"}, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errOut := runIn(t, tt.typed, "amigo", "params", "-p", a.system)
			if _, is, _ := runIn(t, "", "amigo", "params", "-p", a.system, "watchdog"); code != cli.ExitOK || is != "WatchDog "+tt.watchdog+"\n" {
				t.Errorf("code %d, %s, want %s", code, is, tt.watchdog)
			}
			for _, part := range tt.out {
				if !strings.Contains(out, part) {
					t.Errorf("no %q in\n%s", part, out)
				}
			}
			for _, part := range tt.err {
				if !strings.Contains(errOut, part) {
					t.Errorf("no %q in\n%s", part, errOut)
				}
			}
		})
	}
}

// TestAmigoParamsOffline: -n edits a file without a robot; errors in a file name the line (AMIGO-OPEN-04).
func TestAmigoParamsOffline(t *testing.T) {
	file := filepath.Join(t.TempDir(), flash.FileName)
	if code, _, errOut := runIn(t, "", "amigo", "params", "-n", file, "set", "name", "Rover"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "Name Rover\nSInfoCycle 0\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if code, _, errOut := runIn(t, "", "amigo", "params", "-n", file, "revcount", "1"); code != cli.ExitUsage || !strings.Contains(errOut, "-yes") {
		t.Errorf("critical, no answer: code %d %s", code, errOut)
	}
	if err := os.WriteFile(file, []byte("Name x\nBogus 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := runIn(t, "", "amigo", "params", "-n", file, "list")
	if code != cli.ExitUsage || !strings.Contains(errOut, "line 2: unknown parameter") {
		t.Errorf("code %d %s", code, errOut)
	}
	for _, args := range [][]string{{"-n", file, "-reset"}, {"list"}} { // neither a robot nor a file
		if code, _, errOut := runIn(t, "", append([]string{"amigo", "params"}, args...)...); code != cli.ExitUsage {
			t.Errorf("%q: code %d: %s", args, code, errOut)
		}
	}
	gone := "tcp:" + freeaddr.For(t)
	if code, _, errOut := runIn(t, "", "amigo", "params", "-p", gone, "list"); code != cli.ExitUnavailable || !strings.Contains(errOut, "connect to") {
		t.Errorf("no robot: code %d %s", code, errOut)
	}
}

// TestSystemError: a robot that does not answer may not be in System mode (AMIGO-CF-02, AMIGO-DL-05).
func TestSystemError(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		err  error
		code int
		want string
	}{
		{"none", nil, cli.ExitOK, ""},
		{"silent", fmt.Errorf("erase: %w", sysmode.ErrSilent), cli.ExitUnavailable, "is it in System mode? Hold the black button"},
		{"refused", fmt.Errorf("%w: not erased", sysmode.ErrRefused), cli.ExitUsage, "not erased"},
		{"another", broken, cli.ExitFailed, "broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := systemError(tt.err); cli.ExitCode(err) != tt.code || tt.err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, code %d, want %d", err, cli.ExitCode(err), tt.code)
			}
		})
	}
}

// TestAmigoSounds: a sound is imported, listed, exported unchanged and loaded into a robot (AMIGO-OPEN-05, AMIGO-DL-02 and 03).
func TestAmigoSounds(t *testing.T) {
	dir := t.TempDir()
	image, bark, back := filepath.Join(dir, "sounds.hex"), filepath.Join(dir, "a_very_long_bark.wav"), filepath.Join(dir, "back.wav")
	ramp := &wav.Sound{Rate: soundset.Rate, Channels: 1}
	for i := range 450 {
		ramp.Samples = append(ramp.Samples, int16(i%256-128)<<8)
	}
	if err := os.WriteFile(bark, wav.Append(nil, ramp), 0o600); err != nil {
		t.Fatal(err)
	}
	ok := func(args ...string) string {
		t.Helper()
		code, out, errOut := run(t, append([]string{"amigo"}, args...)...)
		if code != cli.ExitOK {
			t.Errorf("%q: code %d: %s", args, code, errOut)
		}
		return out
	}
	ok("sounds", "import", image, "50", bark)
	if out := ok("sounds", "import", image, "51", bark, "-name", "bark"); out != "sound 51 \"bark\", 0.05 s\n" {
		t.Error(out)
	}
	if out := ok("sounds", "export", image, "51", back, "-o", "json"); out != `{"number":51,"name":"bark","group":false,"seconds":0.05}`+"\n" {
		t.Error(out)
	}
	var lines []soundLine
	err := json.Unmarshal([]byte(ok("sounds", "list", image, "-o", "json")), &lines)
	if err != nil || len(lines) != 24 || lines[10] != (soundLine{50, "a_very_long_bark", false, 0.05}) {
		t.Errorf("%v %+v", err, lines)
	}
	if want, got := wav.Append(nil, ramp), must(os.ReadFile(back)); !bytes.Equal(got, want) {
		t.Errorf("exported %d bytes, want %d", len(got), len(want))
	}
	a := serve(t, amigobotsim.Config{}, 4)
	a.systemMode(t)
	if out := ok("download", image, "-reset", "-p", a.system, "-o", "json"); !strings.HasPrefix(out, `{"kind":"sounds","bytes":`) {
		t.Error(out)
	}
	want := "NUMBER  NAME   SECONDS\n4       stall  0.12\n51      bark   0.05\n"
	if out := ok("sounds", "list", "-p", a.control, "51", "4", "52"); out != want {
		t.Errorf("the robot has %q, want %q", out, want)
	}
	a.systemMode(t)

	program := filepath.Join(dir, "AmigOS.hex")
	for _, tt := range []struct {
		name, hex string
		args      []string
		code      int
		want      string
	}{
		{"program", ":0100000055AA\n:00000001FF\n", []string{"download", program, "-p", a.system}, cli.ExitOK, "program: 100 % of 1 bytes"},
		{"program has no sounds", ":0100000055AA\n:00000001FF\n", []string{"sounds", "list", program}, cli.ExitUsage, "want one sound image at 0x200000"},
		{"damaged", ":0100000055AB\n:00000001FF\n", []string{"download", program, "-p", a.system}, cli.ExitUsage, "line 1: checksum AB, want AA"},
		{"incomplete", ":0100000055AA\n", []string{"download", program}, cli.ExitUsage, "no end record"},
		{"nowhere", ":020000040002F8\n:0100000055AA\n:00000001FF\n", []string{"download", program}, cli.ExitUsage, "neither program"},
		{"short image", ":020000040020DA\n:0100000055AA\n:00000001FF\n", []string{"sounds", "list", program}, cli.ExitUsage, "sound image of 1 bytes"},
		{"absent", "", []string{"download", program + "x"}, cli.ExitNotFound, "no such file"},
		{"no such number", "", []string{"sounds", "export", image, "256", back}, cli.ExitUsage, "from 1 to 255"},
		{"no such sound", "", []string{"sounds", "export", image, "99", back}, cli.ExitNotFound, "has no sound 99"},
		{"no WAV", "", []string{"sounds", "import", image, "50", image}, cli.ExitUsage, "not a WAV file"},
		{"bad name", "", []string{"sounds", "import", image, "50", bark, "-name", "~group"}, cli.ExitUsage, "title of a group"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(program, []byte(tt.hex), 0o600); err != nil {
				t.Fatal(err)
			}
			code, _, errOut := run(t, append([]string{"amigo"}, tt.args...)...)
			if code != tt.code || !strings.Contains(errOut, tt.want) {
				t.Errorf("code %d, want %d: %s, want %q", code, tt.code, errOut, tt.want)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
