package voice

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

const config = `{"osx": {"en": {"voice": "other"}}, "vicos": {"en": {"voice": "slt", "speed": 90, "pitch": 120, "shaping": 5, "speedTraits": [
	{"textLengthMin": 1, "textLengthMax": 10, "rangeMin": 70, "rangeMax": 80}, {"textLengthMin": 8, "textLengthMax": 20, "rangeMin": 130, "rangeMax": 130}]},
	"de": {"voice": "de", "speed": 100}}}`

// TestConfig: language and length of a text choose voice, speed and pitch (VEC-TTS-02).
func TestConfig(t *testing.T) {
	c, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	seen := map[float64]bool{}
	for range 200 {
		got := c.Request("en-US", "Grüße dort", r) // ten characters, in twelve bytes
		if got.Speed < 0.7 || got.Speed > 0.8 || got.Pitch != 1.2 || got.Voice != "slt" {
			t.Fatalf("%+v", got)
		}
		seen[got.Speed] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d speeds were drawn of 11", len(seen))
	}
	for _, tt := range []struct {
		language, text, voice string
		speed, pitch          float64
	}{{"en", strings.Repeat("a", 11), "slt", 1.3, 1.2}, {"EN-gb", strings.Repeat("a", 21), "slt", 0.9, 1.2}, {"de-DE", "a", "de", 1, 0}, {"ja", "a", "", 0, 0}} {
		got := c.Request(tt.language, tt.text, nil)
		if got.Voice != tt.voice || got.Speed != tt.speed || got.Pitch != tt.pitch || got.Text != tt.text || got.Language != tt.language {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
	for name, bad := range map[string]string{"no JSON": "{", "no languages": `{"osx": {"en": {}}}`, "speed": `{"vicos": {"en": {"speed": 1}}}`, "pitch": `{"vicos": {"en": {"pitch": 5000}}}`,
		"lengths": `{"vicos": {"en": {"speedTraits": [{"textLengthMin": 2, "textLengthMax": 1, "rangeMin": 90, "rangeMax": 100}]}}}`,
		"range":   `{"vicos": {"en": {"speedTraits": [{"textLengthMax": 1, "rangeMin": 100, "rangeMax": 90}]}}}`, "no range": `{"vicos": {"en": {"speedTraits": [{"textLengthMax": 1}]}}}`,
		"large": strings.Repeat(" ", maxConfig+1)} {
		if _, err := ParseConfig([]byte(bad)); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParseConfig: a configuration that is read gives requests that can be spoken.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(config), "en-US", "hello")
	f.Add([]byte(`{"vicos":{"a":{"speedTraits":[{"textLengthMax":9,"rangeMin":25,"rangeMax":400}]}}}`), "a", "x")
	f.Fuzz(func(t *testing.T, b []byte, language, text string) {
		c, err := ParseConfig(b)
		if err != nil {
			if !errors.Is(err, ErrConfig) {
				t.Fatal(err)
			}
			return
		}
		if _, _, err := c.Request(language, text, nil).factors(); err != nil {
			t.Fatal(err)
		}
	})
}
