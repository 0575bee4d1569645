package intents

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTimer: a timer is set, checked, cancelled, and rings with an event and the lights; "cancel it" means the timer just spoken of (part of VEC-INT-15).
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.start(t, "b1")
		defer func() { r.end() }()
		check := func(intent, text string, params ...string) {
			t.Helper()
			if o := r.take(t, intent, params...); o.Text != text {
				t.Errorf("%s %q: %+v, want %q", intent, params, o, text)
			}
		}
		check("check_timer", "no timer is set")
		check("set_timer", "timer set for 5 minutes", "time_s", "300")
		time.Sleep(239 * time.Second)
		check("check_timer", "1 minute 1 second left")
		check("global_stop", "timer cancelled")
		check("global_stop", "no timer is set", "what_to_stop", "timer")
		check("set_timer", "timer set for 1 hour 1 minute", "time_s", "3660")
		time.Sleep(31 * time.Second)
		check("global_stop", "I stopped") // the timer was spoken of long ago
		check("check_timer", "1 hour 29 seconds left")
		check("set_timer", "timer set for 10 seconds", "time_s", "10")
		r.events()
		r.core.heard()
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if said := r.events(); !slices.Equal(said, []string{"timer rang "}) {
			t.Errorf("events %q", said)
		}
		if said := r.core.heard(); !slices.Equal(said, []string{"claim robot.body.led[0]", "robot.body.led[0].val = 1"}) {
			t.Errorf("robotd heard %q", said)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if said := r.core.heard(); len(said) != 9 || said[8] != "robot.body.led[0].val = 0" {
			t.Errorf("robotd heard %q", said)
		}
		check("check_timer", "no timer is set")
		check("set_timer", "timer set for 1 second", "time_s", "1")
		time.Sleep(1500 * time.Millisecond)
		check("imperative_quiet", "timer cancelled") // it rings
		check("set_timer", "timer set for 1 second", "time_s", "1")
		time.Sleep(1500 * time.Millisecond)
		check("set_timer", "timer set for 1 second", "time_s", "1") // it rings, and this one is on time
		r.events()
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if said := r.events(); !slices.Equal(said, []string{"timer rang "}) {
			t.Errorf("set while one rings: %q", said)
		}
		for _, bad := range []string{"", "0", "-5", "1e9", "NaN", "soon"} {
			if o := r.take(t, "set_timer", "time_s", bad); o.Reason != Invalid {
				t.Errorf("%q: %+v", bad, o)
			}
		}
	})
}

// TestTimerOutlivesItsAgent: what a kill, a reboot and a wrong clock do to a timer of 60 s; the agent is gone from 10 s on.
func TestTimerOutlivesItsAgent(t *testing.T) {
	for name, tt := range map[string]struct {
		away time.Duration
		boot string
		jump time.Duration // of the clock meanwhile
		left time.Duration // before it rings
		said string
	}{
		"killed":                        {5 * time.Second, "b1", 0, 45 * time.Second, "timer rang "},
		"killed, the clock jumps ahead": {5 * time.Second, "b1", time.Hour, 45 * time.Second, "timer rang "},
		"killed, the clock jumps back":  {5 * time.Second, "b1", -time.Hour, 45 * time.Second, "timer rang "},
		"killed until it is over":       {90 * time.Second, "b1", 0, 0, "timer rang "},
		"off":                           {20 * time.Second, "b2", 0, 30 * time.Second, "timer rang "},
		"off until it is over":          {time.Hour, "b2", 0, 0, "timer rang_late "},
		"off, without a clock":          {20 * time.Second, "b2", -24 * time.Hour, 60 * time.Second, "timer rang "},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRobot(t, vector)
			r.start(t, "b1")
			r.take(t, "set_timer", "time_s", "60")
			time.Sleep(10 * time.Second)
			r.end()
			time.Sleep(tt.away)
			r.wrong = tt.jump
			r.events()
			r.start(t, tt.boot)
			defer func() { r.end() }()
			if tt.left > 0 {
				time.Sleep(tt.left - time.Millisecond)
				synctest.Wait()
				if said := r.events(); len(said) > 0 {
					t.Errorf("%s: early: %q", name, said)
				}
				time.Sleep(2 * time.Millisecond)
			}
			synctest.Wait()
			if said := r.events(); !slices.Equal(said, []string{tt.said}) {
				t.Errorf("%s: events %q", name, said)
			}
			time.Sleep(time.Minute)
			r.end()
			r.start(t, tt.boot)
			time.Sleep(time.Hour)
			if said := r.events(); len(said) > 0 {
				t.Errorf("%s: it rings again: %q", name, said)
			}
		})
	}
}

// TestKilledWhileItRings: it rings again.
func TestKilledWhileItRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRobot(t, vector)
		r.start(t, "b1")
		r.take(t, "set_timer", "time_s", "60")
		time.Sleep(61 * time.Second)
		r.end()
		r.events()
		r.start(t, "b1")
		defer func() { r.end() }()
		if said := r.events(); !slices.Equal(said, []string{"timer rang "}) {
			t.Errorf("events %q", said)
		}
	})
}

// FuzzParseAlarm: whatever is in the file, the timer is none or rings within a day, whichever boot it is from.
func FuzzParseAlarm(f *testing.F) {
	f.Add([]byte(`{"length_ms":60000,"boot":"b1","due_mono_ms":60000,"set_ms":1,"due_ms":60001}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAlarm(b)
		if err != nil {
			return
		}
		for _, boot := range []string{a.Boot, "another"} {
			tm := &timer{cfg: Config{Boot: boot, Now: time.Now, Mono: func() time.Duration { return time.Hour }}}
			tm.take(a)
			if left, is := tm.remaining(); !is || left > longest {
				t.Fatalf("%s rings in %v", b, left)
			}
		}
	})
}

func TestWords(t *testing.T) {
	var out []string
	for _, s := range []int{0, 1, 60, 61, 3600, 7322} {
		out = append(out, words(time.Duration(s)*time.Second))
	}
	if got, want := strings.Join(out, "; "), "0 seconds; 1 second; 1 minute; 1 minute 1 second; 1 hour; 2 hours 2 minutes 2 seconds"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
