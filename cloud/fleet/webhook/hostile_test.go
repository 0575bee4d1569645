package webhook_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/webhook"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

func TestGuard(t *testing.T) {
	g := must(webhook.NewGuard([]string{"10.1.0.0/16", "fd00:1::/32"}))
	for host, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "10.1.2.3": true, "::ffff:10.1.2.3": true, "fd00:1::5": true,
		"10.2.0.1": false, "127.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.100.100.200": false, "0.0.0.0": false, "0.1.2.3": false,
		"224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "::1": false, "::": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false, "fe80::1%eth0": false,
		"fc00::1": false, "ff02::1": false, "64:ff9b::a00:1": false, "2002:7f00:1::": false, "2001::1": false, "fec0::1": false,
	} {
		if err := g.CheckHost(host); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", host, err, want)
		}
	}
	if err := g.CheckHost("127.0.0.1"); !strings.Contains(fmt.Sprint(err), "-webhook-allow") || !strings.Contains(fmt.Sprint(err), "webhooks.allow") { // 30.5: both names of the setting
		t.Error(err)
	}
	if _, err := webhook.NewGuard([]string{"10.1.0.0"}); err == nil {
		t.Error("a network without its size is taken")
	}
}

// TestSecrets: in the table sealed, in errors not at all; a new one signs beside the old for a day.
func TestSecrets(t *testing.T) {
	r := newReceiver(t)
	g := newRig(t, r, loopback)
	mine := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("s"), 24))
	url, kinds := r.URL, []webhook.Kind{webhook.Present}
	h, shown, err := g.Add(t.Context(), "op", webhook.Draft{URL: &url, Kinds: &kinds}, mine)
	if err != nil || shown != mine {
		t.Fatal(shown, err)
	}
	var text string
	if err := g.db.QueryRow(t.Context(), `SELECT row_to_json(h)::text || encode(secret, 'escape') FROM webhook_hook h`).Scan(&text); err != nil || strings.Contains(text, "ssssssss") ||
		strings.Contains(text, "7373737373") || strings.Contains(text, mine[6:]) {
		t.Errorf("the secret is in the table: %s, %v", text, err)
	}
	if b := must(json.Marshal(g.hook(h.ID))); bytes.Contains(b, []byte("ecret")) {
		t.Errorf("shown again: %s", b)
	}
	fresh, err := g.NewSecret(t.Context(), h.ID)
	if err != nil || fresh == mine {
		t.Fatal(err)
	}
	signatures := func() string {
		if _, err := g.Ping(t.Context(), h.ID); err != nil {
			t.Fatal(err)
		}
		e := <-r.came
		var out []string
		for _, s := range []string{fresh, mine} {
			sig := webhook.Sign([][]byte{must(webhook.ParseSecret(s))}, e.id, time.Unix(e.at, 0), e.body)
			if strings.Contains(e.signature, sig) {
				out = append(out, map[string]string{fresh: "fresh", mine: "mine"}[s])
			}
		}
		return strings.Join(out, " ")
	}
	if got := signatures(); got != "fresh mine" {
		t.Errorf("signed by %q", got)
	}
	g.now = g.now.Add(webhook.OldSecretFor)
	if got := signatures(); got != "fresh" {
		t.Errorf("a day later signed by %q", got)
	}
	for _, bad := range []string{"whsec_", "secret", "whsec_c2hvcnQ=", "whsec_" + strings.Repeat("QUFB", 30)} {
		if _, _, err := g.Add(t.Context(), "op", webhook.Draft{URL: &url, Kinds: &kinds}, bad); errs.KindOf(err) != errs.Invalid || strings.Contains(err.Error(), "c2hvcnQ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestURLsAreForAdmins (30.5): operators who may not change webhooks see the host of their URLs alone, wherever a hook is shown, also when it fails.
func TestURLsAreForAdmins(t *testing.T) {
	r := newReceiver(t)
	g := newRig(t, r, loopback)
	h, _ := g.add(r.URL+"/services/T0-private?key=private", []webhook.Kind{webhook.Present})
	r.Close()
	if d, err := g.Ping(t.Context(), h.ID); err != nil || d.Error == "" {
		t.Fatal(d, err)
	}
	a := webhook.Audited{Service: g.Service, Audit: func(context.Context, string, string, string) error { return nil }}
	for _, role := range auth.Staff {
		ctx := auth.WithCaller(t.Context(), auth.Caller{Role: role})
		all, one, sent := must(a.Hooks(ctx)), must(a.Hook(ctx, h.ID)), must(a.Deliveries(ctx, h.ID, webhook.Query{Limit: 10}))
		text := must(json.Marshal([]any{all, one, sent}))
		if private := bytes.Contains(text, []byte("private")); private != (role == auth.Admin) || !bytes.Contains(text, []byte("127.0.0.1")) || len(sent) == 0 {
			t.Errorf("%s sees %s", role, text)
		}
	}
}

func TestRefused(t *testing.T) {
	r := newReceiver(t)
	g := newRig(t, r, loopback)
	good := []webhook.Kind{webhook.Present}
	for name, d := range map[string]struct {
		url    string
		kinds  []webhook.Kind
		filter string
	}{
		"plain http": {"http://example.org/", good, ""}, "no host": {"https:///x", good, ""}, "a password": {"https://me:pw@example.org/", good, ""},
		"a fragment": {"https://example.org/#x", good, ""}, "a file": {"file:///etc/passwd", good, ""}, "too long": {"https://example.org/" + strings.Repeat("x", 2000), good, ""},
		"no kind": {"https://example.org/", nil, ""}, "a strange kind": {"https://example.org/", []webhook.Kind{"thing.eaten"}, ""}, "ping": {"https://example.org/", []webhook.Kind{"ping"}, ""},
		"no filter": {"https://example.org/", good, "dog:1"}, "an owner": {"https://example.org/", good, "owner:me"}, "no cohort": {"https://example.org/", good, "cohort:none"},
	} {
		if _, _, err := g.Add(t.Context(), "op", webhook.Draft{URL: &d.url, Kinds: &d.kinds, Filter: &d.filter}, ""); errs.KindOf(err) != errs.Invalid || strings.Contains(fmt.Sprint(err), "pw") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range webhook.MaxHooks {
		g.add("https://example.org/", good)
	}
	url := "https://example.org/"
	if _, _, err := g.Add(t.Context(), "op", webhook.Draft{URL: &url, Kinds: &good}, ""); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	if _, err := g.Hook(t.Context(), "no-uuid"); !errors.Is(err, webhook.ErrUnknown) {
		t.Error(err)
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://example.org/x?y", "https://127.0.0.1:1/", "https://[::1]/", "http://a", "https://a:b@c/", "https://[fe80::1%25eth0]/"} {
		f.Add(s)
	}
	guard := must(webhook.NewGuard(nil))
	f.Fuzz(func(t *testing.T, s string) {
		if webhook.CheckURL(s, guard) != nil {
			return
		}
		req, err := http.NewRequest("POST", s, nil)
		if err != nil || req.URL.Scheme != "https" || req.URL.User != nil || req.URL.Hostname() == "" {
			t.Errorf("%q was accepted and cannot be called: %v", s, err)
		}
		if ip := net.ParseIP(req.URL.Hostname()); ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()) {
			t.Errorf("%q was accepted", s)
		}
	})
}
