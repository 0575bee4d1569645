package feelings

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"testing"

	"kennel/edge/agent/voice"
	"kennel/edge/mind/mindlink"
	"kennel/infra/api/events"
)

// mind is a character that dies once.
type mind struct {
	felt chan mindlink.Feel
	all  chan func(give func(mindlink.Feeling) error) error
}

func (m *mind) Feel(_ context.Context, f mindlink.Feel) error { m.felt <- f; return nil }

func (m *mind) Feelings(ctx context.Context, give func(mindlink.Feeling) error) error {
	select {
	case f := <-m.all:
		return f(give)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestFeelings: what the voice stirs reaches the mood, changes of the mood reach programs, and those of the simple mood the event log (VEC-EMO-02), also those of a
// character that was started again.
func TestFeelings(t *testing.T) {
	m := &mind{make(chan mindlink.Feel, 8), make(chan func(func(mindlink.Feeling) error) error, 2)}
	emitted, told := make(chan events.Event, 8), make(chan mindlink.Feeling, 8)
	f := New(Config{Mind: m, Runs: func() bool { return true }, Emit: func(e events.Event) { emitted <- e }, Told: func(x mindlink.Feeling) { told <- x }, Log: slog.New(slog.DiscardHandler)})
	dies := make(chan struct{})
	m.all <- func(give func(mindlink.Feeling) error) error {
		_ = give(mindlink.Feeling{Simple: "Default", SimpleBefore: "Default"}) // as it is
		_ = give(mindlink.Feeling{Simple: "Default", SimpleBefore: "Default", Events: []string{"RobotShaken"}})
		return errors.New("killed")
	}
	m.all <- func(give func(mindlink.Feeling) error) error {
		_ = give(mindlink.Feeling{Simple: "LowStim", SimpleBefore: "LowStim"})
		_ = give(mindlink.Feeling{Simple: "HighStim", SimpleBefore: "LowStim"})
		<-dies
		return errors.New("killed")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Part().Services[0].Run(ctx) }()
	f.Heard(voice.Event{WakeWord: &voice.Word{Begin: &struct{}{}}})
	f.Heard(voice.Event{Stimulation: &voice.Stimulation{Emotions: []string{"ReactToTriggerWord"}}})
	if got := <-m.felt; !slices.Equal(got.Events, []string{"ReactToTriggerWord"}) || got.Program == "" {
		t.Errorf("the mood was told %+v", got)
	}
	if got := <-told; !slices.Equal(got.Events, []string{"RobotShaken"}) {
		t.Errorf("programs were told %+v first", got)
	}
	if got := <-told; got.Simple != "HighStim" {
		t.Errorf("then %+v", got)
	}
	if now, ok := f.Now(); !ok || now.Simple != "HighStim" {
		t.Errorf("now %+v, %t", now, ok)
	}
	if e := <-emitted; e.Name != "mood.event" || e.S1 != "RobotShaken" {
		t.Errorf("event %+v", e)
	}
	if e := <-emitted; e.Name != "mood.simple_mood_transition" || e.S1 != "HighStim" || e.S2 != "LowStim" {
		t.Errorf("event %+v", e)
	}
	close(dies)
	for known := true; known; _, known = f.Now() {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; err != nil || len(emitted) > 0 || len(told) > 0 {
		t.Errorf("%v, %d more events, %d more changes", err, len(emitted), len(told))
	}
}

// TestNoCharacter: without mindd what happens is forgotten, and blocks nothing.
func TestNoCharacter(t *testing.T) {
	asked := make(chan struct{}, 3*waiting)
	f := New(Config{Mind: &mind{}, Runs: func() bool { asked <- struct{}{}; return false }, Log: slog.New(slog.DiscardHandler)})
	for range 3 * waiting {
		f.Feel(mindlink.Feel{Events: []string{"RobotShaken"}})
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Part().Services[0].Run(ctx) }()
	for range waiting {
		<-asked
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
