package recognizer_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/fixed"
	"kennel/speech/recognizer/recognizertest"
)

// probe is a fixed recogniser with a name that counts what it gets, and can fail while audio comes.
type probe struct {
	fixed.Recognizer
	name    string
	opened  int
	heard   []int16
	breakAt int // samples; 0: never
}

func (p *probe) Name() string { return p.name }

func (p *probe) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	p.opened++
	p.heard = nil
	s, err := p.Recognizer.Open(ctx, e)
	return &probed{s, p}, err
}

type probed struct {
	recognizer.Stream
	p *probe
}

func (s *probed) Write(samples []int16) error {
	s.p.heard = append(s.p.heard, samples...)
	if s.p.breakAt > 0 && len(s.p.heard) >= s.p.breakAt {
		return errBroken
	}
	return s.Stream.Write(samples)
}

var errBroken = errors.New("broken")

func speech(n int) []int16 {
	out := make([]int16, n)
	for i := range out {
		out[i] = int16(i)
	}
	return out
}

func TestChain(t *testing.T) {
	hello := fixed.Recognizer{Text: "hello"}
	for _, c := range []struct {
		name  string
		first probe
		last  fixed.Recognizer
		want  string // "" and no err: not understood
		err   string
		up    string // of the first: its problem
		asked bool   // the last one
		took  time.Duration
	}{
		{name: "the first answers", first: probe{Recognizer: hello}, want: "hello"},
		{name: "cannot open", first: probe{Recognizer: fixed.Recognizer{OpenErr: errBroken}}, last: hello, want: "hello", up: "broken", asked: true},
		{name: "breaks while audio comes", first: probe{Recognizer: hello, breakAt: 3200}, last: hello, want: "hello", up: "broken", asked: true},
		{name: "no result", first: probe{Recognizer: fixed.Recognizer{Err: errBroken}}, last: hello, want: "hello", up: "broken", asked: true},
		{name: "too slow", first: probe{Recognizer: fixed.Recognizer{Text: "no", Delay: time.Hour}}, last: hello, want: "hello",
			up: "no answer within 2.5s", asked: true, took: 2500 * time.Millisecond},
		{name: "the last one is slow", first: probe{Recognizer: fixed.Recognizer{Err: errBroken}}, last: fixed.Recognizer{Text: "hello", Delay: 4 * time.Second}, want: "hello",
			up: "broken", asked: true, took: 4 * time.Second},
		{name: "the last one hangs", first: probe{Recognizer: fixed.Recognizer{Err: errBroken}}, last: fixed.Recognizer{Text: "no", Delay: time.Hour},
			err: "every recogniser failed: first: broken\nlast: no answer within 5s", up: "broken", asked: true, took: 5 * time.Second},
		{name: "understands nothing", first: probe{}, last: hello, want: "hello", asked: true},
		{name: "understands nothing, and the last one fails", first: probe{}, last: fixed.Recognizer{Err: errBroken}, asked: true},
		{name: "all fail", first: probe{Recognizer: fixed.Recognizer{Err: errBroken}}, last: fixed.Recognizer{OpenErr: errBroken},
			err: "every recogniser failed: first: broken\nlast: broken", up: "broken", asked: true},
		{name: "another language", first: probe{Recognizer: fixed.Recognizer{OpenErr: errs.New(errs.Invalid, "English only")}}, last: hello, want: "hello", asked: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, last := c.first, probe{Recognizer: c.last, name: "last"}
				first.name = "first"
				chain := recognizer.NewChain(recognizer.ChainConfig{}, &first, &last)
				start := time.Now()
				got, err := recognizertest.Listen(t.Context(), chain, speech(8000))
				if msg := text(err); got.Text != c.want || msg != c.err || time.Since(start) != c.took {
					t.Errorf("%+v, %q after %v, want %q, %q after %v", got, msg, time.Since(start), c.want, c.err, c.took)
				}
				if c.err != "" && errs.KindOf(err) != errs.Unavailable {
					t.Errorf("kind %v, want unavailable", errs.KindOf(err))
				}
				if h := chain.Health()[0]; h.Problem != c.up || !h.Up || h.Name != "first" {
					t.Errorf("health %+v, want problem %q", h, c.up)
				}
				if c.asked != (last.opened == 1) || c.asked && c.last.OpenErr == nil && !slices.Equal(last.heard, speech(8000)) {
					t.Errorf("the last one was asked %d times and heard %d samples, want all 8000: %v", last.opened, len(last.heard), c.asked)
				}
			})
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		first := &probe{name: "first", Recognizer: fixed.Recognizer{Text: "hello", Err: errBroken}}
		chain := recognizer.NewChain(recognizer.ChainConfig{}, first, &fixed.Recognizer{Text: "hello"})
		ask := func(by string, opened int, want recognizer.Health) {
			t.Helper()
			got, err := recognizertest.Listen(t.Context(), chain, speech(1600))
			if h := chain.Health()[0]; err != nil || got.By != by || first.opened != opened || h != want {
				t.Fatalf("by %q, %v, asked %d times, %+v; want %q, %d, %+v", got.By, err, first.opened, h, by, opened, want)
			}
		}
		if h := chain.Health()[0]; h != (recognizer.Health{Name: "first", Up: true}) {
			t.Errorf("unused: %+v", h)
		}
		down := recognizer.Health{Name: "first", Problem: "broken", Since: start}
		failing := down
		failing.Up = true
		ask("fixed", 1, failing)
		time.Sleep(time.Second)
		ask("fixed", 2, failing)
		ask("fixed", 3, down)
		ask("fixed", 3, down) // left out
		time.Sleep(10 * time.Second)
		ask("fixed", 4, down) // one try
		ask("fixed", 4, down)
		time.Sleep(10 * time.Second)
		first.Err = nil
		ask("fixed", 5, recognizer.Health{Name: "first", Up: true, Since: time.Now()})
		ask("fixed", 6, recognizer.Health{Name: "first", Up: true, Since: time.Now()})
	})
}

// A request that its robot gave up is no failure of a recogniser.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := recognizer.NewChain(recognizer.ChainConfig{}, &fixed.Recognizer{Text: "a", Delay: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := recognizertest.Listen(ctx, chain, speech(1600))
		want := []recognizer.Health{{Name: "fixed", Up: true}}
		if got := chain.Health(); !errors.Is(err, context.DeadlineExceeded) || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %+v, want the deadline, %+v", err, got, want)
		}
	})
}

func TestBounds(t *testing.T) {
	chain := recognizer.NewChain(recognizer.ChainConfig{}, &fixed.Recognizer{Text: "a"})
	if _, err := recognizertest.Listen(t.Context(), chain, speech(16*recognizer.Rate)); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("16 s: %v, want exhausted", err)
	}
	if _, err := recognizer.NewChain(recognizer.ChainConfig{}).Open(t.Context(), recognizer.Expect{}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("no recogniser: %v, want unavailable", err)
	}
}

// missing is a recogniser that is not installed.
type missing struct{}

var errMissing = errors.New("not installed")

func (missing) Name() string { return "sphinx" }
func (missing) Open(context.Context, recognizer.Expect) (recognizer.Stream, error) {
	return nil, errMissing
}
func (missing) Check(context.Context) error { return errMissing }

func TestCheck(t *testing.T) {
	chain := recognizer.NewChain(recognizer.ChainConfig{}, missing{}, &fixed.Recognizer{Text: "a"})
	chain.Check(t.Context())
	if h := chain.Health(); h[0].Problem != "not installed" || h[1].Problem != "" || chain.Name() != "sphinx, fixed" {
		t.Errorf("%s: %+v, want the first one's problem", chain.Name(), h)
	}
	if got, err := recognizertest.Listen(t.Context(), chain, speech(1600)); err != nil || got.Text != "a" || !strings.Contains(got.By, "fixed") {
		t.Errorf("%+v, %v, want the second one's", got, err)
	}
}
