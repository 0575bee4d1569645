package kitmqtt

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/envelope"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

var rex = thing.MustParse("vic:00e20100")

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// ask frames a request to service "t".
func ask(t testing.TB, id, method string, ttl time.Duration, body []byte) Incoming {
	t.Helper()
	msg, err := envelope.EncodeRequest(envelope.Request{ID: id, TTL: envelope.Millis(ttl)}, body)
	if err != nil {
		t.Fatal(err)
	}
	return Incoming{Thing: rex, Service: "t", Method: method, Payload: msg, Received: time.Now()}
}

func TestServeAnswersEveryKind(t *testing.T) {
	big := make([]byte, envelope.MaxWire)
	_, _ = rand.Read(big)
	s := NewServer(map[string]ReqHandler{
		"t/echo": func(_ context.Context, _ thing.ID, body []byte) ([]byte, error) { return body, nil },
		"t/stale": func(context.Context, thing.ID, []byte) ([]byte, error) {
			return nil, errs.Coded(errs.Conflict, "stale", "version 3")
		},
		"t/later": func(context.Context, thing.ID, []byte) ([]byte, error) {
			return nil, errs.RetryLater(5*time.Second, "storage is down", errors.New("dial tcp: secret host"))
		},
		"t/plain": func(context.Context, thing.ID, []byte) ([]byte, error) {
			return nil, errors.New("password of the database")
		},
		"t/long": func(context.Context, thing.ID, []byte) ([]byte, error) {
			return nil, errs.New(errs.Invalid, "%s", strings.Repeat("x", 1<<20))
		},
		"t/panic": func(context.Context, thing.ID, []byte) ([]byte, error) { panic("boom") },
		"t/stop": func(context.Context, thing.ID, []byte) ([]byte, error) {
			return nil, fmt.Errorf("read the row: %w", context.Canceled)
		},
		"t/slow": func(ctx context.Context, _ thing.ID, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
		"t/big":  func(context.Context, thing.ID, []byte) ([]byte, error) { return big, nil },
	}, discard())
	for method, want := range map[string]envelope.Response{
		"echo":   {Status: "ok"},
		"stale":  {Status: "conflict", Code: "stale", Error: "version 3"},
		"later":  {Status: "unavailable", Code: "retry_after", Error: "storage is down", RetryAfter: envelope.Millis(5 * time.Second)},
		"plain":  {Status: "internal", Error: "internal error"},
		"long":   {Status: "invalid", Error: strings.Repeat("x", 1000) + "…"},
		"panic":  {Status: "internal", Error: "internal error"},
		"slow":   {Status: "unavailable", Code: "timeout", Error: "t/slow took longer than the deadline of the request"},
		"stop":   {Status: "unavailable", Code: "stopping", Error: "t/stop was interrupted: the service is stopping"},
		"nobody": {Status: "not_found", Code: "unknown_method", Error: `this cloud has no request "t/nobody"`},
	} {
		asked := time.Now().UnixMilli()
		id, out := s.Serve(t.Context(), ask(t, "1", method, 50*time.Millisecond, []byte("hi")))
		got, body, err := envelope.DecodeResponse(out)
		if now := time.Now().UnixMilli(); got.TS < asked || got.TS > now { // whatever the answer is, it brings the time
			t.Errorf("%s: the cloud's clock says %d, want %d to %d", method, got.TS, asked, now)
		}
		want.V, want.ID, want.TS = 1, "1", got.TS
		if err != nil || id != "1" || got != want {
			t.Errorf("%s: got id %q, %+v, %v\nwant %+v", method, id, got, err, want)
		}
		if method == "echo" && string(body) != "hi" {
			t.Errorf("echo: body %q", body)
		}
	}
	_, out := s.Serve(t.Context(), ask(t, "2", "big", time.Second, nil))
	if got, _, err := envelope.DecodeResponse(out); err != nil || got.Code != "too_large" || got.Status != "invalid" {
		t.Errorf("big: %+v, %v", got, err)
	}
	if st := s.Stats(); st.Panics != 1 || st.Unknown != 1 || st.Failed != 8 {
		t.Errorf("stats %+v", st)
	}
}

// TestMalformed is issue 2, "what must hold" 6: what cannot be read is counted, answered where an id is known, and nothing else happens.
func TestMalformed(t *testing.T) {
	s := NewServer(nil, discard())
	for _, payload := range []string{"", "{}", "{}\n", "\x00\x01\n", `{"v":1,"id":"a/b"}` + "\n"} {
		if id, out := s.Serve(t.Context(), Incoming{Thing: rex, Payload: []byte(payload)}); id != "" || out != nil {
			t.Errorf("%q: answered %q to %q", payload, out, id)
		}
	}
	id, out := s.Serve(t.Context(), Incoming{Thing: rex, Payload: []byte(`{"v":1,"id":"7","enc":"zstd"}` + "\nnot zstd")})
	if got, _, err := envelope.DecodeResponse(out); id != "7" || err != nil || got.Status != "invalid" || got.Code != "malformed" {
		t.Errorf("broken body: id %q, %+v, %v", id, got, err)
	}
	if st := s.Stats(); st.Unreadable != 5 || st.Malformed != 1 {
		t.Errorf("stats %+v", st)
	}
}

// TestDuplicates is VEC-FLE-02: one run and one answer, however often a request arrives.
func TestDuplicates(t *testing.T) {
	runs, started, release := 0, make(chan bool), make(chan bool)
	s := NewServer(map[string]ReqHandler{
		"t/count": func(context.Context, thing.ID, []byte) ([]byte, error) {
			runs++
			started <- true
			<-release
			return []byte{byte(runs)}, nil
		},
		"t/other": func(context.Context, thing.ID, []byte) ([]byte, error) { return []byte("other"), nil },
	}, discard())
	in := ask(t, "1", "count", time.Minute, nil)
	var first []byte
	var wg sync.WaitGroup
	wg.Go(func() { _, first = s.Serve(t.Context(), in) })
	<-started
	if id, _ := s.Serve(t.Context(), in); id != "" {
		t.Errorf("a repetition was answered while the first runs")
	}
	close(release)
	wg.Wait()
	for range 3 {
		if id, out := s.Serve(t.Context(), in); id != "1" || !bytes.Equal(out, first) {
			t.Errorf("repetition: id %q, got %q, want %q", id, out, first)
		}
	}
	if runs != 1 {
		t.Errorf("handler ran %d times", runs)
	}
	// The same id from another thing, or for another method, is another request.
	other := in
	other.Thing = "vic:00e20101"
	go func() { <-started }()
	if id, out := s.Serve(t.Context(), other); id != "1" || bytes.Equal(out, first) {
		t.Errorf("another thing got %q", out)
	}
	if _, out := s.Serve(t.Context(), ask(t, "1", "other", time.Minute, nil)); !bytes.HasSuffix(out, []byte("other")) {
		t.Errorf("another method got %q", out)
	}
}

func TestAnswersAreForgottenInTime(t *testing.T) {
	now := time.Unix(0, 0)
	c := newCache()
	key := func(i int) cacheKey { return cacheKey{rex, "t/x", string(rune('a' + i))} }
	for i := range 3 {
		if _, st := c.begin(key(i), now); st != fresh {
			t.Fatal("not fresh")
		}
		c.finish(key(i), make([]byte, keepBytes/2-1), now)
	}
	if _, st := c.begin(key(0), now); st != fresh {
		t.Error("the oldest answer outlived the byte bound")
	}
	if _, st := c.begin(key(2), now); st != answered {
		t.Error("the newest answer is gone")
	}
	if _, st := c.begin(key(2), now.Add(keepFor)); st != fresh {
		t.Error("an answer outlived its time")
	}
	if c.bytes != 0 || c.done.Len() != 0 {
		t.Errorf("%d bytes in %d answers left", c.bytes, c.done.Len())
	}
}

// TestExpired: what waited longer here than the robot does is not run.
func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := false
		s := NewServer(map[string]ReqHandler{"t/x": func(context.Context, thing.ID, []byte) ([]byte, error) { ran = true; return nil, nil }}, discard())
		in := ask(t, "1", "x", time.Second, nil)
		time.Sleep(time.Second)
		_, out := s.Serve(t.Context(), in)
		if got, _, err := envelope.DecodeResponse(out); err != nil || got.Code != "expired" || ran {
			t.Errorf("got %+v, %v; ran %v", got, err, ran)
		}
	})
}

func FuzzServe(f *testing.F) {
	ok, _ := envelope.EncodeRequest(envelope.Request{ID: "1", TTL: 1000}, []byte("{}"))
	f.Add("t", "echo", ok)
	f.Add("t", "nobody", []byte(`{"v":1,"id":"1","ttl_ms":5,"enc":"zstd"}`+"\n"))
	f.Add("", "", []byte{})
	s := NewServer(map[string]ReqHandler{"t/echo": func(_ context.Context, _ thing.ID, b []byte) ([]byte, error) { return b, nil }}, discard())
	f.Fuzz(func(t *testing.T, service, method string, payload []byte) {
		id, out := s.Serve(t.Context(), Incoming{Thing: rex, Service: service, Method: method, Payload: payload, Received: time.Now()})
		if id == "" {
			return
		}
		if h, _, err := envelope.DecodeResponse(out); err != nil || h.ID != id {
			t.Fatalf("request %q of %q/%q: answered %q: %+v, %v", id, service, method, out, h, err)
		}
	})
}
