package recognizer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kennel/infra/errs"
)

// Chain asks recognisers in order. One that fails, takes too long, or understands nothing is followed by the next, which gets all the audio
// again. After Failures failures in a row a recogniser is left out for Pause; then one utterance tries it.
type Chain struct {
	cfg  ChainConfig
	all  []*member
	name string

	mu sync.Mutex // of the health of members
}

// ChainConfig has the limits of a Chain. Fields that are left out get the usual value.
type ChainConfig struct {
	Limit    time.Duration // of each call of a recogniser, doubled for the last: 2.5 s
	Longest  time.Duration // of an utterance: 15 s
	Failures int           // 3
	Pause    time.Duration // 10 s
}

// Checker is a recogniser that can be asked whether it works.
type Checker interface {
	Check(context.Context) error
}

// Health is how a recogniser is.
type Health struct {
	Name    string
	Up      bool      // it is asked
	Problem string    // of its last call; "": none
	Since   time.Time // of the first failure in a row, or of the first success after one; zero: never used
}

type member struct {
	Recognizer
	health   Health
	failures int
	until    time.Time // left out before
}

// NewChain returns a chain of recognisers.
func NewChain(cfg ChainConfig, all ...Recognizer) *Chain {
	usual(&cfg.Limit, 2500*time.Millisecond)
	usual(&cfg.Longest, 15*time.Second)
	usual(&cfg.Failures, 3)
	usual(&cfg.Pause, 10*time.Second)
	c := &Chain{cfg: cfg, name: "no recogniser"}
	for i, r := range all {
		c.all = append(c.all, &member{Recognizer: r, health: Health{Name: r.Name(), Up: true}})
		if c.name += ", " + r.Name(); i == 0 {
			c.name = r.Name()
		}
	}
	return c
}

func usual[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Name returns the names of the recognisers.
func (c *Chain) Name() string { return c.name }

// Health returns how the recognisers are, in their order.
func (c *Chain) Health() []Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Health, len(c.all))
	for i, m := range c.all {
		out[i] = m.health
	}
	return out
}

// Check asks those recognisers that are a Checker whether they work. Health tells what came of it.
func (c *Chain) Check(ctx context.Context) {
	var wg sync.WaitGroup
	for _, m := range c.all {
		if k, ok := m.Recognizer.(Checker); ok {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, c.cfg.Limit)
				defer cancel()
				if err := k.Check(ctx); err == nil || !errors.Is(err, context.Canceled) {
					c.note(m, err)
				}
			})
		}
	}
	wg.Wait()
}

// Hears implements Monolingual: one recogniser that does is enough.
func (c *Chain) Hears(language string) bool {
	return slices.ContainsFunc(c.all, func(m *member) bool {
		one, is := m.Recognizer.(Monolingual)
		return !is || one.Hears(language)
	})
}

// Lacks returns those of the words that no recogniser has. It implements Lexicon.
func (c *Chain) Lacks(words []string) []string {
	for _, m := range c.all {
		l, ok := m.Recognizer.(Lexicon)
		if !ok {
			return nil
		}
		words = l.Lacks(words)
	}
	return words
}

// take reports whether m is to be asked.
func (c *Chain) take(m *member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Before(m.until) {
		return false
	}
	if m.failures >= c.cfg.Failures {
		m.until = now.Add(c.cfg.Pause) // the others wait for what becomes of this one
	}
	return true
}

// note notes what came of asking m.
func (c *Chain) note(m *member, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if (err == nil) != (m.failures == 0) || m.health.Since.IsZero() {
		m.health.Since = now
	}
	if err == nil {
		m.failures, m.until = 0, time.Time{}
		m.health.Up, m.health.Problem = true, ""
		return
	}
	m.health.Problem = err.Error()
	if m.failures++; m.failures >= c.cfg.Failures {
		m.until, m.health.Up = now.Add(c.cfg.Pause), false
	}
}

// Open begins an utterance with the first recogniser that takes it.
func (c *Chain) Open(ctx context.Context, e Expect) (Stream, error) {
	s := &chained{c: c, ctx: ctx, expect: e, rest: slices.Clone(c.all)}
	if err := s.next(); err != nil {
		return nil, err
	}
	return s, nil
}

// chained is an utterance of a Chain.
type chained struct {
	c      *Chain
	ctx    context.Context
	expect Expect
	audio  []int16
	rest   []*member // that were not asked yet

	m      *member // the one that listens
	stream Stream
	cancel context.CancelFunc // of what it does
	failed []error
}

// within calls f, and cancels what the recogniser does if that takes too long. The last one has twice the time: none waits for its end.
func (s *chained) within(f func() error) error {
	limit := s.c.cfg.Limit
	if len(s.rest) == 0 {
		limit *= 2
	}
	t := time.AfterFunc(limit, s.cancel)
	err := f()
	if !t.Stop() && err != nil && s.ctx.Err() == nil {
		return fmt.Errorf("no answer within %v", limit)
	}
	return err
}

var errOver = errors.New("the utterance has ended")

// next turns to the next recogniser that takes the language and the audio so far.
func (s *chained) next() error {
	for len(s.rest) > 0 {
		m := s.rest[0]
		s.rest = s.rest[1:]
		if !s.c.take(m) {
			s.failed = append(s.failed, fmt.Errorf("%s: skipped after failures", m.Name()))
			continue
		}
		s.m = m
		var ctx context.Context
		ctx, s.cancel = context.WithCancel(s.ctx)
		err := s.within(func() error {
			stream, err := m.Open(ctx, s.expect)
			if err != nil {
				return err
			}
			s.stream = stream
			return stream.Write(s.audio)
		})
		if err == nil {
			return nil
		}
		if err := s.lost(err); err != nil {
			return err
		}
	}
	if len(s.failed) == 0 {
		return errs.New(errs.Unavailable, "no recogniser configured")
	}
	return errs.New(errs.Unavailable, "every recogniser failed: %w", errors.Join(s.failed...))
}

// lost ends with the recogniser that listens because of err. It returns an error if the utterance is over.
func (s *chained) lost(err error) error {
	s.end()
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	s.failed = append(s.failed, fmt.Errorf("%s: %w", s.m.Name(), err))
	if k := errs.KindOf(err); k != errs.Invalid && k != errs.Exhausted { // of the request: a language, a length
		s.c.note(s.m, err)
	}
	return nil
}

// end closes the stream of the recogniser that listens.
func (s *chained) end() {
	if s.cancel != nil {
		s.cancel()
	}
	if s.stream != nil {
		_ = s.stream.Close() // its result is there, or not wanted
		s.stream = nil
	}
}

// Write keeps the samples for the next recogniser too.
func (s *chained) Write(samples []int16) error {
	if s.stream == nil {
		return errOver
	}
	if most := int(s.c.cfg.Longest.Seconds() * Rate); len(s.audio)+len(samples) > most {
		return errs.New(errs.Exhausted, "utterance longer than %v", s.c.cfg.Longest)
	}
	s.audio = append(s.audio, samples...)
	err := s.within(func() error { return s.stream.Write(samples) })
	if err == nil {
		return nil
	}
	if err := s.lost(err); err != nil {
		return err
	}
	return s.next()
}

func (s *chained) Partial() string {
	if s.stream == nil {
		return ""
	}
	return s.stream.Partial()
}

// Finish returns the first result with words. If others fail after a recogniser understood nothing, that stays the result.
func (s *chained) Finish() (Result, error) {
	if s.stream == nil {
		return Result{}, errOver
	}
	var unclear *Result
	for {
		var got Result
		err := s.within(func() (err error) {
			got, err = s.stream.Finish()
			return err
		})
		if err == nil {
			s.c.note(s.m, nil)
			if got.Text != "" || len(s.rest) == 0 {
				return got, nil
			}
			unclear = &got
			s.end()
		} else if err := s.lost(err); err != nil {
			return Result{}, err
		}
		if err := s.next(); err != nil {
			if unclear != nil && s.ctx.Err() == nil {
				return *unclear, nil
			}
			return Result{}, err
		}
	}
}

func (s *chained) Close() error {
	s.end()
	s.audio = nil
	return nil
}
