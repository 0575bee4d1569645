package kitapp

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/wav"
	"kennel/infra/cli"
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

// systemMode serves the System port of a robot on TCP and returns its address. The robot stays in System mode (AMIGO-DL-04).
func systemMode(t *testing.T, m *sysmode.Memory) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var p sip.Parser
			for {
				n, err := conn.Read(p.Space())
				if err != nil {
					break
				}
				p.Fill(n)
				for payload, ok := p.Next(); ok; payload, ok = p.Next() {
					if reply, _ := m.Handle(payload); reply != nil {
						frame, _ := sip.AppendFrame(nil, reply) // Handle keeps to the size
						_, _ = conn.Write(frame)                // the client sees a broken connection
					}
				}
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return "tcp:" + listener.Addr().String()
}

// TestAmigoParams: each of the 37 parameters is listed and read; each variable takes both ends of its range, is stored, restored from a
// file and refused out of range; constants are refused (AMIGO-FLASH-01 to 39, AMIGO-CF-01 to 12).
func TestAmigoParams(t *testing.T) {
	m := sysmode.NewMemory("AmigOS 1.3", flash.Defaults())
	address := systemMode(t, m)
	params := func(want int, args ...string) (out, errOut string) {
		t.Helper()
		code, out, errOut := runIn(t, "", append([]string{"amigo", "params", "-port", address, "-yes"}, args...)...)
		if code != want {
			t.Errorf("%q: code %d, want %d: %s", args, code, want, errOut)
		}
		return out, errOut
	}
	backup := filepath.Join(t.TempDir(), flash.FileName)
	params(cli.ExitOK, "save", backup)
	out, _ := params(cli.ExitOK, "list", "-o", "json")
	var listed []param
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed) != int(flash.Count) {
		t.Fatalf("%v, %d parameters", err, len(listed))
	}
	want := flash.Defaults()
	for k := range flash.Count {
		p := k.Param()
		lower := strings.ToLower(p.Keyword)
		if got := listed[k]; got.Keyword != p.Keyword || got.Value != p.Default || got.Constant != p.Constant || got.Critical != p.Critical || got.Doc == "" {
			t.Errorf("listed %+v", got)
		}
		if out, _ := params(cli.ExitOK, "get", lower); out != p.Keyword+" "+p.Default+"\n" {
			t.Errorf("get: %q", out)
		}
		good, bad := []string{"Rover", "Rover_2"}, []string{"two words", strings.Repeat("x", 21)}
		if p.Kind != flash.Text {
			good, bad = []string{"0x" + strconv.FormatInt(int64(p.Min), 16), strconv.Itoa(p.Max)}, []string{strconv.Itoa(p.Max + 1), "fast"}
		}
		if p.Constant {
			good, bad = nil, append(bad, good...)
		}
		for _, value := range good {
			params(cli.ExitOK, "set", lower, value)
			_ = want.Set(p.Keyword, value) // in range
			if m.Params != want {
				t.Errorf("%s %s: stored %s", k, value, m.Params.Value(k))
			}
		}
		for _, value := range bad {
			if _, errOut := params(cli.ExitUsage, lower, value); !strings.Contains(errOut, p.Keyword) || m.Params != want {
				t.Errorf("%s %s: stored %s, %s", k, value, m.Params.Value(k), errOut)
			}
		}
	}
	if _, errOut := params(cli.ExitNotFound, "get", "wachdog"); !strings.Contains(errOut, "did you mean WatchDog") {
		t.Error(errOut)
	}
	params(cli.ExitUsage, "set", "watchdog")
	if params(cli.ExitOK, "restore", backup, "-reset"); m.Params != flash.Defaults() {
		t.Errorf("restored\n%s", m.Params.Format())
	}
}

// TestAmigoParamsEditor: the commands of the manual at the prompt; a question before critical parameters are saved (AMIGO-FLASH-39).
func TestAmigoParamsEditor(t *testing.T) {
	m := sysmode.NewMemory("AmigOS 1.3", flash.Defaults())
	address := systemMode(t, m)
	file := filepath.Join(t.TempDir(), "mine.cf")
	for _, tt := range []struct {
		name, typed string
		out, err    []string // parts
		watchdog    int
	}{
		{"end of input", "", nil, []string{"FLASH of the robot with AmigOS 1.3", "> "}, 2000},
		{"show, edit, drop", "watchdog\nwatchdog 0xfa0\nq\n", []string{"WatchDog 2000\nWatchDog 4000\n"}, []string{"not saved are dropped"}, 2000},
		{"lists", "c\nwatchdog 7\nv\nquit\n", []string{"PwmMax", "7 (not saved)"}, nil, 2000},
		{"mistakes", "\nwachdog\npwmmax 3\nwatchdog x\nq", nil, []string{"did you mean WatchDog", "PwmMax is a constant", "from 0 to 65535 ms"}, 2000},
		{"save", "watchdog 4000\nsave\nq\n", nil, []string{"after its next reset"}, 4000},
		{"to a file, and drop", "watchdog 5000\nsave " + file + "\nr\nwatchdog\nq\n", []string{"5000\nWatchDog 4000\n"}, nil, 4000},
		{"from the file", "restore " + file + "\nsave\nq\n", nil, nil, 5000},
		{"critical, declined", "rotkp 1\nwatchdog 1\nsave\nn\nq\n", nil, []string{"With a wrong RotKp the robot drives badly. Save? [y/N] not saved"}, 5000},
		{"critical, accepted", "revcount 24000\nwatchdog 1\nsave\ny\nq\n", nil, []string{"wrong RevCount", "Saved"}, 1},
		{"help", "?\nhelp\n", nil, []string{"save FILE"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errOut := runIn(t, tt.typed, "amigo", "params", "-p", address)
			if code != cli.ExitOK || m.Params.Int(flash.WatchDog) != tt.watchdog {
				t.Errorf("code %d, WatchDog %d, want %d", code, m.Params.Int(flash.WatchDog), tt.watchdog)
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

// TestAmigoParamsOffline: -n edits a file without a robot (AMIGO-CF-01); errors in a file name the line (AMIGO-OPEN-04).
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
	if code, _, errOut := runIn(t, "", "amigo", "params", "-n", file, "list"); code != cli.ExitUsage || !strings.Contains(errOut, "line 2: unknown parameter") {
		t.Errorf("code %d %s", code, errOut)
	}
	if code, _, _ := runIn(t, "", "amigo", "params", "-n", file, "-reset"); code != cli.ExitUsage {
		t.Errorf("-n with -reset: code %d", code)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "tcp:" + silent.Addr().String()
	_ = silent.Close()
	if code, _, errOut := runIn(t, "", "amigo", "params", "-p", gone, "list"); code != cli.ExitUnavailable || !strings.Contains(errOut, "connect to") {
		t.Errorf("no robot: code %d %s", code, errOut)
	}
}

// TestAmigoSounds: a sound is imported, listed, exported unchanged and loaded into a robot (AMIGO-OPEN-05, AMIGO-DL-01 to 03).
func TestAmigoSounds(t *testing.T) {
	dir := t.TempDir()
	image, bark, back := filepath.Join(dir, "sounds.hex"), filepath.Join(dir, "a_very_long_bark.wav"), filepath.Join(dir, "back.wav")
	ramp := &wav.Sound{Rate: soundset.Rate, Channels: 1}
	for i := range 4500 {
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
	ok("sounds", "import", image, "51", bark, "-name", "bark")
	ok("sounds", "export", image, "51", back)
	var lines []soundLine
	if err := json.Unmarshal([]byte(ok("sounds", "list", image, "-o", "json")), &lines); err != nil || len(lines) != 12 || lines[10] != (soundLine{50, "a_very_long_bark"[:16], false, 0.5}) {
		t.Errorf("%v %+v", err, lines)
	}
	if want, got := wav.Append(nil, ramp), must(os.ReadFile(back)); !bytes.Equal(got, want) {
		t.Errorf("exported %d bytes, want %d", len(got), len(want))
	}
	m := sysmode.NewMemory("AmigOS 1.3", flash.Defaults())
	address := systemMode(t, m)
	if out := ok("download", image, "-p", address, "-o", "json"); !strings.HasPrefix(out, `{"kind":"sounds","bytes":`) {
		t.Error(out)
	}
	if set, err := soundset.Parse(m.Sounds); err != nil || set[51].Name != "bark" || len(set[51].Samples) != 4500 || set[soundset.Stall].Name != "stall" {
		t.Errorf("in the robot: %v", err)
	}

	program := filepath.Join(dir, "AmigOS.hex")
	for _, tt := range []struct {
		name, hex string
		args      []string
		code      int
		want      string
	}{
		{"program", ":0100000055AA\n:00000001FF\n", []string{"download", program, "-p", address}, cli.ExitOK, "program: 100 % of 1 bytes"},
		{"program has no sounds", ":0100000055AA\n:00000001FF\n", []string{"sounds", "list", program}, cli.ExitUsage, "want one sound image at 0x200000"},
		{"damaged", ":0100000055AB\n:00000001FF\n", []string{"download", program, "-p", address}, cli.ExitUsage, "line 1: checksum AB, want AA"},
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
	if m.Program[0] != 0x55 {
		t.Error("the program is not in the robot")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
