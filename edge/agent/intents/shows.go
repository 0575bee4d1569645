package intents

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/power"
	"kennel/infra/errs"
	"kennel/jdocs"
	"kennel/speech/intent"
)

// Animation names an animation of the robot's character, by a trigger or a mood.
type Animation struct {
	Trigger, Mood string
	Loops         int  // 0: once
	Still         bool // the wheels do not move
}

// Character plays animations. Its methods are safe for concurrent use.
type Character interface {
	// Runs reports whether there is a character now. It does not block.
	Runs() bool
	// Play calls began once the animation has begun and returns when it has ended; the end of ctx ends it. An error of kind NotFound says that this body
	// cannot play it.
	Play(ctx context.Context, a Animation, began func()) error
}

// Our own limits of an animation: until it begins, and in all.
const (
	beginsIn  = 3 * time.Second
	playsMost = 30 * time.Second

	chargeSeen = 2 * time.Second // robotd reports the charger five times a second
)

// show is an animation that is asked for.
type show struct {
	Animation
	begun chan error // one slot: nil when it began, else why it did not
}

// stage plays one animation after the other until ctx ends: a later one ends the one that plays, and one without a name only does that.
func (x *Intents) stage(ctx context.Context) {
	stop, over := func() {}, make(chan struct{})
	close(over)
	for {
		select {
		case <-ctx.Done():
			stop()
			<-over
			return
		case s := <-x.shows:
			stop()
			<-over
			if s.Trigger == "" && s.Mood == "" {
				s.begun <- nil
				continue
			}
			var playing context.Context
			playing, stop = context.WithTimeout(ctx, playsMost)
			over = make(chan struct{})
			go func(over chan struct{}, done context.CancelFunc) {
				defer close(over)
				defer done()
				told := false
				err := x.cfg.Character.Play(playing, s.Animation, func() {
					if !told {
						told = true
						s.begun <- nil
					}
				})
				if !told {
					s.begun <- err
				}
			}(over, stop)
		}
	}
}

// play begins an animation and returns once it has begun, or with why it does not. What plays continues after it.
func (x *Intents) play(ctx context.Context, a Animation) error {
	ctx, cancel := context.WithTimeout(ctx, beginsIn)
	defer cancel()
	s := show{a, make(chan error, 1)}
	select {
	case x.shows <- s:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-s.begun:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rest ends what plays.
func (x *Intents) rest(ctx context.Context) {
	if x.cfg.Character != nil {
		_ = x.play(ctx, Animation{}) // at a robot that ends, or whose character hangs, it ends anyway
	}
}

// perform plays an animation as the answer to a person. A robot that is held does not, one that sleeps wakes up for it, and one on its charger does not
// move its wheels.
func (x *Intents) perform(ctx context.Context, a Animation) (Outcome, error) {
	_, held, supply, sleep := x.now()
	if held.By != "" {
		return refuse(Held, "%s holds me: %s", held.By, held.Reason)
	}
	if s, _ := power.ParseSleep(sleep); s.Asleep() {
		if err := x.goTo(ctx, power.Awake, uint8(power.NotSleepy)); err != nil {
			return Outcome{}, err
		}
	}
	a.Still = a.Still || supply.Has(body.OnCharger)
	err := x.play(ctx, a)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return refuse(NotSupported, NotHere)
	case errs.KindOf(err) == errs.Conflict:
		return refuse(Busy, "something else moves me now")
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(Failed, "my character does not answer")
	}
	return Outcome{}, err
}

// with plays an animation beside an answer in words. The answer holds without it.
func (x *Intents) with(ctx context.Context, a Animation) {
	if x.cfg.Character == nil || !x.cfg.Character.Runs() {
		return
	}
	if o, err := x.perform(ctx, a); err != nil || o.Reason != "" {
		x.cfg.Log.DebugContext(ctx, "no animation beside an answer", "why", string(o.Reason), "err", err)
	}
}

// react plays an animation and says something.
func react(a Animation, said string) act {
	return func(x *Intents, ctx context.Context, _ intent.User) (Outcome, error) {
		o, err := x.perform(ctx, a)
		if err == nil && o.Reason == "" {
			o.Text = said
		}
		return o, err
	}
}

// respond does what the robot's file says for an intent without a behaviour of its own: an animation, a mood and a feature (VEC-INT-03).
func (x *Intents) respond(ctx context.Context, r *intent.Response) (Outcome, error) {
	o := Outcome{}
	if r.AnimGroup != "" {
		if x.cfg.Character == nil || !x.cfg.Character.Runs() {
			return refuse(NotSupported, NotHere)
		}
		var err error
		if o, err = x.perform(ctx, Animation{Trigger: r.AnimGroup}); err != nil || o.Reason != "" {
			return o, err
		}
	}
	o.Text, o.Emotion = "all right", r.EmotionEvent
	return o, nil
}

// goodNight says good night and falls asleep.
func (x *Intents) goodNight(ctx context.Context, u intent.User) (Outcome, error) {
	o, err := x.fallAsleep(ctx, u)
	if err == nil && o.Reason == "" {
		o.Text = "good night"
	}
	return o, err
}

// goodMorning wakes up and greets.
func (x *Intents) goodMorning(ctx context.Context, u intent.User) (Outcome, error) {
	o, err := x.wakeUp(ctx, u)
	if err == nil && o.Reason == "" {
		x.with(ctx, Animation{Mood: "good_morning"})
		o.Text = "good morning"
	}
	return o, err
}

// tellAge says for how long the robot has lived: the time that it was on.
func (x *Intents) tellAge(context.Context, intent.User) (Outcome, error) {
	var stats struct {
		Seconds float64 `json:"Alive.seconds"`
	}
	d, err := x.cfg.Docs.Get(jdocs.RobotLifetimeStats)
	if err == nil {
		err = json.Unmarshal([]byte(d.JSON), &stats)
	}
	if err != nil || !(stats.Seconds >= 0 && stats.Seconds < math.MaxInt32) {
		return refuse(Failed, "I do not know how old I am")
	}
	switch age := time.Duration(stats.Seconds) * time.Second; {
	case age < time.Minute:
		return say("I am younger than a minute")
	case age < 48*time.Hour:
		return say("I have lived for %s", words(age.Truncate(time.Minute)))
	default:
		return say("I have lived for %d days", int(age/(24*time.Hour)))
	}
}

// goHome drives onto the charger.
func (x *Intents) goHome(ctx context.Context, _ intent.User) (Outcome, error) {
	if _, _, supply, _ := x.now(); supply.Has(body.OnCharger) {
		return say("I am on my charger")
	}
	if _, held, _, _ := x.now(); held.By != "" {
		return refuse(Held, "%s holds me: %s", held.By, held.Reason)
	}
	found, err := x.cfg.GoHome(ctx)
	switch {
	case err != nil:
		return Outcome{}, err
	case !found:
		return refuse(Failed, "I do not know where my charger is: put me on it once")
	}
	if err := x.charging(ctx); err != nil {
		return refuse(Failed, "I did not get onto my charger")
	}
	return say("I am on my charger")
}

// charging waits until robotd says that the robot is on its charger.
func (x *Intents) charging(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, chargeSeen)
	defer cancel()
	tick := time.NewTicker(chargeSeen / 20)
	defer tick.Stop()
	for {
		if _, _, supply, _ := x.now(); supply.Has(body.OnCharger) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
