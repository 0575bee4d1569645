package das

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/infra/api/ack"
	"kennel/infra/api/envelope"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Codes of refusals, beside those of events.BatchError, package consent and "gaps".
const (
	CodeRobotID    = "robot_id"   // the events are not of the thing that sent them
	CodeUnstorable = "unstorable" // the database cannot hold them
)

// Config holds what an Ingester needs; zero numbers choose the defaults.
type Config struct {
	Writer  Writer
	Blobs   Blobs
	Consent consent.Ask // nil: all owners allow
	Usage   Usage       // nil: a robot may send any number of bytes a day
	Log     *slog.Logger
	// Paused hears at most once an hour that a robot must wait because of what it sends itself, with one of the codes above; nil: not.
	Paused func(ctx context.Context, id thing.ID, code, detail string)
	// Profile returns what is stored in place of a profile id, which is the account's id in base64 (VEC-TOK-09); nil: the id itself.
	Profile func(id string) string

	Linger        time.Duration    // how long a batch waits for company; 15 ms
	GroupEvents   int              // events of one transaction, about; 20,000
	QueueBytes    int64            // wire bytes waiting for a transaction, beyond which robots are told to wait; 32 MiB
	Committers    int              // transactions at a time; 3
	CommitTimeout time.Duration    // 15 s
	PutTimeout    time.Duration    // for one raw object; 3 s
	MaxDay        int64            // bytes of inflated events of one robot in one day (UTC), about; 64 MiB
	Now           func() time.Time // time.Now
}

// share is the part of QueueBytes that the waiting batches of one robot may have; one batch may wait whatever its size.
const share = 16

// groupSize bounds the inflated bytes of one transaction, whatever robots send; the last batch may go beyond it.
const groupSize = 16 << 20

// skipBlobs is how long raw bodies go to the database after S3 failed.
const skipBlobs = 10 * time.Second

// Ingester takes batches in and commits them in groups. Handle is safe for concurrent use while Run runs.
type Ingester struct {
	Config
	jobs    chan *job
	waiting atomic.Int64  // wire bytes of jobs not yet answered
	turn    chan struct{} // holds one token: one committer collects, the others commit
	pace    pacer
	noBlobs atomic.Int64 // until when, ms since 1970
	robots  *robots
	news    chan paused // for Paused; what finds no room is left out
	stats   ingestStats
}

type job struct {
	thing   thing.ID
	begun   time.Time // when it began to arrive
	origin  string
	batch   string
	count   int
	payload []byte
	answer  func(ack.Ack)
	events  events.Batch
}

// IngestStats counts since start.
type IngestStats struct {
	Batches, Stored, Known, Refused, Paced, Groups, RawToDB int64
	Quota, Share                                            int64 // batches turned away by CodeQuota and CodeShare; Paced has those turned away for the cloud's sake
	Waiting                                                 int64 // wire bytes now
}

type ingestStats struct{ batches, stored, known, refused, paced, quota, share, groups, rawToDB atomic.Int64 }

// NewIngester returns an Ingester that is ready for Run.
func NewIngester(c Config) (*Ingester, error) {
	if c.Writer == nil || c.Blobs == nil || c.Log == nil {
		return nil, errors.New("das: Writer, Blobs and Log are needed")
	}
	c.Linger = cmp.Or(c.Linger, 15*time.Millisecond)
	c.GroupEvents = cmp.Or(c.GroupEvents, 20_000)
	c.QueueBytes = cmp.Or(c.QueueBytes, 32<<20)
	c.Committers = cmp.Or(c.Committers, 3)
	c.CommitTimeout = cmp.Or(c.CommitTimeout, 15*time.Second)
	c.PutTimeout = cmp.Or(c.PutTimeout, 3*time.Second)
	c.MaxDay = cmp.Or(c.MaxDay, 64<<20)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Ingester{Config: c, turn: make(chan struct{}, 1), robots: newRobots(c.QueueBytes / share), news: make(chan paused, 64),
		jobs: make(chan *job, max(64, c.QueueBytes/1024))}, nil // a batch has rarely less than 1 KiB; QueueBytes is the bound
}

// Stats returns the counters.
func (in *Ingester) Stats() IngestStats {
	s := &in.stats
	return IngestStats{
		Batches: s.batches.Load(), Stored: s.stored.Load(), Known: s.known.Load(), Refused: s.refused.Load(), Paced: s.paced.Load(),
		Quota: s.quota.Load(), Share: s.share.Load(), Groups: s.groups.Load(), RawToDB: s.rawToDB.Load(), Waiting: in.waiting.Load(),
	}
}

// Handle takes one message from up/das; it is the kitmqtt.UpHandler. It does not block: answer is called at once with a refusal or a
// pause, or later with what became of the batch. payload must not be changed afterwards.
func (in *Ingester) Handle(ctx context.Context, id thing.ID, payload []byte, answer func(ack.Ack)) {
	in.HandleFrom(ctx, id, Certified, time.Now(), payload, answer)
}

// HandleFrom is Handle for a batch of another origin, which began to arrive at begun.
func (in *Ingester) HandleFrom(ctx context.Context, id thing.ID, origin string, begun time.Time, payload []byte, answer func(ack.Ack)) {
	in.stats.batches.Add(1)
	h, err := events.DecodeHeader(payload)
	j := &job{thing: id, begun: begun, origin: origin, batch: h.Batch, count: h.Count, payload: payload, answer: answer}
	switch {
	case h.Batch == "":
		in.stats.refused.Add(1)
		in.Log.WarnContext(ctx, "message on up/das not a batch; ignored", "thing", id, "err", err)
		return
	case err != nil:
		in.refuse(j, err)
		return
	case h.RobotID != id.Serial():
		in.refuse(j, errs.Coded(errs.Invalid, CodeRobotID, "robot_id %.64q in a batch of %s: want %q", h.RobotID, id, id.Serial()))
		return
	}
	if pause := in.pace.turnAway(in.Now()); pause > 0 {
		in.later(j, pause)
		return
	}
	if in.robots.spent(id, in.Now()) {
		in.pause(ctx, j, CodeQuota, untilTomorrow(in.Now()), fmt.Sprintf("it has sent its %d bytes of events of today", in.MaxDay))
		return
	}
	size := int64(len(payload))
	if !in.robots.enter(id, size) {
		in.pause(ctx, j, CodeShare, backoff.Jitter(4*minPause), "its batches fill its share of the queue: it sends faster than they are stored")
		return
	}
	if in.waiting.Add(size) <= in.QueueBytes {
		select {
		case in.jobs <- j:
			return
		default:
		}
	}
	in.done(j)
	in.later(j, backoff.Jitter(4*minPause))
}

// done takes a job out of the count of those that wait.
func (in *Ingester) done(j *job) {
	size := int64(len(j.payload))
	in.waiting.Add(-size)
	in.robots.leave(j.thing, size)
}

// pause tells a robot to wait for a reason of its own.
func (in *Ingester) pause(ctx context.Context, j *job, code string, pause time.Duration, detail string) {
	count := &in.stats.quota
	if code == CodeShare {
		count = &in.stats.share
	}
	count.Add(1)
	j.answer(ack.Ack{Batch: j.batch, Status: ack.RetryAfter, Code: code, Reason: detail, After: envelope.Millis(pause)})
	if in.robots.tell(j.thing, in.Now()) {
		in.Log.WarnContext(ctx, "robot asked to send its events later", "thing", j.thing, "code", code, "reason", detail)
		select {
		case in.news <- paused{j.thing, code, detail}:
		default:
		}
	}
}

// paused is a robot that was told to wait, and why.
type paused struct {
	thing        thing.ID
	code, detail string
}

// tellPaused hands the news on until ctx ends.
func (in *Ingester) tellPaused(ctx context.Context) {
	for {
		select {
		case p := <-in.news:
			if in.Paused != nil {
				in.Paused(ctx, p.thing, p.code, p.detail)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Run commits until ctx ends; what is being committed then is finished and answered, what waits is left for the robots to resend.
func (in *Ingester) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range in.Committers {
		wg.Go(func() {
			for {
				jobs := in.collect(ctx)
				if jobs == nil {
					return
				}
				in.process(ctx, jobs)
			}
		})
	}
	wg.Go(func() { in.moveRaws(ctx) })
	wg.Go(func() { in.tellPaused(ctx) })
	wg.Wait()
	for {
		select {
		case j := <-in.jobs:
			in.done(j)
		default:
			return nil
		}
	}
}

// collect waits for a batch and then for its company; nil when ctx ends.
func (in *Ingester) collect(ctx context.Context) []*job {
	select {
	case in.turn <- struct{}{}:
		defer func() { <-in.turn }()
	case <-ctx.Done():
		return nil
	}
	var jobs []*job
	select {
	case j := <-in.jobs:
		jobs = append(jobs, j)
	case <-ctx.Done():
		return nil
	}
	linger := time.NewTimer(in.Linger)
	defer linger.Stop()
	for n := jobs[0].count; n < in.GroupEvents; {
		select {
		case j := <-in.jobs:
			jobs = append(jobs, j)
			n += j.count
		case <-linger.C:
			return jobs
		case <-ctx.Done():
			return jobs
		}
	}
	return jobs
}

// process answers every job.
func (in *Ingester) process(ctx context.Context, jobs []*job) {
	left := jobs
	defer func() {
		for _, j := range jobs {
			in.done(j)
		}
		if p := recover(); p != nil { // ours to mend; the process and the other robots live on
			in.Log.ErrorContext(ctx, "storing events panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			for _, j := range left {
				in.later(j, backoff.Jitter(maxPause))
			}
		}
	}()
	// A group that was begun is finished: stopping in the middle would only make the robots send it again.
	ctx = context.WithoutCancel(ctx)
	hold, err := in.hold(ctx, jobs)
	if err != nil {
		in.Log.WarnContext(ctx, "consent unknown; events waiting", "batches", len(jobs), "err", err)
		for _, j := range jobs {
			in.later(j, in.pace.failed(in.Now()))
		}
		return
	}
	defer hold.Release()
	for len(left) > 0 {
		var part []*job
		n := 0
		for size := 0; n < len(left) && size < groupSize; n++ {
			if j := left[n]; in.admit(j, hold) {
				part = append(part, j)
				size += j.events.Size
			}
		}
		if len(part) > 0 {
			in.store(ctx, part, hold.At)
		}
		for _, j := range left[:n] {
			j.events = events.Batch{} // the memory of this part is free for the next
		}
		left = left[n:]
	}
}

// hold asks for whom the batches may be stored, and keeps it so until they are.
func (in *Ingester) hold(ctx context.Context, jobs []*job) (consent.Hold, error) {
	if in.Consent == nil {
		return consent.Hold{At: in.Now(), Release: func() {}}, nil
	}
	ids := map[thing.ID]bool{}
	for _, j := range jobs {
		ids[j.thing] = true
	}
	ctx, cancel := context.WithTimeout(ctx, in.CommitTimeout)
	defer cancel()
	return in.Consent(ctx, slices.Collect(maps.Keys(ids))...)
}

// admit decodes a batch, or answers it.
func (in *Ingester) admit(j *job, hold consent.Hold) bool {
	var err error
	if in.Consent != nil {
		_, err = hold.Check(j.thing, j.begun)
	}
	switch {
	case errs.KindOf(err) == errs.Denied && err != nil:
		in.refuse(j, err)
		return false
	case err != nil:
		in.later(j, errs.RetryOf(err))
		return false
	}
	if j.events, err = events.DecodeBatch(j.payload); err != nil {
		in.refuse(j, err)
		return false
	}
	if in.Profile != nil {
		for i := range j.events.Events {
			in.hideProfile(&j.events.Events[i])
		}
	}
	return true
}

// hideProfile replaces the profile id in an event, also in the one that begins a session of it (VEC-DAS-18).
func (in *Ingester) hideProfile(e *events.Event) {
	if e.ProfileID != "" {
		e.ProfileID = in.Profile(e.ProfileID)
	}
	if strings.HasPrefix(e.Name, "profile_id.") && e.S1 != "" {
		e.S1 = in.Profile(e.S1)
	}
}

// store commits jobs as received now and answers them. Where some data can never be stored it finds out whose by halving.
func (in *Ingester) store(ctx context.Context, jobs []*job, now time.Time) {
	g := Group{Received: now, Items: make([]Item, len(jobs))}
	for i, j := range jobs {
		g.Items[i] = Item{j.thing, j.events.Events, j.origin}
	}
	ctx, cancel := context.WithTimeout(ctx, in.CommitTimeout)
	defer cancel()
	out, err := in.Writer.Commit(ctx, g, in.keepRaw(ctx, now, jobs))
	switch {
	case err == nil:
		in.pace.worked()
		in.stats.groups.Add(1)
		in.stats.stored.Add(int64(out.Stored))
		in.stats.known.Add(int64(out.Known))
		in.charge(ctx, jobs)
		for i, j := range jobs {
			if out.Refused[i] != nil {
				in.refuse(j, out.Refused[i])
				continue
			}
			j.answer(ack.Ack{Batch: j.batch, Status: ack.Stored})
		}
	case errs.KindOf(err) != errs.Invalid:
		in.Log.WarnContext(ctx, "events not stored; robots asked to wait", "batches", len(jobs), "err", err)
		for _, j := range jobs {
			in.later(j, in.pace.failed(in.Now()))
		}
	case len(jobs) == 1:
		in.pace.worked()
		in.Log.ErrorContext(ctx, "valid batch not storable; batch refused", "thing", jobs[0].thing, "err", err)
		in.refuse(jobs[0], errs.Coded(errs.Invalid, CodeUnstorable, "%s", errs.Public(err)))
	default:
		cancel()
		ctx = context.WithoutCancel(ctx)
		in.store(ctx, jobs[:len(jobs)/2], now)
		in.store(ctx, jobs[len(jobs)/2:], now)
	}
}

// charge counts what was stored against its robots' day.
func (in *Ingester) charge(ctx context.Context, jobs []*job) {
	if in.Usage == nil {
		return
	}
	sent := map[thing.ID]int64{}
	for _, j := range jobs {
		sent[j.thing] += int64(j.events.Size)
	}
	all, err := in.Usage.Add(ctx, sent)
	if err != nil { // they are stored; the next batch counts
		in.Log.WarnContext(ctx, "bytes of events not counted", "robots", len(sent), "err", err)
	}
	for id, n := range all {
		if n >= in.MaxDay {
			in.robots.spend(id, in.Now())
		}
	}
}

// keepRaw puts the batches into S3 before the commit, so that no stored event lacks its raw batch. An object whose commit then fails stays:
// raw objects are a record of what came, possibly twice.
func (in *Ingester) keepRaw(ctx context.Context, now time.Time, jobs []*job) Raw {
	var body []byte
	for _, j := range jobs {
		body = AppendRaw(body, RawBatch{j.thing, now, j.payload})
	}
	raw := Raw{Key: RawKey(now)}
	if in.noBlobs.Load() <= now.UnixMilli() {
		pctx, cancel := context.WithTimeout(ctx, in.PutTimeout)
		defer cancel()
		err := in.Blobs.Put(pctx, raw.Key, body)
		if err == nil {
			return raw
		}
		in.noBlobs.Store(now.Add(skipBlobs).UnixMilli())
		in.Log.WarnContext(ctx, "raw batches not uploaded to S3; kept in the database", "err", err)
	}
	in.stats.rawToDB.Add(1)
	raw.Body = body
	return raw
}

// moveRaws carries to S3 what had to wait in the database, also what another process left there.
func (in *Ingester) moveRaws(ctx context.Context) {
	tick := time.NewTicker(skipBlobs / 2)
	defer tick.Stop()
	for {
		for {
			mctx, cancel := context.WithTimeout(ctx, in.CommitTimeout)
			moved, err := in.Writer.MoveRaw(mctx, in.Blobs.Put)
			cancel()
			if err != nil && ctx.Err() == nil {
				in.Log.WarnContext(ctx, "raw batches still waiting in the database", "err", err)
			}
			if err != nil || !moved {
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (in *Ingester) refuse(j *job, err error) {
	in.stats.refused.Add(1)
	a := ack.Ack{Batch: j.batch, Status: ack.Refused, Code: cmp.Or(errs.CodeOf(err), errs.KindOf(err).String()), Reason: errs.Public(err)}
	if be, ok := errors.AsType[*events.BatchError](err); ok {
		a.Code, a.Reason, a.Bad = be.Code, be.Reason, be.Bad
	}
	in.Log.Info("batch refused", "thing", j.thing, "batch", j.batch, "code", a.Code, "reason", a.Reason)
	j.answer(a)
}

func (in *Ingester) later(j *job, pause time.Duration) {
	in.stats.paced.Add(1)
	j.answer(ack.Ack{Batch: j.batch, Status: ack.RetryAfter, After: envelope.Millis(pause)})
}
