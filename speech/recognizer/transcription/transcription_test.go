package transcription

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/recognizertest"
)

// server answers like a transcription server, and with errors.
type server struct {
	t      *testing.T
	answer string
	status int
	slow   bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file, _, err := r.FormFile("file")
	if err != nil || r.URL.Path != "/v1/audio/transcriptions" || r.Method != http.MethodPost {
		s.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		return
	}
	audio, _ := io.ReadAll(file)
	got := fmt.Sprint(r.FormValue("model"), " ", r.FormValue("language"), " ", r.FormValue("response_format"), " ", r.Header.Get("Authorization"))
	if want := "small en verbose_json Bearer secret"; got != want {
		s.t.Errorf("form %q, want %q", got, want)
	}
	if len(audio) != 44+3200 || !bytes.HasPrefix(audio, []byte("RIFF")) || string(audio[36:40]) != "data" || audio[44+2] != 1 {
		s.t.Errorf("file of %d bytes, want 44 of header and 3200 of samples", len(audio))
	}
	if s.slow {
		<-r.Context().Done()
		return
	}
	if s.status != 0 {
		w.WriteHeader(s.status)
	}
	_, _ = io.WriteString(w, s.answer) // the client may be gone
}

func TestServer(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	samples := make([]int16, 1600)
	for i := range samples {
		samples[i] = int16(i)
	}
	for _, c := range []struct {
		name string
		s    server
		text string
		sure float64
		err  string
	}{
		{"plain", server{answer: `{"text": " Go forward.\n"}`}, "Go forward.", 1, ""},
		{"with segments", server{answer: `{"text": "Go", "segments": [{"avg_logprob": -0.2}, {"avg_logprob": -0.1, "no_speech_prob": 0.9}]}`}, "Go", math.Exp(-0.2) / 2, ""},
		{"sounds", server{answer: `{"text": "[BLANK_AUDIO] (wind blowing) ♪"}`}, "", 1, ""},
		{"error", server{status: 500, answer: "out of memory"}, "", 0, "status 500"},
		{"garbage", server{answer: "<html>"}, "", 0, "answer: invalid character"},
		{"other object", server{answer: `{"error": "no"}`}, "", 0, `want {"text": ...}`},
		{"slow", server{slow: true}, "", 0, context.DeadlineExceeded.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.t = t
			srv := httptest.NewServer(&c.s)
			defer srv.Close()
			r, err := New(Config{URL: srv.URL, Model: "small", KeyFile: key})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if c.s.slow {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			got, err := recognizertest.Listen(ctx, r, samples)
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

func TestNew(t *testing.T) {
	for _, u := range []string{"", "localhost:8080", "ws://a", "http://user:secret@a"} {
		if _, err := New(Config{URL: u}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v, want invalid", u, err)
		}
	}
	if _, err := New(Config{URL: "http://a", KeyFile: "/nowhere"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no key: %v", err)
	}
	if r, err := New(Config{URL: "http://a/inference"}); err != nil || r.cfg.URL != "http://a/inference" || r.Name() != "transcription at a" {
		t.Errorf("own path: %+v, %v", r, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"text": " Go forward.", "segments": [{"avg_logprob": -0.2, "no_speech_prob": 0.1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if text, sure, err := parse(b); !(sure >= 0 && sure <= 1.0000001) || err != nil && text != "" {
			t.Errorf("%q %v %v", text, sure, err)
		}
	})
}
