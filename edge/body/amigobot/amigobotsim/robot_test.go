package amigobotsim

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
)

// client is a client program at the Control port of a robot whose time it decides.
type client struct {
	t      *testing.T
	r      *Robot
	parser sip.Parser
	got    [][]byte // payloads since the last take
	last   sip.Standard
	sounds []int
}

func newClient(t *testing.T, cfg Config) *client {
	t.Helper()
	c := &client{t: t}
	cfg.OnSound = func(s Sound) { c.sounds = append(c.sounds, s.Number) }
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.r = r
	return c
}

// connected returns a client with an open session, and motors that are on if it says so.
func connected(t *testing.T, cfg Config, motors bool) *client {
	t.Helper()
	c := newClient(t, cfg)
	c.connect()
	if motors {
		c.send(sip.Int(sip.Enable, 1))
	}
	return c
}

func (c *client) connect() {
	c.t.Helper()
	for _, n := range []uint8{sip.Sync0, sip.Sync1, sip.Sync2, sip.Open} {
		c.send(sip.Command{Number: n})
	}
	if m := c.r.State().Mode; m != Connected {
		c.t.Fatalf("after the handshake the robot is %v", m)
	}
}

// feed lets n cycles pass, with bytes that arrive in the first, and returns what each port says.
func (c *client) feed(n int, in Lines) Lines {
	c.t.Helper()
	var all Lines
	for range n {
		out := c.r.Step(in, Lines{})
		in = Lines{}
		for i := range all {
			all[i] = append(all[i], out[i]...)
		}
	}
	for b := all[Control]; len(b) > 0; {
		k := copy(c.parser.Space(), b)
		c.parser.Fill(k)
		b = b[k:]
		for p, ok := c.parser.Next(); ok; p, ok = c.parser.Next() {
			c.got = append(c.got, bytes.Clone(p))
			if p[0] == sip.TypeStopped || p[0] == sip.TypeMoving {
				if err := c.last.Parse(p); err != nil {
					c.t.Fatal(err)
				}
				c.last.Sonar = slices.Clone(c.last.Sonar)
			}
		}
	}
	return all
}

// send sends commands, which arrive in one cycle.
func (c *client) send(commands ...sip.Command) Lines {
	c.t.Helper()
	var b []byte
	for _, m := range commands {
		var err error
		if b, err = m.Append(b); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.feed(1, Lines{Control: b})
}

// run lets the time pass, with a PULSE every half second as clients do (AMIGO-SYNC-12).
func (c *client) run(d time.Duration) {
	c.t.Helper()
	for n := int(d / cycle); n > 0; n -= 50 {
		c.send(sip.Command{Number: sip.Pulse})
		c.feed(min(n, 50)-1, Lines{})
	}
}

// take returns the payloads of a type that arrived since the last take.
func (c *client) take(kind byte) (of [][]byte) {
	for _, p := range c.got {
		if p[0] == kind {
			of = append(of, p)
		}
	}
	c.got = nil
	return of
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestHandshake covers the answers of the wait state (AMIGO-SYNC-01 to 10): golden bytes of a client that sends arguments with OPEN and CLOSE, and
// of one that does not; packets out of order begin again.
func TestHandshake(t *testing.T) {
	const (
		s0, s1, s2 = "FAFB03000000", "FAFB03010001", "FAFB03020002"
		id         = "FAFB19026E6F745F73657400" + "50696F6E65657200" + "616D69676F00" + "4998"
		open       = "FAFB06013B0100023B"
		closed     = "FAFB06023B0100033B"
	)
	for _, tt := range []struct {
		name, say, want string
		mode            Mode
	}{
		{"open without argument", s0 + s1 + s2 + s1, s0 + s1 + id, Connected},
		{"open with argument", s0 + s1 + s2 + open, s0 + s1 + id, Connected},
		{"nothing before the handshake", "FAFB06043B0100053B" + s1 + s2, "", Waiting},
		{"second SYNC0", s0 + s0 + s1 + s2, s0 + s0 + s1 + id, Waiting},
		{"out of order", s0 + s2 + s1 + s2, s0, Waiting},
		{"SYNC2 again", s0 + s1 + s2 + s2 + open, s0 + s1 + id + id, Connected},
		{"SYNC0 after SYNC2", s0 + s1 + s2 + s0 + s1 + s2 + open, s0 + s1 + id + s0 + s1 + id, Connected},
		{"close after SYNC2", s0 + s1 + s2 + closed + open, s0 + s1 + id, Waiting},
		{"commands after SYNC2", s0 + s1 + s2 + "FAFB06043B0100053B" + open, s0 + s1 + id, Connected},
		{"bad checksum", s0 + "FAFB03010002" + s1, s0 + s1, Waiting},
		{"noise between", "00FA" + s0 + "FAFBFF" + s1, s0 + s1, Waiting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t, Config{})
			out := c.feed(1, Lines{Control: unhex(t, tt.say)})
			if !bytes.Equal(out[Control], unhex(t, tt.want)) || c.r.State().Mode != tt.mode {
				t.Errorf("got %X, %v; want %s, %v", out[Control], c.r.State().Mode, tt.want, tt.mode)
			}
		})
	}
}

// TestSession: what a session begins and ends with (AMIGO-SYNC-10 to 14, AMIGO-SYNC-18, AMIGO-SIP-01, AMIGO-CFG).
func TestSession(t *testing.T) {
	c := connected(t, Config{Volts: 12}, false)
	idle := unhex(t, "FAFB1B3200000000000000000000780000000002000000010000000035 78")
	c.send(sip.Command{Number: sip.Polling, Arg: sip.String})
	if out := c.feed(9, Lines{})[Control]; !bytes.Equal(out, idle) {
		t.Errorf("first packet %X, want %X", out, idle)
	}
	if out := c.send(sip.Int(sip.GetConfig, 1))[Control]; !bytes.Equal(out, unhex(t, `FA FB 5C 20 50 69 6F 6E 65 65 72 00 61 6D 69 67 6F 00
		53 49 4D 30 30 30 30 31 00 00 68 01 98 08 68 01 A0 0F FF 00 6E 6F 74 5F 73 65 74 00 00 00 00 00 00 01 00 00 6E 00 0E 5B D0 07 00 FF 00
		64 00 00 00 00 00 C8 00 2C 01 32 00 32 00 1E 00 3C 00 00 00 2C 01 2C 01 28 00 50 00 00 00 A7 EE`)) {
		t.Errorf("CONFIGpac %X", out)
	}
	// Everything that the session changes is the FLASH's again in the next one; gains and RevCount stay until a reset (AMIGO-PID-05).
	c.send(sip.Int(sip.Enable, 1), sip.Int(sip.SetV, 500), sip.Int(sip.SetRV, 100), sip.Int(sip.SetA, 400), sip.Int(sip.SetA, -401),
		sip.Int(sip.SetRA, 60), sip.Int(sip.SetRA, -61), sip.Int(sip.RotKP, 31), sip.Int(sip.RevCount, 23000), sip.Int(sip.ADSel, 3),
		sip.Int(sip.SoundTog, 0), sip.Int(sip.Encoder, 1), sip.Int(sip.IORequest, 2), sip.Int(sip.Sonar, 0))
	want := [...]uint16{500, 100, 400, 401, 60, 61, 31, 23000}
	if got := c.config(); got != want {
		t.Errorf("in the session %v, want %v", got, want)
	}
	for asked, want := range map[uint16]uint16{3000: 2200, 2200: 2200, 2199: 2199, 500: 500} { // TransVelTop bounds it (AMIGO-CMD-06)
		c.send(sip.Int(sip.SetV, int(asked)))
		if got := c.config()[0]; got != want {
			t.Errorf("SETV %d: %d, want %d", asked, got, want)
		}
	}
	c.feed(10, Lines{})
	if c.last.Timer != 3 || c.last.Flags != sip.FlagMotors || len(c.take(sip.TypeEncoders)) != 1 {
		t.Errorf("%+v", c.last)
	}
	c.send(sip.Int(sip.Close, 1))
	if out := c.feed(100, Lines{})[Control]; len(out) > 0 || c.r.State().Mode != Waiting || c.r.State().Motors || c.r.State().Sonar {
		t.Errorf("after CLOSE: %X, %+v", out, c.r.State())
	}
	c.connect()
	want = [...]uint16{300, 200, 300, 300, 50, 50, 31, 23000}
	if got := c.config(); got != want {
		t.Errorf("in the next session %v, want %v", got, want)
	}
	c.feed(10, Lines{})
	if c.last.Timer != 1 || c.last.Flags != sip.FlagSonar || len(c.last.Sonar) != 2 || len(c.take(sip.TypeEncoders)) != 0 {
		t.Errorf("%+v", c.last)
	}
	c.r.SetReset(true)
	c.r.SetReset(false)
	c.connect()
	want = [...]uint16{300, 200, 300, 300, 50, 50, 30, 23310}
	if got := c.config(); got != want {
		t.Errorf("after a reset %v, want %v", got, want)
	}
	if want := []int{soundset.Reset, soundset.Connect, soundset.MotorsOn, soundset.Disconnect, soundset.Connect, soundset.Reset,
		soundset.Connect}; !slices.Equal(c.sounds, want) { // muted at the first CLOSE's "motors off"
		t.Errorf("cues %v, want %v", c.sounds, want)
	}
}

// config returns the values of the session.
func (c *client) config() [8]uint16 {
	c.t.Helper()
	var f sip.Config
	c.take(0)
	c.send(sip.Int(sip.GetConfig, 0))
	all := c.take(sip.TypeConfig)
	if len(all) != 1 || f.Parse(all[0]) != nil {
		c.t.Fatalf("CONFIGpacs %X", all)
	}
	return [...]uint16{f.TransVelMax, f.RotVelMax, f.TransAcc, f.TransDecel, f.RotAcc, f.RotDecel, f.RotKp, f.RevCount}
}

// TestInfoCycle: a standard packet each 100 or 50 ms, with the sonars that fired (AMIGO-SIP-01, AMIGO-SIP-13, AMIGO-SON-03).
func TestInfoCycle(t *testing.T) {
	for code, want := range map[string]int{"0": 10, "1": 5} {
		m := NewMemory("1.3")
		if err := m.Params.Set("SInfoCycle", code); err != nil {
			t.Fatal(err)
		}
		c := connected(t, Config{Memory: m}, false)
		c.take(0)
		c.feed(99, Lines{})
		for i := range 100 / want {
			if n := len(c.last.Sonar); n != want/5 {
				t.Errorf("cycle %s: packet %d has %d sonars, want %d", code, i, n, want/5)
			}
		}
		if n := len(c.take(sip.TypeStopped)); n != 100/want {
			t.Errorf("cycle %s: %d packets in 1 s, want %d", code, n, 100/want)
		}
	}
}

// TestFlashAtReset: parameters count from the next reset on (AMIGO-FLASH-38).
func TestFlashAtReset(t *testing.T) {
	m := NewMemory("1.3")
	c := connected(t, Config{Memory: m}, false)
	if err := m.Params.Set("TransVelMax", "444"); err != nil {
		t.Fatal(err)
	}
	if got := c.config()[0]; got != 300 {
		t.Errorf("before the reset %d mm/s, want 300", got)
	}
	c.r.BrownOut()
	c.connect()
	if got := c.config()[0]; got != 444 {
		t.Errorf("after the reset %d mm/s, want 444", got)
	}
	if v := flash.Defaults(); v.Int(flash.TransVelMax) != 300 {
		t.Error("the defaults changed")
	}
}
