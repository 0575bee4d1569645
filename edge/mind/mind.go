package mind

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/repertoire"
	"kennel/edge/anim/stage"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/face"
	"kennel/edge/face/sprite"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mood"
	"kennel/edge/robot/claim"
	"kennel/edge/sound/palette"
	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
)

// Config configures a Mind. All but Motions, Seed, Sound and Sprites is required.
type Config struct {
	Core    *coreclient.Client
	Program string // its name, as robotd knows it
	Library *clip.Library
	Moods   repertoire.Moods
	Log     *slog.Logger
	Now     func() time.Duration // CLOCK_MONOTONIC, as robotd's
	Seed    uint64
	Motions Motions      // nil: no body has any
	Sound   Sound        // what the robot plays and says
	Sprites *sprite.Set  // pictures of clips; nil: Kennel's own
	Mood    *mood.Config // nil: Kennel's own
}

// Motions are the motions that a body does by its joints: those of its own library, and those that its owner uploaded. The methods are safe for concurrent use.
type Motions interface {
	// List returns them by their names, without motionwire.Prefix. An error with code "unable": the body has none.
	List(ctx context.Context) ([]mindlink.Clip, error)
	// Plan returns how a motion is done from where the body is now. An error says why it is not.
	Plan(ctx context.Context, name string) (Planned, error)
	// Body returns how the body is made, and its library. An error with code "unable": it has no joints that move by motions.
	Body(ctx context.Context) (motionwire.Body, error)
	// Judge checks a motion for this body.
	Judge(ctx context.Context, name string, file []byte) (motionwire.Verdict, error)
}

// Planned is a motion that the body can do now.
type Planned struct {
	Span time.Duration
	// Do does it until it has ended; the error says why it ended early.
	Do func(ctx context.Context, p claim.Priority) error
}

// Mind plays. It is a mindlink.Mind, safe for concurrent use while Run runs.
type Mind struct {
	cfg  Config
	asks chan func(now time.Duration)
	over chan struct{} // closed when Run has ended

	gestures chan string // of the button
	stirs    chan string // what may move the mood
	senses   senses      // of Hear's goroutine
	docked   atomic.Bool // the robot is on its charger

	// Of the loop.
	player  *clip.Player
	locks   clip.Locks
	chooser *clip.Chooser
	turn    *turn      // nil: nothing plays
	image   *clip.Lock // of a picture that is shown instead of the eyes
	imageOf string     // its program
	theta   float64    // rad, where the body looks, as robotd said last
	heading float64    // rad, that the clip recorded
	screen  display
	audio   *audio
	moves   activity
	feels   feelings
	frame   clip.Frame
	fired   []clip.Fired
	active  time.Duration // until when the loop runs though nothing plays: faces settle
	beat    time.Duration // when the clip that waits for a beat continues; 0: none does
}

// turn is one animation under way.
type turn struct {
	name    string
	program string
	level   clip.Level
	hand    *hand              // of a clip
	lock    *clip.Lock         // of a motion
	track   *track             // sounds of a clip; nil: none
	cancel  context.CancelFunc // of a motion
	ended   chan ending        // one slot
}

// ending says how a turn ended.
type ending struct {
	done    bool
	why, by string
}

// beatWait is how long a clip waits for a beat of music, which no part of the robot hears: then the wait is cancelled and the clip continues (VEC-AFF-16). Our own default,
// the time of a beat at 60 a minute.
const beatWait = time.Second

// progressEvery is how often a caller hears how far its animation is.
const progressEvery = 200 * time.Millisecond

// New returns a mind that does nothing before Run. The error is of its sounds.
func New(cfg Config) (*Mind, error) {
	if cfg.Sprites == nil {
		cfg.Sprites = repertoire.Sprites()
	}
	if cfg.Mood == nil {
		cfg.Mood = mood.Own()
	}
	a, err := newAudio(cfg)
	if err != nil {
		return nil, err
	}
	m := &Mind{cfg: cfg, asks: make(chan func(time.Duration)), over: make(chan struct{}), gestures: make(chan string, 4), stirs: make(chan string, 32), chooser: clip.NewChooser(cfg.Library, cfg.Seed), audio: a}
	m.moves.set = a.engine.SetMood
	m.feels = feelings{mood: mood.New(cfg.Mood), set: a.engine.SetMood, moving: m.moves.moving, readers: map[chan mindlink.Feeling]bool{}, simple: mood.Default}
	m.feels.audio()
	m.player = clip.NewPlayer(clip.Vector, &m.locks, cfg.Seed)
	m.screen = display{drawer: face.NewDrawer(face.Standard), chosen: face.Teal, watchers: map[*watcher]bool{}}
	return m, nil
}

// Run is the loop, until ctx ends. It is called once.
func (m *Mind) Run(ctx context.Context) error {
	defer close(m.over)
	mixing := m.audio.run(ctx)
	defer mixing()
	caring := make(chan struct{})
	go func() {
		defer close(caring)
		m.care(ctx)
	}()
	defer func() { <-caring }()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		m.silent(ctx)
	}()
	defer func() { <-heard }()
	tick := time.NewTicker(clip.Step)
	defer tick.Stop()
	fade := time.NewTicker(moodEvery)
	defer fade.Stop()
	running := true
	for ctx.Err() == nil {
		now := m.cfg.Now()
		if busy := m.turn != nil || m.image != nil || len(m.screen.watchers) > 0 || now < m.active; busy != running {
			if running = busy; busy {
				tick.Reset(clip.Step)
			} else {
				tick.Stop()
			}
		}
		select {
		case <-ctx.Done():
		case f := <-m.asks:
			f(m.cfg.Now())
		case what := <-m.stirs:
			m.feels.happened(m.cfg.Now(), what)
		case <-fade.C:
			m.feels.fade(m.cfg.Now())
		case <-tick.C:
			m.step(m.cfg.Now())
		}
	}
	if m.turn != nil {
		m.end(m.cfg.Now(), ending{why: "the robot's character ends"})
	}
	return nil
}

// in runs f in the loop.
func (m *Mind) in(ctx context.Context, f func(now time.Duration)) error {
	done := make(chan struct{})
	select {
	case m.asks <- func(now time.Duration) { defer close(done); f(now) }:
		<-done // the loop does not block
		return nil
	case <-m.over:
		return errs.Coded(errs.Unavailable, "mind_lost", "the robot's character (mindd) ends")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// step plays up to now.
func (m *Mind) step(now time.Duration) {
	if m.beat > 0 && now >= m.beat {
		m.player.Signal(m.beat)
		m.beat = 0
	}
	m.fired = m.player.Step(now, &m.frame, m.fired[:0])
	m.moves.frame(now, &m.frame)
	if t := m.turn; t != nil && t.hand != nil {
		t.hand.frame(now, &m.frame)
		t.track.step(now)
	}
	for _, f := range m.fired {
		switch {
		case f.Event != nil && f.Event.ID == clip.Beat && m.turn != nil:
			m.beat = now + beatWait
			m.turn.track.beat(m.beat)
		case f.Audio != nil && m.turn != nil && m.turn.hand != nil:
			for _, p := range f.Posts {
				if n := m.audio.stored[p.Event]; n != 0 && !m.audio.muted.Load() {
					m.turn.hand.sound(n)
				}
			}
		case f.Record != nil:
			m.heading = m.theta
		case f.Return != nil && m.turn != nil && m.turn.hand != nil:
			m.turn.hand.turnBack(m.heading-m.theta, f.Return)
		}
		if f.End != clip.Playing && m.turn != nil && m.turn.hand != nil {
			e := ending{done: f.End == clip.Finished}
			if !e.done {
				e.why = "something more important needed a part of it"
			}
			m.finish(now, e)
		}
	}
	if t := m.turn; t != nil && t.lock != nil && t.lock.Parts() != motors {
		m.end(now, ending{why: "something more important needed a part of it"})
	}
	if m.image != nil && now >= m.screen.until {
		m.dropImage()
	}
	if layer, ok := m.audio.mouth(now); ok {
		m.frame.Face.Add(&layer)
	}
	m.screen.draw(now, &m.frame)
}

// dropImage shows the eyes again.
func (m *Mind) dropImage() {
	m.image.Release()
	m.image, m.imageOf, m.screen.picture = nil, "", nil
}

// end ends the turn early.
func (m *Mind) end(now time.Duration, e ending) {
	if m.turn.hand != nil {
		m.player.Stop(now)
		m.fired = m.player.Step(now, &m.frame, m.fired[:0]) // takes the end, which is told below
	} else {
		m.turn.cancel()
		m.turn.lock.Release()
	}
	m.finish(now, e)
}

// finish tells how the turn ended.
func (m *Mind) finish(now time.Duration, e ending) {
	m.turn.track.end(e.done)
	m.turn.ended <- e // its only writer: the turn is the loop's no longer
	m.turn, m.active, m.beat = nil, now+time.Second, 0
	m.feels.ordered(false)
	m.screen.scene, m.screen.sceneOf = nil, nil
}

// body returns the body that robotd knows.
func (m *Mind) body(ctx context.Context) (*body, error) {
	limit, cancel := context.WithTimeout(ctx, coreclient.Patience)
	defer cancel()
	if err := m.cfg.Core.Ready(limit); err != nil {
		return nil, coreError(err)
	}
	t, err := m.cfg.Core.Tree(limit)
	if err != nil {
		return nil, coreError(err)
	}
	return bodyOf(t), nil
}

// coreError gives an error of robotd a kind and a code.
func coreError(err error) error {
	var r *coreclient.Refused
	switch {
	case errors.As(err, &r):
		return errs.Coded(errs.Conflict, r.Code, "%s", r.Detail)
	case errors.Is(err, coreclient.ErrLost), errors.Is(err, coreclient.ErrNotConnected):
		return errs.Coded(errs.Unavailable, "core_lost", "%s", err)
	}
	return err
}

// List returns what this body can play.
func (m *Mind) List(ctx context.Context) (l mindlink.List, err error) {
	b, err := m.body(ctx)
	if err != nil {
		return l, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.cfg.Library.Clips)) {
		c := m.cfg.Library.Clips[name]
		l.Clips = append(l.Clips, mindlink.Clip{Name: name, SpanMS: c.Span().Milliseconds(), Tracks: c.Parts().Names()})
	}
	own, err := m.motions(ctx)
	if err != nil {
		return l, err
	}
	for _, c := range own {
		c.Name = motionwire.Prefix + c.Name
		l.Clips = append(l.Clips, c)
	}
	l.Triggers = slices.Sorted(maps.Keys(m.cfg.Library.Triggers))
	for _, name := range slices.Sorted(maps.Keys(m.cfg.Moods)) {
		if w, ok := m.cfg.Moods.Way(name, b.all); ok && (w.Motion == "" || m.cfg.Motions != nil) {
			l.Moods = append(l.Moods, mindlink.Mood{Name: name, Trigger: w.Trigger, Motion: w.Motion})
		}
	}
	switch {
	case b.parts&clip.Speaker != 0:
		l.Sounds = m.audio.names
	case b.bank != "":
		l.Sounds = slices.Sorted(maps.Keys(palette.Stored()))
	}
	lacks := clip.AllParts &^ clip.CubeLights &^ b.parts
	if b.bank != "" {
		lacks &^= clip.Speaker
	}
	l.Lacks = lacks.Names()
	return l, nil
}

var levels = map[string]clip.Level{mindlink.Behavior: clip.Behavior, mindlink.Command: clip.Command, "": clip.Command}

var ignorable = map[string]clip.Parts{mindlink.Head: clip.HeadMotor, mindlink.Lift: clip.LiftMotor, mindlink.Body: clip.Wheels}

// check returns what is wrong with a request.
func check(r *mindlink.Request) error {
	invalid := func(format string, args ...any) error { return errs.Coded(errs.Invalid, "invalid", format, args...) }
	named := 0
	for _, n := range []string{r.Clip, r.Trigger, r.Mood} {
		if n != "" {
			named++
		}
	}
	if named != 1 {
		return invalid("expected one of clip, trigger and mood, found %d of them", named)
	}
	if r.Loops < 0 || r.Loops > mindlink.MaxLoops {
		return invalid("loops: expected 1 to %d, found %d", mindlink.MaxLoops, r.Loops)
	}
	if _, ok := levels[r.Level]; !ok {
		return invalid("level: expected %s or %s, found %.40q", mindlink.Behavior, mindlink.Command, r.Level)
	}
	for _, i := range r.Ignore {
		if ignorable[i] == 0 {
			return invalid("ignore: expected %s, %s or %s, found %.40q", mindlink.Head, mindlink.Lift, mindlink.Body, i)
		}
	}
	if r.Priority < 0 || r.Priority > int(claim.Person) {
		return invalid("priority: expected 1 to %d, found %d", claim.Person, r.Priority)
	}
	return nil
}

// priority is how a request claims motors.
func priority(r *mindlink.Request) claim.Priority {
	usual := claim.Program
	if levels[r.Level] == clip.Behavior {
		usual = claim.Animation
	}
	return cmp.Or(claim.Priority(r.Priority), usual)
}

// Play plays one animation. See mindlink.Mind.
func (m *Mind) Play(ctx context.Context, r mindlink.Request, tell func(mindlink.Progress) error) (e mindlink.Ended, err error) {
	if err := check(&r); err != nil {
		return e, err
	}
	b, err := m.body(ctx)
	if err != nil {
		return e, err
	}
	if r.Mood != "" {
		w, ok := m.cfg.Moods.Way(r.Mood, b.all)
		switch {
		case !ok:
			return e, errs.Coded(errs.NotFound, "not_found", "mood %.60q: this body has no way to show it; list says which there are", r.Mood)
		case w.Motion != "":
			return m.move(ctx, w.Motion, r, tell)
		}
		r.Trigger = w.Trigger
	}
	if name, is := strings.CutPrefix(r.Clip, motionwire.Prefix); is {
		return m.move(ctx, name, r, tell)
	}
	return m.play(ctx, b, r, tell)
}

// choose returns the clip that a request names, or that its trigger draws, and how it plays: without joints whose position is not known, such as those of a
// robot that has just started.
func (m *Mind) choose(ctx context.Context, b *body, r *mindlink.Request) (c *clip.Clip, o clip.Options, err error) {
	at, unknown := map[clip.Parts]float64{}, clip.Parts(0)
	for part, slot := range map[clip.Parts]string{clip.HeadMotor: "robot.body.head.pitch.angle", clip.LiftMotor: "robot.body.arm.z.position"} {
		if b.parts&part == 0 {
			continue
		}
		values, err := m.cfg.Core.Read(ctx, slot)
		if err != nil {
			return nil, o, coreError(err)
		}
		var known bool
		if at[part], known = values[0].Number(); !known {
			unknown |= part
		}
	}
	o = clip.Options{Level: levels[r.Level], Loops: r.Loops, Head: at[clip.HeadMotor], Lift: at[clip.LiftMotor]}
	for _, i := range r.Ignore {
		o.Ignore |= ignorable[i]
	}
	o.Ignore |= motors&^b.parts | unknown
	if r.Clip != "" {
		if c = m.cfg.Library.Clips[r.Clip]; c == nil {
			return nil, o, errs.Coded(errs.NotFound, "not_found", "clip %.60q: this robot has none of that name", r.Clip)
		}
		return c, o, nil
	}
	if err := m.in(ctx, func(now time.Duration) {
		c, err = m.chooser.Choose(now, r.Trigger, m.feels.mood.Simple(), -o.Head*180/math.Pi)
	}); err != nil {
		return nil, o, err
	}
	if err != nil {
		return nil, o, errs.Coded(errs.NotFound, "not_found", "%s", err)
	}
	return c, o, nil
}

// play plays a clip.
func (m *Mind) play(ctx context.Context, b *body, r mindlink.Request, tell func(mindlink.Progress) error) (e mindlink.Ended, err error) {
	c, o, err := m.choose(ctx, b, &r)
	if err != nil {
		return e, err
	}
	parts, has := c.Parts()&^o.Ignore, b.parts
	if b.bank != "" && m.audio.stores(c) {
		has |= clip.Speaker
	}
	lacks := b.lacks(c.Parts() &^ clip.CubeLights &^ (has &^ b.parts))
	asked := clip.Parts(0)
	for _, i := range r.Ignore {
		asked |= ignorable[i]
	}
	for _, name := range (o.Ignore & b.parts & c.Parts() &^ asked).Names() {
		lacks = append(lacks, mindlink.LeftOut{Track: name, Reason: "its position is not known yet"})
	}
	if parts&has == 0 {
		return e, errs.Coded(errs.Invalid, "unable", "%s: this body has nothing that it uses (%s)", c.Name, c.Parts())
	}
	// Before the motors are claimed: what may not play takes them from no program.
	if err := m.may(ctx, &r, o.Level); err != nil {
		return e, err
	}
	scene, left := m.scene(c, b)
	lacks = append(lacks, left...)
	h, err := grab(ctx, m.cfg.Core, b, parts&has, priority(&r))
	if err != nil {
		return e, coreError(err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go h.do(run)
	t := &turn{name: c.Name, program: r.Program, level: o.Level, hand: h, ended: make(chan ending, 1)}
	h.stop = func(why, by string) {
		go func() { // the caller may be the loop, or hold a lock of the hand
			_ = m.in(run, func(now time.Duration) { m.stop(now, t, ending{why: why, by: by}) }) // a turn that is over has no loop to tell
		}()
	}
	inerr := m.in(ctx, func(now time.Duration) {
		if err = m.mayNow(&r, o.Level); err != nil {
			return
		}
		if m.turn != nil {
			m.end(now, ending{why: c.Name + " plays instead", by: r.Program})
		}
		if m.imageOf == r.Program {
			m.dropImage()
		}
		m.feels.ordered(o.Level == clip.Command)
		start := now
		if b.parts&c.Parts()&clip.Speaker != 0 {
			if t.track, err = m.audio.begin(now, c, o); t.track != nil {
				start = t.track.start
			} else {
				lacks = append(lacks, mindlink.LeftOut{Track: clip.Speaker.String(), Reason: err.Error()})
			}
		}
		if err = m.player.Start(start, c, o); err == nil {
			h.began, m.turn = now, t
			m.screen.scene, m.screen.sceneOf = scene, c
			m.step(now)
		} else {
			m.feels.ordered(false)
		}
	})
	if err = cmp.Or(inerr, err); err != nil {
		t.track.end(false)
		h.close(ctx, false)
		if errors.Is(err, clip.ErrLocked) {
			err = errs.Coded(errs.Conflict, "busy", "%s", err)
		}
		return e, err
	}
	loops := max(1, r.Loops)
	end, at := m.follow(ctx, t, mindlink.Began{Clip: c.Name, SpanMS: int64(loops) * c.Span().Milliseconds(), LeftOut: lacks}, tell)
	h.close(ctx, end.done)
	return ended(t, end, at, append(lacks, h.leftOut()...)), nil
}

// scene returns the pictures of a clip, and which are left out. It decodes those that are not in memory, outside of the loop.
func (m *Mind) scene(c *clip.Clip, b *body) (*stage.Scene, []mindlink.LeftOut) {
	if b.parts&clip.Display == 0 {
		return nil, nil
	}
	s, problems := stage.New(c, c.Span(), m.cfg.Sprites.Get)
	var left []mindlink.LeftOut
	for _, p := range problems {
		left = append(left, mindlink.LeftOut{Track: clip.Display.String(), Reason: p.Error()})
	}
	return s, left
}

// ended says to the caller how a turn ended.
func ended(t *turn, end ending, at time.Duration, left []mindlink.LeftOut) mindlink.Ended {
	e := mindlink.Ended{Clip: t.name, Outcome: mindlink.Done, AtMS: at.Milliseconds(), LeftOut: left}
	if !end.done {
		e.Outcome, e.Reason, e.By = mindlink.Stopped, end.why, end.by
	}
	return e
}

// stop ends a turn, if it is still under way.
func (m *Mind) stop(now time.Duration, t *turn, e ending) {
	if m.turn == t {
		m.end(now, e)
	}
}

// may reports whether a request may begin, as far as the mind itself decides.
func (m *Mind) may(ctx context.Context, r *mindlink.Request, level clip.Level) (err error) {
	inerr := m.in(ctx, func(time.Duration) { err = m.mayNow(r, level) })
	return cmp.Or(inerr, err)
}

// mayNow is may, in the loop: an animation gives way to a newer one of its own program, and to a higher level.
func (m *Mind) mayNow(r *mindlink.Request, level clip.Level) error {
	t := m.turn
	if t == nil || t.level < level || t.level == level && t.program == r.Program {
		return nil
	}
	return errs.Coded(errs.Conflict, "busy", "%s of %s plays; it ends first", t.name, t.program)
}

// follow tells the caller how a turn goes, until its end. A caller that leaves ends it.
func (m *Mind) follow(ctx context.Context, t *turn, b mindlink.Began, tell func(mindlink.Progress) error) (end ending, at time.Duration) {
	began := m.cfg.Now()
	leave := func(why string) {
		_ = m.in(context.WithoutCancel(ctx), func(now time.Duration) { m.stop(now, t, ending{why: why, by: t.program}) }) // it fails only when the loop has ended
	}
	if tell(mindlink.Progress{Began: &b}) != nil {
		leave("its program left")
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	gone := ctx.Done()
	for {
		select {
		case end = <-t.ended:
			return end, m.cfg.Now() - began
		case <-gone:
			gone = nil
			leave("its program left")
		case <-tick.C:
			if gone != nil && tell(mindlink.Progress{AtMS: (m.cfg.Now() - began).Milliseconds()}) != nil {
				gone = nil
				leave("its program left")
			}
		}
	}
}

// Hear takes the messages of robotd, beside the client's Handle. It does not block.
func (m *Mind) Hear(msg corelink.Message) {
	m.hearGesture(msg)
	m.hearFeelings(msg)
	if at, ok := msg.(*corelink.Motion); ok {
		select {
		case m.asks <- func(now time.Duration) {
			m.theta = at.Theta
			m.moves.drives(now, at.Speed, at.Turning)
			if m.turn != nil && m.turn.hand != nil {
				m.turn.hand.owners(now, m.cfg.Program, at)
			}
		}:
		default: // the loop is at work: the next report comes soon
		}
	}
}
