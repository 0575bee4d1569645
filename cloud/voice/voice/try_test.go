package voice_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"kennel/cloud/voice/voice"
	"kennel/infra/errs"
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

func TestParseWave(t *testing.T) {
	good := voice.Wave([]int16{1, -2, 3})
	pcm, err := voice.ParseWave(good)
	if err != nil || !bytes.Equal(pcm, []byte{1, 0, 0xfe, 0xff, 3, 0}) {
		t.Errorf("%x, %v", pcm, err)
	}
	listed := slices.Concat(good[:12], []byte("LIST\x03\x00\x00\x00abc\x00"), good[12:]) // other parts, of odd size, are passed over
	if pcm, err := voice.ParseWave(listed); err != nil || len(pcm) != 6 {
		t.Errorf("%x, %v", pcm, err)
	}
	change := func(at int, b byte) []byte { c := bytes.Clone(good); c[at] = b; return c }
	for name, b := range map[string][]byte{"empty": nil, "cut": good[:20], "no samples": good[:36], "stereo": change(22, 2), "rate": change(24, 0), "bits": change(34, 8), "coding": change(20, 3), "no riff": change(0, 'x')} {
		if _, err := voice.ParseWave(b); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

// FuzzParseWave: what is read is a part of the file, of whole samples.
func FuzzParseWave(f *testing.F) {
	f.Add(voice.Wave([]int16{1, 2}))
	f.Add([]byte("RIFF\x00\x00\x00\x00WAVEdata\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		pcm, err := voice.ParseWave(b)
		if err == nil && (len(pcm)%2 != 0 || !bytes.Contains(b, pcm)) || err != nil && (pcm != nil || errs.KindOf(err) != errs.Invalid) {
			t.Errorf("%d bytes, %v", len(pcm), err)
		}
	})
}
