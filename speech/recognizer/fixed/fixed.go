// Package fixed is a recogniser that always hears the same text. Tests and benchmarks use it.
package fixed

import (
	"context"
	"time"

	"kennel/speech/recognizer"
)

// Recognizer hears Text in all audio. Its fields are set before its first use.
type Recognizer struct {
	Text       string
	Confidence float64       // 0 means 1
	Delay      time.Duration // how long Finish takes
	OpenErr    error         // answer of Open, if set
	Err        error         // answer of Finish, if set
}

// Name returns "fixed".
func (r *Recognizer) Name() string { return "fixed" }

// Open begins an utterance; what is expected does not matter.
func (r *Recognizer) Open(ctx context.Context, _ recognizer.Expect) (recognizer.Stream, error) {
	if r.OpenErr != nil {
		return nil, r.OpenErr
	}
	return &stream{r: r, ctx: ctx}, nil
}

type stream struct {
	r     *Recognizer
	ctx   context.Context
	heard bool
}

// Write drops the samples.
func (s *stream) Write(samples []int16) error {
	s.heard = s.heard || len(samples) > 0
	return s.ctx.Err()
}

// Partial returns the text as soon as there was a sample.
func (s *stream) Partial() string {
	if !s.heard {
		return ""
	}
	return s.r.Text
}

// Finish answers after the delay, or when the context ends.
func (s *stream) Finish() (recognizer.Result, error) {
	if s.r.Delay > 0 {
		select {
		case <-s.ctx.Done():
		case <-time.After(s.r.Delay):
		}
	}
	if err := s.ctx.Err(); err != nil {
		return recognizer.Result{}, err
	}
	if s.r.Err != nil {
		return recognizer.Result{}, s.r.Err
	}
	confidence := s.r.Confidence
	if confidence == 0 {
		confidence = 1
	}
	return recognizer.Result{Text: s.r.Text, Confidence: confidence, By: s.r.Name()}, nil
}

// Close does nothing.
func (s *stream) Close() error { return nil }
