package amigobotsim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/port"
)

// TestCommands: no command number does harm, with any argument; those without effect on an AmigoBot are counted, and arguments that are missing or of
// the wrong kind have no effect (AMIGO-ARG-04, AMIGO-ARG-06, AMIGO-CMD-XX, AMIGO-OPEN-14).
func TestCommands(t *testing.T) {
	for _, tt := range []struct {
		name    string
		say     string
		ignored uint64
	}{
		{"PULSE with argument", "FAFB06003B0100013B", 0},
		{"STOP with argument", "FAFB061D3B01001E3B", 0},
		{"SETO with an int", "FAFB06073B0100083B", 0},
		{"ENABLE without argument", "FAFB03040004", 1},
		{"VEL with a string", "FAFB050B2B000B2B", 1},
		{"unknown type byte", "FAFB060B3C0100" + "0C3C", 1},
		{"POLLING with an int", "FAFB06033B0100043B", 1},
		{"GRIPPER", "FAFB06213B0100223B", 1},
		{"BATTERYINFO", "FAFB063E3B01003F3B", 0},
		{"HOSTBAUD", "FAFB06323B0200343B", 0},
		{"number 254", "FAFB03FE00FE", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connected(t, Config{}, true)
			before := c.r.State().Stats
			c.feed(1, Lines{Control: unhex(t, tt.say)})
			s := c.r.State().Stats
			if s.Heard != before.Heard+1 || s.Ignored != before.Ignored+tt.ignored {
				t.Errorf("heard %d, ignored %d; want 1, %d", s.Heard-before.Heard, s.Ignored-before.Ignored, tt.ignored)
			}
		})
	}
	c := newClient(t, Config{})
	for n := 3; n < 256; n++ {
		if n == int(sip.Step) {
			continue
		}
		c.r.BrownOut()
		c.connect()
		c.take(0)
		for _, m := range []sip.Command{{}, {Arg: sip.Positive}, {Arg: sip.Positive, Int: 65535}, {Arg: sip.Negative, Int: 65535}, {Arg: sip.String},
			{Arg: sip.String, Text: []byte("\x01\xff")}} {
			m.Number = uint8(n)
			c.send(m)
		}
		c.feed(20, Lines{})
		if len(c.take(sip.TypeStopped)) == 0 {
			t.Errorf("after number %d nothing is sent", n)
		}
	}
}

// TestBumpStall: the robot keeps which bumpers shall stall it, until the session ends; it has none (AMIGO-CMD-44).
func TestBumpStall(t *testing.T) {
	c := connected(t, Config{}, false)
	for _, v := range []struct{ sent, kept int }{{3, 3}, {4, 3}, {-1, 3}, {2, 2}, {0, 0}, {1, 1}} {
		if c.send(sip.Int(sip.BumpStall, v.sent)); c.r.State().BumpStall != v.kept {
			t.Errorf("after BUMPSTALL %d it is %d, want %d", v.sent, c.r.State().BumpStall, v.kept)
		}
	}
	c.send(sip.Command{Number: sip.Close})
	if got := c.r.State().BumpStall; got != 0 {
		t.Errorf("after the session it is %d, want 0", got)
	}
}

// TestVersions: what earlier servers lack or do otherwise (AMIGO-OPEN-15, AMIGO-SIP-15).
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		version    string
		kp, tty3   bool
		io         int
		aux        Port
		keeps      bool // session values until a reset
		outOfRange uint16
	}{
		{"1.0", false, false, 0, AUX2, true, 10991},
		{"1.2", false, false, 1, AUX2, true, 6100},
		{"1.3", true, true, 1, System, false, 6100},
	} {
		t.Run(tt.version, func(t *testing.T) {
			c := connected(t, Config{Memory: NewMemory(tt.version)}, false)
			c.send(sip.Int(sip.RotKP, 77), sip.Int(sip.SetV, 123), sip.Int(sip.IORequest, 1))
			if kp := c.config()[6]; (kp == 77) != tt.kp {
				t.Errorf("ROTKP 77 gives %d", kp)
			}
			out := c.send(sip.Command{Number: sip.TTY2, Arg: sip.String, Text: []byte("a")}, sip.Command{Number: sip.TTY3, Arg: sip.String, Text: []byte("b")})
			if string(out[tt.aux]) != "a" || bytes.Contains(out[AUX2], []byte("b")) != tt.tty3 {
				t.Errorf("TTY2 and TTY3 send %q", out[System:])
			}
			c.feed(20, Lines{})
			if n := len(c.take(sip.TypeIO)); n != tt.io {
				t.Errorf("%d IOpacs, want %d", n, tt.io)
			}
			if len(c.last.Sonar) == 0 || c.last.Sonar[0].Range != tt.outOfRange {
				t.Errorf("sonars %v, want %d", c.last.Sonar, tt.outOfRange)
			}
			var in Lines
			in[tt.aux] = []byte("hello")
			c.send(sip.Int(sip.GetAux, 5))
			c.feed(20, in)
			if p := c.take(sip.TypeAux1); len(p) != 1 || string(p[0][1:]) != "hello" {
				t.Errorf("GETAUX brings %q", p)
			}
			c.send(sip.Command{Number: sip.Close})
			c.connect()
			if v := c.config()[0]; (v == 123) != tt.keeps {
				t.Errorf("in the next session TransVelMax is %d", v)
			}
		})
	}
}

// TestStep: STEP freezes the time and lets one cycle of information pass each (AMIGO-CMD-64, AMIGO-SIM-05).
func TestStep(t *testing.T) {
	c := connected(t, Config{}, true)
	c.send(sip.Int(sip.Vel, 100))
	c.feed(44, Lines{})
	for i := range 3 {
		before, sent := c.r.State().Time, c.r.State().Stats.Sent
		c.send(sip.Command{Number: sip.Step})
		c.feed(500, Lines{})
		s := c.r.State()
		if s.Stats.Sent != sent+1 || s.Time-before > 100*time.Millisecond || i > 0 && s.Time-before != 100*time.Millisecond || !s.Stepping {
			t.Errorf("step %d: %d packets in %v", i, s.Stats.Sent-sent, s.Time-before)
		}
	}
	sent := c.r.State().Stats.Sent
	c.send(sip.Command{Number: sip.Step}, sip.Command{Number: sip.Step})
	if s := c.r.State(); s.Stats.Sent != sent+2 {
		t.Errorf("two STEPs at once send %d packets", s.Stats.Sent-sent)
	}
	for name, resume := range map[string]func(){
		"OPEN": func() { c.send(sip.Command{Number: sip.Open}) }, "Resume": c.r.Resume,
	} {
		c.send(sip.Command{Number: sip.Step})
		resume()
		sent := c.r.State().Stats.Sent
		c.feed(100, Lines{})
		if s := c.r.State(); s.Stats.Sent != sent+10 || s.Stepping {
			t.Errorf("after %s %d packets in 1 s", name, s.Stats.Sent-sent)
		}
	}
}

// TestLossy: a lossy server takes a command each 10 ms, keeps 8 and drops the rest (AMIGO-PKT-12).
func TestLossy(t *testing.T) {
	c := newClient(t, Config{Lossy: true})
	c.send(sip.Command{Number: sip.Sync0}, sip.Command{Number: sip.Sync1}, sip.Command{Number: sip.Sync2}, sip.Command{Number: sip.Open})
	c.feed(3, Lines{})
	if m := c.r.State().Mode; m != Connected {
		t.Fatalf("after four cycles %v", m)
	}
	var many []sip.Command
	for i := range 12 {
		many = append(many, sip.Int(sip.SetV, 100+i))
	}
	c.send(many...)
	heard := c.r.State().Stats.Heard
	c.feed(20, Lines{})
	if s := c.r.State().Stats; s.Heard != heard+7 || s.Dropped != 4 {
		t.Errorf("heard %d more, dropped %d; want 7, 4", s.Heard-heard, s.Dropped)
	}
	c.r.cfg.Lossy = false
	if v := c.config()[0]; v != 107 {
		t.Errorf("the last one taken is %d, want 107", v)
	}
}

// TestThrottle: at 9600 bit/s a cycle of 50 ms has room for the standard packet and the encoders; the other packets wait their turn, and no cycle of
// 10 ms carries more than the line does (AMIGO-LINK-08).
func TestThrottle(t *testing.T) {
	m := NewMemory("1.3")
	if err := m.Params.Set("SInfoCycle", "1"); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{Memory: m, Throttle: true})
	for _, n := range []uint8{sip.Sync0, sip.Sync1, sip.Sync2, sip.Open} {
		c.send(sip.Command{Number: n})
		c.feed(5, Lines{})
	}
	c.send(sip.Int(sip.Encoder, 1), sip.Int(sip.IORequest, 2), sip.Int(sip.GetPlaylist, 50), sip.Int(sip.GetAux, 3))
	c.feed(1, Lines{System: []byte("abc")})
	n := 0
	for range 100 {
		out := len(c.feed(1, Lines{})[Control])
		if n += out; out > 20 {
			t.Errorf("%d bytes in a cycle, want at most 20", out)
		}
	}
	if n > 970 {
		t.Errorf("%d bytes in a second, want at most 960", n)
	}
	kinds := map[byte]int{}
	for _, p := range c.got {
		kinds[p[0]]++
	}
	if k := kinds; k[sip.TypeStopped] < 18 || k[sip.TypeEncoders] < 18 || k[sip.TypeIO] > 2 {
		t.Errorf("packets in a second: %v", k)
	}
	c.send(sip.Int(sip.Encoder, 0), sip.Int(sip.Sonar, 0), sip.Int(sip.IORequest, 0)) // room for one more
	c.take(0)
	c.feed(300, Lines{})
	if aux := len(c.take(sip.TypeAux1)); aux != 1 {
		t.Errorf("%d SERAUXpacs when there is room, want 1", aux)
	}
}

// TestFaults: loss, delay and range of the link; the same seed loses the same packets (AMIGO-RF-18, AMIGO-LINK-06).
func TestFaults(t *testing.T) {
	lossy := func() (sent, got int) {
		c := connected(t, Config{Seed: 5}, false)
		c.take(0)
		c.r.SetFaults(Faults{Loss: 0.3})
		c.feed(1000, Lines{})
		return int(c.r.State().Stats.Sent), len(c.take(sip.TypeStopped))
	}
	sent, got := lossy()
	if _, again := lossy(); sent != 100 || got < 50 || got > 90 || again != got {
		t.Errorf("of %d packets %d arrive, then %d", sent, got, again)
	}
	c := connected(t, Config{}, false)
	c.feed(10, Lines{})
	c.r.SetFaults(Faults{Delay: 250 * time.Millisecond})
	c.take(0)
	c.send(sip.Int(sip.GetConfig, 0))
	c.feed(48, Lines{})
	if n := len(c.take(sip.TypeConfig)); n != 0 {
		t.Error("the answer comes too early")
	}
	c.feed(3, Lines{})
	if n := len(c.take(sip.TypeConfig)); n != 1 {
		t.Errorf("%d answers after 0.5 s, want 1", n)
	}
	c = connected(t, Config{}, true)
	c.r.SetFaults(Faults{Range: 0.5})
	c.send(sip.Int(sip.Vel, 300))
	c.run(10 * time.Second) // out of range the watchdog stops it; the session stays
	s := c.r.State()
	if s.Mode != Connected || !s.Silent || s.Pose[0] < 0.8 || s.Pose[0] > 1.5 {
		t.Errorf("out of range: %+v", s)
	}
	c.take(0)
	c.r.SetFaults(Faults{})
	c.run(time.Second)
	if v, _ := c.pace(); v < 0.2 || len(c.take(sip.TypeMoving)) == 0 {
		t.Errorf("in range again it drives at %v m/s", v)
	}
}

var update = flag.Bool("update", false, "rewrite testdata/lives.sha256, on amd64")

// TestLivesAreTheSameOnEveryProcessor: one seed makes one life, bit by bit; another seed makes another. Under the emulator here is an ARM v7.
func TestLivesAreTheSameOnEveryProcessor(t *testing.T) {
	live := func(seed uint64) string {
		m := roomMap(t)
		m.Slip = 0.1
		c := connected(t, Config{Seed: seed, World: m, SonarNoise: 0.01, SonarGain: 0.8}, true)
		for i := range 40 {
			c.send(sip.Int(sip.Vel, 150-i*10), sip.Int(sip.RVel, 30-i))
			c.run(time.Second / 2)
			c.send(sip.Int(sip.DHead, 77*i), vel2(int8(i%9-2), int8(i%7)))
			c.run(time.Second / 2)
		}
		s := c.r.State()
		bits := fmt.Sprintf("%x", [...]float64{s.Pose[0], s.Pose[1], s.Pose[2], s.Speed[0], s.Speed[1], s.Volts})
		return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, bits, s.Ticks, c.got)))
	}
	got := live(1)
	file := filepath.Join("testdata", "lives.sha256")
	if *update {
		if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("a life here has the sum %s, want %s (-update rewrites it, on amd64)", got, want)
	}
	if live(2) == got {
		t.Error("two seeds make one life")
	}
}

// TestStepped: a client in simulated time waits for packets, and Await sees states.
func TestStepped(t *testing.T) {
	c := newClient(t, Config{})
	s := NewStepped(c.r)
	var _ port.Port = s
	var packet []byte
	hear := func() []byte {
		t.Helper()
		b := make([]byte, 256)
		if ok, err := s.Wait(s.Now() + time.Second); !ok || err != nil {
			t.Fatal(ok, err)
		}
		n, err := s.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return b[:n]
	}
	for _, n := range []uint8{sip.Sync0, sip.Sync1, sip.Sync2} {
		packet, _ = sip.Command{Number: n}.Append(packet[:0])
		if _, err := s.Write(packet); err != nil {
			t.Fatal(err)
		}
		if got := hear(); !bytes.HasPrefix(got[3:], []byte{n}) {
			t.Errorf("SYNC%d brings %X", n, got)
		}
	}
	if _, err := s.Write(unhex(t, "FAFB03010001")); err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(); err != nil {
		t.Fatal(err)
	}
	before := s.Now()
	for range 5 {
		hear()
	}
	if d := s.Now() - before; d != 490*time.Millisecond {
		t.Errorf("five packets took %v, want 490ms", d)
	}
	if ok, _ := s.Wait(s.Now() + 15*time.Millisecond); ok {
		t.Error("a packet comes too early")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.r.Await(context.Background(), func(st State) bool { return st.Time >= time.Second })
		ended <- err
	}()
	s.SleepUntil(s.Now() + 2*time.Second)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.r.Await(ctx, func(State) bool { return false }); err == nil {
		t.Error("Await outlives its context")
	}
}

// FuzzControl: whatever a client sends, the robot sends whole packets and keeps its limits.
func FuzzControl(f *testing.F) {
	f.Add([]byte("\xfa\xfb\x06\x04\x3b\x01\x00\x05\x3b"))
	f.Add([]byte("\xfa\xfb\x03\x40\x00\x40\xfa\xfb\x06\x20\x3b\x0a\x0a\x2a\x45"))
	memory := NewMemory("1.3")
	f.Fuzz(func(t *testing.T, in []byte) {
		c := connected(t, Config{Memory: memory}, true)
		c.feed(30, Lines{Control: slices.Clone(in)})
		if n := c.parser.Counters().Skipped; n > 0 {
			t.Fatalf("%d bytes belong to no packet", n)
		}
		s := c.r.State()
		for i, v := range s.Speed {
			if v > wheelCeiling || v < -wheelCeiling || s.PWM[i] > 255 || s.PWM[i] < -255 {
				t.Fatalf("%+v", s)
			}
		}
	})
}
