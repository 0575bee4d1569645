package cube

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestFrames has bytes of each characteristic, made by hand from the tables of the source, section 42 (VEC-CUBEIO-01 to 05).
func TestFrames(t *testing.T) {
	r := Report{BatteryRaw: 1480, Samples: [3]Sample{{1, -1, 1000}, {-1000, 256, 0}, {32767, -32768, 7}}}
	const want = "c805" + "0100ffffe803" + "18fc00010000" + "ff7f00800700"
	if got := hex.EncodeToString(r.Append(nil)); got != want {
		t.Errorf("report %s, want %s", got, want)
	}
	if r.Volts() != 1.48 {
		t.Errorf("%v V", r.Volts())
	}
	set := Command{Steps: &[3]Step{{Index: 0, RGB: RGB{255, 0, 1}, Duration: 10}, {Index: 1, RGB: RGB{0, 128, 0}, Alpha: 3, Duration: 255}, {Index: 2}}}
	if got := hex.EncodeToString(set.Append(nil)); got != "01"+"00ff0001000a"+"0100800003ff"+"020000000000" {
		t.Errorf("steps %s", got)
	}
	start := Command{Start: &[4]uint8{0, 3, 6, 9}}
	if got := hex.EncodeToString(start.Append(nil)); got != "0000030609" {
		t.Errorf("start %s", got)
	}
	for n := range 20 {
		if _, err := ParseReport(r.Append(nil)[:n]); !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes of a report: %v", n, err)
		}
		if _, err := ParseCommand(set.Append(nil)[:min(n, 18)]); !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes of steps: %v", n, err)
		}
	}
}

// TestUUIDs: characteristics have the published names (part of VEC-CUBE-01, VEC-CUBE-02); standard ones are short (VEC-CCU-02).
func TestUUIDs(t *testing.T) {
	for want, u := range map[string]UUID{"C6F6C70F-D219-598B-FB4C-308E1F22F830": Service, "0EA75290-6759-A58D-7948-598C4E02D94A": Lights, "450AA175-8D85-16A6-9148-D50E2EB7B79E": Version,
		"43EF14AF-5FB1-7B81-3647-2A9477824CAB": Motion, "9590BA9C-5140-92B5-1844-5F9D681557A4": Firmware, "00002A29-0000-1000-8000-00805F9B34FB": Manufacturer} {
		if u.String() != want {
			t.Errorf("%s, want %s", u, want)
		}
	}
	for _, bad := range []string{"", "2A2", "C6F6C70F-D219-598B-FB4C-308E1F22F83G", "C6F6C70FD219598BFB4C308E1F22F830----", "C6F6C70F-D219-598B-FB4C-308E1F22F8301"} {
		if _, err := ParseUUID(bad); err == nil {
			t.Errorf("%q is no UUID", bad)
		}
	}
}

// TestAddresses: a factory id is an address in lower case (VEC-CUBE-05).
func TestAddresses(t *testing.T) {
	for text, ok := range map[string]bool{"e1:00:9f:aa:bb:cc": true, "E1:00:9f:aa:bb:cc": false, "e1:00:9f:aa:bb": false, "e1-00-9f-aa-bb-cc": false, "e1:00:9f:aa:bb:cg": false, "": false} {
		if err := CheckAddress(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzFrames: no bytes break a parser; what it takes it writes again as it was.
func FuzzFrames(f *testing.F) {
	f.Add((&Report{BatteryRaw: 1500}).Append(nil))
	f.Add(Command{Start: &[4]uint8{1, 2, 3, 4}}.Append(nil))
	f.Add(Command{Steps: new([3]Step)}.Append(nil))
	f.Add(Packet{KindAdvert, UUID{}, Advert{Address: "e1:00:9f:aa:bb:cc", Name: Name, RSSI: -60}.Value()}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseReport(b); err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Errorf("report %x became %x", b, r.Append(nil))
		}
		if c, err := ParseCommand(b); err == nil && !bytes.Equal(c.Append(nil), b) {
			t.Errorf("command %x became %x", b, c.Append(nil))
		}
		p, err := ParsePacket(b)
		if err != nil {
			return
		}
		if !bytes.Equal(p.Append(nil), b) {
			t.Errorf("packet %x became %x", b, p.Append(nil))
		}
		if a, err := ParseAdvert(p.Value); err == nil && !bytes.Equal(a.Value(), p.Value) {
			t.Errorf("advertisement %x became %x", p.Value, a.Value())
		}
	})
}

// play returns what a light shows, tick by tick, as a cube plays it that keeps the commands.
func play(t *testing.T, all []Command, light, ticks int) (out []RGB) {
	t.Helper()
	var steps [256]Step
	highest := 0
	for _, c := range all {
		b := c.Append(nil)
		m, err := ParseCommand(b)
		if err != nil {
			t.Fatal(err)
		}
		if m.Start == nil {
			for _, s := range m.Steps {
				steps[s.Index], highest = s, max(highest, int(s.Index))
			}
			continue
		}
		end := highest + 1
		for _, other := range m.Start {
			if other > m.Start[light] {
				end = min(end, int(other))
			}
		}
		for len(out) < ticks {
			for _, s := range steps[m.Start[light]:end] {
				out = append(out, slices.Repeat([]RGB{s.RGB}, int(s.Duration))...)
			}
		}
	}
	return out[:ticks]
}

// TestLights: a pattern is played as its periods, transitions and offsets say (VEC-CUBEIO-06, VEC-CUB-08).
func TestLights(t *testing.T) {
	red, blue := RGB{R: 255}, RGB{B: 255}
	p := Pattern{
		0: {On: red, Off: blue, OnFor: 2 * Tick, OffFor: 3 * Tick},
		1: {On: red, Off: blue, OnFor: 2 * Tick, OffFor: 3 * Tick, Offset: 3 * Tick},
		2: {On: red, Off: red, OnFor: time.Second},
		3: {On: red, Off: RGB{R: 55}, OnFor: Tick, OffFor: Tick, ToOff: 3 * Tick},
	}
	all, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	r, b := red, blue
	for light, want := range [][]RGB{{r, r, b, b, b, r, r}, {b, b, r, r, b, b, b}, {r, r, r, r, r, r, r}, {r, {R: 205}, {R: 155}, {R: 105}, {R: 55}, r, {R: 205}}} {
		if got := play(t, all, light, 7); !slices.Equal(got, want) {
			t.Errorf("light %d shows %v, want %v", light, got, want)
		}
	}
	if _, err := Compile(Pattern{2: {On: red, OnFor: time.Hour, OffFor: time.Second}}); err == nil {
		t.Error("a light that lasts an hour is not refused")
	}
	dark, err := Compile(Dark)
	if err != nil || len(dark) != 3 || play(t, dark, 3, 1)[0] != (RGB{}) {
		t.Errorf("%d commands for a dark cube: %v", len(dark), err)
	}
}

// TestFeeling: taps, motion and the axis that points up, from samples (part of VEC-CUBEIO-07, part of VEC-CCU-05).
func TestFeeling(t *testing.T) {
	const dt = 10 * time.Millisecond
	for name, tc := range map[string]struct {
		a    []Sample // after a second of rest, each for 10 ms
		want []Felt
	}{
		"rest":          {slices.Repeat([]Sample{{3, -2, 1001}}, 100), nil},
		"a tap":         {[]Sample{{0, 0, -1100}, {0, 0, -900}, {0, 0, 1000}}, []Felt{FeltTapped}},
		"a weak knock":  {[]Sample{{0, 0, 100}, {0, 0, 1000}}, nil},
		"a long shock":  {slices.Concat(slices.Repeat([]Sample{{0, 0, -3000}, {0, 0, 3500}}, 10), slices.Repeat([]Sample{{0, 0, 1000}}, 150)), []Felt{FeltMoved, FeltStopped}},
		"two taps":      {slices.Concat([]Sample{{0, 0, -1500}}, slices.Repeat([]Sample{{0, 0, 1000}}, 20), []Sample{{0, 0, -1500}, {0, 0, 1000}}), []Felt{FeltTapped, FeltTapped}},
		"a bounce":      {[]Sample{{0, 0, -1500}, {0, 0, 1000}, {0, 0, -1500}, {0, 0, 1000}}, []Felt{FeltTapped}},
		"a push":        {slices.Concat(slices.Repeat([]Sample{{300, 0, 1000}, {-300, 0, 1000}}, 10), slices.Repeat([]Sample{{0, 0, 1000}}, 60)), []Felt{FeltMoved, FeltStopped}},
		"onto its back": {slices.Repeat([]Sample{{0, 0, -1000}}, 150), []Felt{FeltMoved, FeltTurned, FeltStopped}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Feeling
			var got []Felt
			for range 100 {
				f.Add(Sample{0, 0, 1000}, dt, func(x Felt) { got = append(got, x) })
			}
			if !slices.Equal(got, []Felt{FeltTurned}) || f.Up() != UpZPositive {
				t.Fatalf("at rest it felt %v, up %v", got, f.Up())
			}
			got = nil
			for _, s := range tc.a {
				f.Add(s, dt, func(x Felt) { got = append(got, x) })
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("felt %v, want %v", got, tc.want)
			}
		})
	}
	for up, s := range map[Up]Sample{UpXNegative: {-950, 0, 200}, UpXPositive: {950, 10, 0}, UpYNegative: {0, -950, 0}, UpYPositive: {0, 950, 0}, UpZNegative: {0, 0, -950}, UpUnknown: {700, 700, 0}} {
		var f Feeling
		for range 60 {
			f.Add(s, dt, func(Felt) {})
		}
		if f.Up() != up {
			t.Errorf("%v: up %v, want %v", s, f.Up(), up)
		}
	}
}
