package vectorsim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kennel/edge/body/vector/spine"
	"kennel/edge/body/vector/vectordriver"
)

// TestButtonAtPowerOn: VEC-BOOT-02, VEC-BOOT-03: let go too early the power drops; held for 5 s the head has its power; held for 15 s the line is low
// until the head speaks, or has had its time.
func TestButtonAtPowerOn(t *testing.T) {
	for _, tc := range []struct {
		press time.Duration
		want  string // of OnBoot
		drops bool
	}{
		{100 * time.Millisecond, "", true}, {latchAfter - vectordriver.Period, "", true}, {latchAfter + vectordriver.Period, "normal", false},
		{recoveryAfter - vectordriver.Period, "normal", false}, {recoveryAfter + vectordriver.Period, "normal recovery", false}, {time.Minute, "normal recovery", false}, {0, "normal", false},
	} {
		var kinds []string
		b := newBench(t, Config{Press: tc.press, BootPatience: 5 * time.Minute, OnBoot: func(k Boot) { kinds = append(kinds, k.String()) }})
		var sent, low, lit int
		var err error
		var at time.Duration
		for ; at < 70*time.Second && err == nil; at += vectordriver.Period {
			var frames []spine.Frame
			if frames, err = b.step(); len(frames) > 0 {
				sent++
			} else if err == nil {
				low++
			}
			s := b.State()
			if s.Held != (at+vectordriver.Period < tc.press) {
				t.Fatalf("press %v: after %v held is %t", tc.press, at, s.Held)
			}
			for n := range segments {
				if s.Lights[n] != (spine.RGB{}) {
					lit = max(lit, n+1)
				}
			}
		}
		if got := strings.Join(kinds, " "); got != tc.want || errors.Is(err, ErrPowerCut) != tc.drops {
			t.Errorf("press %v: boots %q, ended with %v; want %q, dropped %t", tc.press, got, err, tc.want, tc.drops)
		}
		if tc.drops && (at < tc.press || at > tc.press+2*vectordriver.Period || lit == segments) {
			t.Errorf("press %v: dropped after %v with %d segments lit", tc.press, at, lit)
		}
		if tc.press >= latchAfter && lit != segments {
			t.Errorf("press %v: %d segments lit, want %d", tc.press, lit, segments)
		}
		wantLow := 0
		if tc.press >= recoveryAfter {
			wantLow = int(lowFor / vectordriver.Period)
		}
		if low < wantLow-1 || low > wantLow+1 || sent == 0 {
			t.Errorf("press %v: the line was low for %d periods and not for %d, want %d", tc.press, low, sent, wantLow)
		}
	}

	// The head's first word ends it.
	b := newBench(t, Config{Press: recoveryAfter + time.Second})
	for b.State().Boot != BootRecovery {
		if _, err := b.step(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		if frames, err := b.step(); err != nil || len(frames) > 0 {
			t.Fatalf("while the line is low: %v, %v", frames, err)
		}
	}
	word := new(spine.HeadData).AppendFrame(nil)
	for range 2 {
		if _, err := b.step(word...); err != nil {
			t.Fatal(err)
		}
	}
	if frames, err := b.step(word...); err != nil || len(frames) == 0 {
		t.Errorf("after the head's first word: %v, %v; want a frame", frames, err)
	}
	// The next time the button is held as long as it needs.
	b.powerOff()
	b.powerOn()
	if s := b.State(); s.Boot != BootNormal || s.Held {
		t.Errorf("the next time of power: %+v", s)
	}
	if err := (Config{Press: time.Hour}).Validate(); err == nil {
		t.Error("a finger for an hour")
	}
}
