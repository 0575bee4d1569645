package vectorsim

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/sight"
	"kennel/edge/sim/camera"
	"kennel/edge/sim/plane"
	"kennel/infra/testwait"
)

// TestEye: the camera sees the board's world: the same at the same moment, with the calibration of its size (part of VEC-VIS-02), at both sizes (part of VEC-IMG-02); what is
// ahead changes with the head.
func TestEye(t *testing.T) {
	room, err := plane.Builtin("room")
	if err != nil {
		t.Fatal(err)
	}
	s := NewStepped(Config{Seed: 3, World: room})
	e := NewEye(s.Board)
	var a, b sight.Frame
	take := func(f *sight.Frame, w sight.Wish) {
		t.Helper()
		if !e.Take(f, w) {
			t.Fatal("no power")
		}
	}
	take(&a, sight.Wish{Resolution: 1})
	take(&b, sight.Wish{Resolution: 1})
	if !bytes.Equal(a.Pix, b.Pix) || a.Width != 640 || a.Height != 360 || a.Exposure == 0 || a.Gain == 0 {
		t.Errorf("%d by %d, exposure %v, gain %v, same %v", a.Width, a.Height, a.Exposure, a.Gain, bytes.Equal(a.Pix, b.Pix))
	}
	for f, size := range map[*sight.Frame]int{&a: 1, &b: 0} {
		take(f, sight.Wish{Resolution: size, Exposure: 5 * time.Millisecond, Gain: 2})
		if x := 2 * math.Atan(float64(f.Width)/2/f.Focal[0]); math.Abs(x-math.Pi/2) > 1e-9 || f.Centre != [2]float64{float64(f.Width) / 2, float64(f.Height) / 2} {
			t.Errorf("%d by %d: %.3f rad wide, centre %v", f.Width, f.Height, x, f.Centre)
		}
		if f.Exposure != 5*time.Millisecond || f.Gain != 2 {
			t.Errorf("exposure %v, gain %v", f.Exposure, f.Gain)
		}
	}
	if b.Width != 1280 || b.Height != 720 {
		t.Errorf("highest resolution: %d by %d", b.Width, b.Height)
	}
	s.CutPower(nil)
	if e.Take(&a, sight.Wish{}) {
		t.Error("a camera without power takes a picture")
	}
	if camera.Longest.Seconds() != vectordriver.MostExposure || camera.LeastGain != vectordriver.LeastGain || camera.MostGain != vectordriver.MostGain {
		t.Error("the tree's limits are not the camera's")
	}
}

// TestEyeServes: at its socket the camera gives frames as often as a listener wants them.
func TestEyeServes(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := NewStepped(Config{Seed: 3})
	e := NewEye(s.Board)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Serve(ctx, root) }()
	var c *sight.Conn
	testwait.Until(t, testwait.Long, "the socket", func() (err error) {
		c, err = sight.Dial(t.Context(), filepath.Join(root.Name(), sight.DevicePath))
		return err
	})
	if err := c.Ask(sight.Wish{Resolution: 1, Rate: 15}); err != nil {
		t.Fatal(err)
	}
	var f sight.Frame
	for n := uint64(1); n <= 3; n++ {
		if err := c.Next(&f); err != nil || f.Seq < n || f.Width != 640 {
			t.Fatalf("%v, number %d", err, f.Seq)
		}
	}
	_ = c.Close()
	cancel()
	if err := testwait.For(t, ended, "the end"); err != nil {
		t.Error(err)
	}
}

// spent is the processor time of this process: other programs do not count.
func spent(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEye is the work for one picture of 640 by 360 pixels: to draw it, and to make a JPEG of it. At 15 a second both together are to take less than 15 % of a
// core (issue 32).
func BenchmarkEye(b *testing.B) {
	room, err := plane.Builtin("room")
	if err != nil {
		b.Fatal(err)
	}
	e := NewEye(NewStepped(Config{Seed: 3, World: room}).Board)
	var f sight.Frame
	bytes := 0
	for name, step := range map[string]func(){
		"draw": func() { e.Take(&f, sight.Wish{Resolution: 1}) },
		"jpeg": func() {
			p, err := sight.Encode(&f, sight.JPEG, sight.DefaultQuality)
			if bytes = len(p); err != nil {
				b.Fatal(err)
			}
		},
	} {
		e.Take(&f, sight.Wish{Resolution: 1})
		b.Run(name, func(b *testing.B) {
			before := spent(b)
			for b.Loop() {
				step()
			}
			b.ReportMetric(100*15*(spent(b)-before).Seconds()/float64(b.N), "%core@15Hz")
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}
