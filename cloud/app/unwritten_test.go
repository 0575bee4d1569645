package app

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kennel/cloud/access"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/cloud/identity/token/tokentest"
	"kennel/infra/auth"
	"kennel/infra/testwait"
)

// complete are the fields without which an operation refuses a request before it would write a line. A page's are a form's.
var complete = map[string]string{
	"POST /v1/me/second/remove":                  `{"password":"PASSWORD"}`,
	"POST /alerts/{id}/silence":                  "why=why",
	"DELETE /v1/things/{thing}/owner":            `{"reason":"why"}`,
	"PATCH /v1/crash-groups/{group}":             `{"note":"a note"}`,
	"PATCH /v1/operators/{id}":                   `{"disabled":true}`,
	"PATCH /v1/things/{thing}/tags":              `{"add":["red"]}`,
	"PATCH /v1/webhooks/{id}":                    `{"note":"a note"}`,
	"POST /v1/account/delete":                    `{"password":"PASSWORD"}`,
	"POST /v1/account/email":                     `{"email":"new@example.org","password":"PASSWORD"}`,
	"POST /v1/alerts/silences":                   `{"minutes":5,"why":"why"}`,
	"POST /v1/alerts/thresholds":                 `{"kind":"crash_share","level":0.5,"robots":10,"hours":10}`,
	"POST /v1/batches/{batch}/disable":           `{"reason":"why"}`,
	"POST /v1/bulk":                              `{"filter":"","expect":1,"action":{"kind":"tag","add":["red"]}}`,
	"POST /v1/cohorts":                           `{"cohort":"red","filter":"tag:red"}`,
	"POST /v1/factory-certificates/revoke":       `{"certificate_id":"00ff","reason":"why"}`,
	"POST /v1/intents/custom":                    `{"name":"feed_the_cat","phrases":["feed the cat"]}`,
	"POST /v1/me/password":                       `{"old":"PASSWORD","new":"another horse battery"}`,
	"POST /v1/my/robots/claim":                   `{"code":"K7QM-3XW9"}`,
	"POST /v1/my/robots/{thing}/intents":         `{"text":"go home"}`,
	"POST /v1/my/robots/{thing}/programs":        `{"name":"eyes","rights":["look"]}`,
	"POST /v1/my/robots/{thing}/transfer":        `{"to":"other@example.org","password":"PASSWORD"}`,
	"POST /v1/operators":                         `{"email":"new@example.org","role":"viewer"}`,
	"POST /v1/releases":                          `{"species":"vic","version":"2.0.1.6076"}`,
	"POST /v1/releases/metadata":                 `{"metadata":{"prod":"eA=="}}`,
	"POST /v1/rollouts":                          `{"species":"vic","version":"2.0.1.6076","channel":"prod","phases":[{"percent":100}]}`,
	"POST /v1/things":                            `{"thing":"vic:00e20199"}`,
	"POST /v1/things/batch":                      "thing\nvic:00e20198\n",
	"POST /v1/things/{thing}/commands":           `{"kind":"ping"}`,
	"POST /v1/things/{thing}/intents":            `{"text":"go home"}`,
	"POST /v1/things/{thing}/release":            `{"reason":"why"}`,
	"POST /v1/things/{thing}/revoke":             `{"reason":"why"}`,
	"POST /v1/waiting/{thing}/approve":           `{"fingerprint":"0123-4567-89ab-cdef"}`,
	"POST /v1/waiting/{thing}/refuse":            `{"fingerprint":"0123-4567-89ab-cdef","reason":"why"}`,
	"POST /v1/webhooks":                          `{"url":"https://example.org/hook","kinds":["thing.absent"]}`,
	"POST /v1/webhooks/{id}/replay":              `{"dead":true}`,
	"PUT /v1/alerts/rule":                        `{"robots":5,"share":0.5}`,
	"PUT /v1/channels/{species}/{channel}":       `{"version":""}`,
	"PUT /v1/cohorts/{cohort}":                   `{"filter":"tag:red"}`,
	"PUT /v1/my/robots/{thing}/update":           `{"tonight":true}`,
	"PUT /v1/ota/desired/{species}":              `{"version":""}`,
	"PUT /v1/ota/lowest/{species}/{version}":     `{"version":""}`,
	"PUT /v1/releases/{species}/archives/{sum}":  `x`,
	"PUT /v1/things/{thing}/ota/desired":         `{"version":""}`,
	"POST /account/second":                       "step=remove&password=PASSWORD",
	"POST /alerts/rule":                          "robots=5&percent=50&minutes=10",
	"POST /alerts/thresholds":                    "kind=crash_share&level=0.5&robots=10&percent=50&hours=10",
	"POST /bulk":                                 "which=all&filter=&expect=1&do=tag&tag=red&sure=yes&key=1",
	"POST /certificates/batches":                 "name=one&bundle=x",
	"POST /certificates/batches/{batch}/disable": "reason=why",
	"POST /certificates/factory":                 "certificate_id=00ff&reason=why",
	"POST /certificates/waiting/{thing}/approve": "fingerprint=0123-4567-89ab-cdef&compared=yes",
	"POST /certificates/waiting/{thing}/refuse":  "fingerprint=0123-4567-89ab-cdef&reason=why",
	"POST /cohorts":                              "name=red&filter=tag:red",
	"POST /crashes/group":                        "id=00000000-0000-4000-8000-00000000c4a5&state=open",
	"POST /my/account/delete":                    "sure=yes&password=PASSWORD",
	"POST /my/robots/{thing}/programs":           "name=eyes&rights=look&days=30",
	"POST /my/claim":                             "code=K7QM-3XW9",
	"POST /my/robots/{thing}/offer":              "to=other@example.org&password=PASSWORD",
	"POST /my/robots/{thing}/release":            "sure=yes",
	"POST /my/robots/{thing}/tell":               "text=go home",
	"POST /my/robots/{thing}/update":             "when=now",
	"POST /operators":                            "email=new@example.org&role=viewer",
	"POST /operators/{id}/remove":                "sure=yes",
	"POST /operators/{id}/role":                  "role=support",
	"POST /releases":                             "species=vic&version=2.0.1.6076",
	"POST /releases/unwant":                      "scope=vic",
	"POST /releases/want":                        "scope=vic&version=2.0.1.6076",
	"POST /rollouts":                             "action=pause&rollout=00000000-0000-4000-8000-000000000000",
	"POST /rollouts/new":                         "release=vic 2.0.1.6076&channel=prod&percents=100",
	"POST /things/{thing}/commands":              "kind=ping&ttl=1h&sure=yes",
	"POST /things/{thing}/owner/release":         "reason=why",
	"POST /things/{thing}/poke":                  "do=lift",
	"POST /things/{thing}/release":               "reason=why",
	"POST /things/{thing}/revoke":                "reason=why",
	"POST /things/{thing}/settings":              "doc=vic.RobotSettings&field=master_volume&value=3",
	"POST /things/{thing}/tags":                  "add=red",
	"POST /webhooks":                             "url=https://example.org/hook&events=thing.absent",
	"POST /webhooks/{id}/remove":                 "sure=yes",
}

// elsewhere are the operations that need more than a request to come that far: TestNothingIsDoneUnwritten of accountpg and TestOwnersLeaveAuditLines of
// ownerapi have them.
var elsewhere = map[string]bool{"POST /v1/me/passkeys": true, "POST /v1/me/second": true, "POST /v1/my/robots/claim": true, "POST /my/claim": true}

// desk is a whole cloud with people of each kind, and something of everything that they may change.
type desk struct {
	*wired
	tokens map[auth.Role]string
	ids    map[auth.Role]account.ID
	cookie string
	hook   string // id of a webhook
	job    string // id of a finished bulk operation
}

// newDesk starts it and waits until its own letters and jobs are done.
func newDesk(t *testing.T) *desk {
	t.Helper()
	w := start(t, nil)
	d := &desk{wired: w, tokens: map[auth.Role]string{}, ids: map[auth.Role]account.ID{}, cookie: w.cookie(t) + "="}
	for _, role := range []auth.Role{auth.Admin, auth.Owner, auth.Viewer} {
		a, _, err := w.Accounts.People.CreateAccount(t.Context(), string(role)+"@example.org", role, password)
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.Accounts.SignIn.Login(t.Context(), a.Email, password, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		d.tokens[role], d.ids[role] = l.Token.Reveal(), a.ID
	}
	made := func(path, body string, to any) {
		t.Helper()
		resp, said := d.ask(t, auth.Admin, "POST", path, "application/json", body)
		if resp.StatusCode/100 != 2 || json.Unmarshal([]byte(said), to) != nil {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, said)
		}
	}
	var none any
	var hook struct{ Webhook struct{ ID string } }
	made("/v1/things", `{"thing":"`+string(rex)+`"}`, &none)
	made("/v1/webhooks", complete["POST /v1/webhooks"], &hook)
	if _, _, err := ownerpg.New(w.base.Pool).Begin(t.Context(), rex, string(d.ids[auth.Owner]), "code", false); err != nil {
		t.Fatal(err)
	}
	w.writeSettings(t, t.Context())
	var job struct{ Job string }
	made("/v1/bulk", complete["POST /v1/bulk"], &job)
	d.hook, d.job = hook.Webhook.ID, job.Job
	for _, sql := range []string{
		`INSERT INTO crash_group (id, program, signature, first_seen, last_seen, versions) VALUES ('00000000-0000-4000-8000-00000000c4a5', 'p', 's', now(), now(), '{}')`,
		`INSERT INTO artifact_archive (species, sha256, version, kind, base, qsn, dev, size, manifest, by_whom) VALUES ('vic', repeat('ab', 32), '2.0.1.6076', 'production', '', '', false, 1, '{}', '')`,
	} {
		if _, err := w.base.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// Programs reach the robot.
	if _, err := w.base.Pool.Exec(t.Context(), `INSERT INTO token_session_certificate (thing, pem) VALUES ($1, $2)`, rex, tokentest.GatewayCert(t, "Vector-A1B2")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.base.Pool.Exec(t.Context(), `UPDATE registry_thing SET status = '{"v":1,"gateway":"127.0.0.1:8443"}' WHERE thing = $1`, rex); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "the letters about this have left, and the job is done", testwait.Holds(func() (done bool) {
		if err := w.base.Pool.QueryRow(t.Context(), `SELECT NOT EXISTS (SELECT FROM owner_news) AND NOT EXISTS (SELECT FROM mail_outbox) AND
			NOT EXISTS (SELECT FROM bulk_item WHERE state = 'open')`).Scan(&done); err != nil {
			t.Fatal(err)
		}
		return done
	}))
	return d
}

// ask asks as a person with that role, by token and by cookie.
func (d *desk) ask(t *testing.T, role auth.Role, method, path, kind, body string) (*http.Response, string) {
	t.Helper()
	return d.answer(t, method, path, strings.ReplaceAll(body, "PASSWORD", password), "Content-Type", kind, "Authorization", "Bearer "+d.tokens[role], "Cookie", d.cookie+d.tokens[role], "Sec-Fetch-Site", "same-origin")
}

// changes asks for each operation of the access table that changes something, and hands its name and the answer to judge.
func (d *desk) changes(t *testing.T, judge func(name string, resp *http.Response, said string)) {
	t.Helper()
	for _, name := range access.HTTP.Names() {
		rule := access.HTTP[name]
		if !rule.Changes() || elsewhere[name] {
			continue
		}
		role := auth.Admin
		if strings.Contains(name, " /v1/account") || !slices.Contains(rule.Roles, role) {
			role = auth.Owner
		}
		method, path, _ := strings.Cut(name, " ")
		id := "1"
		switch {
		case strings.Contains(path, "/passkeys/"):
			id = "AQ"
		case strings.Contains(path, "/webhooks/"):
			id = d.hook
		case strings.Contains(path, "/operators/"):
			id = string(d.ids[auth.Viewer])
		case strings.Contains(path, "/bulk/"):
			id = d.job
		case strings.Contains(path, "/rollouts/"), strings.Contains(path, "/transfers/"):
			id = "00000000-0000-4000-8000-000000000000"
		}
		path = strings.NewReplacer("{thing}", string(rex), "{id}", id, "{cohort}", "red", "{batch}", "one", "{species}", "vic", "{channel}", "stable", "{version}", "2.0.1.6076", "{action}", "pause",
			"{token}", "00000000-0000-4000-8000-000000000000", "{sum}", strings.Repeat("ab", 32), "{doc}", "vic.RobotSettings", "{debug}", strings.Repeat("AB", 16)+"0").Replace(path)
		kind, body := "application/json", complete[name]
		if rule.Page {
			v, err := url.ParseQuery(body)
			if err != nil {
				t.Fatal(name, err)
			}
			kind, body = "application/x-www-form-urlencoded", v.Encode()
		} else if body == "" {
			body = "{}"
		}
		if strings.HasSuffix(name, "/batch") {
			kind = "text/csv"
		}
		resp, said := d.ask(t, role, method, path, kind, body)
		if rule.Page {
			if _, alert, ok := strings.Cut(said, `role="alert"`); ok {
				said = alert
			}
		}
		judge(name, resp, said)
	}
}

// unchanged fails if peoples' tables are not as before.
func (d *desk) unchanged(t *testing.T, before map[string]string) {
	t.Helper()
	if after := d.tables(t); !maps.Equal(before, after) || len(before) < 10 {
		all := maps.Clone(before)
		maps.Copy(all, after)
		for table := range all {
			if before[table] != after[table] {
				t.Errorf("%s had\n%s\nand has\n%s", table, before[table], after[table])
			}
		}
		t.Errorf("of %d tables some were changed; want 10 or more, and none", len(before))
	}
}

// TestEveryChangeNeedsItsLine asks a whole cloud, whose audit log has a full disk, for each operation of the access table that changes something: each is refused
// for that, and nothing is changed (issue 28, must hold 3). Then all but the audit log is full, and then everything, for people and for robots (issue 34, must hold 1).
func TestEveryChangeNeedsItsLine(t *testing.T) {
	d := newDesk(t)
	empty := accounttest.FillAudit(t, d.base.Pool)
	before := d.tables(t)
	d.changes(t, func(name string, resp *http.Response, said string) {
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %.300s", name, resp.StatusCode, resp.Header, said)
		}
	})
	d.unchanged(t, before)
	empty()
	d.fullDisk(t)
	d.robotsTold(t)
}

// peoples are the tables that only people's operations change, as far as a test goes that asks for nothing else.
var peoples = regexp.MustCompile(`^(account_(account|deletion|passkey|profile|recovery|totp|ticket|user_session)|alert_(ack|mail|rule|silence|threshold)|artifact_.*|certs_.*|` +
	`cohort_.*|command_outbox|crash_(group|symbols)|ddi_device|intent_custom|jdocs_.*|mail_outbox|ota_(choice|desired|release)|owner_(tenure|transfer|thing)|rollout_rollout|` +
	`answers_.*|speech_audio|token_.*|webhook_hook)$`)

// tables returns the rows of those tables.
func (w *wired) tables(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for where, b := range w.stores(t) {
		if peoples.MatchString(where) {
			lines := strings.Split(string(b), "\n")
			slices.Sort(lines)
			out[where] = strings.Join(lines, "\n")
		}
	}
	return out
}

// cookie returns the name of the session's cookie.
func (w *wired) cookie(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.api+"/logout", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	out, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || len(out.Cookies()) != 1 {
		t.Fatal(out, err)
	}
	_ = out.Body.Close() // nothing in it
	return out.Cookies()[0].Name
}
