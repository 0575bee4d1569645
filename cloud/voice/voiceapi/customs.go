package voiceapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/customs"
	"kennel/infra/auth"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
	"kennel/speech/intent"
	"kennel/speech/recognizer"
)

const maxCustom = 64 << 10

// Custom intents.
type (
	Custom       = customs.Custom
	CustomWanted = customs.Wanted
)

// CustomAdded is a custom intent that was added, and the words of its phrases that no recogniser of this cloud has: a sentence with one of them can be
// typed, and is never heard.
type CustomAdded struct {
	Custom
	Unheard []string `json:"unheard,omitempty"`
}

// mountCustoms adds the endpoints of custom intents to mux.
func mountCustoms(mux *http.ServeMux, c Config) {
	svc, wrap := c.Customs, endpoint.Chain(kit.Recover(c.Log), kit.Timeout(timeout))
	reads, writes := endpoint.Chain(wrap, auth.Require(auth.Staff...)), endpoint.Chain(wrap, auth.Require(auth.Changers...))
	mux.Handle("GET /v1/intents/custom", kithttp.Handler(reads(kit.Typed(func(ctx context.Context, id thing.ID) ([]Custom, error) {
		out, err := svc.List(ctx, id)
		if out == nil {
			out = []Custom{}
		}
		return out, err
	})), func(r *http.Request) (any, error) {
		if r.URL.Query().Get("thing") == "" {
			return thing.ID(""), nil
		}
		return thing.Parse(r.URL.Query().Get("thing"))
	}))
	mux.Handle("POST /v1/intents/custom", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, w CustomWanted) (out CustomAdded, err error) {
		if w.Thing != "" {
			if err := c.Known(ctx, w.Thing); err != nil {
				return out, err
			}
		}
		if err := w.Check(); err != nil {
			return out, err
		}
		if err := c.Audit(ctx, customs.AuditAdd, w.Name, w.Words()); err != nil {
			return out, err
		}
		if out.Custom, err = svc.Add(ctx, w, auth.CallerFrom(ctx).Subject()); err == nil {
			out.Unheard = unheard(c, w.Custom)
		}
		return out, err
	})), func(r *http.Request) (any, error) {
		var w CustomWanted
		err := kithttp.ReadJSON(r, &w, maxCustom)
		return w, err
	}))
	mux.Handle("DELETE /v1/intents/custom/{id}", kithttp.Handler(writes(kit.Typed(func(ctx context.Context, id int64) (any, error) {
		if err := c.Audit(ctx, customs.AuditDrop, strconv.FormatInt(id, 10), ""); err != nil {
			return nil, err
		}
		return nil, svc.Drop(ctx, id)
	})), func(r *http.Request) (any, error) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			return nil, customs.Missing(strconv.Quote(r.PathValue("id")))
		}
		return id, nil
	}))
}

// unheard returns the words of w that no recogniser has.
func unheard(c Config, w intent.Custom) []string {
	parts, err := c.Speech()
	if err != nil {
		return nil // nothing is heard at all, which the pages say
	}
	if l, ok := parts.Recognizer.(recognizer.Lexicon); ok {
		return l.Lacks(w.Heard())
	}
	return nil
}
