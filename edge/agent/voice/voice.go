package voice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/env/robotfs"
	"kennel/edge/mic"
	"kennel/edge/mic/miclink"
	"kennel/edge/mic/wakeword"
	"kennel/edge/robot/claim"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/wake"
)

// Request says what the cloud is to understand, and for whom.
type Request struct {
	Session  string
	Question bool   // what is said is one (VEC-NLP-06)
	Language string // such as en-US
	Timezone string
	SkipDAS  bool // the owner lets nothing be kept
}

// Reply is the intent that the cloud understood, by the cloud's name, with the cloud's parameters. They are a person's words, and not for logs.
type Reply struct {
	Intent string
	Params map[string]string
	Metadata
}

// Cloud understands speech.
type Cloud interface {
	// Listen sends audio, pieces of 16-bit samples, as they come, and returns the answer. audio is never closed.
	Listen(ctx context.Context, r Request, audio <-chan []byte) (Reply, error)
	Text(ctx context.Context, r Request, text string) (Reply, error)
}

// Settings are those of the owner.
type Settings struct {
	Language, Timezone string
	Alexa              bool // the button calls Alexa
	SkipDAS            bool
}

// Config holds what Voice needs. Detector may be nil: the robot hears no wake word.
type Config struct {
	Root     *os.Root
	Dir      string // Root by name
	Boot     string
	Cloud    Cloud
	Core     *coreclient.Client
	Detector wakeword.Detector
	Heard    func(*mic.Pipeline, *mic.Chunk) // each chunk, before it is used; nil: none. It must not block
	Tap      *mic.Tap                        // gets each chunk, for programs; nil: none hears the robot's microphones
	Settings func() Settings
	Map      func(intent string, params map[string]string) Intent // from the cloud's names to the robot's (VEC-INT-04)
	Act      func(ctx context.Context, in Intent) Result
	Emit     func(events.Event)
	Told     func(Event) // hears each event that programs hear, and must not block; nil: nothing does
	Capture  bool        // the sound of sessions is kept on disk, if the owner allows: for developers
	Log      *slog.Logger
}

// mutedFile is there while the microphones are switched off. A wipe removes it.
const mutedFile = "data/kennel/voice_muted"

// actTime is the time for one intent; own default.
const actTime = time.Minute

// Voice is made by New. Safe for concurrent use; Run is called once.
type Voice struct {
	cfg   Config
	feed  *feed
	calls chan call // one slot: a robot that is called twice at once listens once
	typed chan typed
	look  wake.Signal // conditions have changed
	met   wake.Signal // robotd is another
	lamp  chan light  // one slot, the newest

	mu  sync.Mutex
	now Conditions
}

// call is a person's call. at is when what matters began to be said, CLOCK_MONOTONIC.
type call struct {
	way Way
	at  time.Duration
}

// typed is an intent without a wake word, and who waits for what became of it.
type typed struct {
	Intent
	why    Reason
	result chan Result // one slot
}

// New returns a Voice that does nothing until Run.
func New(cfg Config) *Voice {
	if cfg.Told == nil {
		cfg.Told = func(Event) {}
	}
	v := &Voice{cfg: cfg, feed: newFeed(), calls: make(chan call, 1), typed: make(chan typed), look: wake.New(), met: wake.New(), lamp: make(chan light, 1)}
	if v.cfg.Tap == nil {
		v.cfg.Tap = &mic.Tap{}
	}
	v.cfg.Tap.Changed = v.look.Set
	_, err := cfg.Root.Stat(mutedFile)
	v.now = Conditions{Muted: !errors.Is(err, fs.ErrNotExist), Deaf: true} // a robot that cannot tell does not listen
	v.cfg.Tap.SetOff(v.now.silent())
	return v
}

// Handle takes every message of robotd. It does not block.
func (v *Voice) Handle(m corelink.Message) {
	switch m := m.(type) {
	case *corelink.Hello:
		v.met.Set()
	case *corelink.Power:
		v.change(func(c *Conditions) { c.LowPower = !m.Cloud })
	case *corelink.Motion:
		reserved := false
		for _, o := range m.Owners {
			reserved = reserved || o.Program != "agentd" && o.Priority >= int(claim.Program) && o.Priority < int(claim.Safety)
		}
		v.change(func(c *Conditions) { c.Reserved = reserved })
	case *corelink.Event:
		if m.Name != "robot.button" || m.Replayed || len(m.Texts) == 0 {
			return
		}
		switch m.Texts[0] {
		case "single":
			v.call(call{Button, time.Duration(m.AtUS)*time.Microsecond - beforeButton})
		case "mute":
			v.change(func(c *Conditions) { c.Muted = !c.Muted })
		}
	}
}

func (v *Voice) change(f func(*Conditions)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.now
	if f(&v.now); v.now != before {
		v.cfg.Tap.SetOff(v.now.silent())
		v.look.Set()
	}
}

func (v *Voice) conditions() Conditions {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

func (v *Voice) call(c call) {
	select {
	case v.calls <- c:
	default: // it is called already
	}
}

// ears are the microphones while they are on.
type ears struct {
	chunks chan mic.Chunk // 0.3 s
	stop   context.CancelFunc
	ended  chan struct{}
}

// loop is Run's.
type loop struct {
	*Voice
	machine
	ctx      context.Context //nolint:containedctx // of Run, for what the effects of a step begin
	wg       sync.WaitGroup
	on       *ears         // nil: the microphones are off
	at       time.Duration // of the call that is handled
	named    time.Duration // until then the end of the wake word is looked for; 0: it is known
	tape     tape
	samples  uint64 // fed to the detector since its reset
	pieces   pieces
	audio    chan []byte // to the cloud; nil: no session
	record   *capture    // of the session; nil: it is not kept
	hush     context.CancelFunc
	answers  chan answer
	shown    light
	isMuted  bool // as the file says
	failedAt time.Time
}

type answer struct {
	session int
	reply   Reply
	why     Reason
}

// Run hears, asks and acts until ctx ends.
func (v *Voice) Run(ctx context.Context) error {
	actx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &loop{Voice: v, ctx: actx, answers: make(chan answer, 4), isMuted: v.conditions().Muted}
	defer l.wg.Wait()
	defer stop()
	l.wg.Go(func() { lights(actx, v.cfg.Core, v.lamp, lampAgain, v.cfg.Log) })
	defer func() { l.on.close() }()
	l.look.Set()
	clock := time.NewTimer(0)
	defer clock.Stop()
	for {
		var chunks <-chan mic.Chunk
		if l.on != nil {
			chunks = l.on.chunks
		}
		clock.Reset(l.wait())
		select {
		case <-ctx.Done():
			l.do(l.stop(), nil)
			return nil
		case c := <-chunks:
			l.hear(&c)
		case c := <-v.calls:
			l.refresh()
			l.at, l.named, l.Alexa = c.at, 0, v.cfg.Settings().Alexa
			l.do(l.machine.call(time.Now(), c.way), nil)
		case t := <-v.typed:
			l.refresh()
			l.do(l.machine.typed(time.Now(), t.Intent, t.why), t.result)
		case a := <-l.answers:
			l.refresh()
			if a.why != "" {
				l.do(l.broke(a.session, a.why), nil)
			} else {
				l.do(l.heard(time.Now(), a.session, v.mapped(a.reply)), nil)
			}
		case <-clock.C:
			l.do(l.tick(time.Now()), nil)
		case <-v.look:
			l.refresh()
		}
		l.show()
	}
}

// refresh takes in the conditions as they are now.
func (l *loop) refresh() {
	c := l.conditions()
	l.keepMuted(c.Muted)
	l.do(l.set(c), nil)
	switch listens := !c.Muted && !c.LowPower; {
	case listens && l.on == nil:
		l.on = l.open(l.ctx)
	case !listens && l.on != nil:
		l.on.close()
		l.on = nil
		l.tape.erase()
	}
}

// wait returns how long nothing happens by itself.
func (l *loop) wait() time.Duration {
	d := time.Minute
	if l.session != 0 {
		d = time.Until(l.until)
	}
	if l.shown == orange {
		d = min(d, failTime-time.Since(l.failedAt))
	}
	return max(d, 0)
}

// keepMuted makes the switch of the microphones outlast a restart.
func (l *loop) keepMuted(muted bool) {
	if muted == l.isMuted {
		return
	}
	var err error
	if muted {
		err = robotfs.WriteFile(l.cfg.Root, mutedFile, nil, 0o600)
	} else if err = l.cfg.Root.Remove(mutedFile); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		l.cfg.Log.Error("microphone mute not saved", "muted", muted, logging.Err, err)
		return
	}
	l.isMuted = muted
}

// open connects to the microphones, and again whenever they are gone.
func (v *Voice) open(ctx context.Context) *ears {
	ctx, stop := context.WithCancel(ctx)
	e := &ears{make(chan mic.Chunk, 32), stop, make(chan struct{})}
	go func() {
		defer close(e.ended)
		pause := backoff.Pause{Min: 250 * time.Millisecond, Max: 30 * time.Second}
		for ctx.Err() == nil {
			err := v.listen(ctx, e.chunks, pause.Reset)
			v.change(func(c *Conditions) { c.Deaf = true })
			if ctx.Err() == nil {
				v.cfg.Log.DebugContext(ctx, "microphones disconnected", logging.Err, err)
			}
			select {
			case <-ctx.Done():
			case <-v.met: // a robotd that starts opens its socket soon
				pause.Reset()
			case <-time.After(pause.Next(nil)):
			}
		}
	}()
	return e
}

// listen makes chunks of frames until the microphones are gone.
func (v *Voice) listen(ctx context.Context, chunks chan<- mic.Chunk, heard func()) error {
	mics, err := miclink.Dial(ctx, filepath.Join(v.cfg.Dir, miclink.SocketPath))
	if err != nil {
		return err
	}
	defer mics.Close() // read only
	p := mic.New(mic.Config{})
	var c mic.Chunk
	for first := true; ; {
		f, err := mics.Next()
		if err != nil {
			return err
		}
		if first {
			first = false
			heard()
			v.change(func(c *Conditions) { c.Deaf = false })
		}
		if p.Feed(&f, false, &c) {
			if v.cfg.Heard != nil {
				v.cfg.Heard(p, &c)
			}
			v.cfg.Tap.Put(&c)
			select {
			case chunks <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// close waits until the microphones are off; nil: they are.
func (e *ears) close() {
	if e != nil {
		e.stop()
		<-e.ended
	}
}

// hear takes a chunk.
func (l *loop) hear(c *mic.Chunk) {
	l.tape.put(c)
	switch {
	case l.audio == nil:
	case l.named == 0:
		l.pieces.add(c.Samples[:], l.send)
		return
	case c.At < l.named:
		return
	default:
		l.pieces.add(l.tape.since(l.tape.pause(l.at, l.named)), l.send)
		l.named = 0
		return
	}
	d := l.cfg.Detector
	if d == nil {
		return
	}
	if wakeword.Gap(d, c) {
		l.samples = 0
	}
	l.samples += uint64(len(c.Samples))
	hit, ok := wakeword.Hit{}, false
	if g, gated := d.(*wakeword.Gated); gated {
		hit, ok = g.Hear(c)
	} else {
		hit, ok = d.Feed(c.Samples[:])
	}
	if ok {
		late := time.Duration(l.samples-min(hit.End, l.samples)) * time.Second / mic.Rate
		d.Reset()
		l.samples, l.at = 0, c.At-late-beforeWake
		l.named = l.at + nameEnds
		l.do(l.machine.call(time.Now(), WakeWord), nil)
	}
}

// send hands a piece to the session. There is room for all until the deadline.
func (l *loop) send(piece []byte) {
	l.record.add(piece)
	select {
	case l.audio <- piece:
	default:
	}
}

// do does what a step says. result gets what became of an intent, if it is not nil.
func (l *loop) do(all []effect, result chan<- Result) {
	for _, e := range all {
		switch e := e.(type) {
		case tell:
			l.tell(Event(e))
			if e.Result != nil {
				if why := e.Result.Reason; why == Offline || why == Slow || why == NoToken || why == Deaf {
					l.failedAt = time.Now()
				}
				l.result(*e.Result, result)
			}
		case count:
			l.cfg.Emit(events.Event(e))
		case open:
			l.begin(e)
		case shut:
			l.hush()
			l.keep(l.record)
			l.audio, l.record = nil, nil
		case act:
			l.wg.Go(func() {
				ctx, cancel := context.WithTimeout(l.ctx, actTime)
				defer cancel()
				r := l.cfg.Act(ctx, e.Intent)
				r.Metadata = e.Metadata
				if r.Emotion != "" {
					l.tell(Event(stimulation(r.Emotion).(tell)))
				}
				if !r.Done {
					l.cfg.Emit(events.Event(analytics("behavior.voice_command.dropped", string(r.Reason), e.Name).(count)))
				}
				l.tell(Event{Result: &r})
				l.result(r, result)
			})
		}
	}
}

// tell tells an event to programs and to the rest of agentd.
func (l *loop) tell(e Event) {
	if e.CloudIntent != nil {
		e.CloudIntent.Time = time.Now().Unix()
	}
	l.feed.tell(e)
	l.cfg.Told(e)
}

// result hands r to the one that waits.
func (l *loop) result(r Result, to chan<- Result) {
	if to != nil {
		to <- r
	}
}

// begin opens a session, with what was said before the call was noticed (VEC-NLP-01).
func (l *loop) begin(o open) {
	if o.question {
		l.at, l.named = monoclock.Now(), 0
	}
	ctx, cancel := context.WithTimeout(l.ctx, Deadline)
	audio := make(chan []byte, maxSent)
	r := l.request(o.question)
	l.hush, l.audio, l.pieces, l.record = cancel, audio, pieces{}, l.recorder(r)
	if l.named == 0 {
		l.pieces.add(l.tape.since(l.at), l.send)
	}
	l.wg.Go(func() {
		defer cancel()
		a := answer{session: o.session}
		var err error
		if a.reply, err = l.cfg.Cloud.Listen(ctx, r, audio); err != nil {
			a.why = l.why(ctx, err)
		}
		select {
		case l.answers <- a:
		case <-l.ctx.Done():
		}
	})
}

// why says what an error of the cloud means.
func (v *Voice) why(ctx context.Context, err error) Reason {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return Stopping // it is not waited for
	}
	v.cfg.Log.WarnContext(ctx, "speech not understood", logging.Err, err)
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return Slow
	}
	if kind := errs.KindOf(err); kind == errs.Unauthenticated || kind == errs.Denied {
		return NoToken
	}
	return Offline
}

func (v *Voice) request(question bool) Request {
	s := v.cfg.Settings()
	return Request{Session: fmt.Sprintf("%016x", uint64(time.Now().UnixNano())), Question: question, Language: s.Language, Timezone: s.Timezone, SkipDAS: s.SkipDAS}
}

// show has the lights say what the ears do.
func (l *loop) show() {
	want := dark
	switch {
	case l.session != 0, l.cfg.Tap.Heard() && l.on != nil:
		want = blue
	case time.Since(l.failedAt) < failTime:
		want = orange
	case l.Muted:
		want = dimRed
	}
	if want == l.shown {
		return
	}
	l.shown = want
	select {
	case <-l.lamp: // it is out of date
	default:
	}
	l.lamp <- want
}

// Text has the cloud understand what a person typed, and acts on it.
func (v *Voice) Text(ctx context.Context, text string) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, Deadline+actTime)
	defer cancel()
	tctx, stop := context.WithTimeout(ctx, Deadline)
	defer stop()
	t := typed{result: make(chan Result, 1)}
	reply, err := v.cfg.Cloud.Text(tctx, v.request(false), text)
	if err != nil {
		t.why = v.why(tctx, err)
	} else {
		t.Intent = v.mapped(reply)
	}
	return v.take(ctx, t)
}

func (v *Voice) mapped(r Reply) Intent {
	in := v.cfg.Map(r.Intent, r.Params)
	in.Metadata = r.String()
	return in
}

// Inject takes an intent by the cloud's name of it (VEC-INT-18).
func (v *Voice) Inject(ctx context.Context, name string, params map[string]string) (Result, error) {
	in := v.cfg.Map(name, params)
	if in.Name == unmatched && name != unmatched {
		return Result{}, errs.New(errs.NotFound, "no such intent %.64q, or its feature is off", name)
	}
	return v.take(ctx, typed{Intent: in, result: make(chan Result, 1)})
}

func (v *Voice) take(ctx context.Context, t typed) (Result, error) {
	select {
	case v.typed <- t:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	select {
	case r := <-t.result:
		return r, nil
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// Listen presses the button by software.
func (v *Voice) Listen() { v.call(call{Program, monoclock.Now()}) }

// Since returns the events after number seq, and waits for one until ctx ends; last is the number of the newest event there is. The
// oldest events are lost.
func (v *Voice) Since(ctx context.Context, seq uint64) (all []Event, last uint64) {
	return v.feed.since(ctx, seq)
}
