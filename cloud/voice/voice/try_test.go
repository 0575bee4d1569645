package voice_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"kennel/cloud/voice/voice"
	"kennel/infra/errs"
	"kennel/infra/wav"
	"kennel/speech"
	"kennel/speech/intent"
	"kennel/speech/knowledge/local"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/fixed"
	"kennel/speech/session"
)

// tone is a second of silence, a second of noise that is taken for speech, and a second of silence.
func tone() []int16 {
	out := make([]int16, 3*recognizer.Rate)
	for i := recognizer.Rate; i < 2*recognizer.Rate; i++ {
		out[i] = int16(8000*math.Sin(float64(i)*2*math.Pi*300/recognizer.Rate) + 3000*math.Sin(float64(i*i%977)))
	}
	return out
}

func parts(t *testing.T, text string) speech.Config {
	m, err := intent.Load("en-US")
	if err != nil {
		t.Fatal(err)
	}
	return speech.Config{Recognizer: &fixed.Recognizer{Text: text}, Knowledge: local.New(time.Now), Keeper: nil,
		Match: func(_ context.Context, _ intent.Listener, text string) intent.Match { return m.Match(text) }}
}

// TestTry: a recording goes through every step, and the step that fails says why (issue 19, Build 6).
func TestTry(t *testing.T) {
	file := voice.Wave(tone())
	for name, c := range map[string]struct {
		text   string
		kind   speech.Kind
		cfg    func(*speech.Config)
		file   []byte
		intent string
		failed session.Step
		steps  int
		says   string // of the last step
	}{
		"intent":     {"go forward", speech.Intent, nil, file, "intent_imperative_forward", "", 4, "intent_imperative_forward"},
		"unmatched":  {"colourless green ideas", speech.Intent, nil, file, speech.Unmatched, session.Match, 4, "mean nothing"},
		"silence":    {"", speech.Intent, nil, voice.Wave(make([]int16, recognizer.Rate)), speech.Silence, session.Endpoint, 2, "no speech"},
		"knowledge":  {"what is two plus two", speech.Knowledge, nil, file, "", "", 4, "The answer is 4."},
		"no result":  {"who won the world series", speech.Knowledge, nil, file, "", session.Answer, 4, "no result"},
		"recogniser": {"", speech.Intent, func(c *speech.Config) { c.Recognizer = broken{} }, file, "", session.Recognize, 3, "the microphone fell off"},
	} {
		cfg := parts(t, c.text)
		if c.cfg != nil {
			c.cfg(&cfg)
		}
		got, err := voice.Try(t.Context(), cfg, c.file, "en-US", c.kind)
		if err != nil || got.Intent != c.intent || got.Failed != c.failed || len(got.Steps) != c.steps || !strings.Contains(got.Steps[len(got.Steps)-1].Says, c.says) || got.Steps[len(got.Steps)-1].OK != (c.failed == "") {
			t.Errorf("%s: %+v, %v; want %s, failed at %q, %d steps", name, got, err, c.intent, c.failed, c.steps)
		}
	}
	if _, err := voice.Try(t.Context(), parts(t, ""), []byte("hello"), "en-US", speech.Intent); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "sox") {
		t.Errorf("no recording: %v, want invalid, with how to make one", err)
	}
}

type broken struct{}

func (broken) Name() string { return "broken" }
func (broken) Open(context.Context, recognizer.Expect) (recognizer.Stream, error) {
	return nil, errors.New("the microphone fell off")
}

// TestTryTakesWhatPokePlayTakes (30.5): any PCM file that robotsim poke plays to a robot's microphones goes through the service, and is as long as it is.
func TestTryTakesWhatPokePlayTakes(t *testing.T) {
	said := &wav.Sound{Rate: recognizer.Rate, Channels: 1, Samples: tone()}
	for _, rate := range []int{8000, 16000, 22050, 44100, 48000} {
		for channels := 1; channels <= 4; channels++ {
			s := said.Resample(rate)
			many := &wav.Sound{Rate: rate, Channels: channels}
			for _, v := range s.Samples {
				for range channels {
					many.Samples = append(many.Samples, v)
				}
			}
			got, err := voice.Try(t.Context(), parts(t, "go forward"), wav.Append(nil, many), "en-US", speech.Intent)
			if err != nil || got.Failed != "" || got.Intent != "intent_imperative_forward" || !strings.HasPrefix(got.Steps[0].Says, "3.00 s") {
				t.Errorf("%d channels, %d Hz: %+v, %v", channels, rate, got, err)
			}
		}
	}
	long := wav.Append(nil, &wav.Sound{Rate: 8000, Channels: 1, Samples: make([]int16, 31*8000)})
	if _, err := voice.Try(t.Context(), parts(t, ""), long, "en-US", speech.Intent); errs.KindOf(err) != errs.Invalid {
		t.Errorf("31 s: %v", err)
	}
}
