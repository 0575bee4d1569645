package speechwire

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/telemetry"
	"kennel/infra/thing"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/fixed"
)

func TestConfig(t *testing.T) {
	set := func(change func(*Config)) Config {
		var c Config
		change(&c)
		return c
	}
	for want, c := range map[string]Config{
		"":                           set(func(c *Config) { c.Recognizers, c.Weather = []string{"sphinx"}, "open-meteo" }),
		`speech.recognizers: "hal"`:  set(func(c *Config) { c.Recognizers = []string{"sphinx", "hal"} }),
		`speech.weather "frog"`:      set(func(c *Config) { c.Weather = "frog" }),
		`speech.weather "open-meteo`: set(func(c *Config) { c.Weather = "open-meteo=" }),
		"speech.weather: place":      set(func(c *Config) { c.Weather = "open-meteo=ftp://example.org" }),
		"speech.language":            set(func(c *Config) { c.Language = "xx-XX" }),
		"speech.at_once -1":          set(func(c *Config) { c.AtOnce = -1 }),
		"speech.pause 1m0s":          set(func(c *Config) { c.Pause = 60e9 }),
		"speech.model: language mod": set(func(c *Config) { c.Model = "http://127.0.0.1:11434/v1" }),
		"speech.model_key_file":      set(func(c *Config) { c.Model, c.ModelKeyFile = "llama3.2:3b=http://127.0.0.1:11434/v1", "/nowhere" }),
		"speech.knowledge.url":       set(func(c *Config) { c.Knowledge.URL = "ftp://example.org" }),
		"speech.knowledge.token_fil": set(func(c *Config) { c.Knowledge.URL, c.Knowledge.TokenFile = "https://example.org", "/nowhere" }),
	} {
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRecogniserComesBack: while a recogniser is missing, the check of readiness names it and its last error, and the process works; installed, it
// is found without a restart.
func TestRecogniserComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var tries int
		l := &later{name: "sphinx", make: func(context.Context) (recognizer.Recognizer, error) {
			if tries++; tries < 3 {
				return nil, errors.New("pocketsphinx_batch is not installed")
			}
			return &fixed.Recognizer{Text: "hello"}, nil
		}}
		s := Speech{chain: recognizer.NewChain(recognizer.ChainConfig{}, l)}
		ask := s.Check().Ask
		if err := ask(ctx); err != nil {
			t.Errorf("at the start: %v", err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.run(ctx) }) // its end is its result
		synctest.Wait()
		wg.Go(func() { _ = s.check(ctx) })
		synctest.Wait()
		var warning telemetry.Warning
		if err := ask(ctx); !errors.As(err, &warning) || !strings.Contains(err.Error(), "sphinx: ") || !strings.Contains(err.Error(), "pocketsphinx_batch is not installed") {
			t.Errorf("missing: %v", err)
		}
		if _, err := s.chain.Open(ctx, recognizer.Expect{Language: "en-US"}); err == nil {
			t.Error("a missing recogniser hears")
		}
		time.Sleep(3 * checkEvery)
		synctest.Wait()
		if err := ask(ctx); err != nil {
			t.Errorf("installed: %v", err)
		}
		stop()
		wg.Wait()
	})
}

// english hears English alone.
type english struct{ fixed.Recognizer }

func (*english) Hears(language string) bool { return language == "en-US" }

// TestUnheard (issue 31.2): the language of a robot is told if no recogniser hears it, or nothing is known in it.
func TestUnheard(t *testing.T) {
	settings := ""
	one := Speech{chain: recognizer.NewChain(recognizer.ChainConfig{}, &english{}), settings: func(context.Context, thing.ID) (string, error) { return settings, nil }}
	two := one
	two.chain = recognizer.NewChain(recognizer.ChainConfig{}, &english{}, &fixed.Recognizer{})
	for locale, want := range map[string][2]string{`"en-US"`: {}, `"de-DE"`: {"de-DE", ""}, `"de-AT"`: {"de-AT", ""}, `"tlh"`: {"tlh", "tlh"}, `7`: {"7", "7"}} {
		settings = `{"locale":` + locale + `}`
		for i, s := range []Speech{one, two} {
			if got, err := s.Unheard(t.Context(), "vic:00e20100"); err != nil || got != want[i] {
				t.Errorf("%s, %d recognisers: %q, %v; want %q", locale, i+1, got, err, want[i])
			}
		}
	}
	settings = ""
	if got, err := one.Unheard(t.Context(), "vic:00e20100"); err != nil || got != "" {
		t.Errorf("no settings: %q, %v", got, err)
	}
}

// TestSky (issue 31.4): a place is enough for weather, and none is none.
func TestSky(t *testing.T) {
	for _, c := range []struct{ weather, place, want string }{
		{"", "", ""}, {"none", "", ""}, {"none", "Bern", ""}, {"", "Bern", "open-meteo.com"}, {"open-meteo", "", "open-meteo.com"}, {"open-meteo=http://127.0.0.1:8080", "Bern", "open-meteo (own server)"},
	} {
		p, name, err := Config{Weather: c.weather, Place: c.place}.sky()
		if err != nil || name != c.want || (p == nil) != (c.want == "") {
			t.Errorf("%+v: %q, %v, %v", c, name, p, err)
		}
	}
}
