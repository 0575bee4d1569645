package certs

import (
	"context"
	"log/slog"
)

// LogSteps returns a recorder that logs each step and passes it on: a refusal is something an operator acts on, with its exact reason.
func LogSteps(next Recorder, log *slog.Logger) Recorder { return logged{next, log} }

type logged struct {
	next Recorder
	log  *slog.Logger
}

func (l logged) Record(ctx context.Context, s Step) {
	level, msg := slog.LevelInfo, "identity step done"
	if !s.OK {
		level, msg = slog.LevelWarn, "identity step refused"
	}
	l.log.LogAttrs(ctx, level, msg, slog.String("thing", string(s.Thing)), slog.String("step", s.Step), slog.String("addr", s.Peer),
		slog.String("code", s.Code), slog.String("reason", s.Reason))
	l.next.Record(ctx, s)
}

// RecordAll implements BatchRecorder: a delivery is one line.
func (l logged) RecordAll(ctx context.Context, all []Step) {
	if len(all) > 0 {
		l.log.LogAttrs(ctx, slog.LevelInfo, "identity steps done", slog.String("step", all[0].Step), slog.Int("things", len(all)),
			slog.String("first", string(all[0].Thing)), slog.String("last", string(all[len(all)-1].Thing)))
	}
	if next, ok := l.next.(BatchRecorder); ok {
		next.RecordAll(ctx, all)
		return
	}
	for _, s := range all {
		l.next.Record(ctx, s)
	}
}
