package webhook

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"kennel/infra/auth"
	"kennel/infra/errs"
)

// Audited is a Service that writes one line of the audit log about each change before it makes it; a change that cannot be written is not made. Of a
// URL the line holds the host alone: the path may be a secret.
type Audited struct {
	*Service
	// Audit writes one line about an action of the caller in ctx.
	Audit func(ctx context.Context, action, object, detail string) error
}

// Hooks returns all webhooks as the caller may see them.
func (a Audited) Hooks(ctx context.Context) ([]Hook, error) {
	all, err := a.Service.Hooks(ctx)
	for i := range all {
		all[i] = seen(ctx, all[i])
	}
	return all, err
}

// Hook returns one webhook as the caller may see it.
func (a Audited) Hook(ctx context.Context, id string) (Hook, error) {
	h, err := a.Service.Hook(ctx, id)
	return seen(ctx, h), err
}

// seen leaves of the URL the host alone for callers who may not change webhooks: the rest may be another party's secret.
func seen(ctx context.Context, h Hook) Hook {
	if auth.CallerFrom(ctx).Role != auth.Admin && h.URL != "" {
		h.URL = "https://" + host(h.URL) + "/..."
	}
	return h
}

// Add registers a webhook; see Service.
func (a Audited) Add(ctx context.Context, by string, d Draft, secret string) (Hook, string, error) {
	if d.URL == nil || d.Kinds == nil {
		return Hook{}, "", errs.New(errs.Invalid, "want a url and kinds")
	}
	if err := CheckURL(*d.URL, a.Guard()); err != nil { // the log has no line of a webhook that cannot be
		return Hook{}, "", err
	}
	if err := a.Audit(ctx, "webhook.add", host(*d.URL), list(*d.Kinds)); err != nil {
		return Hook{}, "", err
	}
	return a.Service.Add(ctx, by, d, secret)
}

// Change changes a webhook; see Service. A draft without a change is Invalid.
func (a Audited) Change(ctx context.Context, id string, d Draft) (Hook, error) {
	var what []string
	if d.URL != nil {
		what = append(what, "url to "+host(*d.URL))
	}
	if d.Kinds != nil {
		what = append(what, "kinds "+list(*d.Kinds))
	}
	if d.Filter != nil {
		what = append(what, "filter")
	}
	if d.Note != nil {
		what = append(what, "note")
	}
	if d.Disabled != nil {
		what = append(what, map[bool]string{true: "off", false: "on"}[*d.Disabled])
	}
	if len(what) == 0 {
		return Hook{}, errs.New(errs.Invalid, "want at least one of url, kinds, filter, note and disabled")
	}
	if err := a.known(ctx, id, "webhook.change", strings.Join(what, ", ")); err != nil {
		return Hook{}, err
	}
	return a.Service.Change(ctx, id, d)
}

// known refuses an unknown hook before a line about it is written.
func (a Audited) known(ctx context.Context, id, action, detail string) error {
	if _, err := a.Hook(ctx, id); err != nil {
		return err
	}
	return a.Audit(ctx, action, id, detail)
}

// Remove removes a webhook; see Service.
func (a Audited) Remove(ctx context.Context, id string) error {
	if err := a.known(ctx, id, "webhook.remove", ""); err != nil {
		return err
	}
	return a.Service.Remove(ctx, id)
}

// NewSecret makes another secret; see Service.
func (a Audited) NewSecret(ctx context.Context, id string) (string, error) {
	if err := a.known(ctx, id, "webhook.secret", ""); err != nil {
		return "", err
	}
	return a.Service.NewSecret(ctx, id)
}

// Ping sends a test; see Service.
func (a Audited) Ping(ctx context.Context, id string) (Delivery, error) {
	if err := a.known(ctx, id, "webhook.ping", ""); err != nil {
		return Delivery{}, err
	}
	return a.Service.Ping(ctx, id)
}

// Replay sends a delivery, or with 0 every dead one, once more; see Service.
func (a Audited) Replay(ctx context.Context, id string, delivery int64) (int, error) {
	what := "dead"
	if delivery != 0 {
		what = strconv.FormatInt(delivery, 10)
	}
	if err := a.known(ctx, id, "webhook.replay", what); err != nil {
		return 0, err
	}
	return a.Service.Replay(ctx, id, delivery)
}

// host is the part of a URL that the audit log holds.
func host(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Host
}

// list writes kinds as the audit log holds them.
func list(kinds []Kind) string {
	words := make([]string, 0, len(kinds))
	for _, k := range kinds[:min(len(kinds), 50)] {
		words = append(words, string(k)[:min(len(k), 40)])
	}
	return strings.Join(words, " ")
}
