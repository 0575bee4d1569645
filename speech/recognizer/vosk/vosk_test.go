package vosk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/recognizertest"
)

// serve answers as a Vosk server does: one message for each piece of audio, one for the end. script maps the number of a message, from 1, to
// what happens at it: an answer, "hang" or "drop"; without one a partial result is answered.
func serve(t *testing.T, script map[int]string) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		var config struct {
			Config struct {
				Rate int `json:"sample_rate"`
			}
		}
		_, b, err := conn.Read(r.Context())
		if err != nil || json.Unmarshal(b, &config) != nil || config.Config.Rate != recognizer.Rate {
			t.Errorf("configuration %q, %v", b, err)
			return
		}
		heard := 0
		for n := 1; ; n++ {
			kind, b, err := conn.Read(r.Context())
			if err != nil {
				return // the client left
			}
			answer := script[n]
			switch answer {
			case "hang":
				_, _, _ = conn.Read(r.Context()) // until the client leaves
				return
			case "drop":
				return
			case "":
				answer = fmt.Sprintf(`{"partial": "part %d"}`, n)
			}
			heard += len(b)
			end := kind == websocket.MessageText
			if end && string(b) != `{"eof": 1}` {
				t.Errorf("end %q", b)
			}
			if end && heard != 2*8000+len(b) {
				t.Errorf("%d bytes before the end, want 16000", heard)
			}
			if err := conn.Write(r.Context(), websocket.MessageText, []byte(answer)); err != nil || end {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// 8000 samples are five messages, the end the sixth.
func TestServer(t *testing.T) {
	for _, c := range []struct {
		name   string
		script map[int]string
		text   string
		sure   float64
		err    string
	}{
		{"one sentence", map[int]string{6: `{"text": "go forward", "result": [{"conf": 1, "word": "go"}, {"conf": 0.5, "word": "forward"}]}`}, "go forward", 0.75, ""},
		{"two sentences", map[int]string{3: `{"text": "hey"}`, 6: `{"text": "go forward"}`}, "hey go forward", 1, ""},
		{"nothing", map[int]string{6: `{"text": ""}`}, "", 1, ""},
		{"garbage", map[int]string{6: `go forward`}, "", 0, "answer: invalid character"},
		{"other object", map[int]string{6: `{"error": 1}`}, "", 0, `want {"text": ...}`},
		{"drops", map[int]string{6: "drop"}, "", 0, "EOF"},
		{"hangs", map[int]string{6: "hang"}, "", 0, context.DeadlineExceeded.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := New("ws" + strings.TrimPrefix(serve(t, c.script).URL, "http"))
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if c.name == "hangs" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			got, err := recognizertest.Listen(ctx, r, make([]int16, 8000))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), r.Name()) {
					t.Errorf("%v, want %q with the name", err, c.err)
				}
				return
			}
			if want := (recognizer.Result{Text: c.text, Confidence: c.sure, By: r.Name()}); err != nil || got != want {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestPartial(t *testing.T) {
	r, err := New("ws" + strings.TrimPrefix(serve(t, map[int]string{1: `{"text": "hey"}`, 2: `{"partial": "go"}`}).URL, "http"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Open(t.Context(), recognizer.Expect{Language: "en-US"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Write(make([]int16, 6400)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); s.Partial() != "hey go"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("partial %q, want hey go", s.Partial())
		}
	}
}

func TestNew(t *testing.T) {
	for _, u := range []string{"", "localhost:2700", "http://a", "ws://user:secret@a"} {
		if _, err := New(u); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v, want invalid", u, err)
		}
	}
	r, err := New("ws://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Open(t.Context(), recognizer.Expect{}); err == nil || !strings.Contains(err.Error(), "Vosk at 127.0.0.1:1: ") {
		t.Errorf("no server: %v", err)
	}
}

func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"text": "go", "result": [{"conf": 1}]}`))
	f.Add([]byte(`{"partial": "go"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s stream
		if err := s.take(b); (err == nil) != (s.answered == 1) {
			t.Errorf("%d answers, %v", s.answered, err)
		}
	})
}
