package console

import (
	"context"
	"strings"
	"testing"

	"kennel/cloud/fleet/webhook"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

// hooks is the desk's webhooks.
type hooks struct{ *desk }

var hook = webhook.Hook{ID: "h-1", URL: "https://hooks.example.org/secret?x=" + evil, Kinds: []webhook.Kind{webhook.Present, webhook.Revoked}, Filter: "tag:lab", Note: evil, By: "op@example.org", Created: noon,
	FailingSince: &noon, LastError: evil, Failures: 3, Open: 4, Dead: 2}

func (d hooks) Hooks(context.Context) ([]webhook.Hook, error) {
	off, fine := hook, hook
	off.ID, off.Disabled, off.DisabledWhy = "h-2", &noon, evil
	fine.ID, fine.FailingSince, fine.LastOK = "h-3", nil, &noon
	return []webhook.Hook{hook, off, fine}, nil
}
func (d hooks) Hook(_ context.Context, id string) (webhook.Hook, error) {
	if id != hook.ID {
		return webhook.Hook{}, webhook.ErrUnknown
	}
	return hook, nil
}
func (d hooks) Add(_ context.Context, by string, w webhook.Draft, _ string) (webhook.Hook, string, error) {
	return hook, "whsec_new", d.do("add webhook", by, *w.URL, *w.Kinds, *w.Filter, *w.Note)
}
func (d hooks) Change(_ context.Context, id string, w webhook.Draft) (webhook.Hook, error) {
	return hook, d.do("turn webhook off", id, *w.Disabled)
}
func (d hooks) Remove(_ context.Context, id string) error { return d.do("remove webhook", id) }
func (d hooks) NewSecret(_ context.Context, id string) (string, error) {
	return "whsec_other", d.do("new secret", id)
}
func (d hooks) Ping(_ context.Context, id string) (webhook.Delivery, error) {
	return webhook.Delivery{}, d.do("ping", id)
}
func (d hooks) Deliveries(_ context.Context, id string, q webhook.Query) ([]webhook.Delivery, error) {
	if q.State == "odd" {
		return nil, errs.New(errs.Invalid, "state")
	}
	out := []webhook.Delivery{{ID: 60, Hook: id, Kind: webhook.Ping, Created: noon, State: webhook.Done, Attempts: 1, Status: 204, LatencyUS: 1500},
		{ID: 59, Hook: id, Kind: "robot.danced", Thing: rex, Created: noon, State: webhook.Dead, Attempts: 12, Error: evil}, {ID: 58, Hook: id, Kind: webhook.Present, Thing: rex, Created: noon, State: webhook.Open}}
	for len(out) < q.Limit {
		out = append(out, webhook.Delivery{ID: int64(60 - len(out)), Hook: id, Kind: webhook.Present, Thing: rex, Created: noon, State: webhook.Done})
	}
	return out, nil
}
func (d hooks) Replay(_ context.Context, id string, delivery int64) (int, error) {
	return 1, d.do("replay", id, delivery)
}

// TestWebhooks: the list says how each is doing, the page of one what became of each delivery.
func TestWebhooks(t *testing.T) {
	mux, _ := openDesk(t)
	list := do(t, mux, auth.Admin, "GET", "/webhooks", "").Body.String()
	for _, want := range []string{`<a href="/webhooks/h-1">hooks.example.org</a>`, ">Failing<", ">Off<", ">Delivering<", "A robot comes online, A certificate is revoked", `<code>tag:lab</code>`, ">4</td>", ">2</td>"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%s", want, list)
		}
	}
	if strings.Contains(list, "/secret") {
		t.Error("the list shows the whole address")
	}
	one := do(t, mux, auth.Admin, "GET", "/webhooks/h-1?state=dead", "").Body.String()
	for _, want := range []string{"/secret?x=", "A test", "HTTP 204 after 1.5 ms", "robot.danced", "12 attempts", `name="delivery" value="59"`, "waits for its turn", `href="/webhooks/h-1?before=11&amp;state=dead"`,
		`href="/webhooks/h-1?state=dead" aria-current="page"`, "Retry 2 failed"} {
		if !strings.Contains(one, want) {
			t.Errorf("no %q in\n%s", want, one)
		}
	}
	for path, code := range map[string]int{"/webhooks/none": 404, "/webhooks/h-1?before=x": 400, "/webhooks/h-1?state=odd": 400} {
		if w := do(t, mux, auth.Admin, "GET", path, ""); w.Code != code {
			t.Errorf("%s: %d, want %d", path, w.Code, code)
		}
	}
	refused := do(t, mux, auth.Admin, "POST", "/webhooks", form("url", "https://example.org")).Body.String()
	if !strings.Contains(refused, `role="alert"`) || !strings.Contains(refused, `value="https://example.org"`) {
		t.Errorf("without an occasion: %s", refused)
	}
}
