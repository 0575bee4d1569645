package console

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// orders is every form of the console, with what it must lead to.
var orders = []struct {
	pattern, path, form string
	api                 string // the operation of the public API that it is
	page                string // where it leads back to; "": it shows a secret at once
	did                 []string
	shows               string // a key of dones; or a part of the page that shows the secret
}{
	{"POST /things/{thing}/revoke", "/things/vic:00e20100/revoke", form("reason", "stolen"), "POST /v1/things/{thing}/revoke", "/things/vic:00e20100/access",
		[]string{"audit thing.revoke vic:00e20100 stolen", "revoke vic:00e20100 stolen"}, "thing-revoked"},
	{"POST /things/{thing}/release", "/things/vic:00e20100/release", form("reason", "new board"), "POST /v1/things/{thing}/release", "",
		[]string{"audit thing.release vic:00e20100 new board", "release vic:00e20100 new board"}, "K7SECRET"},
	{"POST /things/{thing}/owner/release", "/things/vic:00e20100/owner/release", form("reason", "sold"), "DELETE /v1/things/{thing}/owner", "/things/vic:00e20100/access",
		[]string{"audit owner.release vic:00e20100 sold", "take away acc-1 vic:00e20100"}, "owner-released"},
	{"POST /things/{thing}/tokens/revoke", "/things/vic:00e20100/tokens/revoke", form("token", "t-1"), "DELETE /v1/things/{thing}/tokens/{token}", "/things/vic:00e20100/access",
		[]string{"audit tokens.revoke vic:00e20100 t-1", "revoke token vic:00e20100 t-1 by an operator, role admin"}, "token-revoked"},
	{"POST /things/{thing}/tokens/revoke", "/things/vic:00e20100/tokens/revoke", "", "DELETE /v1/things/{thing}/tokens", "/things/vic:00e20100/access",
		[]string{"audit tokens.revoke vic:00e20100 all", "revoke tokens vic:00e20100 by an operator, role admin"}, "tokens-revoked"},
	{"POST /things/{thing}/apps/revoke", "/things/vic:00e20100/apps/revoke", form("app", "app-1"), "DELETE /v1/things/{thing}/apps/{app}", "/things/vic:00e20100/access",
		[]string{"audit apps.revoke vic:00e20100 app-1", "remove app vic:00e20100 app-1"}, "app-removed"},
	{"POST /things/{thing}/apps/revoke", "/things/vic:00e20100/apps/revoke", "", "DELETE /v1/things/{thing}/apps", "/things/vic:00e20100/access",
		[]string{"audit apps.revoke vic:00e20100 all", "remove apps vic:00e20100"}, "apps-removed"},
	{"POST /things/{thing}/tags", "/things/vic:00e20100/tags", form("add", "Lab, demo", "remove", "old"), "PATCH /v1/things/{thing}/tags", "/things/vic:00e20100",
		[]string{"audit thing.tag vic:00e20100 +lab +demo -old", "tag vic:00e20100 [lab demo] [old]"}, "tagged"},
	{"POST /things/{thing}/settings", "/things/vic:00e20100/settings", form("doc", "vic.RobotSettings", "field", "master_volume", "value", "1", "exact", "1"), "PATCH /v1/things/{thing}/jdocs/{doc}", "/things/vic:00e20100/settings",
		[]string{"audit setting.set vic:00e20100 vic.RobotSettings master_volume", `set vic:00e20100 vic.RobotSettings {"master_volume":1} op@example.org`}, "setting-set"},
	{"POST /things/{thing}/commands", "/things/vic:00e20100/commands", form("kind", "intent", "args", `{"intent":"intent_x"}`, "ttl", "1h0m0s", "sure", "yes"), "POST /v1/things/{thing}/commands", "/things/vic:00e20100/commands",
		[]string{"audit command.send vic:00e20100 intent", `send vic:00e20100 intent {"intent":"intent_x"} 30s op@example.org`}, "command-sent"},
	{"POST /things/{thing}/stop", "/things/vic:00e20100/stop", "", "POST /v1/things/{thing}/commands", "/things/vic:00e20100/robot",
		[]string{"audit command.send vic:00e20100 robot_stop", `send vic:00e20100 robot_stop {} 30s op@example.org`}, "robot-stopped"},
	{"POST /things/{thing}/poke", "/things/vic:00e20100/poke", form("do", "turn back"), "POST /v1/things/{thing}/commands", "/things/vic:00e20100/robot",
		[]string{"audit command.send vic:00e20100 robot_poke", `send vic:00e20100 robot_poke {"verb":"turn","side":"back"} 30s op@example.org`},
		"robot-poked"},
	{"POST /alerts/rule", "/alerts/rule", form("robots", "3", "percent", "12.5"), "PUT /v1/alerts/rule", "/alerts", []string{"audit alert.rule  robots 3, share 0.125, floor 0 robots and 0, excess 0", "rule 3 0.125 op@example.org"}, "alert-rule"},
	{"POST /alerts/thresholds", "/alerts/thresholds", form("kind", "crash_share", "level", "2.5", "robots", "3", "hours", "24"), "POST /v1/alerts/thresholds", "/alerts",
		[]string{"audit alert.threshold.add  crash_share any, level 0.025, robots 3, hours 24", "threshold {crash_share  0.025 3 24} op@example.org"}, "threshold-added"},
	{"POST /alerts/thresholds/{id}/delete", "/alerts/thresholds/3/delete", "", "DELETE /v1/alerts/thresholds/{id}", "/alerts", []string{"audit alert.threshold.remove 3", "drop threshold 3"}, "threshold-gone"},
	{"POST /alerts/mail", "/alerts/mail", form("to", "b@example.org a@example.org"), "PUT /v1/alerts/mail", "/alerts", []string{"audit alert.mail  2 recipients", "mail to [b@example.org a@example.org]"}, "alert-mail"},
	{"POST /alerts/{id}/ack", "/alerts/2/ack", form("why", "mine"), "PUT /v1/alerts/acks/{id}", "/alerts", []string{"audit alert.ack 2 mine", "ack 2 mine op@example.org"}, "alert-acked"},
	{"POST /alerts/{id}/unack", "/alerts/2/unack", "", "DELETE /v1/alerts/acks/{id}", "/alerts", []string{"audit alert.unack 2", "unack 2"}, "alert-unacked"},
	{"POST /alerts/{id}/silence", "/alerts/2/silence", form("why", "known"), "POST /v1/alerts/silences", "/alerts", []string{"audit alert.silence 2 alert 2, for 4h0m0s: known", "silence {2 240 known} op@example.org"}, "alert-silenced"},
	{"POST /alerts/{id}/silence", "/alerts/2/silence", form("why", "known", "minutes", "1440"), "POST /v1/alerts/silences", "/alerts", []string{"audit alert.silence 2 alert 2, for 24h0m0s: known", "silence {2 1440 known} op@example.org"}, "alert-silenced"},
	{"POST /alerts/silences/{id}/end", "/alerts/silences/5/end", "", "DELETE /v1/alerts/silences/{id}", "/alerts", []string{"audit alert.unsilence 5", "unsilence 5"}, "silence-ended"},
	{"POST /cohorts", "/cohorts", form("name", "late", "filter", "loop:late", "note", "x", "replace", "yes"), "POST /v1/cohorts", "/cohorts", []string{"audit cohort.put late loop:late", "put cohort late loop:late x op@example.org -1"}, "cohort-put"},
	{"POST /cohorts/{cohort}/delete", "/cohorts/beta/delete", "", "DELETE /v1/cohorts/{cohort}", "/cohorts", []string{"audit cohort.delete beta", "delete cohort beta"}, "cohort-gone"},
	{"POST /bulk", "/bulk", form("do", "set", "which", "all", "filter", "tag:lab", "field", "master_volume", "value", "Low", "expect", "1", "sure", "yes"), "POST /v1/bulk", "/bulk/j-1",
		[]string{`audit bulk.start 1 robots set master_volume=1 of vic.RobotSettings; "tag:lab"`, `start {"kind":"set","doc":"vic.RobotSettings","fields":{"master_volume":1}} 0 1 op@example.org`}, "bulk-begun"},
	{"POST /bulk", "/bulk", form("do", "untag", "thing", "vic:00e20100", "tag", "lab", "expect", "1", "sure", "yes"), "POST /v1/bulk", "/bulk/j-1",
		[]string{"audit bulk.start 1 robots remove tag lab; named robots", `start {"kind":"tag","remove":["lab"]} 1 1 op@example.org`}, "bulk-begun"},
	{"POST /bulk/{id}/cancel", "/bulk/j-1/cancel", "", "POST /v1/bulk/{id}/cancel", "/bulk/j-1", []string{"audit bulk.cancel j-1", "cancel j-1"}, "bulk-cancelled"},
	{"POST /certificates/waiting/{thing}/approve", "/certificates/waiting/vic:00e20101/approve", form("fingerprint", print, "compared", "yes"), "POST /v1/waiting/{thing}/approve", "/certificates",
		[]string{"audit thing.approve vic:00e20101 " + print, "approve vic:00e20101 " + print}, "approved"},
	{"POST /certificates/waiting/{thing}/refuse", "/certificates/waiting/vic:00e20101/refuse", form("fingerprint", print, "reason", "not ours"), "POST /v1/waiting/{thing}/refuse", "/certificates",
		[]string{"audit thing.refuse vic:00e20101 " + print + ": not ours", "refuse vic:00e20101 " + print + " not ours"}, "refused"},
	{"POST /certificates/batches", "/certificates/batches", form("name", "b-1", "species", "vic", "organization", "Anki Inc.", "valid_after", "2100-01-01", "serial_from", "1", "serial_to", "2", "bundle", "pem"),
		"PUT /v1/batches/{batch}", "/certificates", []string{"audit batch.put b-1", "put batch b-1 vic Anki Inc. 2100-01-01 1 2 3"}, "batch-put"},
	{"POST /certificates/batches/{batch}/disable", "/certificates/batches/b-1/disable", form("reason", "leaked"), "POST /v1/batches/{batch}/disable", "/certificates",
		[]string{"audit batch.disable b-1 leaked", "disable batch b-1 leaked"}, "batch-disabled"},
	{"POST /certificates/batches/{batch}/enable", "/certificates/batches/b-1/enable", "", "POST /v1/batches/{batch}/enable", "/certificates",
		[]string{"audit batch.enable b-1", "enable batch b-1"}, "batch-enabled"},
	{"POST /certificates/factory", "/certificates/factory", form("certificate_id", "5a:17", "reason", "copied"), "POST /v1/factory-certificates/revoke", "/certificates",
		[]string{"audit factory_certificate.revoke 5a:17 copied", "refuse factory certificate 5a:17 copied"}, "factory-revoked"},
	{"POST /me/passkeys/{id}/remove", "/me/passkeys/QUI/remove", "", "DELETE /v1/me/passkeys/{id}", "/me", []string{"remove passkey op-1 AB"}, "passkey-removed"},
	{"POST /releases", "/releases", form("species", "vic", "version", "2.0.1.6077", "notes", "n"), "POST /v1/releases", "/releases",
		[]string{"audit release.add vic 2.0.1.6077", "add release vic 2.0.1.6077 n"}, "release-added"},
	{"POST /releases/want", "/releases/want", form("scope", "vic", "version", "2.0.1.6076"), "PUT /v1/ota/desired/{species}", "/releases",
		[]string{"audit release.want vic 2.0.1.6076", "want for all vic 2.0.1.6076 op@example.org"}, "release-wanted"},
	{"POST /releases/unwant", "/releases/unwant", form("scope", string(rex)), "PUT /v1/things/{thing}/ota/desired", "/releases",
		[]string{"audit release.want vic:00e20100", "want vic:00e20100  op@example.org"}, "release-unwant"},
	{"POST /releases/channel", "/releases/channel", form("channel", "beta", "release", "vic 2.0.1.6076"), "PUT /v1/channels/{species}/{channel}", "/releases",
		[]string{"audit release.channel vic beta 2.0.1.6076", "set channel vic beta 2.0.1.6076 op@example.org"}, "channel-set"},
	{"POST /webhooks", "/webhooks", form("url", "https://example.org/x", "kind", "thing.present", "events", "battery.*", "filter", "tag:lab", "note", "n"), "POST /v1/webhooks", "",
		[]string{"add webhook op@example.org https://example.org/x [thing.present event:battery.] tag:lab n"}, "whsec_new"},
	{"POST /webhooks/{id}/test", "/webhooks/h-1/test", "", "POST /v1/webhooks/{id}/ping", "/webhooks/h-1", []string{"ping h-1"}, "webhook-tested"},
	{"POST /webhooks/{id}/disable", "/webhooks/h-1/disable", "", "PATCH /v1/webhooks/{id}", "/webhooks/h-1", []string{"turn webhook off h-1 true"}, "webhook-disable"},
	{"POST /webhooks/{id}/enable", "/webhooks/h-1/enable", "", "PATCH /v1/webhooks/{id}", "/webhooks/h-1", []string{"turn webhook off h-1 false"}, "webhook-enable"},
	{"POST /webhooks/{id}/secret", "/webhooks/h-1/secret", "", "POST /v1/webhooks/{id}/secret", "", []string{"new secret h-1"}, "whsec_other"},
	{"POST /webhooks/{id}/replay", "/webhooks/h-1/replay", form("delivery", "59"), "POST /v1/webhooks/{id}/replay", "/webhooks/h-1", []string{"replay h-1 59"}, "webhook-replay"},
	{"POST /webhooks/{id}/remove", "/webhooks/h-1/remove", form("sure", "yes"), "DELETE /v1/webhooks/{id}", "/webhooks", []string{"remove webhook h-1"}, "webhook-removed"},
	{"POST /operators", "/operators", form("email", "new@example.org", "role", "support"), "POST /v1/operators", "",
		[]string{"add operator op-1 new@example.org support"}, "one-time-pass"},
	{"POST /operators/{id}/role", "/operators/op-2/role", form("role", "admin"), "PATCH /v1/operators/{id}", "/operators/op-2", []string{"role op-1 op-2 admin"}, "operator-role"},
	{"POST /operators/{id}/disable", "/operators/op-2/disable", "", "PATCH /v1/operators/{id}", "/operators/op-2", []string{"stop op-1 op-2 true"}, "operator-off"},
	{"POST /operators/{id}/enable", "/operators/op-2/enable", "", "PATCH /v1/operators/{id}", "/operators/op-2", []string{"stop op-1 op-2 false"}, "operator-on"},
	{"POST /operators/{id}/password", "/operators/op-2/password", "", "POST /v1/operators/{id}/password", "", []string{"reset op-1 op-2"}, "another-pass"},
	{"POST /operators/{id}/sessions", "/operators/op-2/sessions", "", "DELETE /v1/operators/{id}/sessions", "/operators/op-2", []string{"end sessions op-1 op-2"}, "operator-out"},
	{"POST /operators/{id}/sessions", "/operators/op-2/sessions", form("session", "5e55"), "DELETE /v1/operators/{id}/sessions/{session}", "/operators/op-2", []string{"end sessions op-1 op-2 5e55"}, "operator-out"},
	{"POST /operators/{id}/remove", "/operators/op-2/remove", form("sure", "yes"), "DELETE /v1/operators/{id}", "/operators", []string{"remove operator op-1 op-2"}, "operator-gone"},
}

var everybody = append([]auth.Role{"", auth.Thing, auth.Owner}, auth.Staff...)

// TestOrders: each form does what the same operation of the API does, with the same line in the audit log, for the same roles.
func TestOrders(t *testing.T) {
	mux, d := openDesk(t)
	seen := map[string]bool{}
	for _, o := range orders {
		seen[o.pattern] = true
		name := o.pattern + " " + o.form
		api := slices.DeleteFunc(slices.Clone(access.HTTP[o.api].Roles), func(r auth.Role) bool { return r == auth.Owner }) // owners have pages of their own
		if page := access.HTTP[o.pattern].Roles; !slices.Equal(page, api) {
			t.Errorf("%s is for %v, %s for %v", name, page, o.api, api)
		}
		for _, role := range everybody {
			d.did = nil
			w := do(t, mux, role, "POST", o.path, o.form, "Sec-Fetch-Site", "same-origin")
			switch may := slices.Contains(access.HTTP[o.pattern].Roles, role); {
			case !may && (len(d.did) > 0 || w.Code != 403 && (role != "" || w.Code != 401)):
				t.Errorf("%s as %q: %d, did %q; want nothing", name, role, w.Code, d.did)
			case may && o.page != "" && (w.Code != 303 || w.Header().Get("Location") != o.page+"?done="+o.shows):
				t.Errorf("%s as %q: %d %v", name, role, w.Code, w.Header())
			case may && role == auth.Admin && !slices.Equal(d.did, o.did):
				t.Errorf("%s: did %q, want %q", name, d.did, o.did)
			case may && len(d.did) != len(o.did):
				t.Errorf("%s as %q: did %q", name, role, d.did)
			}
			if role != auth.Admin {
				continue
			}
			if o.page != "" {
				w = do(t, mux, role, "GET", w.Header().Get("Location"), "")
			} else if w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: a secret may be cached: %v", name, w.Header())
			}
			want := o.shows
			if o.page != "" {
				want = html.EscapeString(dones[o.shows])
			}
			if body := w.Body.String(); w.Code != 200 || want == "" || !strings.Contains(body, want) {
				t.Errorf("%s: %d without %q", name, w.Code, o.shows)
			}
		}
		d.did = nil
		for _, site := range []string{"cross-site", "same-site"} {
			if w := do(t, mux, auth.Admin, "POST", o.path, o.form, "Sec-Fetch-Site", site); w.Code != 403 || len(d.did) > 0 {
				t.Errorf("%s from %s: %d, did %q", name, site, w.Code, d.did)
			}
		}
		// An action that cannot be logged is not done.
		if strings.HasPrefix(o.did[0], "audit ") {
			d.auditErr = errors.New("away")
			if w := do(t, mux, auth.Admin, "POST", o.path, o.form); w.Code != 500 || len(d.did) != 1 {
				t.Errorf("%s without an audit log: %d, did %q", name, w.Code, d.did)
			}
			d.auditErr = nil
		}
		// A refusal is shown on the page, in words.
		d.err = errs.Coded(errs.Conflict, "no", "another <b>person</b> was first")
		w := do(t, mux, auth.Admin, "POST", o.path, o.form)
		if body := w.Body.String(); w.Code != 409 || !strings.Contains(body, `role="alert">Another &lt;b&gt;person&lt;/b&gt; was first.`) {
			t.Errorf("%s refused: %d %s", name, w.Code, body)
		}
		d.err = errors.New("secret detail")
		if w := do(t, mux, auth.Admin, "POST", o.path, o.form); w.Code != 500 || strings.Contains(w.Body.String(), "secret detail") {
			t.Errorf("%s broken: %d", name, w.Code)
		}
		d.err = nil
	}
	// Forms of pages that their slices bring along: TestPage, TestPages, TestSecondFactorOnThePages there.
	others := []string{"POST /originals", "POST /account/second", "POST /rollouts", "POST /rollouts/new", "POST /crashes/group"}
	for pattern, rule := range access.HTTP {
		if rule.Page && len(rule.Roles) > 0 && strings.HasPrefix(pattern, "POST ") && !strings.HasPrefix(pattern, "POST /my") && !slices.Contains(others, pattern) && !seen[pattern] {
			t.Errorf("%s is a form that this test does not send", pattern)
		}
	}
}

// TestProblemsStandBesideTheirForm: what was typed stays, and only the form that was sent says what is wrong with it.
func TestProblemsStandBesideTheirForm(t *testing.T) {
	mux, d := openDesk(t)
	long := strings.Repeat("x", maxReason+1)
	for _, tt := range []struct{ path, form, want, keeps string }{
		{"/things/vic:00e20100/revoke", form("reason", " "), "Enter a reason", ""},
		{"/things/vic:00e20100/revoke", form("reason", long), "Enter a reason", long},
		{"/things/vic:00e20100/release", "", "Enter a reason", ""},
		{"/things/vic:00e20100/owner/release", form("reason", "a\x00b"), "Enter a reason", ""},
		{"/things/vic:00e20100/tags", form("add", "no/tag"), "want 1 to 32", "no/tag"},
		{"/things/vic:00e20100/settings", form("doc", "vic.RobotSettings", "field", "time_zone", "value", "Mars/Olympus"), "time zone", "Mars/Olympus"},
		{"/things/vic:00e20100/settings", form("doc", "vic.RobotSettings", "field", "custom_eye_color.hue", "value", "7"), "0 to 1", `value="7"`},
		{"/things/vic:00e20100/commands", form("kind", "ping", "ttl", "1h"), "robot you mean", ""},
		{"/things/vic:00e20100/commands", form("kind", "intent", "args", `{"intent":1}`, "ttl", "1h", "sure", "yes"), "intent", "{&#34;intent&#34;:1}"},
		{"/things/vic:00e20100/commands", form("kind", "intent", "args", "{", "ttl", "1h", "sure", "yes"), "want JSON", ""},
		{"/alerts/rule", form("robots", "three", "percent", "12"), "whole number", `value="12"`},
		{"/alerts/rule", form("robots", "3", "percent", "120"), "want 0 to 1", `value="120"`},
		{"/alerts/thresholds", form("kind", "event_rate", "of", "no event", "level", "3", "robots", "3", "hours", "1"), "name of an event", `value="no event"`},
		{"/alerts/thresholds", form("kind", "fault_share", "of", "914", "level", "300", "robots", "3", "hours", "1"), "want a share", `<option value="fault_share" selected`},
		{"/alerts/2/silence", form("why", "known", "minutes", "50000"), "want 1 to 43200", ""},
		{"/alerts/mail", form("to", "nobody"), "e-mail address", ">nobody</textarea>"},
		{"/cohorts", form("name", "a b", "filter", "loop:late"), "", "loop:late"},
		{"/cohorts", form("name", "ab", "filter", "loop:odd"), "loop", "loop:odd"},
		{"/bulk", form("do", "tag", "thing", "vic:00e20100", "tag", "lab", "expect", "1"), "robots you mean", `value="lab"`},
		{"/bulk", form("do", "set", "thing", "vic:00e20100", "field", "master_volume", "value", "loudest", "expect", "1", "sure", "yes"), "want one of", `value="loudest"`},
		{"/certificates/waiting/vic:00e20101/approve", form("fingerprint", print), "Compare the fingerprint", ""},
		{"/certificates/waiting/vic:00e20101/refuse", form("fingerprint", print, "reason", ""), "Enter a reason", ""},
		{"/certificates/batches", form("name", "", "organization", "Maker & Sons"), "Give the batch a name", "Maker &amp; Sons"},
		{"/certificates/batches", form("name", "b", "valid_after", "soon"), "2100-01-01", "soon"},
		{"/certificates/batches/vector-2018/disable", "", "Enter a reason", ""},
		{"/certificates/factory", form("reason", "x"), "serial number or its SHA-256", ""},
		{"/operators/op-2/remove", "", "cannot be restored", ""},
		{"/webhooks/h-1/remove", "", "Confirm the removal", ""},
	} {
		w := do(t, mux, auth.Admin, "POST", tt.path, tt.form)
		body := w.Body.String()
		if w.Code != 400 || strings.Count(body, `role="alert"`) != 1 || !regexp.MustCompile(`role="alert">[^<]*`+regexp.QuoteMeta(tt.want)).MatchString(body) || tt.keeps != "" && !strings.Contains(body, tt.keeps) {
			t.Errorf("%s %s: %d, want one alert %q that keeps %q in\n%s", tt.path, tt.form, w.Code, tt.want, tt.keeps, body)
		}
		if strings.Contains(body, "data-live-from") {
			t.Errorf("%s: the answer to a form asks for itself again", tt.path)
		}
	}
	for _, path := range []string{"/things/vic:nobody/revoke", "/things/%3Cscript%3E/revoke"} {
		if w := do(t, mux, auth.Admin, "POST", path, form("reason", "x")); w.Code != 404 && w.Code != 400 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if len(d.did) > 0 {
		t.Errorf("did %q", d.did)
	}
	if body := do(t, mux, auth.Admin, "GET", "/operators?done=<script>", "").Body.String(); strings.Contains(body, `class="banner ok"`) {
		t.Error("an address says what was done")
	}
}

// TestWhatOthersSayStaysText: robots, makers, owners and operators, on every page and in every answer to a form.
func TestWhatOthersSayStaysText(t *testing.T) {
	mux, _ := openDesk(t)
	check := func(what, body string, code int) {
		for _, bad := range []string{"<script>alert", `" onload=`, "' onload=", " style=", "javascript:", "<b>"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s contains %q", what, bad)
			}
		}
		if code != 200 && code != 400 || !strings.Contains(html.UnescapeString(body), evil) {
			t.Errorf("%s: %d does not show what was said", what, code)
		}
	}
	for _, path := range []string{"/", "/things", "/things/vic:00e20100", "/things/vic:00e20100/access", "/things/vic:00e20100/settings", "/things/vic:00e20100/commands", "/things/vic:00e20100/events", "/things/vic:00e20100/robot", "/tail", "/events?since=2026-05-06T00:00:00Z&until=2026-05-06T13:00:00Z", "/events?by=event", "/experiments", "/bulk", "/bulk/j-1", "/cohorts",
		"/things/vic:stranger", "/certificates", "/certificates?before=2026-05-06T11:59:50Z", "/operators", "/operators/op-2", "/releases", "/webhooks", "/webhooks/h-1", "/audit", "/audit?who=script",
		"/audit?who=" + url.QueryEscape(evil)} {
		w := do(t, mux, auth.Admin, "GET", path, "")
		check(path, w.Body.String(), w.Code)
	}
	for _, path := range []string{"/things/vic:00e20100/revoke", "/certificates/batches", "/certificates/factory"} {
		w := do(t, mux, auth.Admin, "POST", path, form("reason", evil+strings.Repeat(" x", 300), "organization", evil, "valid_after", evil, "certificate_id", "x"))
		check("POST "+path, w.Body.String(), w.Code)
	}
}

// TestPagesShowWhatOneMay: no page shows a form that would refuse its viewer.
func TestPagesShowWhatOneMay(t *testing.T) {
	mux, _ := openDesk(t)
	action := regexp.MustCompile(`method="post" action="(/(?:things|certificates|operators|releases|webhooks|bulk|cohorts|alerts)[^"]*)"`)
	for _, role := range auth.Staff {
		for _, path := range []string{"/things/vic:00e20100", "/things/vic:00e20100/access", "/things/vic:00e20100/settings", "/things/vic:00e20100/commands", "/bulk/j-1", "/cohorts", "/alerts", "/certificates", "/operators", "/operators/op-2", "/releases", "/webhooks", "/webhooks/h-1", "/audit"} {
			w := do(t, mux, role, "GET", path, "")
			if want := access.HTTP.Check("GET "+path, role) == nil || strings.HasPrefix(path, "/things") || strings.HasPrefix(path, "/bulk") || strings.HasPrefix(path, "/webhooks") || role == auth.Admin; want != (w.Code == 200) || !want && w.Code != 403 {
				t.Errorf("%s as %s: %d", path, role, w.Code)
			}
			if n := strings.Count(w.Body.String(), `class="primary"`); n > 1 {
				t.Errorf("%s shows %s %d primary buttons", path, role, n)
			}
			if may := access.HTTP.Check("PUT /v1/releases/{species}/archives/{sum}", role) == nil; path == "/releases" && may != strings.Contains(w.Body.String(), `id="upload"`) {
				t.Errorf("%s may upload releases: %v, but is shown otherwise", role, may)
			}
			n := 0
			for _, m := range action.FindAllStringSubmatch(w.Body.String(), -1) {
				_, pattern := mux.Handler(mustRequest(t, "POST", html.UnescapeString(m[1])))
				if err := access.HTTP.Check(pattern, role); err != nil {
					t.Errorf("%s shows %s a form of %q: %v", path, role, pattern, err)
				}
				n++
			}
			if role == auth.Admin && path != "/audit" && n == 0 {
				t.Errorf("%s shows an administrator no form", path)
			}
			if role == auth.Viewer && n > 0 {
				t.Errorf("%s shows a viewer %d forms", path, n)
			}
			nav := strings.Contains(w.Body.String(), `href="/audit"`)
			if w.Code == 200 && nav != (role == auth.Admin) {
				t.Errorf("%s as %s: audit in the navigation: %v", path, role, nav)
			}
		}
	}
}

func mustRequest(t *testing.T, method, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
