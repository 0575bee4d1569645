// Package speech answers what people say to robots: audio becomes text, text an intent, and an intent the answer that a robot acts on.
package speech

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/speech/endpoint"
	"kennel/speech/intent"
	"kennel/speech/knowledge"
	"kennel/speech/recognizer"
	"kennel/speech/session"
	"kennel/speech/weather"
)

// Intents that the cloud answers where a sentence has none. A robot maps the first to its unmatched_intent, as it does every name that it does
// not know (VEC-INT-04); the second is the user intent silence.
const (
	Unmatched = "intent_system_unmatched"
	Silence   = "intent_system_noaudio"
)

// KnowledgeResponse is the intent of a sentence that a robot says (peer facts, section 1).
const KnowledgeResponse = "intent_knowledge_response_extend"

// LanguageOfAnswer is a parameter of KnowledgeResponse for our agent: the language of the sentence, such as en-US. Without it that is the robot's.
const LanguageOfAnswer = "language"

// cloudWeather is the intent whose parameters the weather provider fills in.
const cloudWeather = "intent_weather_extend"

// Kind is the kind of answer that a robot asks for.
type Kind string

// The kinds.
const (
	Intent    Kind = "intent"    // a command, or the answer to a question that begins as one (knowledge.Asks)
	Knowledge Kind = "knowledge" // the answer to a question: after "I have a question" (VEC-NLP-06)
	Graph     Kind = "graph"     // a command, or the answer to a question if it is none
)

// Encoding is how a robot's audio is coded: 16 kHz, one channel.
type Encoding string

// The encodings.
const (
	PCM  Encoding = "pcm"  // 16 bits, little-endian
	Opus Encoding = "opus" // in Ogg
)

// Request is a spoken or typed request.
type Request struct {
	Session    string   // as the robot named it
	Thing      thing.ID // "": it did not prove which one it is
	Ours       bool     // it has our agent, which understands intent.Own, too
	Kind       Kind
	Language   string // such as en-US; "": the service's own, and for typed text first the one in the robot's settings
	Firmware   string
	Encoding   Encoding
	Timezone   string
	SpeechOnly bool // only the text is wanted
	SkipDAS    bool // nothing that was said may be kept
	SaveAudio  bool // the robot allows its audio to be kept; its owner may not
}

// Audio is where the audio of a request comes from.
type Audio interface {
	// Next returns the next piece, as the robot coded it, and io.EOF after the last. The piece is valid until the next call. Next ends when the
	// caller of Listen ends the stream, which may be after Listen returned.
	Next() ([]byte, error)
}

// Answer is the result of a request. Intent.Cloud is never empty, but for SpeechOnly and for a question.
type Answer struct {
	Text       string  // as it was heard or typed
	Confidence float64 // of the text, 0 to 1; 0 for typed text
	Language   string  // in which the text was understood: the robot's, or English for a typed text that means nothing in that. A question is asked in it
	Intent     intent.Match
	// Knowledge holds the words that the robot says. It is nil if no question was asked, and for a question without an answer (see Question). To a request of the kind
	// Intent it is also in the parameters of Intent.
	Knowledge *knowledge.Answer
	Question  bool // a question was asked: an answer without Knowledge is "no result" (VEC-NLP-04)
}

// Config holds the parts and bounds of a Service. Fields that are left out get the usual value.
type Config struct {
	Recognizer recognizer.Recognizer // nil: there is none
	// Match returns what a text means to a robot.
	Match func(ctx context.Context, to intent.Listener, text string) intent.Match
	// Grammar returns the sentences that a recogniser is to expect (recognizer.Expect); "": its own. It may be nil.
	Grammar   func(ctx context.Context, to intent.Listener) string
	Knowledge knowledge.Provider // nil: it knows nothing
	// Facts knows exactly or not at all, and at once. A question of which a command takes only a part is asked here first: the time in Tokyo is not
	// the time here. It may be nil.
	Facts   knowledge.Provider
	Weather weather.Provider // nil: there is no weather
	Place   string           // of robots whose settings name none of their own; "": none
	// Settings returns the settings document of a robot, "" if there is none. It may be nil.
	Settings func(ctx context.Context, id thing.ID) (string, error)
	Keeper   session.Keeper      // nil: nothing is kept
	Audio    session.AudioKeeper // nil: no audio is kept
	Language string              // of requests that name none: en-US
	AtOnce   int                 // requests at once: 1000
	// Times, each from the first message: robots give up after 9 s.
	Deadline time.Duration // within which every request is answered: 8 s
	Listen   time.Duration // after which what was heard is the request: 6.5 s
	Gap      time.Duration // without a message, with the same end: 3 s
	Endpoint endpoint.Config
	Log      *slog.Logger
}

// Service answers requests. It is safe for concurrent use.
type Service struct {
	cfg    Config
	places chan struct{} // one for each request at once
}

// New returns a service.
func New(cfg Config) *Service {
	usual(&cfg.Language, "en-US")
	usual(&cfg.AtOnce, 1000)
	usual(&cfg.Deadline, 8*time.Second)
	usual(&cfg.Listen, 6500*time.Millisecond)
	usual(&cfg.Gap, 3*time.Second)
	usual(&cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Weather == nil {
		cfg.Weather = weather.None{}
	}
	if cfg.Knowledge == nil {
		cfg.Knowledge = knowledge.First{}
	}
	return &Service{cfg: cfg, places: make(chan struct{}, cfg.AtOnce)}
}

// Hears reports whether there is a recogniser.
func (s *Service) Hears() bool { return s.cfg.Recognizer != nil }

func usual[T comparable](to *T, value T) {
	var none T
	if *to == none {
		*to = value
	}
}

// english is tried for typed words after the robot's own language: documents and pages give their examples in English.
const english = "en-US"

// Text answers a typed request. Its words are understood in the robot's language first, then in English (part of VEC-NLP-08).
func (s *Service) Text(ctx context.Context, r Request, text string) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Deadline, errTime)
	defer cancel()
	at := time.Now()
	if n := len(text); n > maxText {
		return s.end(ctx, r, "text", at, fail(session.Audio, errs.New(errs.Invalid, "text of %d bytes: want at most %d", n, maxText)))
	}
	if r.Language == "" {
		r.Language = s.locale(ctx, r.Thing)
	}
	languages := []string{s.language(r)}
	if !strings.HasPrefix(languages[0], "en") {
		languages = append(languages, english)
	}
	o := s.answer(ctx, r, text, 0, languages...)
	r.Language = o.answer.Language
	return s.end(ctx, r, "text", at, o)
}

// locale returns the language in the settings of a robot; "" if they name none.
func (s *Service) locale(ctx context.Context, id thing.ID) string {
	var doc struct {
		Locale string `json:"locale"`
	}
	_ = json.Unmarshal([]byte(s.settings(ctx, id)), &doc) // the service's own language, then
	return doc.Locale
}

// settings returns the settings document of a robot; "" if there is none that can be read.
func (s *Service) settings(ctx context.Context, id thing.ID) string {
	if s.cfg.Settings == nil || id == "" {
		return ""
	}
	text, err := s.cfg.Settings(ctx, id)
	if err != nil {
		s.cfg.Log.DebugContext(ctx, "robot settings not read", logging.Thing, id, logging.Err, err)
	}
	return text
}

// maxText bounds a typed sentence.
const maxText = 1000

// outcome is an answer or an error, with what the session's record says of it.
type outcome struct {
	answer       Answer
	err          error
	failed       session.Step
	why, by      string
	audio, pause time.Duration // how much was spoken into it; how much of it after the speech
	recognized   time.Duration // after the audio
}

func fail(step session.Step, err error) outcome {
	return outcome{err: err, failed: step, why: err.Error()}
}

// spare is how long before the end of a request its answer is made, so that a source that hangs costs its answer and not the robot's.
const spare = 300 * time.Millisecond

// answer returns what a robot is to do about text, which is in one of the languages, the robot's own first.
func (s *Service) answer(ctx context.Context, r Request, text string, confidence float64, languages ...string) outcome {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, end.Add(-spare), errTime)
		defer cancel()
	}
	o := outcome{answer: Answer{Text: text, Confidence: confidence, Language: languages[0]}}
	if r.SpeechOnly {
		return o
	}
	m, language := s.understand(ctx, r, text, languages)
	r.Language, o.answer.Language = language, language
	if r.Kind == Knowledge {
		o.answer.Question = true
		o.ask(ctx, s.cfg.Knowledge, s.question(r, text))
		return o
	}
	if m.Cloud != "" && m.Confidence < 1 && s.cfg.Facts != nil && knowledge.Asks(text, s.language(r)) {
		if a, err := s.cfg.Facts.Ask(ctx, s.question(r, text)); err == nil {
			o.answer.Knowledge, o.answer.Intent.Cloud = &a, Unmatched
			o.say(r, a)
			return o
		}
	}
	if o.answer.Intent = m; m.Cloud != "" {
		if m.Cloud == cloudWeather {
			s.weather(ctx, r, &o)
		}
		return o
	}
	o.answer.Intent.Cloud = Unmatched
	o.failed, o.why = session.Match, "the words mean nothing to a robot"
	if r.Kind == Graph || knowledge.Asks(text, s.language(r)) {
		if o.ask(ctx, s.cfg.Knowledge, s.question(r, text)); o.answer.Knowledge != nil {
			o.say(r, *o.answer.Knowledge)
		}
	}
	return o
}

// understand returns what text means in the first of the languages in which it is a command, and that language. If text is no command, the
// language is the first in which Facts knows the answer, else the first in which text begins as a question does, else the robot's own.
func (s *Service) understand(ctx context.Context, r Request, text string, languages []string) (intent.Match, string) {
	for _, r.Language = range languages {
		if r.Kind == Knowledge {
			break
		}
		if m := s.cfg.Match(ctx, s.listener(r), text); m.Cloud != "" {
			return m, r.Language
		}
	}
	if len(languages) == 1 {
		return intent.Match{}, languages[0]
	}
	for _, r.Language = range languages {
		if s.cfg.Facts != nil {
			if _, err := s.cfg.Facts.Ask(ctx, s.question(r, text)); err == nil {
				return intent.Match{}, r.Language
			}
		}
	}
	for _, language := range languages {
		if knowledge.Asks(text, language) {
			return intent.Match{}, language
		}
	}
	return intent.Match{}, languages[0]
}

func (s *Service) listener(r Request) intent.Listener {
	return intent.Listener{Thing: r.Thing, Language: s.language(r), Ours: r.Ours}
}

func (s *Service) language(r Request) string {
	if r.Language != "" {
		return r.Language
	}
	return s.cfg.Language
}

func (s *Service) question(r Request, text string) knowledge.Question {
	return knowledge.Question{Text: text, Language: s.language(r), Timezone: r.Timezone, Thing: r.Thing, Forget: r.SkipDAS}
}

func (o *outcome) ask(ctx context.Context, p knowledge.Provider, q knowledge.Question) {
	a, err := p.Ask(ctx, q)
	if errors.Is(err, knowledge.ErrNoResult) && o.failed == session.Match {
		return // it began as a question, and no source knows one: the words mean nothing
	}
	if err != nil {
		o.failed, o.why = session.Answer, err.Error()
		return
	}
	o.answer.Knowledge, o.failed, o.why = &a, "", ""
	if a.Partial {
		o.failed, o.why = session.Answer, "the answer ended too early; its whole sentences were said"
	}
}

// weather fills in what the weather behaviour needs (VEC-INT-06, VEC-NLP-11): of the place that was said, or of the one in the robot's settings. A
// robot that cannot be told of the weather says why.
func (s *Service) weather(ctx context.Context, r Request, o *outcome) {
	settings := s.settings(ctx, r.Thing)
	wishes := weather.Of(settings, s.cfg.Place)
	m := &o.answer.Intent
	if said := m.Params["speakable_location_string"]; said != "" {
		wishes.Place = said
	}
	var day time.Time
	if now := time.Now().In(zone(r.Timezone, settings)); m.Params["when"] != "" {
		if n := intent.Day(m.Params["when"], now.Weekday()); n > 0 {
			day = now.AddDate(0, 0, n)
		}
	}
	w, err := s.cfg.Weather.Report(ctx, weather.Question{Place: wishes.Place, Language: s.language(r), Fahrenheit: wishes.Fahrenheit, Day: day})
	if err != nil {
		o.say(r, knowledge.Answer{Spoken: weather.Excuse(err, s.language(r))})
		o.failed, o.why = session.Answer, err.Error()
		return
	}
	m.Params = map[string]string{
		"condition": string(w.Condition), "is_forecast": strconv.FormatBool(w.Forecast), "local_datetime": w.At.Format(time.RFC3339),
		"speakable_location_string": w.Place, "temperature": strconv.Itoa(w.Temperature), "temperature_unit": w.Unit,
	}
}

// say makes a sentence the answer, in the form that fits the request: robots speak the answer of this intent, too. Its question has both spellings (VEC-INT-06),
// so that no parameter is missing.
func (o *outcome) say(r Request, a knowledge.Answer) {
	o.answer.Knowledge = &a
	if r.Kind != Intent {
		o.answer.Question, o.answer.Intent = true, intent.Match{}
		return
	}
	o.answer.Intent = intent.Match{UserIntent: "knowledge_response", Cloud: KnowledgeResponse, Confidence: 1,
		Params: map[string]string{"answer": a.Spoken, "answer_type": "InformationCommand", "query_text": o.answer.Text, "query_ttext": o.answer.Text}}
	if r.Ours && o.answer.Language != "" {
		o.answer.Intent.Params[LanguageOfAnswer] = o.answer.Language
	}
}

// zone is where a robot is: as it says, or as its settings do.
func zone(name, settings string) *time.Location {
	if name == "" {
		var doc struct {
			Zone string `json:"time_zone"`
		}
		_ = json.Unmarshal([]byte(settings), &doc) // UTC, then
		name = doc.Zone
	}
	if loc, err := time.LoadLocation(name); err == nil && name != "Local" {
		return loc
	}
	return time.UTC
}

// end hands the session to the keeper, and returns the answer.
func (s *Service) end(ctx context.Context, r Request, encoding string, at time.Time, o outcome) (Answer, error) {
	s.cfg.Log.DebugContext(ctx, "speech answered", logging.Thing, r.Thing, "intent", o.answer.Intent.Cloud, "failed", o.failed, "pause", o.pause,
		"recognized", o.recognized, "answered", time.Since(at))
	if s.cfg.Keeper == nil {
		return o.answer, o.err
	}
	rec := session.Session{ID: r.Session, Thing: r.Thing, At: at, Kind: string(r.Kind), Language: s.language(r), Firmware: r.Firmware, Encoding: encoding, Recognizer: o.by,
		Cloud: o.answer.Intent.Cloud, Confidence: o.answer.Confidence, Failed: o.failed, Why: o.why, Audio: o.audio, Took: o.pause + time.Since(at), SkipDAS: r.SkipDAS}
	if !r.SkipDAS {
		rec.Text = o.answer.Text
	}
	s.cfg.Keeper.Keep(context.WithoutCancel(ctx), rec)
	return o.answer, o.err
}
