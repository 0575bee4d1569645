package voice

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/wav"
	"kennel/speech"
	"kennel/speech/intent"
	"kennel/speech/knowledge"
	"kennel/speech/recognizer"
	"kennel/speech/session"
	"kennel/speech/weather"
)

// MaxTry is the largest recording that can be tried, in bytes: 30 s of two channels at 48 kHz.
const MaxTry = 44 + 30*48_000*2*2

// maxLength is the length of the longest.
const maxLength = 30 * time.Second

// Trial tells what the service makes of a recording, step by step.
type Trial struct {
	Text       string            `json:"text"`
	Confidence float64           `json:"confidence"` // of the text
	UserIntent string            `json:"user_intent"`
	Intent     string            `json:"intent"` // as the cloud names it
	Params     map[string]string `json:"params,omitempty"`
	Answer     string            `json:"answer,omitempty"` // to a question
	Failed     session.Step      `json:"failed,omitempty"`
	Steps      []Tried           `json:"steps"`
	TookMs     float64           `json:"took_ms"`
}

// Tried is one step of a Trial.
type Tried struct {
	Step   session.Step `json:"step"`
	OK     bool         `json:"ok"`
	TookMs float64      `json:"took_ms"`
	Says   string       `json:"says"` // what came out, or why it failed
}

// Try sends a recording through a service like the robots' one, as fast as it takes it. Nothing of it is kept. Errors are Invalid for a file that is no
// recording, and those of the service.
func Try(ctx context.Context, cfg speech.Config, file []byte, language string, kind speech.Kind) (Trial, error) {
	audio, encoding, length, err := recordingOf(file)
	if err != nil {
		return Trial{}, err
	}
	w := &watch{}
	if cfg.Recognizer != nil {
		cfg.Recognizer = watchedRecognizer{cfg.Recognizer, w}
	}
	match := cfg.Match
	cfg.Match = func(ctx context.Context, to intent.Listener, text string) intent.Match {
		defer w.time(&w.match)()
		return match(ctx, to, text)
	}
	if cfg.Knowledge != nil {
		cfg.Knowledge = watchedKnowledge{cfg.Knowledge, w}
	}
	if cfg.Weather != nil {
		cfg.Weather = watchedWeather{cfg.Weather, w}
	}
	cfg.Keeper, cfg.Audio = w, nil
	began := time.Now()
	a, err := speech.New(cfg).Listen(ctx, speech.Request{Session: "try", Ours: true, Kind: kind, Language: language, Encoding: encoding}, &pieces{rest: audio})
	took := time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.session
	out := Trial{Text: a.Text, Confidence: a.Confidence, UserIntent: a.Intent.UserIntent, Intent: a.Intent.Cloud, Params: a.Intent.Params, Failed: s.Failed, TookMs: millis(took)}
	if a.Knowledge != nil {
		out.Answer = a.Knowledge.Spoken
	}
	listened := max(took-w.recognize-w.match-w.answer, 0)
	if length == 0 {
		length = s.Audio
	}
	out.Steps = []Tried{
		{session.Audio, true, 0, fmt.Sprintf("%.2f s of %s", length.Seconds(), encoding)},
		{session.Endpoint, true, millis(listened), fmt.Sprintf("the request is the first %.2f s", s.Audio.Seconds())},
		{session.Recognize, true, millis(w.recognize), fmt.Sprintf("%q, confidence %.2f, by %s", a.Text, a.Confidence, s.Recognizer)},
		{session.Match, true, millis(w.match), fmt.Sprintf("%s, confidence %.2f", a.Intent.Cloud, a.Intent.Confidence)},
		{session.Answer, true, millis(w.answer), out.Answer},
	}
	if w.answer == 0 { // nothing was asked
		out.Steps = out.Steps[:4]
	}
	if kind == speech.Knowledge {
		out.Steps = append(out.Steps[:3], out.Steps[4:]...) // a question has no intent
	}
	for i, step := range out.Steps {
		if step.Step == s.Failed {
			out.Steps[i].OK, out.Steps[i].Says = false, s.Why
			out.Steps = out.Steps[:i+1]
			break
		}
	}
	if s.Failed != "" { // the robot hears an error, which the step tells of
		err = nil
	}
	return out, err
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// recordingOf returns the audio of a file in the format WAV (wav.Parse) or Ogg, and the length of a WAV file. A WAV file of another rate is resampled, and
// one of several channels becomes their mean.
func recordingOf(file []byte) (audio []byte, e speech.Encoding, length time.Duration, err error) {
	if bytes.HasPrefix(file, []byte("OggS")) {
		return file, speech.Opus, 0, nil
	}
	s, err := wav.Parse(file)
	if err != nil {
		return nil, "", 0, errs.New(errs.Invalid, "%w; a recording is a WAV file, or Opus in Ogg: sox IN OUT.wav converts others", err)
	}
	length = time.Duration(len(s.Samples)/s.Channels) * time.Second / time.Duration(s.Rate)
	if length > maxLength {
		return nil, "", 0, errs.New(errs.Invalid, "a recording of %v: want at most %v", length.Round(time.Second), maxLength)
	}
	audio = make([]byte, 2*3*recognizer.Rate/10) // a robot's microphones hear the room before and after speech
	for _, v := range s.Mono().Resample(recognizer.Rate).Samples {
		audio = binary.LittleEndian.AppendUint16(audio, uint16(v))
	}
	return append(audio, make([]byte, 2*6*recognizer.Rate/10)...), speech.PCM, length, nil
}

// pieces is a speech.Audio of bytes.
type pieces struct{ rest []byte }

// pieceSize is how much original robots send at once: 120 ms.
const pieceSize = 2 * 120 * recognizer.Rate / 1000

// Next implements speech.Audio.
func (p *pieces) Next() ([]byte, error) {
	if len(p.rest) == 0 {
		return nil, io.EOF
	}
	n := min(len(p.rest), pieceSize)
	piece := p.rest[:n]
	p.rest = p.rest[n:]
	return piece, nil
}

// watch adds up the time of each part of a service, and is its session.Keeper.
type watch struct {
	mu                       sync.Mutex
	recognize, match, answer time.Duration
	session                  session.Session
}

// time begins to measure a part, until the function that it returns is called.
func (w *watch) time(part *time.Duration) func() {
	began := time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		*part += max(time.Since(began), 1)
	}
}

// Keep implements session.Keeper.
func (w *watch) Keep(_ context.Context, s session.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session = s
}

type watchedRecognizer struct {
	recognizer.Recognizer
	w *watch
}

func (r watchedRecognizer) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	defer r.w.time(&r.w.recognize)()
	s, err := r.Recognizer.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return watchedStream{s, r.w}, nil
}

type watchedStream struct {
	recognizer.Stream
	w *watch
}

func (s watchedStream) Write(samples []int16) error {
	defer s.w.time(&s.w.recognize)()
	return s.Stream.Write(samples)
}

func (s watchedStream) Finish() (recognizer.Result, error) {
	defer s.w.time(&s.w.recognize)()
	return s.Stream.Finish()
}

type watchedKnowledge struct {
	knowledge.Provider
	w *watch
}

func (k watchedKnowledge) Ask(ctx context.Context, q knowledge.Question) (knowledge.Answer, error) {
	defer k.w.time(&k.w.answer)()
	return k.Provider.Ask(ctx, q)
}

type watchedWeather struct {
	weather.Provider
	w *watch
}

func (k watchedWeather) Report(ctx context.Context, q weather.Question) (weather.Report, error) {
	defer k.w.time(&k.w.answer)()
	return k.Provider.Report(ctx, q)
}
