package pages

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/large"
	"kennel/infra/auth"
	"kennel/infra/thing"
)

const (
	unknown = "vic:00e2dddd" // registered nowhere
	noID    = "00000000-0000-4000-8000-000000000000"
)

// bodies are what a request says that could work, where {} could not: what is refused is then refused for whose the robot is.
var bodies = map[string]string{
	"PATCH /v1/my/robots/{thing}":            `{"name":"Mine"}`,
	"POST /v1/my/robots/{thing}/transfer":    `{"to":"thief@example.com","password":"` + housetest.OwnersPassword + `"}`,
	"POST /v1/things/{thing}/release":        `{"reason":"mine"}`,
	"PATCH /v1/things/{thing}/jdocs/{doc}":   `{"set":{"master_volume":5}}`,
	"POST /v1/things/{thing}/commands":       `{"kind":"ping"}`,
	"POST /my/robots/{thing}/tell":           "intent=movement_forward",
	"POST /my/robots/{thing}/update":         "when=now",
	"PUT /v1/my/robots/{thing}/update":       `{"now":true}`,
	"POST /my/robots/{thing}/name":           "name=Mine",
	"POST /my/robots/{thing}/offer":          "to=thief%40example.com&password=" + url.QueryEscape(housetest.OwnersPassword),
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
	"POST /my/robots/{thing}/programs":       "name=mine&rights=look&days=1",
	"POST /v1/my/robots/{thing}/programs":    `{"name":"mine","rights":["look"]}`,
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
func hostile(t *testing.T, h *housetest.House, admin *housetest.Person, people map[auth.Role]*housetest.Person) {
	cut := slowloris(t, h)
	victim, thief := h.Owner(t, "victim@example.com", "Victoria"), h.Owner(t, "thief@example.com", "Theo")
	id, cert := h.Certified(t, admin, "vic:00e2aa01")
	claimRobot(t, victim, h, cert)
	own, ownCert := h.Certified(t, admin, "vic:00e2aa02")
	claimRobot(t, thief, h, ownCert)

	t.Run("IDOR", func(t *testing.T) { strangersObjects(t, h, admin, victim, thief, id, own) })
	t.Run("CSRF", func(t *testing.T) { forged(t, h, victim, id) })
	t.Run("frames", func(t *testing.T) { frames(t, h, admin, victim, id) })
	t.Run("bodies", func(t *testing.T) { oversized(t, h, admin) })
	t.Run("session", func(t *testing.T) { theft(t, h, people[auth.Admin], victim, id) })
	t.Run("XSS", func(t *testing.T) {
		viewers := maps.Clone(people)
		viewers[auth.Owner] = victim
		scripts(t, h, admin, viewers, id, cert)
	})
	t.Run("slow", func(t *testing.T) {
		if took := <-cut; took > 25*time.Second {
			t.Errorf("a header that comes drop by drop held its connection for %v", took)
		}
	})
}

// claimRobot makes a robot the person's, by the code it shows.
func claimRobot(t *testing.T, p *housetest.Person, h *housetest.House, cert tls.Certificate) {
	t.Helper()
	var code struct{ Code string }
	if err := json.Unmarshal(robotAsks(t, h, cert, "owner", "code", `{"key":"k1"}`), &code); err != nil {
		t.Fatal(err)
	}
	p.Do("POST", "/v1/my/robots/claim", map[string]string{"code": code.Code}, nil)
}

// robotAsks makes a robot's request over HTTPS.
func robotAsks(t *testing.T, h *housetest.House, cert tls.Certificate, service, method, body string) []byte {
	t.Helper()
	code, b := h.RobotPosts(t, cert, large.Path(service, method), body)
	if code != http.StatusOK {
		t.Fatalf("%s/%s: %d %s", service, method, code, b)
	}
	return b
}

// strangersObjects: whatever an owner asks about another's robot, or another's object, gets the answer of one that does not exist, and nothing
// happens.
func strangersObjects(t *testing.T, h *housetest.House, admin, victim, thief *housetest.Person, id, own thing.ID) {
	var sessions []struct{ ID string }
	victim.Do("GET", "/v1/account/sessions", nil, &sessions)
	var offer, command struct{ ID string }
	victim.Do("POST", "/v1/my/robots/"+string(id)+"/transfer", map[string]string{"to": "nobody@example.com", "password": housetest.OwnersPassword}, &offer)
	victim.Do("POST", "/v1/things/"+string(id)+"/commands", map[string]string{"kind": "ping"}, &command)
	var hook struct{ Webhook struct{ ID string } }
	admin.Do("POST", "/v1/webhooks", map[string]any{"url": "https://example.com/", "kinds": []string{"thing.absent"}}, &hook)
	before := standing(h, victim, id)

	type pair struct{ theirs, none string }
	asked := 0
	for _, route := range access.HTTP.Names() {
		rule := access.HTTP[route]
		var pairs []pair
		if strings.Contains(route, "{thing}") {
			pairs = append(pairs, pair{fill(route, "{thing}", string(id)), fill(route, "{thing}", unknown)})
		}
		for _, object := range []string{sessions[0].ID, offer.ID, command.ID, hook.Webhook.ID, victim.ID} {
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
			theirs, err := thief.Ask(route, p.theirs, body, rule.Page)
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			none, err := thief.Ask(route, p.none, body, rule.Page)
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			asked += 2
			same := strings.NewReplacer(string(id), "ID", unknown, "ID", url.QueryEscape(string(id)), "ID", url.QueryEscape(unknown), "ID",
				sessions[0].ID, "ID", offer.ID, "ID", command.ID, "ID", hook.Webhook.ID, "ID", victim.ID, "ID", noID, "ID")
			if theirs.Code != none.Code || same.Replace(theirs.Location) != same.Replace(none.Location) ||
				same.Replace(theirs.Body) != same.Replace(none.Body) {
				t.Errorf("%s: another's is told from none:\n%d %s %.300s\n%d %s %.300s", route, theirs.Code, theirs.Location, theirs.Body, none.Code,
					none.Location, none.Body)
			}
			if theirs.Code < 300 && len(rule.Roles) > 0 && !strings.Contains(route, "logout") {
				t.Errorf("%s of another's: %d %.200s", p.theirs, theirs.Code, theirs.Body)
			}
		}
	}
	if after := standing(h, victim, id); after != before {
		t.Errorf("what is the victim's was %s and is %s", before, after)
	}
	t.Logf("%d requests", asked)
}

// standing returns the state that a thief could change.
func standing(h *housetest.House, victim *housetest.Person, id thing.ID) string {
	var out []string
	for _, path := range []string{"/v1/my/robots", "/v1/my/transfers", "/v1/things/" + string(id) + "/jdocs", "/v1/account"} {
		code, b := victim.Try("GET", path, nil)
		out = append(out, fmt.Sprint(code, " ", string(b)))
	}
	var sessions []struct{ ID string }
	victim.Do("GET", "/v1/account/sessions", nil, &sessions)
	var orders []struct{ ID, Kind, By string } // how often one was sent changes by itself
	victim.Do("GET", "/v1/things/"+string(id)+"/commands", nil, &orders)
	return strings.Join(append(out, fmt.Sprint(sessions, orders)), "\n")
}

// forged: no request that changes something and was made by another site's page has any effect, whatever it says.
func forged(t *testing.T, h *housetest.House, victim *housetest.Person, id thing.ID) {
	before := standing(h, victim, id)
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
			got, err := victim.Ask(route, fill(route, "{thing}", string(id)), bodies[route], true, header...) // the cookie goes along by itself
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			if got.Code != http.StatusForbidden {
				t.Errorf("%s from %s: %d %.200s", route, name, got.Code, got.Body)
			}
		}
	}
	if after := standing(h, victim, id); after != before {
		t.Errorf("what is the victim's was %s and is %s", before, after)
	}
}

// frames: every page forbids framing, limits what it may load, and forbids guessing its content type.
func frames(t *testing.T, h *housetest.House, admin, victim *housetest.Person, id thing.ID) {
	pages := 0
	for _, route := range access.HTTP.Names() {
		rule := access.HTTP[route]
		if !rule.Page || !strings.HasPrefix(route, "GET ") {
			continue
		}
		for _, p := range []*housetest.Person{admin, victim} {
			got, err := p.Ask(route, fill(route, "{thing}", string(id)), "", true)
			if err != nil {
				t.Fatalf("%s: %v", route, err)
			}
			if !strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
				continue // a redirect, a stream, a picture
			}
			pages++
			policy := got.Header.Get("Content-Security-Policy")
			for _, want := range []string{"default-src", "frame-ancestors 'none'", "base-uri 'none'"} {
				if !strings.Contains(policy, want) {
					t.Errorf("%s: policy %q without %s", route, policy, want)
				}
			}
			if route == "GET /playground" { // runs WebAssembly, and no script but its own
				policy = strings.ReplaceAll(policy, "'wasm-unsafe-eval'", "")
			}
			if strings.Contains(policy, "unsafe-") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
				t.Errorf("%s: policy %q lets too much in", route, policy)
			}
			if got.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: its type may be guessed", route)
			}
		}
	}
	if pages < 10 {
		t.Errorf("only %d pages seen", pages)
	}
}

// oversized: every route that reads a body refuses megabytes, from every caller.
func oversized(t *testing.T, h *housetest.House, admin *housetest.Person) {
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
		got, err := admin.Ask(route, fill(route, "{thing}", unknown), body, rule.Page)
		if err != nil {
			if strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "broken pipe") ||
				strings.Contains(err.Error(), "stream error") {
				continue // hung up on before it was all sent
			}
			t.Fatalf("%s: %v", route, err)
		}
		if got.Code >= 500 && got.Code != http.StatusServiceUnavailable || got.Code < 300 && !strings.Contains(route, "webhooks") && !bodiless[route] {
			t.Errorf("%s with 5 MB: %d %.200s", route, got.Code, got.Body)
		}
	}
	if code, b := admin.Try("GET", "/v1/health", nil); code != http.StatusOK {
		t.Errorf("afterwards: %d %s", code, b)
	}
}

// bodiless routes read no body, so that none is too large for them.
var bodiless = map[string]bool{"POST /v1/login/passkey/begin": true, "POST /v1/account/apps": true}

// theft: once a session has ended, its token is refused at every route.
func theft(t *testing.T, h *housetest.House, admin, victim *housetest.Person, id thing.ID) {
	for name, p := range map[string]*housetest.Person{"owner": victim, "admin": admin} {
		stolen := *p
		var fresh struct{ Token string }
		p.Do("POST", "/v1/login", map[string]string{"email": p.Email, "password": housetest.OwnersPassword}, &fresh)
		stolen.Token = fresh.Token
		if code, b := stolen.Try("GET", "/v1/me", nil); code != http.StatusOK {
			t.Fatalf("%d %s", code, b)
		}
		if name == "owner" { // by the page's button, as a browser does
			if got, err := stolen.Ask("POST /my/logout", "/my/logout", "", true); err != nil || got.Code != http.StatusSeeOther {
				t.Fatalf("%+v, %v", got, err)
			}
		} else {
			stolen.Do("POST", "/v1/logout", nil, nil)
		}
		for _, route := range access.HTTP.Names() {
			rule := access.HTTP[route]
			if len(rule.Roles) == 0 {
				continue
			}
			for _, cookie := range []bool{true, false} {
				got, err := stolen.Ask(route, fill(route, "{thing}", string(id)), bodies[route], cookie)
				if err != nil {
					t.Fatalf("%s: %v", route, err)
				}
				away := got.Code == http.StatusSeeOther && (strings.HasPrefix(got.Location, "/login") || strings.HasPrefix(got.Location, "/my/login"))
				if got.Code != http.StatusUnauthorized && !(rule.Page && away) {
					t.Errorf("%s with the %s's dead session (cookie %v): %d %s %.200s", route, name, cookie, got.Code, got.Location, got.Body)
				}
			}
		}
	}
	if code, b := victim.Try("GET", "/v1/me", nil); code != http.StatusOK {
		t.Errorf("the other session died, too: %d %s", code, b)
	}
}

// slowloris opens a connection, sends a request's header drop by drop, and tells how long it was let.
func slowloris(t *testing.T, h *housetest.House) <-chan time.Duration {
	t.Helper()
	cut := make(chan time.Duration, 1)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(h.Ready.Endpoints["api"], "https://"), h.Trust(t))
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
