package logging

import (
	"context"
	"log/slog"
	"slices"
)

type attrsKey struct{}

// With returns ctx carrying attributes that every record logged under it gets: which request, who asks, which trace. Of two attributes
// with one key the later counts.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	old := Attrs(ctx)
	all := make([]slog.Attr, 0, len(old)+len(attrs)) // never append to what another request may share
	for _, a := range old {
		if !slices.ContainsFunc(attrs, func(b slog.Attr) bool { return a.Key == b.Key }) {
			all = append(all, a)
		}
	}
	return context.WithValue(ctx, attrsKey{}, append(all, attrs...))
}

// Attrs returns what ctx carries; the caller does not change it.
func Attrs(ctx context.Context) []slog.Attr {
	a, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return a
}

// Contextual returns a handler that adds the attributes of the record's context (see With), outside any group, and hands on to next. Where a
// record has an attribute of the same key itself, the one of the context is left out.
func Contextual(next slog.Handler) slog.Handler { return contextual{next: next, outer: next} }

// contextual keeps the handler as it was before the first group, and what was added since, because an attribute of the context belongs at
// the top wherever the logger was grouped.
type contextual struct {
	next  slog.Handler // with all groups and attributes: used while the context carries nothing
	outer slog.Handler // before the first group
	inner []func(slog.Handler) slog.Handler
}

func (h contextual) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h contextual) Handle(ctx context.Context, r slog.Record) error {
	attrs := Attrs(ctx)
	switch {
	case len(attrs) == 0:
		return h.next.Handle(ctx, r)
	case len(h.inner) == 0:
		r.Attrs(func(own slog.Attr) bool {
			if i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == own.Key }); i >= 0 {
				attrs = slices.Concat(attrs[:i], attrs[i+1:])
			}
			return true
		})
		r = r.Clone()
		r.AddAttrs(attrs...)
		return h.next.Handle(ctx, r)
	}
	out := h.outer.WithAttrs(attrs)
	for _, f := range h.inner {
		out = f(out)
	}
	return out.Handle(ctx, r)
}

func (h contextual) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(h.inner) == 0 {
		next := h.next.WithAttrs(attrs)
		return contextual{next: next, outer: next}
	}
	return h.and(func(n slog.Handler) slog.Handler { return n.WithAttrs(attrs) })
}

func (h contextual) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.and(func(n slog.Handler) slog.Handler { return n.WithGroup(name) })
}

func (h contextual) and(f func(slog.Handler) slog.Handler) slog.Handler {
	return contextual{next: f(h.next), outer: h.outer, inner: append(slices.Clip(h.inner), f)}
}
