package rt

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kennel/edge/body"
)

const framePeriod = 5120 * time.Microsecond // VEC-BODY-10

// world is a clock and a body on it: frames appear each period, and time passes only where someone waits or works.
type world struct {
	now     time.Duration
	period  time.Duration // of the frames; 0: a body without rhythm, always a value there
	told    time.Duration // the period it describes, if another
	seq     uint32        // of the newest frame read
	epoch   uint32
	next    time.Duration // when the next frame is whole
	silent  time.Duration // no frames until then
	jitter  func() time.Duration
	readErr error
	wrErr   error

	reads, writes, halts, shutdowns int
	act                             body.Act
	onWrite                         func()
}

func (w *world) Now() time.Duration         { return w.now }
func (w *world) SleepUntil(t time.Duration) { w.now = max(w.now, t) }

func (w *world) Describe() body.Description {
	return body.Description{
		Species: "vic", Timing: body.Timing{Rhythm: cmp.Or(w.told, w.period)},
		Channels: []body.Channel{{Name: "battery.voltage", Unit: "V"}, {Name: "button.pressure"}},
		Drives:   []body.Drive{{Device: "wheelL", Takes: body.Duty}, {Device: "wheelR", Takes: body.Duty}, {Device: "led", Takes: body.Level}},
	}
}

func (w *world) Read(s *body.Sense, deadline time.Duration) error {
	w.reads++
	if w.readErr != nil {
		return w.readErr
	}
	if w.period == 0 {
		s.Fresh, s.At = true, w.now
		s.Set(0, 3.9, s.At)
		return nil
	}
	at := w.next
	if w.jitter != nil {
		at += w.jitter()
	}
	at = max(at, w.silent)
	if max(at, w.now) > max(deadline, w.now) {
		w.now = max(w.now, deadline)
		s.Fresh = false
		return body.ErrTimeout
	}
	w.now = max(w.now, at)
	if w.silent > w.next { // the board itself paused: its rhythm continues from here
		w.next = w.silent
	}
	for { // to the newest frame there is
		w.next += w.period
		w.seq++
		if w.next > w.now {
			break
		}
		at = w.next
	}
	s.Epoch = w.epoch
	s.Seq, s.At, s.Fresh = w.seq, at, true
	s.Set(0, 3.9, at)
	return nil
}

func (w *world) Write(a *body.Act) error {
	w.writes++
	w.act = *a
	if w.onWrite != nil {
		w.onWrite()
	}
	return w.wrErr
}
func (w *world) Halt() error     { w.halts++; return nil }
func (w *world) Shutdown() error { w.shutdowns++; return nil }
func (w *world) Close() error    { return nil }

func start(t testing.TB, w *world, cfg Config, tasks ...Task) *Loop {
	t.Helper()
	w.now, w.next = time.Hour, time.Hour+w.period
	l, err := New(cfg, w, tasks...)
	if err != nil {
		t.Fatal(err)
	}
	l.begin(w, w.now)
	return l
}

func steps(t testing.TB, l *Loop, n int) {
	t.Helper()
	for range n {
		if err := l.Step(l.read()); err != nil {
			t.Fatal(err)
		}
	}
}

func drive(f *Frame) { f.Act.Set(0, body.Duty, 0.5) }

func TestOneStepPerFrame(t *testing.T) {
	w := &world{period: framePeriod}
	runs := 0
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: func(f *Frame) { runs++; drive(f) }})
	steps(t, l, 1000)
	if w.writes != 1000 || runs != 1000 || w.act.Values[0] != 0.5 {
		t.Errorf("1000 frames: %d writes, %d runs, motor %v", w.writes, runs, w.act.Values[0])
	}
	if s := l.stats; s.Missed != 0 || s.Late != 0 || s.Timeouts != 0 || s.Shifts != 0 || s.Steps != 1000 {
		t.Errorf("a quiet run counted %+v", s)
	}
	if got, want := l.stats.Lateness.N, uint64(1000-rhythmWarm*rhythmBlock-1); got != want {
		t.Errorf("lateness counted %d times, want %d: all but the warm-up", got, want)
	}
}

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

// TestStepAfterAGapStartsFromStandstill covers VEC-BODY-33.
func TestStepAfterAGapStartsFromStandstill(t *testing.T) {
	for name, period := range map[string]time.Duration{"body's rhythm": framePeriod, "own deadlines": 0} {
		t.Run(name, func(t *testing.T) {
			w := &world{period: period}
			l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
			steps(t, l, 10)
			w.now += 60 * time.Millisecond
			steps(t, l, 1)
			if w.act.Values[0] != 0 || l.stats.Stale != 1 {
				t.Errorf("motor %v, stale %d; want 0, 1", w.act.Values[0], l.stats.Stale)
			}
			steps(t, l, 1)
			if w.act.Values[0] != 0.5 {
				t.Errorf("one step later: motor %v, want 0.5", w.act.Values[0])
			}
		})
	}
}

func TestSilentBodyGetsNoFramesAndEndsTheRun(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	steps(t, l, 300)
	writes, began := w.writes, w.now
	w.silent = math.MaxInt64
	err := l.Run(t.Context(), w)
	if !errors.Is(err, ErrSilent) {
		t.Fatalf("Run = %v, want ErrSilent", err)
	}
	if w.writes != writes {
		t.Errorf("%d frames written to a silent body, want none", w.writes-writes)
	}
	if took := w.now - began; took < time.Second || took > 1100*time.Millisecond {
		t.Errorf("noticed after %v, want 1 s", took)
	}
	if w.halts != 2 {
		t.Errorf("%d halts, want 2: when silence began, when the run ended", w.halts)
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

func TestHaltHoldsUntilResume(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	steps(t, l, 1)
	l.Post(Command{Kind: Resume})
	l.Halt() // of a Resume and a Halt that wait together, Halt wins
	for range 50 {
		steps(t, l, 1)
		if w.act.Values[0] != 0 {
			t.Fatal("motion after Halt")
		}
	}
	var s Snapshot
	if !l.Snapshot(&s) || !s.Halted || w.halts != 1 {
		t.Errorf("halted %v, %d halts; want true, 1", s.Halted, w.halts)
	}
	l.Post(Command{Kind: Resume})
	steps(t, l, 1)
	if w.act.Values[0] != 0.5 {
		t.Errorf("motor %v after Resume, want 0.5", w.act.Values[0])
	}
}

// A halt takes the power from what moves and leaves lights as the tasks want them; a step in which no task sets a goal has none.
func TestHaltLeavesLevels(t *testing.T) {
	w := &world{period: framePeriod}
	on := true
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: func(f *Frame) {
		if on {
			drive(f)
			f.Act.Set(1, body.Speed, 3)
			f.Act.Set(2, body.Level, 0.25)
		}
	}})
	l.Halt()
	steps(t, l, 1)
	var want body.Act
	want.Set(2, body.Level, 0.25)
	if w.act != want {
		t.Errorf("halted: written %+v, want %+v", w.act, want)
	}
	on = false
	steps(t, l, 1)
	if w.act != (body.Act{}) {
		t.Errorf("without goals: written %+v, want none", w.act)
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

func TestShutdownHaltsFirstAndEndsTheRun(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{})
	l.Shutdown()
	if err := l.Run(t.Context(), w); !errors.Is(err, ErrShutdown) {
		t.Fatalf("Run = %v, want ErrShutdown", err)
	}
	if w.shutdowns != 1 || w.halts == 0 {
		t.Errorf("%d shutdowns, %d halts", w.shutdowns, w.halts)
	}
}

func TestFullMailboxRefusesTheNewest(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{StatsEvery: 1})
	for i := range mailboxSize + 3 {
		if got, want := l.Post(Command{Kind: Resume}), i < mailboxSize; got != want {
			t.Fatalf("command %d: accepted %v, want %v", i, got, want)
		}
	}
	steps(t, l, 1)
	var s Stats
	if !l.Stats(&s) || s.Refused != 3 {
		t.Errorf("refused %d, want 3", s.Refused)
	}
	if !l.Post(Command{Kind: Resume}) {
		t.Error("the drained mailbox refuses")
	}
}

func TestTaskTable(t *testing.T) {
	w := &world{}
	var order []string
	task := func(name string, every int, cost time.Duration) Task {
		return Task{Name: name, Every: every, Budget: time.Millisecond, Run: func(*Frame) {
			order = append(order, name)
			w.now += cost
		}}
	}
	l := start(t, w, Config{StatsEvery: 1}, task("a", 1, 100*time.Microsecond), task("b", 4, 2*time.Millisecond))
	steps(t, l, 8)
	// Step 1 runs both, then b runs in each fourth.
	if want := []string{"a", "b", "a", "a", "a", "b", "a", "a", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	var s Stats
	if l.Stats(&s); s.Tasks[0].Skipped != 0 || s.Tasks[1].Skipped != 0 {
		t.Errorf("skipped on time: %+v", s.Tasks[:2])
	}
	w.now += 41 * time.Millisecond // ends late in the eighth period: seven are skipped
	steps(t, l, 1)
	l.Stats(&s)
	a, b := s.Tasks[0], s.Tasks[1]
	if a.Skipped != 7 || a.Late != 0 || a.Worst != 100*time.Microsecond || a.Recent != a.Worst {
		t.Errorf("a: %+v", a)
	}
	if b.Late != b.Runs || b.Runs == 0 || b.Skipped == 0 || b.Worst != 2*time.Millisecond {
		t.Errorf("b: %+v", b)
	}
	if s.StepTime.Max != 2100*time.Microsecond || s.Long != 0 {
		t.Errorf("step time %v, long %d", s.StepTime.Max, s.Long)
	}
}

func TestLongStepsAreCounted(t *testing.T) {
	w := &world{}
	l := start(t, w, Config{}, Task{Name: "slow", Every: 1, Run: func(*Frame) { w.now += 5001 * time.Microsecond }})
	steps(t, l, 3)
	if l.stats.Long != 3 || l.stats.Missed != 0 {
		t.Errorf("long %d, missed %d; want 3, 0: each ends just after the next deadline", l.stats.Long, l.stats.Missed)
	}
}

func TestNewRefusesABadTable(t *testing.T) {
	ok := Task{Name: "a", Every: 1, Run: drive}
	for name, tasks := range map[string][]Task{
		"no name":     {{Every: 1, Run: drive}},
		"no function": {{Name: "a", Every: 1}},
		"no period":   {{Name: "a", Run: drive}},
		"budget":      {{Name: "a", Every: 1, Run: drive, Budget: -1}},
		"too many":    slices.Repeat([]Task{ok}, MaxTasks+1),
	} {
		if _, err := New(Config{}, &world{}, tasks...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRunEndsHalted(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		w := &world{period: framePeriod}
		l := start(t, w, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		context.AfterFunc(ctx, func() { close(stopped) })
		w.onWrite = func() {
			if w.writes == 10 {
				cancel()
				<-stopped
			}
		}
		if err := l.Run(ctx, w); err != nil || w.halts != 1 {
			t.Errorf("Run = %v, %d halts; want nil, 1", err, w.halts)
		}
	})
	t.Run("port", func(t *testing.T) {
		w := &world{period: framePeriod}
		l := start(t, w, Config{})
		w.readErr = body.ErrLink
		if err := l.Run(t.Context(), w); !errors.Is(err, body.ErrLink) || w.halts != 1 {
			t.Errorf("Run = %v, %d halts; want ErrLink, 1", err, w.halts)
		}
	})
	t.Run("write", func(t *testing.T) {
		w := &world{period: framePeriod, wrErr: body.ErrLink}
		l := start(t, w, Config{})
		if err := l.Run(t.Context(), w); !errors.Is(err, body.ErrLink) || w.halts != 1 {
			t.Errorf("Run = %v, %d halts; want ErrLink, 1", err, w.halts)
		}
	})
	t.Run("panic of a task", func(t *testing.T) {
		w := &world{period: framePeriod}
		l := start(t, w, Config{}, Task{Name: "bad", Every: 1, Run: func(*Frame) { panic("bad") }})
		defer func() {
			if p := recover(); p != "bad" || w.halts != 1 {
				t.Errorf("recovered %v, %d halts; want the panic, 1", p, w.halts)
			}
		}()
		_ = l.Run(t.Context(), w)
	})
}

func TestPassingWriteErrorIsCounted(t *testing.T) {
	w := &world{period: framePeriod, wrErr: body.ErrTimeout}
	l := start(t, w, Config{})
	steps(t, l, 5)
	if l.stats.WriteErrs != 5 || l.stats.Steps != 5 {
		t.Errorf("write errors %d, steps %d; want 5, 5", l.stats.WriteErrs, l.stats.Steps)
	}
}

func TestSnapshotIsTheStep(t *testing.T) {
	w := &world{period: framePeriod}
	l := start(t, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	var s Snapshot
	if l.Snapshot(&s) {
		t.Error("a snapshot before the first step")
	}
	steps(t, l, 3)
	if !l.Snapshot(&s) || s.Frame.Step != 3 || s.Sense.Seq != 3 || s.Act.Values[0] != 0.5 || s.Sense.Values[0] != 3.9 {
		t.Errorf("snapshot %+v", s)
	}
	if s.Frame.Sense != nil || s.Frame.Act != nil {
		t.Error("the snapshot points into the loop")
	}
	if l.Finished() != 3 {
		t.Errorf("finished %d, want 3", l.Finished())
	}
}

// TestStepAllocatesNothing covers reading, a command, tasks, writing and publishing, on both kinds of pace, on time and late.
func TestStepAllocatesNothing(t *testing.T) {
	for name, period := range map[string]time.Duration{"body's rhythm": framePeriod, "own deadlines": 0} {
		t.Run(name, func(t *testing.T) {
			w := &world{period: period}
			l := start(t, w, Config{StatsEvery: 3}, Task{Name: "drive", Every: 1, Run: drive})
			n := 0
			got := testing.AllocsPerRun(2000, func() {
				if n++; n%50 == 0 {
					w.now += 17 * time.Millisecond
				}
				if n%400 == 0 {
					w.silent = w.now + 200*time.Millisecond
				}
				l.Post(Command{Kind: Resume})
				l.Halt()
				if err := l.Step(l.read()); err != nil {
					t.Error(err)
				}
			})
			if got != 0 {
				t.Errorf("a step allocates %v times, want 0", got)
			}
		})
	}
}

// BenchmarkStep guards the core's own share of the period, body and tasks aside.
func BenchmarkStep(b *testing.B) {
	w := &world{period: framePeriod}
	l := start(b, w, Config{}, Task{Name: "drive", Every: 1, Run: drive})
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Step(l.read()); err != nil {
			b.Fatal(err)
		}
	}
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
