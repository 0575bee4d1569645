// Package recognizerwire makes recognisers from configuration.
package recognizerwire

import (
	"context"
	"strings"
	"time"

	"kennel/infra/awsconfig"
	"kennel/infra/errs"
	"kennel/speech/intent"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/lex"
	"kennel/speech/recognizer/sphinx"
	"kennel/speech/recognizer/transcribe"
	"kennel/speech/recognizer/transcription"
	"kennel/speech/recognizer/vosk"
)

// Config has what some recognisers need beside their place in the list.
type Config struct {
	Limit    time.Duration    `koanf:"limit"`    // for each to answer in, doubled for the last; 0: 2.5 s
	Decoders int              `koanf:"decoders"` // number of utterances that sphinx decodes at once; 0: one for each processor
	Model    string           `koanf:"model"`    // of a transcription server
	KeyFile  string           `koanf:"key_file"` // token of a transcription server
	AWS      awsconfig.Config `koanf:"aws"`      // of transcribe and lex
}

// Validate reports the first setting that cannot work (kind Invalid). use has the recognisers in the order in which they are asked: "sphinx",
// "transcription=http://HOST:PORT", "vosk=ws://HOST:PORT", "transcribe", "lex=BOT/ALIAS". None: nothing that is said can be understood.
func (c Config) Validate(use []string) error {
	if c.Limit < 0 || c.Decoders < 0 {
		return errs.New(errs.Invalid, "limit %v, decoders %d: want 0 or more", c.Limit, c.Decoders)
	}
	for _, use := range use {
		kind, arg, _ := strings.Cut(use, "=")
		var err error
		switch kind {
		case "sphinx", "transcribe":
			if arg != "" {
				err = errs.New(errs.Invalid, "want nothing after %s", kind)
			}
		case "transcription":
			_, err = transcription.New(transcription.Config{URL: arg})
		case "vosk":
			_, err = vosk.New(arg)
		case "lex":
			if bot, alias, _ := strings.Cut(arg, "/"); bot == "" || alias == "" {
				err = errs.New(errs.Invalid, "want lex=BOT/ALIAS")
			}
		default:
			err = errs.New(errs.Invalid, "want sphinx, transcription=URL, vosk=URL, transcribe or lex=BOT/ALIAS")
		}
		if err != nil {
			return errs.New(errs.Invalid, "%.80q: %w", use, err)
		}
	}
	return c.AWS.Validate("aws")
}

// Make makes one recogniser of those that Validate takes. It fails if a part of it is not there now; who calls it tries again later, and closes what
// is an io.Closer.
func (c Config) Make(ctx context.Context, use string) (recognizer.Recognizer, error) {
	kind, arg, _ := strings.Cut(use, "=")
	switch kind {
	case "sphinx":
		m, err := intent.Load("en-US")
		if err != nil {
			return nil, err
		}
		return sphinx.New(ctx, sphinx.Config{Grammar: m.Grammar(), Pronunciations: m.Pronunciations(), Model: m.Model, Means: m.Means, Decoders: c.Decoders, Limit: c.Limit})
	case "transcription":
		return transcription.New(transcription.Config{URL: arg, Model: c.Model, KeyFile: c.KeyFile})
	case "vosk":
		return vosk.New(arg)
	}
	keys, err := c.AWS.Load(ctx)
	if err != nil {
		return nil, err
	}
	if kind == "transcribe" {
		return transcribe.New(keys), nil
	}
	bot, alias, _ := strings.Cut(arg, "/")
	return lex.New(lex.Config{AWS: keys, Bot: bot, Alias: alias})
}
