package vectorsim

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/sim/uart"
)

func TestSettings(t *testing.T) {
	b := newBench(t, Config{FaultDevice: spine.FaultCliff, FaultItem: 2})
	b.SetTouch(4095)
	b.SetButton(true)
	b.SetCliff(spine.FrontRight, 0)
	b.SetProx(0)
	b.SetPower(spine.BatteryDisconnected)
	m := b.drive(2*proxEvery, spine.HeadData{})
	if m.Touch != 4095 || m.Button != 1 || m.Cliffs[1] != 0 || m.Cliffs[0] < 500 || m.ProxRange < 8000 ||
		m.Power != spine.BatteryDisconnected || m.FaultDevice != 0xa6 || m.FaultItem != 2 {
		t.Errorf("the board reports %+v", m)
	}
}

func TestALateBoardSkipsFrames(t *testing.T) {
	b := newBench(t, Config{})
	before := b.drive(1, spine.HeadData{})
	out, err := b.tick(10, nil, nil)
	if err != nil || len(out) != spine.Overhead+spine.BodyDataSize {
		t.Fatalf("ten periods at once: %d bytes, %v; want one frame", len(out), err)
	}
	after := b.drive(1, spine.HeadData{})
	if after.Seq != before.Seq+11 || b.State().Skipped != 9 {
		t.Errorf("frame %d follows %d, %d skipped; want 11 further and 9", after.Seq, before.Seq, b.State().Skipped)
	}

	asleep := b.drive(3*second, spine.HeadData{}) // a gap would be a lost frame, which may have told of a hand (VEC-BODY-24)
	if _, err := b.tick(3, nil, nil); err != nil {
		t.Fatal(err)
	}
	if next := b.drive(1, spine.HeadData{}); asleep.Status&spine.EncodersOff == 0 || next.Seq != asleep.Seq+2 {
		t.Errorf("frame %d follows %d with status %04b; want 2 further while the encoders sleep", next.Seq, asleep.Seq, asleep.Status)
	}
}

func TestBrownOutAndStall(t *testing.T) {
	b := newBench(t, Config{})
	b.drive(1, spine.HeadData{Motors: [4]int16{32767}})
	b.Stall(10 * vectordriver.Period)
	for i := range 10 {
		if frames, err := b.step(new(spine.HeadData).AppendFrame(nil)...); len(frames) != 0 || err != nil {
			t.Fatalf("period %d of a stall: %q, %v", i, types(frames), err)
		}
	}
	if s := b.State(); s.Duty[0] != 1 {
		t.Errorf("duty %v: a frozen board leaves its motors on", s.Duty)
	}
	if frames, err := b.step(); types(frames) != "fd" || err != nil {
		t.Errorf("after the stall: %q, %v", types(frames), err)
	}
	b.BrownOut()
	if frames, err := b.step(); len(frames) != 0 || !errors.Is(err, ErrPowerCut) {
		t.Errorf("brown-out: %q, %v", types(frames), err)
	}
}

// The same seed and the same head make the same bytes, whatever the noise.
func TestSeedDecidesEverything(t *testing.T) {
	record := func(seed uint64) []byte {
		b := New(Config{Seed: seed, Noise: Noise{Loss: 0.1, Corrupt: 0.1}})
		b.powerOn()
		var all []byte
		for i := range 500 {
			m := spine.HeadData{Seq: uint32(i), Motors: [4]int16{int16(i * 30)}}
			var err error
			if all, err = b.tick(1, m.AppendFrame(nil), all); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	one, same, other := record(1), record(1), record(2)
	if !bytes.Equal(one, same) {
		t.Error("one seed made two different boards")
	}
	if bytes.Equal(one, other) {
		t.Error("two seeds made the same board")
	}
}

func TestNoiseIsAsOftenAsAsked(t *testing.T) {
	b := New(Config{Seed: 5, Noise: Noise{Loss: 0.2, Corrupt: 0.1}})
	b.powerOn()
	p := spine.NewParser(spine.ToHead)
	const frames = 2000
	good := 0
	for range frames {
		out, err := b.tick(1, new(spine.HeadData).AppendFrame(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Fill(copy(p.Space(), out))
		for f, ok := p.Next(); ok; f, ok = p.Next() {
			if f.Type == spine.TypeData {
				good++
			}
		}
	}
	if share := float64(good) / frames; share < 0.68 || share > 0.76 { // 0.8 * 0.9
		t.Errorf("%.3f of the data frames arrive whole, want about 0.72", share)
	}
	s := b.State()
	if share := float64(s.Heard) / frames; share < 0.68 || share > 0.76 {
		t.Errorf("the board heard %.3f of its head's frames, want about 0.72", share)
	}
}

func TestValidate(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
	for want, cfg := range map[string]Config{
		"version":       {Version: "more than sixteen bytes"},
		"start 3":       {Start: 3},
		"volts":         {Volts: 5},
		"loss":          {Noise: Noise{Loss: 1.5}},
		"corruption":    {Noise: Noise{Corrupt: math.NaN()}},
		"boot patience": {BootPatience: -time.Second},
		"ambient":       {Ambient: 300},
		"CountsPerRad":  {Calibration: vectordriver.Calibration{VoltsPerCount: 1e-3}},
	} {
		if err := cfg.Validate(); err == nil {
			t.Errorf("%+v is valid, want an error about %s", cfg, want)
		} else if want != "CountsPerRad" && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want it to name %s", err, want)
		}
	}
}

func TestTickAllocatesNothing(t *testing.T) {
	b := New(Config{})
	b.powerOn()
	in := new(spine.HeadData).AppendFrame(nil)
	out := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		var err error
		if out, err = b.tick(1, in, out[:0]); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a period allocates %v times, want 0", n)
	}
}

// FuzzBoard: whatever the head sends, the board keeps running and sends only well-formed frames.
func FuzzBoard(f *testing.F) {
	f.Add(uint8(0), []byte("garbage"))
	f.Add(uint8(1), spine.AppendCommand(spine.AppendCommand(nil, spine.TypeErase), spine.TypeValidate))
	f.Add(uint8(2), (&spine.Firmware{Offset: 0xffff, Words: 256}).AppendFrame(spine.AppendCommand(nil, spine.TypeErase)))
	f.Add(uint8(0), (&spine.HeadData{Motors: [4]int16{-32768, 32767, -1, 1}, Control: math.MaxUint32}).AppendFrame(nil))
	f.Fuzz(func(t *testing.T, start uint8, in []byte) {
		b := New(Config{Start: Start(start % 3)})
		b.powerOn()
		p := spine.NewParser(spine.ToHead)
		for range 4 {
			out, err := b.tick(1, bytes.Clone(in), nil)
			for len(out) > 0 {
				n := copy(p.Space(), out)
				p.Fill(n)
				out = out[n:]
				for _, ok := p.Next(); ok; _, ok = p.Next() {
				}
			}
			if err != nil {
				if !errors.Is(err, ErrShutdown) {
					t.Fatal(err)
				}
				break
			}
		}
		if c := p.Counters(); c.Bad() != 0 || c.Skipped != 0 {
			t.Fatalf("the board sent what is no frame: %+v", c)
		}
	})
}

// On the wire the rhythm is kept: each period since power on was either sent or counted as skipped, or as one that the machine had no time for.
func TestRunKeepsItsRhythm(t *testing.T) {
	for name, onWire := range map[string]func(t *testing.T, b *Board) func(context.Context) error{
		"pseudo-terminal": func(t *testing.T, b *Board) func(context.Context) error {
			pty, err := uart.OpenPTY()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = pty.Close() })
			return func(ctx context.Context) error { return b.Run(ctx, pty.Master) }
		},
		"socket": func(t *testing.T, b *Board) func(context.Context) error {
			s, _ := newSocket(t)
			return func(ctx context.Context) error { return b.RunOn(ctx, s) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(Config{})
			run := onWire(t, b)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			began := time.Now()
			go func() { ended <- run(ctx) }()
			s, err := b.Await(t.Context(), func(s State) bool { return s.Frames+s.Skipped+s.Frozen >= 100 })
			took := time.Since(began)
			cancel()
			if err := errors.Join(err, <-ended); err != nil {
				t.Fatal(err)
			}
			if periods := took.Seconds() / vectordriver.Period.Seconds(); math.Abs(periods-float64(s.Frames+s.Skipped+s.Frozen)) > 10 {
				t.Errorf("%d frames sent, %d skipped and %d frozen in %.1f periods", s.Frames, s.Skipped, s.Frozen, periods)
			}
			if s := b.State(); s.Mode != Off {
				t.Errorf("after Run the board is in mode %v, want off", s.Mode)
			}
		})
	}
}
