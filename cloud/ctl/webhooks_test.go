package ctl

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/webhook"
	"kennel/cloud/fleet/webhook/webhookapi"
	"kennel/cloud/fleet/webhook/webhookpg"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/op"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

// TestWebhooks: from registering one to a replay, against the real rules, endpoints and audit log.
func TestWebhooks(t *testing.T) {
	status := http.StatusOK
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(receiver.Close)
	_, pool, dir := newPeople(t, func(mux *http.ServeMux, people accounttest.Accounts, pool *pgxpool.Pool) {
		roots := x509.NewCertPool()
		roots.AddCert(receiver.Certificate())
		sender, err := webhook.NewSender(webhook.SenderConfig{Allow: []string{"127.0.0.1/32"}, Roots: roots})
		if err != nil {
			t.Fatal(err)
		}
		store := webhookpg.New(pool)
		svc, err := webhook.New(webhook.Config{Store: store, Outbox: store, Sealer: secretbox.New().For("webhook"), Sender: sender, Log: slog.New(slog.DiscardHandler),
			Select: func(context.Context, filter.Filter, int) ([]thing.ID, error) { return nil, nil },
			Order:  func(context.Context, string) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		webhookapi.Operations(svc, people.Audit.Note).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	})
	url := receiver.URL + "/path-that-is-a-secret"
	want(t, dir, "", 2, `kind "thing.eaten"`, "webhooks", "add", url, "-kind", "thing.eaten")
	want(t, dir, "", 2, `scheme is not https`, "webhooks", "add", "http://example.org/", "-kind", "thing.absent")
	want(t, dir, "", 2, `address 10.0.0.1 `, "webhooks", "add", "https://10.0.0.1/", "-kind", "thing.absent")
	want(t, dir, "", 2, `missing -kind KINDS`, "webhooks", "add", url)
	out := want(t, dir, "", 0, `webhook +[0-9a-f-]{36}\nsecret +whsec_[A-Za-z0-9+/=]{44}\n`, "webhooks", "add", url, "-kind", "thing.absent,thing.present", "-filter", "species:vic", "-note", "mine")
	id, secret := strings.Fields(out)[1], strings.Fields(out)[3]
	if out := want(t, dir, "", 0, id, "webhooks", "list", "-o", "json"); strings.Contains(out, secret) || strings.Contains(out, "whsec") {
		t.Errorf("the secret is shown again: %s", out)
	}
	want(t, dir, "", 0, `new +https://127.0.0.1:\d+/path-that-is-a-secret +thing.absent,thing.present +species:vic +0 +0 +- +mine`, "webhooks", "list")
	want(t, dir, "", 0, `answered 200 in `, "webhooks", "ping", id)
	status = http.StatusTeapot
	want(t, dir, "", 5, `answered 418`, "webhooks", "ping", id)
	want(t, dir, "", 0, `(?s)ping .*dead .*418.*ping .*done .*200`, "webhooks", "deliveries", id)
	want(t, dir, "", 2, `state "lost"`, "webhooks", "deliveries", id, "-state", "lost")
	want(t, dir, "", 2, `limit 501`, "webhooks", "deliveries", id, "-limit", "501")

	for range 2 {
		if _, err := pool.Exec(t.Context(), `INSERT INTO webhook_delivery (hook, event, kind, thing, body, created, next_at, state, last_at)
			VALUES ($1, gen_random_uuid(), 'thing.absent', 'vic:1', '{}', now(), now(), 'dead', now())`, id); err != nil {
			t.Fatal(err)
		}
	}
	var first int64
	if err := pool.QueryRow(t.Context(), `SELECT min(id) FROM webhook_delivery WHERE kind <> 'ping'`).Scan(&first); err != nil {
		t.Fatal(err)
	}
	want(t, dir, "", 0, `^1 `, "webhooks", "replay", id, strconv.FormatInt(first, 10))
	want(t, dir, "", 3, `no such webhook or delivery`, "webhooks", "replay", id, strconv.FormatInt(first, 10))
	want(t, dir, "", 0, `^1 `, "webhooks", "replay", id, "-dead")
	want(t, dir, "", 2, `DELIVERY or -dead`, "webhooks", "replay", id)
	want(t, dir, "", 0, `waiting +2`, "webhooks", "show", id)

	want(t, dir, "", 0, `kinds +command.finished`, "webhooks", "change", id, "-kind", "command.finished", "-filter", "")
	want(t, dir, "", 2, `nothing to change`, "webhooks", "change", id)
	want(t, dir, "", 2, `169.254.169.254`, "webhooks", "change", id, "-url", "https://169.254.169.254/")
	want(t, dir, "", 0, `state +off`, "webhooks", "disable", id)
	want(t, dir, "", 0, `state +ok`, "webhooks", "enable", id)
	out = want(t, dir, "", 0, `secret +whsec_`, "webhooks", "secret", id)
	if strings.Contains(out, secret) {
		t.Error("the same secret again")
	}
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, secret+"\n")
	want(t, dir, "", 0, regexp.QuoteMeta(secret), "webhooks", "add", url, "-kind", "thing.absent", "-secret-file", file)
	want(t, dir, "", 0, id, "webhooks", "remove", id)
	for _, args := range [][]string{{"show", id}, {"ping", id}, {"remove", id}, {"secret", id}, {"deliveries", id}, {"replay", id, "-dead"}, {"disable", id}, {"show", "no-uuid"}} {
		want(t, dir, "", 3, `no such webhook`, append([]string{"webhooks"}, args...)...)
	}
	out = want(t, dir, "", 0, `webhook.add`, "audit", "list", "-o", "json")
	for _, action := range []string{"webhook.change", "webhook.ping", "webhook.replay", "webhook.secret", "webhook.remove"} {
		if !strings.Contains(out, action) {
			t.Errorf("%s is not in the audit log:\n%s", action, out)
		}
	}
	if n := strings.Count(out, "not done: invalid"); n != 2 {
		t.Errorf("%d changes in the audit log were not done, want two, one of an unknown kind and one to an address that is not public:\n%s", n, out)
	}
	if strings.Contains(out, "path-that-is-a-secret") || strings.Contains(out, "whsec") {
		t.Errorf("a secret is in the audit log:\n%s", out)
	}
}
