package panel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/body/vector/panel"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/face"
	"kennel/infra/testwait"
)

var lights = []string{"sys/class/leds/face-backlight-left/brightness", "sys/class/leds/face-backlight-right/brightness"}

func folder(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	for _, name := range append(lights, panel.Device) {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestShow: a display shows each picture, and is sent only the rectangles that changed (VEC-DSP-01).
func TestShow(t *testing.T) {
	root := folder(t)
	if _, err := panel.Open(t.Context(), root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a display: %v", err)
	}
	l := vectorsim.NewLCD()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- vectorsim.ServeLCD(ctx, filepath.Join(root.Name(), panel.Device), l) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var p *panel.Panel
	testwait.Until(t, time.Minute, "the display", func() (err error) {
		p, err = panel.Open(t.Context(), root)
		return err
	})
	shows := func(what string, want *face.Picture) {
		t.Helper()
		testwait.Until(t, time.Minute, what, func() error {
			got := l.Picture()
			switch {
			case got == nil && want == nil:
			case got == nil || want == nil:
				return fmt.Errorf("dark: %v, want %v", got == nil, want == nil)
			default:
				for i := range got.Pix {
					if got.Pix[i] != want.Pix[i] {
						return fmt.Errorf("pixel %d, %d is %#04x, want %#04x", i%face.Width, i/face.Width, got.Pix[i], want.Pix[i])
					}
				}
			}
			return nil
		})
	}
	var pic face.Picture
	shows("black at first", &pic)
	sent := l.State().Pixels
	if sent != face.Width*face.Height {
		t.Errorf("%d pixels sent until it is on", sent)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name   string
		change func()
		pixels int
	}{
		{"the same", func() {}, 0},
		{"one pixel", func() { pic.Pix[0] = 0xF800 }, 1},
		{"the last pixel", func() { pic.Pix[len(pic.Pix)-1] = 0x07E0 }, 1},
		{"two lines of an area", func() { pic.Pix[5*face.Width+10], pic.Pix[6*face.Width+12] = 1, 2 }, 6},
		{"two areas", func() { pic.Pix[20*face.Width+10], pic.Pix[80*face.Width+100] = 3, 4 }, 2},
		{"all", func() {
			for i := range pic.Pix {
				pic.Pix[i] = uint16(i) | 1<<15
			}
		}, face.Width * face.Height},
		{"anything", func() {
			for range 50 {
				pic.Pix[rng.IntN(len(pic.Pix))] = uint16(rng.Uint32())
			}
		}, -1},
	} {
		c.change()
		if err := p.Show(&pic); err != nil {
			t.Fatal(err)
		}
		shows(c.name, &pic)
		now := l.State().Pixels
		if got := int(now - sent); c.pixels >= 0 && got != c.pixels {
			t.Errorf("%s: %d pixels sent, want %d", c.name, got, c.pixels)
		}
		sent = now
	}
	if s := l.State(); s.Ignored != 0 || !s.Inverted {
		t.Errorf("%+v", s)
	}
	light(t, p, root)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	shows("dark after its end", nil)
}

// light tests the backlight: it has one or two files, and at most 20 of 255 (part of VEC-DSP-16).
func light(t *testing.T, p *panel.Panel, root *os.Root) {
	t.Helper()
	if err := p.Light(1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without files: %v", err)
	}
	const one = "sys/class/leds/face-backlight/brightness"
	if err := errors.Join(root.MkdirAll(filepath.Dir(one), 0o755), root.WriteFile(one, nil, 0o644), p.Light(1)); err != nil {
		t.Errorf("a panel with one light: %v", err)
	}
	if got, _ := root.ReadFile(one); string(got) != "20" {
		t.Errorf("a panel with one light: %q", got)
	}
	for level, want := range map[float64]string{-1: "0", 0: "0", 0.5: "10", 1: "20", 9: "20"} {
		for _, name := range lights {
			if err := root.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Light(level); err != nil {
			t.Error(err)
		}
		for _, name := range lights {
			if got, err := root.ReadFile(name); string(got) != want || err != nil {
				t.Errorf("%v: %s is %q, %v; want %q", level, name, got, err, want)
			}
		}
	}
}
