package intents

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"kennel/edge/mind/mindlink"
	"kennel/infra/errs"
	"kennel/speech/intent"
)

// character says and plays without an end, until it is left, or refuses.
type character struct {
	mu   sync.Mutex
	did  []string
	code string // of refusals; "": it plays to the end
}

func (c *character) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did = append(c.did, what)
}

func (c *character) Say(ctx context.Context, s mindlink.Say, _ func(mindlink.Progress) error) (mindlink.Ended, error) {
	c.note(s.Level + " " + s.Language + " " + s.Text)
	<-ctx.Done()
	c.note("ended " + s.Text)
	return mindlink.Ended{}, ctx.Err()
}

func (c *character) Play(_ context.Context, r mindlink.Request, _ func(mindlink.Progress) error) (mindlink.Ended, error) {
	c.note("play " + r.Trigger)
	if c.code != "" {
		return mindlink.Ended{}, errs.Coded(errs.Conflict, c.code, "no")
	}
	return mindlink.Ended{Outcome: mindlink.Done}, nil
}

// TestAloud: the answer to an intent is said, in the language that it is in, and a newer one replaces one that is said still (part of VEC-NLP-08).
func TestAloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &character{}
		r := newRobot(t, vector)
		r.mind = c
		r.start(t, "1")
		synctest.Wait()
		o := r.take(t, "knowledge_response", "answer", "It is high.")
		synctest.Wait()
		r.take(t, "knowledge_response", "answer", "It is low.")
		synctest.Wait()
		r.end()
		want := []string{"behavior en-US It is high.", "ended It is high.", "behavior en-US It is low.", "ended It is low."}
		if o.Text != "It is high." || !slices.Equal(c.did, want) {
			t.Errorf("%+v; %q, want %q", o, c.did, want)
		}
	})
}

// TestResponse: an intent with a response of its own plays that animation, and says why it did not (part of VEC-INT-03).
func TestResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &character{}
		r := newRobot(t, vector)
		r.mind = c
		r.start(t, "1")
		synctest.Wait()
		for code, reason := range map[string]Reason{"": "", "not_found": NotSupported, "busy": Busy, "core_lost": Failed} {
			c.code = code
			o, err := r.Take(t.Context(), intent.User{Name: "greeting_hello", Response: &intent.Response{AnimGroup: "GreetingHello"}}, "voice")
			if err != nil || o.Reason != reason || o.Done != (reason == "") {
				t.Errorf("%q: %+v, %v", code, o, err)
			}
		}
		r.end()
		if n := len(slices.DeleteFunc(c.did, func(s string) bool { return s != "play GreetingHello" })); n != 4 {
			t.Errorf("played %d times", n)
		}
	})
}
