// Package sphinx recognises wishes to a robot on this machine, with Debian's packages pocketsphinx and pocketsphinx-en-us.
//
// Three processes of pocketsphinx_batch decode an utterance side by side: one hears the sentences of the grammar, one any words, by a language
// model that knows which words of a wish follow which, and one any sequence of phones. Where words explain the sound much worse than free phones do, something
// else was said. The language model is believed where grammar and its own other results do not say something else. Each utterance has processes of its own: nothing of it is left for the next one, and a
// decoder that crashes or hangs costs that utterance alone. They start while a person still speaks, and have read their models when the utterance ends.
package sphinx

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
)

// Config configures a Recognizer.
type Config struct {
	Grammar string // JSGF, in lower case; sentences with a word that no dictionary has are never heard
	// Pronunciations of words that the English dictionary lacks, in the phones of the CMU dictionary; word(2) is another one of word.
	Pronunciations map[string]string

	// Model makes a language model in the ARPA format, of those words that general has; general is how frequent they are in English. Nil: sentences of the grammar
	// alone are heard.
	Model func(general map[string]float64) string
	// Means returns what a sentence means, "" being nothing, parameters last in brackets, and whether none of its words is left over. It is needed with Model: what
	// may as well mean something else was not understood.
	Means func(text string) (meaning string, whole bool)

	Program  string        // default pocketsphinx_batch
	Models   string        // folder of the English model; default is Debian's
	Decoders int           // utterances decoded at once, others wait; default is one for each processor
	Limit    time.Duration // of one decoding, the language model has two fifths of it; default 5 s
	Longest  time.Duration // of an utterance; default 15 s
	Least    float64       // a sentence of less confidence was not understood; default 0.5
}

// Recognizer recognises sentences of its grammar, in English.
type Recognizer struct {
	cfg   Config
	words *vocabularies
	noise []float32
	slots chan struct{}
	early chan struct{} // has a place for each utterance whose processes start before its end
}

// New writes the grammar and the dictionary of its words into a folder of its own, which Close removes, and decodes a moment of silence.
func New(ctx context.Context, cfg Config) (*Recognizer, error) {
	orDefault(&cfg.Program, "pocketsphinx_batch")
	orDefault(&cfg.Models, "/usr/share/pocketsphinx/model/en-us")
	orDefault(&cfg.Decoders, runtime.NumCPU())
	orDefault(&cfg.Limit, 5*time.Second)
	orDefault(&cfg.Longest, 15*time.Second)
	orDefault(&cfg.Least, 0.5)
	folder, err := os.MkdirTemp("", "kennel-sphinx-")
	if err != nil {
		return nil, fmt.Errorf("sphinx: %w", err)
	}
	r := &Recognizer{cfg: cfg, words: &vocabularies{folder: folder, base: cfg.Grammar, used: map[string]*vocabulary{}}, noise: room(), slots: make(chan struct{}, cfg.Decoders), early: make(chan struct{}, cfg.Decoders)}
	if err := r.prepare(ctx); err != nil {
		_ = r.Close() // the first error says more
		return nil, fmt.Errorf("sphinx: %w", err)
	}
	return r, nil
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (r *Recognizer) prepare(ctx context.Context) error {
	if _, err := exec.LookPath(r.cfg.Program); err != nil {
		return fmt.Errorf("%w; Debian has it in the packages pocketsphinx and pocketsphinx-en-us", err)
	}
	all, err := os.ReadFile(filepath.Join(r.cfg.Models, "cmudict-en-us.dict"))
	if err != nil {
		return fmt.Errorf("%w; Debian has it in the package pocketsphinx-en-us", err)
	}
	var own strings.Builder
	for _, word := range slices.Sorted(maps.Keys(r.cfg.Pronunciations)) { // word before word(2), as the decoder wants it
		own.WriteString(word + " " + r.cfg.Pronunciations[word] + "\n")
	}
	r.words.own, r.words.dict = own.String(), string(all)
	if r.cfg.Model != nil {
		if err := r.prepareModel(); err != nil {
			return err
		}
	}
	return r.Check(ctx)
}

// Check decodes a moment of silence.
func (r *Recognizer) Check(ctx context.Context) error {
	_, err := r.decode(ctx, "", make([]byte, recognizer.Rate/5*2), nil)
	return err
}

// Unknown returns the words of the grammar that no dictionary has.
func (r *Recognizer) Unknown() []string {
	r.words.mu.Lock()
	defer r.words.mu.Unlock()
	return r.words.used[r.words.base].unknown
}

// Name returns "sphinx".
func (r *Recognizer) Name() string { return "sphinx" }

// Close removes the folder.
func (r *Recognizer) Close() error { return os.RemoveAll(r.words.folder) }

// Hears implements recognizer.Monolingual: English.
func (r *Recognizer) Hears(language string) bool {
	l := strings.ToLower(language)
	return l == "" || l == "en" || strings.HasPrefix(l, "en-")
}

// Open begins an utterance. Languages other than English are refused as Invalid.
func (r *Recognizer) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	if !r.Hears(e.Language) {
		return nil, errs.New(errs.Invalid, "sphinx: language %.20q: want English", e.Language)
	}
	s := &stream{r: r, ctx: ctx, grammar: e.Grammar}
	s.Stream = recognizer.Whole(ctx, r.cfg.Longest, func(ctx context.Context, pcm []byte) (recognizer.Result, error) {
		return r.hear(ctx, e.Grammar, pcm, s.ready)
	})
	return s, nil
}
