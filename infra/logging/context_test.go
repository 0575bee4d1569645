package logging

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

// line logs once through a JSON logger and returns the record.
func line(t *testing.T, log func(*slog.Logger)) map[string]any {
	t.Helper()
	var b strings.Builder
	l, err := New(&b, "debug", "json")
	if err != nil {
		t.Fatal(err)
	}
	log(l)
	var rec map[string]any
	if err := json.Unmarshal([]byte(b.String()), &rec); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	if rec["time"] == nil || rec["level"] == nil {
		t.Errorf("without time or level: %s", b.String())
	}
	delete(rec, "time")
	delete(rec, "level")
	return rec
}

func TestContextAttributes(t *testing.T) {
	ctx := With(t.Context(), slog.String(Request, "r1"), slog.String(Caller, "vic:00e20100"))
	ctx = With(ctx, slog.String(Trace, "4bf9"), slog.String(Request, "r2")) // the later counts
	facts := map[string]any{Request: "r2", Caller: "vic:00e20100", Trace: "4bf9"}
	for name, tc := range map[string]struct {
		log  func(*slog.Logger)
		want map[string]any
	}{
		"plain":      {func(l *slog.Logger) { l.InfoContext(ctx, "m", "a", 1) }, map[string]any{"msg": "m", "a": 1.0}},
		"with":       {func(l *slog.Logger) { l.With("a", 1).InfoContext(ctx, "m") }, map[string]any{"msg": "m", "a": 1.0}},
		"its own":    {func(l *slog.Logger) { l.InfoContext(ctx, "m", Caller, "otto") }, map[string]any{"msg": "m", Caller: "otto"}},
		"group":      {func(l *slog.Logger) { l.WithGroup("g").With("a", 1).InfoContext(ctx, "m", "b", 2) }, map[string]any{"msg": "m", "g": map[string]any{"a": 1.0, "b": 2.0}}},
		"with group": {func(l *slog.Logger) { l.With("a", 1).WithGroup("g").InfoContext(ctx, "m", "b", 2) }, map[string]any{"msg": "m", "a": 1.0, "g": map[string]any{"b": 2.0}}},
	} {
		want := map[string]any{}
		for _, m := range []map[string]any{facts, tc.want} {
			for k, v := range m {
				want[k] = v
			}
		}
		if got := line(t, tc.log); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	bare := line(t, func(l *slog.Logger) { l.Info("m", "secret", Secret("hunter2")) })
	if want := (map[string]any{"msg": "m", "secret": "[secret]"}); !reflect.DeepEqual(bare, want) {
		t.Errorf("without a context: %v, want %v", bare, want)
	}
}

// TestBranchesDoNotShare: two requests that begin from one context do not write into each other's attributes.
func TestBranchesDoNotShare(t *testing.T) {
	root := With(t.Context(), slog.String("a", "1"), slog.String("b", "2"), slog.String("c", "3"))
	one, two := With(root, slog.String("x", "one")), With(root, slog.String("x", "two"))
	if got := line(t, func(l *slog.Logger) { l.InfoContext(one, "m") })["x"]; got != "one" {
		t.Errorf("x = %v", got)
	}
	if got := line(t, func(l *slog.Logger) { l.InfoContext(two, "m") })["x"]; got != "two" {
		t.Errorf("x = %v", got)
	}
	if len(Attrs(context.Background())) != 0 {
		t.Error("attributes from nowhere")
	}
}

func BenchmarkHandle(b *testing.B) {
	for name, ctx := range map[string]context.Context{"bare": context.Background(), "request": With(context.Background(), slog.String(Request, "r"), slog.String(Caller, "c"))} {
		b.Run(name, func(b *testing.B) {
			l := slog.New(Contextual(slog.NewJSONHandler(io.Discard, nil)))
			for b.Loop() {
				l.InfoContext(ctx, "m", "a", 1)
			}
		})
	}
}
