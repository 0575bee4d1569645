package amigobotsim

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"kennel/edge/body/amigobot"
	"kennel/edge/body/amigobot/sip"
	"kennel/edge/body/amigobot/soundset"
	"kennel/edge/sim/plane"
)

func roomMap(t *testing.T) *plane.Map {
	t.Helper()
	m, err := plane.Builtin("room")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestProfiles: both builds have the ring of the manual's order (AMIGO-SON-01, AMIGO-SON-02, AMIGO-SIM-03, AMIGO-PHY-03); settings are checked.
func TestProfiles(t *testing.T) {
	for i, m := range profiles["amigo"].Sonars {
		if !near(m.Yaw/deg, amigobot.Sonars[i], 1e-9) {
			t.Errorf("sonar %d looks to %v deg, want %v", i, m.Yaw/deg, amigobot.Sonars[i])
		}
	}
	for i, m := range profiles["amigo-aria"].Sonars {
		if d := math.Remainder(m.Yaw/deg-amigobot.Sonars[i], 360); !near(d, 0, 4) {
			t.Errorf("amigo-aria: sonar %d looks to %v deg", i, m.Yaw/deg)
		}
	}
	if !near(track, 0.24408, 1e-5) {
		t.Errorf("track %v m", track)
	}
	habitat, err := plane.Builtin("habitat")
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"version": {Memory: NewMemory("2.0")}, "profile": {Profile: "pioneer"}, "volts": {Volts: 14}, "noise": {SonarNoise: 2},
		"gain": {SonarGain: 1.5}, "world without room": {World: habitat},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestSonars: order and rate of firing, ranges from the sonars' places, out of range values, POLLING, SONAR (AMIGO-SON-03 to 09, AMIGO-CMD-03).
func TestSonars(t *testing.T) {
	box := &plane.Map{Walls: []plane.Wall{ // 2 m by 1 m round the robot, the front wall beyond 5 m of the rear sonars' way
		{From: plane.Vec{-1, -0.5}, To: plane.Vec{1, -0.5}}, {From: plane.Vec{1, -0.5}, To: plane.Vec{1, 0.5}},
		{From: plane.Vec{1, 0.5}, To: plane.Vec{-1, 0.5}},
	}}
	c := connected(t, Config{World: box}, false)
	c.feed(79, Lines{})
	numbers, ranges := c.heard()
	if want := []uint8{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(numbers, want) {
		t.Errorf("fired %v, want %v", numbers, want)
	}
	// Head on: 0 and 5 to the sides, 0.5 m from the middle. The front pair meets its wall at 4.5 degrees at the least.
	front := (1 - 0.140) / math.Cos(4.5*deg) * 1000
	if ranges[0] != 395 || ranges[5] != 395 || !near(float64(ranges[2]), front, 1) || ranges[2] != ranges[3] {
		t.Errorf("ranges %v, want 395 to the sides, %.0f ahead", ranges, front)
	}
	for _, tt := range []struct {
		name string
		m    sip.Command
		want []uint8 // in 0.5 s
		flag uint16
	}{
		{"two, one of them twice", sip.Command{Number: sip.Polling, Arg: sip.String, Text: []byte{1, 5, 1}}, []uint8{0, 4, 0, 0, 4, 0, 0, 4, 0, 0}, 2},
		{"numbers that are no sonars", sip.Command{Number: sip.Polling, Arg: sip.String, Text: []byte{9, 8, 0}}, []uint8{7, 7, 7, 7, 7, 7, 7, 7, 7, 7}, 2},
		{"none", sip.Command{Number: sip.Polling, Arg: sip.String}, nil, 2},
		{"SONAR 0", sip.Int(sip.Sonar, 0), nil, 0},
	} {
		c := connected(t, Config{World: box}, false)
		c.feed(9, Lines{})
		c.take(0)
		c.send(tt.m)
		c.feed(49, Lines{})
		if got, _ := c.heard(); !slices.Equal(got, tt.want) || c.last.Flags != tt.flag {
			t.Errorf("%s: fired %v, flags %d; want %v, %d", tt.name, got, c.last.Flags, tt.want, tt.flag)
		}
	}
	c = connected(t, Config{World: box}, false)
	c.send(sip.Command{Number: sip.Polling, Arg: sip.String, Text: append(bytes.Repeat([]byte{1}, 16), 2)}) // one too many
	c.feed(99, Lines{})
	if got, _ := c.heard(); slices.Contains(got, 1) || len(got) != 20 {
		t.Errorf("of 17 entries it fired %v, want 16 of them", got)
	}
	c.send(sip.Command{Number: sip.Close})
	if out := c.feed(100, Lines{}); len(out[Control]) > 0 {
		t.Errorf("after CLOSE %X", out[Control])
	}
	c.connect()
	c.take(0)
	c.feed(20, Lines{})
	if got, _ := c.heard(); !slices.Equal(got, []uint8{0, 1, 2, 3}) {
		t.Errorf("the next session begins with %v", got)
	}
	for _, tt := range []struct {
		name        string
		way         float64 // m from the side sonar to its wall
		cfg         Config
		least, most uint16 // mm, in a minute
	}{
		{"too near", 0.09, Config{}, 6100, 6100},
		{"near", 0.11, Config{}, 110, 110},
		{"far", 4.9, Config{}, 4900, 4900},
		{"too far", 5.1, Config{}, 6100, 6100},
		{"half deaf", 2, Config{SonarGain: 0.25}, 2000, 2000},
		{"too far for it", 3, Config{SonarGain: 0.25}, 6100, 6100},
		{"hears the carpet", 5.1, Config{SonarGain: 1}, 200, 6100},
		{"noise", 3, Config{SonarNoise: 0.01}, 2910, 3090},
	} {
		tt.cfg.World = &plane.Map{Walls: []plane.Wall{{From: plane.Vec{-9, 0.105 + tt.way}, To: plane.Vec{9, 0.105 + tt.way}}}}
		c := connected(t, tt.cfg, false)
		c.send(sip.Command{Number: sip.Polling, Arg: sip.String, Text: []byte{1}})
		c.feed(6000, Lines{})
		_, ranges := c.heard()
		least, most := slices.Min(ranges), slices.Max(ranges)
		if least > tt.least+10 || least < tt.least-100 || most > tt.most+100 || most < tt.most-10 {
			t.Errorf("%s: %d to %d mm, want %d to %d", tt.name, least, most, tt.least, tt.most)
		}
	}
}

// heard returns the sonar readings since the last take.
func (c *client) heard() (numbers []uint8, ranges []uint16) {
	c.t.Helper()
	for _, p := range c.take(sip.TypeStopped) {
		var s sip.Standard
		if err := s.Parse(p); err != nil {
			c.t.Fatal(err)
		}
		for _, r := range s.Sonar {
			numbers, ranges = append(numbers, r.Sonar), append(ranges, r.Range)
		}
	}
	return numbers, ranges
}

// TestPorts: digital and analog I/O, auxiliary ports (AMIGO-IO-01 to 04, AMIGO-XP-02 to 10, AMIGO-CMD-30, 35, 40 to 43, 66, 67).
func TestPorts(t *testing.T) {
	m := NewMemory("1.3")
	for _, k := range []string{"io1", "io4"} {
		if err := m.Params.Set(k, "1"); err != nil {
			t.Fatal(err)
		}
	}
	c := connected(t, Config{Memory: m}, false)
	c.r.SetDigital(0xff)
	c.r.SetAnalog(3, 2.5)
	c.r.SetAnalog(5, 9)
	c.send(sip.Packed(sip.DigOut, 0xff, 0x12), sip.Packed(sip.DigOut, 0x03, 0x01), sip.Int(sip.ADSel, 3), sip.Int(sip.ADSel, 6), sip.Int(sip.ADSel, 0))
	c.feed(9, Lines{})
	if s := c.last; s.Digin != 0x2d || s.Digout != 0x10 || s.Timer != 3 || s.Analog != 127 {
		t.Errorf("digin %#x, digout %#x, port %d at %d; want 0x2d, 0x10, 3 at 127", s.Digin, s.Digout, s.Timer, s.Analog)
	}
	for _, tt := range []struct{ ask, want int }{{1, 1}, {2, 5}, {0, 0}, {-1, 0}} {
		c.send(sip.Int(sip.IORequest, tt.ask))
		c.take(0)
		c.feed(50, Lines{})
		all := c.take(sip.TypeIO)
		if len(all) != tt.want {
			t.Errorf("IOREQUEST %d: %d packets in 0.5 s, want %d", tt.ask, len(all), tt.want)
		}
		var x sip.IO
		if len(all) == 0 {
			continue
		}
		if x.Parse(all[0]) != nil || x.Digin[0] != 0x2d || x.Digout[0] != 0x10 || !slices.Equal(x.Analog, []uint16{0, 0, 1023, 0, 2047}) {
			t.Errorf("%+v", x)
		}
	}
	for _, tt := range []struct {
		get  uint8
		port Port
		kind byte
	}{{sip.GetAux, System, sip.TypeAux1}, {sip.GetAux2, AUX2, sip.TypeAux2}} {
		ask := func(n int, in string, want ...string) {
			t.Helper()
			c.take(0)
			if n >= 0 {
				c.send(sip.Int(tt.get, n))
			}
			var lines Lines
			lines[tt.port] = []byte(in)
			c.feed(30, lines)
			var got []string
			for _, p := range c.take(tt.kind) {
				got = append(got, string(p[1:]))
			}
			if !slices.Equal(got, want) {
				t.Errorf("command %d with %d: %q, want %q", tt.get, n, got, want)
			}
		}
		ask(3, "ab")
		ask(-1, "cdefgh", "abc")
		ask(2, "", "de")
		ask(9, "")
		ask(1, "", "f") // replaces the pending one
		ask(0, "")      // empties the buffer
		ask(1, "z", "z")
		long := string(slices.Repeat([]byte("0123456789"), 130))
		ask(0, long) // the buffer keeps the newest 1024 bytes
		ask(200, "", long[1300-1024:][:197])
	}
	text := func(n uint8, s string) sip.Command { return sip.Command{Number: n, Arg: sip.String, Text: []byte(s)} }
	if out := c.send(text(sip.TTY2, "AT\r"), text(sip.TTY3, "hi")); string(out[System]) != "AT\r" || string(out[AUX2]) != "hi" {
		t.Errorf("TTY2 and TTY3 send %q", out)
	}
	c.send(sip.Int(sip.GetAux, 5)) // ends with the session
	c.send(sip.Command{Number: sip.Close})
	c.connect()
	c.take(0)
	c.feed(30, Lines{System: []byte("hello")})
	if p := c.take(sip.TypeAux1); len(p) > 0 {
		t.Errorf("in the next session %q", p)
	}
	c.send(sip.Int(sip.Encoder, -1))
	c.feed(30, Lines{})
	if n := len(c.take(sip.TypeEncoders)); n != 3 {
		t.Errorf("%d ENCODERpacs in 0.3 s, want 3", n)
	}
}

// sixteen is the longest name of a sound.
const sixteen = "a name of sixtee"

// withSounds is a memory with three user sounds and a group.
func withSounds(t *testing.T) Config {
	t.Helper()
	m := NewMemory("1.3")
	set := soundset.Default()
	for n, s := range map[int]soundset.Sound{
		50: {Name: "hello", Samples: make([]byte, 9000)}, 51: {Name: "~animals"}, 52: {Name: sixteen, Samples: make([]byte, 18000)},
		255: {Name: "last", Samples: make([]byte, 90)},
	} {
		if err := set.Put(n, s); err != nil {
			t.Fatal(err)
		}
	}
	image, err := set.Image()
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Sounds, image)
	return Config{Memory: m}
}

// TestSounds: sounds play, interrupt each other and can be muted; the playlist lists them (AMIGO-SND-04, AMIGO-SND-05, AMIGO-CMD-15, 90 to 92,
// AMIGO-XP-12 to 15).
func TestSounds(t *testing.T) {
	c := connected(t, withSounds(t), false)
	c.sounds = nil
	playing := func(want int) {
		t.Helper()
		if s := c.r.State(); s.Playing != want {
			t.Errorf("plays %d, want %d", s.Playing, want)
		}
	}
	c.feed(200, Lines{})
	c.send(sip.Int(sip.Sound, 50))
	playing(50)
	c.send(sip.Int(sip.Sound, 52), sip.Int(sip.Sound, 0), sip.Int(sip.Sound, 51), sip.Int(sip.Sound, 60), sip.Int(sip.Sound, 256))
	playing(52)
	c.feed(190, Lines{})
	playing(52)
	c.feed(20, Lines{})
	playing(0)
	c.send(sip.Int(sip.Sound, 52), sip.Int(sip.SoundTog, 0), sip.Int(sip.Sound, 50))
	playing(0)
	c.send(sip.Int(sip.SoundTog, 1), sip.Int(sip.Sound, 255), sip.Command{Number: sip.Say, Arg: sip.String, Text: []byte{10, 80}})
	if want := []int{50, 52, 52, 255, 0}; !slices.Equal(c.sounds, want) {
		t.Errorf("played %v, want %v", c.sounds, want)
	}
	c.take(0)
	c.send(sip.Int(sip.GetPlaylist, 52), sip.Int(sip.SoundTog, 0))
	c.feed(50, Lines{})
	var l sip.Playlist
	if all := c.take(sip.TypePlaylist); len(all) != 1 || l.Parse(all[0]) != nil || l.Sound != 52 || l.On || l.Name != sixteen || l.Length != 18000 {
		t.Errorf("%d packets, %+v", len(all), l)
	}
	c.send(sip.Int(sip.GetPlaylist, 0))
	c.feed(208*10, Lines{})
	all := c.take(sip.TypePlaylist)
	if len(all) != 207 {
		t.Fatalf("%d packets for all sounds, want 207", len(all))
	}
	for i, want := range map[int]sip.Playlist{
		0: {Sound: 206}, 1: {Sound: 50, Name: "hello", Length: 9000}, 2: {Sound: 51, Name: "~animals"}, 11: {Sound: 60},
		206: {Sound: 255, Name: "last", Length: 90},
	} {
		var l sip.Playlist
		if err := l.Parse(all[i]); err != nil || (l.Offset > 0) != (want.Length > 0) {
			t.Errorf("%+v, %v", l, err)
		}
		if l.Offset = 0; l != want {
			t.Errorf("packet %d: %+v, want %+v", i, l, want)
		}
	}
}

// TestBattery: charge and voltage over time, alarm below LowBattery, shutdown below 10 V (AMIGO-SAFE-05 to 08, AMIGO-SYNC-16, AMIGO-OPEN-17).
func TestBattery(t *testing.T) {
	hours := func(b battery, amps, to float64) float64 {
		n := 0
		for ; b.charge < to == (b.charger != NoCharger) && n < 1e7; n++ {
			b.pass(amps)
		}
		return float64(n) * cycle.Hours()
	}
	for _, tt := range []struct {
		name string
		b    battery
		amps float64
		to   float64
		want float64
	}{
		{"lasts", battery{charge: 1}, busyAmps, 0, 2.2 / 0.7},
		{"standard charger", battery{charger: StandardCharger}, 0, 1, 8},
		{"fast charger", battery{charger: FastCharger}, 0, 1, 3},
		{"fast charger while on", battery{charger: FastCharger}, busyAmps, 1, 6},
	} {
		if got := hours(tt.b, tt.amps, tt.to); !near(got, tt.want, 0.001) {
			t.Errorf("%s: %.3f h, want %.3f", tt.name, got, tt.want)
		}
	}
	for _, v := range []float64{9.5, 10, 10.5, 11, 12, 13.8} {
		b := batteryAt(v)
		if !near(b.volts(), v, 1e-9) {
			t.Errorf("%v V become %v", v, b.volts())
		}
	}
	c := connected(t, Config{Volts: 12.3}, true)
	c.r.SetCharger(FastCharger)
	c.feed(9, Lines{})
	if s := c.r.State(); c.last.Battery != 123 || !s.Warning || s.Charger != FastCharger {
		t.Errorf("battery %d, %+v", c.last.Battery, s)
	}
	c.r.SetCharger(NoCharger)
	c.sounds = nil
	c.r.SetVolts(10.9)
	c.run(61 * time.Second)
	if want := []int{soundset.LowBattery, soundset.LowBattery, soundset.LowBattery}; !slices.Equal(c.sounds, want) {
		t.Errorf("in 61 s it sounds %v, want %v", c.sounds, want)
	}
	c.sounds = nil
	c.r.SetVolts(12)
	c.run(time.Second)
	c.r.SetVolts(10.9) // alarms at once, because it was well in between
	c.run(time.Second)
	if want := []int{soundset.LowBattery}; !slices.Equal(c.sounds, want) {
		t.Errorf("low again it sounds %v, want %v", c.sounds, want)
	}
	c.r.SetVolts(9.9)
	c.feed(1, Lines{})
	if s := c.r.State(); s.Mode != Waiting || s.Motors {
		t.Errorf("below 10 V: %+v", s)
	}
	if out := c.send(sip.Command{Number: sip.Sync0}); len(out[Control]) > 0 {
		t.Errorf("below 10 V it answers %X", out[Control])
	}
	c.r.SetVolts(10.5)
	c.connect()
}
