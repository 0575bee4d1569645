package intents

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/core/corelink"
	"kennel/edge/mind/mindlink"
	"kennel/infra/errs"
	"kennel/jdocs"
	"kennel/speech/intent"
)

// cast is a character that plays each animation for ten seconds.
type cast struct {
	runs bool
	err  error         // instead of playing
	slow time.Duration // until an animation begins

	mu       sync.Mutex
	plays    []string
	features []string
}

func (c *cast) Runs() bool { return c.runs }

func (c *cast) note(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plays = append(c.plays, s)
}

func (c *cast) Play(ctx context.Context, a Animation, began func()) error {
	if c.err != nil {
		return c.err
	}
	time.Sleep(c.slow)
	name := a.Trigger + a.Mood
	if a.Still {
		name += " still"
	}
	c.note(name)
	for range max(a.Loops, 1) {
		began()
	}
	select {
	case <-ctx.Done():
		c.note("end of " + name)
		return ctx.Err()
	case <-time.After(10 * time.Second):
		return nil
	}
}

func (c *cast) begin(feature string) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if feature == "" {
		return func() {}
	}
	c.features = append(c.features, feature)
	return func() { // it is over by now
		c.mu.Lock()
		defer c.mu.Unlock()
		c.features = append(c.features, "end of "+feature)
	}
}

// did returns what was played and which features began and ended, and forgets both.
func (c *cast) did() (plays, features string) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	plays, features = strings.Join(c.plays, "|"), strings.Join(c.features, "|")
	c.plays, c.features = nil, nil
	return plays, features
}

// newCast starts a robot with a character.
func newCast(t *testing.T) *robot {
	r := newRobot(t, vector)
	r.cast = &cast{runs: true}
	r.start(t, "b1")
	return r
}

// TestReplies: a person's word is answered by an animation and some words, as a run of a feature of annex C (part of VEC-INT-15).
func TestReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCast(t)
		defer func() { r.end() }()
		for _, tt := range []struct{ intent, plays, feature, text string }{
			{"greeting_hello", "greeting", "ReactToHello", "hello"},
			{"greeting_goodbye", "GreetingGoodbye", "ReactToGoodBye", "goodbye"},
			{"greeting_goodmorning", "good_morning", "ReactToGoodMorning", "good morning"},
			{"imperative_praise", "happy", "ReactToAffirmative", "thank you"},
			{"imperative_love", "happy", "ReactToLove", "I like you too"},
			{"imperative_scold", "sad", "ReactToAbuse", "I am sorry"},
			{"imperative_dance", "dancing", "DanceToTheBeat", "I dance"},
			{"imperative_apology", "happy", "ReactToApology", "never mind"},
			{"seasonal_happynewyear", "happy", "SeasonalHappyNewYear", "happy new year"},
		} {
			o := r.take(t, tt.intent)
			if plays, features := r.cast.did(); plays != tt.plays || features != tt.feature+"|end of "+tt.feature || o.Text != tt.text || !o.Done {
				t.Errorf("%s: %q, %q, %+v; want %+v", tt.intent, plays, features, o, tt)
			}
			time.Sleep(20 * time.Second)
		}
		for _, tt := range []struct {
			intent string
			params []string
			plays  string
		}{
			{"set_timer", []string{"time_s", "600"}, "TimerSet"},
			{"check_timer", nil, "TimerCheck"},
			{"weather_response", []string{"condition", "Thunderstorms", "temperature", "20"}, "WeatherThunder"},
			{"weather_response", []string{"condition", "Windy", "temperature", "20"}, "WeatherWindy"},
			{"weather_response", []string{"condition", "Frogs", "temperature", "20"}, ""}, // of which there is none
		} {
			o := r.take(t, tt.intent, tt.params...)
			if plays, _ := r.cast.did(); plays != tt.plays || !o.Done {
				t.Errorf("%s: %q, %+v; want %q", tt.intent, plays, o, tt.plays)
			}
			time.Sleep(20 * time.Second)
		}
		time.Sleep(10 * time.Minute)
		if plays, features := r.cast.did(); plays != "TimerRing" || !strings.HasPrefix(features, "TimerRinging") {
			t.Errorf("a timer that rings: %q, %q", plays, features)
		}
	})
}

// TestPlaysOneAtATime: another word ends the animation of the one before, and stop ends it, too.
func TestPlaysOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCast(t)
		defer func() { r.end() }()
		r.take(t, "greeting_hello")
		time.Sleep(time.Second)
		r.take(t, "imperative_scold")
		time.Sleep(time.Second)
		r.core.heard()
		if o := r.take(t, "global_stop"); o.Text != "I stopped" {
			t.Errorf("%+v", o)
		}
		if plays, _ := r.cast.did(); plays != "greeting|end of greeting|sad|end of sad" {
			t.Errorf("played %q", plays)
		}
		if said := r.core.heard(); !slices.Equal(said, []string{"stop"}) {
			t.Errorf("robotd heard %q", said)
		}
		r.take(t, "greeting_hello")
		r.core.busy = 3 // the character gives the motors back after its answer
		if o := r.take(t, "movement_forward"); o.Text != "I went 10 cm forward" {
			t.Errorf("while it plays: %+v", o)
		}
		if plays, _ := r.cast.did(); plays != "greeting|end of greeting" {
			t.Errorf("a motion: played %q", plays)
		}
		r.take(t, "greeting_hello")
		r.cast.did()
		r.end()
		if plays, _ := r.cast.did(); plays != "end of greeting" {
			t.Errorf("at the end of agentd: %q", plays)
		}
		r.start(t, "b1")
	})
}

// TestPlaysRefused: why a robot does not reply with an animation, and how it does on its charger and from its sleep.
func TestPlaysRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(*robot)
		want   Reason
		plays  string
	}{
		"on the charger": {func(r *robot) { r.core.handle(&corelink.State{Power: 1}) }, "", "greeting still"},
		"asleep":         {func(r *robot) { r.core.handle(&corelink.Power{Sleep: "LightSleep"}) }, "", "greeting"},
		"held":           {func(r *robot) { r.core.handle(&corelink.Held{By: "Ann", Reason: "wet floor"}) }, Held, ""},
		"no such mood":   {func(r *robot) { r.cast.err = errs.New(errs.NotFound, "mood") }, NotSupported, ""},
		"moved":          {func(r *robot) { r.cast.err = errs.New(errs.Conflict, "busy") }, Busy, ""},
		"gone":           {func(r *robot) { r.cast.err = errs.New(errs.Unavailable, "lost") }, Failed, ""},
		"broken":         {func(r *robot) { r.cast.err = errors.New("broken") }, Failed, ""},
		"hangs":          {func(r *robot) { r.cast.slow = time.Minute }, Failed, ""},
		"none":           {func(r *robot) { r.cast.runs = false }, NotSupported, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newCast(t)
			defer func() { r.end() }()
			tt.before(r)
			r.core.heard()
			o := r.take(t, "greeting_hello")
			if plays, _ := r.cast.did(); o.Reason != tt.want || plays != tt.plays {
				t.Errorf("%s: %+v, played %q", name, o, plays)
			}
			if said := r.core.heard(); (name == "asleep") != slices.Contains(said, "sleep 1") {
				t.Errorf("%s: robotd heard %q", name, said)
			}
			if o := r.take(t, "set_timer", "time_s", "5"); !o.Done { // which does not need it
				t.Errorf("%s: a timer: %+v", name, o)
			}
		})
	}
}

// TestResponses: an intent whose answer is in the robot's file plays its trigger, as its feature and with its mood, whether its name is known or not
// (VEC-INT-03).
func TestResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCast(t)
		defer func() { r.end() }()
		m, err := intent.ParseMap([]byte(`{"simple_voice_responses": [
			{"cloud_intent": "intent_imperative_praise", "response": {"active_feature": "ReactToLove", "anim_group": "GreetingHello", "emotion_event": "ReceivedPraise"}},
			{"cloud_intent": "intent_of_later", "response": {"emotion_event": "Amused", "disable_wakeword_turn": true}}],
			"user_intent_map": [{"cloud_intent": "intent_imperative_love", "user_intent": "imperative_love"}], "unmatched_intent": "unmatched_intent"}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct{ cloud, plays, features, emotion string }{
			{"intent_imperative_praise", "GreetingHello", "ReactToLove|end of ReactToLove", "ReceivedPraise"},
			{"intent_of_later", "", "", "Amused"},
		} {
			o, err := r.Take(t.Context(), m.Cloud(tt.cloud, nil), "voice")
			if plays, features := r.cast.did(); err != nil || !o.Done || o.Text == "" || o.Emotion != tt.emotion || plays != tt.plays || features != tt.features {
				t.Errorf("%s: %+v, %v, %q, %q", tt.cloud, o, err, plays, features)
			}
		}
		r.cast.runs = false
		if o, err := r.Take(t.Context(), m.Cloud("intent_imperative_praise", nil), "voice"); err != nil || o.Reason != NotSupported {
			t.Errorf("without a character: %+v, %v", o, err)
		}
	})
}

// TestGoHome: the robot drives to its charger, and tells what became of that.
func TestGoHome(t *testing.T) {
	for name, tt := range map[string]struct {
		known   bool
		err     error
		arrives bool
		want    Reason
	}{
		"arrives":    {known: true, arrives: true},
		"beside":     {known: true, want: Failed},
		"not known":  {want: Failed},
		"broken":     {known: true, err: errors.New("broken"), want: Failed},
		"on it":      {arrives: true},
		"held there": {want: Held},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newCast(t)
			defer func() { r.end() }()
			drove := 0
			r.Intents.cfg.GoHome = func(context.Context) (bool, error) {
				drove++
				if tt.arrives {
					time.AfterFunc(time.Second, func() { r.core.handle(&corelink.State{Power: 1}) })
				}
				return tt.known, tt.err
			}
			switch name {
			case "on it":
				r.core.handle(&corelink.State{Power: 1})
			case "held there":
				r.core.handle(&corelink.Held{By: "Ann"})
			}
			o := r.take(t, "system_charger")
			if o.Reason != tt.want || o.Done && o.Text != "I am on my charger" || drove > 0 == (name == "on it" || name == "held there") {
				t.Errorf("%s: %+v, drove %d times", name, o, drove)
			}
		})
	}
}

// TestFeeling: asked how it is, a robot with emotions says and shows what it feels; one whose character does not run says how its battery is.
func TestFeeling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.cast = &cast{runs: true}
		var now mindlink.Feeling
		runs := true
		r.mood = func() (mindlink.Feeling, bool) { return now, runs }
		r.start(t, "b1")
		defer func() { r.end() }()
		for _, tt := range []struct {
			simple      string
			happy       float64
			says, plays string
		}{
			{"Frustrated", 0.5, "I am frustrated", "angry"}, {"MedStim", -0.2, "I am a little sad", "sad"}, {"LowStim", 0.2, "I am happy", "happy"},
			{"HighStim", 0.1, "I am wide awake", ""}, {"LowStim", -0.1, "I am calm", ""}, {"MedStim", 0, "I am fine", ""}, {"Default", 0, "I am fine", ""},
		} {
			now = mindlink.Feeling{Simple: tt.simple, Emotions: map[string]mindlink.Emotion{"Happy": {Value: tt.happy}}}
			o := r.take(t, "status_feeling")
			plays, _ := r.cast.did()
			plays = plays[strings.LastIndexByte(plays, '|')+1:] // after the end of the one before
			if o.Text != tt.says || plays != tt.plays || !o.Done {
				t.Errorf("%+v: %+v, plays %q", tt, o, plays)
			}
		}
		runs = false
		if o := r.take(t, "status_feeling"); !strings.HasPrefix(o.Text, "my battery is ") {
			t.Errorf("without emotions: %+v", o)
		}
	})
}

// TestAge: how old a robot is counts the time that it was on (part of VEC-DOC-07).
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.start(t, "b1")
		defer func() { r.end() }()
		for seconds, want := range map[string]string{
			"59": "I am younger than a minute", "3725.5": "I have lived for 1 hour 2 minutes", "172799": "I have lived for 47 hours 59 minutes",
			"1900800": "I have lived for 22 days", `"old"`: "I do not know how old I am", "-1": "I do not know how old I am", "1e300": "I do not know how old I am",
		} {
			r.docs["Alive.seconds"] = []byte(seconds)
			if o := r.take(t, "character_age"); o.Text != want {
				t.Errorf("%s: %+v, want %q", seconds, o, want)
			}
		}
		if !slices.Contains(jdocs.StatKeys, "Alive.seconds") {
			t.Error("no such statistic")
		}
	})
}
