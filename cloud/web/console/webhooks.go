package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kennel/cloud/fleet/webhook"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

// Webhooks is the pages' access to webhooks; webhook.Audited is one. It writes the audit log itself.
type Webhooks interface {
	Hooks(ctx context.Context) ([]webhook.Hook, error)
	Hook(ctx context.Context, id string) (webhook.Hook, error)
	Add(ctx context.Context, by string, d webhook.Draft, secret string) (webhook.Hook, string, error)
	Change(ctx context.Context, id string, d webhook.Draft) (webhook.Hook, error)
	Remove(ctx context.Context, id string) error
	NewSecret(ctx context.Context, id string) (string, error)
	Ping(ctx context.Context, id string) (webhook.Delivery, error)
	Deliveries(ctx context.Context, hook string, q webhook.Query) ([]webhook.Delivery, error)
	Replay(ctx context.Context, hook string, id int64) (int, error)
}

// occasions says in words when a webhook is called; a kind without words is shown as it is.
var occasions = map[webhook.Kind]string{
	webhook.Present: "A robot comes online", webhook.Absent: "A robot goes offline", webhook.Activated: "A robot gets its first certificate",
	webhook.Setting: "A setting changes", webhook.Command: "A command ends", webhook.Revoked: "A certificate is revoked", webhook.Ping: "A test",
	webhook.ProblemRaised: "A robot has a new problem", webhook.ProblemGone: "A problem is resolved", webhook.FaultRaised: "A robot raises a numbered fault",
	webhook.AlertFiring: "An alert fires", webhook.AlertResolved: "An alert is resolved",
	webhook.CrashGroupNew: "A new kind of crash appears", webhook.CrashGroupRegressed: "A resolved kind of crash comes back", webhook.CustomIntent: "A custom intent is heard",
	webhook.RolloutWaiting: "A rollout waits for approval", webhook.RolloutStarted: "A rollout starts", webhook.RolloutPhase: "A rollout's next phase opens",
	webhook.RolloutBaking: "A rollout phase is complete", webhook.RolloutHeld: "A rollout waits for a person", webhook.RolloutFreed: "A rollout is released by a person", webhook.RolloutPaused: "A rollout is paused", webhook.RolloutResumed: "A rollout continues",
	webhook.RolloutStopped: "A guard stops a rollout", webhook.RolloutAborted: "A rollout is aborted", webhook.RolloutRetried: "Failed robots of a rollout try again", webhook.RolloutDone: "A rollout is done",
}

func occasion(k webhook.Kind) string {
	if name, ok := strings.CutPrefix(string(k), webhook.EventPrefix); ok {
		if name == "" {
			return "Any robot event"
		}
		return "Robot event " + name
	}
	return cmp.Or(occasions[k], string(k))
}

type hookView struct{ webhook.Hook }

// Host is the receiver's host: the rest of the address may be a secret.
func (h hookView) Host() string {
	u, err := url.Parse(h.URL)
	if err != nil {
		return h.URL
	}
	return u.Host
}

// State is a word for the table, and Good and Bad its colour.
func (h hookView) State() string {
	switch {
	case h.Disabled != nil:
		return "Off"
	case h.FailingSince != nil:
		return "Failing"
	case h.LastOK == nil:
		return "Not used yet"
	}
	return "Delivering"
}

func (h hookView) Good() bool { return h.State() == "Delivering" }
func (h hookView) Bad() bool  { return h.State() == "Failing" || h.DisabledWhy != "" }

// Occasions are the kinds in words.
func (h hookView) Occasions() (out []string) {
	for _, k := range h.Kinds {
		out = append(out, occasion(k))
	}
	return out
}

type webhooksView struct {
	able
	said
	Rows  []hookView
	Kinds []choice
}

// webhooks is the list, with a form for one more.
func (c *console) webhooks(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	all, err := c.Webhooks.Hooks(ctx)
	if err != nil {
		return "", frame{}, err
	}
	v := webhooksView{able: ableOf(ctx), said: s}
	for _, h := range all {
		v.Rows = append(v.Rows, hookView{h})
	}
	for _, k := range webhook.Kinds {
		chosen := s.Problem("webhook") != "" && slices.Contains(r.PostForm["kind"], string(k))
		v.Kinds = append(v.Kinds, choice{string(k), occasion(k), chosen})
	}
	return "webhooks", frame{Title: "Webhooks", Main: v}, nil
}

type webhookView struct {
	able
	said
	hookView
	Rows  []deliveryView
	Asked webhook.State // the state of deliveries to show; "": all
	Tabs  []chip
	Older string
}

type deliveryView struct{ webhook.Delivery }

// Occasion is the kind in words, Answer what came back.
func (d deliveryView) Occasion() string { return occasion(d.Kind) }
func (d deliveryView) Answer() string {
	switch {
	case d.Error != "":
		return d.Error
	case d.Status != 0:
		return "HTTP " + strconv.Itoa(d.Status) + " after " + micros(float64(d.LatencyUS))
	case d.Attempts == 0:
		return "waits for its turn"
	}
	return ""
}

var deliveryTabs = []struct {
	state webhook.State
	label string
}{{"", "All"}, {webhook.Open, "Waiting"}, {webhook.Done, "Delivered"}, {webhook.Dead, "Failed"}}

// Word is the state in words.
func (d deliveryView) Word() string {
	for _, t := range deliveryTabs {
		if t.state == d.State {
			return t.label
		}
	}
	return string(d.State)
}

// Forms are the names of the page's forms.
func (webhookView) Forms() []string {
	return []string{"test", "disable", "enable", "secret", "replay", "remove"}
}

// webhook is the page of one: its state and its deliveries.
func (c *console) webhook(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	h, err := c.Webhooks.Hook(ctx, r.PathValue("id"))
	if err != nil {
		return "", frame{}, err
	}
	q := webhook.Query{State: webhook.State(r.URL.Query().Get("state")), Limit: webhook.DefaultLimit}
	if text := r.URL.Query().Get("before"); text != "" {
		if q.Before, err = strconv.ParseInt(text, 10, 64); err != nil {
			return "", frame{}, errs.New(errs.Invalid, "before=%.40q: want the number of a delivery", text)
		}
	}
	list, err := c.Webhooks.Deliveries(ctx, h.ID, q)
	if err != nil {
		return "", frame{}, err
	}
	v := webhookView{able: ableOf(ctx), said: s, hookView: hookView{h}, Asked: q.State}
	for _, d := range list {
		v.Rows = append(v.Rows, deliveryView{d})
	}
	address := func(state webhook.State, before int64) string {
		a := url.Values{}
		if state != "" {
			a.Set("state", string(state))
		}
		if before != 0 {
			a.Set("before", strconv.FormatInt(before, 10))
		}
		return strings.TrimSuffix("/webhooks/"+url.PathEscape(h.ID)+"?"+a.Encode(), "?")
	}
	for _, t := range deliveryTabs {
		v.Tabs = append(v.Tabs, chip{Label: t.label, Address: address(t.state, 0), Current: t.state == q.State})
	}
	if len(list) == q.Limit {
		v.Older = address(q.State, list[len(list)-1].ID)
	}
	return "webhook", frame{Title: v.Host(), Crumbs: []link{{Label: "Webhooks", Address: "/webhooks"}, {Label: v.Host()}}, Main: v}, nil
}

func (c *console) mountWebhooks(show func(pattern string, h view), act func(pattern string, a action)) {
	show("GET /webhooks", c.webhooks)
	show("GET /webhooks/{id}", c.webhook)
	act("POST /webhooks", action{page.Called("webhook"), c.addWebhook, c.webhooks, func(*http.Request) string { return "/webhooks" }})
	of := func(name, done string, do func(ctx context.Context, id string, v url.Values) (secret string, err error)) {
		act("POST /webhooks/{id}/"+name, action{page.Called(name), func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
			secret, err := do(ctx, r.PathValue("id"), v)
			return outcome{done: done, secret: secret}, err
		}, c.webhook, func(r *http.Request) string { return "/webhooks/" + url.PathEscape(r.PathValue("id")) }})
	}
	of("test", "webhook-tested", func(ctx context.Context, id string, _ url.Values) (string, error) {
		_, err := c.Webhooks.Ping(ctx, id)
		return "", err
	})
	for name, off := range map[string]bool{"disable": true, "enable": false} {
		of(name, "webhook-"+name, func(ctx context.Context, id string, _ url.Values) (string, error) {
			_, err := c.Webhooks.Change(ctx, id, webhook.Draft{Disabled: &off})
			return "", err
		})
	}
	of("secret", "webhook-secret", func(ctx context.Context, id string, _ url.Values) (string, error) {
		return c.Webhooks.NewSecret(ctx, id)
	})
	of("replay", "webhook-replay", func(ctx context.Context, id string, v url.Values) (string, error) {
		delivery, err := strconv.ParseInt(cmp.Or(v.Get("delivery"), "0"), 10, 64)
		if err != nil || delivery < 0 {
			return "", errs.New(errs.Invalid, "delivery=%.40q: want the number of a delivery", v.Get("delivery"))
		}
		_, err = c.Webhooks.Replay(ctx, id, delivery)
		return "", err
	})
	act("POST /webhooks/{id}/remove", action{page.Called("remove"), func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
		if v.Get("sure") != "yes" {
			return outcome{}, errs.New(errs.Invalid, "confirm the removal: the webhook's deliveries are removed as well")
		}
		return outcome{done: "webhook-removed"}, c.Webhooks.Remove(ctx, r.PathValue("id"))
	}, c.webhook, func(*http.Request) string { return "/webhooks" }})
}

func (c *console) addWebhook(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	address, filter, note := strings.TrimSpace(v.Get("url")), strings.TrimSpace(v.Get("filter")), v.Get("note")
	kinds := make([]webhook.Kind, 0, len(v["kind"]))
	for _, k := range v["kind"] {
		kinds = append(kinds, webhook.Kind(k))
	}
	for name := range strings.FieldsFuncSeq(v.Get("events"), func(r rune) bool { return r == ',' || r == ' ' }) {
		kinds = append(kinds, webhook.Kind(webhook.EventPrefix+strings.TrimSuffix(name, "*")))
	}
	if len(kinds) == 0 {
		return outcome{}, errs.New(errs.Invalid, "choose at least one event")
	}
	_, secret, err := c.Webhooks.Add(ctx, auth.CallerFrom(ctx).Subject(), webhook.Draft{URL: &address, Kinds: &kinds, Filter: &filter, Note: &note}, "")
	return outcome{done: "webhook-added", secret: secret}, err
}
