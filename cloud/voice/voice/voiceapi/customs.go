package voiceapi

import (
	"context"
	"strconv"

	"kennel/cloud/voice/customintent"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/speech/intent"
	"kennel/speech/recognizer"
)

// Custom intents.
type (
	Custom       = customintent.Custom
	CustomWanted = customintent.Wanted
)

// CustomAdded is a custom intent that was added, and the words of its phrases that no recogniser of this cloud has: a sentence with one of them can be
// typed, and is never heard.
type CustomAdded struct {
	Custom
	Unheard []string `json:"unheard,omitempty"`
}

type (
	understood struct {
		Thing thing.ID `query:"thing" about:"Only intents that this robot understands."`
	}
	oneCustom struct {
		ID int64 `path:"id" of:"custom intent"`
	}
)

// customOperations are those on custom intents.
func customOperations(c Config) op.List {
	spec := func(route, summary string, roles []auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Voice", Summary: summary, Roles: roles}
	}
	return op.List{
		op.New(spec("GET /v1/intents/custom", "List custom intents: those of one robot, then those of all robots.", auth.Staff).With(
			op.Command{Use: "intent custom list -thing", Short: "List custom intents", Example: "intent custom list\nintent custom list -thing vic:00e20100", Table: "ID; INTENT=.name; ROBOT=or .thing `all`; PHRASES={{join .phrases `; `}}; REACTION; OVERRIDES=join .overrides `,`; BY"}),
			func(ctx context.Context, r understood) ([]Custom, error) { return c.Customs.List(ctx, r.Thing) }),
		op.New(spec("POST /v1/intents/custom", "Add a custom intent. Refused if a phrase already means a built-in intent that it does not override. Webhooks get it as intent.custom.", auth.Changers).With(
			op.Command{Use: "intent custom add NAME PHRASE...=phrases -thing -reaction -lang:languages -override:overrides", Short: "Add a custom intent (refused if a phrase already means something else)", Example: `intent custom add feed_cat "feed (the|my) cat"`, Table: "custom intent=.id; name; robot=or .thing `all`; only typed?={{with .unheard}}{{.}}: speech recognition does not know these words, so they cannot be spoken{{end}}"}),
			func(ctx context.Context, w CustomWanted) (out CustomAdded, err error) {
				if w.Thing != "" {
					if err := c.Known(ctx, w.Thing); err != nil {
						return out, err
					}
				}
				if err := w.Check(); err != nil {
					return out, err
				}
				if err := c.Audit(ctx, customintent.AuditAdd, w.Name, w.Words()); err != nil {
					return out, err
				}
				if out.Custom, err = c.Customs.Add(ctx, w, auth.CallerFrom(ctx).Subject()); err == nil {
					out.Unheard = unheard(c, w.Custom)
				}
				return out, err
			}),
		op.New(spec("DELETE /v1/intents/custom/{id}", "Remove a custom intent.", auth.Changers).With(
			op.Command{Use: "intent custom remove INTENT", Short: "Remove a custom intent", Example: "intent custom remove 3", Says: "custom intent {{.INTENT}} removed"}), func(ctx context.Context, r oneCustom) (op.None, error) {
			if err := c.Audit(ctx, customintent.AuditDrop, strconv.FormatInt(r.ID, 10), ""); err != nil {
				return op.None{}, err
			}
			return op.None{}, c.Customs.Drop(ctx, r.ID)
		}),
	}
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
