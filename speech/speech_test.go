package speech_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/intent"
	"kennel/speech/knowledge"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/fixed"
	"kennel/speech/session"
	"kennel/speech/weather"
)

const robot = thing.ID("vic:00e20100")

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("ogg/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pieces is the audio of a robot: 120 ms of PCM at a time. every is the time between two of them, hang what it does at the end: nothing more is
// sent, or the stream ends.
type pieces struct {
	b     []byte
	size  int
	every time.Duration
	hang  <-chan struct{}
}

func (p *pieces) Next() ([]byte, error) {
	time.Sleep(p.every)
	if len(p.b) == 0 && p.hang != nil {
		<-p.hang
		return nil, context.Canceled
	}
	if len(p.b) == 0 {
		return nil, io.EOF
	}
	n := min(max(p.size, 1), len(p.b))
	piece := p.b[:n]
	p.b = p.b[n:]
	return piece, nil
}

// spoken is "set a timer for ten minutes" and a second of a quiet room.
func spoken(t testing.TB) []byte {
	return append(read(t, "robot.pcm"), make([]byte, 2*recognizer.Rate)...)
}

type keeper struct {
	mu  sync.Mutex
	all []session.Session
}

func (k *keeper) Keep(_ context.Context, s session.Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, s)
}

func (k *keeper) last() session.Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all[len(k.all)-1]
}

type audio map[string]int // samples by session

func (a audio) Keep(_ context.Context, id thing.ID, session string, samples []int16) {
	a[string(id)+" "+session] += len(samples)
}

type asked struct{ err error }

func (a asked) Ask(_ context.Context, q knowledge.Question) (knowledge.Answer, error) {
	return knowledge.Answer{Spoken: "of " + q.Text + " in " + q.Timezone, Source: "test", Partial: q.Text == "half of it"}, a.err
}

type sky struct{ err error }

func (s sky) Report(_ context.Context, q weather.Question) (weather.Report, error) {
	unit := map[bool]string{true: "F", false: "C"}[q.Fahrenheit]
	return weather.Report{Condition: weather.Rain, Place: q.Place, Temperature: 7, Unit: unit, At: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)}, s.err
}

func match(_ context.Context, _ intent.Listener, text string) intent.Match {
	switch text {
	case "set a timer for ten minutes":
		return intent.Match{UserIntent: "set_timer", Cloud: "intent_clock_settimer_extend", Params: map[string]string{"timer_duration": "600"}, Confidence: 0.9}
	case "what time is it":
		return intent.Match{UserIntent: "show_clock", Cloud: "intent_clock_time", Confidence: 1}
	case "what time is it in tokyo", "what time is it in atlantis":
		return intent.Match{UserIntent: "show_clock", Cloud: "intent_clock_time", Confidence: 0.7}
	case "weather":
		return intent.Match{UserIntent: "weather_response", Cloud: "intent_weather_extend", Confidence: 0.9}
	case "weather in paris":
		return intent.Match{UserIntent: "weather_response", Cloud: "intent_weather_extend", Params: map[string]string{"speakable_location_string": "Paris"}, Confidence: 0.9}
	}
	return intent.Match{}
}

func service(k *keeper, r recognizer.Recognizer) speech.Config {
	return speech.Config{Recognizer: r, Match: match, Keeper: k, Knowledge: asked{}, Weather: sky{},
		Settings: func(context.Context, thing.ID) (string, error) {
			return `{"default_location": "Oslo", "temp_is_fahrenheit": false}`, nil
		}}
}

var timer = &fixed.Recognizer{Text: "set a timer for ten minutes", Confidence: 0.8}

// TestListen: from audio to the intent, in both encodings and at all cuts, and what is kept of it.
func TestListen(t *testing.T) {
	for name, tc := range map[string]struct {
		encoding speech.Encoding
		b        []byte
		size     int
	}{
		"pcm":                {speech.PCM, spoken(t), 3840},
		"pcm, odd pieces":    {speech.PCM, spoken(t), 333},
		"pcm, one piece":     {speech.PCM, spoken(t), 1 << 20},
		"opus":               {speech.Opus, read(t, "robot.opus"), 1000},
		"opus, small pieces": {speech.Opus, read(t, "robot.opus"), 7},
	} {
		t.Run(name, func(t *testing.T) {
			var k keeper
			r := speech.Request{Session: "1", Thing: robot, Kind: speech.Intent, Encoding: tc.encoding, Firmware: "1.8"}
			got, err := speech.New(service(&k, timer)).Listen(t.Context(), r, &pieces{b: tc.b, size: tc.size})
			want := speech.Answer{Text: timer.Text, Confidence: 0.8, Language: "en-US", Intent: match(t.Context(), intent.Listener{}, timer.Text)}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
			s := k.last()
			if s.Audio < 1700*time.Millisecond || s.Audio > 2500*time.Millisecond || s.Took <= 0 {
				t.Errorf("%v of audio, took %v", s.Audio, s.Took)
			}
			s.At, s.Audio, s.Took = time.Time{}, 0, 0
			if want := (session.Session{ID: "1", Thing: robot, Kind: "intent", Language: "en-US", Firmware: "1.8", Encoding: string(tc.encoding), Recognizer: "fixed",
				Text: timer.Text, Cloud: want.Intent.Cloud, Confidence: 0.8}); s != want {
				t.Errorf("kept %+v, want %+v", s, want)
			}
		})
	}
}

// TestFailures: what is answered where a step fails, and that the session names the step.
func TestFailures(t *testing.T) {
	down := errors.New("connection refused")
	room := make([]byte, 5*2*recognizer.Rate)
	for name, tc := range map[string]struct {
		r     recognizer.Recognizer
		opus  bool
		b     []byte
		cloud string
		kind  errs.Kind
		step  session.Step
	}{
		"no audio":             {r: timer, cloud: speech.Silence, step: session.Audio},
		"nobody speaks":        {r: timer, b: room, cloud: speech.Silence, step: session.Endpoint},
		"garbage for Opus":     {r: timer, opus: true, b: room, kind: errs.Invalid, step: session.Audio},
		"no recogniser":        {b: spoken(t), kind: errs.Unavailable, step: session.Recognize},
		"down at the start":    {r: &fixed.Recognizer{OpenErr: down}, b: spoken(t), kind: errs.Unavailable, step: session.Recognize},
		"down at the end":      {r: &fixed.Recognizer{Err: down}, b: spoken(t), kind: errs.Unavailable, step: session.Recognize},
		"nothing understood":   {r: &fixed.Recognizer{}, b: spoken(t), cloud: speech.Unmatched, step: session.Recognize},
		"means nothing to it":  {r: &fixed.Recognizer{Text: "colourless green ideas"}, b: spoken(t), cloud: speech.Unmatched, step: session.Match},
		"a robot that goes on": {r: timer, b: append(spoken(t), make([]byte, 1<<20)...), cloud: "intent_clock_settimer_extend"},
	} {
		t.Run(name, func(t *testing.T) {
			var k keeper
			r := speech.Request{Kind: speech.Intent, Encoding: speech.PCM}
			if tc.opus {
				r.Encoding = speech.Opus
			}
			got, err := speech.New(service(&k, tc.r)).Listen(t.Context(), r, &pieces{b: tc.b, size: 3840})
			if got.Intent.Cloud != tc.cloud || (tc.kind == 0) != (err == nil) || err != nil && errs.KindOf(err) != tc.kind {
				t.Errorf("%+v, %v; want %q, %v", got, err, tc.cloud, tc.kind)
			}
			if s := k.last(); s.Failed != tc.step || (s.Why == "") != (tc.step == "") {
				t.Errorf("failed at %q (%s), want %q", s.Failed, s.Why, tc.step)
			}
		})
	}
}

// hanging is a recogniser that neither answers nor hears that it shall end, at one of its calls.
type hanging struct {
	at   string
	stop chan struct{}
}

func (h hanging) wait(at string) {
	if h.at == at {
		<-h.stop
	}
}
func (h hanging) Name() string { return "hanging" }
func (h hanging) Open(context.Context, recognizer.Expect) (recognizer.Stream, error) {
	h.wait("open")
	return h, nil
}
func (h hanging) Write([]int16) error { h.wait("write"); return nil }
func (h hanging) Partial() string     { return "" }
func (h hanging) Finish() (recognizer.Result, error) {
	h.wait("finish")
	return recognizer.Result{}, nil
}
func (h hanging) Close() error { return nil }

// TestDeadline: whatever hangs, a robot that gives up after 9 s has its answer.
func TestDeadline(t *testing.T) {
	const piece = 120 * time.Millisecond
	for name, tc := range map[string]struct {
		at       string
		patience time.Duration // of the caller; 0: as long as a robot's
		b        []byte
		answer   time.Duration
		cloud    string
		step     session.Step
	}{
		"the recogniser hangs at the start": {at: "open", b: spoken(t), answer: 8 * time.Second, step: session.Recognize},
		"the recogniser hangs in between":   {at: "write", b: spoken(t), answer: 8 * time.Second, step: session.Recognize},
		"the recogniser hangs at the end":   {at: "finish", b: spoken(t), answer: 8 * time.Second, step: session.Recognize},
		"the robot stops in a word":         {b: spoken(t)[:48000], answer: 3*time.Second + 13*piece, cloud: "intent_clock_settimer_extend"},
		"the robot sends nothing":           {answer: 3 * time.Second, cloud: speech.Silence, step: session.Audio},
		"an impatient caller":               {at: "finish", patience: 4 * time.Second, b: spoken(t), answer: 3500 * time.Millisecond, step: session.Recognize},
		"the person speaks on":              {b: continuous(t, 20), answer: 6500 * time.Millisecond, cloud: "intent_clock_settimer_extend"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var k keeper
				h, r := hanging{tc.at, make(chan struct{})}, recognizer.Recognizer(timer)
				if tc.at != "" {
					r = h
				}
				ended := make(chan struct{})
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(tc.patience, 9*time.Second))
				defer cancel()
				got, err := speech.New(service(&k, r)).Listen(ctx, speech.Request{Kind: speech.Intent, Encoding: speech.PCM}, &pieces{b: tc.b, size: 3840, every: piece, hang: ended})
				if took := time.Since(began); took > tc.answer+piece || took < tc.answer-piece || got.Intent.Cloud != tc.cloud || tc.cloud == "" && errs.KindOf(err) != errs.Unavailable {
					t.Errorf("%+v, %v after %v; want %q after %v", got, err, took, tc.cloud, tc.answer)
				}
				if s := k.last(); s.Failed != tc.step {
					t.Errorf("failed at %q (%s), want %q", s.Failed, s.Why, tc.step)
				}
				close(h.stop)
				close(ended)
				time.Sleep(piece) // the last goroutine hears of the end
			})
		})
	}
}

// continuous is a person who speaks for so many seconds without a pause.
func continuous(t testing.TB, seconds int) (out []byte) {
	say := read(t, "robot.pcm")[4000:]
	for len(out) < seconds*2*recognizer.Rate {
		out = append(out, say...)
	}
	return out[:seconds*2*recognizer.Rate]
}

// TestPlaces: more than so many at once are refused politely, and a place is free again after its request.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		cfg := service(&k, timer)
		cfg.AtOnce = 10
		s := speech.New(cfg)
		ended := make(chan struct{})
		var wg sync.WaitGroup
		var refused, silent atomic.Int32
		for range 15 {
			wg.Go(func() {
				got, err := s.Listen(t.Context(), speech.Request{Encoding: speech.PCM}, &pieces{hang: ended})
				if errs.KindOf(err) == errs.Unavailable && errs.RetryOf(err) > 0 {
					refused.Add(1)
				} else if err == nil && got.Intent.Cloud == speech.Silence {
					silent.Add(1)
				}
			})
		}
		wg.Wait()
		if refused.Load() != 5 || silent.Load() != 10 {
			t.Errorf("%d refused, %d answered", refused.Load(), silent.Load())
		}
		close(ended)
		synctest.Wait()
		if _, err := s.Listen(t.Context(), speech.Request{Encoding: speech.PCM}, &pieces{b: spoken(t), size: 3840}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestText: a typed sentence takes the same way; questions and weather (VEC-NLP-04, VEC-NLP-06, VEC-NLP-11, VEC-INT-06).
func TestText(t *testing.T) {
	rain := func(place, unit string) intent.Match {
		return intent.Match{UserIntent: "weather_response", Cloud: "intent_weather_extend", Confidence: 0.9, Params: map[string]string{"condition": "Rain", "is_forecast": "false",
			"local_datetime": "2026-11-23T09:00:00Z", "speakable_location_string": place, "temperature": "7", "temperature_unit": unit}}
	}
	down := errors.New("no route to host")
	said := func(text, sentence string) speech.Answer {
		source := map[bool]string{true: "test"}[strings.HasPrefix(sentence, "of ")] // an answer's
		return speech.Answer{Knowledge: &knowledge.Answer{Spoken: sentence, Source: source}, Intent: intent.Match{UserIntent: "knowledge_response", Cloud: "intent_knowledge_response_extend", Confidence: 1,
			Params: map[string]string{"answer": sentence, "answer_type": "InformationCommand", "query_text": text, "query_ttext": text}}}
	}
	for name, tc := range map[string]struct {
		r     speech.Request
		text  string
		know  error
		sky   error
		want  speech.Answer
		step  session.Step
		kind  errs.Kind
		heard string // kept of the text
	}{
		"a command":                      {r: speech.Request{Kind: speech.Intent}, text: "set a timer for ten minutes", want: speech.Answer{Intent: match(t.Context(), intent.Listener{}, "set a timer for ten minutes")}},
		"nonsense":                       {r: speech.Request{Kind: speech.Intent}, text: "nonsense", want: speech.Answer{Intent: intent.Match{Cloud: speech.Unmatched}}, step: session.Match},
		"a question":                     {r: speech.Request{Kind: speech.Knowledge, Timezone: "Europe/Oslo"}, text: "the age", want: speech.Answer{Question: true, Knowledge: &knowledge.Answer{Spoken: "of the age in Europe/Oslo", Source: "test"}}},
		"a question with half an answer": {r: speech.Request{Kind: speech.Knowledge}, text: "half of it", want: speech.Answer{Question: true, Knowledge: &knowledge.Answer{Spoken: "of half of it in ", Source: "test", Partial: true}}, step: session.Answer},
		"a question without an answer": {r: speech.Request{Kind: speech.Knowledge}, text: "the age", know: knowledge.ErrNoResult,
			want: speech.Answer{Question: true}, step: session.Answer},
		"a command, or a question": {r: speech.Request{Kind: speech.Graph}, text: "set a timer for ten minutes", want: speech.Answer{Intent: match(t.Context(), intent.Listener{}, "set a timer for ten minutes")}},
		"no command, so a question": {r: speech.Request{Kind: speech.Graph}, text: "the age",
			want: speech.Answer{Question: true, Knowledge: &knowledge.Answer{Spoken: "of the age in ", Source: "test"}}},
		"a question without its announcement": {r: speech.Request{Kind: speech.Intent}, text: "what is the meaning of life", want: said("what is the meaning of life", "of what is the meaning of life in ")},
		"a question without its announcement or an answer": {r: speech.Request{Kind: speech.Intent}, text: "what is the meaning of life", know: knowledge.ErrNoResult,
			want: speech.Answer{Intent: intent.Match{Cloud: speech.Unmatched}}, step: session.Match},
		"a command, and all of it": {r: speech.Request{Kind: speech.Intent}, text: "what time is it", want: speech.Answer{Intent: match(t.Context(), intent.Listener{}, "what time is it")}},
		"a question of which a command is a part": {r: speech.Request{Kind: speech.Intent}, text: "what time is it in tokyo",
			want: said("what time is it in tokyo", "of Tokyo's time")},
		"a question that a command takes, for want of an answer": {r: speech.Request{Kind: speech.Intent}, text: "what time is it in atlantis",
			want: speech.Answer{Intent: match(t.Context(), intent.Listener{}, "what time is it in atlantis")}},
		"no question":                {r: speech.Request{Kind: speech.Intent}, text: "the age", want: speech.Answer{Intent: intent.Match{Cloud: speech.Unmatched}}, step: session.Match},
		"neither":                    {r: speech.Request{Kind: speech.Graph}, text: "the age", know: down, want: speech.Answer{Intent: intent.Match{Cloud: speech.Unmatched}}, step: session.Answer},
		"weather":                    {r: speech.Request{Thing: robot, Kind: speech.Intent}, text: "weather", want: speech.Answer{Intent: rain("Oslo", "C")}},
		"weather elsewhere":          {r: speech.Request{Thing: robot, Kind: speech.Intent}, text: "weather in paris", want: speech.Answer{Intent: rain("Paris", "C")}},
		"weather of an unproven":     {r: speech.Request{Kind: speech.Intent}, text: "weather", want: speech.Answer{Intent: rain("", "F")}},
		"weather that nothing tells": {r: speech.Request{Thing: robot, Kind: speech.Intent}, text: "weather", sky: down, want: said("weather", "I cannot reach the weather now."), step: session.Answer},
		"weather of no place in German": {r: speech.Request{Kind: speech.Intent, Language: "de-DE"}, text: "weather", sky: weather.ErrNoPlace,
			want: said("weather", "Ich weiß nicht, wo ich wohne. Der Ort fehlt in meinen Einstellungen."), step: session.Answer},
		"weather that nothing tells to a typed request": {r: speech.Request{Thing: robot, Kind: speech.Graph}, text: "weather", sky: down,
			want: speech.Answer{Question: true, Knowledge: &knowledge.Answer{Spoken: "I cannot reach the weather now."}}, step: session.Answer},
		"only the text":               {r: speech.Request{Kind: speech.Intent, SpeechOnly: true}, text: "weather"},
		"an owner who keeps no words": {r: speech.Request{Kind: speech.Intent, SkipDAS: true}, text: "nonsense", want: speech.Answer{Intent: intent.Match{Cloud: speech.Unmatched}}, step: session.Match},
		"a novel":                     {r: speech.Request{Kind: speech.Intent}, text: string(make([]byte, 1001)), kind: errs.Invalid, step: session.Audio},
	} {
		t.Run(name, func(t *testing.T) {
			var k keeper
			cfg := service(&k, nil)
			cfg.Knowledge, cfg.Weather, cfg.Facts = asked{tc.know}, sky{tc.sky}, clocks{}
			got, err := speech.New(cfg).Text(t.Context(), tc.r, tc.text)
			s := k.last()
			if tc.kind != 0 {
				if errs.KindOf(err) != tc.kind || s.Failed != tc.step {
					t.Errorf("%+v, %v; want %v", got, err, tc.kind)
				}
				return
			}
			tc.want.Language = cmp.Or(tc.r.Language, "en-US")
			if tc.want.Text = tc.text; err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v, %v; want %+v", got, err, tc.want)
			}
			if s.Failed != tc.step || s.Encoding != "text" || s.Thing != tc.r.Thing || (s.Text == tc.text) == tc.r.SkipDAS {
				t.Errorf("kept %+v, want the step %q", s, tc.step)
			}
		})
	}
}

// TestTextInTwoLanguages: typed words are understood in the language of the robot's settings, else in English, and a question is asked in the language that it is in (part of VEC-NLP-08).
func TestTextInTwoLanguages(t *testing.T) {
	words := map[string]string{"de-DE: wie spät ist es": "intent_clock_time", "en-US: what time is it": "intent_clock_time", "de-DE: stop": "intent_global_stop_extend", "en-US: stop": "intent_global_stop_extend"}
	for name, tc := range map[string]struct {
		locale, own, text string
		kind              speech.Kind
		language          string
		command, answered string
	}{
		"German":                            {locale: "de-DE", text: "wie spät ist es", language: "de-DE", command: "intent_clock_time"},
		"English to a German robot":         {locale: "de-DE", text: "what time is it", language: "en-US", command: "intent_clock_time"},
		"both":                              {locale: "de-DE", text: "stop", language: "de-DE", command: "intent_global_stop_extend"},
		"both, to an English robot":         {locale: "en-GB", own: "en-US", text: "stop", language: "en-US", command: "intent_global_stop_extend"},
		"German to an English robot":        {locale: "en-US", text: "wie spät ist es", language: "en-US", command: speech.Unmatched},
		"of a language without intents":     {locale: "fr-FR", text: "what time is it", language: "en-US", command: "intent_clock_time"},
		"no settings":                       {text: "what time is it", language: "en-US", command: "intent_clock_time"},
		"settings that are none":            {locale: `"`, text: "what time is it", language: "en-US", command: "intent_clock_time"},
		"the robot says its language":       {locale: "en-US", own: "de-DE", text: "wie spät ist es", language: "de-DE", command: "intent_clock_time"},
		"a German question":                 {locale: "de-DE", kind: speech.Graph, text: "warum ist der himmel blau", language: "de-DE", answered: "de-DE"},
		"an English question":               {locale: "de-DE", kind: speech.Graph, text: "why is the sky blue", language: "en-US", answered: "en-US"},
		"a question by its kind":            {locale: "de-DE", kind: speech.Knowledge, text: "why is the sky blue", language: "en-US", answered: "en-US"},
		"a question that is no command":     {locale: "de-DE", kind: speech.Knowledge, text: "what time is it", language: "en-US", answered: "en-US"},
		"a fact, whatever it begins with":   {locale: "de-DE", kind: speech.Graph, text: "was it late in tokyo", language: "en-US", answered: "en-US"},
		"neither, so in the robot's own":    {locale: "de-DE", kind: speech.Graph, text: "himmel", language: "de-DE", answered: "de-DE"},
		"a question for a robot of ours":    {locale: "de-DE", kind: speech.Intent, text: "why is the sky blue", language: "en-US", command: speech.KnowledgeResponse, answered: "en-US"},
		"a language without intents of one": {locale: "fr-FR", kind: speech.Graph, text: "pourquoi", language: "fr-FR", answered: "fr-FR"},
	} {
		t.Run(name, func(t *testing.T) {
			var k keeper
			cfg := speech.Config{Keeper: &k, Knowledge: linguist{}, Facts: english{},
				Match: func(_ context.Context, to intent.Listener, text string) intent.Match {
					return intent.Match{Cloud: words[to.Language+": "+text], Confidence: 1}
				},
				Settings: func(_ context.Context, id thing.ID) (string, error) {
					return `{"locale": "` + tc.locale + `"}`, nil
				}}
			r := speech.Request{Thing: robot, Kind: cmp.Or(tc.kind, speech.Intent), Language: tc.own, Ours: true}
			got, err := speech.New(cfg).Text(t.Context(), r, tc.text)
			answered := ""
			if got.Knowledge != nil {
				answered = got.Knowledge.Spoken
			}
			if err != nil || got.Language != tc.language || got.Intent.Cloud != tc.command || answered != tc.answered || k.last().Language != tc.language {
				t.Errorf("%+v, %v, asked %q, kept %q; want %+v", got, err, answered, k.last().Language, tc)
			}
			if in := got.Intent; in.Cloud == speech.KnowledgeResponse && in.Params[speech.LanguageOfAnswer] != tc.language {
				t.Errorf("the agent is told %v", in.Params)
			}
		})
	}
}

// linguist answers with the language in which it is asked.
type linguist struct{}

func (linguist) Ask(_ context.Context, q knowledge.Question) (knowledge.Answer, error) {
	return knowledge.Answer{Spoken: q.Language}, nil
}

// clocks knows the time of two places.
type clocks struct{}

func (clocks) Ask(_ context.Context, q knowledge.Question) (knowledge.Answer, error) {
	if q.Text == "what time is it" || strings.HasSuffix(q.Text, "in tokyo") {
		return knowledge.Answer{Spoken: "of Tokyo's time", Source: "test"}, nil
	}
	return knowledge.Answer{}, knowledge.ErrNoResult
}

// stalled is a source of answers that never comes.
type stalled struct{}

func (stalled) Ask(ctx context.Context, _ knowledge.Question) (knowledge.Answer, error) {
	<-ctx.Done()
	return knowledge.Answer{}, ctx.Err()
}

func (stalled) Report(ctx context.Context, _ weather.Question) (weather.Report, error) {
	<-ctx.Done()
	return weather.Report{}, ctx.Err()
}

// TestStalledAnswer: a source that stalls costs its answer: the robot hears of that before it gives up, and of no fault of the recogniser.
func TestStalledAnswer(t *testing.T) {
	for text, kind := range map[string]speech.Kind{"weather": speech.Intent, "how high is the sky": speech.Knowledge} {
		synctest.Test(t, func(t *testing.T) {
			var k keeper
			cfg := service(&k, &fixed.Recognizer{Text: text})
			cfg.Weather, cfg.Knowledge = stalled{}, stalled{}
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			began := time.Now()
			got, err := speech.New(cfg).Listen(ctx, speech.Request{Kind: kind, Encoding: speech.PCM}, &pieces{b: spoken(t), size: 3840, every: 120 * time.Millisecond})
			if took := time.Since(began); err != nil || took > 8*time.Second || (got.Knowledge != nil) != (kind == speech.Intent) || got.Question != (kind == speech.Knowledge) || k.last().Failed != session.Answer {
				t.Errorf("%s: %+v, %v after %v; %+v", text, got, err, took, k.last())
			}
		})
	}
}

// TestAudioIsKept only of a robot that proved which one it is, said that it may, and has no skip_das (VEC-NLP-07).
func TestAudioIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		r    speech.Request
		want bool
	}{
		"allowed":   {speech.Request{Thing: robot, SaveAudio: true}, true},
		"not asked": {speech.Request{Thing: robot}, false},
		"skip_das":  {speech.Request{Thing: robot, SaveAudio: true, SkipDAS: true}, false},
		"unproven":  {speech.Request{SaveAudio: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			kept := audio{}
			cfg := service(&keeper{}, timer)
			cfg.Audio = kept
			tc.r.Session, tc.r.Encoding = "s", speech.PCM
			if _, err := speech.New(cfg).Listen(t.Context(), tc.r, &pieces{b: spoken(t), size: 3840}); err != nil {
				t.Fatal(err)
			}
			if n := kept[string(robot)+" s"]; (n > recognizer.Rate) != tc.want || len(kept) > 1 || len(kept) == 1 != tc.want {
				t.Errorf("kept %v, want %v", kept, tc.want)
			}
		})
	}
}

// FuzzListen: no audio, in any pieces, does anything but an answer or an error.
func FuzzListen(f *testing.F) {
	f.Add(read(f, "robot.opus")[:600], true, 100)
	f.Add(read(f, "robot.pcm")[8000:12000], false, 3840)
	f.Fuzz(func(t *testing.T, b []byte, opus bool, size int) {
		if len(b) > 4000 {
			return
		}
		r := speech.Request{Kind: speech.Intent, Encoding: speech.PCM}
		if opus {
			r.Encoding = speech.Opus
		}
		got, err := speech.New(service(&keeper{}, timer)).Listen(t.Context(), r, &pieces{b: b, size: min(max(size, 1), 4000)})
		if (err == nil) == (got.Intent.Cloud == "") {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

// english is a recogniser that hears no other language.
type english struct{ *fixed.Recognizer }

func (english) Hears(language string) bool { return strings.HasPrefix(language, "en-") }

// Ask knows Tokyo, in English.
func (english) Ask(_ context.Context, q knowledge.Question) (knowledge.Answer, error) {
	if q.Language != "en-US" || !strings.HasSuffix(q.Text, "tokyo") {
		return knowledge.Answer{}, knowledge.ErrNoResult
	}
	return knowledge.Answer{Spoken: "late"}, nil
}

// TestDeafLanguage: a robot whose language no recogniser hears says so, and the session has the reason. A language that has no sentence of ours gets the English one.
func TestDeafLanguage(t *testing.T) {
	for language, want := range map[string]string{"de-DE": "Ich verstehe hier noch kein Deutsch. Dafür fehlt eine Spracherkennung.",
		"fr-FR": "I do not understand this language here yet. A speech recogniser for it is missing.", "en-US": ""} {
		for _, kind := range []speech.Kind{speech.Intent, speech.Graph, speech.Knowledge} {
			var k keeper
			r := speech.Request{Kind: kind, Encoding: speech.PCM, Language: language}
			got, err := speech.New(service(&k, english{timer})).Listen(t.Context(), r, &pieces{b: spoken(t), size: 3840})
			heard := ""
			if got.Knowledge != nil {
				heard = got.Knowledge.Spoken
			}
			if err != nil || want != "" && heard != want || want != "" && kind == speech.Intent && got.Intent.Params["answer"] != want {
				t.Errorf("%s, %s: %+v, %v; want %q", language, kind, got, err, want)
			}
			if s := k.last(); want != "" && (s.Failed != session.Recognize || !strings.Contains(s.Why, language)) {
				t.Errorf("%s: failed at %q (%s), want recognize and the language", language, s.Failed, s.Why)
			}
		}
	}
}
