package intents

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
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

// mute is a speaker whose machine lacks a voice for German.
type mute struct{ end mindlink.Ended }

func (m mute) Say(context.Context, mindlink.Say, func(mindlink.Progress) error) (mindlink.Ended, error) {
	return m.end, nil
}

// TestNotSaid: an answer for which there is no voice is shown to who asked, and the log says why it was not heard; of one that another program's speech ended it says nothing.
func TestNotSaid(t *testing.T) {
	for _, tt := range []struct {
		end  mindlink.Ended
		want string
	}{
		{mindlink.Ended{Outcome: mindlink.Stopped, Reason: "espeak-ng is not installed"}, `language=de-DE why="espeak-ng is not installed"`},
		{mindlink.Ended{Outcome: mindlink.Stopped, Reason: "another speaks", By: "radio"}, ""},
		{mindlink.Ended{Outcome: mindlink.Done}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			r := newRobot(t, vector)
			r.speaker, r.log = mute{tt.end}, slog.NewTextHandler(&log, nil)
			r.docs["locale"] = []byte(`"de-DE"`)
			r.start(t, "1")
			if o := r.take(t, "check_timer"); o.Text != "es ist kein Timer gestellt" {
				t.Errorf("%+v", o)
			}
			synctest.Wait()
			r.end()
			if got := log.String(); strings.Contains(got, "answer not said") != (tt.want != "") || !strings.Contains(got, tt.want) {
				t.Errorf("%+v: %q, want %q", tt.end, got, tt.want)
			}
		})
	}
}
