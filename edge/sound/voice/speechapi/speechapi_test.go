package speechapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/sound"
	"kennel/edge/sound/voice"
	"kennel/infra/errs"
	"kennel/infra/wav"
)

// speech is a second of a tone, as servers send it.
func speech() *sound.Sound {
	s := &sound.Sound{Rate: 24_000, Samples: make([]float32, 24_000)}
	for i := range s.Samples {
		s.Samples[i] = float32(0.3 * math.Sin(2*math.Pi*200*float64(i)/24_000))
	}
	return s
}

func server(t *testing.T, cfg Config, answer http.HandlerFunc) *Server {
	t.Helper()
	web := httptest.NewServer(answer)
	t.Cleanup(web.Close)
	cfg.URL = web.URL
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSpeak: what the server is asked, and the three forms of its answers: a whole WAV file, one of unknown size, and raw samples.
func TestSpeak(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := speech().AppendWAV(nil)
	for name, tt := range map[string]struct {
		kind string
		body []byte
	}{
		"whole":  {"audio/wav", whole},
		"stream": {"audio/wav", append(wav.AppendHeader(nil, 24_000, 1, 0xffffffff-36), whole[44:]...)},
		"raw":    {"audio/pcm", whole[44:]},
	} {
		var asked map[string]string
		s := server(t, Config{KeyFile: key, Voice: "nova"}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || r.URL.Path != "/v1/audio/speech" || r.Header.Get("Authorization") != "Bearer secret" || json.NewDecoder(r.Body).Decode(&asked) != nil {
				t.Errorf("%s: %s %s %v", name, r.Method, r.URL, r.Header)
			}
			w.Header().Set("Content-Type", tt.kind)
			w.Write(tt.body)
		})
		u, err := s.Speak(t.Context(), voice.Request{Text: "hello", Speed: 2})
		if err != nil || u.Sound.Rate != 24_000 || len(u.Sound.Samples) != 12_000 || math.Abs(u.Sound.RMS()-0.212) > 0.01 {
			t.Errorf("%s: %v", name, err)
		}
		if asked["input"] != "hello" || asked["voice"] != "nova" || asked["model"] != "tts-1" || asked["response_format"] != "wav" {
			t.Errorf("%s: asked %v", name, asked)
		}
	}
}

// TestBadServers: servers that refuse, lie, break, end in the middle and stall give errors of their kind, and no speech.
func TestBadServers(t *testing.T) {
	whole := speech().AppendWAV(nil)
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   errs.Kind
	}{
		"key":     {text(401, `{"error":{"message":"no such key"}}`), errs.Unauthenticated},
		"busy":    {text(429, "slow down"), errs.Exhausted},
		"voice":   {text(400, `{"error":{"message":"no such voice"}}`), errs.Invalid},
		"broken":  {text(500, "<html>"), errs.Unavailable},
		"a page":  {text(200, "<html>hello</html>"), errs.Unavailable},
		"nothing": {text(200, ""), errs.Unavailable},
		"no WAV":  {text(200, "RIFF0000WAVEfmt "), errs.Unavailable},
		"half": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			w.Write(whole[:20_000])
		}, errs.Unavailable},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write(whole[:20_000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, errs.Unavailable},
		"stalls": {func(w http.ResponseWriter, r *http.Request) {
			w.Write(whole[:1000])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, errs.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, Config{Limit: time.Second}, tt.answer)
			u, err := s.Speak(t.Context(), voice.Request{Text: "hello"})
			if errs.KindOf(err) != tt.want || u.Sound != nil {
				t.Errorf("got %v, %v", u.Sound, err)
			}
		})
	}
}

// TestCancel: the end of a request ends the wait for a server.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := server(t, Config{}, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
		cancel()
		<-r.Context().Done()
	})
	began := time.Now()
	if _, err := s.Speak(ctx, voice.Request{Text: "hello"}); !errors.Is(err, context.Canceled) || time.Since(began) > 10*time.Second {
		t.Errorf("got %v after %v", err, time.Since(began))
	}
}

// TestNew: addresses that are none, and a key that is not there.
func TestNew(t *testing.T) {
	for _, u := range []string{"", "localhost:80", "ftp://a", "http://a:b@c", "http://"} {
		if _, err := New(Config{URL: u}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v", u, err)
		}
	}
	if s, err := New(Config{URL: "https://h/x/speech"}); err != nil || s.cfg.URL != "https://h/x/speech" || s.Name() != "speech at h" {
		t.Errorf("%v", err)
	}
	if _, err := New(Config{URL: "http://h", KeyFile: "/no/such/file"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
