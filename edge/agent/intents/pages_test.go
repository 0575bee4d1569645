package intents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/edge/mind/mindlink"
)

// board notes the pages that are asked for.
type board struct {
	mu  sync.Mutex
	was []string
}

func (b *board) Page(_ context.Context, p mindlink.Page) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	what := "nothing"
	switch {
	case p.Clock != nil:
		what = fmt.Sprintf("clock %+v", *p.Clock)
	case p.Weather != nil:
		what = fmt.Sprintf("weather %+v", *p.Weather)
	case p.Timer != nil:
		what = fmt.Sprintf("timer %+v", *p.Timer)
	}
	b.was = append(b.was, fmt.Sprintf("%s for %v", what, time.Duration(p.ForMS)*time.Millisecond))
	return errors.New("a robot without a display answers too")
}

// seen returns the pages since the last call.
func (b *board) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.was
	b.was = nil
	return was
}

// TestPages: the time, the weather and the timer are shown beside their answers; a timer that rings is shown until a person hears it (part of VEC-DSP-12).
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		r := newRobot(t, vector)
		r.display = b
		r.start(t, "b1")
		defer func() { r.end() }()
		for _, tc := range []struct {
			intent string
			params []string
			want   []string
		}{
			{"show_clock", nil, []string{"clock {Hour:15 Minute:4 TwentyFour:false} for 8s"}},
			{"weather_response", []string{"condition", "Rain", "temperature", "7", "temperatureUnit", "C", "speakableLocationString", "Graz"},
				[]string{"weather {Condition:Rain Temperature:7 Unit:C Place:Graz} for 8s"}},
			{"weather_response", nil, nil}, // which is not known
			{"check_timer", nil, nil},      // there is none
			{"set_timer", []string{"time_s", "300"}, []string{"timer {Left:5m0s Of:5m0s Ringing:false} for 8s"}},
			{"global_stop", nil, []string{"nothing for 0s"}},
			{"set_timer", []string{"time_s", "60"}, []string{"timer {Left:1m0s Of:1m0s Ringing:false} for 8s"}},
		} {
			r.take(t, tc.intent, tc.params...)
			if got := b.seen(); !slices.Equal(got, tc.want) {
				t.Errorf("%s %q: %q, want %q", tc.intent, tc.params, got, tc.want)
			}
		}
		time.Sleep(20 * time.Second)
		r.take(t, "check_timer")
		if got, want := b.seen(), []string{"timer {Left:40s Of:1m0s Ringing:false} for 8s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		time.Sleep(41 * time.Second)
		synctest.Wait()
		if got, want := b.seen(), []string{"timer {Left:0s Of:1m0s Ringing:true} for 7s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		// A newer page is not taken away by the end of the ringing.
		r.take(t, "show_clock")
		r.take(t, "set_timer", "time_s", "60")
		synctest.Wait()
		if got, want := b.seen(), []string{"clock {Hour:15 Minute:4 TwentyFour:false} for 8s", "timer {Left:1m0s Of:1m0s Ringing:false} for 8s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		time.Sleep(61 * time.Second)
		b.seen()
		r.take(t, "imperative_quiet")
		synctest.Wait()
		if got := b.seen(); len(got) == 0 || got[len(got)-1] != "nothing for 0s" {
			t.Errorf("%q after a person heard it", got)
		}
	})
}
