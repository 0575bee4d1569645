package pages

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
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/status"
	"kennel/infra/api/tokenwire"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

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
func scripts(t *testing.T, h *housetest.House, admin *housetest.Person, viewers map[auth.Role]*housetest.Person, id thing.ID, cert tls.Certificate) {
	stranger, revoked := plantObjects(t, h, admin, viewers[auth.Owner], id, cert)
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
	check("/tail/stream", tailed(t, h, admin, id, cert))

	roles := slices.Sorted(maps.Keys(viewers))
	pages, echoes := 0, 0
	for _, route := range access.HTTP.Names() {
		rule := access.HTTP[route]
		if !rule.Page || !strings.HasPrefix(route, "GET ") {
			continue
		}
		var mightiest *housetest.Person
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
				got, err := p.Ask(route, path, "", true)
				if err != nil || got.Code >= 500 {
					t.Fatalf("%s as %q: %d %v", path, role, got.Code, err)
				}
				if !strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
					continue // a redirect, a stream, a picture
				}
				pages++
				check(fmt.Sprintf("%s as %q", path, role), got.Body)
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
				got, err := mightiest.Ask(route, path, "", true)
				if err != nil || got.Code >= 500 {
					t.Fatalf("%s: %d %v", path, got.Code, err)
				}
				if strings.HasPrefix(got.Location, "javascript:") {
					t.Errorf("%s leads to %s", path, got.Location)
				}
				if strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
					echoes++
					check(path, got.Body)
				}
			}
		}
	}
	// Forms that are refused show what was typed.
	for route, p := range map[string]*housetest.Person{
		"POST /cohorts?name=&filter=&note=": admin, "POST /things/{thing}/tags?add=": admin, "POST /things/{thing}/commands?kind=&args=&ttl=": admin, "POST /operators?email=&role=": admin,
		"POST /certificates/factory?certificate_id=&reason=": admin, "POST /certificates/batches?name=&organization=&serial_from=&bundle=": admin, "POST /login?email=&password=&next=": viewers[""],
		"POST /my/claim?code=": viewers[auth.Owner], "POST /my/robots/{thing}/offer?to=": viewers[auth.Owner],
		"POST /account/signup?email=&given_name=": viewers[""], "POST /my/login?email=&password=&next=": viewers[""],
	} {
		route, fields, _ := strings.Cut(route, "?")
		got, err := p.Ask(route, fill(route, "{thing}", string(id)), strings.ReplaceAll(fields, "=", "="+url.QueryEscape(evil("echo"))), true)
		if err != nil || got.Code >= 500 || got.Code < 300 {
			t.Errorf("%s: %d %v %.200s", route, got.Code, err, got.Body)
		}
		check(route, got.Body)
	}
	t.Logf("%d pages, %d with a script in their address", pages, echoes)

	if !seen["echo"] {
		t.Error("no page shows what its address or a form said, so that nothing was proved of these")
	}
	kept := kept(h, admin, id)
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
func kept(h *housetest.House, admin *housetest.Person, id thing.ID) string {
	var out []string
	for _, path := range []string{"/v1/things/" + string(id), "/v1/events?thing=" + url.QueryEscape(string(id)),
		"/v1/things/" + string(id) + "/jdocs/vic.RobotSettings"} {
		_, b := admin.Try("GET", path, nil)
		out = append(out, string(b))
	}
	return strings.Join(out, "\n")
}

// plantObjects has a robot and people say evil things over the wires they have, but for its status and its event. stranger was refused with a
// certificate that says some, revoked was revoked for an evil reason.
func plantObjects(t *testing.T, h *housetest.House, admin, victim *housetest.Person, id thing.ID, cert tls.Certificate) (stranger, revoked thing.ID) {
	t.Helper()
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got, err := victim.Ask("POST /my/privacy/events", "/my/privacy/events", "events=yes", true); err != nil || got.Code != http.StatusSeeOther {
		t.Fatalf("its owner does not allow events: %+v %v", got, err)
	}
	victim.Do("PATCH", "/v1/my/robots/"+string(id), map[string]string{"name": brief("name")}, nil)
	admin.Do("POST", "/v1/cohorts", map[string]string{"cohort": "evil", "filter": "tag:none", "note": evil("note")}, nil)
	if code, b := admin.Try("PATCH", "/v1/things/"+string(id)+"/tags", map[string]any{"add": []string{evil("tag")}}); code != http.StatusBadRequest {
		t.Errorf("a tag that is a script: %d %s", code, b)
	}
	doc := text(map[string]string{"locale": evil("locale"), "time_zone": evil("zone"), "default_location": evil("place"), evil("field"): evil("value")})
	if b := robotAsks(t, h, cert, jdocswire.Service, jdocswire.Write, text(jdocswire.WriteReq{DocName: string(jdocs.RobotSettings),
		Doc: jdocswire.DocOf(jdocs.Doc{FmtVersion: jdocs.RobotSettings.FmtVersion(), ClientMeta: brief("meta"),
			JSON: doc})})); !strings.Contains(string(b), jdocs.Accepted.String()) {
		t.Fatalf("the robot's settings: %s", b)
	}
	var command, app struct {
		ID      string
		Session string `json:"session_token"`
	}
	admin.Do("POST", "/v1/things/"+string(id)+"/commands", map[string]string{"kind": "ping"}, &command)
	robotAsks(t, h, cert, commandwire.Service, commandwire.ResultMethod,
		text(commandwire.Result{V: 1, ID: command.ID, Status: commandwire.Failed, Detail: evil("result")}))
	victim.Do("POST", "/v1/account/apps", nil, &app)
	robotAsks(t, h, cert, tokenwire.Service, tokenwire.AssociateMethod,
		text(tokenwire.Associate{UserSession: app.Session, ClientName: evil("app"), AppID: evil("appid")}))

	revoked, _ = h.Certified(t, admin, "vic:00e2aa09")
	admin.Do("POST", "/v1/things/"+string(revoked)+"/revoke", map[string]string{"reason": evil("reason")}, nil)

	stranger = "vic:00e2aa08"
	admin.Do("POST", "/v1/things", map[string]string{"thing": string(stranger)}, nil)
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
	code, b := h.RobotPosts(t, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, "/v1/enroll",
		text(map[string]string{"thing": string(stranger), "csr": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}))}))
	if code < 400 || code >= 500 {
		t.Errorf("enrolment with a certificate of one's own making: %d %s", code, b)
	}
	return stranger, revoked
}

// tailed has the robot send an evil status and an evil event, and returns what the live tail wrote of the latter, as the page's script has it.
func tailed(t *testing.T, h *housetest.House, admin *housetest.Person, id thing.ID, cert tls.Certificate) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	req, err := http.NewRequestWithContext(ctx, "GET", admin.API+"/tail/stream?event=hostile.event", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(admin.Cookie())
	resp, err := admin.HTTP.Do(req)
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
	c := connected(t, h, id, cert)
	for topic, payload := range map[string][]byte{topics.UpTopic(id, topics.Status): message, topics.UpTopic(id, topics.DAS): batch} {
		if err := c.Publish(t.Context(), topic, 1, false, payload); err != nil {
			t.Fatal(err)
		}
	}
	housetest.Await(t, time.Minute, "the hostile status and event", func() error {
		kept := kept(h, admin, id)
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
func connected(t *testing.T, h *housetest.House, id thing.ID, cert tls.Certificate) *mqtt.Client {
	t.Helper()
	up := make(chan struct{}, 10)
	down := make(chan error, 10)
	c, err := mqtt.New(mqtt.Config{URL: h.Ready.Endpoints["mqtt"], ClientID: string(id),
		TLS:       func() (*tls.Config, error) { return h.Trust(t, cert), nil },
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
