// Package transcription recognises speech with a server that has the common HTTP transcription API, POST /v1/audio/transcriptions: the server of
// whisper.cpp and compatible ones.
package transcription

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
)

// Config configures a Recognizer.
type Config struct {
	URL     string // of the server, or with a path, of its transcription
	Model   string // default whisper-1
	KeyFile string // of a token for the header Authorization; "": none
	Client  *http.Client
}

// Recognizer asks a server once for each utterance.
type Recognizer struct {
	cfg  Config
	name string
	key  string
}

const (
	longest   = 30 * time.Second // a server hears half a minute at once
	maxAnswer = 1 << 20
)

// New returns a recogniser. It does not ask the server.
func New(cfg Config) (*Recognizer, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errs.New(errs.Invalid, "transcription server %.100q: want http://HOST:PORT", cfg.URL)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/audio/transcriptions"
	}
	cfg.URL = u.String()
	r := &Recognizer{cfg: cfg, name: "transcription at " + u.Host}
	if r.cfg.Model == "" {
		r.cfg.Model = "whisper-1"
	}
	if r.cfg.Client == nil {
		r.cfg.Client = &http.Client{Timeout: 10 * time.Second}
	}
	if cfg.KeyFile != "" {
		key, err := os.ReadFile(cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("key of the transcription server: %w", err)
		}
		r.key = strings.TrimSpace(string(key))
	}
	return r, nil
}

// Name returns "transcription at HOST".
func (r *Recognizer) Name() string { return r.name }

// Open begins an utterance; the server is asked at its end.
func (r *Recognizer) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	return recognizer.Whole(ctx, longest, func(ctx context.Context, pcm []byte) (recognizer.Result, error) {
		got, err := r.ask(ctx, e.Language, pcm)
		if err != nil {
			return recognizer.Result{}, fmt.Errorf("%s: %w", r.name, err)
		}
		return got, nil
	}), nil
}

func (r *Recognizer) ask(ctx context.Context, language string, pcm []byte) (recognizer.Result, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	code, _, _ := strings.Cut(language, "-")
	for _, f := range [][2]string{{"model", r.cfg.Model}, {"language", strings.ToLower(code)}, {"response_format", "verbose_json"}, {"temperature", "0"}} {
		if f[1] != "" {
			_ = form.WriteField(f[0], f[1]) // to memory, as all of the form
		}
	}
	file, _ := form.CreateFormFile("file", "speech.wav")
	_, _ = file.Write(wave(pcm))
	_ = form.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.cfg.URL, &body)
	if err != nil {
		return recognizer.Result{}, err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	resp, err := r.cfg.Client.Do(req)
	if err != nil {
		return recognizer.Result{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return recognizer.Result{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return recognizer.Result{}, fmt.Errorf("status %s", resp.Status)
	}
	text, confidence, err := parse(answer)
	return recognizer.Result{Text: text, Confidence: confidence, By: r.name}, err
}

// wave returns samples as a WAV file.
func wave(pcm []byte) []byte {
	b := append(make([]byte, 0, 44+len(pcm)), "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(36+len(pcm)))
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	b = binary.LittleEndian.AppendUint32(b, recognizer.Rate)
	b = binary.LittleEndian.AppendUint32(b, 2*recognizer.Rate)
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(pcm)))
	return append(b, pcm...)
}

// sounds are what servers write for sounds without words, such as [BLANK_AUDIO] or (wind blowing).
var sounds = regexp.MustCompile(`\[[^\]]*\]|\([^)]*\)|♪+`)

// parse reads an answer. The confidence is the mean probability of a token, or 1 if the server does not tell it.
func parse(answer []byte) (text string, confidence float64, err error) {
	var a struct {
		Text     *string
		Segments []struct {
			AvgLogprob   float64 `json:"avg_logprob"`
			NoSpeechProb float64 `json:"no_speech_prob"`
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return "", 0, fmt.Errorf("answer: %w", err)
	}
	if a.Text == nil {
		return "", 0, fmt.Errorf(`answer of %d bytes: want {"text": ...}`, len(answer))
	}
	if text = strings.Join(strings.Fields(sounds.ReplaceAllString(*a.Text, " ")), " "); text == "" || len(a.Segments) == 0 {
		return text, 1, nil
	}
	for _, s := range a.Segments {
		if s.NoSpeechProb < 0.6 {
			confidence += math.Exp(min(0, s.AvgLogprob)) / float64(len(a.Segments))
		}
	}
	return text, confidence, nil
}
