package simapp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/sim/uart"
	"kennel/infra/cli"
)

// sipPeer is a foreign program at one of the robot's ports.
type sipPeer struct {
	t      *testing.T
	rw     io.ReadWriteCloser
	parser sip.Parser
}

func dialPeer(t *testing.T, network, address string) *sipPeer {
	t.Helper()
	c, err := net.Dial(network, address)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(30 * time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return &sipPeer{t: t, rw: c}
}

// ask sends payload unless it is nil, and returns the payload of the next packet that begins with kind.
func (p *sipPeer) ask(kind byte, payload []byte) []byte {
	p.t.Helper()
	if payload != nil {
		b, err := sip.AppendFrame(nil, payload)
		if err == nil {
			_, err = p.rw.Write(b)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	for {
		for got, ok := p.parser.Next(); ok; got, ok = p.parser.Next() {
			if got[0] == kind {
				return bytes.Clone(got)
			}
		}
		n, err := p.rw.Read(p.parser.Space())
		if err != nil {
			p.t.Fatal(err)
		}
		p.parser.Fill(n)
	}
}

// TestAmigobot: a client reaches the robot on each kind of line; a hand works the panel; tools change the parameters, and the next robot of the same
// folder has them (AMIGO-SIM-01, AMIGO-SIM-06, AMIGO-LINK-04, AMIGO-LINK-05, AMIGO-DL-06, AMIGO-SND-04).
func TestAmigobot(t *testing.T) {
	dir := t.TempDir()
	system := filepath.Join(dir, "system")
	in, hand, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close() // nothing waits in it
	p := start(t, in, "amigobot", "-listen", "127.0.0.1:0", "-system", system, "-state", filepath.Join(dir, "state"), "-sounds", dir,
		"-set", "SInfoCycle=1", "-world", "room", "-hand")
	do := func(line, want string) {
		t.Helper()
		if _, err := io.WriteString(hand, line+"\n"); err != nil {
			t.Fatal(err)
		}
		for got := ""; got != want; { // sounds come between
			got = p.await("")
		}
	}
	_ = in.Close() // read only
	addr := strings.TrimPrefix(p.await("-listen: tcp:"), "-listen: tcp:")
	p.await("-system: " + system)
	c := dialPeer(t, "tcp", addr)
	for n := range uint8(2) {
		c.ask(n, []byte{n})
	}
	if id := c.ask(sip.Sync2, []byte{sip.Sync2}); string(id[1:]) != "not_set\x00Pioneer\x00amigo\x00" {
		t.Errorf("identity %q", id)
	}
	var s sip.Standard
	if err := s.Parse(c.ask(sip.TypeStopped, []byte{sip.Open})); err != nil || s.Flags != sip.FlagSonar {
		t.Errorf("%+v, %v", s, err)
	}
	do("black", "black: connected")
	do("digital 0x21", "digital: connected")
	for s.Digin != 0x21 || s.Flags&sip.FlagMotors == 0 {
		if err := s.Parse(c.ask(sip.TypeStopped, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "2.wav")); err != nil || !bytes.HasPrefix(b, []byte("RIFF")) {
		t.Errorf("the connect sound: %v", err)
	}
	do("system", "system: System mode")
	tool := dialPeer(t, "unix", system)
	tool.ask(sysmode.WriteParam, append([]byte{sysmode.WriteParam, 1, 8}, "Rover"...)) // Name
	tool.ask(sysmode.Commit, []byte{sysmode.Commit, 2})
	do("off", "off: off")
	for line, want := range map[string]string{
		"jump": `error: "jump": want one of analog, black`, "volts": "error: volts: want 1 number, got 0: VOLTS",
		"volts x": `error: volts "x": want a number`,
		"state":   "off: motors false", "analog 9 1": "analog: off", "hold 1 0": "hold: off", "grip 0 1": "grip: off", "charger 2": "charger: off", "drag 0 0.1": "drag: off",
	} {
		if _, err := io.WriteString(hand, line+"\n"); err != nil {
			t.Fatal(err)
		}
		p.await(want)
	}
	if err := p.cmd.Cancel(); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		t.Errorf("%v: %s", err, &p.errs)
	}

	// Another life of the same robot, on a pseudo-terminal behind the modems.
	link := filepath.Join(dir, "tty")
	p = start(t, nil, "amigobot", "-pty", link, "-state", filepath.Join(dir, "state"), "-modem")
	p.await("-pty: " + link + " is /dev/pts/")
	f, err := os.OpenFile(link, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteString("WMS2\r")
	}
	if err != nil {
		t.Fatal(err)
	}
	c = &sipPeer{t: t, rw: f}
	for n := range uint8(2) {
		c.ask(n, []byte{n})
	}
	if id := c.ask(sip.Sync2, []byte{sip.Sync2}); string(id[1:]) != "Rover\x00Pioneer\x00amigo\x00" {
		t.Errorf("in its next life it is %q", id)
	}
	if err := errors.Join(f.Close(), p.cmd.Cancel(), p.wait()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(link); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link is left behind: %v", err)
	}
}

// TestTruth: with -truth the simulator prints where the robot really is, beside where it believes to be; here its wheels have no grip.
func TestTruth(t *testing.T) {
	in, hand, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close() // nothing waits in it
	p := start(t, in, "amigobot", "-listen", "127.0.0.1:0", "-hand", "-truth", "50ms")
	_ = in.Close()                             // read only
	next := func(begin string) (line string) { // of those that begin so
		t.Helper()
		for line = p.await(""); !strings.HasPrefix(line, begin); line = p.await("") {
		}
		return line
	}
	c := dialPeer(t, "tcp", strings.TrimPrefix(next("-listen: tcp:"), "-listen: tcp:"))
	for n := range uint8(3) {
		c.ask(n, []byte{n})
	}
	c.ask(sip.TypeStopped, []byte{sip.Open})
	if _, err := io.WriteString(hand, "grip 0 0\n"); err != nil {
		t.Fatal(err)
	}
	next("grip: ")
	c.ask(sip.TypeStopped, []byte{sip.Enable, 0x3b, 1, 0})
	c.ask(sip.TypeMoving, []byte{sip.Vel, 0x3b, 200, 0})
	for last := -1.0; ; {
		line := next("{")
		var is truth
		if err := json.Unmarshal([]byte(line), &is); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if is.Time <= last {
			t.Errorf("%s comes after %.2f s", line, last)
		}
		if last = is.Time; is.Believed[0] > 0.05 {
			if is.X != 0 || !is.Motors || is.Wheels[0] < 0.01 {
				t.Errorf("%s; want motors and wheels that turn, and a robot that does not move", line)
			}
			break
		}
	}
	if err := errors.Join(p.cmd.Cancel(), p.wait()); err != nil {
		t.Error(err)
	}
}

// TestAmigobotMistakes: each is named before the robot starts.
func TestAmigobotMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	bad := filepath.Join(dir, "bad")
	for _, err := range []error{
		os.WriteFile(file, nil, 0o600), os.Mkdir(bad, 0o755), os.WriteFile(filepath.Join(bad, paramsFile), []byte("x"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	busy, addr, err := uart.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close() // nothing waits in it
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, cli.ExitUsage, "-listen ADDRESS, -pty FILE or -socket FILE"},
		{[]string{"-listen", ":0", "-pty", "x"}, cli.ExitUsage, "-listen ADDRESS, -pty FILE"},
		{[]string{"-listen", addr.String()}, cli.ExitFailed, "-listen: uart: listen tcp"},
		{[]string{"-listen", "127.0.0.1:0", "-system", file}, cli.ExitUsage, "-system " + file + ": exists"},
		{[]string{"-pty", file}, cli.ExitUsage, file + ": exists"},
		{[]string{"-listen", ":0", "-truth", "1ms"}, cli.ExitUsage, "-truth 1ms: want 10ms or more"},
		{[]string{"-listen", ":0", "-volume", "2"}, cli.ExitUsage, "-volume 2: want 0 to 1"},
		{[]string{"-listen", ":0", "-world", "moon"}, cli.ExitUsage, "-world"},
		{[]string{"-listen", ":0", "-world", "habitat"}, cli.ExitUsage, "no room for the robot"},
		{[]string{"-listen", ":0", "-version", "2.0"}, cli.ExitUsage, "want one of 1.0, 1.2, 1.3"},
		{[]string{"-listen", ":0", "-profile", "p3dx"}, cli.ExitUsage, "want one of amigo, amigo-aria"},
		{[]string{"-listen", ":0", "-volts", "3"}, cli.ExitUsage, "volts is 3, want 10 to 13.8"},
		{[]string{"-listen", ":0", "-set", "WatchDog=x"}, cli.ExitUsage, `-set: WatchDog "x": want`},
		{[]string{"-listen", ":0", "-serial", "a b"}, cli.ExitUsage, "-serial: Serial"},
		{[]string{"-listen", ":0", "-state", bad}, cli.ExitFailed, paramsFile},
	} {
		var out, errOut bytes.Buffer
		code := Main(append([]string{"amigobot"}, tt.args...), noenv, &out, &errOut)
		if code != tt.code || !strings.Contains(errOut.String(), tt.want) {
			t.Errorf("%v: code %d, %s; want %d, %q", tt.args, code, &errOut, tt.code, tt.want)
		}
	}
}
