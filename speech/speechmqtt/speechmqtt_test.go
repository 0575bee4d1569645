package speechmqtt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/envelope"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/intent"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/fixed"
	"kennel/speech/session"
	"kennel/speech/speechmqtt"
	"kennel/speech/utterance"
)

const robot = thing.ID("vic:00e20100")

// free paces no one.
var free = ratelimit.New(time.Nanosecond, 1<<30)

func match(_ context.Context, _ intent.Listener, text string) intent.Match {
	if text != "dance" {
		return intent.Match{}
	}
	return intent.Match{UserIntent: "imperative_dance", Cloud: "intent_imperative_dance", Confidence: 0.5}
}

// sessions counts what is kept.
type sessions struct{ n atomic.Int64 }

func (s *sessions) Keep(context.Context, session.Session) { s.n.Add(1) }

func service(r recognizer.Recognizer, k session.Keeper) *speech.Service {
	return speech.New(speech.Config{Recognizer: r, Match: match, Keeper: k})
}

// noise is a person who speaks for so long, without a pause.
func noise(d time.Duration) []int16 {
	rnd, out := rand.New(rand.NewPCG(1, 2)), make([]int16, int(d.Seconds()*utterance.Rate))
	for i := range out {
		level := 6000
		if i < utterance.Rate/5 { // a room before it
			level = 20
		}
		out[i] = int16(rnd.IntN(2*level) - level)
	}
	return out
}

func body(tb testing.TB, h utterance.Header, samples []int16) []byte {
	tb.Helper()
	b, err := utterance.Append(nil, h, samples)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// ask sends one message to the server of requests, as the bridge does, and returns its answer.
func ask(tb testing.TB, s *kitmqtt.Server, id, method string, body []byte) (head envelope.Response, out utterance.Answer) {
	tb.Helper()
	payload, err := envelope.EncodeRequest(envelope.Request{ID: id, TTL: envelope.Millis(9 * time.Second)}, body)
	if err != nil {
		tb.Fatal(err)
	}
	got, response := s.Serve(tb.Context(), kitmqtt.Incoming{Thing: robot, Service: utterance.Service, Method: method, Payload: payload, Received: time.Now()})
	head, answer, err := envelope.DecodeResponse(response)
	if err != nil || got != id {
		tb.Fatalf("response %q of %q: %v", response, got, err)
	}
	if head.Status == "ok" {
		err = json.Unmarshal(answer, &out)
	}
	if err != nil || head.Status == errs.Internal.String() {
		tb.Errorf("%+v, %v", head, err)
	}
	return head, out
}

// TestHostileUtterances: whatever a robot says in one message, it has an answer that names what was wrong, and the next is understood.
func TestHostileUtterances(t *testing.T) {
	var kept sessions
	s := kitmqtt.NewServer(speechmqtt.Requests(service(&fixed.Recognizer{Text: "dance"}, &kept), free), slog.New(slog.DiscardHandler))
	good := body(t, utterance.Header{Session: "s"}, noise(time.Second))
	garbage := make([]byte, 40_000)
	rnd := rand.NewChaCha8([32]byte{})
	_, _ = rnd.Read(garbage) // as documented, it returns all and no error
	for _, tc := range []struct {
		name, method string
		body         []byte
		status       string // "ok": an answer
		intent       string // of it; "": any
		says         string
	}{
		{"one that is good", "listen", good, "ok", "intent_imperative_dance", ""},
		{"text", "say", body(t, utterance.Header{Text: "dance"}, nil), "ok", "intent_imperative_dance", ""},
		{"nothing", "listen", nil, "invalid", "", "utterance of 0 bytes"},
		{"half a length", "listen", []byte{7}, "invalid", "", "utterance of 1 bytes"},
		{"a header that is longer than the message", "listen", []byte{200, 0, '{', '}'}, "invalid", "", "header of an utterance: 200 bytes"},
		{"a header of 65535 bytes", "listen", append([]byte{255, 255}, bytes.Repeat([]byte(" "), 65535)...), "invalid", "", "at most 8192"},
		{"a header that is no JSON", "listen", append([]byte{2, 0}, "[]xyz"...), "invalid", "", "header of an utterance"},
		{"a header of other types", "listen", append([]byte{13, 0}, `{"session":7}xyz`...), "invalid", "", "header of an utterance"},
		{"no audio", "listen", body(t, utterance.Header{}, nil), "invalid", "", "without audio"},
		{"garbage for audio", "listen", append([]byte{2, 0, '{', '}'}, garbage...), "ok", "", ""},
		{"one byte of audio", "listen", []byte{2, 0, '{', '}', 9}, "ok", speech.Silence, ""},
		{"silence", "listen", body(t, utterance.Header{}, make([]int16, utterance.MaxSamples)), "ok", speech.Silence, ""},
		{"speech without an end", "listen", body(t, utterance.Header{}, noise(time.Hour/360)), "ok", "intent_imperative_dance", ""},
		{"more audio than a request has", "listen", append([]byte{2, 0, '{', '}'}, make([]byte, utterance.MaxSamples/2+1)...), "invalid", "", "of audio: want at most"},
		{"a novel", "say", body(t, utterance.Header{Text: strings.Repeat("x", 1001)}, nil), "invalid", "", "text of 1001 bytes"},
		{"text that is none", "say", append([]byte{14, 0}, "{\"text\":\"\xff\xfe\x80\"}"...), "ok", speech.Unmatched, ""},
		{"a method that is none", "shout", good, "not_found", "", "no request"},
		{"one that is good, afterwards", "listen", good, "ok", "intent_imperative_dance", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			head, got := ask(t, s, tc.name, tc.method, tc.body)
			if head.Status != tc.status || tc.intent != "" && got.Intent != tc.intent || !strings.Contains(head.Error, tc.says) {
				t.Errorf("%+v, %+v; want %s %s %q", head, got, tc.status, tc.intent, tc.says)
			}
		})
	}
	// The same message again, as a robot sends it that heard no answer, has the same answer and is not recognised a second time.
	before := kept.n.Load()
	if head, got := ask(t, s, "one that is good", "listen", good); head.Status != "ok" || got.Intent != "intent_imperative_dance" || kept.n.Load() != before {
		t.Errorf("repeated: %+v, %+v; %d sessions more", head, got, kept.n.Load()-before)
	}
}

// TestHuge: 100 MB, in one request or in many, cost no memory.
func TestHuge(t *testing.T) {
	all := speechmqtt.Requests(service(&fixed.Recognizer{Text: "dance"}, nil), free)
	huge := append([]byte{2, 0, '{', '}'}, make([]byte, 100<<20)...)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := all["speech/listen"](t.Context(), robot, huge); errs.KindOf(err) != errs.Invalid {
		t.Errorf("100 MB at once: %v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated to refuse a message", n)
	}
	one := body(t, utterance.Header{}, noise(time.Second))
	for range 100 {
		if _, err := all["speech/listen"](t.Context(), robot, one); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+4<<20 {
		t.Errorf("heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
	runtime.KeepAlive(huge)
}

// hung is a recogniser that never answers and does not hear that it shall end.
type hung struct{ stop chan struct{} }

func (h hung) Name() string                                                       { return "hung" }
func (h hung) Open(context.Context, recognizer.Expect) (recognizer.Stream, error) { return h, nil }
func (h hung) Write([]int16) error                                                { return nil }
func (h hung) Partial() string                                                    { return "" }
func (h hung) Finish() (recognizer.Result, error)                                 { <-h.stop; return recognizer.Result{}, nil }
func (h hung) Close() error                                                       { return nil }

// TestHangs: robots whose recogniser hangs have their answer within 9 s, at most as many wait as the bridge has workers to spare, and the others
// hear at once that they shall come back.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hung{make(chan struct{})}
		all := speechmqtt.Requests(service(h, nil), free)
		said, typed := body(t, utterance.Header{}, noise(2*time.Second)), body(t, utterance.Header{Text: "dance"}, nil)
		var late, refused atomic.Int64
		var robots sync.WaitGroup
		for range 30 {
			robots.Go(func() {
				began := time.Now()
				_, err := all["speech/listen"](t.Context(), robot, said)
				if errs.KindOf(err) != errs.Unavailable || errs.RetryOf(err) == 0 || time.Since(began) > 9*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if time.Since(began) > time.Second {
					late.Add(1)
				} else {
					refused.Add(1)
				}
			})
		}
		robots.Wait()
		if late.Load() != 8 || refused.Load() != 22 {
			t.Errorf("%d waited, %d were refused at once; want 8 and 22", late.Load(), refused.Load())
		}
		if _, err := all["speech/say"](t.Context(), robot, typed); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := all["speech/listen"](impatient, robot, said); errs.KindOf(err) != errs.Unavailable || time.Since(began) > 3600*time.Millisecond {
			t.Errorf("one who waits 4 s: %v after %v", err, time.Since(began))
		}
		close(h.stop)
		synctest.Wait()
	})
}

// TestPace: a robot that asks too often is told to wait, another one is served.
func TestPace(t *testing.T) {
	all := speechmqtt.Requests(service(&fixed.Recognizer{Text: "dance"}, nil), ratelimit.New(time.Hour, 2))
	typed := body(t, utterance.Header{Text: "dance"}, nil)
	for n := range 4 {
		_, err := all["speech/say"](t.Context(), robot, typed)
		if (err != nil) != (n >= 2) || err != nil && (errs.KindOf(err) != errs.Unavailable || errs.RetryOf(err) == 0) {
			t.Errorf("request %d: %v", n, err)
		}
	}
	if _, err := all["speech/say"](t.Context(), "vic:00e20101", typed); err != nil {
		t.Errorf("another robot: %v", err)
	}
}

// TestDown: a robot hears that it cannot be understood now; text needs no recogniser.
func TestDown(t *testing.T) {
	for name, r := range map[string]recognizer.Recognizer{"none": nil, "down": &fixed.Recognizer{OpenErr: errors.New("connection refused")}} {
		all := speechmqtt.Requests(service(r, nil), free)
		if _, err := all["speech/listen"](t.Context(), robot, body(t, utterance.Header{}, noise(time.Second))); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := all["speech/say"](t.Context(), robot, body(t, utterance.Header{Text: "dance"}, nil)); err != nil {
			t.Errorf("%s, text: %v", name, err)
		}
	}
}

// FuzzListen: any message is an answer, or an error that is the robot's.
func FuzzListen(f *testing.F) {
	all := speechmqtt.Requests(service(&fixed.Recognizer{Text: "dance"}, nil), free)
	f.Add(body(f, utterance.Header{Session: "s", Language: "de-DE"}, noise(time.Second/10)))
	f.Add(append([]byte{2, 0, '{', '}'}, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4000 {
			return
		}
		for name, h := range all {
			out, err := h(t.Context(), robot, b)
			if err != nil && errs.KindOf(err) != errs.Invalid || err == nil && !json.Valid(out) {
				t.Fatalf("%s: %q, %v", name, out, err)
			}
		}
	})
}
