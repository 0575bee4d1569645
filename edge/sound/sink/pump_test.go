package sink

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/sound"
)

// sine returns a second of a tone below every limit of the mixer.
func sine() *sound.Sound {
	s := &sound.Sound{Rate: rate, Samples: make([]float32, rate)}
	for i := range s.Samples {
		s.Samples[i] = float32(0.25 * math.Sin(2*math.Pi*440*float64(i)/rate))
	}
	return s
}

// TestPump: a tone that is asked for at a time arrives at a listener sample by sample as it is, at its place and its time, at full volume; half as loud at half the volume; and
// nothing is mixed before and afterwards.
func TestPump(t *testing.T) {
	t.Parallel()
	tone := sine()
	want := tone.PCM()
	for _, volume := range []float64{1, 0.5} {
		m := newMixer(t)
		m.SetMaster(volume)
		p := NewPump(m, nil, monoclock.Now)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		pieces, end, err := p.Listen()
		if err != nil {
			t.Fatal(err)
		}
		release := p.Hold()
		at := p.Place(monoclock.Now() + Foresight + time.Second/2)
		playing, err := m.Play(tone, sound.Options{At: at})
		if err != nil || playing.At() != at {
			t.Fatalf("place %d, want %d: %v", playing.At(), at, err)
		}
		release()
		next, heard := int64(-1), 0
		for heard < len(want) {
			piece := <-pieces
			if piece.Missed != 0 || next >= 0 && piece.Place != next {
				t.Fatalf("volume %v: piece at %d with %d missed, want %d", volume, piece.Place, piece.Missed, next)
			}
			if d := p.At(piece.Place) - piece.At; d < -hurry || d > hurry+time.Second {
				t.Errorf("piece at %v, place at %v", piece.At, p.At(piece.Place))
			}
			next = piece.Place + int64(len(piece.Samples))
			for i, v := range piece.Samples {
				n := piece.Place + int64(i) - at
				exact := 0.0
				if n >= 0 && n < int64(len(want)) {
					exact, heard = volume*float64(want[n]), heard+1
				}
				if off := math.Abs(float64(v) - exact); volume == 1 && off != 0 || off > 1 {
					t.Fatalf("volume %v: sample %d is %d, want %v", volume, n, v, exact)
				}
			}
		}
		if err := p.Heard(t.Context()); err != nil || monoclock.Now() < p.At(at+int64(len(want))) {
			t.Errorf("heard too early: %v", err)
		}
		for { // until it rests
			before := m.Position()
			time.Sleep(2 * rest)
			if m.Position() == before {
				break
			}
		}
		end()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestPumpSlow: a listener that does not read misses samples, and hears how many; more than a few listeners are refused; a sink that fails ends the pump.
func TestPumpSlow(t *testing.T) {
	t.Parallel()
	m := newMixer(t)
	now := time.Duration(0)
	p := NewPump(m, nil, func() time.Duration { return now })
	pieces, end, err := p.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Hold()()
	pcm := make([]int16, 160)
	for range kept + 3 {
		m.Mix(pcm)
		if err := p.give(pcm); err != nil {
			t.Fatal(err)
		}
	}
	for range kept {
		<-pieces
	}
	m.Mix(pcm)
	if err := p.give(pcm); err != nil {
		t.Fatal(err)
	}
	if piece := <-pieces; piece.Missed != 3*160 || piece.Place != (kept+3)*160 {
		t.Errorf("%d missed before %d", piece.Missed, piece.Place)
	}
	end()
	for range MaxListeners {
		if _, _, err := p.Listen(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := p.Listen(); !errors.Is(err, ErrListeners) {
		t.Errorf("one too many: %v", err)
	}
	// After a pause of the machine what was missed is left out: the next sample is heard now.
	now = time.Minute
	if ahead, awake := p.ahead(); !awake || ahead != 0 || p.At(m.Position()) != now {
		t.Errorf("ahead %v, %v; next at %v", ahead, awake, p.At(m.Position()))
	}
	if got := p.Place(now - time.Second); got != m.Position()-rate {
		t.Errorf("a second ago: %d, want %d", got, m.Position()-rate)
	}
	failing := NewPump(m, broken{}, monoclock.Now)
	defer failing.Hold()()
	if err := failing.Run(t.Context()); err == nil {
		t.Error("the sink's error is lost")
	}
}
