// Package commands executes each of the cloud's commands once, and sends the result until the cloud has acknowledged it.
//
//	down/cmd, down/intent, req/command/pull -> queue -> record on disk -> executor -> result on disk -> req/command/result -> told
//
// The broker may deliver a command several times, and either side may die at any time. So an id is on disk before its executor runs: a
// command that was begun is never begun again. If the agent died while it ran, the next one cannot know how far it came; the command's
// result is then failed.
//
// Commands have lanes: stops, holds, releases of a hold, plays, which take as long as what they play, and others. No stop and no hold waits for another lane; a
// release waits for holds, and plays and others wait for a release that they may need. A stop and a hold are done first and recorded after: no disk refuses or delays them. One that was done and not
// recorded when the agent died is done again, which is safe.
package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"kennel/infra/api/commandwire"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/wake"
)

// Our own limits.
const (
	maxQueue  = 2 * commandwire.MaxOpen // stops, holds, releases, and others, each; if it is full the cloud sends the command again
	maxUntold = 2 * commandwire.MaxOpen // results that the cloud has not heard; beyond it nothing new is begun
	keepTold  = 256                     // a thing gets one command after the other: a copy does not come later than this many others
	maxRun    = 30 * time.Second        // one executor, but for plays
	askTime   = 30 * time.Second        // one request to the cloud
	minRetry  = 2 * time.Second
	maxRetry  = time.Minute
)

// Outcome is the result of an executor.
type Outcome struct {
	Detail string // for people
	// After, if not nil, is called when the result is safe on disk: for actions that may end this process.
	After func()
}

// Executor does one kind of command. Its arguments were checked (commandwire.Check). ctx ends when it has taken too long or the agent stops; an
// error becomes a failed result with its text.
type Executor func(ctx context.Context, args json.RawMessage) (Outcome, error)

// Config holds the executors and the way to the cloud.
type Config struct {
	Root      *os.Root
	Executors map[string]Executor // by kind; others are answered with unknown
	// Moves reports whether the arguments of an intent are a wish to move: a later stop takes it back. nil: none is.
	Moves func(args json.RawMessage) bool
	Ask   kitmqtt.Requester
	// Time returns the cloud's time, by which a command that may move the robot is judged late; false while it is not known. nil: it never is.
	Time func() (time.Time, bool)
	Log  *slog.Logger

	step func(point string) // called between any two steps that last; tests die there
}

// Agent is safe for concurrent use.
type Agent struct {
	cfg  Config
	work [lanes]wake.Signal // one slot each: a lane has something, or may continue
	talk wake.Signal        // one slot: there is something to send or to ask
	note wake.Signal        // one slot: there is something to record

	order sync.Mutex // held while a hold or a release runs; before mu
	disk  sync.Mutex // held while a record is written or removed; before mu

	mu      sync.Mutex
	queue   []queued
	busy    [lanes]int // commands that run
	tonote  []*record  // to be recorded
	records map[string]*record
	last    uint64 // number of the newest record
	begun   int64  // the latest GivenUS of a command that was begun
	stopped int64  // and of a stop
	online  bool
	pull    bool // ask what is open
}

// lane executes one command after the other.
type lane int

const (
	others lane = iota
	stops
	holds
	releases
	plays
	lanes
)

func laneOf(kind string) lane {
	switch kind {
	case commandwire.RobotStop:
		return stops
	case commandwire.RobotHold:
		return holds
	case commandwire.RobotRelease:
		return releases
	case commandwire.Play:
		return plays
	}
	return others
}

type queued struct {
	commandwire.Command
	deadline time.Time // by this process's monotonic clock
}

// New reads the records of commands begun before. One without a result has failed: its process ended.
func New(cfg Config) (*Agent, error) {
	if cfg.Root == nil || cfg.Ask == nil || cfg.Log == nil {
		return nil, errors.New("commands: want Root, Ask and Log")
	}
	if cfg.step == nil {
		cfg.step = func(string) {}
	}
	a := &Agent{cfg: cfg, talk: wake.New(), note: wake.New()}
	for l := range a.work {
		a.work[l] = wake.New()
	}
	var err error
	if a.records, err = load(cfg.Root, cfg.Log); err != nil {
		return nil, fmt.Errorf("commands: %w", err)
	}
	for _, r := range a.records {
		a.last = max(a.last, r.Num)
		a.began(r)
		if r.Result == nil {
			a.finish(r, commandwire.Failed, "the agent ended while it ran; whether it took effect is not known")
		}
	}
	return a, nil
}

// Connected says that the cloud can be reached now, or no longer.
func (a *Agent) Connected(yes bool) {
	a.mu.Lock()
	a.online = yes
	a.pull = a.pull || yes
	a.mu.Unlock()
	if yes {
		a.talk.Set()
	}
}

// Handle takes a message of down/cmd or down/intent. It does not block.
func (a *Agent) Handle(payload []byte) {
	c, err := commandwire.ParseCommand(payload)
	if err != nil {
		a.cfg.Log.Warn("command unreadable", logging.Err, err)
		return
	}
	a.enqueue(c)
}

func (a *Agent) enqueue(c commandwire.Command) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, waiting := laneOf(c.Kind), 0
	for _, q := range a.queue {
		if q.ID == c.ID {
			return
		}
		if q.Kind == c.Kind || l == others && laneOf(q.Kind) == others {
			waiting++
		}
	}
	if waiting >= maxQueue {
		return
	}
	a.queue = append(a.queue, queued{c, time.Now().Add(min(c.ExpiresIn(), commandwire.MaxTTLOf(c.Kind)))})
	a.work[l].Set()
}

// Run executes commands and sends results until ctx ends, and returns nil.
func (a *Agent) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for l := range lanes {
		wg.Go(func() { a.execute(ctx, l) })
	}
	wg.Go(func() { a.converse(ctx) })
	wg.Go(func() { a.recordLater(ctx) })
	wg.Wait()
	return nil
}

// execute runs the commands of a lane.
func (a *Agent) execute(ctx context.Context, l lane) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.work[l]:
		}
		for ctx.Err() == nil {
			q, ok := a.next(l)
			if !ok {
				break
			}
			a.do(ctx, q)
			a.mu.Lock()
			a.busy[l]--
			a.mu.Unlock()
			for w, on := range waitsFor {
				if on == l {
					a.work[w].Set()
				}
			}
		}
	}
}

// waitsFor says which lane must be empty before the next command of another one.
var waitsFor = map[lane]lane{releases: holds, others: releases, plays: releases}

// next takes the next command of a lane from the queue.
func (a *Agent) next(l lane) (q queued, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := func(l lane) int { return slices.IndexFunc(a.queue, func(q queued) bool { return laneOf(q.Kind) == l }) }
	if on, waits := waitsFor[l]; waits && (a.busy[on] > 0 || of(on) >= 0) {
		return q, false
	}
	i := of(l)
	if i < 0 {
		return q, false
	}
	q = a.queue[i]
	a.queue = slices.Delete(a.queue, i, i+1)
	a.busy[l]++
	return q, true
}

// do executes one command, unless that was done before.
func (a *Agent) do(ctx context.Context, q queued) {
	a.mu.Lock()
	if r, ok := a.records[q.ID]; ok {
		// A copy; or the cloud lost the result, for instance because it was restored from a backup.
		r.Told = false
		a.mu.Unlock()
		a.talk.Set()
		return
	}
	full := a.untold() >= maxUntold && !commandwire.Urgent(q.Kind)
	a.last++
	r := &record{V: 1, Num: a.last, ID: q.ID, Kind: q.Kind}
	a.mu.Unlock()
	if full {
		a.cfg.Log.WarnContext(ctx, "result queue full; command deferred to its next delivery", "command", q.ID)
		return
	}
	run, known := a.cfg.Executors[q.Kind]
	var status commandwire.Status
	var detail string
	switch err := commandwire.Check(q.Kind, q.Args); {
	case !time.Now().Before(q.deadline), a.late(q.Command):
		status, detail = commandwire.Expired, "it came too late"
	case a.overtaken(q.Command):
		status, detail = outcome(Outcome{}, errOvertaken)
	case !known:
		status, detail = commandwire.Unknown, fmt.Sprintf("this robot does not know %s", q.Kind)
	case err != nil:
		status, detail = commandwire.Failed, err.Error()
	}
	if status != "" {
		a.keep(r)
		if commandwire.Urgent(q.Kind) {
			a.finishLater(r, status, detail)
			return
		}
		a.finish(r, status, detail)
		return
	}
	r.Given = q.GivenUS
	if commandwire.Urgent(q.Kind) {
		a.keep(r)
		out, err := a.inOrder(ctx, q.Command, run)
		status, detail = outcome(out, err)
		a.finishLater(r, status, detail)
		return
	}
	if err := a.write(r); err != nil {
		a.cfg.Log.ErrorContext(ctx, "command record not written; command not started", "command", q.ID, logging.Err, err)
		return // it is delivered again
	}
	a.keep(r)
	a.cfg.step("begun")
	out, err := a.inOrder(ctx, q.Command, run)
	a.cfg.step("ran")
	status, detail = outcome(out, err)
	safe := a.finish(r, status, detail)
	a.cfg.step("finished")
	switch {
	case out.After == nil || err != nil:
	case safe:
		out.After()
		a.cfg.step("after")
	default:
		a.finish(r, commandwire.Failed, "its result could not be kept on disk, so it was left undone")
	}
}

var errOvertaken = errors.New("received after a later command")

// outcome returns the result of an executor.
func outcome(out Outcome, err error) (status commandwire.Status, detail string) {
	switch {
	case err == nil:
		return commandwire.Done, out.Detail
	case errors.Is(err, errOvertaken):
		return commandwire.Expired, err.Error()
	}
	return commandwire.Failed, err.Error()
}

// inOrder runs a command. A release that was overtaken by a hold while it was recorded does not run; robotd, which a release does not keep waiting, hears
// no release after a later hold.
func (a *Agent) inOrder(ctx context.Context, c commandwire.Command, run Executor) (Outcome, error) {
	if l := laneOf(c.Kind); l == holds || l == releases {
		a.order.Lock()
		defer a.order.Unlock()
		if l == releases && a.overtaken(c) {
			return Outcome{}, errOvertaken
		}
	}
	most := maxRun
	if c.Kind == commandwire.Play {
		most = commandwire.MaxPlay
	}
	return guarded(ctx, most, run, c.Args)
}

// finishLater is finish that does not wait for the disk.
func (a *Agent) finishLater(r *record, status commandwire.Status, detail string) {
	a.result(r, status, detail)
	a.mu.Lock()
	a.tonote = append(a.tonote, r)
	a.mu.Unlock()
	a.note.Set()
	a.talk.Set()
}

// recordLater records what was done first until ctx ends, and then the rest.
func (a *Agent) recordLater(ctx context.Context) {
	for done := false; !done; {
		select {
		case <-a.note:
		case <-ctx.Done():
			done = true
		}
		a.mu.Lock()
		all := a.tonote
		a.tonote = nil
		a.mu.Unlock()
		for _, r := range all {
			if err := a.write(r); err != nil {
				a.cfg.Log.Error("command result not saved", "command", r.ID, logging.Err, err) // it is sent all the same
			}
		}
	}
}

// guarded runs an executor; a panic of one is its failure.
func guarded(ctx context.Context, most time.Duration, run Executor, args json.RawMessage) (out Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return run(ctx, args)
}

func (a *Agent) keep(r *record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records[r.ID] = r
	a.last = max(a.last, r.Num)
	a.began(r)
}

// began notes the place of a command in the cloud's order. Stops have a place of their own: a stop overtakes what moves the robot and nothing else. Call
// it with mu held, or before a is shared.
func (a *Agent) began(r *record) {
	if commandwire.Urgent(r.Kind) {
		a.stopped = max(a.stopped, r.Given)
		return
	}
	a.begun = max(a.begun, r.Given)
}

// late reports whether c, which may move the robot, was given longer ago than it may wait, by the cloud's clock alone: a message may be on its way for long
// before its arrival, from which its expiry counts, and the robot's clock may be wrong.
func (a *Agent) late(c commandwire.Command) bool {
	most := commandwire.MaxTTLOf(c.Kind)
	if most == commandwire.MaxTTL || commandwire.Urgent(c.Kind) || c.GivenUS == 0 || a.cfg.Time == nil {
		return false
	}
	now, known := a.cfg.Time()
	return known && now.Sub(time.UnixMicro(c.GivenUS)) > most
}

// overtaken reports whether c was given before a command that has begun, and must therefore not run any more.
func (a *Agent) overtaken(c commandwire.Command) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case commandwire.Urgent(c.Kind):
		return false
	case c.Kind == commandwire.RobotRelease: // what else has begun meanwhile does not concern it
		return c.Overtaken(a.stopped)
	case commandwire.Moves(c.Kind), c.Kind == commandwire.Intent && a.cfg.Moves != nil && a.cfg.Moves(c.Args):
		return c.Overtaken(a.begun) || c.Overtaken(a.stopped)
	}
	return c.Overtaken(a.begun)
}

// finish stores r's result, reports whether it is on disk, and queues it for sending. A result that cannot be stored is sent all the same:
// the cloud's record counts.
func (a *Agent) finish(r *record, status commandwire.Status, detail string) (safe bool) {
	a.result(r, status, detail)
	err := a.write(r)
	if err != nil {
		a.cfg.Log.Error("command result not saved", "command", r.ID, logging.Err, err)
	}
	a.talk.Set()
	return err == nil
}

// result gives r its result.
func (a *Agent) result(r *record, status commandwire.Status, detail string) {
	a.mu.Lock()
	r.Result = &commandwire.Result{V: 1, ID: r.ID, Status: status, Detail: commandwire.Detail(detail), Finished: time.Now().UnixMilli()}
	a.mu.Unlock()
	a.cfg.Log.Info("command", "command", r.ID, "kind", r.Kind, "status", status)
}

// converse sends results, oldest first, and pulls open commands after every connect.
func (a *Agent) converse(ctx context.Context) {
	pause := backoff.Pause{Min: minRetry, Max: maxRetry}
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.talk:
		case <-retry.C:
		}
		retry.Stop()
		if err := a.exchange(ctx); err == nil {
			pause.Reset()
		} else if ctx.Err() == nil {
			wait := pause.Next(nil)
			a.cfg.Log.DebugContext(ctx, "command results not sent; retrying", logging.Err, err, "again_in", wait)
			retry.Reset(wait)
		}
	}
}

// exchange sends all results, then pulls. Results go first, so that their commands are not pulled again.
func (a *Agent) exchange(ctx context.Context) error {
	for {
		a.mu.Lock()
		online, r, pull := a.online, a.oldestUntold(), a.pull
		var result commandwire.Result
		if r != nil {
			result = *r.Result
		}
		a.mu.Unlock()
		switch {
		case !online: // Connected wakes us
			return nil
		case r != nil:
			if err := a.tell(ctx, r, result); err != nil {
				return err
			}
		case pull:
			a.mu.Lock()
			a.pull = false // a new connection in between asks again
			a.mu.Unlock()
			if err := a.ask(ctx); err != nil {
				a.mu.Lock()
				a.pull = true
				a.mu.Unlock()
				return err
			}
		default:
			return nil
		}
	}
}

// tell sends one result to the cloud. A result that the cloud does not know or refuses for good counts as sent.
func (a *Agent) tell(ctx context.Context, r *record, result commandwire.Result) error {
	body, err := result.Encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := a.cfg.Ask.Do(ctx, commandwire.Service, commandwire.ResultMethod, body)
	switch {
	case err == nil:
		k, err := commandwire.ParseAnswer(answer)
		if err == nil && k.ID != r.ID {
			err = errs.New(errs.Corrupt, "got an answer for %s", k.ID)
		}
		if err != nil {
			return fmt.Errorf("result of %s: %w", r.ID, err)
		}
	case errs.CodeOf(err) == "no_command" || errs.KindOf(err) == errs.Invalid:
		a.cfg.Log.WarnContext(ctx, "command result refused by the cloud", "command", r.ID, logging.Err, err)
	default:
		return fmt.Errorf("result of %s: %w", r.ID, err)
	}
	a.cfg.step("told")
	a.mu.Lock()
	r.Told = true
	a.mu.Unlock()
	if err := a.write(r); err != nil {
		a.cfg.Log.WarnContext(ctx, "delivery of a command result not recorded", "command", r.ID, logging.Err, err) // it is sent again after a restart
	}
	a.cfg.step("noted")
	a.prune()
	return nil
}

// write brings r to disk as it is now.
func (a *Agent) write(r *record) error {
	a.disk.Lock()
	defer a.disk.Unlock()
	a.mu.Lock()
	now := *r
	a.mu.Unlock()
	return now.write(a.cfg.Root)
}

// ask pulls the open commands. A cloud that does not know this request has no commands.
func (a *Agent) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	b, err := a.cfg.Ask.Do(ctx, commandwire.Service, commandwire.PullMethod, nil)
	if err != nil {
		if errs.CodeOf(err) == "unknown_method" {
			return nil
		}
		return fmt.Errorf("ask for commands: %w", err)
	}
	p, err := commandwire.ParsePull(b)
	if err != nil {
		return err
	}
	for _, c := range p.Commands {
		a.enqueue(c)
	}
	return nil
}

// untold counts the results that the cloud has not heard. Call it with mu held.
func (a *Agent) untold() (n int) {
	for _, r := range a.records {
		if !r.Told {
			n++
		}
	}
	return n
}

// oldestUntold returns the result to send next; nil if there is none. Call it with mu held.
func (a *Agent) oldestUntold() (oldest *record) {
	for _, r := range a.records {
		if r.Result != nil && !r.Told && (oldest == nil || r.Num < oldest.Num) {
			oldest = r
		}
	}
	return oldest
}

// prune forgets the oldest told records beyond keepTold.
func (a *Agent) prune() {
	a.disk.Lock()
	defer a.disk.Unlock()
	a.mu.Lock()
	var old []*record
	for _, r := range a.records {
		if r.Told {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(x, y *record) int { return cmp.Compare(x.Num, y.Num) })
	old = old[:max(0, len(old)-keepTold)]
	for _, r := range old {
		delete(a.records, r.ID)
	}
	a.mu.Unlock()
	for _, r := range old {
		if err := r.remove(a.cfg.Root); err != nil {
			a.cfg.Log.Warn("old command record not removed", "command", r.ID, logging.Err, err) // the next start sees it again
		}
	}
}
