package clip

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kennel/edge/face"
)

// Step is how often players are asked: 33 times a second (VEC-AFF-22).
const Step = 30 * time.Millisecond

// Beat is the event at which a clip waits until its owner calls Signal (VEC-AFF-16).
const Beat = "DANCE_BEAT_SYNC"

// Forever is the number of loops of a clip that plays until it is stopped.
const Forever = -1

// SampleTime returns when a sample is heard, for players whose clock is the sound: errors do not add up, however many there were.
func SampleTime(samples int64, rate int) time.Duration {
	r := int64(rate)
	return time.Duration(samples/r)*time.Second + time.Duration(samples%r*int64(time.Second)/r)
}

// Frame says what a robot does at one time. Face is always valid; of the others, those whose parts are in Has.
type Frame struct {
	Face   face.Params
	Has    Parts
	Head   float64       // rad, positive is nose down, as in the tree
	Lift   float64       // m above the ground
	Speed  float64       // m/s forward
	Turn   float64       // rad/s counter-clockwise
	Lights [3][3]float32 // front, middle, back: red, green, blue, 0 to 1

	HeadMove, LiftMove Move // of the keyframes under way, in the units of Head and Lift

	Clip *Clip         // whose pictures are over the face; nil: no clip has the display
	At   time.Duration // since the clip, or its loop, began; below 0 before that
}

// Move is the way of a joint that one keyframe orders, for bodies that plan their motions themselves. It is the same in every frame of that keyframe.
type Move struct {
	N     int // of the keyframe since the clip began, from 1; 0: none yet
	To    float64
	Takes time.Duration // the whole of it
}

// SetPoint is a value for a slot of the structure tree, in its unit.
type SetPoint struct {
	Name  string
	Value float64
}

var lightNames = [3][3]string{
	{"robot.body.led[0].r", "robot.body.led[0].g", "robot.body.led[0].b"},
	{"robot.body.led[1].r", "robot.body.led[1].g", "robot.body.led[1].b"},
	{"robot.body.led[2].r", "robot.body.led[2].g", "robot.body.led[2].b"},
}

// AppendSetPoints appends what the frame says of motors and lights by standard names, so that each body takes what it has.
func (f *Frame) AppendSetPoints(dst []SetPoint) []SetPoint {
	if f.Has&HeadMotor != 0 {
		dst = append(dst, SetPoint{"robot.body.head.pitch.val", f.Head})
	}
	if f.Has&LiftMotor != 0 {
		dst = append(dst, SetPoint{"robot.body.arm.z.val", f.Lift})
	}
	if f.Has&Wheels != 0 {
		dst = append(dst, SetPoint{"robot.xSpeed", f.Speed}, SetPoint{"robot.yawSpeed", f.Turn})
	}
	if f.Has&BackpackLights != 0 {
		for i, light := range lightNames {
			for c, name := range light {
				dst = append(dst, SetPoint{name, float64(f.Lights[i][c])})
			}
		}
	}
	return dst
}

// Post is a sound to begin.
type Post struct {
	Event  uint32
	Volume float32
}

// Fired is something that begins at a time: exactly one of its fields but Clip, At and Late is set.
type Fired struct {
	Clip    string
	At      time.Duration // of the clip
	Late    time.Duration // how long before the step it was due
	Audio   *Audio        // its groups are drawn: Posts has the sounds
	Posts   []Post
	Sprites *Sprites
	Event   *Event
	Record  *Record
	Return  *Return
	Box     *Box
	End     Ending
}

// Ending says how a clip ended.
type Ending int

// The endings.
const (
	Playing Ending = iota
	Finished
	Stopped // by Stop, or because a more important owner took one of its parts
)

// Options say how to play.
type Options struct {
	Level  Level
	Loops  int   // 0: once; Forever
	Ignore Parts // tracks that neither lock nor move (VEC-TRG-07): of head, lift and wheels
	Head   float64
	Lift   float64 // where head (rad, as in Frame) and lift (m) are now
}

// mark is a keyframe that fires once.
type mark struct {
	at   uint32
	kind int // of the marks below
	i    int
}

const (
	markAudio = iota
	markSprites
	markEvent
	markRecord
	markReturn
	markBox
)

// ramp is a motion of one joint, in degrees or millimetres.
type ramp struct {
	at, takes float64 // ms
	from, to  float64
}

// Player plays one clip after another on one robot. Between clips the face is neutral and alive. It is a pure step: time is an argument, and the same seed,
// calls and times give the same frames. Step allocates nothing but what it fires. A Player belongs to one goroutine.
type Player struct {
	limits Limits
	locks  *Locks
	seed   uint64
	rand   *rand.Rand

	clip    *Clip
	lock    *Lock
	needs   Parts
	ignore  Parts
	start   time.Duration
	loops   int
	round   int // which loop it is, from 0
	waiting bool
	marks   []mark
	next    int
	faces   []face.Params
	head    []ramp
	lift    []ramp
	at      [2]float64 // degrees and mm where head and lift were at the start of the loop

	shown face.Params // the face at the last step
	base  face.Params // from where the face moves to the clip's first keyframe, or to neutral after it
	since time.Duration
	look  *[2]float32
	halt  bool // the wheels have to be stopped
	end   Ending
	was   string // name of the clip that ended
}

// NewPlayer returns a player for a body. Several may share locks, in one goroutine.
func NewPlayer(l Limits, locks *Locks, seed uint64) *Player {
	return &Player{limits: l, locks: locks, seed: seed, rand: rand.New(rand.NewPCG(seed, 0x6b656e6e656c)), shown: face.Neutral, base: face.Neutral}
}

// ErrLoops: a clip without any time cannot repeat for ever.
var ErrLoops = errors.New("clip takes no time")

// Start begins a clip at a time, now or a little later, instead of one that plays. A Problem if the clip asks for what the body cannot do, ErrLocked if it needs a part that something
// as important has, ErrLoops; then whatever played plays further.
func (p *Player) Start(now time.Duration, c *Clip, o Options) error {
	for _, problem := range c.Check(p.limits) {
		return problem
	}
	if c.Span() == 0 && o.Loops == Forever {
		return fmt.Errorf("%w: %.60s", ErrLoops, c.Name)
	}
	ignore := o.Ignore & (HeadMotor | LiftMotor | Wheels)
	before := p.lock
	if before != nil && before.level > o.Level {
		return fmt.Errorf("%w: %s plays, which %s may not interrupt", ErrLocked, before.name, c.Name)
	}
	held := before.Parts()
	before.Release() // a clip of this player gives way to the next one
	lock, err := p.locks.Take(c.Name, o.Level, c.Parts()&^ignore)
	if err != nil {
		if before != nil {
			p.lock, _ = p.locks.Take(before.name, before.level, held) // it had them a moment ago
		}
		return err
	}
	if p.clip != nil {
		p.finish(now, Stopped)
	}
	p.lock = lock
	p.clip, p.ignore, p.needs, p.start, p.loops, p.round, p.waiting = c, ignore, c.Parts()&^ignore, now, o.Loops, 0, false
	p.base, p.since = p.shown, now
	p.at = [2]float64{within(-o.Head*180/math.Pi, p.limits.HeadMin, p.limits.HeadMax), within(o.Lift*1000, p.limits.LiftMin, p.limits.LiftMax)}
	p.faces = p.faces[:0]
	for i := range c.Tracks.Face {
		f, _ := c.Tracks.Face[i].Params() // Check saw it
		p.faces = append(p.faces, f)
	}
	p.mark()
	p.loop()
	return nil
}

// mark lists what fires, by time.
func (p *Player) mark() {
	p.marks = p.marks[:0]
	k := &p.clip.Tracks
	for i, x := range k.Audio {
		p.marks = append(p.marks, mark{x.Trigger, markAudio, i})
	}
	for i, x := range k.Sprites {
		p.marks = append(p.marks, mark{x.Trigger, markSprites, i})
	}
	for i, x := range k.Events {
		p.marks = append(p.marks, mark{x.Trigger, markEvent, i})
	}
	for i, x := range k.Record {
		p.marks = append(p.marks, mark{x.Trigger, markRecord, i})
	}
	for i, x := range k.Return {
		p.marks = append(p.marks, mark{x.Trigger, markReturn, i})
	}
	for i, x := range k.Boxes {
		p.marks = append(p.marks, mark{x.Trigger, markBox, i})
	}
	slices.SortStableFunc(p.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
}

// loop prepares one time through the clip: the motions, from where the joints are, with what varies drawn again.
func (p *Player) loop() {
	p.next, p.head, p.lift = 0, p.head[:0], p.lift[:0]
	vary := func(v uint8) float64 { return (2*p.rand.Float64() - 1) * float64(v) }
	for _, x := range p.clip.Tracks.Head {
		to := within(float64(x.Angle)+vary(x.Variability), p.limits.HeadMin, p.limits.HeadMax)
		p.head = append(p.head, ramp{float64(x.Trigger), float64(x.Duration), value(p.head, float64(x.Trigger), p.at[0]), to})
	}
	for _, x := range p.clip.Tracks.Lift {
		to := within(float64(x.Height)+vary(x.Variability), p.limits.LiftMin, p.limits.LiftMax)
		p.lift = append(p.lift, ramp{float64(x.Trigger), float64(x.Duration), value(p.lift, float64(x.Trigger), p.at[1]), to})
	}
}

// within returns the nearest value between two limits; for one that is not a number, the lower limit.
func within(v, low, high float64) float64 {
	if v >= low {
		return min(v, high)
	}
	return low
}

// begun returns how many ramps have begun at a time.
func begun(ramps []ramp, ms float64) int {
	n, _ := slices.BinarySearchFunc(ramps, ms, func(r ramp, ms float64) int {
		if r.at <= ms {
			return -1
		}
		return 1
	})
	return n
}

// move returns the ramp of a time as a Move, of which one unit is so many degrees or millimetres.
func (p *Player) move(ramps []ramp, ms, unit float64) Move {
	n := begun(ramps, ms)
	r := &ramps[n-1]
	return Move{N: p.round*len(ramps) + n, To: r.to / unit, Takes: time.Duration(r.takes) * time.Millisecond}
}

// value returns where a joint is at a time, which began at a place.
func value(ramps []ramp, ms, began float64) float64 {
	n := begun(ramps, ms)
	if n == 0 {
		return began
	}
	r := &ramps[n-1]
	if ms >= r.at+r.takes {
		return r.to
	}
	return r.from + (r.to-r.from)*smooth((ms-r.at)/r.takes)
}

// Playing returns the name of the clip that plays; "" if none does.
func (p *Player) Playing() string {
	if p.clip == nil {
		return ""
	}
	return p.clip.Name
}

// Stop ends the clip that plays.
func (p *Player) Stop(now time.Duration) {
	if p.clip != nil {
		p.finish(now, Stopped)
	}
}

// Look makes idle eyes look at a point, in pixels from the middle of the display, until look is nil.
func (p *Player) Look(at *[2]float32) { p.look = at }

// Signal lets a clip continue that waits at a Beat, whose event came or was cancelled.
func (p *Player) Signal(now time.Duration) {
	if p.waiting {
		p.waiting = false
		p.start = now - time.Duration(p.marks[p.next-1].at)*time.Millisecond
	}
}

// finish ends the clip.
func (p *Player) finish(now time.Duration, how Ending) {
	p.halt = p.halt || p.needs&Wheels != 0
	p.lock.Release()
	p.was, p.end = p.clip.Name, how
	p.clip, p.lock, p.needs, p.waiting = nil, nil, 0, false
	p.base, p.since = p.shown, now
}

// Step writes what the robot does at a time into f, and appends what began since the step before to fired. A clip of which a part was taken stops as a whole.
func (p *Player) Step(now time.Duration, f *Frame, fired []Fired) []Fired {
	f.Has, f.Speed, f.Turn, f.Clip, f.At = 0, 0, 0, nil, 0
	if p.clip != nil && p.lock.Parts() != p.needs {
		p.finish(now, Stopped)
	}
	if p.clip != nil {
		fired = p.advance(now, f, fired)
	}
	if p.end != Playing {
		fired = append(fired, Fired{Clip: p.was, End: p.end})
		p.end = Playing
	}
	if p.clip == nil || p.needs&Display == 0 {
		f.Face = face.Mix(&p.base, &face.Neutral, float32(smooth(float64(now-p.since)/float64(settle))))
		layer := KeepAlive(p.seed, now, p.look)
		f.Face.Add(&layer)
	}
	p.shown = f.Face
	if p.halt && f.Has&Wheels == 0 {
		f.Has |= Wheels // at speed 0
	}
	p.halt = false
	return fired
}

// settle is how long a face takes from a clip's last one to neutral; our own.
const settle = 250 * time.Millisecond

// advance plays up to a time.
func (p *Player) advance(now time.Duration, f *Frame, fired []Fired) []Fired {
	span := max(p.clip.Span(), time.Millisecond)
	t := now - p.start
	for !p.waiting && t >= span {
		if fired = p.fire(span, t, fired); p.waiting {
			break
		}
		if p.loops != Forever {
			if p.loops--; p.loops <= 0 {
				p.frame(span, f)
				p.shown = f.Face
				p.finish(p.start+span, Finished)
				f.Has, f.Speed, f.Turn = f.Has&^Wheels, 0, 0
				return fired
			}
		}
		late := t/span - 1 // whole loops, of which none is made up for
		if p.loops != Forever {
			late = min(late, time.Duration(p.loops-1))
			p.loops -= int(late)
		}
		p.round++
		p.start += (1 + late) * span
		t -= (1 + late) * span
		p.at = [2]float64{value(p.head, math.Inf(1), p.at[0]), value(p.lift, math.Inf(1), p.at[1])}
		if n := len(p.faces); n > 0 {
			p.base = p.faces[n-1]
		}
		p.loop()
	}
	if !p.waiting {
		fired = p.fire(t, t, fired)
	}
	if p.waiting {
		t = time.Duration(p.marks[p.next-1].at) * time.Millisecond
	}
	p.frame(t, f)
	return fired
}

// fire appends what is due at a time of the clip; now is the time that it really is.
func (p *Player) fire(t, now time.Duration, fired []Fired) []Fired {
	k := &p.clip.Tracks
	for p.next < len(p.marks) {
		m := p.marks[p.next]
		at := time.Duration(m.at) * time.Millisecond
		if at > t {
			break
		}
		p.next++
		x := Fired{Clip: p.clip.Name, At: at, Late: now - at}
		switch m.kind {
		case markAudio:
			x.Audio = &k.Audio[m.i]
			x.Posts = p.draw(x.Audio)
		case markSprites:
			x.Sprites = &k.Sprites[m.i]
		case markEvent:
			x.Event = &k.Events[m.i]
		case markRecord:
			x.Record = &k.Record[m.i]
		case markReturn:
			if p.ignore&Wheels != 0 {
				continue
			}
			x.Return = &k.Return[m.i]
		case markBox:
			x.Box = &k.Boxes[m.i]
		}
		fired = append(fired, x)
		if x.Event != nil && x.Event.ID == Beat {
			p.waiting = true
			break
		}
	}
	return fired
}

// draw draws one sound of each group by its probabilities, or none if they leave room for it (VEC-AFF-09).
func (p *Player) draw(a *Audio) (posts []Post) {
	for _, g := range a.Groups {
		sum := 0.0
		for _, v := range g.Probabilities {
			sum += float64(v)
		}
		x := p.rand.Float64() * max(sum, 1)
		for i, v := range g.Probabilities {
			if x -= float64(v); x < 0 {
				posts = append(posts, Post{g.Events[i], g.Volumes[i]})
				break
			}
		}
	}
	return posts
}

// frame writes what the clip says of a time.
func (p *Player) frame(t time.Duration, f *Frame) {
	ms, k := float64(t)/float64(time.Millisecond), &p.clip.Tracks
	if p.needs&HeadMotor != 0 && ms >= p.head[0].at {
		f.Has |= HeadMotor
		f.Head = -value(p.head, ms, p.at[0]) * math.Pi / 180
		f.HeadMove = p.move(p.head, ms, -180/math.Pi)
	}
	if p.needs&LiftMotor != 0 && ms >= p.lift[0].at {
		f.Has |= LiftMotor
		f.Lift = value(p.lift, ms, p.at[1]) / 1000
		f.LiftMove = p.move(p.lift, ms, 1000)
	}
	if p.needs&Wheels != 0 && len(k.Body) > 0 && !returning(k.Return, ms) {
		f.Has |= Wheels
		f.Speed, f.Turn = p.drive(ms)
	}
	if p.needs&BackpackLights != 0 && ms >= float64(k.Backpack[0].Trigger) {
		f.Has |= BackpackLights
		p.light(ms, f)
	}
	if p.needs&Display != 0 {
		f.Has |= Display
		f.Face, f.Clip, f.At = p.face(ms), p.clip, t
	}
}

// returning reports whether the robot turns back to its recorded heading, which its owner does and not a speed of the clip.
func returning(turns []Return, ms float64) bool {
	return slices.ContainsFunc(turns, func(r Return) bool { return ms >= float64(r.Trigger) && ms < float64(r.Trigger)+float64(r.takes()) })
}

// face returns the face of a time: between keyframes it moves in a straight line, before the first from what was shown, and after the last it stays.
func (p *Player) face(ms float64) face.Params {
	frames := p.clip.Tracks.Face
	n, _ := slices.BinarySearchFunc(frames, ms, func(f Face, ms float64) int {
		if float64(f.Trigger) <= ms {
			return -1
		}
		return 1
	})
	if len(frames) == 0 {
		return p.base
	}
	if n == len(frames) {
		return p.faces[n-1]
	}
	from, began := &p.base, 0.0
	if n > 0 {
		from, began = &p.faces[n-1], float64(frames[n-1].Trigger)
	}
	return face.Mix(from, &p.faces[n], float32(max(0, (ms-began)/(float64(frames[n].Trigger)-began)))) // below 0 before the clip begins
}

// drive returns speed and turn of a time (VEC-AFF-17).
func (p *Player) drive(ms float64) (speed, turn float64) {
	for i := range p.clip.Tracks.Body {
		b := &p.clip.Tracks.Body[i]
		next := math.Inf(1)
		if i+1 < len(p.clip.Tracks.Body) {
			next = float64(p.clip.Tracks.Body[i+1].Trigger)
		}
		if at := float64(b.Trigger); ms < at || ms >= min(at+float64(b.Duration), next) {
			continue
		}
		switch b.Radius {
		case Straight:
			return float64(b.Speed) / 1000, 0
		case TurnInPlace:
			return 0, float64(b.Speed) * math.Pi / 180
		}
		r, _ := b.Radius.number() // Check saw it
		return float64(b.Speed) / 1000, float64(b.Speed) / r
	}
	return 0, 0
}

// light writes the lights of a time: each keyframe holds its colours, then they blend to the next ones (VEC-AFF-13).
func (p *Player) light(ms float64, f *Frame) {
	frames := p.clip.Tracks.Backpack
	i := len(frames) - 1
	for i > 0 && float64(frames[i].Trigger) > ms {
		i--
	}
	share := 0.0
	next := frames[i]
	if i+1 < len(frames) {
		next = frames[i+1]
		held := float64(frames[i].Trigger) + float64(frames[i].Duration)
		if ms > held {
			share = (ms - held) / (float64(next.Trigger) - held)
		}
	}
	for l, pair := range [3][2][]float32{{frames[i].Front, next.Front}, {frames[i].Middle, next.Middle}, {frames[i].Back, next.Back}} {
		for c := range 3 {
			var a, b float32
			if len(pair[0]) > c {
				a = pair[0][c]
			}
			if len(pair[1]) > c {
				b = pair[1][c]
			}
			f.Lights[l][c] = a + (b-a)*float32(share)
		}
	}
}
