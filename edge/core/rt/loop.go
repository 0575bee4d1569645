package rt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"kennel/edge/body"
)

// Why Run ended, beside an error of the body itself.
var (
	// ErrSilent: the body sent no frame for SilentAfter. Open it again.
	ErrSilent = errors.New("rt: the body does not answer")
	// ErrShutdown: the body was asked to cut its power. There is nothing left to run.
	ErrShutdown = errors.New("rt: the body was shut down")
)

// Clock is the loop's time: the clock of body.Sense.At. Neither method may allocate.
type Clock interface {
	Now() time.Duration
	SleepUntil(t time.Duration)
}

// Config holds the loop's limits; the zero value is usable. The source gives no numbers: these are our own defaults.
type Config struct {
	Period      time.Duration // for a body without a rhythm and a step of its own, default 5 ms (VEC-MOT-05)
	LateAfter   time.Duration // a step that begins later than this is late, default 10 ms (VEC-WDOG-03)
	LongAfter   time.Duration // a step that takes longer is long, default 5 ms (VEC-WDOG-03)
	StaleAfter  time.Duration // of a body that does not say when a measurement is stale, default 50 ms (VEC-BODY-33)
	SilentAfter time.Duration // of a body that does not say when it is silent, default 1 s
	StatsEvery  int           // steps between two published Stats, default those of a second
	Tape        *Tape         // records every step; nil: nothing is recorded
}

func (c *Config) defaults() {
	for _, d := range []struct {
		p    *time.Duration
		want time.Duration
	}{
		{&c.Period, 5 * time.Millisecond}, {&c.LateAfter, 10 * time.Millisecond}, {&c.LongAfter, 5 * time.Millisecond},
		{&c.StaleAfter, 50 * time.Millisecond}, {&c.SilentAfter, time.Second},
	} {
		if *d.p <= 0 {
			*d.p = d.want
		}
	}
}

// Snapshot is the newest step as others see it.
type Snapshot struct {
	Frame  Frame // its pointers are nil
	Sense  body.Sense
	Act    body.Act // as written
	Halted bool
}

// Stats counts since the loop was made, over all bodies it ran.
type Stats struct {
	Steps     uint64 // finished steps
	Missed    uint64 // periods without a step: skipped to catch up, or their frame was lost
	Late      uint64
	Long      uint64
	Timeouts  uint64 // waits in which the body sent nothing
	Stale     uint64 // steps with motors forced to 0 for want of a fresh measurement
	Shifts    uint64 // times the body's own rhythm jumped
	WriteErrs uint64
	Refused   uint64 // commands the full mailbox refused

	Period   time.Duration // the body's measured rhythm, or our own
	Lateness Histogram
	StepTime Histogram

	Linked bool      // the body counts:
	Link   body.Link // what it met on its port since it was opened

	NTasks int
	Tasks  [MaxTasks]TaskStats
}

// Loop is the real-time core. Run and Step belong to one goroutine; all other methods are safe for concurrent use.
type Loop struct {
	cfg        Config
	clock      Clock
	tasks      [MaxTasks]task
	stats      Stats
	statsEvery uint64 // steps

	box      Mailbox[Command]
	halt     atomic.Bool
	shutdown atomic.Bool
	stop     atomic.Bool
	finished atomic.Uint64
	snap     *Latest[Snapshot]
	out      *Latest[Stats]

	// The run with one body.
	body      body.Body
	paced     bool
	period    time.Duration
	stale     time.Duration // motors lose their power if the newest measurement is older
	silent    time.Duration // without a frame for this long Run returns ErrSilent
	rhythm    rhythm
	linked    body.Linked // body, if it counts
	seq       uint32      // of the newest frame
	epoch     uint32
	due       time.Duration
	lastStep  time.Duration
	lastFresh time.Duration
	stopped   bool // the body was told to, for want of a measurement
	halted    bool
	first     bool
	sense     body.Sense
	act       body.Act
	frame     Frame
}

// New makes a loop that runs tasks in the given order.
func New(cfg Config, clock Clock, tasks ...Task) (*Loop, error) {
	cfg.defaults()
	if len(tasks) > MaxTasks {
		return nil, fmt.Errorf("rt: %d tasks, want at most %d", len(tasks), MaxTasks)
	}
	l := &Loop{cfg: cfg, clock: clock, snap: NewLatest[Snapshot](), out: NewLatest[Stats]()}
	for i, t := range tasks {
		var err error
		if l.tasks[i], err = newTask(t, cfg.Period); err != nil {
			return nil, err
		}
	}
	l.stats.NTasks = len(tasks)
	return l, nil
}

// Post leaves c for the next step. False: the mailbox is full and c is refused.
func (l *Loop) Post(c Command) bool { return l.box.Post(c) }

// Halt stops all motion in the next step, and until a Resume that is posted later. It is never refused.
func (l *Loop) Halt() { l.halt.Store(true) }

// Shutdown makes the next step halt the body and ask it to cut its power; Run then returns ErrShutdown. It is never refused.
func (l *Loop) Shutdown() { l.shutdown.Store(true) }

// Finished returns the number of steps that ran to their end; a watchdog watches it grow (VEC-WDOG-02).
func (l *Loop) Finished() uint64 { return l.finished.Load() }

// Snapshot copies the newest step to s; false if there was none yet.
func (l *Loop) Snapshot(s *Snapshot) bool { return l.snap.Get(s) }

// Stats copies the newest statistics to s; false if there are none yet.
func (l *Loop) Stats(s *Stats) bool { return l.out.Get(s) }

// Run steps b until ctx ends (nil), the body is silent (ErrSilent), was shut down (ErrShutdown) or its port fails (that error). It halts b on
// every way out, and does not close it. Run locks its goroutine to its thread. It may run again, with the same or another body.
func (l *Loop) Run(ctx context.Context, b body.Body) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l.stop.Store(false)
	defer context.AfterFunc(ctx, func() { l.stop.Store(true) })()
	defer func() {
		// Also while a task's panic passes through: the process will end, the motors must not run until the body notices.
		if herr := b.Halt(); err == nil && herr != nil {
			err = fmt.Errorf("halt: %w", herr)
		}
		l.publishStats()
	}()
	l.begin(b, l.clock.Now())
	for !l.stop.Load() {
		now, err := l.read()
		if err = l.Step(now, err); err != nil {
			return err
		}
	}
	return nil
}

// begin takes b as the body to step.
func (l *Loop) begin(b body.Body, now time.Duration) {
	d := b.Describe()
	l.cfg.Tape.begin(&d, now)
	l.body = b
	l.linked, _ = b.(body.Linked)
	l.paced = d.Rhythm > 0
	l.period = cmp.Or(d.Rhythm, d.Step, l.cfg.Period)
	l.stale, l.silent = cmp.Or(d.Stale, l.cfg.StaleAfter), cmp.Or(d.Silent, l.cfg.SilentAfter)
	l.rhythm = newRhythm(l.period)
	l.statsEvery = uint64(max(cmp.Or(l.cfg.StatsEvery, int(time.Second/l.period)), 1))
	l.due = now + l.period
	l.lastStep, l.lastFresh = now, now
	l.stopped = false
	l.first = true
	l.frame.Run++
	l.sense, l.act = body.Sense{}, body.Act{}
}

// read waits for what starts the next step: a frame of the body, or the next deadline. It returns when the step begins.
func (l *Loop) read() (time.Duration, error) {
	if !l.paced {
		l.clock.SleepUntil(l.due)
		now := l.clock.Now()
		return now, l.body.Read(&l.sense, now)
	}
	err := l.body.Read(&l.sense, l.clock.Now()+4*l.period)
	return l.clock.Now(), err
}

// Step is one update and write: it takes in the values read at now, runs the tasks that are due, and writes. readErr is the error of Read.
// An error ends the run.
func (l *Loop) Step(now time.Duration, readErr error) error {
	l.cfg.Tape.open(now, &l.sense, readErr)
	err := l.step(now, readErr)
	l.cfg.Tape.close(err)
	return err
}

func (l *Loop) step(now time.Duration, readErr error) error {
	switch {
	case readErr == nil:
	case errors.Is(readErr, body.ErrTimeout):
		l.sense.Fresh = false
	default:
		return fmt.Errorf("read the body: %w", readErr)
	}
	if l.paced {
		l.followBody(now)
	} else {
		l.followDeadline(now)
	}
	if l.sense.Fresh {
		l.lastFresh = now
	} else if now-l.lastFresh >= l.silent {
		return ErrSilent
	}
	if err := l.commands(); err != nil {
		return err
	}
	l.update(now)
	wrote := l.write()
	l.account(now, l.clock.Now())
	return wrote
}

// followBody measures the frame just read against the body's rhythm. Read returns the newest frame, so a late loop continues with
// that and never runs two steps in a row to catch up.
func (l *Loop) followBody(now time.Duration) {
	if !l.sense.Fresh {
		l.stats.Timeouts++
		return
	}
	ahead := l.sense.Seq - l.seq
	restarted := l.sense.Epoch != l.epoch
	l.seq, l.epoch = l.sense.Seq, l.sense.Epoch
	counted := ahead > 0 // not every driver counts
	if l.first || restarted || !counted {
		ahead = 1
	}
	if restarted {
		l.rhythm.shift(now)
	} else {
		shifts := l.rhythm.shifts
		late, known := l.rhythm.observe(now, ahead)
		if known { // this step was due one period after the last, whatever became of the frames between
			l.late(late + time.Duration(ahead-1)*l.period)
		}
		l.stats.Shifts += l.rhythm.shifts - shifts
	}
	if l.frame.Taken = l.sense.At; counted {
		l.frame.Taken = l.rhythm.takenAt(now, ahead)
	}
	l.advance(uint64(ahead))
}

func (l *Loop) followDeadline(now time.Duration) {
	if l.sense.Fresh {
		l.frame.Taken = l.sense.At
	}
	late := max(now-l.due, 0)
	l.late(late)
	skipped := late / l.period
	l.due += (skipped + 1) * l.period
	l.advance(uint64(skipped) + 1)
}

// advance moves the step count on by n periods, of which this step is the last.
func (l *Loop) advance(n uint64) {
	l.frame.Step += n
	l.stats.Missed += n - 1
}

func (l *Loop) late(d time.Duration) {
	l.stats.Lateness.Add(d)
	if d > l.cfg.LateAfter {
		l.stats.Late++
	}
}

// commands takes in what others asked for. A halt wins over every Resume that was posted before it was seen.
func (l *Loop) commands() error {
	for range mailboxSize {
		c := l.box.Peek()
		if c == nil {
			break
		}
		l.cfg.Tape.command(c)
		if c.Kind == Resume {
			l.halted = false
		}
		l.box.Drop()
	}
	halt := l.halt.Swap(false)
	if halt {
		l.cfg.Tape.asked(tapeHalt)
	}
	if halt && !l.halted {
		l.halted = true
		err := l.body.Halt()
		l.cfg.Tape.did(wroteHalt, nil, err)
		if err != nil {
			return fmt.Errorf("halt the body: %w", err)
		}
	}
	if l.shutdown.Swap(false) {
		l.halted = true
		l.cfg.Tape.asked(tapeShutdown)
		halted, off := l.body.Halt(), l.body.Shutdown()
		l.cfg.Tape.did(wroteHalt, nil, halted)
		l.cfg.Tape.did(wroteOff, nil, off)
		if err := errors.Join(halted, off); err != nil {
			return fmt.Errorf("shut the body down: %w", err)
		}
		return ErrShutdown
	}
	return nil
}

// update runs the tasks that are due. now is when the step began.
func (l *Loop) update(now time.Duration) {
	f := &l.frame
	f.Now, f.DT = now, now-l.lastStep
	if l.first {
		f.DT = 0
	}
	if !l.paced || l.sense.Fresh {
		l.lastStep, l.first = now, false
	}
	// A gap leaves the motors as they were set before it: also the step that ends one starts from standstill.
	f.Stale = now-l.lastFresh > l.stale || f.DT > l.stale
	f.Halted = l.halted
	f.Sense, f.Act = &l.sense, &l.act
	l.act = body.Act{}
	began := l.clock.Now()
	for i := range l.tasks[:l.stats.NTasks] {
		t := &l.tasks[i]
		if !t.isDue(f.Step) {
			continue
		}
		t.run(f)
		ended := l.clock.Now()
		t.took(ended - began)
		began = ended
	}
	if l.halted || f.Stale {
		l.act.Still()
	}
}

// write sends one frame for each one received (VEC-WDOG-01 wants no fewer). A silent body gets none, so that
// its watchdog, if it still listens, notices that its frames are not read. When silence begins the body is told once to stop.
func (l *Loop) write() error {
	if l.frame.Stale {
		l.stats.Stale++
	}
	switch {
	case l.sense.Fresh:
		l.stopped = false
	case l.frame.Stale && !l.stopped:
		l.stopped = true
		err := l.body.Halt()
		l.cfg.Tape.did(wroteHalt, nil, err)
		return l.wrote(err)
	case l.paced:
		return nil
	}
	err := l.body.Write(&l.act)
	l.cfg.Tape.did(wroteAct, &l.act, err)
	return l.wrote(err)
}

// wrote counts an error; only a failed port ends the run.
func (l *Loop) wrote(err error) error {
	if err == nil {
		return nil
	}
	l.stats.WriteErrs++
	if errors.Is(err, body.ErrLink) {
		return fmt.Errorf("write to the body: %w", err)
	}
	return nil
}

// account closes the step that began at start: it is measured, counted and published.
func (l *Loop) account(start, end time.Duration) {
	l.stats.StepTime.Add(end - start)
	if end-start > l.cfg.LongAfter {
		l.stats.Long++
	}
	l.stats.Steps++
	s := l.snap.Next()
	s.Frame, s.Sense, s.Act, s.Halted = l.frame, l.sense, l.act, l.halted
	s.Frame.Sense, s.Frame.Act = nil, nil
	l.snap.Publish()
	if l.stats.Steps%l.statsEvery == 0 {
		l.publishStats()
	}
	l.finished.Store(l.stats.Steps)
}

func (l *Loop) publishStats() {
	l.stats.Period = l.period
	if l.paced {
		l.stats.Period = time.Duration(l.rhythm.period)
	}
	if l.linked != nil {
		l.stats.Linked, l.stats.Link = true, l.linked.Link()
	}
	l.stats.Refused = l.box.Refused()
	for i := range l.tasks[:l.stats.NTasks] {
		l.stats.Tasks[i] = l.tasks[i].stats
	}
	*l.out.Next() = l.stats
	l.out.Publish()
}
