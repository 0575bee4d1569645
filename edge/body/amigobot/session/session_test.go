package session

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// fake answers commands as a robot does. Its switches are what may go wrong.
type fake struct {
	open    bool
	sync    uint8 // the SYNC it expects
	next    time.Duration
	pose    sip.Standard
	config  sip.Config
	id      sip.Identity
	playing bool

	mute, deaf  bool // says nothing, hears nothing
	noSync      bool // sends standard packets and nothing else
	noOpen      bool
	noConfig    bool
	stubborn    bool          // CLOSE has no effect
	loses       map[uint8]int // how many of a command get lost
	wrongEchoes int
	nameless    int // how many replies to SYNC2 lack the identity
	baud        int // hears only this speed; 0: any
}

const cycle = 100 * time.Millisecond

func newFake() *fake {
	return &fake{
		id:   sip.Identity{Name: "not_set", Class: "Pioneer", Subclass: "amigo"},
		pose: sip.Standard{Battery: 120, Timer: 1},
		config: sip.Config{Name: "not_set", TransVelTop: 2200, RotVelTop: 360, TransAccTop: 4000, RotAccTop: 360,
			TransVelMax: 300, RotVelMax: 200, TransAcc: 300, TransDecel: 300, RotAcc: 50, RotDecel: 50},
	}
}

// hear returns the answer to a command.
func (f *fake) hear(t testing.TB, c sip.Command, now time.Duration, baud int) (out []byte) {
	if f.deaf || f.baud != 0 && f.baud != baud {
		return nil
	}
	if f.loses[c.Number] > 0 {
		f.loses[c.Number]--
		return nil
	}
	if !f.open {
		switch {
		case f.noSync || c.Number > sip.Sync2 || c.Arg != sip.None:
		case c.Number == sip.Open && f.sync == 3 && f.noOpen:
			f.sync = 0
		case c.Number == sip.Open && f.sync == 3:
			f.open, f.next = true, now+cycle
			f.pose = sip.Standard{Battery: f.pose.Battery, Timer: 1, Flags: sip.FlagSonar}
		case c.Number == sip.Sync2 && f.nameless > 0:
			f.nameless--
			out, _ = c.Append(nil)
		case c.Number == sip.Sync2 && f.sync == 2:
			f.sync = 3
			out, _ = f.id.Append(nil)
		case c.Number != sip.Sync0 && c.Number != f.sync:
			f.sync = 0
		default:
			f.sync = c.Number + 1
			if f.wrongEchoes > 0 {
				f.wrongEchoes--
				c.Number ^= 1
			}
			out, _ = c.Append(nil)
		}
		return out
	}
	k := &f.config
	for _, setting := range []struct {
		number uint8
		arg    sip.ArgKind
		field  *uint16
	}{
		{sip.SetA, sip.Positive, &k.TransAcc}, {sip.SetA, sip.Negative, &k.TransDecel}, {sip.SetRA, sip.Positive, &k.RotAcc},
		{sip.SetRA, sip.Negative, &k.RotDecel}, {sip.SetRV, sip.Positive, &k.RotVelMax}, {sip.RotKP, sip.Positive, &k.RotKp},
		{sip.RotKV, sip.Positive, &k.RotKv}, {sip.RotKI, sip.Positive, &k.RotKi}, {sip.TransKP, sip.Positive, &k.TransKp},
		{sip.TransKV, sip.Positive, &k.TransKv}, {sip.TransKI, sip.Positive, &k.TransKi}, {sip.RevCount, sip.Positive, &k.RevCount},
	} {
		if c.Number == setting.number && c.Arg == setting.arg {
			*setting.field = c.Int
		}
	}
	set := func(flag uint16) {
		f.pose.Flags &^= flag
		if c.Value() != 0 {
			f.pose.Flags |= flag
		}
	}
	switch c.Number {
	case sip.Close:
		if !f.stubborn {
			f.open, f.sync = false, 0
		}
	case sip.Enable:
		set(sip.FlagMotors)
	case sip.Sonar:
		set(sip.FlagSonar)
	case sip.ADSel:
		f.pose.Timer = c.Int
	case sip.DigOut:
		mask, state := c.Unpack()
		f.pose.Digout = f.pose.Digout&^mask | state&mask
	case sip.SetO:
		f.pose.X, f.pose.Y, f.pose.Th = 0, 0, 0
	case sip.Head:
		f.pose.Control = int16(c.Value() * 4096 / 360)
	case sip.SetV:
		f.config.TransVelMax = min(c.Int, f.config.TransVelTop)
	case sip.GetConfig:
		if !f.noConfig {
			out, _ = f.config.Append(nil)
		}
	case sip.SoundTog:
		f.playing = c.Value() != 0
	case sip.GetPlaylist:
		out = (&sip.Playlist{Sound: 1, On: f.playing}).Append(nil)
	}
	return out
}

// say returns the standard packet that is due.
func (f *fake) say(now time.Duration) (out []byte) {
	if !f.open || now < f.next {
		return nil
	}
	f.next += cycle
	out, _ = f.pose.Append(nil)
	return out
}

// rig is a session, its robot and their time.
type rig struct {
	t    testing.TB
	s    *Session
	f    *fake
	now  time.Duration
	last time.Duration
	log  []string // commands since the last take
	in   []byte
}

func newRig(t testing.TB, f *fake, cfg Config) *rig {
	r := &rig{t: t, s: New(cfg), f: f, now: time.Hour, last: -time.Hour}
	r.s.Open()
	return r
}

// step lets 5 ms pass.
func (r *rig) step() {
	r.t.Helper()
	r.in = append(r.in, r.f.say(r.now)...)
	if r.f.mute || r.f.baud != 0 && r.f.baud != r.s.Baud() {
		r.in = nil
	}
	out := r.s.Step(r.now, r.in)
	r.in = nil
	if len(out) > 0 {
		payload, n, err := sip.ParseFrame(out)
		if err != nil || n != len(out) {
			r.t.Fatalf("sent % X: %v", out, err)
		}
		c, err := sip.ParseCommand(payload)
		if err != nil {
			r.t.Fatalf("sent % X: %v", out, err)
		}
		r.log = append(r.log, show(c, r.s.Baud()))
		r.in = r.f.hear(r.t, c, r.now, r.s.Baud())
	}
	r.now += 5 * time.Millisecond
}

// show returns "number", "number=value" or "number@baud".
func show(c sip.Command, baud int) string {
	s := fmt.Sprint(c.Number)
	if c.Arg == sip.Positive || c.Arg == sip.Negative {
		s += fmt.Sprintf("=%d", c.Value())
	}
	if baud != 0 {
		s += fmt.Sprintf("@%d", baud)
	}
	return s
}

// run lets time pass and returns the commands sent.
func (r *rig) run(d time.Duration) string {
	r.t.Helper()
	for end := r.now + d; r.now < end; {
		r.step()
	}
	return r.take()
}

// until runs until the session is in phase p.
func (r *rig) until(p Phase) string {
	r.t.Helper()
	for end := r.now + time.Minute; r.s.State().Phase != p; r.step() {
		if r.now > end {
			r.t.Fatalf("phase %v, want %v; sent %s", r.s.State().Phase, p, r.take())
		}
	}
	return r.take()
}

func (r *rig) take() string {
	s := strings.Join(r.log, " ")
	r.log = nil
	return s
}

// ready returns a rig whose session is ready and whose motors are on.
func ready(t testing.TB, cfg Config) *rig {
	t.Helper()
	r := newRig(t, newFake(), cfg)
	r.until(Ready)
	if err := r.s.Enable(true); err != nil {
		t.Fatal(err)
	}
	r.run(300 * time.Millisecond)
	if !r.s.State().Motors {
		t.Fatal("motors are off")
	}
	return r
}

func expect[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestConnect compares what a session sends until it is ready with rows SYNC-02, 09, 10, 12, CMD-18 and MOT-07.
func TestConnect(t *testing.T) {
	const hello, opening = "0 1 2", "1 0 18=1"
	limits := Limits{Speed: 0.75, Accel: 0.3, Decel: 0.4, Turn: math.Pi, TurnAccel: 1, TurnDecel: 2}
	for _, tc := range []struct {
		name string
		cfg  Config
		f    func(*fake)
		want string
	}{
		{"at once", Config{}, func(*fake) {}, hello + " " + opening},
		{"limits", Config{Limits: limits}, func(*fake) {}, hello + " " + opening + " 6=750 5=300 5=-400 10=180 23=57 23=-115 18=1"},
		{"lost echo", Config{}, func(f *fake) { f.loses = map[uint8]int{sip.Sync1: 1} }, "0 1 " + hello + " " + opening},
		{"wrong echo", Config{}, func(f *fake) { f.wrongEchoes = 1 }, "0 " + hello + " " + opening},
		{"no CONFIG", Config{}, func(f *fake) { f.noConfig = true }, hello + " " + opening + strings.Repeat(" 18=1", 4)},
		{"echo without identity", Config{}, func(f *fake) { f.nameless = 1 }, hello + " " + hello + " " + opening},
		{"left-over session", Config{}, func(f *fake) { f.open, f.next, f.loses = true, time.Hour, map[uint8]int{sip.Close: 1} },
			"2=1 2=1 " + hello + " " + opening},
		{"left between SYNC2 and OPEN", Config{}, func(f *fake) { f.sync, f.loses = 3, map[uint8]int{sip.Sync0: 3} },
			"0 0 2=1 0 1 0 2=1 " + hello + " " + opening},
		{"capital subclass", Config{}, func(f *fake) { f.id.Subclass = "Amigo" }, hello + " " + opening},
		{"known subclass", Config{Subclass: "p3dx"}, func(f *fake) { f.id.Subclass = "p3dx" }, hello + " " + opening},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			tc.f(f)
			r := newRig(t, f, tc.cfg)
			r.in = []byte("login: \xFA\xFB\xFA")
			expect(t, "sent", r.until(Ready), tc.want)
			expect(t, "motors", r.s.State().Motors, false)
			expect(t, "sessions", r.s.State().Sessions, 1)
			expect(t, "identity", r.s.State().Identity, f.id)
			expect(t, "config known", r.s.State().ConfigAt != 0, !f.noConfig)
		})
	}
}

// TestOtherSpeed: a robot that was left open at another speed is closed there (AMIGO-SYNC-09, AMIGO-LINK-01).
func TestOtherSpeed(t *testing.T) {
	f := newFake()
	f.open, f.next, f.baud = true, time.Hour, 19200
	r := newRig(t, f, Config{Baud: 9600})
	for end := r.now + time.Minute; f.open && r.now < end; {
		r.step()
	}
	expect(t, "sent", r.take(), "0@9600 0@9600 2=1@9600 2=1@19200")
	f.baud = 9600 // its own
	expect(t, "then", r.until(Ready), "2=1@38400 0@9600 1@9600 2@9600 1@9600 0@9600 18=1@9600")
}

// TestRefused covers rows LINK-07, SYNC-15 and SYNC-16.
func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name, want, sent string
		is               error
		cfg              Config
		f                func(*fake)
	}{
		{"no robot", "no echo to SYNC0, 10 tries", "0 0 2=1 0 1 0 0 0 0 0 0 0", ErrNoAnswer, Config{}, func(f *fake) { f.deaf = true }},
		{"standard packets only", "standard packets to SYNC0, 10 tries", "2=1" + strings.Repeat(" 2=1", 8), ErrNoAnswer, Config{},
			func(f *fake) { f.open, f.next, f.stubborn, f.noSync = true, time.Hour, true, true }},
		{"never opens", "no standard packet", "", ErrNoAnswer, Config{}, func(f *fake) { f.noOpen = true }},
		{"other robot", `"p3dx" of class "Pioneer", want "amigo"`, "0 1 2", ErrSubclass, Config{}, func(f *fake) { f.id.Subclass = "p3dx" }},
		{"empty battery", "empty: 9.9 V", "0 1 2 1 0 18=1 4=0 2=1", ErrBattery, Config{}, func(f *fake) { f.pose.Battery = 99 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			tc.f(f)
			r := newRig(t, f, tc.cfg)
			sent := r.until(Lost)
			if tc.sent != "" {
				expect(t, "sent", sent, tc.sent)
			}
			if err := r.s.State().Err; !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Err = %v; want %q", err, tc.want)
			}
			expect(t, "sent when lost", r.run(5*time.Second), "")
			r.f = newFake()
			r.s.Open()
			r.until(Ready)
			expect(t, "Err after another Open", r.s.State().Err, nil)
		})
	}
}

// TestEmptyBatteryOfZero: a server without a battery sends 0, which refuses nothing.
func TestEmptyBatteryOfZero(t *testing.T) {
	f := newFake()
	f.pose.Battery = 0
	newRig(t, f, Config{}).until(Ready)
}

// TestSilence covers row LINK-06: stale after 2 s, PULSE after 5 s, connected again after 8 s, and nothing moves before it is asked to.
func TestSilence(t *testing.T) {
	r := ready(t, Config{})
	r.s.Velocity(0.5, 0)
	r.run(200 * time.Millisecond)
	r.f.mute = true
	heard := r.s.State().At
	r.until(Stale)
	expect(t, "stale after", r.now-heard > StaleAfter && r.now-heard < StaleAfter+cycle, true)
	expect(t, "sent when stale", r.run(time.Second), "29 29 29")
	expect(t, "Velocity when stale", r.s.Velocity(0.5, 0), false)
	expect(t, "Command when stale", r.s.Command(sip.Int(sip.Vel, 1)), ErrNotReady)
	r.f.mute = false
	r.until(Ready)
	expect(t, "sent when back", r.run(time.Second), "29 29")
	expect(t, "sessions", r.s.State().Sessions, 1)
	expect(t, "motors", r.s.State().Motors, true)

	r.f.mute = true
	r.until(Stale)
	expect(t, "sent until 5 s", r.run(PulseAfter-StaleAfter-cycle), "29 29 29 29 29 29")
	expect(t, "sent after 5 s", r.run(time.Second), "29 0 29")
	sent := r.until(Syncing)
	r.f.mute = false
	if sent += " " + r.until(Ready); !strings.HasSuffix(sent, " 2=1 0 1 2 1 0 18=1") {
		t.Errorf("sent to connect again: %s", sent)
	}
	expect(t, "sent when connected again", r.run(time.Second), "0 0")
	st := r.s.State()
	expect(t, "sessions", st.Sessions, 2)
	expect(t, "motors", st.Motors, false)
	expect(t, "counts", [2]uint64{st.Counts.Stale, st.Counts.Resyncs}, [2]uint64{2, 1})
	expect(t, "Velocity when connected again", r.s.Velocity(0.5, 0), false)
}

// TestReset: a robot that restarts within a session echoes the next PULSE, and is connected again at once (AMIGO-SYNC-19).
func TestReset(t *testing.T) {
	r := ready(t, Config{})
	loses := r.now
	r.f.open, r.f.sync, r.f.config.Name = false, 0, "other"
	r.until(Syncing)
	expect(t, "noticed within a second", r.now-loses < time.Second, true)
	r.until(Ready)
	expect(t, "sessions", r.s.State().Sessions, 2)
	expect(t, "config", r.s.State().Config.Name, "other")

	// One that drives is noticed by its silence.
	_ = r.s.Enable(true)
	r.run(300 * time.Millisecond)
	r.s.Velocity(1, 0)
	loses = r.now
	r.f.open, r.f.sync = false, 0
	r.until(Syncing)
	expect(t, "noticed by the PULSE after 5 s", r.now-loses < 6*time.Second, true)
	sent := r.until(Ready)
	expect(t, "sent", sent, "2=1 0 1 2 1 0 18=1")
}

// TestEnd covers Close in every phase (AMIGO-SYNC-13).
func TestEnd(t *testing.T) {
	r := ready(t, Config{})
	r.s.Velocity(1, 0)
	_ = r.s.Command(sip.Int(sip.Sound, 1))
	r.s.Close()
	expect(t, "phase", r.s.State().Phase, Closing)
	expect(t, "sent", r.until(Closed), "4=0 2=1")
	expect(t, "robot open", r.f.open, false)
	expect(t, "sent when closed", r.run(2*time.Second), "")
	expect(t, "Command when closed", r.s.Command(sip.Int(sip.Vel, 1)), ErrNotReady)
	r.s.Stop()
	expect(t, "Stop when closed", r.run(time.Second), "")

	r.s.Open()
	r.step()
	r.s.Close()
	expect(t, "phase of one that was syncing", r.s.State().Phase.String(), "closed")
	r.s.Open()
	r.until(Ready)
}

// TestState covers the conversion of every field (AMIGO-SIP-02 to 19).
func TestState(t *testing.T) {
	r := newRig(t, newFake(), Config{RangeFactor: 0.5})
	r.until(Ready)
	r.f.pose = sip.Standard{
		Moving: true, X: 1967, Y: 31784, Th: 512, Left: 325, Right: -162, Battery: 123, Bumpers: sip.StallRight | 2, Control: 3584,
		Flags: sip.FlagMotors | 0x1C, Sonar: []sip.Reading{{Sonar: 0, Range: 1234}, {Sonar: 7, Range: 5000}, {Sonar: 8, Range: 1}},
		Timer: 3, Analog: 255, Digin: 0x21, Digout: 2,
	}
	r.run(cycle)
	st := r.s.State()
	near := func(what string, got, want, eps float64) {
		t.Helper()
		if math.Abs(got-want) > eps {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	near("x", st.X, 1, 0.001)
	near("y", st.Y, -0.5, 0.001)
	near("heading", st.Heading, math.Pi/4, 1e-9)
	near("control", st.Control, -math.Pi/4, 1e-9)
	near("left", st.Left, 0.2, 0.001)
	near("right", st.Right, -0.1, 0.001)
	near("battery", st.Battery, 12.3, 1e-9)
	near("analog", st.Analog, 5, 1e-9)
	near("range 0", st.Ranges[0].Metres, 0.617, 1e-9)
	near("range 7", st.Ranges[7].Metres, 2.5, 1e-9)
	expect(t, "time of range 0", st.Ranges[0].At, st.At)
	expect(t, "time of range 1", st.Ranges[1].At, 0)
	expect(t, "readings of no sonar", st.Counts.BadSonar, 1)
	expect(t, "flags", [5]bool{st.Moving, st.Motors, st.SonarOn, st.StallLeft, st.StallRight}, [5]bool{true, true, false, false, true})
	expect(t, "bits", [3]uint16{st.Bumpers, uint16(st.Digin), uint16(st.Digout)}, [3]uint16{0x102, 0x21, 2})
	expect(t, "analog port", st.AnalogPort, 3)

	// Coordinates wrap at 16.656 m; the odometry does not (AMIGO-SIP-03).
	for range 100 {
		r.f.pose.X = (r.f.pose.X + 1000) & 0x7FFF
		r.run(cycle)
	}
	near("x of a long way", st.X, 101967*sip.DistanceUnit, 0.001)
	r.f.pose.Moving = false
	if err := r.s.Command(sip.Command{Number: sip.SetO}); err != nil {
		t.Fatal(err)
	}
	r.run(2 * cycle)
	near("x after SETO", st.X, 0, 0)
}

// TestOnRequest covers the other packets and those that are odd (AMIGO-PKT-09, AMIGO-PKT-13).
func TestOnRequest(t *testing.T) {
	var seen []string
	r := ready(t, Config{Tap: func(p []byte) { seen = append(seen, fmt.Sprintf("%02X", p[0])) }})
	seen = nil
	frame := func(payload ...byte) {
		b, err := sip.AppendFrame(nil, payload)
		if err != nil {
			t.Fatal(err)
		}
		r.in = append(r.in, b...)
	}
	st := r.s.State()
	io := &sip.IO{Digin: []byte{1}, Digout: []byte{2}, Analog: []uint16{3, 4}}
	b, err := io.Append(sip.Encoders{Left: 5, Right: -6}.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	r.in = append(r.in, b...)
	r.in = append(r.in, (&sip.Playlist{Sound: 50, Name: "hello"}).Append(nil)...)
	frame(sip.TypeAux1, 'O', 'K')
	frame(0x55, 1, 2, 3)
	frame(sip.TypeEncoders, 1)
	frame(sip.TypeConfig)
	frame(sip.TypeMoving)
	frame(sip.Sync1)
	r.in = append(r.in, 0xFA, 0xFB, 3, 1, 0, 2)
	at := r.now
	before := st.Counts
	r.f.next += cycle // no standard packet in this step
	r.step()
	expect(t, "encoders", st.Encoders, sip.Encoders{Left: 5, Right: -6})
	if !reflect.DeepEqual(&st.IO, io) {
		t.Errorf("IO = %+v; want %+v", st.IO, io)
	}
	expect(t, "playlist", st.Playlist.Name, "hello")
	expect(t, "times", [3]time.Duration{st.EncodersAt, st.IOAt, st.PlaylistAt}, [3]time.Duration{at, at, at})
	expect(t, "tap", strings.Join(seen, " "), "90 F0 D0 B0 55 90 20 33 01")
	want := before
	want.Good += 9
	want.BadChecksum++
	want.Skipped += 6
	want.Unknown++
	want.Malformed += 3
	want.Unexpected++
	want.Sent = st.Counts.Sent
	expect(t, "counts", st.Counts, want)
	expect(t, "phase", st.Phase, Ready)
}

// TestNothingAllocates in the steady state, with packets, set-points, stops and commands.
func TestNothingAllocates(t *testing.T) {
	r := ready(t, Config{})
	s, now := r.s, r.now
	pose := r.f.pose
	pose.Sonar = []sip.Reading{{Sonar: 1, Range: 2}, {Sonar: 2, Range: 3}}
	packet, err := pose.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	io := &sip.IO{Digin: []byte{1}, Digout: []byte{2}, Analog: []uint16{3, 4}}
	if packet, err = io.Append(sip.Encoders{}.Append(packet)); err != nil {
		t.Fatal(err)
	}
	text := sip.Command{Number: sip.TTY2, Arg: sip.String, Text: []byte("AT\r")}
	i := 0
	step := func() {
		now += 10 * time.Millisecond
		i++
		switch i % 4 {
		case 0:
			s.Velocity(float64(i), 1)
		case 1:
			s.Wheels(1, float64(i))
		case 2:
			s.Stop()
		}
		_ = s.Command(text)
		_ = s.Command(sip.Switch(sip.Sonar, i%2 == 0))
		s.Step(now, packet)
	}
	for range 100 {
		step()
	}
	if allocs := testing.AllocsPerRun(1000, step); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	expect(t, "phase", s.State().Phase, Ready)
}

// FuzzStep feeds bytes: a session sends whole packets, no faster than it may.
func FuzzStep(f *testing.F) {
	r := ready(f, Config{})
	standard, _ := r.f.pose.Append(nil)
	id, _ := r.f.id.Append(nil)
	f.Add([]byte{0xFA, 0xFB, 3, 0, 0, 0, 0xFA, 0xFB, 3, 1, 0, 1}, uint8(30))
	f.Add(append(id, standard...), uint8(200))
	f.Fuzz(func(t *testing.T, b []byte, pace uint8) {
		r := newRig(t, newFake(), Config{Limits: Limits{Speed: 1, TurnDecel: 1}})
		if len(b)%2 == 0 {
			r.until(Ready)
		}
		last := r.now - time.Second
		for len(b) > 0 {
			n := min(len(b), 16)
			out := r.s.Step(r.now, b[:n])
			b = b[n:]
			if len(out) > 0 {
				if _, n, err := sip.ParseFrame(out); err != nil || n != len(out) || r.now-last < Pacing {
					t.Fatalf("sent % X after %v: %v", out, r.now-last, err)
				}
				last = r.now
			}
			r.now += time.Duration(1+int(pace)) * time.Millisecond
		}
	})
}
