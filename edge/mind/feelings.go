package mind

import (
	"context"
	"math"
	"time"

	"kennel/edge/core/corelink"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mood"
	"kennel/edge/power"
	"kennel/edge/sound/bank"
	"kennel/infra/errs"
)

// feelings are the robot's mood, as the loop has it: what the robot tells moves it, sounds and choices follow it, and other programs hear of it.
type feelings struct {
	mood    *mood.Mood
	set     func(parameter string, value float64)
	moving  func() (speed, acceleration float64) // m/s and m/s² forward
	readers map[chan mindlink.Feeling]bool
	told    mood.Emotions
	simple  string // as told
	bliss   float64
	command bool // what plays was ordered by a person or a program
}

// Of moods; our own.
const (
	moodEvery   = time.Second     // how often it fades
	toldChange  = 0.05            // the least that an emotion fades before that is told
	blissStep   = 0.25            // of each petting
	blissFades  = 2 * time.Minute // from 1 to 0
	purrLevel   = "Robot_Vic_Purr_Level"
	maxFeelings = 64 // changes that a reader may be behind with; one that is further behind misses some
)

// happened applies what a part of the robot tells, such as robot.touched.
func (f *feelings) happened(now time.Duration, what string) {
	event := f.mood.Told(what)
	if event == "" {
		return
	}
	all := []string{event}
	if event == "PettingBlissLevelIncrease" && f.bliss < 1 {
		if f.bliss = min(1, f.bliss+blissStep); f.bliss == 1 {
			all = append(all, "PettingReachedMaxBliss")
		}
	}
	_ = f.post(now, all) // a robot's own files may not have every event
}

// post applies emotion events, and tells of them.
func (f *feelings) post(now time.Duration, events []string) error {
	f.step(now) // the fading up to now is told first
	f.told = f.mood.Emotions()
	if err := f.mood.Post(now, events...); err != nil {
		return err
	}
	f.tell(events)
	return nil
}

// step lets the mood fade.
func (f *feelings) step(now time.Duration) {
	f.mood.Step(now)
	changed := f.mood.Simple() != f.simple
	for e, v := range f.mood.Emotions() {
		d := math.Abs(v - f.told[e])
		changed = changed || d >= toldChange || d > 0 && v == 0
	}
	if changed {
		f.tell(nil)
	}
}

// fade is step once in moodEvery.
func (f *feelings) fade(now time.Duration) {
	f.bliss = max(0, f.bliss-float64(moodEvery)/float64(blissFades))
	f.step(now)
	f.audio()
}

// ordered says whether a person or a program ordered what plays.
func (f *feelings) ordered(is bool) {
	f.command = is
	f.audio()
}

// audio sets the parameters of the sounds. Clips that a person or a program orders play unchanged; sounds that the robot makes of its own accord are rarer and quieter
// when it is less stimulated.
func (f *feelings) audio() {
	f.mood.Audio(f.set)
	if f.command {
		f.set(bank.Stimulation, 1)
	}
	f.set(purrLevel, f.bliss)
}

// tell tells all readers what the robot feels now.
func (f *feelings) tell(events []string) {
	now := f.feeling(events)
	f.told, f.simple = f.mood.Emotions(), f.mood.Simple()
	f.audio()
	for r := range f.readers {
		select {
		case r <- now:
		default: // it does not read
		}
	}
}

func (f *feelings) feeling(events []string) mindlink.Feeling {
	speed, acceleration := f.moving()
	all := map[string]mindlink.Emotion{}
	for e, v := range f.mood.Emotions() {
		least, greatest := f.mood.Range(mood.Emotion(e))
		all[mood.Emotion(e).String()] = mindlink.Emotion{Value: v, Before: f.told[e], Min: least, Max: greatest}
	}
	return mindlink.Feeling{Emotions: all, Simple: f.mood.Simple(), SimpleBefore: f.simple, Events: events, Speed: speed, Acceleration: acceleration}
}

// become sets emotions to other values, and tells the readers.
func (f *feelings) become(now time.Duration, values map[mood.Emotion]float64) {
	f.step(now)
	f.told = f.mood.Emotions()
	f.mood.Set(now, values)
	f.tell(nil)
}

// Feel sets emotions and applies emotion events. See mindlink.Mind.
func (m *Mind) Feel(ctx context.Context, f mindlink.Feel) (err error) {
	set := map[mood.Emotion]float64{}
	for name, v := range f.Set {
		e, err := mood.EmotionOf("set", name)
		if err != nil {
			return err
		}
		set[e] = v
	}
	inerr := m.in(ctx, func(now time.Duration) {
		events := f.Events
		if f.Action != "" {
			if e := m.feels.mood.Result(f.Action, f.Result); e != "" {
				events = append(events, e)
			}
		}
		if err = m.feels.mood.Has(events...); err != nil {
			return
		}
		if len(set) > 0 {
			m.feels.become(now, set)
		}
		if len(events) > 0 {
			err = m.feels.post(now, events)
		}
	})
	if inerr != nil {
		return inerr
	}
	return err
}

// Feelings calls give with what the robot feels. See mindlink.Mind.
func (m *Mind) Feelings(ctx context.Context, give func(mindlink.Feeling) error) error {
	r := make(chan mindlink.Feeling, maxFeelings)
	if err := m.in(ctx, func(time.Duration) {
		r <- m.feels.feeling(nil)
		m.feels.readers[r] = true
	}); err != nil {
		return err
	}
	defer func() {
		_ = m.in(context.WithoutCancel(ctx), func(time.Duration) { delete(m.feels.readers, r) }) // a loop that ended has no readers
	}()
	for {
		select {
		case f := <-r:
			if err := give(f); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-m.over:
			return errs.Coded(errs.Unavailable, "mind_lost", "the robot's character (mindd) ends")
		}
	}
}

// senses are what the goroutine of robotd's messages knows of the robot.
type senses struct{ known, docked, asleep bool }

// hearFeelings takes what moves the mood. It does not block.
func (m *Mind) hearFeelings(msg corelink.Message) {
	s := &m.senses
	switch msg := msg.(type) {
	case *corelink.State:
		docked := msg.ChargerVolts > 0
		if s.known && docked && !s.docked {
			m.stir("charger placed")
		}
		s.known, s.docked = true, docked
	case *corelink.Power:
		sleep, _ := power.ParseSleep(msg.Sleep)
		if sleep.Asleep() && !s.asleep {
			m.stir("sleep Asleep")
		}
		s.asleep = sleep.Asleep()
	case *corelink.Event:
		if msg.Replayed {
			return
		}
		m.stir(msg.Name)
		if len(msg.Texts) > 0 {
			m.stir(msg.Name + " " + msg.Texts[0])
		}
	}
}

// stir tells the loop of something that may move the mood.
func (m *Mind) stir(what string) {
	select {
	case m.stirs <- what:
	default: // so much happens at once only when the loop does not run
	}
}
