package bank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/sound"
)

// Object is a game object: events, switches, parameters and volumes of one do not touch the other (VEC-SND-08).
type Object uint8

// The game objects.
const (
	Animation  Object = iota // clips
	Procedural               // motion
	objects
)

var objectNames = [objects]string{"Animation", "Procedural"}

// String returns the object's name, whose hash is its number.
func (o Object) String() string {
	if o < objects {
		return objectNames[o]
	}
	return fmt.Sprintf("object %d", uint8(o))
}

// Stimulation is the parameter that makes lively events rarer and quieter as it falls from 1 to 0 (VEC-SND-05). A robot that never sets it is fully stimulated.
const Stimulation = "Robot_Vic_Stimulation"

// Recent is how many of the variants that were played last a step avoids (VEC-SND-04).
const Recent = 6

// Call is one call of an engine, as the original's tools see it (part of VEC-SND-14).
type Call struct {
	Type      string  `json:"type"`
	Event     string  `json:"eventName,omitempty"`
	Object    uint32  `json:"gameObjectId,omitempty"`
	Callback  bool    `json:"hasCallback,omitempty"`
	Group     uint32  `json:"stateGroupId,omitempty"`
	State     uint32  `json:"stateId,omitempty"`
	Switch    uint32  `json:"switchGroupId,omitempty"`
	SwitchTo  uint32  `json:"switchStateId,omitempty"`
	TimeAsked float64 `json:"time"` // s of sound since the mixer began
}

// Config configures an Engine.
type Config struct {
	Mixer   *sound.Mixer
	Banks   []*Bank         // later ones win (VEC-BNK-02)
	Random  rand.Source     // nil: one of its own
	Observe func(call Call) // nil: none; must not call the engine, and not block
}

// Engine carries out events. All methods may be called concurrently.
type Engine struct {
	m       *sound.Mixer
	observe func(Call)

	mu       sync.Mutex
	random   *rand.Rand
	all      Bank // merged
	states   map[uint32]uint32
	objects  [objects]object
	variants map[*Action][]int // the newest last
}

// object is the state of a game object.
type object struct {
	switches   map[uint32]uint32
	parameters map[uint32]ramp
	volume     float64
	muted      bool
	playing    []started
}

// started is a sound that an event began.
type started struct {
	*sound.Playing
	event, sound uint32
	gain         float64 // without the object's volume
}

// ramp is the value of a parameter: it moves along a line (part of VEC-AFF-12).
type ramp struct {
	from, to   float64
	begin, end int64 // samples of the mixer
}

func (r ramp) at(position int64) float64 {
	if position >= r.end {
		return r.to
	}
	return r.from + (r.to-r.from)*float64(position-r.begin)/float64(r.end-r.begin)
}

// NewEngine returns an engine for the events of banks.
func NewEngine(cfg Config) *Engine {
	if cfg.Random == nil {
		cfg.Random = rand.NewPCG(rand.Uint64(), rand.Uint64())
	}
	e := &Engine{m: cfg.Mixer, observe: cfg.Observe, random: rand.New(cfg.Random), states: map[uint32]uint32{}, variants: map[*Action][]int{}}
	e.all = *Merge(cfg.Banks...)
	for i := range e.objects {
		e.objects[i] = object{switches: map[uint32]uint32{}, parameters: map[uint32]ramp{}, volume: 1}
	}
	return e
}

// Merge returns the sounds, events and switches of all banks; of equal names the later bank's (VEC-BNK-02).
func Merge(banks ...*Bank) *Bank {
	all := &Bank{Sounds: map[uint32]*Sample{}, Events: map[uint32]*Event{}, Switches: map[uint32]*Thresholds{}, Names: map[uint32]string{}}
	for _, k := range banks {
		for id, s := range k.Sounds {
			all.Sounds[id] = s
			delete(all.Events, id) // a later sound replaces an earlier event
		}
		for id, e := range k.Events {
			all.Events[id] = e
		}
		for id, t := range k.Switches {
			all.Switches[id] = t
		}
		for id, name := range k.Names {
			all.Names[id] = name
		}
	}
	return all
}

// Missing returns an error for each sound that an event plays and that no bank has, and for each that cannot be made.
func (k *Bank) Missing(rate int) (errs []error) {
	for id, e := range k.Events {
		for _, a := range e.Actions {
			for _, c := range a.Choices {
				if k.Sounds[c.Sound] == nil {
					errs = append(errs, fmt.Errorf("%w: event %s: sound %s", ErrUnknown, k.Names[id], k.Names[c.Sound]))
				}
			}
		}
	}
	for _, s := range k.Sounds {
		if _, err := s.At(rate); err != nil {
			errs = append(errs, fmt.Errorf("sound %s: %w", s.Name, err))
		}
	}
	return errs
}

// has returns an event, or one that plays the sound of the number.
func (e *Engine) has(id uint32) *Event {
	if ev := e.all.Events[id]; ev != nil {
		return ev
	}
	s := e.all.Sounds[id]
	if s == nil {
		return nil
	}
	ev := &Event{Name: s.Name, Actions: []Action{{Choices: []Choice{{Sound: id, Gain: 1, Pitch: 1, Speed: 1, Loops: 1}}}}}
	e.all.Events[id] = ev // one event, so that its variants are known again
	return ev
}

// Post carries out an event on a game object, with the volume that a clip gives it, 0 to 1: its first sound is heard at a place of the mixer (sound.Options). It
// returns what begins to play: nothing for an event that was drawn to be silent. ErrUnknown, sound.ErrFull.
func (e *Engine) Post(o Object, event uint32, volume float64, at int64) ([]*sound.Playing, error) {
	if o >= objects {
		return nil, fmt.Errorf("%w: game object %d", ErrUnknown, o)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	ev := e.has(event)
	if ev == nil {
		return nil, fmt.Errorf("%w: event %d", ErrUnknown, event)
	}
	e.tell(Call{Type: "PostAudioEvent", Event: ev.Name, Object: clip.SoundID(o.String())})
	gain := volume
	if ev.Lively {
		v := min(1, max(0, e.value(o, clip.SoundID(Stimulation), 1)))
		if e.random.Float64() >= 0.2+0.8*v {
			return nil, nil
		}
		gain *= 0.4 + 0.6*v
	}
	var all []*sound.Playing
	next, last := at, at
	for i := range ev.Actions {
		a := &ev.Actions[i]
		if !e.holds(o, a.When) {
			continue
		}
		switch a.Do {
		case Play, With:
			begin := next
			if a.Do == With {
				begin = last
			}
			p, ends, err := e.play(o, event, a, gain, begin)
			if err != nil {
				return all, fmt.Errorf("event %s: %w", ev.Name, err)
			}
			if p != nil {
				all, begin = append(all, p), p.At()
			}
			next, last = max(next, ends), begin
		case Wait:
			next = max(next, e.m.Position()) + int64(a.Value/1000*float64(e.m.Rate()))
		default:
			e.act(o, a)
		}
	}
	return all, nil
}

// play plays one of the choices of a step; it returns nothing for a muted object. ends is the place after its last sample.
func (e *Engine) play(o Object, event uint32, a *Action, gain float64, at int64) (p *sound.Playing, ends int64, err error) {
	c := &a.Choices[e.choose(a)]
	sample := e.all.Sounds[c.Sound]
	if sample == nil {
		return nil, at, fmt.Errorf("%w: sound %s", ErrUnknown, e.all.Names[c.Sound])
	}
	s, err := sample.At(e.m.Rate())
	if err != nil {
		return nil, at, err
	}
	obj := &e.objects[o]
	gain *= c.Gain
	pitch := c.Pitch * math.Pow(2, c.Vary/1200*(2*e.random.Float64()-1))
	at = max(at, e.m.Position())
	if obj.muted || gain*obj.volume <= 0 {
		return nil, at + int64(float64(len(s.Samples)*max(1, c.Loops))/c.Speed), nil
	}
	p, err = e.m.Play(s, sound.Options{Channel: []sound.Channel{sound.Files, sound.Procedural}[o], At: at, Gain: gain * obj.volume,
		Pitch: min(max(pitch, sound.MinPitch), sound.MaxPitch), Speed: c.Speed, Loops: c.Loops})
	if err != nil {
		return nil, at, err
	}
	obj.playing = append(slices.DeleteFunc(obj.playing, func(s started) bool { return over(s.Playing) }), started{p, event, c.Sound, gain})
	return p, p.At() + int64(float64(len(s.Samples)*max(1, c.Loops))/c.Speed), nil
}

func over(p *sound.Playing) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// choose draws one of the choices that was not among the last ones (VEC-SND-04).
func (e *Engine) choose(a *Action) int {
	n := len(a.Choices)
	past := e.variants[a]
	past = past[max(0, len(past)-min(Recent, n-1)):]
	left := make([]int, 0, n)
	for i := range n {
		if !slices.Contains(past, i) {
			left = append(left, i)
		}
	}
	i := left[e.random.IntN(len(left))]
	e.variants[a] = append(slices.Clone(past), i)
	return i
}

// act carries out what is not heard by itself.
func (e *Engine) act(o Object, a *Action) {
	obj := &e.objects[o]
	switch a.Do {
	case Stop:
		for _, s := range obj.playing {
			if a.Target == 0 || a.Target == s.event || a.Target == s.sound {
				s.Stop(time.Duration(a.Over * float64(time.Millisecond)))
			}
		}
	case Volume, Mute, Unmute:
		switch obj.muted = a.Do == Mute; a.Do {
		case Volume:
			obj.volume = a.Value
		}
		for _, s := range obj.playing {
			if obj.muted {
				s.SetGain(0)
			} else {
				s.SetGain(s.gain * obj.volume)
			}
		}
	case Set:
		e.set(o, a.Target, a.Value, a.Over)
	}
}

// holds reports whether a condition is true for a game object.
func (e *Engine) holds(o Object, c Condition) bool {
	if c.Group != 0 {
		return e.switchOf(o, c.Group) == c.State
	}
	if c.Parameter != 0 {
		v := e.value(o, c.Parameter, 0)
		return v >= c.From && v < c.Below
	}
	return true
}

// switchOf returns a switch of a game object: what its parameter says, what was set, or the state of that name.
func (e *Engine) switchOf(o Object, group uint32) uint32 {
	if t := e.all.Switches[group]; t != nil {
		v, i := e.value(o, t.Parameter, 0), 0
		for i < len(t.Values) && v >= t.Values[i] {
			i++
		}
		return t.States[i]
	}
	if s, ok := e.objects[o].switches[group]; ok {
		return s
	}
	return e.states[group]
}

// value returns a parameter of a game object now.
func (e *Engine) value(o Object, parameter uint32, otherwise float64) float64 {
	r, ok := e.objects[o].parameters[parameter]
	if !ok {
		return otherwise
	}
	return r.at(e.m.Position())
}

// Parameter returns a parameter of a game object now; 0: it was never set.
func (e *Engine) Parameter(o Object, name string) float64 {
	if o >= objects {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.value(o, clip.SoundID(name), 0)
}

func (e *Engine) set(o Object, parameter uint32, value, overMS float64) {
	now := e.m.Position()
	e.objects[o].parameters[parameter] = ramp{e.value(o, parameter, 0), value, now, now + int64(overMS/1000*float64(e.m.Rate()))}
}

// SetState sets a state of all game objects (part of VEC-AFF-10).
func (e *Engine) SetState(group, state uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.states[group] = state
	e.tell(Call{Type: "SetState", Group: group, State: state})
}

// SetSwitch sets a switch of a game object (part of VEC-AFF-11).
func (e *Engine) SetSwitch(o Object, group, state uint32) {
	if o >= objects {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.objects[o].switches[group] = state
	e.tell(Call{Type: "SetSwitchState", Switch: group, SwitchTo: state, Object: clip.SoundID(o.String())})
}

// SetParameter moves a parameter of a game object to a value, in a time of sound (part of VEC-AFF-12). Values that are no numbers are ignored.
func (e *Engine) SetParameter(o Object, parameter uint32, value float64, over time.Duration) {
	if o >= objects || math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(o, parameter, value, float64(max(0, over).Microseconds())/1000)
}

// SetMood sets a parameter of both game objects, such as Stimulation (VEC-SND-06).
func (e *Engine) SetMood(parameter string, value float64) {
	for o := range objects {
		e.SetParameter(o, clip.SoundID(parameter), value, 0)
	}
}

// StopAll stops what a game object plays.
func (e *Engine) StopAll(o Object, fade time.Duration) {
	if o >= objects {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tell(Call{Type: "StopAllAudioEvents", Object: clip.SoundID(o.String())})
	for _, s := range e.objects[o].playing {
		s.Stop(fade)
	}
}

// Fire does what a clip says of sounds, at a place of the mixer: states, switches and parameters, then its sounds (part of VEC-AFF-08). Sounds that the banks do not
// have are left out, and told. at 0 is now.
func (e *Engine) Fire(f *clip.Fired, at int64) (all []*sound.Playing, err error) {
	if f.Audio == nil {
		return nil, nil
	}
	for _, s := range f.Audio.States {
		e.SetState(s.Group, s.State)
	}
	for _, s := range f.Audio.Switches {
		e.SetSwitch(Animation, s.Group, s.State)
	}
	for _, p := range f.Audio.Parameters {
		e.SetParameter(Animation, p.Parameter, float64(p.Value), time.Duration(p.Time)*time.Millisecond)
	}
	for _, post := range f.Posts {
		playing, e := e.Post(Animation, post.Event, float64(post.Volume), at)
		if e != nil && err == nil {
			err = e
		}
		all = append(all, playing...)
	}
	return all, err
}

func (e *Engine) tell(c Call) {
	if e.observe != nil {
		c.TimeAsked = float64(e.m.Position()) / float64(e.m.Rate())
		e.observe(c)
	}
}
