package fixed

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kennel/speech/recognizer"
)

func TestFixed(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		r     Recognizer
		limit time.Duration
		want  recognizer.Result
		took  time.Duration
		err   error
	}{
		{"text", Recognizer{Text: "hello"}, time.Hour, recognizer.Result{Text: "hello", Confidence: 1, By: "fixed"}, 0, nil},
		{"unsure, late", Recognizer{Text: "hello", Confidence: .2, Delay: time.Second}, time.Hour,
			recognizer.Result{Text: "hello", Confidence: .2, By: "fixed"}, time.Second, nil},
		{"too late", Recognizer{Text: "hello", Delay: time.Minute}, time.Second, recognizer.Result{}, time.Second, context.DeadlineExceeded},
		{"error", Recognizer{Text: "hello", Err: broken}, time.Hour, recognizer.Result{}, 0, broken},
		{"error at once", Recognizer{OpenErr: broken}, time.Hour, recognizer.Result{}, 0, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				start := time.Now()
				got, partial, err := listen(ctx, &c.r)
				if !errors.Is(err, c.err) || got != c.want || time.Since(start) != c.took {
					t.Errorf("%+v, %v after %v, want %+v, %v after %v", got, err, time.Since(start), c.want, c.err, c.took)
				}
				if c.r.OpenErr == nil && partial != c.r.Text {
					t.Errorf("partial %q, want %q", partial, c.r.Text)
				}
			})
		})
	}
}

func listen(ctx context.Context, r recognizer.Recognizer) (recognizer.Result, string, error) {
	s, err := r.Open(ctx, recognizer.Expect{Language: "en-US"})
	if err != nil {
		return recognizer.Result{}, "", err
	}
	defer s.Close()
	if s.Partial() != "" {
		return recognizer.Result{}, "", errors.New("partial before audio")
	}
	if err := s.Write(make([]int16, 160)); err != nil {
		return recognizer.Result{}, "", err
	}
	partial := s.Partial()
	got, err := s.Finish()
	return got, partial, err
}
