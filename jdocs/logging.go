package jdocs

import (
	"context"
	"encoding/json"
	"log/slog"
)

// Logged returns svc with its changes logged: accepted ones at Info when an operator made them, else at Debug; rejections at Debug. Texts
// of documents are never logged. The transport logs errors.
func Logged(svc Service, log *slog.Logger) Service { return logged{svc, log} }

type logged struct {
	Service
	log *slog.Logger
}

func (l logged) Write(ctx context.Context, key Key, d Doc, by string) (WriteResult, error) {
	res, err := l.Service.Write(ctx, key, d, by)
	if err == nil {
		l.log.DebugContext(ctx, "document written", "thing", key.Thing, "doc", key.Name, "status", res.Status, "sent", d.Version, "version",
			res.Latest, "by", by)
	}
	return res, err
}

func (l logged) Set(ctx context.Context, key Key, fields map[string]json.RawMessage, by string) (Revision, error) {
	rev, err := l.Service.Set(ctx, key, fields, by)
	if err == nil {
		l.log.InfoContext(ctx, "document fields set", "thing", key.Thing, "doc", key.Name, "fields", len(fields), "version", rev.Version, "by", by)
	}
	return rev, err
}

func (l logged) Restore(ctx context.Context, key Key, old Doc, by string) (Revision, error) {
	rev, err := l.Service.Restore(ctx, key, old, by)
	if err == nil {
		l.log.InfoContext(ctx, "earlier document restored", "thing", key.Thing, "doc", key.Name, "version", rev.Version, "by", by)
	}
	return rev, err
}

func (l logged) Delete(ctx context.Context, key Key, by string) (uint64, error) {
	v, err := l.Service.Delete(ctx, key, by)
	if err == nil {
		l.log.InfoContext(ctx, "document deleted", "thing", key.Thing, "doc", key.Name, "version", v, "by", by)
	}
	return v, err
}
