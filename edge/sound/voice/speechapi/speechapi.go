// Package speechapi makes speech with a server that has the common HTTP interface, POST /v1/audio/speech: OpenAI's, and compatible ones for models on a machine of one's own.
package speechapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"kennel/edge/sound"
	"kennel/edge/sound/voice"
	"kennel/infra/errs"
	"kennel/infra/wav"
)

// Config configures a Server.
type Config struct {
	URL     string // of the server, or with a path, of its speech
	Model   string // default tts-1
	Voice   string // default alloy
	KeyFile string // of a token for the header Authorization; "": none
	Client  *http.Client
	Limit   time.Duration // of one answer; default 20 s
}

const (
	maxAnswer = 64 << 20 // bytes: 10 minutes of 24,000 samples a second are 29 MB
	rawRate   = 24_000   // of answers without a header, as the interface has it
)

// Server is a synthesiser.
type Server struct {
	cfg  Config
	name string
	key  string
}

// New returns a synthesiser. It does not ask the server. Invalid for a URL that is none.
func New(cfg Config) (*Server, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errs.New(errs.Invalid, "speech server %.100q: expected http://HOST:PORT", cfg.URL)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/audio/speech"
	}
	cfg.URL = u.String()
	cfg.Model, cfg.Voice, cfg.Limit = cmp.Or(cfg.Model, "tts-1"), cmp.Or(cfg.Voice, "alloy"), cmp.Or(cfg.Limit, 20*time.Second)
	if cfg.Client == nil {
		cfg.Client = &http.Client{}
	}
	s := &Server{cfg: cfg, name: "speech at " + u.Host}
	if cfg.KeyFile != "" {
		key, err := os.ReadFile(cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("key of the speech server: %w", err)
		}
		s.key = strings.TrimSpace(string(key))
	}
	return s, nil
}

// Name returns "speech at HOST".
func (s *Server) Name() string { return s.name }

// Speak implements voice.Synthesizer. The server is asked for speech at its usual speed; speed and pitch are done here, because servers differ in what they take. Unavailable
// for an answer that does not come in time, breaks off or is no sound; Unauthenticated, Exhausted and Invalid for what servers refuse so.
func (s *Server) Speak(ctx context.Context, r voice.Request) (u voice.Utterance, err error) {
	limited, cancel := context.WithTimeout(ctx, s.cfg.Limit)
	defer cancel()
	b, kind, err := s.ask(limited, r)
	switch {
	case ctx.Err() != nil:
		return u, fmt.Errorf("%s: %w", s.name, ctx.Err())
	case limited.Err() != nil:
		return u, errs.New(errs.Unavailable, "%s: no answer within %v", s.name, s.cfg.Limit)
	case err != nil:
		return u, fmt.Errorf("%s: %w", s.name, err)
	}
	if u.Sound, err = read(b, kind); err != nil {
		return u, errs.New(errs.Unavailable, "%s: %w", s.name, err)
	}
	if u.Sound.Span() > 10*time.Minute {
		return u, errs.New(errs.Unavailable, "%s: expected at most 10 minutes of speech, found %v", s.name, u.Sound.Span())
	}
	return u.Shaped(cmp.Or(r.Speed, 1), cmp.Or(r.Pitch, 1))
}

func (s *Server) ask(ctx context.Context, r voice.Request) (b []byte, kind string, err error) {
	question, err := json.Marshal(map[string]string{"model": s.cfg.Model, "voice": cmp.Or(r.Voice, s.cfg.Voice), "input": r.Text, "response_format": "wav"})
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(question))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := s.cfg.Client.Do(req)
	if err != nil {
		return nil, "", errs.New(errs.Unavailable, "%w", err)
	}
	defer resp.Body.Close()
	b, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, "", errs.New(errs.Unavailable, "answer breaks off after %d bytes: %w", len(b), err)
	case len(b) > maxAnswer:
		return nil, "", errs.New(errs.Unavailable, "expected an answer of at most %d bytes, found more", maxAnswer)
	case resp.StatusCode != http.StatusOK:
		return nil, "", refused(resp, b)
	}
	kind, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type")) // "" is looked at as what it begins with
	return b, kind, nil
}

// refused returns the error of a status, with what the server says of it.
func refused(resp *http.Response, b []byte) error {
	var a struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(b, &a) // an answer of another form says nothing more than its status
	kind := errs.Unavailable
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = errs.Unauthenticated
	case http.StatusTooManyRequests:
		kind = errs.Exhausted
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		kind = errs.Invalid
	}
	return errs.New(kind, "status %s %.200s", resp.Status, a.Error.Message)
}

// read reads a sound: a WAV file, of which servers that stream do not know the sizes, or raw samples.
func read(b []byte, kind string) (*sound.Sound, error) {
	if bytes.HasPrefix(b, []byte("RIFF")) {
		w, err := wav.Parse(b)
		if err != nil {
			return nil, err
		}
		w = w.Mono()
		return sound.FromPCM(w.Rate, w.Samples), nil
	}
	if (kind == "audio/pcm" || kind == "application/octet-stream") && len(b) >= 2 && len(b)%2 == 0 {
		w, err := wav.Parse(append(wav.AppendHeader(nil, rawRate, 1, len(b)), b...))
		if err != nil {
			return nil, err
		}
		return sound.FromPCM(w.Rate, w.Samples), nil
	}
	if len(b) == 0 {
		return nil, errors.New("empty answer")
	}
	return nil, fmt.Errorf("expected a WAV file or raw samples, found %d bytes of %.60q", len(b), kind)
}
