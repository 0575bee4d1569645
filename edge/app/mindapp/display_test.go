package mindapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/agent/health/faults"
	"kennel/edge/body/vector/panel"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/core/coreserver/robotdtest"
	"kennel/edge/face"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/robot"
	"kennel/infra/testwait"
)

// TestDisplay: the robot's own display shows the face and what programs show; one that breaks is fault 990, and shows again once it works (VEC-DSP-01, part of VEC-DSP-16).
func TestDisplay(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	log := slog.New(slog.DiscardHandler)
	for _, name := range []string{panel.Device, "sys/class/leds/face-backlight-left/brightness", "sys/class/leds/face-backlight-right/brightness"} {
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o755), root.WriteFile(name, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := root.Remove(panel.Device); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Display(root, log)(ended, nil); err != nil {
		t.Errorf("a head without a display: %v", err)
	}
	serve := func(l *vectorsim.LCD) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- vectorsim.ServeLCD(ctx, filepath.Join(root.Name(), panel.Device), l) }()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	l := vectorsim.NewLCD()
	stop := serve(l)
	testwait.Until(t, time.Minute, "the display", func() error { _, err := root.Stat(panel.Device); return err })
	robotdtest.Start(t, root.Name(), robot.Part{Path: "body.head.display", Is: []string{"VideoOut"}})
	c := mindtest.With(t, root.Name(), mind.Own{Motions: mindtest.None, Display: Display(root, log)})
	lit := func() error {
		pic := l.Picture()
		if pic == nil {
			return errors.New("dark")
		}
		for _, v := range pic.Pix {
			if v != 0 {
				return nil
			}
		}
		return errors.New("black")
	}
	testwait.Until(t, time.Minute, "eyes", lit)
	if b, err := root.ReadFile("sys/class/leds/face-backlight-left/brightness"); string(b) != "10" || err != nil {
		t.Errorf("the backlight is %q, %v", b, err)
	}
	if b, err := root.ReadFile(faults.File); err == nil {
		t.Errorf("fault %q of a display that works", b)
	}
	stop()
	testwait.Until(t, time.Minute, "the fault", func() error {
		if b, err := root.ReadFile(faults.File); string(b) != "990\n" {
			return fmt.Errorf("%q, %v", b, err)
		}
		return nil
	})
	l = vectorsim.NewLCD()
	stop = serve(l)
	defer func() { stop() }()
	testwait.Until(t, time.Minute, "eyes on a mended display", lit)
	pixels := make([]byte, 2*face.Width*face.Height)
	for i := range pixels {
		pixels[i] = byte(i * 7)
	}
	if err := c.Show(t.Context(), mindlink.Image{Program: "a", ForMS: 60_000, Pixels: pixels}); err != nil {
		t.Fatal(err)
	}
	var want face.Picture
	mindlink.Pixels(&want, pixels)
	testwait.Until(t, time.Minute, "a program's picture", func() error {
		if got := l.Picture(); got == nil || *got != want {
			return errors.New("another one")
		}
		return nil
	})
}
