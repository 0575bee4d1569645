package voice

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"kennel/edge/sound"
)

// ErrConfig is wrapped by every error of a configuration of voices.
var ErrConfig = errors.New("voice configuration")

// maxConfig is the most bytes of a configuration.
const maxConfig = 1 << 20

// Config says which voice speaks a language, how fast and how high: the file tts_config.json of original robots (VEC-TTS-02).
type Config struct {
	languages map[string]manner
}

// manner is how a language is spoken.
type manner struct {
	Voice  string  `json:"voice"`
	Pitch  float64 `json:"pitch"` // factor in percent, as the original's synthesiser has it; 0: 100
	Speed  float64 `json:"speed"` // likewise
	Traits []struct {
		Least   int `json:"textLengthMin"`
		Most    int `json:"textLengthMax"`
		Slowest int `json:"rangeMin"` // percent
		Fastest int `json:"rangeMax"`
	} `json:"speedTraits"`
}

// ParseConfig reads the part vicos of a tts_config.json: for each language a voice, a speed, a pitch, and traits that draw another speed for texts of a length. The source
// gives no units: 100 is taken as the usual speed and pitch. ErrConfig.
func ParseConfig(b []byte) (*Config, error) {
	if len(b) > maxConfig {
		return nil, fmt.Errorf("%w: expected at most %d bytes, found %d", ErrConfig, maxConfig, len(b))
	}
	var file struct {
		Vicos map[string]manner `json:"vicos"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if len(file.Vicos) == 0 {
		return nil, fmt.Errorf("%w: expected languages in vicos, found none", ErrConfig)
	}
	percent := func(v float64) bool { return v == 0 || v >= 100*sound.MinPitch && v <= 100*sound.MaxPitch }
	for language, m := range file.Vicos {
		if !percent(m.Pitch) || !percent(m.Speed) {
			return nil, fmt.Errorf("%w: %s: expected pitch and speed of %g to %d percent, found %g and %g", ErrConfig, language, 100*sound.MinPitch, 100*sound.MaxPitch, m.Pitch, m.Speed)
		}
		for i, t := range m.Traits {
			if t.Least > t.Most || t.Slowest > t.Fastest || !percent(float64(t.Slowest)) || !percent(float64(t.Fastest)) || t.Slowest == 0 {
				return nil, fmt.Errorf("%w: %s: speedTraits[%d]: expected lengths and speeds from small to large, found %+v", ErrConfig, language, i, t)
			}
		}
	}
	return &Config{file.Vicos}, nil
}

// Request returns how a text is spoken in a language such as de or de-DE: the first trait whose lengths, in characters, include the text's draws the speed from its range. A
// language that the file does not have is spoken as by default. random may be nil.
func (c *Config) Request(language, text string, random *rand.Rand) Request {
	r := Request{Text: text, Language: language}
	short, _, _ := strings.Cut(strings.ToLower(language), "-")
	m, ok := c.languages[short]
	if !ok {
		return r
	}
	r.Voice, r.Pitch, r.Speed = m.Voice, m.Pitch/100, m.Speed/100
	n := utf8.RuneCountInString(text)
	for _, t := range m.Traits {
		if n < t.Least || n > t.Most {
			continue
		}
		width := t.Fastest - t.Slowest + 1
		drawn := t.Slowest
		if random != nil {
			drawn += random.IntN(width)
		} else {
			drawn += rand.IntN(width)
		}
		r.Speed = float64(drawn) / 100
		break
	}
	return r
}
