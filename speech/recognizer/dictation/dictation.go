// Package dictation writes whatever is said in English, with Debian's packages pocketsphinx and pocketsphinx-en-us and their model of general English.
//
// It knows 130,000 words and no wishes of a robot: package sphinx understands those better. Each utterance has a process of its own, which reads its models first.
package dictation

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
)

// Config configures a Recognizer. The zero value works.
type Config struct {
	Program  string        // default pocketsphinx_batch
	Models   string        // folder of the English model; default is Debian's
	Decoders int           // utterances decoded at once, others wait; default is one for each processor
	Limit    time.Duration // of one decoding; default 60 s
	Longest  time.Duration // of an utterance; default 30 s
}

// Recognizer hears any sentence in English.
type Recognizer struct {
	cfg   Config
	slots chan struct{}
}

// New returns a recogniser. Unavailable without the program or its models, with the packages that have them.
func New(cfg Config) (*Recognizer, error) {
	cfg.Program, cfg.Models = cmp.Or(cfg.Program, "pocketsphinx_batch"), cmp.Or(cfg.Models, "/usr/share/pocketsphinx/model/en-us")
	cfg.Decoders, cfg.Limit, cfg.Longest = cmp.Or(cfg.Decoders, runtime.NumCPU()), cmp.Or(cfg.Limit, time.Minute), cmp.Or(cfg.Longest, 30*time.Second)
	if _, err := exec.LookPath(cfg.Program); err != nil {
		return nil, errs.New(errs.Unavailable, "dictation: %w; Debian has it in the package pocketsphinx", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Models, "en-us.lm.bin")); err != nil {
		return nil, errs.New(errs.Unavailable, "dictation: %w; Debian has it in the package pocketsphinx-en-us", err)
	}
	return &Recognizer{cfg, make(chan struct{}, cfg.Decoders)}, nil
}

// Name returns "dictation".
func (r *Recognizer) Name() string { return "dictation" }

// Hears implements recognizer.Monolingual: English.
func (r *Recognizer) Hears(language string) bool {
	l := strings.ToLower(language)
	return l == "" || l == "en" || strings.HasPrefix(l, "en-")
}

// Open begins an utterance. Languages other than English are refused as Invalid.
func (r *Recognizer) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	if !r.Hears(e.Language) {
		return nil, errs.New(errs.Invalid, "dictation: language %.20q: expected English", e.Language)
	}
	return recognizer.Whole(ctx, r.cfg.Longest, r.decode), nil
}

func (r *Recognizer) decode(ctx context.Context, pcm []byte) (recognizer.Result, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return recognizer.Result{}, fmt.Errorf("dictation: wait for one of %d decoders: %w", r.cfg.Decoders, ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "kennel-dictation-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.WriteFile(filepath.Join(dir, "a.raw"), pcm, 0o600)
	}
	if err != nil {
		return recognizer.Result{}, fmt.Errorf("dictation: %w", err)
	}
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, r.cfg.Program, "-hmm", filepath.Join(r.cfg.Models, "en-us"), "-dict", filepath.Join(r.cfg.Models, "cmudict-en-us.dict"),
		"-lm", filepath.Join(r.cfg.Models, "en-us.lm.bin"), "-ctl", "/dev/stdin", "-cepdir", dir, "-cepext", ".raw", "-adcin", "yes", "-hyp", "/dev/stdout")
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = strings.NewReader("a\n"), &out, &tail{w: &log}, time.Second
	if err := cmd.Run(); err != nil {
		return recognizer.Result{}, fmt.Errorf("dictation: %s: %w: %s", r.cfg.Program, cmp.Or(context.Cause(ctx), err), log.String())
	}
	text, err := parse(out.String())
	if err != nil {
		return recognizer.Result{}, fmt.Errorf("dictation: %w: %s", err, log.String())
	}
	return recognizer.Result{Text: text, Confidence: 1, By: r.Name()}, nil
}

// parse reads the result of one utterance: WORDS (NAME SCORE).
func parse(out string) (string, error) {
	text, rest, ok := strings.Cut(out, "(a ")
	if !ok || !strings.HasSuffix(strings.TrimSpace(rest), ")") {
		return "", fmt.Errorf("expected words and (a SCORE), found %.80q", out)
	}
	return strings.TrimSpace(text), nil
}

// tail keeps the lines of a log that say what is wrong, up to a kilobyte.
type tail struct{ w io.Writer }

func (t *tail) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if bytes.HasPrefix(line, []byte("ERROR")) || bytes.HasPrefix(line, []byte("FATAL")) {
			_, _ = t.w.Write(line[:min(len(line), 500)]) // to memory
		}
	}
	return len(b), nil
}
