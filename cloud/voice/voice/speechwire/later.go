package speechwire

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"time"

	"kennel/speech/recognizer"
)

// Installed returns the recognisers that work on this machine without being configured.
func Installed() []string {
	if _, err := exec.LookPath("pocketsphinx_batch"); err != nil {
		return nil
	}
	return []string{"sphinx"}
}

var errStarting = errors.New("the recogniser is being started")

// later is a recogniser that is made while the process runs, and made again later if that failed: for instance because it is not installed yet.
type later struct {
	name string
	make func(ctx context.Context) (recognizer.Recognizer, error)

	mu  sync.Mutex
	now recognizer.Recognizer
	err error // why it is not there
}

func (l *later) Name() string { return l.name }

func (l *later) get() (recognizer.Recognizer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil && l.err == nil {
		return nil, errStarting
	}
	return l.now, l.err
}

// Open implements recognizer.Recognizer.
func (l *later) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	r, err := l.get()
	if err != nil {
		return nil, err
	}
	return r.Open(ctx, e)
}

// Hears implements recognizer.Monolingual. One that is not there yet may hear any language.
func (l *later) Hears(language string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, is := l.now.(recognizer.Monolingual)
	return !is || one.Hears(language)
}

// Lacks implements recognizer.Lexicon. One that is not there yet lacks nothing.
func (l *later) Lacks(words []string) []string {
	if r, err := l.get(); err == nil {
		if lexicon, ok := r.(recognizer.Lexicon); ok {
			return lexicon.Lacks(words)
		}
	}
	return nil
}

// Check implements recognizer.Checker. One that is being started is well.
func (l *later) Check(ctx context.Context) error {
	r, err := l.get()
	if errors.Is(err, errStarting) {
		return nil
	}
	if err != nil {
		return err
	}
	if c, ok := r.(recognizer.Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// run makes the recogniser, and closes it when ctx ends.
func (l *later) run(ctx context.Context) error {
	for ctx.Err() == nil {
		r, err := l.make(ctx)
		l.mu.Lock()
		l.now, l.err = r, err
		l.mu.Unlock()
		if err == nil {
			<-ctx.Done()
			if c, ok := r.(io.Closer); ok {
				return c.Close()
			}
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkEvery):
		}
	}
	return nil
}
