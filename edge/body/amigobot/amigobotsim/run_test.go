package amigobotsim

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
	"kennel/edge/sim/uart"
)

// patience is how long a test waits for what a robot does in milliseconds.
const patience = 30 * time.Second

// serve runs a robot on a line until the test ends.
func serve(t *testing.T, cfg Config, line uart.Line) *Robot {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, [Ports]uart.Line{Control: line}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r
}

// peer is a foreign program at the other end of a line.
type peer struct {
	t      *testing.T
	rw     io.ReadWriter
	parser sip.Parser
}

func (p *peer) say(hexes ...string) {
	p.t.Helper()
	for _, s := range hexes {
		if _, err := p.rw.Write(unhex(p.t, s)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// hear returns the next packet of one of the types.
func (p *peer) hear(kinds ...byte) []byte {
	p.t.Helper()
	for {
		for payload, ok := p.parser.Next(); ok; payload, ok = p.parser.Next() {
			if bytes.IndexByte(kinds, payload[0]) >= 0 {
				b, err := sip.AppendFrame(nil, payload)
				if err != nil {
					p.t.Fatal(err)
				}
				return b
			}
		}
		n, err := p.rw.Read(p.parser.Space())
		if err != nil {
			p.t.Fatal(err)
		}
		p.parser.Fill(n)
	}
}

// want hears a packet and compares its bytes.
func (p *peer) want(hex string) {
	p.t.Helper()
	b := unhex(p.t, hex)
	if got := p.hear(b[3]); !bytes.Equal(got, b) {
		p.t.Fatalf("heard %X, want %X", got, b)
	}
}

// lines are the ways to reach a robot.
var lines = map[string]func(t *testing.T) (uart.Line, func() io.ReadWriter){
	"TCP": func(t *testing.T) (uart.Line, func() io.ReadWriter) {
		s, addr, err := uart.ListenTCP("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() }) // nothing waits in it
		return s, func() io.ReadWriter { return dial(t, "tcp", addr.String()) }
	},
	"Unix socket": func(t *testing.T) (uart.Line, func() io.ReadWriter) {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() }) // the socket has its own
		s, err := uart.ListenSocket(root, "robot")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() }) // nothing waits in it
		return s, func() io.ReadWriter { return dial(t, "unix", filepath.Join(root.Name(), "robot")) }
	},
	"pseudo-terminal": func(t *testing.T) (uart.Line, func() io.ReadWriter) {
		pty, err := uart.OpenPTY()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pty.Close() }) // nothing waits in it
		wire, err := uart.NewWire(pty.Master)
		if err != nil {
			t.Fatal(err)
		}
		return wire, func() io.ReadWriter {
			f, err := os.OpenFile(pty.SlavePath, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() }) // a test may have closed it
			if err := f.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			return f
		}
	},
}

func dial(t *testing.T, network, address string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGenuineClient serves the bytes that ARIA sends, on each line, byte for byte: handshake, configuration, limits, drives, end; and then the
// client that comes back to an open session and ends it (AMIGO-SIM-01, AMIGO-SYNC-09, AMIGO-SYNC-17, AMIGO-LINK-05; peer facts, section 7).
func TestGenuineClient(t *testing.T) {
	const (
		s0, s1, s2 = "FAFB03000000", "FAFB03010001", "FAFB03020002"
		id         = "FAFB19026E6F745F73657400" + "50696F6E65657200" + "616D69676F00" + "4998"
		open       = "FAFB06013B0100023B"
		closed     = "FAFB06023B0100033B"
	)
	for name, listen := range lines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, connect := listen(t)
			r := serve(t, Config{}, line)
			await := func(what string, cond func(State) bool) State {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				s, err := r.Await(ctx, cond)
				if err != nil {
					t.Fatalf("%s: %v; %+v", what, err, s)
				}
				return s
			}
			rw := connect()
			p := &peer{t: t, rw: rw}
			for _, step := range [][2]string{{s0, s0}, {s1, s1}, {s2, id}} {
				p.say(step[0])
				p.want(step[1])
			}
			p.say(open, "FAFB06123B0100133B") // OPEN, CONFIG
			p.want(`FA FB 5C 20 50 69 6F 6E 65 65 72 00 61 6D 69 67 6F 00 53 49 4D 30 30 30 30 31 00 00 68 01 98 08 68 01 A0 0F FF 00 6E 6F 74 5F 73 65
				74 00 00 00 00 00 00 01 00 00 6E 00 0E 5B D0 07 00 FF 00 64 00 00 00 00 00 C8 00 2C 01 32 00 32 00 1E 00 3C 00 00 00 2C 01 2C 01 28 00 50
				00 00 00 A7 EE`)
			p.say("FAFB063E3B01003F3B", // BATTERYINFO
				"FAFB06043B0100053B",                                             // ENABLE
				"FAFB06063BE803EE3E", "FAFB06053B2C01313C", "FAFB06051B2C01311C", // SETV 1000, SETA 300, SETA -300
				"FAFB060A3B2C01363C", "FAFB06173B6400"+"7B3B", "FAFB06171B6400"+"7B1B") // SETRV 300, SETRA 100, -100
			if b := p.hear(sip.TypeStopped); len(b) < 30 {
				t.Errorf("standard packet %X", b)
			}
			p.say("FAFB060B3BC800D33B", "FAFB06153B0000153B") // VEL 200, RVEL 0
			p.hear(sip.TypeMoving)
			await("drives", func(s State) bool { return s.Motors && s.Speed[0] > 0.19 && s.Speed[1] > 0.19 })
			p.say("FAFB060B3B00000B3B", "FAFB03000000") // VEL 0, PULSE
			await("halts", func(s State) bool { return s.Speed[0] < 0.001 })
			if s := r.State(); s.Stats.Bad != 0 || s.Stats.Ignored != 0 {
				t.Errorf("%+v", s.Stats)
			}
			p.say("FAFB060B3BC800D33B") // VEL 200
			await("drives again", func(s State) bool { return s.Speed[0] > 0.19 })
			// The client goes without a word. Over TCP that ends its session; on a cable the next one hears standard packets in place of an echo, and closes.
			if c, ok := rw.(io.Closer); !ok || c.Close() != nil {
				t.Fatal("close")
			}
			if name == "TCP" {
				await("stopped by the end of the connection", func(s State) bool { return s.Mode == Waiting && !s.Motors && s.Speed[0] < 0.001 })
			}
			p = &peer{t: t, rw: connect()}
			if name != "TCP" {
				p.say(s0)
				p.hear(sip.TypeStopped, sip.TypeMoving)
				p.say("FAFB06043B0000043B", closed)
				await("closed", func(s State) bool { return s.Mode == Waiting })
			}
			for _, step := range [][2]string{{s0, s0}, {s1, s1}, {s2, id}} {
				p.say(step[0])
				p.want(step[1])
			}
			p.say(s1)
			p.hear(sip.TypeStopped)
		})
	}
}

// TestRhythm: standard packets come each 100 ms, on average of a second within 5 ms (AMIGO-SIP-01). A loaded machine gets
// several seconds to show one.
func TestRhythm(t *testing.T) {
	t.Parallel()
	line, connect := lines["TCP"](t)
	serve(t, Config{}, line)
	p := &peer{t: t, rw: connect()}
	p.say("FAFB03000000", "FAFB03010001", "FAFB03020002", "FAFB03010001")
	var took time.Duration
	for range 20 {
		p.hear(sip.TypeStopped)
		began := time.Now()
		for range 10 {
			p.hear(sip.TypeStopped)
		}
		if took = time.Since(began) / 10; took > 95*time.Millisecond && took < 105*time.Millisecond {
			return
		}
	}
	t.Errorf("packets come each %v, want 100ms", took)
}

func BenchmarkStep(b *testing.B) {
	r, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	r.open()
	var out Lines
	b.ReportAllocs()
	for b.Loop() {
		out[Control] = out[Control][:0]
		out = r.Step(Lines{}, out)
	}
	b.ReportMetric(100*float64(b.Elapsed())/float64(b.N)/float64(cycle), "%-of-cycle")
}
