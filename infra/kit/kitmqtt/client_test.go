package kitmqtt

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/envelope"
	"kennel/infra/api/topics"
	"kennel/infra/errs"
)

// answerTo answers the request msg as the cloud would.
func answerTo(t *testing.T, c *Client, msg []byte, head envelope.Response, body []byte) {
	t.Helper()
	req, _, err := envelope.DecodeRequest(msg)
	if err != nil {
		t.Fatal(err)
	}
	head.ID = req.ID
	out, err := envelope.EncodeResponse(head, body)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Deliver(topics.ResTopic(rex, req.ID), out); err != nil {
		t.Error(err)
	}
}

func TestDoResendsUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Duration
		ids := map[string]bool{}
		start := time.Now()
		var c *Client
		c = NewClient(rex, func(_ context.Context, topic string, msg []byte) error {
			if topic != "kennel/vic:00e20100/req/jdocs/read" {
				t.Errorf("topic %q", topic)
			}
			req, _, _ := envelope.DecodeRequest(msg)
			ids[req.ID] = true
			if left := 5*time.Minute - time.Since(start); time.Duration(req.TTL) != left.Truncate(time.Millisecond) {
				t.Errorf("ttl %v, want %v", time.Duration(req.TTL), left)
			}
			sent = append(sent, time.Since(start))
			switch len(sent) {
			case 1:
				return errors.New("not connected")
			case 7:
				answerTo(t, c, msg, envelope.Response{Status: "ok"}, []byte("doc"))
				answerTo(t, c, msg, envelope.Response{Status: "ok"}, []byte("doc")) // at least once
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		got, err := c.Do(ctx, "jdocs", "read", nil)
		if err != nil || string(got) != "doc" || len(sent) != 7 || len(ids) != 1 {
			t.Fatalf("got %q, %v after %v, %d ids", got, err, sent, len(ids))
		}
		for i, base := 1, 2.0; i < len(sent); i, base = i+1, min(base*1.6, 30) {
			if d := (sent[i] - sent[i-1]).Seconds(); d < base/2 || d >= base*1.5 {
				t.Errorf("pause %d is %.1f s, want %.1f to %.1f", i, d, base/2, base*1.5)
			}
		}
		if st := c.Stats(); st != (ClientStats{Waiting: 0, Resent: 6, Late: 1}) {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestDoCarriesTheCloudsError(t *testing.T) {
	var c *Client
	c = NewClient(rex, func(_ context.Context, _ string, msg []byte) error {
		answerTo(t, c, msg, envelope.Response{Status: "exhausted", Code: "quota", Error: "too many", RetryAfter: envelope.Millis(time.Minute)}, nil)
		return nil
	})
	_, err := c.Do(t.Context(), "das", "put", nil)
	if errs.KindOf(err) != errs.Exhausted || errs.CodeOf(err) != "quota" || errs.RetryOf(err) != time.Minute || err.Error() != "too many" {
		t.Errorf("err = %#v", err)
	}
}

// TestOnTime: VEC-BOOT-14: answers bring the cloud's clock, refusals too; not those that may have been made a while ago, and not an older cloud's.
func TestOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		var heard []time.Time
		answers := []envelope.Response{{Status: "ok", TS: noon.UnixMilli()}, {Status: "ok"}, {Status: "conflict", TS: noon.Add(time.Hour).UnixMilli()}}
		sent, from := 0, 1
		var c *Client
		c = NewClient(rex, func(_ context.Context, _ string, msg []byte) error {
			if sent++; sent >= from {
				answerTo(t, c, msg, answers[0], nil)
			}
			return nil
		}, OnTime(func(at time.Time) { heard = append(heard, at.UTC()) }))
		for len(answers) > 0 {
			_, _ = c.Do(t.Context(), "jdocs", "read", nil) // one is refused
			answers = answers[1:]
		}
		answers, from = []envelope.Response{{Status: "ok", TS: 1}}, sent+2
		if _, err := c.Do(t.Context(), "jdocs", "read", nil); err != nil {
			t.Error(err)
		}
		if want := []time.Time{noon, noon.Add(time.Hour)}; !slices.Equal(heard, want) {
			t.Errorf("heard %v, want %v", heard, want)
		}
	})
}

func TestDoGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(rex, func(context.Context, string, []byte) error { return errors.New("no connection to the broker") })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := c.Do(ctx, "jdocs", "read", nil)
		if errs.KindOf(err) != errs.Unavailable || errs.CodeOf(err) != "no_answer" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
		if c.Stats().Waiting != 0 {
			t.Error("still waiting")
		}
	})
}

func TestConnectedResendsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		var c *Client
		c = NewClient(rex, func(_ context.Context, _ string, msg []byte) error {
			if n++; n == 2 {
				answerTo(t, c, msg, envelope.Response{Status: "ok"}, nil)
			}
			return nil
		})
		done := make(chan error)
		start := time.Now()
		go func() { _, err := c.Do(t.Context(), "jdocs", "read", nil); done <- err }()
		synctest.Wait()
		c.Connected()
		if err := <-done; err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestInFlightIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(rex, func(context.Context, string, []byte) error { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		for range maxInFlight + 10 {
			go func() { _, _ = c.Do(ctx, "jdocs", "read", nil) }()
		}
		synctest.Wait()
		if n := c.Stats().Waiting; n != maxInFlight {
			t.Errorf("%d in flight, want %d", n, maxInFlight)
		}
		cancel()
	})
}

func TestDoRefusesWhatCannotWork(t *testing.T) {
	c := NewClient(rex, func(context.Context, string, []byte) error { t.Error("published"); return nil })
	big := make([]byte, envelope.MaxWire)
	_, _ = rand.Read(big)
	if _, err := c.Do(t.Context(), "jdocs", "write", big); !errors.Is(err, envelope.ErrTooLarge) || errs.CodeOf(err) != "too_large" {
		t.Errorf("too large: %v", err)
	}
	for _, method := range []string{"", "a/b", "+", "#"} {
		if _, err := c.Do(t.Context(), "jdocs", method, nil); errs.KindOf(err) != errs.Invalid {
			t.Errorf("method %q: %v", method, err)
		}
	}
}

// FuzzDeliver: whatever arrives, a waiting request is answered once or keeps waiting.
func FuzzDeliver(f *testing.F) {
	f.Add("kennel/vic:00e20100/res/7", []byte(`{"v":1,"id":"7","status":"ok"}`+"\nbody"))
	f.Add("kennel/vic:00e20100/res/7", []byte(`{"v":1,"id":"8","status":"ok"}`+"\n"))
	f.Add("kennel/vic:00e20101/res/7", []byte{})
	f.Fuzz(func(t *testing.T, topic string, payload []byte) {
		c := NewClient(rex, nil)
		reply := make(chan answer, 1)
		c.waiting["7"] = reply
		for range 2 {
			err := c.Deliver(topic, payload)
			if len(reply) == 1 && (err != nil || topic != "kennel/vic:00e20100/res/7") {
				t.Fatalf("%q on %q was taken, error %v", payload, topic, err)
			}
		}
	})
}
