package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/large"
	"kennel/infra/api/status"
	"kennel/infra/api/tokenwire"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

const (
	unknown = "vic:00e2dddd" // registered nowhere
	noID    = "00000000-0000-4000-8000-000000000000"
)

// bodies are what a request says that could work, where {} could not: what is refused is then refused for whose the robot is.
var bodies = map[string]string{
	"PATCH /v1/my/robots/{thing}":            `{"name":"Mine"}`,
	"POST /v1/my/robots/{thing}/transfer":    `{"to":"thief@example.com","password":"` + ownersPassword + `"}`,
	"POST /v1/things/{thing}/release":        `{"reason":"mine"}`,
	"PATCH /v1/things/{thing}/jdocs/{doc}":   `{"set":{"master_volume":5}}`,
	"POST /v1/things/{thing}/commands":       `{"kind":"ping"}`,
	"POST /my/robots/{thing}/tell":           "intent=movement_forward",
	"POST /my/robots/{thing}/name":           "name=Mine",
	"POST /my/robots/{thing}/offer":          "to=thief%40example.com&password=" + url.QueryEscape(ownersPassword),
	"POST /my/robots/{thing}/release":        "confirm=yes",
	"POST /my/robots/{thing}/settings":       "master_volume=5",
	"POST /v1/waiting/{thing}/approve":       `{"fingerprint":"x"}`,
	"POST /v1/waiting/{thing}/refuse":        `{"fingerprint":"x","reason":"y"}`,
	"POST /v1/things/{thing}/revoke":         `{"reason":"mine"}`,
	"DELETE /v1/things/{thing}/owner":        `{"reason":"mine"}`,
	"PUT /v1/things/{thing}/ota/desired":     `{"version":""}`,
	"PATCH /v1/things/{thing}/tags":          `{"add":["mine"]}`,
	"POST /v1/webhooks/{id}/replay":          `{"dead":true}`,
	"PATCH /v1/webhooks/{id}":                `{"disabled":true}`,
	"PATCH /v1/operators/{id}":               `{"disabled":true}`,
	"POST /v1/batches/{batch}/disable":       `{"reason":"mine"}`,
	"POST /v1/factory-certificates/revoke":   `{"certificate_id":"ab","reason":"x"}`,
	"POST /v1/account/delete":                `{"password":"not it"}`,
	"POST /v1/me/password":                   `{"old":"not it","new":"correct horse battery staple"}`,
	"PUT /v1/cohorts/{cohort}":               `{"filter":"species:vic"}`,
	"POST /v1/my/robots/{thing}/intents":     `{"text":"go forward"}`,
	"POST /v1/things/{thing}/intents":        `{"text":"go forward"}`,
	"POST /v1/my/robots/claim":               `{"code":"AAAA-AAAA"}`,
	"POST /v1/account/email":                 `{"email":"thief@example.com","password":"not it"}`,
	"POST /v1/bulk":                          `{"filter":"","action":{"kind":"tag","add":["mine"]},"key":"k"}`,
	"POST /my/account/delete":                "password=not+it",
	"POST /v1/things/{thing}/jdocs/{doc}":    `{}`,
	"DELETE /v1/things/{thing}/tokens":       `{}`,
	"DELETE /v1/things/{thing}/apps":         `{}`,
	"DELETE /v1/my/robots/{thing}":           `{}`,
	"POST /my/robots/{thing}/apps":           "app=none",
	"POST /my/robots/{thing}/tokens":         "token=none",
	"DELETE /v1/account/sessions/{id}":       `{}`,
	"POST /v1/my/transfers/{id}/accept":      `{}`,
	"DELETE /v1/my/transfers/{id}":           `{}`,
	"POST /my/transfers/{id}/accept":         "",
	"POST /my/transfers/{id}/drop":           "",
	"DELETE /v1/me/passkeys/{id}":            `{}`,
	"POST /v1/me/second/begin":               `{"password":"not it"}`,
	"POST /v1/me/second":                     `{"code":"not it"}`,
	"POST /v1/me/second/remove":              `{"password":"not it"}`,
	"GET /v1/things/{thing}/commands/{id}":   "",
	"DELETE /v1/things/{thing}/apps/{app}":   `{}`,
	"POST /v1/things/{thing}/apps":           `{}`,
	"DELETE /v1/things/{thing}/tokens/{tok}": `{}`,
}

// answer is the response to a request of the walks.
type answer struct {
	code     int
	location string
	header   http.Header
	body     string
}

// ask makes one request of the walks as a browser of this site would, with the session as pages and API have it; extra headers come last.
func (p *person) ask(route, path, body string, page bool, extra ...string) (answer, error) {
	method, _, ok := strings.Cut(route, " ")
	if !ok {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.api+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	switch {
	case p.token == "":
	case page:
		req.AddCookie(p.cookie())
	default:
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	if page && method != http.MethodGet {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", "text/html, application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(extra); i += 2 {
		if req.Header.Del(extra[i]); extra[i+1] != "" {
			req.Header.Set(extra[i], extra[i+1])
		}
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{code: resp.StatusCode, location: resp.Header.Get("Location"), header: resp.Header}
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
		if err != nil {
			return a, err
		}
		a.body = string(b)
	}
	return a, nil
}

// fill puts names into a route's path.
func fill(route string, names ...string) string {
	_, path, ok := strings.Cut(route, " ")
	if !ok {
		path = route
	}
	return strings.NewReplacer(append(names, "{doc}", "vic.RobotSettings", "{id}", noID, "{session}", noID, "{token}", noID, "{app}", noID,
		"{batch}", "none",
		"{species}", "vic", "{userid}", "me", "{username}", "nobody", "{esn}", "00e2dddd", "{file}", "none", "{service}", "jdocs", "{method}", "read", "{cohort}", "none", "{$}", "")...).Replace(path)
}

// hostile is issue 5, what must hold 5: a robot and people who mean ill, at every route of the table.
func (h *house) hostile(t *testing.T, admin *person, people map[auth.Role]*person) {
	cut := h.slowloris(t)
	victim, thief := h.owner(t, "victim@example.com", "Victoria"), h.owner(t, "thief@example.com", "Theo")
	id, cert := h.certified(t, admin, "vic:00e2aa01")
	victim.claim(t, h, cert)
	own, ownCert := h.certified(t, admin, "vic:00e2aa02")
	thief.claim(t, h, ownCert)

	t.Run("IDOR", func(t *testing.T) { h.strangersObjects(t, admin, victim, thief, id, own) })
	t.Run("CSRF", func(t *testing.T) { h.forged(t, victim, id) })
	t.Run("frames", func(t *testing.T) { h.frames(t, admin, victim, id) })
	t.Run("bodies", func(t *testing.T) { h.oversized(t, admin) })
	t.Run("session", func(t *testing.T) { h.theft(t, people[auth.Admin], victim, id) })
	t.Run("XSS", func(t *testing.T) {
		viewers := maps.Clone(people)
		viewers[auth.Owner] = victim
		h.scripts(t, admin, viewers, id, cert)
	})
	t.Run("slow", func(t *testing.T) {
		if took := <-cut; took > 25*time.Second {
			t.Errorf("a header that comes drop by drop held its connection for %v", took)
		}
	})
}

// claim makes a robot the person's, by the code it shows.
func (p *person) claim(t *testing.T, h *house, cert tls.Certificate) {
	t.Helper()
	var code struct{ Code string }
	if err := json.Unmarshal(h.robotAsks(t, cert, "owner", "code", `{"key":"k1"}`), &code); err != nil {
		t.Fatal(err)
	}
	p.do("POST", "/v1/my/robots/claim", map[string]string{"code": code.Code}, nil)
}

// robotAsks makes a robot's request over HTTPS.
func (h *house) robotAsks(t *testing.T, cert tls.Certificate, service, method, body string) []byte {
	t.Helper()
	code, b := h.robotPosts(t, cert, large.Path(service, method), body)
	if code != http.StatusOK {
		t.Fatalf("%s/%s: %d %s", service, method, code, b)
	}
	return b
}

// robotPosts posts as a robot that shows a certificate.
func (h *house) robotPosts(t *testing.T, cert tls.Certificate, path, body string) (int, []byte) {
	t.Helper()
	conf := h.trust(t, cert)
	conf.NextProtos = []string{large.ALPN, "http/1.1"}
	transport := &http.Transport{TLSClientConfig: conf, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&tls.Dialer{Config: conf}).DialContext(ctx, network, addr)
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Post(h.ready.Endpoints["api"]+path, "application/json",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

// strangersObjects: whatever an owner asks about another's robot, or another's object, gets the answer of one that does not exist, and nothing
// happens.
func (h *house) strangersObjects(t *testing.T, admin, victim, thief *person, id, own thing.ID) {
	var sessions []struct{ ID string }
	victim.do("GET", "/v1/account/sessions", nil, &sessions)
	var offer, command struct{ ID string }
	victim.do("POST", "/v1/my/robots/"+string(id)+"/transfer", map[string]string{"to": "nobody@example.com", "password": ownersPassword}, &offer)
	victim.do("POST", "/v1/things/"+string(id)+"/commands", map[string]string{"kind": "ping"}, &command)
	var hook struct{ Webhook struct{ ID string } }
	admin.do("POST", "/v1/webhooks", map[string]any{"url": "https://example.com/", "kinds": []string{"thing.absent"}}, &hook)
	before := h.standing(victim, id)

	type pair struct{ theirs, none string }
	asked := 0
	for _, route := range access.HTTP.Names() {
		rule := access.HTTP[route]
		var pairs []pair
		if strings.Contains(route, "{thing}") {
			pairs = append(pairs, pair{fill(route, "{thing}", string(id)), fill(route, "{thing}", unknown)})
		}
		for _, object := range []string{sessions[0].ID, offer.ID, command.ID, hook.Webhook.ID, victim.id} {
			if strings.Contains(route, "{id}") { // of a robot of the thief's own, where one is needed
				pairs = append(pairs, pair{fill(route, "{thing}", string(own), "{id}", object), fill(route, "{thing}", string(own), "{id}", noID)})
			}
		}
		if strings.HasPrefix(route, "GET /v1/events") {
			_, path, _ := strings.Cut(route, " ")
			pairs = append(pairs, pair{path + "?thing=" + string(id), path + "?thing=" + unknown})
		}
		for _, p := range pairs {
			body := bodies[route]
			if body == "" && !rule.Page {
				body = "{}"
			}
			theirs, err := thief.ask(route, p.theirs, body, rule.Page)
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			none, err := thief.ask(route, p.none, body, rule.Page)
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			asked += 2
			same := strings.NewReplacer(string(id), "ID", unknown, "ID", url.QueryEscape(string(id)), "ID", url.QueryEscape(unknown), "ID",
				sessions[0].ID, "ID", offer.ID, "ID", command.ID, "ID", hook.Webhook.ID, "ID", victim.id, "ID", noID, "ID")
			if theirs.code != none.code || same.Replace(theirs.location) != same.Replace(none.location) ||
				same.Replace(theirs.body) != same.Replace(none.body) {
				t.Errorf("%s: another's is told from none:\n%d %s %.300s\n%d %s %.300s", route, theirs.code, theirs.location, theirs.body, none.code,
					none.location, none.body)
			}
			if theirs.code < 300 && len(rule.Roles) > 0 && !strings.Contains(route, "logout") {
				t.Errorf("%s of another's: %d %.200s", p.theirs, theirs.code, theirs.body)
			}
		}
	}
	if after := h.standing(victim, id); after != before {
		t.Errorf("what is the victim's was %s and is %s", before, after)
	}
	t.Logf("%d requests", asked)
}

// standing returns the state that a thief could change.
func (h *house) standing(victim *person, id thing.ID) string {
	var out []string
	for _, path := range []string{"/v1/my/robots", "/v1/my/transfers", "/v1/things/" + string(id) + "/jdocs", "/v1/account"} {
		code, b := victim.try("GET", path, nil)
		out = append(out, fmt.Sprint(code, " ", string(b)))
	}
	var sessions []struct{ ID string }
	victim.do("GET", "/v1/account/sessions", nil, &sessions)
	var orders []struct{ ID, Kind, By string } // how often one was sent changes by itself
	victim.do("GET", "/v1/things/"+string(id)+"/commands", nil, &orders)
	return strings.Join(append(out, fmt.Sprint(sessions, orders)), "\n")
}

// forged: no request that changes something and was made by another site's page has any effect, whatever it says.
func (h *house) forged(t *testing.T, victim *person, id thing.ID) {
	before := h.standing(victim, id)
	for _, route := range access.HTTP.Names() {
		method, _, _ := strings.Cut(route, " ")
		if method == http.MethodGet || method == route || strings.HasPrefix(route, "POST /1/") || strings.HasPrefix(route, "PATCH /1/") ||
			strings.HasPrefix(route, "POST /v1/req/") {
			continue // reading; and what takes no cookie
		}
		for name, header := range map[string][]string{
			"another site":                 {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
			"another site, an old browser": {"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
			"a neighbour's page":           {"Sec-Fetch-Site", "same-site", "Origin", "https://evil.localhost"},
			"a page without origin":        {"Sec-Fetch-Site", "", "Origin", "null"},
			"nobody knows where":           {"Sec-Fetch-Site", ""},
		} {
			got, err := victim.ask(route, fill(route, "{thing}", string(id)), bodies[route], true, header...) // the cookie goes along by itself
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			if got.code != http.StatusForbidden {
				t.Errorf("%s from %s: %d %.200s", route, name, got.code, got.body)
			}
		}
	}
	if after := h.standing(victim, id); after != before {
		t.Errorf("what is the victim's was %s and is %s", before, after)
	}
}

// frames: every page forbids framing, limits what it may load, and forbids guessing its content type.
func (h *house) frames(t *testing.T, admin, victim *person, id thing.ID) {
	pages := 0
	for _, route := range access.HTTP.Names() {
		rule := access.HTTP[route]
		if !rule.Page || !strings.HasPrefix(route, "GET ") {
			continue
		}
		for _, p := range []*person{admin, victim} {
			got, err := p.ask(route, fill(route, "{thing}", string(id)), "", true)
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
				continue // a redirect, a stream, a picture
			}
			pages++
			policy := got.header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src", "frame-ancestors 'none'", "base-uri 'none'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s: policy %q without %s", route, policy, want)
				}
			}
			if strings.Contains(policy, "unsafe-") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
				t.Errorf("%s: policy %q lets too much in", route, policy)
			}
			if got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: its type may be guessed", route)
			}
		}
	}
	if pages < 10 {
		t.Errorf("only %d pages seen", pages)
	}
}

// oversized: every route that reads a body refuses megabytes, from every caller.
func (h *house) oversized(t *testing.T, admin *person) {
	large := `{"thing":"` + strings.Repeat("x", 5<<20) + `"}`
	form := "email=" + strings.Repeat("x", 5<<20)
	for _, route := range access.HTTP.Names() {
		method, _, ok := strings.Cut(route, " ")
		rule := access.HTTP[route]
		if !ok || method == http.MethodGet || strings.Contains(route, "logout") || len(rule.Roles) > 0 && !slices.Contains(rule.Roles, auth.Admin) ||
			method == http.MethodDelete && !strings.Contains(route, "/owner") {
			continue
		}
		if bodies[route] == "" && strings.Contains(route, "{") && rule.Page {
			continue // forms of one button, which read nothing
		}
		body := large
		if rule.Page {
			body = form
		}
		got, err := admin.ask(route, fill(route, "{thing}", unknown), body, rule.Page)
		if err != nil {
			if strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "broken pipe") ||
				strings.Contains(err.Error(), "stream error") {
				continue // hung up on before it was all sent
			}
			t.Fatalf("%s: %v", route, err)
		}
		if got.code >= 500 || got.code < 300 && !strings.Contains(route, "webhooks") && !bodiless[route] {
			t.Errorf("%s with 5 MB: %d %.200s", route, got.code, got.body)
		}
	}
	if code, b := admin.try("GET", "/v1/health", nil); code != http.StatusOK {
		t.Errorf("afterwards: %d %s", code, b)
	}
}

// bodiless routes read no body, so that none is too large for them.
var bodiless = map[string]bool{"POST /v1/login/passkey/begin": true, "POST /v1/account/apps": true}

// theft: once a session has ended, its token is refused at every route.
func (h *house) theft(t *testing.T, admin, victim *person, id thing.ID) {
	for name, p := range map[string]*person{"owner": victim, "admin": admin} {
		stolen := *p
		var fresh struct{ Token string }
		p.do("POST", "/v1/login", map[string]string{"email": p.email, "password": ownersPassword}, &fresh)
		stolen.token = fresh.Token
		if code, b := stolen.try("GET", "/v1/me", nil); code != http.StatusOK {
			t.Fatalf("%d %s", code, b)
		}
		if name == "owner" { // by the page's button, as a browser does
			if got, err := stolen.ask("POST /my/logout", "/my/logout", "", true); err != nil || got.code != http.StatusSeeOther {
				t.Fatalf("%+v, %v", got, err)
			}
		} else {
			stolen.do("POST", "/v1/logout", nil, nil)
		}
		for _, route := range access.HTTP.Names() {
			rule := access.HTTP[route]
			if len(rule.Roles) == 0 {
				continue
			}
			for _, cookie := range []bool{true, false} {
				got, err := stolen.ask(route, fill(route, "{thing}", string(id)), bodies[route], cookie)
				if err != nil {
					t.Fatalf("%s: %v", route, err)
				}
				away := got.code == http.StatusSeeOther && (strings.HasPrefix(got.location, "/login") || strings.HasPrefix(got.location, "/my/login"))
				if got.code != http.StatusUnauthorized && !(rule.Page && away) {
					t.Errorf("%s with the %s's dead session (cookie %v): %d %s %.200s", route, name, cookie, got.code, got.location, got.body)
				}
			}
		}
	}
	if code, b := victim.try("GET", "/v1/me", nil); code != http.StatusOK {
		t.Errorf("the other session died, too: %d %s", code, b)
	}
}

// slowloris opens a connection, sends a request's header drop by drop, and tells how long it was let.
func (h *house) slowloris(t *testing.T) <-chan time.Duration {
	t.Helper()
	cut := make(chan time.Duration, 1)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(h.ready.Endpoints["api"], "https://"), h.trust(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	began := time.Now()
	go func() {
		if _, err := io.WriteString(conn, "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
			cut <- 0
			return
		}
		_ = conn.SetReadDeadline(began.Add(40 * time.Second))
		drip := make(chan struct{})
		go func() {
			defer close(drip)
			for range time.Tick(time.Second) { // the pace of the attack
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		}()
		_, _ = io.ReadAll(conn) // until the server hangs up, or the deadline
		cut <- time.Since(began)
		conn.Close()
		<-drip
	}()
	return cut
}

// evils are the words of the scripts that robots and people say wherever they may say something. Some page shows each as text, but for those
// that are kept and that no page shows now.
var evils = map[string]bool{
	// The status.
	"agent": true, "os": true, "firmware": true, "battery": true, "dirty": true, "problem": true, "peer": true, "boot": false, "model": false, "docs": false,
	// An event.
	"s1": true, "s2": true, "s3": true, "s4": true, "source": false, "version": true, "feature": false, "run": false, "ble": false, "wifi": false,
	// A document that the robot writes: names of fields, and their values.
	"field": true, "value": true, "place": true, "locale": true, "zone": true, "meta": false,
	// From the robot: a command's result, the app that signs it in, the certificate that it shows.
	"result": true, "app": true, "appid": true, "subject": true,
	// From people.
	"name": true, "reason": true, "note": true,
}

// evil returns a script that closes any markup around it. Short words keep it below 64 bytes, the limit of some fields.
func evil(word string) string { return brief(word) + `<script>p(` + word + `)</script>` }

// brief is evil in no more than 40 characters.
func brief(word string) string { return `"'><img src=x onerror=p(` + word + `)>` }

// harmless is how a page shows evil.
func harmless(word string) string { return "&lt;img src=x onerror=p(" + word + ")" }

// scripts: a robot, its owner and an operator send a script in every field that they may fill, and a visitor sends one in the address. No
// page and no live tail shows one unescaped to any viewer; each is shown escaped, which proves that it arrived.
func (h *house) scripts(t *testing.T, admin *person, viewers map[auth.Role]*person, id thing.ID, cert tls.Certificate) {
	stranger, revoked := h.plant(t, admin, viewers[auth.Owner], id, cert)
	seen := map[string]bool{}
	check := func(where, body string) {
		for _, bad := range []string{"<img src=x", "<script>p(", `"'>`, `href="javascript:`, `src="javascript:`, `action="javascript:`,
			`data-stream="javascript:`} {
			if at := strings.Index(body, bad); at >= 0 {
				t.Errorf("%s shows %q as it came: %.200s", where, bad, body[max(0, at-60):])
			}
		}
		for word := range evils {
			seen[word] = seen[word] || strings.Contains(body, harmless(word))
		}
		seen["echo"] = seen["echo"] || strings.Contains(body, harmless("echo"))
	}
	check("/tail/stream", h.tailed(t, admin, id, cert))

	roles := slices.Sorted(maps.Keys(viewers))
	pages, echoes := 0, 0
	for _, route := range access.HTTP.Names() {
		rule := access.HTTP[route]
		if !rule.Page || !strings.HasPrefix(route, "GET ") {
			continue
		}
		var mightiest *person
		for _, role := range roles {
			if len(rule.Roles) > 0 && !slices.Contains(rule.Roles, role) {
				continue
			}
			p := viewers[role]
			if mightiest == nil || role == auth.Admin && len(rule.Roles) > 0 { // pages for anybody lead those elsewhere who are signed in
				mightiest = p
			}
			paths := []string{fill(route, "{thing}", string(id))}
			if strings.Contains(route, "{thing}") && role != auth.Owner {
				paths = append(paths, fill(route, "{thing}", string(stranger)), fill(route, "{thing}", string(revoked)))
			}
			for _, path := range paths {
				got, err := p.ask(route, path, "", true)
				if err != nil || got.code >= 500 {
					t.Fatalf("%s as %q: %d %v", path, role, got.code, err)
				}
				if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
					continue // a redirect, a stream, a picture
				}
				pages++
				check(fmt.Sprintf("%s as %q", path, role), got.body)
			}
		}
		for _, name := range []string{"q", "filter", "next", "text", "event", "thing", "who", "object", "action", "note", "code", "email",
			"sort", "after"} {
			values := []string{evil("echo")}
			if name == "next" {
				values = append(values, "javascript:p(echo)")
			}
			for _, value := range values {
				path := fill(route, "{thing}", string(id)) + "?" + url.Values{name: {value}}.Encode()
				got, err := mightiest.ask(route, path, "", true)
				if err != nil || got.code >= 500 {
					t.Fatalf("%s: %d %v", path, got.code, err)
				}
				if strings.HasPrefix(got.location, "javascript:") {
					t.Errorf("%s leads to %s", path, got.location)
				}
				if strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
					echoes++
					check(path, got.body)
				}
			}
		}
	}
	// Forms that are refused show what was typed.
	for route, p := range map[string]*person{
		"POST /cohorts?name=&filter=&note=": admin, "POST /things/{thing}/tags?add=": admin, "POST /things/{thing}/commands?kind=&args=&ttl=": admin, "POST /operators?email=&role=": admin,
		"POST /certificates/factory?certificate_id=&reason=": admin, "POST /certificates/batches?name=&organization=&serial_from=&bundle=": admin, "POST /login?email=&password=&next=": viewers[""],
		"POST /my/claim?code=": viewers[auth.Owner], "POST /my/robots/{thing}/offer?to=": viewers[auth.Owner],
		"POST /account/signup?email=&given_name=": viewers[""], "POST /my/login?email=&password=&next=": viewers[""],
	} {
		route, fields, _ := strings.Cut(route, "?")
		got, err := p.ask(route, fill(route, "{thing}", string(id)), strings.ReplaceAll(fields, "=", "="+url.QueryEscape(evil("echo"))), true)
		if err != nil || got.code >= 500 || got.code < 300 {
			t.Errorf("%s: %d %v %.200s", route, got.code, err, got.body)
		}
		check(route, got.body)
	}
	t.Logf("%d pages, %d with a script in their address", pages, echoes)

	if !seen["echo"] {
		t.Error("no page shows what its address or a form said, so that nothing was proved of these")
	}
	kept := h.kept(admin, id)
	if strings.Contains(kept, "p(profile)") {
		t.Error("a profile id is kept as it came: want it keyed")
	}
	for word, shown := range evils {
		switch {
		case shown && !seen[word]:
			t.Errorf("no page shows %s, so that nothing was proved of it", evil(word))
		case !shown && seen[word]:
			t.Errorf("a page shows %s now: say so in evils", evil(word))
		case !shown && !strings.Contains(kept, "p("+word+")"):
			t.Errorf("%s is not even kept", evil(word))
		}
	}
}

// kept returns all that the cloud holds about a robot, read over the API.
func (h *house) kept(admin *person, id thing.ID) string {
	var out []string
	for _, path := range []string{"/v1/things/" + string(id), "/v1/events?thing=" + url.QueryEscape(string(id)),
		"/v1/things/" + string(id) + "/jdocs/vic.RobotSettings"} {
		_, b := admin.try("GET", path, nil)
		out = append(out, string(b))
	}
	return strings.Join(out, "\n")
}

// plant has a robot and people say evil things over the wires they have, but for its status and its event. stranger was refused with a
// certificate that says some, revoked was revoked for an evil reason.
func (h *house) plant(t *testing.T, admin, victim *person, id thing.ID, cert tls.Certificate) (stranger, revoked thing.ID) {
	t.Helper()
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got, err := victim.ask("POST /my/privacy/events", "/my/privacy/events", "events=yes", true); err != nil || got.code != http.StatusSeeOther {
		t.Fatalf("its owner does not allow events: %+v %v", got, err)
	}
	victim.do("PATCH", "/v1/my/robots/"+string(id), map[string]string{"name": brief("name")}, nil)
	admin.do("POST", "/v1/cohorts", map[string]string{"cohort": "evil", "filter": "tag:none", "note": evil("note")}, nil)
	if code, b := admin.try("PATCH", "/v1/things/"+string(id)+"/tags", map[string]any{"add": []string{evil("tag")}}); code != http.StatusBadRequest {
		t.Errorf("a tag that is a script: %d %s", code, b)
	}
	doc := text(map[string]string{"locale": evil("locale"), "time_zone": evil("zone"), "default_location": evil("place"), evil("field"): evil("value")})
	if b := h.robotAsks(t, cert, jdocswire.Service, jdocswire.Write, text(jdocswire.WriteReq{DocName: string(jdocs.RobotSettings),
		Doc: jdocswire.DocOf(jdocs.Doc{FmtVersion: jdocs.RobotSettings.FmtVersion(), ClientMeta: brief("meta"),
			JSON: doc})})); !strings.Contains(string(b), jdocs.Accepted.String()) {
		t.Fatalf("the robot's settings: %s", b)
	}
	var command, app struct {
		ID      string
		Session string `json:"session_token"`
	}
	admin.do("POST", "/v1/things/"+string(id)+"/commands", map[string]string{"kind": "ping"}, &command)
	h.robotAsks(t, cert, commandwire.Service, commandwire.ResultMethod,
		text(commandwire.Result{V: 1, ID: command.ID, Status: commandwire.Failed, Detail: evil("result")}))
	victim.do("POST", "/v1/account/apps", nil, &app)
	h.robotAsks(t, cert, tokenwire.Service, tokenwire.AssociateMethod,
		text(tokenwire.Associate{UserSession: app.Session, ClientName: evil("app"), AppID: evil("appid")}))

	revoked, _ = h.certified(t, admin, "vic:00e2aa09")
	admin.do("POST", "/v1/things/"+string(revoked)+"/revoke", map[string]string{"reason": evil("reason")}, nil)

	stranger = "vic:00e2aa08"
	admin.do("POST", "/v1/things", map[string]string{"thing": string(stranger)}, nil)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	self := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: evil("subject")}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(stranger)}}, key)
	if err != nil {
		t.Fatal(err)
	}
	code, b := h.robotPosts(t, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, "/v1/enroll",
		text(map[string]string{"thing": string(stranger), "csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))}))
	if code < 400 || code >= 500 {
		t.Errorf("enrolment with a certificate of one's own making: %d %s", code, b)
	}
	return stranger, revoked
}

// tailed has the robot send an evil status and an evil event, and returns what the live tail wrote of the latter, as the page's script has it.
func (h *house) tailed(t *testing.T, admin *person, id thing.ID, cert tls.Certificate) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	req, err := http.NewRequestWithContext(ctx, "GET", admin.api+"/tail/stream?event=hostile.event", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(admin.cookie())
	resp, err := admin.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	tail := bufio.NewScanner(resp.Body)
	for tail.Scan() && tail.Text() != ": here" { // from here on it tells what comes
	}

	m := status.Message{State: status.Online, BootID: evil("boot"), ConnectSeq: 7, Seq: 1, Lease: 600_000, TS: time.Now().UnixMilli(),
		Agent: evil("agent"), OS: evil("os"),
		Body: &status.Body{
			Model: evil("model"), Firmware: evil("firmware"), BatteryVolts: 3.9, BatteryLevel: evil("battery"),
		}, Docs: map[string]uint64{evil("docs"): 1},
		Dirty: []string{evil("dirty")}, Problems: []string{evil("problem"), "broker: " + evil("peer")}}
	message, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	batch, err := events.EncodeBatch("hostile", []events.Event{{Source: evil("source"), TS: time.Now().UnixMilli(), Seq: 1, Level: events.Info,
		RobotID: id.Serial(), RobotVersion: evil("version"),
		BootID: "hostile", ProfileID: evil("profile"), FeatureType: evil("feature"), FeatureRunID: evil("run"), BLEConnID: evil("ble"),
		WifiConnID: evil("wifi"), Name: "hostile.event",
		S1: evil("s1"), S2: evil("s2"), S3: evil("s3"), S4: evil("s4")}})
	if err != nil {
		t.Fatal(err)
	}
	c := h.connected(t, id, cert)
	for topic, payload := range map[string][]byte{topics.UpTopic(id, topics.Status): message, topics.UpTopic(id, topics.DAS): batch} {
		if err := c.Publish(t.Context(), topic, 1, false, payload); err != nil {
			t.Fatal(err)
		}
	}
	await(t, time.Minute, "the hostile status and event", func() error {
		kept := h.kept(admin, id)
		if !strings.Contains(kept, "p(agent)") || !strings.Contains(kept, "p(s1)") {
			return fmt.Errorf("not there: %s", kept)
		}
		return nil
	})
	for tail.Scan() {
		data, ok := strings.CutPrefix(tail.Text(), "data: ")
		var rows string
		if ok && json.Unmarshal([]byte(data), &rows) == nil && strings.Contains(rows, "hostile.event") {
			if !strings.Contains(rows, harmless("s1")) {
				t.Errorf("the tail does not show what the event says: %s", rows)
			}
			return rows
		}
	}
	t.Fatalf("the tail ends without the event: %v", tail.Err())
	return ""
}

// connected returns a thing's connection to the broker, which lasts until the test ends.
func (h *house) connected(t *testing.T, id thing.ID, cert tls.Certificate) *mqtt.Client {
	t.Helper()
	up := make(chan struct{}, 10)
	down := make(chan error, 10)
	c, err := mqtt.New(mqtt.Config{URL: h.ready.Endpoints["mqtt"], ClientID: string(id),
		TLS:       func() (*tls.Config, error) { return h.trust(t, cert), nil },
		OnConnect: func(context.Context, *mqtt.Client) error { up <- struct{}{}; return nil }, OnDown: func(err error) { down <- err }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	select {
	case <-up:
	case err := <-down:
		t.Fatalf("the thing is not let in: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the thing is not let in")
	}
	return c
}
