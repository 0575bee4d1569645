// Package recognizerwire makes a chain of recognisers from configuration.
package recognizerwire

import (
	"context"
	"errors"
	"strings"
	"time"

	"kennel/infra/awsconfig"
	"kennel/infra/errs"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/lex"
	"kennel/speech/recognizer/sphinx"
	"kennel/speech/recognizer/transcribe"
	"kennel/speech/recognizer/transcription"
	"kennel/speech/recognizer/vosk"
)

// Config configures the recognisers.
type Config struct {
	// Use has the recognisers in the order in which they are asked: "sphinx", "transcription=http://HOST:PORT", "vosk=ws://HOST:PORT",
	// "transcribe", "lex=BOT/ALIAS". None: nothing that is said can be understood.
	Use      []string         `koanf:"use"`
	Limit    time.Duration    `koanf:"limit"`    // for each to answer in; 0: 2.5 s
	Decoders int              `koanf:"decoders"` // utterances that sphinx decodes at once; 0: one for each processor
	Model    string           `koanf:"model"`    // of a transcription server
	KeyFile  string           `koanf:"key_file"` // token of a transcription server
	AWS      awsconfig.Config `koanf:"aws"`      // of transcribe and lex
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	if c.Limit < 0 || c.Decoders < 0 {
		return errs.New(errs.Invalid, "recognizers: limit %v, decoders %d: want none below 0", c.Limit, c.Decoders)
	}
	for _, use := range c.Use {
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
			return errs.New(errs.Invalid, "recognizers.use %.80q: %w", use, err)
		}
	}
	return c.AWS.Validate("recognizers.aws")
}

// Recognizers is a chain and what it holds.
type Recognizers struct {
	*recognizer.Chain
	closers []func() error
}

// New makes the recognisers. One that cannot be made stays in the chain, where its Health says why, so that a cloud without it still starts.
// grammar and pronunciations are those of the intents.
func New(ctx context.Context, cfg Config, grammar string, pronunciations map[string]string) (*Recognizers, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Recognizers{}
	var all []recognizer.Recognizer
	for _, use := range cfg.Use {
		kind, arg, _ := strings.Cut(use, "=")
		one, err := r.make(ctx, cfg, kind, arg, sphinx.Config{Grammar: grammar, Pronunciations: pronunciations, Decoders: cfg.Decoders, Limit: cfg.Limit})
		if err != nil {
			one = recognizer.Missing(kind, err)
		}
		all = append(all, one)
	}
	r.Chain = recognizer.NewChain(recognizer.ChainConfig{Limit: cfg.Limit}, all...)
	return r, nil
}

func (r *Recognizers) make(ctx context.Context, cfg Config, kind, arg string, local sphinx.Config) (recognizer.Recognizer, error) {
	switch kind {
	case "sphinx":
		s, err := sphinx.New(ctx, local)
		if err == nil {
			r.closers = append(r.closers, s.Close)
		}
		return s, err
	case "transcription":
		return transcription.New(transcription.Config{URL: arg, Model: cfg.Model, KeyFile: cfg.KeyFile})
	case "vosk":
		return vosk.New(arg)
	}
	keys, err := cfg.AWS.Load(ctx)
	if err != nil {
		return nil, err
	}
	if kind == "transcribe" {
		return transcribe.New(keys), nil
	}
	bot, alias, _ := strings.Cut(arg, "/")
	return lex.New(lex.Config{AWS: keys, Bot: bot, Alias: alias})
}

// Run checks the recognisers at once and every minute until ctx ends, so that Health is known before the first utterance.
func (r *Recognizers) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		r.Check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Close gives up what the recognisers hold.
func (r *Recognizers) Close() error {
	var all error
	for _, c := range r.closers {
		all = errors.Join(all, c())
	}
	return all
}
