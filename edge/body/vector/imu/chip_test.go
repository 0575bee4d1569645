package imu

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"kennel/edge/body"
)

// TestBlock: bytes by the data sheet's register map: gyro, acceleration, clock, each low byte first.
func TestBlock(t *testing.T) {
	for _, tc := range []struct {
		name, hex string
		want      Block
	}{
		{"at rest, level, 8 g", "0100ffff0000" + "000000000010" + "800000", Block{[3]int16{1, -1, 0}, [3]int16{0, 0, 4096}, 128}},
		{"every byte differs", "010203040506" + "0708090a0b0c" + "0d0e0f", Block{[3]int16{0x0201, 0x0403, 0x0605}, [3]int16{0x0807, 0x0a09, 0x0c0b}, 0x0f0e0d}},
		{"ends of the scales", "0080ff7f0000" + "ff7f00800000" + "ffffff", Block{[3]int16{-32768, 32767, 0}, [3]int16{32767, -32768, 0}, 1<<24 - 1}},
	} {
		p, err := hex.DecodeString(tc.hex)
		if err != nil {
			t.Fatal(err)
		}
		var got Block
		if err := got.Parse(p); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
		if again := tc.want.Append([]byte("x")); !bytes.Equal(again[1:], p) {
			t.Errorf("%s: appended % x, want % x", tc.name, again[1:], p)
		}
		for n := range p {
			if err := got.Parse(p[:n]); !errors.Is(err, ErrSize) {
				t.Errorf("%s: %d bytes: %v, want %v", tc.name, n, err, ErrSize)
			}
		}
	}
}

func FuzzBlock(f *testing.F) {
	f.Add(make([]byte, BlockSize))
	f.Add([]byte("fifteen bytes.."))
	f.Add([]byte("no block"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var b Block
		if err := b.Parse(p); err != nil {
			if !errors.Is(err, ErrSize) || len(p) == BlockSize {
				t.Errorf("%d bytes: %v", len(p), err)
			}
			return
		}
		if again := b.Append(nil); !bytes.Equal(again, p) {
			t.Errorf("% x, want % x", again, p)
		}
	})
}

// TestScales: what the data sheet says of ranges, rates and the clock.
func TestScales(t *testing.T) {
	for r, g := range map[AccelRange]float64{Accel2G: 2, Accel4G: 4, Accel8G: 8, Accel16G: 16} {
		if got := 32768 * r.PerCount(); math.Abs(got-g*Gravity) > 1e-9 {
			t.Errorf("range %#x is %v m/s2 to its end, want %v g", byte(r), got, g)
		}
	}
	for r, d := range map[GyroRange]float64{Gyro2000: 2000, Gyro1000: 1000, Gyro500: 500, Gyro250: 250, Gyro125: 125} {
		if got := 32768 * r.PerCount() * 180 / math.Pi; math.Abs(got-d) > 1e-9 {
			t.Errorf("range %d is %v degrees/s to its end, want %v", r, got, d)
		}
	}
	for r, want := range map[Rate]time.Duration{
		Hz25: 40 * time.Millisecond, Hz100: 10 * time.Millisecond, Hz200: 5 * time.Millisecond, Hz1600: 625 * time.Microsecond,
	} {
		if r.Period() != want {
			t.Errorf("rate %d has a period of %v, want %v", r, r.Period(), want)
		}
	}
	for hertz, want := range map[int]Rate{25: Hz25, 50: Hz50, 200: Hz200, 1600: Hz1600, 0: 0, 24: 0, 150: 0, 3200: 0, -25: 0} {
		if got, err := RateOf(hertz); got != want || (err == nil) != (want != 0) {
			t.Errorf("%d a second: %v, %v, want %v", hertz, got, err, want)
		}
	}
	if Hz100 != 8 || Accel8G != 8 {
		t.Error("codes of the configurations")
	}
	if AccelRange(1).PerCount() != 0 || GyroRange(5).PerCount() != 0 || Rate(13).Ticks() != 0 {
		t.Error("what there is not has a scale")
	}
	for n := range uint32(1000) {
		if got := TimeRaw(Ticks(n) + 1); got != n {
			t.Fatalf("count %d becomes %d", n, got)
		}
	}
	if got := TimeRaw(Ticks(1<<24-1) + 40*time.Microsecond); got != 0 {
		t.Errorf("after 24 bits the clock is at %d", got)
	}
}

// TestAxes: how the chip sits is a setting (VEC-IMU-03).
func TestAxes(t *testing.T) {
	c := Config{Device: "x", Axes: [3]int8{-2, 1, 3}, Gyro: Gyro1000}
	c.defaults()
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	var in body.Inertial
	c.convert(&Block{AccelRaw: [3]int16{4096, 2048, -4096}, GyroRaw: [3]int16{100, 200, 300}}, &in)
	k := Gyro1000.PerCount()
	want := body.Inertial{Accel: [3]float64{-Gravity / 2, Gravity, -Gravity}, Gyro: [3]float64{-200 * k, 100 * k, 300 * k}}
	for i := range 3 {
		if math.Abs(in.Accel[i]-want.Accel[i]) > 1e-9 || math.Abs(in.Gyro[i]-want.Gyro[i]) > 1e-9 {
			t.Errorf("axis %d: %+v, want %+v", i, in, want)
		}
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	for want, c := range map[string]Config{
		"want a device": {}, "axes": {Device: "x", Axes: [3]int8{1, -1, 3}}, "entry 2": {Device: "x", Axes: [3]int8{1, 2, 0}}, "entry 0": {Device: "x", Axes: [3]int8{-128, 2, 3}},
		"10000000": {Device: "x", Hertz: 20_000_000}, "rate": {Device: "x", Rate: 1}, "acceleration": {Device: "x", Accel: 1}, "gyro": {Device: "x", Gyro: 9},
	} {
		if _, err := New(c, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want something of %q", c, err, want)
		}
	}
}

// TestSpidev: the message is laid out as the kernel's header says, on this processor, and a file that is no channel is refused in words.
func TestSpidev(t *testing.T) {
	var m spiTransfer
	got := [...]uintptr{unsafe.Sizeof(m), unsafe.Offsetof(m.rx), unsafe.Offsetof(m.size), unsafe.Offsetof(m.hertz), unsafe.Offsetof(m.delay),
		unsafe.Offsetof(m.bits), unsafe.Offsetof(m.change)}
	if want := [...]uintptr{32, 8, 16, 20, 24, 26, 27}; got != want {
		t.Errorf("size and places %v, want %v", got, want)
	}
	if spiMessage != 1<<30|unsafe.Sizeof(m)<<16|'k'<<8 {
		t.Error("number of the request")
	}
	file := filepath.Join(t.TempDir(), "spidev0.0")
	if _, err := open(file, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a device that is not there: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(file, 1); err == nil || !strings.Contains(err.Error(), file+": set the mode: ") {
		t.Errorf("a file: %v", err)
	}
	if err := checkTransfer(make([]byte, 2), make([]byte, 3)); err == nil {
		t.Error("a transfer of two lengths")
	}
	if err := checkTransfer(make([]byte, MaxTransfer+1), make([]byte, MaxTransfer+1)); err == nil {
		t.Error("a transfer that is too long")
	}
}
