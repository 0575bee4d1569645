package imu_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/imu"
	"kennel/edge/body/vector/vectorsim"
)

// desk is a reader and a chip on it, in simulated time.
type desk struct {
	t     *testing.T
	now   time.Duration
	accel [3]float64
	gyro  [3]float64
	chip  *vectorsim.IMU
	r     *imu.Reader
	next  time.Duration
	err   error // of a bus that cannot be opened
	in    body.Inertial
	bad   bool
	grain time.Duration
	late  time.Duration // how long a transfer waits for its turn
}

func newDesk(t *testing.T, chip vectorsim.IMUConfig, cfg imu.Config) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Hour, grain: time.Millisecond, accel: [3]float64{0, 0, imu.Gravity}}
	d.chip = vectorsim.NewIMU(chip, func() (a, g [3]float64) { return d.accel, d.gyro })
	d.chip.PowerOn(d.now)
	cfg.Device, cfg.Open = "test", func() (imu.Bus, error) { return d, d.err }
	cfg.Now = func() time.Duration { return d.now }
	var err error
	if d.r, err = imu.New(cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) Transfer(tx, rx []byte) error {
	d.now += d.late
	if !d.chip.Transfer(d.now, tx, rx) {
		return imu.ErrNoAnswer
	}
	return nil
}

func (d *desk) Close() error { return nil }

// run lets time pass in steps of d.grain.
func (d *desk) run(t time.Duration) {
	d.t.Helper()
	for end := d.now + t; d.now < end; d.now += d.grain {
		if d.now >= d.next {
			if d.next = d.r.Step(d.now); d.next <= d.now {
				d.t.Fatalf("at %v it wants to be called at %v", d.now, d.next)
			}
		}
		before := d.in.At
		if d.bad = d.r.Newest(&d.in); d.in.At != 0 && d.in.At < before {
			d.t.Fatalf("time goes from %v to %v", before, d.in.At)
		}
		if d.in.At > d.now {
			d.t.Fatalf("a sample of %v at %v", d.in.At, d.now)
		}
	}
}

func near(got, want [3]float64, most float64) bool {
	for i := range got {
		if math.Abs(got[i]-want[i]) > most {
			return false
		}
	}
	return true
}

// TestReader: from power on to samples within 200 ms, in SI, none of which is older than one period and a tenth; no sample is missed.
func TestReader(t *testing.T) {
	d := newDesk(t, vectorsim.IMUConfig{AccelNoise: 0.01, GyroNoise: 0.001, GyroBias: [3]float64{0, 0, 0.01}}, imu.Config{Expected: true})
	d.grain = 100 * time.Microsecond
	d.run(200 * time.Millisecond)
	if d.in.At == 0 || d.bad {
		t.Fatalf("nothing after 200 ms: %+v, broken %v", d.in, d.bad)
	}
	d.accel, d.gyro = [3]float64{1, -2, 9}, [3]float64{0.1, 0.2, -0.3}
	d.run(20 * time.Millisecond)
	if !near(d.in.Accel, d.accel, 0.06) || !near(d.in.Gyro, [3]float64{0.1, 0.2, -0.29}, 0.008) {
		t.Errorf("got %+v, want %v and %v", d.in, d.accel, d.gyro)
	}
	samples, last := 0, d.in.At
	for range 10_000 {
		d.run(100 * time.Microsecond)
		if age := d.now - d.in.At; age > 5700*time.Microsecond {
			t.Fatalf("a sample is %v old", age)
		}
		if d.in.At != last {
			if gap := d.in.At - last; gap < 4900*time.Microsecond || gap > 5100*time.Microsecond {
				t.Fatalf("%v from a sample to the next", gap)
			}
			samples, last = samples+1, d.in.At
		}
	}
	if samples < 199 || samples > 201 {
		t.Errorf("%d samples in a second, want 200", samples)
	}
	d.accel = [3]float64{0, 0, 30 * imu.Gravity}
	d.run(10 * time.Millisecond)
	if want := 32767 * imu.Accel8G.PerCount(); d.in.Accel[2] != want {
		t.Errorf("beyond the range it reads %v, want its end %v", d.in.Accel[2], want)
	}
	if n := testing.AllocsPerRun(100, func() { d.run(5 * time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations in a period", n)
	}
}

// TestReaderAndSickChips: no sample of a chip that is not sound stays for longer than a tenth of a
// second, after little more than two seconds it is broken (VEC-IMU-16), all the time that it is; a
// mended one is believed again.
func TestReaderAndSickChips(t *testing.T) {
	for name, fault := range map[string]vectorsim.IMUFault{
		"line low": vectorsim.IMUZeros, "line high": vectorsim.IMUOnes, "another chip": vectorsim.IMUWrongID, "stuck": vectorsim.IMUStuck,
		"clock stands": vectorsim.IMUStopped, "silent": vectorsim.IMUSilent,
	} {
		t.Run(name+" from the beginning", func(t *testing.T) {
			d := newDesk(t, vectorsim.IMUConfig{}, imu.Config{Expected: true})
			d.chip.SetFault(fault, d.now)
			for range 400 {
				d.run(10 * time.Millisecond)
				// A stuck chip can be recognised only by samples that do not change.
				if d.in.At != 0 && d.now > time.Hour+500*time.Millisecond {
					t.Fatalf("after %v a sample: %+v", d.now-time.Hour, d.in)
				}
				if d.now > time.Hour+2100*time.Millisecond && !d.bad {
					t.Fatalf("after %v not broken", d.now-time.Hour)
				}
			}
			d.chip.SetFault(vectorsim.IMUSound, d.now)
			d.run(11 * time.Second)
			if d.bad || d.in.At == 0 || !near(d.in.Accel, d.accel, 0.1) {
				t.Errorf("mended: %+v, broken %v", d.in, d.bad)
			}
		})
		if fault == vectorsim.IMUWrongID { // a running chip is not swapped
			continue
		}
		t.Run(name+" later", func(t *testing.T) {
			d := newDesk(t, vectorsim.IMUConfig{}, imu.Config{Expected: true})
			d.run(time.Second)
			d.chip.SetFault(fault, d.now)
			d.run(200 * time.Millisecond)
			if d.in.At != 0 || d.bad {
				t.Fatalf("0.2 s later: %+v, broken %v", d.in, d.bad)
			}
			d.run(2 * time.Second)
			for range 500 {
				if d.run(10 * time.Millisecond); d.in.At != 0 || !d.bad {
					t.Fatalf("%+v, broken %v", d.in, d.bad)
				}
			}
			d.chip.SetFault(vectorsim.IMUSound, d.now)
			d.run(11 * time.Second)
			if d.bad || d.in.At == 0 {
				t.Errorf("mended: %+v, broken %v", d.in, d.bad)
			}
		})
	}
}

// TestReaderSeesLostSettings: a chip that lost its settings and measures in other units is set up again within two seconds.
func TestReaderSeesLostSettings(t *testing.T) {
	d := newDesk(t, vectorsim.IMUConfig{}, imu.Config{Expected: true})
	d.run(time.Second)
	d.chip.SetFault(vectorsim.IMUForgets, d.now)
	d.run(2500 * time.Millisecond)
	if d.bad || d.in.At == 0 || !near(d.in.Accel, d.accel, 0.1) {
		t.Errorf("%+v, broken %v; want 1 g", d.in, d.bad)
	}
}

// TestLateTransfers: on a machine that lets each transfer wait, chips are brought up all the same, samples have the time that they were taken at, and
// nothing is a fault.
func TestLateTransfers(t *testing.T) {
	d := newDesk(t, vectorsim.IMUConfig{}, imu.Config{Expected: true})
	for range 300 {
		for _, late := range []time.Duration{0, 120 * time.Millisecond, 30 * time.Millisecond, 0, 0, 0, 7 * time.Millisecond, 0} {
			d.late = late
			d.run(20 * time.Millisecond)
			if late == 0 && d.now > time.Hour+2*time.Second && (d.bad || d.in.At == 0 || d.now-d.in.At > 40*time.Millisecond) {
				t.Fatalf("at %v: %+v, broken %v", d.now, d.in, d.bad)
			}
		}
	}
	d.late = 0
	d.run(time.Second)
	last := d.in.At
	d.late = 50 * time.Millisecond // the one transfer of this read
	for d.in.At == last {
		d.run(time.Millisecond)
	}
	if whole := (d.in.At - last) % (5 * time.Millisecond); whole > time.Microsecond && whole < 4999*time.Microsecond {
		t.Errorf("a sample that was read late is %v after the one before, want whole periods", d.in.At-last)
	}
}

// TestAbsent: missing optional sensors are no fault; missing required ones are, and they are used once they appear.
func TestAbsent(t *testing.T) {
	for _, expected := range []bool{false, true} {
		d := newDesk(t, vectorsim.IMUConfig{}, imu.Config{Expected: expected})
		d.err = &fs.PathError{Op: "stat", Path: "test", Err: fs.ErrNotExist}
		d.run(5 * time.Second)
		if d.bad != expected || d.in.At != 0 {
			t.Errorf("expected %v: broken %v, %+v", expected, d.bad, d.in)
		}
		d.err = nil
		d.run(11 * time.Second)
		if d.bad || d.in.At == 0 {
			t.Errorf("expected %v, it came: broken %v, %+v", expected, d.bad, d.in)
		}
	}
	d := newDesk(t, vectorsim.IMUConfig{}, imu.Config{})
	d.err = errors.New("permission denied")
	if d.run(5 * time.Second); !d.bad {
		t.Error("a device that is there and cannot be opened is not broken")
	}
}

// said is a log that tests read while it grows.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), what)
}

// TestSocket: a reader and a chip in two lives of their own, on a socket whose path is longer than an address; the chip goes and comes back.
func TestSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "spidev0.0")
	chip := vectorsim.NewIMU(vectorsim.IMUConfig{Seed: 3}, func() (a, g [3]float64) { return [3]float64{0, 0, imu.Gravity}, g })
	log := &said{}
	r, err := imu.New(imu.Config{Device: path, Expected: true}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	wg.Go(func() { _ = r.Run(ctx) }) // nil
	serve := func() (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- vectorsim.ServeIMU(ctx, path, chip) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	var in body.Inertial
	await := func(what string, ok func(broken bool) bool) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); !ok(r.Newest(&in)); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%s: not within a minute: %+v", what, in)
			}
		}
	}
	well := func(broken bool) bool { return !broken && in.At != 0 }
	stop := serve()
	await("samples", well)
	if in.At > monoclock.Now() || !near(in.Accel, [3]float64{0, 0, imu.Gravity}, 0.1) {
		t.Errorf("at %v: %+v", monoclock.Now(), in)
	}
	chip.SetFault(vectorsim.IMUSilent, monoclock.Now())
	await("a silent chip", func(broken bool) bool { return broken && in.At == 0 })
	chip.SetFault(vectorsim.IMUSound, monoclock.Now())
	await("its return", well)
	stop()
	await("an end", func(bool) bool { return in.At == 0 })
	stop = serve()
	await("another beginning", well)
	// A machine with too much to do may let more transfers fail than these two.
	await("its word", func(bool) bool { return log.count("inertial sensors connected") >= 3 && log.count("no answer") >= 1 })
	stop()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}
