package voice

import (
	"context"
	"strings"

	"kennel/infra/errs"
)

// Programs are the names of the synthesisers that run on this machine.
var Programs = []string{"espeak-ng", "flite"}

// Find returns the synthesiser of a name of Programs; of "" the one for a language such as en-US: flite, which is softer, for English, and espeak-ng for everything else, and for
// English where flite is missing. An error says what to install; Invalid is another name.
func Find(name, language string) (Synthesizer, error) {
	switch name {
	case "espeak-ng":
		return NewEspeak()
	case "flite":
		return NewFlite()
	case "":
		if language == "" || strings.HasPrefix(strings.ToLower(language), "en") {
			if s, err := NewFlite(); err == nil {
				return s, nil
			}
		}
		return NewEspeak()
	}
	return nil, errs.New(errs.Invalid, "synthesiser %.40q: expected one of %s", name, errs.List(Programs))
}

// Installed returns the synthesiser of a name of Programs; of "" one that finds another for each text, by its language. An error says what to install.
func Installed(name string) (Synthesizer, error) {
	s, err := Find(name, "")
	if err != nil || name != "" {
		return s, err
	}
	return each{}, nil
}

// each finds a synthesiser for each text.
type each struct{}

// Name implements Synthesizer.
func (each) Name() string { return "by language" }

// Speak implements Synthesizer.
func (each) Speak(ctx context.Context, r Request) (Utterance, error) {
	s, err := Find("", r.Language)
	if err != nil {
		return Utterance{}, err
	}
	return s.Speak(ctx, r)
}
