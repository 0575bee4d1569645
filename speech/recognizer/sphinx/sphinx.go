// Package sphinx recognises wishes to a robot on this machine, with Debian's packages pocketsphinx and pocketsphinx-en-us.
//
// At the end of an utterance three processes of pocketsphinx_batch decode it side by side: one hears the sentences of the grammar, one any words, by a language
// model that knows which words of a wish follow which, and one any sequence of phones. Where words explain the sound much worse than free phones do, something
// else was said. Of grammar and language model the surer one is the result. The three take half a second of a processor with their start, so an utterance costs memory only while it is decoded, nothing of it is left for the next one, and a decoder
// that crashes or hangs costs that utterance alone.
package sphinx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

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
	r := &Recognizer{cfg: cfg, words: &vocabularies{folder: folder, base: cfg.Grammar, used: map[string]*vocabulary{}}, noise: room(), slots: make(chan struct{}, cfg.Decoders)}
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
	_, err := r.decode(ctx, "", make([]byte, recognizer.Rate/5*2))
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
	return recognizer.Whole(ctx, r.cfg.Longest, func(ctx context.Context, pcm []byte) (recognizer.Result, error) { return r.hear(ctx, e.Grammar, pcm) }), nil
}

// hear waits for a free decoder and decodes. A grammar that the decoder does not take costs its own sentences, and no others.
func (r *Recognizer) hear(ctx context.Context, grammar string, pcm []byte) (recognizer.Result, error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return recognizer.Result{}, fmt.Errorf("sphinx: wait for one of %d decoders: %w", r.cfg.Decoders, ctx.Err())
	}
	defer func() { <-r.slots }()
	got, err := r.decode(ctx, grammar, pcm)
	if err != nil && grammar != "" && ctx.Err() == nil {
		got, err = r.decode(ctx, "", pcm)
	}
	if err != nil {
		return recognizer.Result{}, fmt.Errorf("sphinx: %w", err)
	}
	return got, nil
}

// decode decodes samples, which stay in memory: both processes have them as standard input.
func (r *Recognizer) decode(ctx context.Context, grammar string, pcm []byte) (recognizer.Result, error) {
	v, err := r.words.get(grammar)
	if err != nil {
		return recognizer.Result{}, err
	}
	defer r.words.release(v)
	ctx, cancel := context.WithTimeoutCause(ctx, r.cfg.Limit, fmt.Errorf("no result within %v", r.cfg.Limit))
	defer cancel()
	fd, err := unix.MemfdCreate("utterance", unix.MFD_CLOEXEC)
	if err != nil {
		return recognizer.Result{}, fmt.Errorf("memory for an utterance: %w", err)
	}
	audio := os.NewFile(uintptr(fd), "utterance")
	defer audio.Close()
	if _, err := audio.Write(withRoom(pcm, r.noise)); err != nil {
		return recognizer.Result{}, fmt.Errorf("memory for an utterance: %w", err)
	}
	// Of the phrases of nine voices, the removal of noise takes 2 in 100 where there is none; in noise 10 dB below speech, 48 of 100 are right without it and
	// 60 with it, and half as many wrong.
	noise, remove := level(pcm), "no"
	if noise < noisy {
		remove = "yes"
	}
	var words, phones, wishes []segment
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() (err error) { // sentences of a grammar differ in how many ways it branches, which says nothing about how often people say them
		words, err = r.run(ctx, v, audio, "-remove_noise", remove, "-jsgf", filepath.Join(v.folder, grammarFile), "-lw", "1", "-silprob", "0.1")
		return err
	})
	all.Go(func() (err error) {
		phones, err = r.run(ctx, v, audio, "-remove_noise", remove, "-allphone", filepath.Join(r.cfg.Models, "en-us-phone.lm.bin"), "-allphone_ci", "yes")
		return err
	})
	if r.words.model != "" {
		model, err := r.words.get(ofModel)
		if err != nil {
			return recognizer.Result{}, err
		}
		defer r.words.release(model)
		inTime, done := context.WithTimeout(ctx, r.cfg.Limit*2/5)
		defer done()
		all.Go(func() (err error) {
			wishes, err = r.run(inTime, model, audio, "-remove_noise", remove, "-lm", filepath.Join(model.folder, grammarFile))
			for i := range wishes {
				wishes[i].score /= finer
			}
			if inTime.Err() != nil { // then the grammar's sentence is the answer
				return nil
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return recognizer.Result{}, err
	}
	text, confidence := judge(words, phones, noise, ofGrammar)
	if own, sure := judge(wishes, phones, noise, ofWishes); sure > confidence {
		text, confidence = own, sure
	}
	if confidence < r.cfg.Least {
		text = ""
	}
	return recognizer.Result{Text: text, Confidence: confidence, By: r.Name()}, nil
}

// run decodes audio with the search that args name.
func (r *Recognizer) run(ctx context.Context, v *vocabulary, audio *os.File, args ...string) ([]segment, error) {
	cmd := exec.CommandContext(ctx, r.cfg.Program, append([]string{
		"-hmm", filepath.Join(r.cfg.Models, "en-us"), "-dict", filepath.Join(v.folder, dictFile),
		"-ctl", filepath.Join(v.folder, listFile), "-cepdir", "/dev", "-cepext", "", "-adcin", "yes", "-hypseg", "/dev/stdout"}, args...)...)
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = audio, &out, &log
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", r.cfg.Program, context.Cause(ctx))
		}
		return nil, fmt.Errorf("%s: %w%s", r.cfg.Program, err, complaint(log.String()))
	}
	segments, err := parse(out.String())
	if err != nil {
		return nil, fmt.Errorf("output of %s: %w%s", r.cfg.Program, err, complaint(log.String()))
	}
	return segments, nil
}

// complaint returns the first error in a log of pocketsphinx.
func complaint(log string) string {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "ERROR") || strings.HasPrefix(line, "FATAL") {
			return ": " + strings.TrimSpace(line)
		}
	}
	return ""
}

var errOutput = errors.New("want UTTERANCE S . T . A . L . { FRAME SCORE SCORE WORD } FRAME")
