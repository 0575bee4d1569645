package mind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/face"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/edge/sound"
	"kennel/edge/sound/bank"
	"kennel/edge/sound/palette"
	"kennel/edge/sound/sink"
	"kennel/edge/sound/voice"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Sound configures what a robot plays and says. The zero value plays to programs that listen alone, at full volume, and has no voice.
type Sound struct {
	Sink      sink.Sink                           // where it is heard; closed when the mind ends. nil: nowhere else
	Banks     []*bank.Bank                        // beside the sounds that come with Kennel; of equal names theirs
	Voice     func() (voice.Synthesizer, error)   // is asked at the first text, and again after an error, which says what to do; nil: none
	Character voice.Character                     // how it sounds; the zero value is the synthesiser's own voice
	Language  func() string                       // such as en-US; nil or "": the synthesiser's own
	Volume    func() (level sound.Level, ok bool) // that the owner chose; false: none. It is called twice a second. nil: the highest
	Broken    <-chan struct{}                     // says that Sink does not play; nil: it always does
	Silent    func()                              // is called then, if the body has a loudspeaker; nil: with a nil Broken alone
}

// silent calls Silent for a body with a loudspeaker that is not heard, until ctx ends.
func (m *Mind) silent(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.cfg.Sound.Broken:
		}
		b, err := m.body(ctx)
		for err != nil { // robotd is not there yet
			if backoff.Sleep(ctx, time.Second) != nil {
				return
			}
			b, err = m.body(ctx)
		}
		if b.parts&clip.Speaker != 0 {
			m.cfg.Sound.Silent()
		}
	}
}

// lead is how long before a clip begins its sounds are looked at: what a step of the loop may take, and what is mixed ahead.
const lead = clip.Step + sink.Foresight

// audio plays sounds and speech. Its methods are safe for concurrent use, but for begin and a track's, which belong to the loop.
type audio struct {
	cfg    Sound
	log    *slog.Logger
	now    func() time.Duration
	seed   uint64
	mixer  *sound.Mixer
	pump   *sink.Pump
	engine *bank.Engine
	names  []string       // of what Sound plays
	muted  atomic.Bool    // the owner wants no sound
	stored map[uint32]int // numbers of the sounds that some bodies store, by the events' numbers

	mu      sync.Mutex
	speaker *voice.Speaker // nil: no synthesiser yet
	playing []*utterance
}

func newAudio(cfg Config) (*audio, error) {
	m, err := sound.NewMixer(sound.Config{Rate: mindlink.SoundRate})
	if err != nil {
		return nil, err
	}
	k, err := palette.Bank()
	if err != nil {
		return nil, err
	}
	a := &audio{cfg: cfg.Sound, log: cfg.Log, now: cfg.Now, seed: cfg.Seed, mixer: m, pump: sink.NewPump(m, cfg.Sound.Sink, cfg.Now)}
	banks := append([]*bank.Bank{k}, cfg.Sound.Banks...)
	a.engine = bank.NewEngine(bank.Config{Mixer: m, Banks: banks, Random: rand.NewPCG(cfg.Seed, 1)})
	for i, k := range banks {
		for _, e := range k.Events {
			a.names = append(a.names, e.Name)
		}
		if i > 0 { // the others are parts of events
			for _, s := range k.Sounds {
				a.names = append(a.names, s.Name)
			}
		}
	}
	a.stored = map[uint32]int{}
	for name, n := range palette.Stored() {
		a.stored[clip.SoundID(name)] = n
	}
	slices.Sort(a.names)
	a.names = slices.Compact(a.names)
	return a, nil
}

// run mixes until ctx ends; the function returned waits for that. A sink that fails costs the robot its loudspeaker, not its face.
func (a *audio) run(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.pump.Run(ctx); err != nil {
			a.log.Error("robot has no sound until mindd starts again", logging.Err, err)
		}
	}()
	return func() { <-done }
}

// setVolume makes the robot as loud as its owner chose (VEC-SND-12).
func (a *audio) setVolume() {
	if a.cfg.Volume == nil {
		return
	}
	level, ok := a.cfg.Volume()
	if !ok {
		return
	}
	a.muted.Store(level == 0)
	if err := a.mixer.SetLevel(level); err != nil {
		a.log.Warn("volume not changed", logging.Err, err)
	}
}

// stores reports whether a clip posts a sound that bodies store.
func (a *audio) stores(c *clip.Clip) bool {
	for _, k := range c.Tracks.Audio {
		for _, g := range k.Groups {
			if slices.ContainsFunc(g.Events, func(event uint32) bool { return a.stored[event] != 0 }) {
				return true
			}
		}
	}
	return false
}

// track plays the sounds of one clip. A second player of the same clip looks ahead by as much as sounds are mixed ahead, so that each is heard at its keyframe: the two players
// have one clock, of which the pump knows the samples.
type track struct {
	audio   *audio
	start   time.Duration // of the clip
	release func()        // of the pump
	player  *clip.Player
	frame   clip.Frame
	fired   []clip.Fired
	playing []*sound.Playing
}

// errSpeaks leaves the sounds of a clip out (part of VEC-TTS-04: speech has the audio track).
var errSpeaks = errors.New("the robot speaks")

// begin returns the track of a clip, which starts a little later, so that its first sound is not late. The error says why it has none.
func (a *audio) begin(now time.Duration, c *clip.Clip, o clip.Options) (*track, error) {
	if a.speaks() {
		return nil, errSpeaks
	}
	t := &track{audio: a, start: now + lead, player: clip.NewPlayer(clip.Vector, &clip.Locks{}, a.seed), release: a.pump.Hold()}
	if err := t.player.Start(t.start, c, o); err != nil {
		t.release()
		return nil, err
	}
	t.step(now)
	return t, nil
}

// step asks for the sounds of the next step. t may be nil.
func (t *track) step(now time.Duration) {
	if t == nil || t.player == nil {
		return
	}
	if t.audio.speaks() { // it goes first
		t.end(false)
		return
	}
	t.fired = t.player.Step(now+lead, &t.frame, t.fired[:0])
	for i := range t.fired {
		f := &t.fired[i]
		playing, err := t.audio.engine.Fire(f, t.audio.pump.Place(now+lead-f.Late))
		if err != nil {
			t.audio.log.Warn("sound of a clip left out", "clip", f.Clip, logging.Err, err)
		}
		t.playing = append(slices.DeleteFunc(t.playing, over), playing...)
	}
}

// beat lets sounds continue at a time, together with the clip that waits. t may be nil.
func (t *track) beat(at time.Duration) {
	if t != nil && t.player != nil {
		t.player.Signal(at)
	}
}

func over(p *sound.Playing) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// end ends the track: what was begun before the end of the clip may be heard to its own, unless the clip was stopped. t may be nil, and end be repeated.
func (t *track) end(done bool) {
	if t == nil || t.player == nil {
		return
	}
	t.player = nil
	if !done {
		for _, p := range t.playing {
			p.Stop(stopFade)
		}
	}
	t.release()
}

// stopFade is how long a sound that is stopped gets quieter.
const stopFade = 20 * time.Millisecond

// utterance is a text, a sound or a stream of a program that is heard.
type utterance struct {
	name    string // for other programs
	program string
	level   clip.Level
	kind    uint8
	cancel  context.CancelFunc
	over    chan struct{} // closed when it has ended
	text    string        // of speech
	heard   bool          // it is not only made yet; mu of audio is held
	why, by string        // it was ended early; mu of audio is held
}

const (
	speech uint8 = iota // one at a time
	stream              // likewise
	effect              // many at a time
)

// take makes place for an utterance: one of the same kind ends if it is of the same program or of a lower level, and refuses otherwise. ctx ends when the utterance has to;
// done is called when it has ended.
func (a *audio) take(ctx context.Context, u *utterance) (_ context.Context, done func(), err error) {
	ctx, u.cancel = context.WithCancel(ctx)
	u.over = make(chan struct{})
	for {
		a.mu.Lock()
		i := slices.IndexFunc(a.playing, func(o *utterance) bool { return o.kind == u.kind && u.kind != effect })
		if i < 0 {
			a.playing = append(a.playing, u)
			a.mu.Unlock()
			return ctx, func() {
				a.mu.Lock()
				a.playing = slices.DeleteFunc(a.playing, func(o *utterance) bool { return o == u })
				a.mu.Unlock()
				u.cancel()
				close(u.over)
			}, nil
		}
		o := a.playing[i]
		if o.level > u.level || o.level == u.level && o.program != u.program {
			a.mu.Unlock()
			u.cancel()
			return nil, nil, errs.Coded(errs.Conflict, "busy", "%s of %s is heard; it ends first", o.name, o.program)
		}
		o.stop(u.name+" is heard instead", u.program)
		a.mu.Unlock()
		select {
		case <-o.over:
		case <-ctx.Done():
			u.cancel()
			return nil, nil, ctx.Err()
		}
	}
}

// stop ends an utterance early; mu of audio is held.
func (u *utterance) stop(why, by string) {
	if u.why == "" {
		u.why, u.by = why, by
	}
	u.cancel()
}

// speaks reports whether a text is being said.
func (a *audio) speaks() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.playing, func(u *utterance) bool { return u.kind == speech })
}

// hush ends all that is heard.
func (a *audio) hush(by string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range a.playing {
		u.stop("the robot was told to be silent", by)
	}
}

// ended says how an utterance ended, which began at a time. err is why it failed; nil: it was heard to its end.
func (a *audio) ended(u *utterance, began time.Duration, err error) mindlink.Ended {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := mindlink.Ended{Clip: u.name, Outcome: mindlink.Done, AtMS: (a.now() - began).Milliseconds()}
	switch {
	case u.why != "":
		e.Outcome, e.Reason, e.By = mindlink.Stopped, u.why, u.by
	case errors.Is(err, context.Canceled):
		e.Outcome, e.Reason, e.By = mindlink.Stopped, "its program left", u.program
	case err != nil:
		e.Outcome, e.Reason = mindlink.Stopped, errs.Public(err)
	}
	return e
}

// opening is how far a mouth is open for each shape; our own.
var opening = [...]float32{voice.PP: 0, voice.FF: 0.15, voice.TH: 0.25, voice.DD: 0.2, voice.KK: 0.25, voice.CH: 0.3, voice.SS: 0.15, voice.NN: 0.2, voice.RR: 0.35,
	voice.AA: 1, voice.EE: 0.6, voice.IH: 0.4, voice.OH: 0.8, voice.OU: 0.5}

// mouth returns the layer that makes the eyes move with what the robot says: it has no mouth, so they get a little taller with open vowels. false: it is silent.
func (a *audio) mouth(now time.Duration) (p face.Params, ok bool) {
	a.mu.Lock()
	s := a.speaker
	a.mu.Unlock()
	if s == nil || !a.speaks() {
		return p, false
	}
	p = face.Neutral
	open := opening[s.MouthAt(a.pump.Place(now))]
	p.Whole[face.ScaleX], p.Whole[face.ScaleY], p.Whole[face.CenterY] = 1-0.04*open, 1+0.14*open, -2*open
	return p, true
}

// voiceOf returns the speaker, and looks for a synthesiser if there is none yet.
func (a *audio) voiceOf() (*voice.Speaker, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.speaker != nil {
		return a.speaker, nil
	}
	if a.cfg.Voice == nil {
		return nil, errs.Coded(errs.Unavailable, "no_voice", "the robot has no synthesiser of speech")
	}
	s, err := a.cfg.Voice()
	if err != nil {
		return nil, errs.Coded(errs.Unavailable, "no_voice", "%s", errs.Public(err))
	}
	a.speaker = voice.NewSpeaker(a.mixer, s)
	return a.speaker, nil
}

// speaking returns whether the body can be heard.
func (m *Mind) speaking(ctx context.Context) error {
	b, err := m.body(ctx)
	if err != nil {
		return err
	}
	return b.speaking()
}

// speaking returns whether the body plays any sound.
func (b *body) speaking() error {
	switch {
	case b.parts&clip.Speaker != 0:
		return nil
	case b.speakers:
		return errs.Coded(errs.Invalid, "unable", "this body's speaker plays nothing but the sounds that it stores itself")
	}
	return errs.Coded(errs.Invalid, "unable", "this body has no speaker; describe lists the parts that it has")
}

// levelOf returns the level of an utterance.
func levelOf(name string) (clip.Level, error) {
	l, ok := levels[name]
	if !ok {
		return 0, errs.Coded(errs.Invalid, "invalid", "level: expected %s or %s, found %.40q", mindlink.Behavior, mindlink.Command, name)
	}
	return l, nil
}

// Say says a text. See mindlink.Mind.
func (m *Mind) Say(ctx context.Context, r mindlink.Say, tell func(mindlink.Progress) error) (e mindlink.Ended, err error) {
	a := m.audio
	level, err := levelOf(r.Level)
	if err != nil {
		return e, err
	}
	q := voice.Request{Text: r.Text, Language: r.Language}
	if q.Language == "" && a.cfg.Language != nil {
		q.Language = a.cfg.Language()
	}
	text, err := voice.Clean(r.Text)
	if err == nil {
		q, err = q.Scaled(r.Duration, r.Pitch)
	}
	if err != nil {
		return e, errs.Coded(errs.Invalid, "invalid", "%s", err)
	}
	if err := m.speaking(ctx); err != nil {
		return e, err
	}
	s, err := a.voiceOf()
	if err != nil {
		return e, err
	}
	u := &utterance{name: "speech", text: text, program: r.Program, level: level, kind: speech}
	ctx, done, err := a.take(ctx, u)
	if err != nil {
		return e, err
	}
	defer done()
	character := a.cfg.Character
	if r.Plain {
		character = voice.Character{}
	}
	states, failed := make(chan voice.State, int(voice.Finished)+1), make(chan error, 1)
	go func() {
		defer a.pump.Hold()()
		err := s.Say(ctx, q, character, func(s voice.State) { states <- s })
		if err == nil {
			err = a.pump.Heard(ctx)
		}
		failed <- err
	}()
	return a.follow(u, states, failed, tell), nil
}

// follow tells how an utterance goes until it has failed or ended, and returns its end. A caller that does not hear ends it.
func (a *audio) follow(u *utterance, states <-chan voice.State, failed <-chan error, tell func(mindlink.Progress) error) mindlink.Ended {
	began := a.now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case s := <-states:
			if s == voice.Playing {
				a.mu.Lock()
				u.heard = true
				a.mu.Unlock()
			}
			if s != voice.Finished && s != voice.Invalid { // the end says these
				err = tell(mindlink.Progress{State: s.String(), AtMS: (a.now() - began).Milliseconds()})
			}
		case <-tick.C:
			err = tell(mindlink.Progress{AtMS: (a.now() - began).Milliseconds()})
		case err := <-failed:
			return a.ended(u, began, err)
		}
		if err != nil {
			u.cancel()
		}
	}
}

// Sound plays a sound of the palette. See mindlink.Mind.
func (m *Mind) Sound(ctx context.Context, r mindlink.Sound, tell func(mindlink.Progress) error) (e mindlink.Ended, err error) {
	a := m.audio
	if !slices.Contains(a.names, r.Name) {
		return e, errs.Coded(errs.NotFound, "not_found", "sound %.60q: expected one that the list of animations names", r.Name)
	}
	volume := cmp.Or(r.Volume, 1)
	if !(volume > 0 && volume <= 1) {
		return e, errs.Coded(errs.Invalid, "invalid", "volume: expected above 0 to 1, found %v", r.Volume)
	}
	b, err := m.body(ctx)
	if err != nil {
		return e, err
	}
	if b.bank != "" {
		return m.playStored(ctx, b, r)
	}
	if err := b.speaking(); err != nil {
		return e, err
	}
	u := &utterance{name: r.Name, program: r.Program, level: clip.Command, kind: effect}
	ctx, done, err := a.take(ctx, u)
	if err != nil {
		return e, err
	}
	defer done()
	defer a.pump.Hold()()
	playing, err := a.engine.Post(bank.Procedural, clip.SoundID(r.Name), volume, 0)
	if errors.Is(err, sound.ErrFull) {
		err = errs.Coded(errs.Exhausted, "too_many_sounds", "%s", err)
	}
	if err != nil {
		return e, err
	}
	failed := make(chan error, 1)
	go func() { failed <- a.hear(ctx, playing) }()
	states := make(chan voice.State, 1)
	states <- voice.Playing
	return a.follow(u, states, failed, tell), nil
}

// playStored plays a sound that the body stores. It returns when it has begun: the body does not say how long it takes.
func (m *Mind) playStored(ctx context.Context, b *body, r mindlink.Sound) (e mindlink.Ended, err error) {
	n := palette.Stored()[r.Name]
	switch {
	case n == 0:
		return e, errs.Coded(errs.Invalid, "unable", "sound %.60q: this body's speaker plays nothing but the sounds that it stores itself; the list of animations names them", r.Name)
	case m.audio.muted.Load():
		return e, errs.Coded(errs.Conflict, "muted", "the robot's owner wants no sound")
	}
	began := m.cfg.Now()
	if err := m.cfg.Core.Run(ctx, claim.Program, storedOrder(b, n)); err != nil {
		return e, coreError(err)
	}
	return mindlink.Ended{Clip: r.Name, Outcome: mindlink.Done, AtMS: (m.cfg.Now() - began).Milliseconds()}, nil
}

// hear returns when sounds were heard, and stops them when ctx ends.
func (a *audio) hear(ctx context.Context, playing []*sound.Playing) error {
	for _, p := range playing {
		select {
		case <-p.Done():
		case <-ctx.Done():
			for _, p := range playing {
				p.Stop(stopFade)
			}
			return ctx.Err()
		}
	}
	return a.pump.Heard(ctx)
}

// Stream plays samples of a caller. See mindlink.Mind.
func (m *Mind) Stream(ctx context.Context, r mindlink.Stream, next func() ([]int16, error), tell func(mindlink.Progress) error) (e mindlink.Ended, err error) {
	a := m.audio
	gain, err := sound.PercentGain(r.Volume)
	if err == nil && (r.Rate < sound.MinStreamRate || r.Rate > sound.MaxStreamRate) {
		err = fmt.Errorf("rate: expected %d to %d, found %d", sound.MinStreamRate, sound.MaxStreamRate, r.Rate)
	}
	if err != nil {
		return e, errs.Coded(errs.Invalid, "invalid", "%s", err)
	}
	if err := m.speaking(ctx); err != nil {
		return e, err
	}
	u := &utterance{name: "stream of sound", program: r.Program, level: clip.Command, kind: stream}
	ctx, done, err := a.take(ctx, u)
	if err != nil {
		return e, err
	}
	defer done()
	defer a.pump.Hold()()
	s, err := a.mixer.Open(sound.Client, r.Rate, gain)
	if err != nil {
		return e, errs.Coded(errs.Exhausted, "too_many_sounds", "%s", err)
	}
	lost := make(chan mindlink.Lost, 1)
	go func() {
		for {
			pcm, err := next()
			var o *sound.Overrun
			switch {
			case errors.Is(err, io.EOF):
				s.Complete()
				return
			case err != nil:
				u.cancel()
				return
			}
			if errors.As(s.Write(pcm), &o) {
				select {
				case <-lost: // a newer one has it
				default:
				}
				lost <- mindlink.Lost{Sent: o.Sent, Played: o.Played} // its only writer
			}
		}
	}()
	failed := make(chan error, 1)
	go func() {
		err := a.hear(ctx, []*sound.Playing{s.Playing})
		if err != nil {
			s.Cancel()
		}
		failed <- err
	}()
	states := make(chan voice.State, 1)
	states <- voice.Playing
	return a.follow(u, states, failed, func(p mindlink.Progress) error {
		select {
		case l := <-lost:
			p.Lost = &l
		default:
		}
		return tell(p)
	}), nil
}

// Hush silences the robot. See mindlink.Mind.
func (m *Mind) Hush(by string) { m.audio.hush(by) }

// Listen gives what the robot plays and says, after a piece without samples. See mindlink.Mind.
func (m *Mind) Listen(ctx context.Context, give func(mindlink.Piece) error) error {
	if err := m.speaking(ctx); err != nil {
		return err
	}
	a := m.audio
	pieces, end, err := a.pump.Listen()
	if err != nil {
		return errs.Coded(errs.Exhausted, "too_many_streams", "%s", err)
	}
	defer end()
	if err := give(mindlink.Piece{Piece: sound.Piece{Place: a.mixer.Position(), At: m.cfg.Now()}}); err != nil {
		return err
	}
	look := time.NewTicker(saidEvery)
	defer look.Stop()
	for last := ""; ; {
		var x mindlink.Piece
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p, ok := <-pieces:
			if !ok {
				return errs.Coded(errs.Unavailable, "mind_lost", "the robot's character (mindd) ends")
			}
			x.Piece = p
		case <-look.C:
			x.Piece = sound.Piece{Place: a.mixer.Position(), At: m.cfg.Now()}
		}
		if now := a.said(); now != last {
			x.Said, last = &now, now
		}
		if len(x.Samples) == 0 && x.Said == nil {
			continue
		}
		if err := give(x); err != nil {
			return err
		}
	}
}

// saidEvery is how soon the end of a text is told.
const saidEvery = 100 * time.Millisecond

// said returns the text that is heard now; "": none.
func (a *audio) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range a.playing {
		if u.kind == speech && u.heard {
			return u.text
		}
	}
	return ""
}
