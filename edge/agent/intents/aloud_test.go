package intents

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"kennel/edge/mind/mindlink"
)

// talker says without an end, until it is left.
type talker struct {
	mu  sync.Mutex
	did []string
}

func (c *talker) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did = append(c.did, what)
}

func (c *talker) Say(ctx context.Context, s mindlink.Say, _ func(mindlink.Progress) error) (mindlink.Ended, error) {
	c.note(s.Level + " " + s.Language + " " + s.Text)
	<-ctx.Done()
	c.note("ended " + s.Text)
	return mindlink.Ended{}, ctx.Err()
}

// TestAloud: the answer to an intent is said, in the language that it is in, and a newer one replaces one that is said still (part of VEC-NLP-08).
func TestAloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &talker{}
		r := newRobot(t, vector)
		r.speaker = c
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
