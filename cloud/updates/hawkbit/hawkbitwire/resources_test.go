package hawkbitwire_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kennel/certs/ca"
	"kennel/cloud/updates/hawkbit/hawkbitwire"
	"kennel/cloud/updates/rollout"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/swu/swutest"
)

const at = "/default/controller/v1/amigo:arm-7"

// client is a device of the test, for what SWUpdate cannot be made to do.
type client struct {
	*house
	http   *http.Client
	header []string
}

func (h *house) client(id thing.ID) client {
	return client{h, h.api.Client(), []string{"Authorization", "TargetToken " + h.token(id), "Content-Type", "application/json", "Accept", "application/hal+json"}}
}

// want makes a request and compares the whole answer; HOST in it is the server's address.
func (c client) want(method, path, body string, code int, want string) {
	c.Helper()
	got, answer, _ := c.do(c.http, method, path, body, c.header...)
	if answer = strings.ReplaceAll(strings.TrimSpace(answer), c.api.URL, "HOST"); got != code || answer != want && !same(answer, want) && (code < 400 || !strings.Contains(answer, want)) {
		c.Errorf("%s %s: %d %s\nwant %d %s", method, path, got, answer, code, want)
	}
}

// same compares JSON, in which the order of fields says nothing.
func same(x, y string) bool {
	var a, b any
	return json.Unmarshal([]byte(x), &a) == nil && json.Unmarshal([]byte(y), &b) == nil && reflect.DeepEqual(a, b)
}

func feedback(execution, finished string, cnt, of int) string {
	return fmt.Sprintf(`{"id":1,"time":"20261123T044426","status":{"result":{"progress":{"cnt":%d,"of":%d},"finished":%q},"execution":%q,"details":["x"]}}`, cnt, of, finished, execution)
}

// TestResources (issue 17, build 6): each resource with the bytes that a client sends and gets, through an update that succeeds, one that is cancelled and one
// that cannot be.
func TestResources(t *testing.T) {
	h := newHouse(t, hawkbitwire.Config{})
	c := h.client(arm)
	const (
		idle      = `{"config":{"polling":{"sleep":"00:02:00"}},"_links":{}}`
		describe  = `{"config":{"polling":{"sleep":"00:02:00"}},"_links":{"configData":{"href":"HOST` + at + `/configData"}}}`
		swupdates = `{ "id": "", "time": "20261123T044808", "status": { "result": { "finished": "success" }, "execution": "closed", "details" : [ "" ] }, "data" : { "version": "1.0.0.1","hardware": "arm board" } }`
	)
	offer := func(action int) string {
		return fmt.Sprintf(`{"config":{"polling":{"sleep":"00:00:15"}},"_links":{"deploymentBase":{"href":"HOST%s/deploymentBase/%d"}}}`, at, action)
	}
	stop := func(action int) string {
		return fmt.Sprintf(`{"config":{"polling":{"sleep":"00:00:15"}},"_links":{"cancelAction":{"href":"HOST%s/cancelAction/%d"}}}`, at, action)
	}
	c.want("GET", at, "", 200, describe)
	c.want("PUT", at+"/configData", swupdates, 200, "")
	c.want("GET", at, "", 200, idle)
	c.want("PUT", at+"/configData", `{"mode":"merge","data":{"region":"EU"}}`, 200, "")
	c.want("PUT", at+"/configData", `{"mode":"remove","data":{"region":""}}`, 200, "")
	c.want("PUT", at+"/configData", `{"mode":"other","data":{}}`, 400, "want merge, replace or remove")
	c.want("PUT", at+"/configData", `{"data":{"version":7}}`, 400, "configData")
	c.want("PUT", at+"/configData", `{"data":{"`+strings.Repeat("x", 300)+`":""}}`, 400, "at most 256 bytes")
	if x, err := h.robots.Thing(t.Context(), arm); err != nil || len(x.Tags) > 0 || x.Facets.Version != old || x.Facets.Model != "arm board" {
		t.Errorf("%+v, %v", x, err)
	}

	whole := swutest.Pack("sw-description", "software = {}", "a", "b")
	h.upload("1.0.0.2", whole)
	id := h.rollout("1.0.0.2", 0)
	c.want("GET", at, "", 200, offer(1))
	if w := h.why(id); w.Code != rollout.WhyGranted {
		t.Errorf("granted: %+v", w)
	}
	c.want("POST", at+"/deploymentBase/1/feedback", feedback("closed", "success", 0, 0), 410, "action_gone") // it knows nothing of it yet
	file := at + "/softwaremodules/1.0.0.2/artifacts/amigo-1.0.0.2.swu"
	c.want("GET", at+"/deploymentBase/1", "", 200, fmt.Sprintf(`{"id":"1","deployment":{"download":"forced","update":"forced","chunks":[{"part":"os","version":"1.0.0.2","name":"amigo","artifacts":[{"filename":"amigo-1.0.0.2.swu","hashes":{"sha1":"%x","md5":"%x","sha256":"%x"},"size":%d,"_links":{"download":{"href":"HOST%s"},"download-http":{"href":"HOST%s"}}}]}]}}`,
		sha1.Sum(whole), md5.Sum(whole), sha256.Sum256(whole), len(whole), file, file))
	for _, bad := range []string{"/deploymentBase/2", "/cancelAction/1"} {
		c.want("GET", at+bad, "", 410, "action_gone")
	}
	c.want("GET", at+"/deploymentBase/x", "", 400, "want a number")
	c.want("GET", file, "", 200, strings.TrimSpace(string(whole)))
	for _, bad := range []string{"1.0.0.2/artifacts/other.swu", "1.0.0.9/artifacts/amigo-1.0.0.9.swu"} {
		c.want("GET", at+"/softwaremodules/"+bad, "", 404, "no_file")
	}
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256(whole))
	code, body, header := h.do(c.http, "GET", file, "", append(c.header, "Range", "bytes=100-", "If-Range", etag)...)
	if code != 206 || body != string(whole[100:]) || header.Get("ETag") != etag || header.Get("Content-Range") != fmt.Sprintf("bytes 100-%d/%d", len(whole)-1, len(whole)) {
		t.Errorf("the rest: %d, %d bytes, %v", code, len(body), header)
	}
	if code, body, _ := h.do(c.http, "GET", file, "", append(c.header, "Range", "bytes=100-", "If-Range", `"x"`)...); code != 200 || body != string(whole) {
		t.Errorf("the rest of another file: %d, %d bytes", code, len(body))
	}
	c.want("POST", at+"/deploymentBase/1/feedback", feedback("proceeding", "none", 0, 1), 200, "")
	if w := h.why(id); w.Code != rollout.WhyUpdating {
		t.Errorf("while it updates: %+v", w)
	}
	c.want("POST", at+"/deploymentBase/1/feedback", feedback("proceeding", "none", 1, 1), 200, "")
	c.want("POST", at+"/deploymentBase/1/feedback", `{`, 400, "feedback")
	c.want("GET", at, "", 200, offer(1)) // it asks again after its restart
	for range 2 {
		c.want("POST", at+"/deploymentBase/1/feedback", feedback("closed", "success", 0, 0), 200, "")
	}
	if w := h.why(id); w.Code != rollout.WhyDone {
		t.Errorf("after it updated: %+v", w)
	}
	c.want("GET", at, "", 200, describe)
	c.want("GET", at+"/deploymentBase/1", "", 410, "action_gone")
	c.want("GET", file, "", 404, "no_file")
	c.want("POST", at+"/deploymentBase/1/feedback", feedback("proceeding", "none", 0, 1), 410, "action_gone")

	// A person's wish, taken back while the device is at it: it stops; wanted again, it is another action; then it cannot stop.
	wish := func(v ota.Version) {
		t.Helper()
		if _, err := h.releases.SetDesired(t.Context(), arm, v, "op"); err != nil {
			t.Fatal(err)
		}
	}
	h.upload("1.0.0.3", swutest.Pack("sw-description", "software = {}", "c", "d"))
	c.want("PUT", at+"/configData", `{"mode":"replace","data":{"version":"1.0.0.2"}}`, 200, "")
	wish("1.0.0.3")
	c.want("GET", at, "", 200, offer(2))
	wish("")
	c.want("GET", at, "", 200, idle) // it had not looked
	wish("1.0.0.3")
	c.want("GET", at, "", 200, offer(3))
	_, _, _ = h.do(c.http, "GET", at+"/deploymentBase/3", "", c.header...)
	wish("")
	c.want("GET", at, "", 200, stop(3))
	c.want("GET", at+"/cancelAction/3", "", 200, `{"id":"3","cancelAction":{"stopId":"3"}}`)
	c.want("POST", at+"/cancelAction/3/feedback", feedback("proceeding", "none", 0, 0), 200, "")
	c.want("GET", at, "", 200, stop(3))
	for range 2 {
		c.want("POST", at+"/cancelAction/3/feedback", feedback("closed", "success", 0, 0), 200, "")
	}
	c.want("GET", at, "", 200, idle)
	wish("1.0.0.3")
	c.want("GET", at, "", 200, offer(4))
	_, _, _ = h.do(c.http, "GET", at+"/deploymentBase/4", "", c.header...)
	wish("")
	c.want("GET", at, "", 200, stop(4))
	c.want("POST", at+"/cancelAction/4/feedback", feedback("rejected", "none", 0, 0), 200, "")
	c.want("GET", at, "", 200, offer(4))
	c.want("POST", at+"/deploymentBase/4/feedback", `{"status":{"execution":"closed","result":{"finished":"failure"},"code":209,"details":["the signature is not good"]}}`, 200, "")
	c.want("GET", at, "", 200, idle)
	st, err := h.releases.State(t.Context(), arm, 1)
	if r := st.Last; err != nil || r == nil || r.Phase != ota.Failed || r.Code != 209 || r.Reason != "the signature is not good" || r.Release != "1.0.0.3" || r.Running != "1.0.0.2" {
		t.Errorf("%+v, %v", st.Last, err)
	}

	// A release without a file for SWUpdate; and a client that forgets what it did when it restarts.
	if err := h.releases.AddRelease(t.Context(), ota.Release{Species: arm.Species(), Version: "1.0.0.4"}); err != nil {
		t.Fatal(err)
	}
	wish("1.0.0.4")
	c.want("GET", at, "", 200, idle)
	if st, err := h.releases.State(t.Context(), arm, 1); err != nil || st.Last.Phase != ota.Pending || !strings.Contains(st.Last.Reason, "no file for SWUpdate") {
		t.Errorf("%+v, %v", st.Last, err)
	}
	h.upload("1.0.0.5", swutest.Pack("sw-description", "software = {}", "e", "f"))
	wish("1.0.0.5")
	c.want("GET", at, "", 200, offer(5))
	_, _, _ = h.do(c.http, "GET", at+"/deploymentBase/5", "", c.header...)
	c.want("POST", at+"/deploymentBase/5/feedback", feedback("proceeding", "none", 1, 1), 200, "")
	c.want("PUT", at+"/configData", `{"data":{"version":"1.0.0.5"}}`, 200, "")
	c.want("GET", at, "", 200, idle)
}

// certificate makes a device's certificate.
func (h *house) certificate(authority *ca.Authority, id thing.ID) tls.Certificate {
	h.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(id)}}, key)
	if err != nil {
		h.Fatal(err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		h.Fatal(err)
	}
	chain, err := authority.IssueDevice(csr, id, time.Hour)
	if err != nil {
		h.Fatal(err)
	}
	cert := tls.Certificate{PrivateKey: key}
	for _, c := range chain {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	return cert
}

// shows returns a client that shows a device's certificate.
func (h *house) shows(authority *ca.Authority, id thing.ID) *http.Client {
	h.Helper()
	cert := h.certificate(authority, id)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: h.authority.RootPool(), Certificates: []tls.Certificate{cert}}}
	h.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestWhoIsLetIn: a device comes in with its own token or certificate, and to nothing else than itself; every stranger's answer is the same, whether the robot
// exists or not, and wrong tokens are paced without locking the device out from elsewhere.
func TestWhoIsLetIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway")
	swutest.Write(t, file, []byte("a-token-of-a-gateway-nobody-guesses\n"))
	h := newHouse(t, hawkbitwire.Config{GatewayTokenFile: file})
	const other, unknown = thing.ID("amigo:arm-8"), thing.ID("amigo:arm-9")
	if err := h.robots.Register(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	token := h.token(arm)
	foreign, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain := h.api.Client()
	ask := func(client *http.Client, id thing.ID, auth string) (int, string) {
		t.Helper()
		code, body, _ := h.do(client, "GET", "/default/controller/v1/"+string(id), "", "Authorization", auth)
		return code, strings.ReplaceAll(body, string(id), "ID")
	}
	own := h.shows(h.authority, arm)
	for _, tt := range []struct {
		name   string
		client *http.Client
		id     thing.ID
		auth   string
		code   int
	}{
		{"its token", plain, arm, "TargetToken " + token, 200},
		{"its token, in other letters", plain, arm, "targettoken  " + token, 200},
		{"its certificate", own, arm, "", 200},
		{"a gateway", plain, arm, "GatewayToken a-token-of-a-gateway-nobody-guesses", 200},
		{"nothing", plain, arm, "", 401},
		{"another scheme", plain, arm, "Basic " + token, 401},
		{"no token", plain, arm, "TargetToken ", 401},
		{"another's token", plain, other, "TargetToken " + token, 401},
		{"a wrong gateway", plain, arm, "GatewayToken " + token, 401},
		{"a gateway for no robot", plain, unknown, "GatewayToken a-token-of-a-gateway-nobody-guesses", 404},
		{"another's certificate", own, other, "", 404},
		{"a certificate and another's token", h.shows(h.authority, other), arm, "TargetToken " + token, 404},
		{"a foreign certificate", h.shows(foreign, arm), arm, "", 401},
		{"no id", plain, "arm", "TargetToken " + token, 401},
	} {
		code, body := ask(tt.client, tt.id, tt.auth)
		if code != tt.code {
			t.Errorf("%s: %d %s, want %d", tt.name, code, body, tt.code)
		}
		if _, none := ask(tt.client, unknown, tt.auth); code == 401 && tt.name != "a foreign certificate" && body != none || code == 404 && body != none {
			t.Errorf("%s: %q, and of an unknown one %q", tt.name, body, none)
		}
	}
	if code, _, _ := h.do(plain, "GET", "/another/controller/v1/"+string(arm), "", "Authorization", "TargetToken "+token); code != 404 {
		t.Errorf("another tenant: %d", code)
	}

	// Guesses.
	codes := map[int]int{}
	for range 30 {
		code, _ := ask(plain, arm, "TargetToken guess")
		codes[code]++
	}
	if codes[401] != 10 || codes[429] != 20 {
		t.Errorf("guesses came to %v", codes)
	}
	if code, _ := ask(plain, arm, "TargetToken "+token); code != 429 {
		t.Errorf("the guesser's right guess: %d", code)
	}
	if code, _ := ask(own, arm, ""); code != 200 {
		t.Errorf("the device by its certificate meanwhile: %d", code)
	}
	if code, _ := ask(plain, other, "TargetToken "+h.token(other)); code != 200 {
		t.Errorf("another device of the same house meanwhile: %d", code)
	}

	// An operator makes a new token, takes one away, and revokes the device.
	again := h.token(other)
	if code, _ := ask(plain, other, "TargetToken "+again); code != 200 {
		t.Errorf("a new token: %d", code)
	}
	if code, _, _ := h.do(plain, "DELETE", "/v1/things/amigo:arm-8/device-token", "", "Role", "admin"); code != 204 {
		t.Errorf("DELETE: %d", code)
	}
	if code, _ := ask(plain, other, "TargetToken "+again); code != 401 {
		t.Errorf("a token that was taken away: %d", code)
	}
	if code, _, _ := h.do(plain, "POST", "/v1/things/amigo:arm-9/device-token", "", "Role", "admin"); code != 404 {
		t.Errorf("a token of no robot: %d", code)
	}
	if code, _, _ := h.do(plain, "POST", "/v1/things/amigo:arm-8/device-token", "", "Role", "release-manager"); code != 403 {
		t.Errorf("a token for another than an admin: %d", code)
	}
	h.revoked.Store(true)
	for name, c := range map[string]*http.Client{"certificate": own, "gateway": plain} {
		if code, body := ask(c, arm, "GatewayToken a-token-of-a-gateway-nobody-guesses"); code != 401 || !strings.Contains(body, "revoked") {
			t.Errorf("%s of a revoked device: %d %s", name, code, body)
		}
	}
}
