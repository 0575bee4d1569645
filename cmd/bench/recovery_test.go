package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kennel/edge/agent/das"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/bench"
)

const (
	recoveryRobots = 100
	recoveryEvery  = 500 * time.Millisecond // between events of one robot
	recoverySteady = 30 * time.Second       // before the outage
	recoveryWarm   = 10 * time.Second       // before that: robots that just connected ask softly
	recoveryAfter  = 15 * time.Second       // after the backlog is gone
	shortOutage    = 20 * time.Second
	longOutage     = 10 * time.Minute
	recoveryLimit  = 10 * time.Minute // from the end of the outage until the backlog is gone
	recoveryEvent  = "bench.tick"
	settledShare   = 3 // the backlog is gone when at most this many times the earlier amount waits
)

// BenchmarkRecoveryBesideCalm holds the house's Postgres still while robots emit events through the agent's own event manager: spool on disk, batches,
// back-off, pauses that the cloud asks for. It counts what they send in each second, and at the end compares what they emitted with the
// rows.
func BenchmarkRecoveryBesideCalm(b *testing.B) { recoveryBesideCalm(b) }

func recoveryBesideCalm(tb testing.TB) {
	var peaks, memory []bench.Pair
	var storm bench.Line
	bench.Turns(tb, func() error {
		w, line, err := recoverOnce(tb.Context(), tb)
		if err == nil {
			storm, peaks, memory = line, append(peaks, w.peak()), append(memory, w.most())
		}
		return err
	})
	bench.Report(tb, storm, peaks)
	bench.Report(tb, bench.Line{Name: "recovery/memory", Unit: "MiB", Less: true, Note: "most resident memory of kenneld during all this, beside the median before"}, memory)
}

// recoverOnce is one outage: what was watched, and the line for its peak.
func recoverOnce(ctx context.Context, tb testing.TB) (_ *watch, storm bench.Line, err error) {
	outage := bench.Part(tb, shortOutage)
	if bench.Long() {
		outage = longOutage
	}
	h, err := startHouse(ctx, programs(tb))
	if err != nil {
		return nil, storm, err
	}
	defer h.Stop()
	pack, err := newPack(ctx, h)
	if err != nil {
		return nil, storm, err
	}
	defer pack.stop()
	kenneld, err := h.Pid("kenneld")
	if err != nil {
		return nil, storm, err
	}
	if err := bench.Pass(ctx, bench.Part(tb, recoveryWarm)); err != nil {
		return nil, storm, err
	}
	watch := newWatch(pack, kenneld)
	defer watch.stop()
	if err := bench.Pass(ctx, bench.Part(tb, recoverySteady)); err != nil {
		return nil, storm, err
	}
	tb.Logf("recovery: Postgres stands still for %v", outage)
	if err := hold(ctx, h, outage, watch); err != nil {
		return nil, storm, err
	}
	tb.Logf("recovery: Postgres is back, %d events wait on the robots", pack.waiting())
	backlog, err := pack.drain(ctx, watch)
	if err != nil {
		return nil, storm, err
	}
	if err := bench.Pass(ctx, bench.Part(tb, recoveryAfter)); err != nil {
		return nil, storm, err
	}
	watch.stop()
	pack.quieten()
	if err := pack.empty(ctx); err != nil {
		return nil, storm, err
	}
	emitted, err := pack.check(ctx, h)
	if err != nil {
		return nil, storm, err
	}
	storm, err = watch.line(outage, backlog, emitted)
	return watch, storm, err
}

// hold stops Postgres for d.
func hold(ctx context.Context, h *house, d time.Duration, w *watch) error {
	pid, err := h.Pid("postgres")
	if err != nil {
		return err
	}
	p, err := startPart(syscall.SIGTERM, "hold", strconv.Itoa(pid))
	if err != nil {
		return err
	}
	defer p.Stop()
	if _, err := p.Await(ctx, "holding "); err != nil {
		return err
	}
	w.mark(&w.outageAt)
	err = bench.Pass(ctx, d)
	p.Stop()
	w.mark(&w.backAt)
	return err
}

// pack is robots that emit events.
type pack struct {
	dir    string
	robots []*emitter

	emitting context.CancelFunc // ends the emitting
	running  context.CancelFunc // ends the managers
	wg, emit sync.WaitGroup

	published, stored, paced atomic.Int64 // batches
}

type emitter struct {
	peer
	root    *os.Root
	manager *das.Manager
	session *session
	emitted int // by the emitting goroutine; read after it ended
}

func newPack(ctx context.Context, h *house) (_ *pack, err error) {
	is, err := openIssuer(h.CA())
	if err != nil {
		return nil, err
	}
	peers, err := is.things(0, recoveryRobots)
	if err != nil {
		return nil, err
	}
	ectx, stopEmitting := context.WithCancel(context.Background())
	rctx, stopRunning := context.WithCancel(context.Background())
	p := &pack{emitting: stopEmitting, running: stopRunning}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if p.dir, err = os.MkdirTemp("", "kennel-bench-robots-"); err != nil {
		return nil, err
	}
	for _, r := range peers {
		e, err := p.add(ctx, h.URL("mqtt"), r)
		if err != nil {
			return nil, err
		}
		p.wg.Go(func() { _ = e.manager.Run(rctx, e.publish(p)) }) // what it could not keep is missed in the end
	}
	for i, e := range p.robots {
		p.emit.Go(func() { e.emit(ectx, time.Duration(i)*recoveryEvery/recoveryRobots) })
	}
	return p, nil
}

func (p *pack) add(ctx context.Context, url string, r peer) (*emitter, error) {
	dir := filepath.Join(p.dir, r.id.Slug())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	e := &emitter{peer: r, root: root}
	p.robots = append(p.robots, e)
	born := time.Now()
	// Each robot would sync a disk of its own; here they share one with the database that is measured.
	e.manager, err = das.New(das.Config{Root: root, Thing: r.id, BootID: "bench-boot", RobotVersion: "2.0.0.6074", SyncInterval: time.Minute,
		Uptime: func() time.Duration { return time.Since(born) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	e.session, err = connect(ctx, url, string(r.id), r, func(_ string, payload []byte) {
		a, err := ack.Parse(payload)
		if err != nil {
			return // sent again
		}
		switch a.Status {
		case ack.Stored:
			p.stored.Add(1)
		case ack.RetryAfter:
			p.paced.Add(1)
		}
		e.manager.HandleAck(a)
	}, topics.DownTopic(r.id, topics.Ack))
	return e, err
}

func (e *emitter) publish(p *pack) func(ctx context.Context, name string, payload []byte) error {
	return func(ctx context.Context, name string, payload []byte) error {
		p.published.Add(1)
		return e.session.Publish(ctx, topics.UpTopic(e.id, name), 1, false, payload)
	}
}

func (e *emitter) emit(ctx context.Context, first time.Duration) {
	if bench.Pass(ctx, first) != nil {
		return
	}
	t := time.NewTicker(recoveryEvery)
	defer t.Stop()
	for {
		if _, err := e.manager.Emit(events.Event{Source: "bench", Name: recoveryEvent, I1: events.Num(int64(e.emitted))}); err == nil {
			e.emitted++
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// waiting is how many events are not yet acknowledged, of all robots.
func (p *pack) waiting() (n uint64) {
	for _, e := range p.robots {
		n += e.manager.Stats().Events
	}
	return n
}

// drain waits until about as much waits as before the outage, and returns how long that took.
func (p *pack) drain(ctx context.Context, w *watch) (time.Duration, error) {
	usual := uint64(w.usual())
	start := time.Now()
	for p.waiting() > settledShare*max(usual, recoveryRobots) {
		if time.Since(start) > recoveryLimit {
			return 0, fmt.Errorf("%v after the outage %d events still wait: want about %d", recoveryLimit, p.waiting(), usual)
		}
		if err := bench.Pass(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// quieten ends the emitting.
func (p *pack) quieten() {
	p.emitting()
	p.emit.Wait()
}

// empty waits until all events are acknowledged.
func (p *pack) empty(ctx context.Context) error {
	start := time.Now()
	for p.waiting() > 0 {
		if time.Since(start) > recoveryLimit {
			return fmt.Errorf("%d events are still not acknowledged %v after the last was emitted", p.waiting(), recoveryLimit)
		}
		for _, e := range p.robots {
			e.manager.Flush()
		}
		if err := bench.Pass(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// check compares rows with what was emitted: each event exactly once, none dropped, none refused.
func (p *pack) check(ctx context.Context, h *house) (total int, err error) {
	for _, e := range p.robots {
		if s := e.manager.Stats(); s.Dropped+s.Quarantined > 0 {
			return 0, fmt.Errorf("%s dropped %d events, %d were refused", e.id, s.Dropped, s.Quarantined)
		}
	}
	db, err := h.DB(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	for _, e := range p.robots {
		var rows, distinct int
		if err := db.QueryRow(ctx, `SELECT count(*), count(DISTINCT i1) FROM das_event WHERE thing = $1 AND event = $2`, string(e.id), recoveryEvent).Scan(&rows, &distinct); err != nil {
			return 0, err
		}
		if rows != e.emitted || distinct != e.emitted {
			return 0, fmt.Errorf("%s emitted %d events: %d rows, %d different ones", e.id, e.emitted, rows, distinct)
		}
		total += e.emitted
	}
	return total, nil
}

func (p *pack) stop() {
	p.quieten()
	p.running()
	p.wg.Wait()
	for _, e := range p.robots {
		if e.session != nil {
			e.session.stop()
		}
		_ = e.root.Close() // nothing was written through it that is kept
	}
	_ = os.RemoveAll(p.dir) // the temporary folder is cleaned by others too
}

// watch takes the pulse once a second.
type watch struct {
	pack   *pack
	pid    int // of kenneld
	cancel context.CancelFunc
	ended  chan struct{}

	mu               sync.Mutex
	outageAt, backAt int // seconds
	published, stored, paced, waiting,
	memory []float64 // MiB
}

func newWatch(p *pack, pid int) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{pack: p, pid: pid, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.run(ctx)
	}()
	return w
}

func (w *watch) stop() {
	w.cancel()
	<-w.ended
}

func (w *watch) run(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	read := func() [3]int64 {
		return [3]int64{w.pack.published.Load(), w.pack.stored.Load(), w.pack.paced.Load()}
	}
	for last := read(); ; {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		now, waiting := read(), w.pack.waiting()
		memory := bench.UsageOfAll(w.pid).RSS
		w.mu.Lock()
		for i, to := range []*[]float64{&w.published, &w.stored, &w.paced} {
			*to = append(*to, float64(now[i]-last[i]))
		}
		w.waiting, w.memory = append(w.waiting, float64(waiting)), append(w.memory, float64(memory)/(1<<20))
		w.mu.Unlock()
		last = now
	}
}

// mark notes that it happens now.
func (w *watch) mark(at *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*at = len(w.published)
}

// usual is how many events waited before the outage.
func (w *watch) usual() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bench.Median(w.waiting[:w.outageAt])
}

func mean(s []float64) float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return sum / float64(max(1, len(s)))
}

// peak, most and line need the watch stopped.
func (w *watch) peak() bench.Pair {
	after := w.published[min(w.backAt, len(w.published)-1):]
	return bench.Pair{Value: slices.Max(after), Reference: mean(w.published[:w.outageAt])}
}

func (w *watch) most() bench.Pair {
	return bench.Pair{Value: slices.Max(w.memory), Reference: bench.Median(w.memory[:w.outageAt])}
}

func (w *watch) line(outage, backlog time.Duration, emitted int) (bench.Line, error) {
	all := []series{{"batches_sent", w.published}, {"batches_stored", w.stored}, {"batches_told_to_wait", w.paced}, {"events_waiting", w.waiting}, {"kenneld_mib", w.memory}}
	if out := bench.Out(); out != "" {
		f, err := os.Create(filepath.Join(out, "bench-recovery.csv"))
		if err != nil {
			return bench.Line{}, err
		}
		if err := errors.Join(writeCSV(f, all...), f.Close()); err != nil {
			return bench.Line{}, err
		}
	}
	peak := w.peak()
	return bench.Line{Name: "recovery/peak", Unit: "batches/s", Less: true,
		Note: fmt.Sprintf("Postgres stood still for %v; most batches that %d robots sent in one second afterwards, %.2f times the mean before (then at most %.0f); backlog gone after %v; %d events emitted, each stored once",
			outage, recoveryRobots, peak.Value/peak.Reference, slices.Max(w.published[:w.outageAt]), backlog.Round(time.Second), emitted),
		Plot: fmt.Sprintf("  outage from second %d to %d\n", w.outageAt, w.backAt) + plot(all...)}, nil
}
