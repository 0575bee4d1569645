package eventlog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/testwait"
)

// TestEventsInTheLog is VEC-LOG-09: a line of the text log that is read as the same event, unless the log has no events.
func TestEventsInTheLog(t *testing.T) {
	on := true
	var b bytes.Buffer
	l := NewLog(&b, func() bool { return on })
	e := events.Event{Source: "agentd", Level: events.Warning, Name: "battery.cooldown", TS: 1700000000123, S1: "hot", I2: events.Num(3), UptimeMS: 7}
	l.Event(&e)
	slog.New(slog.NewTextHandler(l, nil)).Info("between")
	on = false
	l.Event(&e)
	lines := strings.SplitAfter(b.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "2023-11-14T22:13:20.123Z warning agentd: @battery.cooldown\x1fhot\x1f") {
		t.Fatalf("%q", lines)
	}
	e.TS = 0
	if got, err := events.ParseLog(lines[0]); err != nil || got != e {
		t.Errorf("read as %+v, %v, want %+v", got, err, e)
	}
}

// TestForeignLines: programs that are not ours write their logs into the FIFO; what they cannot know they cannot say.
func TestForeignLines(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := make(chan events.Event, 10) // more than there are
	said := make(chan string, 10)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Listen(ctx, root, func(e events.Event) { got <- e }, slog.New(slog.NewTextHandler(words(said), nil)))
	}()
	testwait.Until(t, 10*time.Second, "the FIFO", testwait.Holds(func() bool {
		is, err := root.Stat(File)
		return err == nil && is.Mode().Type() == fs.ModeNamedPipe
	}))
	f, err := root.OpenFile(File, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("Nov 23 v info vic-engine[8]: plain line of ann@example.com\n" +
			"Nov 23 v info vic-engine[8]: @mood.event\x1fhappy\x1f\x1f\x1f\x1f1\x1f\x1f\x1f\x1f99\n@mood.event\x1f\x1f\x1f\x1f\x1fx\n@robot.poked\n")
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []events.Event{
		{Source: "vic-engine", Level: events.Info, Name: "mood.event", S1: "happy", I1: events.Num(1)}, {Name: "robot.poked"},
	} {
		if e := <-got; e != want {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	if s := <-said; !strings.Contains(s, "i1 is") {
		t.Errorf("log %s", s)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type words chan string

func (w words) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

// TestErrorsBecomeEvents is log.error of VEC-DAS-07: the message and its cause, of a flood ten and then one each minute.
func TestErrorsBecomeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []events.Event
		log := slog.New(Errors(slog.DiscardHandler, func(e events.Event) { got = append(got, e) }))
		if log.Enabled(t.Context(), slog.LevelError) {
			t.Fatal("the next handler decides which records there are")
		}
		log = slog.New(Errors(slog.NewTextHandler(&bytes.Buffer{}, nil), func(e events.Event) { got = append(got, e) })).With("thing", "vic:1")
		log.Warn("no error")
		log.Error("events not saved", "err", errors.New("disk full"))
		if want := (events.Event{Source: "agentd", Level: events.Error, Name: "log.error", S1: "events not saved", S2: "disk full"}); len(got) != 1 || got[0] != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		for range 100 {
			log.WithGroup("g").Error("again")
		}
		time.Sleep(3 * time.Minute)
		for range 100 {
			log.Error("again")
		}
		if len(got) != 13 {
			t.Errorf("%d events, want 10 and 3", len(got))
		}
	})
}
