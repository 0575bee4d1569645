package rt

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"kennel/edge/body"
)

func TestOwnDeadlinesWithoutARhythm(t *testing.T) {
	w := &world{}
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	began := w.now
	steps(t, l, 200)
	if got := w.now - began; got != time.Second {
		t.Errorf("200 steps took %v, want 1s", got)
	}
	w.now += 23 * time.Millisecond // someone held the processor: the deadline 5 ms on is met 18 ms late
	steps(t, l, 1)
	s := &l.stats
	if s.Missed != 3 || s.Late != 1 || s.Lateness.Max != 18*time.Millisecond {
		t.Errorf("missed %d, late %d, max %v; want 3, 1, 18ms", s.Missed, s.Late, s.Lateness.Max)
	}
	before := w.now
	steps(t, l, 1)
	if w.now != before+2*time.Millisecond {
		t.Errorf("the next step came %v later, want 2ms: back on the old grid, none made up", w.now-before)
	}
	if l.frame.Step != 200+1+3+1 {
		t.Errorf("step count %d, want 205", l.frame.Step)
	}
}

// TestLateLoopGoesOnWithTheNewestFrame: after a stall the frames that wait are read, not stepped.
func TestLateLoopGoesOnWithTheNewestFrame(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	steps(t, l, 500)
	w.now += 6*framePeriod + 400*time.Microsecond
	writes := w.writes
	steps(t, l, 1)
	if w.writes != writes+1 || w.seq != 506 {
		t.Errorf("%d writes, frame %d; want 1 write for frame 506", w.writes-writes, w.seq)
	}
	s := &l.stats
	if want := 5*framePeriod + 400*time.Microsecond; s.Late != 1 || s.Missed != 5 || s.Shifts != 0 || s.Lateness.Max != want {
		t.Errorf("late %d, missed %d, shifts %d, max %v; want 1, 5, 0, %v", s.Late, s.Missed, s.Shifts, s.Lateness.Max, want)
	}
	steps(t, l, 100)
	if s.Late != 1 || s.Missed != 5 {
		t.Errorf("afterwards late %d, missed %d; want no more", s.Late, s.Missed)
	}
}

// TestBodyThatPausesIsNotALateLoop: once noticed, the body's new rhythm is the one to keep.
func TestBodyThatPausesIsNotALateLoop(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	steps(t, l, 500)
	w.silent = w.now + 300*time.Millisecond
	steps(t, l, 20)
	if w.act.Values[0] != 0 && l.stats.Stale == 0 {
		t.Error("motors run while the body is silent")
	}
	if w.halts != 1 {
		t.Errorf("%d halts, want 1 when silence began", w.halts)
	}
	steps(t, l, 200)
	s := &l.stats
	if s.Shifts != 1 || s.Late != 1 || s.Missed != 0 || s.Timeouts == 0 {
		t.Errorf("shifts %d, late %d, missed %d, timeouts %d; want 1, 1, 0, some", s.Shifts, s.Late, s.Missed, s.Timeouts)
	}
	if w.act.Values[0] != 0.5 {
		t.Errorf("motor %v after the pause, want 0.5", w.act.Values[0])
	}
}

func TestRhythmFollowsTheBodysClock(t *testing.T) {
	for _, off := range []float64{-0.015, -0.001, 0, 0.001, 0.015} {
		n := 0
		w := &world{period: time.Duration(float64(framePeriod) * (1 + off)), told: framePeriod}
		w.jitter = func() time.Duration { n++; return time.Duration(n*7919%1000) * time.Microsecond } // uniform to 1 ms
		l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
		steps(t, l, 200*rhythmBlock)
		settled := l.stats.Lateness
		steps(t, l, 100*rhythmBlock)
		h := l.stats.Lateness.Sub(&settled)
		if got := h.Quantile(0.5); got < 300*time.Microsecond || got > 700*time.Microsecond {
			t.Errorf("clock off by %v: p50 %v of jitter uniform from 0 to 1 ms, want about 500µs", off, got)
		}
		if got := h.Quantile(1); got > 1300*time.Microsecond {
			t.Errorf("clock off by %v: max %v, want about 1ms", off, got)
		}
		if got := math.Abs(l.rhythm.period/float64(w.period) - 1); got > 0.001 {
			t.Errorf("clock off by %v: the estimated period is off by %v", off, got)
		}
		if l.stats.Missed != 0 {
			t.Errorf("clock off by %v: missed %d", off, l.stats.Missed)
		}
	}
}

// TestRhythmOutlivesABusyMachine: whatever the machine did at first, once it is quiet the estimate is right again.
func TestRhythmOutlivesABusyMachine(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		busy := true
		w := &world{period: framePeriod}
		w.jitter = func() time.Duration {
			switch {
			case !busy:
				return time.Duration(r.IntN(50)) * time.Microsecond
			case r.IntN(10) == 0:
				return time.Duration(r.IntN(20000)) * time.Microsecond
			}
			return time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		}
		l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
		steps(t, l, 200+r.IntN(2000))
		busy = false
		steps(t, l, 1500)
		shifts, settled := l.stats.Shifts, l.stats.Lateness
		steps(t, l, 500)
		if h := l.stats.Lateness.Sub(&settled); l.stats.Shifts != shifts || h.Quantile(1) > 300*time.Microsecond {
			t.Errorf("seed %d: quiet again, %d shifts, period %v, lateness p50 %v, max %v", seed, l.stats.Shifts-shifts,
				time.Duration(l.rhythm.period), h.Quantile(0.5), h.Max)
		}
	}
}

func TestBodyThatCountsAnew(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{})
	w.seq = 1 << 20
	steps(t, l, 300)
	w.seq, w.epoch = 0, 1
	steps(t, l, 300)
	if l.stats.Missed != 0 {
		t.Errorf("missed %d, want 0", l.stats.Missed)
	}
	w.seq += 2 // two frames were lost on the way
	w.next += 2 * framePeriod
	steps(t, l, 300)
	if l.stats.Missed != 2 || l.stats.Late != 1 {
		t.Errorf("missed %d, late %d; want 2, 1: the step came two periods late", l.stats.Missed, l.stats.Late)
	}
}

// A body says how slow it is: at 100 ms a frame its motors keep their power between two frames (AMIGO-SIP-01), and lose it where it is stale.
func TestTimingOfTheBody(t *testing.T) {
	slow := body.Timing{Rhythm: 100 * time.Millisecond, Stale: 250 * time.Millisecond, Silent: 2 * time.Second}
	w := &world{period: slow.Rhythm}
	l, err := New(Config{}, w, Task{Name: "drive", Every: 1, Run: drive})
	if err != nil {
		t.Fatal(err)
	}
	w.now, w.next = time.Hour, time.Hour+w.period
	l.begin(timed{w, slow}, w.now)
	steps(t, l, 129)
	if l.stats.Stale != 0 || w.writes != 129 || w.act.Values[0] != 0.5 {
		t.Errorf("129 frames of 100 ms: %d writes, %d stale, duty %v; want 129, 0, 0.5", w.writes, l.stats.Stale, w.act.Values[0])
	}
	w.silent = w.now + 400*time.Millisecond
	steps(t, l, 1)
	if l.stats.Stale != 1 || w.act.Values[0] != 0 && w.halts == 0 {
		t.Errorf("after 400 ms of silence: %d stale, duty %v, %d halts; want the power gone", l.stats.Stale, w.act.Values[0], w.halts)
	}
	w.silent = w.now + time.Hour
	for ended := false; !ended; {
		if err := l.Step(l.read()); errors.Is(err, ErrSilent) {
			ended = true
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if got := w.now - l.lastFresh; got < slow.Silent || got > slow.Silent+4*slow.Rhythm {
		t.Errorf("given up after %v, want about %v", got, slow.Silent)
	}
}

// timed is a world whose body states its timing.
type timed struct {
	*world
	timing body.Timing
}

func (b timed) Describe() body.Description {
	d := b.world.Describe()
	d.Timing = b.timing
	return d
}

// TestBodyThatSlipsBySomeOfAPeriod: neither one late wake-up nor a body that slipped leaves a lasting error in what is reported.
func TestBodyThatSlipsBySomeOfAPeriod(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	steps(t, l, 500)
	w.now += framePeriod + 4*time.Millisecond // our own lateness
	steps(t, l, 10)
	if l.stats.Shifts != 0 || l.stats.Lateness.Max != 4*time.Millisecond {
		t.Errorf("one late wake-up: %d shifts, max lateness %v; want 0, 4ms", l.stats.Shifts, l.stats.Lateness.Max)
	}
	w.next += 4 * time.Millisecond
	steps(t, l, rhythmOff)
	before := l.stats.Lateness
	steps(t, l, 100)
	if h := l.stats.Lateness.Sub(&before); l.stats.Shifts != 1 || h.Max > 10*time.Microsecond {
		t.Errorf("after a slip: %d shifts, max lateness %v; want 1, about 0", l.stats.Shifts, h.Max)
	}
}

// TestWhenAFrameWasTaken: the times of frames are as far apart as the body's clock says, however late they are read.
func TestWhenAFrameWasTaken(t *testing.T) {
	const off = 1.01 // the body's clock is slow
	rng := rand.New(rand.NewPCG(5, 1))
	w := &world{period: time.Duration(float64(framePeriod) * off), told: framePeriod}
	var before, worst time.Duration
	var seq uint32
	l := start(t, w, Config{}, Task{Name: "watch", Every: 1, Run: func(f *Frame) {
		if f.Taken > f.Now || f.Now-f.Taken > 3*framePeriod {
			t.Errorf("at %v: taken at %v", f.Now, f.Taken)
		}
		span := time.Duration(f.Sense.Seq-seq) * w.period
		if seq > 2000 {
			worst = max(worst, (f.Taken-before-span).Abs()*100/span)
		}
		before, seq = f.Taken, f.Sense.Seq
	}})
	for range 4000 {
		if rng.IntN(5) == 0 {
			w.now += 8*time.Millisecond + time.Duration(rng.Int64N(int64(20*time.Millisecond)))
		}
		steps(t, l, 1)
	}
	if worst > 4 {
		t.Errorf("a span between two frames was off by %d %%, want at most 4", worst)
	}
}
