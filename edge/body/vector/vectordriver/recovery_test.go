package vectordriver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/faultcode"
	"kennel/edge/sim/uart"
)

// A head that falls silent loses its power; pressed on again, the board is taken up by the same driver (VEC-BODY-11).
func TestWatchdogCutsThePowerAndTheDriverComesBack(t *testing.T) {
	for _, start := range []vectorsim.Start{vectorsim.StartApplication, vectorsim.StartBootloader} {
		r := newRig(t, vectorsim.Config{Start: start})
		d := r.open()
		var act vectordriver.Act
		act.Motors[0] = 0.5
		first := until(t, d, &act, "driving", func(s *vectordriver.Sense) bool { return s.Motors[0].Position > 1 })

		if err := r.ended(); !errors.Is(err, vectorsim.ErrPowerCut) {
			t.Fatalf("a silent head ends with %v, want %v", err, vectorsim.ErrPowerCut)
		}
		if s := r.State(); s.Mode != vectorsim.Off || s.Silent != vectordriver.WatchdogFrames || s.Duty != [4]float64{} {
			t.Errorf("after the cut: %+v, want it off after %d silent frames with its motors off", s, vectordriver.WatchdogFrames)
		}
		s := first
		for deadline := monoclock.Now() + 10*time.Second; s.Fault != uint16(faultcode.BodySilent); {
			if err := d.ReadSense(&s, monoclock.Now()+50*time.Millisecond); err != nil && err != body.ErrTimeout {
				t.Fatal(err)
			}
			if monoclock.Now() > deadline {
				t.Fatalf("silence is not reported: %+v", s)
			}
		}

		r.powerOn()
		again := until(t, d, new(vectordriver.Act), "the board again", func(s *vectordriver.Sense) bool { return s.Epoch != first.Epoch })
		if again.Fault != 0 || again.Motors[0].Position > 0.5 {
			t.Errorf("after the restart: %+v, want positions that begin again and no fault", again)
		}
	}
}

func TestDriverComesBackFromTheBootloader(t *testing.T) {
	r := newRig(t, vectorsim.Config{Start: vectorsim.StartBootloader})
	d := r.open()
	first := until(t, d, new(vectordriver.Act), "frames", func(*vectordriver.Sense) bool { return true })
	r.BrownOut()
	if err := r.ended(); !errors.Is(err, vectorsim.ErrPowerCut) {
		t.Fatalf("brown-out ends with %v, want %v", err, vectorsim.ErrPowerCut)
	}
	r.powerOn()
	until(t, d, new(vectordriver.Act), "the application again", func(s *vectordriver.Sense) bool { return s.Epoch != first.Epoch })
}

func TestStalledBoardIsATimeoutAndThenGoesOn(t *testing.T) {
	r := newRig(t, vectorsim.Config{})
	d := r.open()
	var s vectordriver.Sense
	next(t, d, &s)
	r.Stall(100 * time.Millisecond)
	timeouts := 0
	for deadline := monoclock.Now() + 10*time.Second; ; {
		err := d.ReadSense(&s, monoclock.Now()+20*time.Millisecond)
		if err == body.ErrTimeout {
			timeouts++
		} else if err != nil {
			t.Fatal(err)
		} else if timeouts > 0 {
			break
		}
		if monoclock.Now() > deadline {
			t.Fatalf("%d timeouts and no frame after a stall", timeouts)
		}
	}
	if timeouts < 2 {
		t.Errorf("a stall of 100 ms made %d timeouts of 20 ms", timeouts)
	}
}

func TestShutdown(t *testing.T) {
	r := newRig(t, vectorsim.Config{})
	d := r.open()
	if err := d.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := r.ended(); !errors.Is(err, vectorsim.ErrShutdown) {
		t.Errorf("the board ended with %v, want %v", err, vectorsim.ErrShutdown)
	}
}

func TestOpenSaysWhatItHeard(t *testing.T) {
	brief := func(path string) vectordriver.Config {
		return vectordriver.Config{Device: path, Timeout: 300 * time.Millisecond}
	}

	t.Run("nobody", func(t *testing.T) {
		pty, err := uart.OpenPTY()
		if err != nil {
			t.Fatal(err)
		}
		defer pty.Close()
		_, err = vectordriver.Open(t.Context(), brief(pty.SlavePath))
		if !errors.Is(err, vectordriver.ErrNoBody) || vectordriver.FaultOf(err) != 899 || !strings.Contains(err.Error(), pty.SlavePath) {
			t.Errorf("Open: %v, fault %d; want %v on %s and 899", err, vectordriver.FaultOf(err), vectordriver.ErrNoBody, pty.SlavePath)
		}
	})
	t.Run("boot-loader without application", func(t *testing.T) {
		r := newRig(t, vectorsim.Config{Start: vectorsim.StartEmpty})
		_, err := vectordriver.Open(t.Context(), brief(r.pty.SlavePath))
		if !errors.Is(err, vectordriver.ErrNoApplication) || vectordriver.FaultOf(err) != 898 {
			t.Errorf("Open: %v, fault %d; want %v and 898", err, vectordriver.FaultOf(err), vectordriver.ErrNoApplication)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		pty, err := uart.OpenPTY()
		if err != nil {
			t.Fatal(err)
		}
		defer pty.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := vectordriver.Open(ctx, vectordriver.Config{Device: pty.SlavePath, Timeout: time.Hour}); !errors.Is(err, context.Canceled) {
			t.Errorf("Open: %v, want %v", err, context.Canceled)
		}
	})
	t.Run("two drivers", func(t *testing.T) {
		r := newRig(t, vectorsim.Config{})
		r.open()
		if _, err := vectordriver.Open(t.Context(), brief(r.pty.SlavePath)); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("second Open: %v, want it to name the other program", err)
		}
	})
	t.Run("no tty", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, path + "-missing", ""} {
			if d, err := vectordriver.Open(t.Context(), brief(p)); err == nil {
				t.Errorf("Open(%q) gave %v", p, d)
			}
		}
	})
	t.Run("impossible calibration", func(t *testing.T) {
		cfg := brief("/dev/null")
		cfg.Calibration = vectordriver.DefaultCalibration()
		cfg.Calibration.CountsPerRad[2] = 0
		if _, err := vectordriver.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "CountsPerRad of arm") {
			t.Errorf("Open: %v, want it to name the number", err)
		}
	})
}

func TestHungUpLineIsALinkError(t *testing.T) {
	r := newRig(t, vectorsim.Config{})
	d := r.open()
	r.stop()
	if err := r.pty.Close(); err != nil {
		t.Fatal(err)
	}
	var s vectordriver.Sense
	var err error
	for range 10 { // frames that were on their way may still come
		if err = d.ReadSense(&s, monoclock.Now()+5*time.Second); err != nil {
			break
		}
	}
	if !errors.Is(err, body.ErrLink) || s.Fresh || vectordriver.FaultOf(err) != faultcode.BodySilent {
		t.Errorf("Read from a hung-up line: %v, fresh %t; want %v and fault 898", err, s.Fresh, body.ErrLink)
	}
	if err := d.WriteAct(&vectordriver.Act{}); !errors.Is(err, body.ErrLink) {
		t.Errorf("Write to a hung-up line: %v, want %v", err, body.ErrLink)
	}
}

// A full port drops whole frames, and Halt overtakes the queued ones.
func TestFullPort(t *testing.T) {
	r := newRig(t, vectorsim.Config{})
	d := r.open()
	r.stop() // the bytes are no longer read
	var act vectordriver.Act
	act.Motors[0] = 1
	var err error
	for range 100_000 {
		if err = d.WriteAct(&act); err != nil {
			break
		}
	}
	if err != body.ErrFull || d.Link().Full == 0 {
		t.Fatalf("writing without end: %v, %+v; want %v", err, d.Link(), body.ErrFull)
	}
	if err := d.Halt(); err != nil {
		t.Fatalf("Halt on a full port: %v", err)
	}

	frames, counters := received(t, r)
	if len(frames) == 0 {
		t.Fatal("no frame arrived")
	}
	if last := frames[len(frames)-1]; last.Motors != [4]int16{} {
		t.Errorf("the last frame of %d drives: %+v", len(frames), last)
	}
	if counters.Bad() > 1 { // the frame that Halt cut short
		t.Errorf("what arrived is damaged: %+v", counters)
	}
}
