package rt

import (
	"cmp"
	"context"
	"errors"
	"math"
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

func (w *world) Now() time.Duration { return w.now }

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
	}
	s.Epoch = w.epoch
	s.Seq, s.At, s.Fresh = w.seq, w.now, true
	s.Set(0, 3.9, w.now)
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

func (w *world) Halt() error { w.halts++; return nil }

func (w *world) Shutdown() error { w.shutdowns++; return nil }

func (w *world) Close() error { return nil }

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
