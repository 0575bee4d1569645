package vectordriver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/port"
	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/faultcode"
)

var errKilled = errors.New("the head was killed")

// head is a head that can be killed at any frame it sends: what it does then fails, and nothing of it reaches the line any more.
type head struct {
	*vectorsim.Stepped
	writes int
	killAt int // the write in which it dies, from 1; 0: it lives
	half   bool
	dead   bool
}

func (h *head) Write(b []byte) (int, error) {
	if h.dead {
		return 0, errKilled
	}
	if h.writes++; h.writes == h.killAt {
		h.dead = true
		if h.half {
			_, _ = h.Stepped.Write(b[:len(b)/2])
		}
		return 0, errKilled
	}
	return h.Stepped.Write(b)
}

func (h *head) Read(b []byte) (int, error) {
	if h.dead {
		return 0, errKilled
	}
	return h.Stepped.Read(b)
}

func (h *head) Wait(deadline time.Duration) (bool, error) {
	if h.dead {
		return false, errKilled
	}
	return h.Stepped.Wait(deadline)
}

func (h *head) DropOutput() error {
	if h.dead {
		return errKilled
	}
	return h.Stepped.DropOutput()
}

const (
	oldVersion = "1.6.0-old"
	newVersion = "1.7.0-new"
)

func firmware(t testing.TB, version string, size int) *vectordriver.Firmware {
	t.Helper()
	fw, err := vectordriver.ParseFirmware(vectorsim.Image(version, size, 7))
	if err != nil {
		t.Fatal(err)
	}
	return fw
}

func openOn(t testing.TB, p port.Port, fw *vectordriver.Firmware, change ...func(*vectordriver.Config)) (*vectordriver.Driver, error) {
	t.Helper()
	cfg := vectordriver.Config{Device: "simulated", Port: p, Firmware: fw}
	for _, fn := range change {
		fn(&cfg)
	}
	return vectordriver.Open(t.Context(), cfg)
}

// runs checks that d's body runs the version and moves its motors.
func runs(t testing.TB, s *vectorsim.Stepped, d *vectordriver.Driver, version string) {
	t.Helper()
	if got := d.Describe().Firmware; got != version || s.State().Mode != vectorsim.InApplication {
		t.Fatalf("the board is in its %v and runs %q, want %q", s.State().Mode, got, version)
	}
	var sense vectordriver.Sense
	act := vectordriver.Act{Motors: [4]float64{0.5}}
	for range 60 {
		if err := d.ReadSense(&sense, s.Now()+time.Second); err != nil {
			t.Fatal(err)
		}
		if err := d.WriteAct(&act); err != nil {
			t.Fatal(err)
		}
	}
	if sense.Motors[spine.LeftTread].Position < 0.5 {
		t.Fatalf("the tread turned %.2f rad, want a running board", sense.Motors[spine.LeftTread].Position)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestUpdate(t *testing.T) {
	for _, tc := range []struct {
		name            string
		board           vectorsim.Config
		faults          vectorsim.FlashFaults
		file            string
		noDowngrade     bool
		attempts        int
		skipped         string
		runs, installed string
	}{
		{name: "the same", board: vectorsim.Config{Version: newVersion}, attempts: 0, runs: newVersion, installed: newVersion},
		{name: "another", attempts: 1, runs: newVersion, installed: oldVersion},
		{name: "from the boot-loader", board: vectorsim.Config{Start: vectorsim.StartBootloader}, attempts: 1, runs: newVersion, installed: oldVersion},
		{name: "nothing to run", board: vectorsim.Config{Start: vectorsim.StartEmpty}, attempts: 1, runs: newVersion},
		{name: "an older file (VEC-DFU-01)", board: vectorsim.Config{Version: "1.8"}, attempts: 1, runs: newVersion, installed: "1.8"},
		{name: "an older file, kept", board: vectorsim.Config{Version: "1.10"}, file: "1.9", noDowngrade: true, skipped: "newer", runs: "1.10", installed: "1.10"},
		{name: "no order", board: vectorsim.Config{Version: "1.8"}, noDowngrade: true, attempts: 1, runs: newVersion, installed: "1.8"},
		{name: "refusals that end (VEC-DFU-02)", faults: vectorsim.FlashFaults{EraseRefused: 2, WriteRefused: 2, ValidateRefused: 2}, attempts: 1, runs: newVersion, installed: oldVersion},
		{name: "from the start again (VEC-DFU-05)", faults: vectorsim.FlashFaults{ValidateRefused: 3}, attempts: 2, runs: newVersion, installed: oldVersion},
		{name: "memory that is worn twice", faults: vectorsim.FlashFaults{Worn: 2}, attempts: 3, runs: newVersion, installed: oldVersion},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.board.Version == "" {
				tc.board.Version = oldVersion
			}
			if tc.file == "" {
				tc.file = newVersion
			}
			s := vectorsim.NewStepped(tc.board)
			s.SetFlashFaults(tc.faults)
			var said []vectordriver.Progress
			d, err := openOn(t, s, firmware(t, tc.file, 4900), func(c *vectordriver.Config) {
				c.NoDowngrade = tc.noDowngrade
				c.Progress = func(p vectordriver.Progress) { said = append(said, p) }
			})
			if err != nil {
				t.Fatal(err)
			}
			u := d.Update()
			if u.Attempts != tc.attempts || u.Err != nil || u.Installed != tc.installed || u.Wanted != tc.file ||
				!strings.Contains(u.Skipped, tc.skipped) || (u.Skipped == "") != (tc.skipped == "") {
				t.Errorf("update %+v, want %d attempts from %q to %q", u, tc.attempts, tc.installed, tc.file)
			}
			if tc.attempts == 0 && len(said) != 0 {
				t.Errorf("progress %v of no update", said)
			}
			if tc.attempts > 0 {
				if last := said[len(said)-1]; last != (vectordriver.Progress{Phase: vectordriver.StartProgram, Attempt: tc.attempts, Done: 5, Total: 5}) {
					t.Errorf("the last of %d words is %+v", len(said), last)
				}
			}
			runs(t, s, d, tc.runs)
		})
	}
}

// VEC-DFU-04, part of VEC-BOOT-09: 16 to 19, with the phase, the place and the reason.
func TestUpdateThatFails(t *testing.T) {
	lying := vectorsim.Image(newVersion, 4900, 7)
	copy(lying, "1.7.1")
	for _, tc := range []struct {
		name   string
		start  vectorsim.Start
		faults vectorsim.FlashFaults
		file   []byte
		status faultcode.Code
		want   string
		opens  bool
	}{
		{"erase", vectorsim.StartApplication, vectorsim.FlashFaults{EraseRefused: 99}, nil, 17, "erase the program, attempt 3: the body refused", true},
		{"write", vectorsim.StartApplication, vectorsim.FlashFaults{WriteRefused: 99}, nil, 18, "write the program at offset 0, attempt 3: the body refused", false},
		{"validate", vectorsim.StartApplication, vectorsim.FlashFaults{ValidateRefused: 99}, nil, 19, "validate the program, attempt 3: the body refused", false},
		{"no program", vectorsim.StartEmpty, vectorsim.FlashFaults{}, make([]byte, 2000), 19, "validate the program", false},
		{"too long", vectorsim.StartEmpty, vectorsim.FlashFaults{}, make([]byte, 60<<10), 18, "at offset 57344", false},
		{"a file that lies about its version", vectorsim.StartApplication, vectorsim.FlashFaults{}, lying, 19, `version "1.7.0-new", want "1.7.1`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := vectorsim.NewStepped(vectorsim.Config{Version: oldVersion, Start: tc.start})
			s.SetFlashFaults(tc.faults)
			if tc.file == nil {
				tc.file = vectorsim.Image(newVersion, 4900, 7)
			}
			fw, err := vectordriver.ParseFirmware(tc.file)
			if err != nil {
				t.Fatal(err)
			}
			d, err := openOn(t, s, fw)
			if (err == nil) != tc.opens {
				t.Fatalf("open: %v, want opened %t", err, tc.opens)
			}
			if err == nil {
				err = d.Update().Err
				if cerr := d.Close(); cerr != nil {
					t.Error(cerr)
				}
			} else if !errors.Is(err, vectordriver.ErrNoApplication) || vectordriver.FaultOf(err) != faultcode.BodySilent {
				t.Errorf("%v, fault %v: want %v", err, vectordriver.FaultOf(err), vectordriver.ErrNoApplication)
			}
			var ue *vectordriver.UpdateError
			if !errors.As(err, &ue) || ue.Status != tc.status || !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), fmt.Sprintf("status %d", tc.status)) {
				t.Errorf("%v\nwant status %d and %q", err, tc.status, tc.want)
			}
			if text := faultcode.Rampost.Text(tc.status); strings.HasPrefix(text, "fault ") {
				t.Errorf("status %d is not in the published table: %q", tc.status, text)
			}
			// Whatever failed, a sound file makes it run.
			s.SetFlashFaults(vectorsim.FlashFaults{})
			if d, err = openOn(t, s, firmware(t, "2.0", 3000)); err != nil {
				t.Fatal(err)
			}
			runs(t, s, d, "2.0")
		})
	}
}

// A body that sends data and never its version is left as it is: 16.
func TestUpdateOfABodyThatKeepsItsVersion(t *testing.T) {
	s := vectorsim.NewStepped(vectorsim.Config{})
	d, err := openOn(t, deafTo{s, spine.TypeVersion}, firmware(t, newVersion, 4900))
	if err != nil {
		t.Fatal(err)
	}
	var ue *vectordriver.UpdateError
	if u := d.Update(); !errors.As(u.Err, &ue) || ue.Status != 16 || u.Attempts != 0 {
		t.Errorf("update %+v, want status 16 and no attempt", u)
	}
}

// deafTo loses the head's frames of one type.
type deafTo struct {
	*vectorsim.Stepped
	lost spine.Type
}

func (p deafTo) Write(b []byte) (int, error) {
	if f, _, err := spine.ParseFrame(spine.ToBody, b); err == nil && f.Type == p.lost {
		return len(b), nil
	}
	return p.Stepped.Write(b)
}

// killings counts the frames and periods of a whole update from the given start.
func killings(t *testing.T, start vectorsim.Start, fw *vectordriver.Firmware) (writes, periods int) {
	t.Helper()
	h := &head{Stepped: vectorsim.NewStepped(vectorsim.Config{Version: oldVersion, Start: start})}
	h.Each = func(time.Duration) { periods++ }
	d, err := openOn(t, h, fw)
	if err != nil {
		t.Fatal(err)
	}
	if u := d.Update(); u.Attempts != 1 || u.Err != nil {
		t.Fatalf("update %+v", u)
	}
	return h.writes, periods
}

// The head dies before and within every frame it sends, the power goes at every period (so also between any frame of the body and the
// next), and every frame is lost or damaged, either way: each time the next start ends with a running board (issue: Build 3).
func TestKilledAtEveryStepOfAnUpdate(t *testing.T) {
	fw := firmware(t, newVersion, 3000)
	starts := []vectorsim.Start{vectorsim.StartApplication, vectorsim.StartBootloader, vectorsim.StartEmpty}
	every := 1
	if testing.Short() { // under an emulator
		starts, every = starts[:1], 5
	}
	killed := 0
	for _, start := range starts {
		writes, periods := killings(t, start, fw)
		if writes < 8 || periods < 60 {
			t.Fatalf("an update of %d frames in %d periods is too short to be one", writes, periods)
		}
		again := func(what string, s *vectorsim.Stepped) {
			t.Helper()
			killed++
			s.Each = nil
			s.Press()
			began := s.Now()
			d, err := openOn(t, s, fw)
			if took := s.Now() - began; took > 2*time.Second {
				t.Fatalf("start %d, %s: the next start took %v", start, what, took)
			}
			if err != nil || d.Update().Err != nil {
				t.Fatalf("start %d, %s: %v, then %v", start, what, killed, err)
			}
			runs(t, s, d, newVersion)
		}
		for at := 1; at <= writes; at += (every + 1) / 2 {
			for _, half := range []bool{false, true} {
				for _, power := range []bool{false, true} { // the board stays on, or goes with its head
					h := &head{Stepped: vectorsim.NewStepped(vectorsim.Config{Version: oldVersion, Start: start}), killAt: at, half: half}
					if _, err := openOn(t, h, fw); !errors.Is(err, body.ErrLink) && !errors.Is(err, errKilled) {
						t.Fatalf("start %d, killed at frame %d: %v", start, at, err)
					}
					if power {
						h.CutPower(errKilled)
					}
					again(fmt.Sprintf("killed at frame %d of %d, half %t, power %t", at, writes, half, power), h.Stepped)
				}
			}
		}
		for at := 1; at <= periods; at += every {
			h := &head{Stepped: vectorsim.NewStepped(vectorsim.Config{Version: oldVersion, Start: start})}
			n := 0
			h.Each = func(time.Duration) {
				if n++; n == at {
					h.CutPower(errKilled)
					h.dead = true
				}
			}
			if d, err := openOn(t, h, fw); err == nil && at < periods-1 {
				t.Fatalf("start %d, power cut at period %d of %d: %+v", start, at, periods, d.Update())
			}
			again(fmt.Sprintf("power cut at period %d of %d", at, periods), h.Stepped)
		}
		for at := 1; at <= periods; at += every { // a brown-out resets the board alone; the head keeps running and finds it again
			s := vectorsim.NewStepped(vectorsim.Config{Version: oldVersion, Start: start})
			s.Again = 50 * time.Millisecond
			n := 0
			s.Each = func(time.Duration) {
				if n++; n == at {
					s.BrownOut()
				}
			}
			d, err := openOn(t, s, fw)
			if err != nil {
				again(fmt.Sprintf("brown-out at period %d of %d", at, periods), s)
				continue
			}
			killed++
			s.Each = nil
			if d.Update().Err != nil || d.Describe().Firmware != newVersion {
				t.Fatalf("start %d, brown-out at period %d: %+v, runs %q", start, at, d.Update(), d.Describe().Firmware)
			}
		}
		for at := 1; at <= periods; at += every { // what is on the line in this period is lost
			s := vectorsim.NewStepped(vectorsim.Config{Version: oldVersion, Start: start})
			n := 0
			s.Each = func(time.Duration) {
				n++
				s.SetNoise(vectorsim.Noise{Silent: n+1 == at})
			}
			d, err := openOn(t, s, fw)
			if err != nil || d.Update().Err != nil {
				t.Fatalf("start %d, silence in period %d: %v", start, at, err)
			}
			s.Each = nil
			runs(t, s, d, newVersion)
			killed++
		}
	}
	t.Logf("killed %d times", killed)
}

// Random kills, one after another, on a bad line: in the end the board runs.
func TestUpdateInBadWeather(t *testing.T) {
	rounds := 100
	switch {
	case os.Getenv("KENNEL_SOAK") == "1":
		rounds = 5000
	case testing.Short():
		rounds = 20
	}
	fw := firmware(t, newVersion, 3000)
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 3))
		noise := vectorsim.Noise{
			Loss: 0.05 * rng.Float64(), Corrupt: 0.05 * rng.Float64(), ByteLoss: 3e-5 * rng.Float64(),
			ByteNoise: 3e-5 * rng.Float64(), Babble: rng.IntN(20),
		}
		s := vectorsim.NewStepped(vectorsim.Config{Seed: seed, Version: oldVersion, Start: vectorsim.Start(rng.IntN(3)), Noise: noise})
		for range 1 + rng.IntN(5) {
			h := &head{Stepped: s, killAt: 1 + rng.IntN(30), half: rng.IntN(2) == 0}
			d, err := openOn(t, h, fw)
			if err == nil {
				_ = d.Close() // of a head that outlived its kill
			}
			if rng.IntN(2) == 0 {
				s.CutPower(errKilled)
				s.Press()
			}
		}
		var d *vectordriver.Driver
		var err error
		for range 3 { // on such a line a start may fail
			if d, err = openOn(t, s, fw); err == nil && d.Update().Err == nil {
				break
			}
			s.Press()
		}
		if err != nil || d.Update().Err != nil {
			t.Fatalf("seed %d: %v, %+v", seed, err, noise)
		}
		s.SetNoise(vectorsim.Noise{})
		runs(t, s, d, newVersion)
	}
}

// On the wire, in real time, and interrupted by a context.
func TestUpdateOnThePTY(t *testing.T) {
	r := newRig(t, vectorsim.Config{Version: oldVersion})
	fw := firmware(t, newVersion, 4900)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := vectordriver.Open(ctx, vectordriver.Config{Device: r.pty.SlavePath, Timeout: 20 * time.Second, Firmware: fw, Progress: func(p vectordriver.Progress) {
		if p.Phase == vectordriver.WriteBlocks && p.Done == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("open: %v, want %v", err, context.Canceled)
	}
	d := r.open(func(c *vectordriver.Config) { c.Firmware = fw })
	if u := d.Update(); u.Err != nil || u.Attempts == 0 || d.Describe().Firmware != newVersion {
		t.Errorf("update %+v, the body runs %q", u, d.Describe().Firmware)
	}
}

func TestParseFirmware(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 16: false, 17: true, 16 + 64<<10: true, 17 + 64<<10: false} {
		if _, err := vectordriver.ParseFirmware(make([]byte, n)); (err == nil) != ok {
			t.Errorf("%d bytes: %v, want taken %t", n, err, ok)
		}
	}
}

// FuzzFirmware: a parsed image encodes to the same file, and its blocks are the program, padded like erased memory (VEC-DFU-03).
func FuzzFirmware(f *testing.F) {
	f.Add(vectorsim.Image(newVersion, 4900, 1))
	f.Add(make([]byte, 16+1025))
	f.Fuzz(func(t *testing.T, b []byte) {
		fw, err := vectordriver.ParseFirmware(b)
		if err != nil {
			return
		}
		if again := append(fw.Version[:], fw.Program...); !bytes.Equal(again, b) {
			t.Fatalf("%d bytes became %d", len(b), len(again))
		}
	})
}
