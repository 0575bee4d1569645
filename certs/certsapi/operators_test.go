package certsapi_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/csv"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/certs"
	"kennel/certs/certsapi"
	"kennel/certs/certsclient"
	"kennel/certs/certspg"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

var admin = auth.Caller{Role: auth.Admin, Name: "ada@example.com"}

// do makes one request as a caller and decodes a good answer into out, if there is one.
func (a *api) do(t testing.TB, as auth.Caller, method, path, contentType, body string, out any) (int, string) {
	t.Helper()
	a.caller = as
	req, err := http.NewRequestWithContext(t.Context(), method, a.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := a.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil && resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(b, out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, b)
		}
	}
	return resp.StatusCode, string(b)
}

// order is do with JSON that must succeed.
func (a *api) order(t testing.TB, as auth.Caller, method, path, body string, out any) {
	t.Helper()
	if code, answer := a.do(t, as, method, path, "application/json", body, out); code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
}

func (a *api) client() *certsclient.Client {
	a.caller = auth.Caller{} // a robot has no account
	return &certsclient.Client{BaseURL: a.URL, HTTP: a.Client()}
}

func TestApprovalOverHTTP(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	csr, _ := request(t, vic)
	ask := func() (certsclient.Answer, error) {
		return a.client().Enroll(t.Context(), certsclient.Enroll{Thing: string(vic), CSR: csr})
	}
	_, err := ask()
	if errs.KindOf(err) != errs.Unavailable || errs.CodeOf(err) != certsclient.CodeWaiting || errs.RetryOf(err) != 30*time.Second {
		t.Fatalf("got %v, retry %v", err, errs.RetryOf(err))
	}
	if code, body := a.do(t, auth.Caller{}, "POST", "/v1/enroll", "application/json", fmt.Sprintf(`{"thing":%q,"csr":%q}`, vic, csr),
		nil); code != http.StatusAccepted || !strings.Contains(body, `"fingerprint":"`) {
		t.Errorf("on the wire: %d %s", code, body)
	}
	var list []certsapi.Waiting
	support := auth.Caller{Role: auth.Support, Name: "sue@example.com"}
	a.order(t, support, "GET", "/v1/waiting", "", &list)
	if len(list) != 1 || list[0].Thing != vic || !strings.Contains(errs.Public(err), list[0].Fingerprint) || list[0].Times != 2 ||
		!strings.HasPrefix(list[0].Addr, "127.0.0.1:") {
		t.Fatalf("waiting %+v; the robot shows %v", list, err)
	}
	if code, body := a.do(t, support, "POST", "/v1/waiting/vic:00e20100/approve", "application/json", `{"fingerprint":"0000-0000-0000"}`,
		nil); code != http.StatusNotFound || !strings.Contains(body, "not_waiting") {
		t.Errorf("another fingerprint: %d %s", code, body)
	}
	a.order(t, support, "POST", "/v1/waiting/vic:00e20100/approve", fmt.Sprintf(`{"fingerprint":%q}`, list[0].Fingerprint), nil)
	if answer, err := ask(); err != nil || answer.MQTT == "" {
		t.Errorf("after approval: %v", err)
	}
	other, _ := request(t, "pleo:1")
	_, err = a.client().Enroll(t.Context(), certsclient.Enroll{Thing: "pleo:1", CSR: other})
	if errs.CodeOf(err) != certsclient.CodeWaiting {
		t.Fatal(err)
	}
	a.order(t, support, "GET", "/v1/waiting", "", &list)
	a.order(t, support, "POST", "/v1/waiting/pleo:1/refuse", fmt.Sprintf(`{"fingerprint":%q,"reason":"not ours"}`, list[0].Key), nil)
	_, err = a.client().Enroll(t.Context(), certsclient.Enroll{Thing: "pleo:1", CSR: other})
	if errs.KindOf(err) != errs.Denied || errs.CodeOf(err) != "approval_refused" {
		t.Errorf("refused: %v", err)
	}
	want := []string{"sue@example.com thing.approve vic:00e20100", "sue@example.com thing.approve vic:00e20100", "sue@example.com thing.refuse pleo:1"}
	if !slices.Equal(a.audit, want) {
		t.Errorf("audit %q, want %q", a.audit, want)
	}
}

func TestReleaseAndRevokeOverHTTP(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	var reg certsapi.Registration
	a.order(t, admin, "POST", "/v1/things", `{"thing":"vic:00e20100"}`, &reg)
	csr, _ := request(t, vic)
	first, err := a.client().Enroll(t.Context(), certsclient.Enroll{Thing: string(vic), Secret: reg.Secret, CSR: csr})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{}`, `{"reason":" "}`, `{"reason":"` + strings.Repeat("x", 401) + `"}`, `{"reason":"a\u0000b"}`} {
		for _, what := range []string{"revoke", "release"} {
			if code, answer := a.do(t, admin, "POST", "/v1/things/vic:00e20100/"+what, "application/json", body,
				nil); code != http.StatusBadRequest || !strings.Contains(answer, `"code":"reason"`) {
				t.Errorf("%s with %.40s: %d %s", what, body, code, answer)
			}
		}
	}
	var n struct{ Revoked int }
	a.order(t, admin, "POST", "/v1/things/vic:00e20100/revoke", `{"reason":"stolen"}`, &n)
	if n.Revoked != 1 {
		t.Errorf("%d revoked", n.Revoked)
	}
	if _, err := a.client().Renew(t.Context(), certsclient.Renew{Certificate: first.Certificate, CSR: csr}); errs.KindOf(err) != errs.Denied ||
		errs.CodeOf(err) != "revoked" {
		t.Errorf("renewal: %v", err)
	}
	var fresh certsapi.Registration
	a.order(t, admin, "POST", "/v1/things/vic:00e20100/release", `{"reason":"found"}`, &fresh)
	other, _ := request(t, vic)
	if _, err := a.client().Enroll(t.Context(), certsclient.Enroll{Thing: string(vic), Secret: fresh.Secret, CSR: other}); err != nil {
		t.Errorf("after release: %v", err)
	}
	if code, _ := a.do(t, admin, "POST", "/v1/things/vic:99999999/release", "application/json", `{"reason":"x"}`, nil); code != http.StatusNotFound {
		t.Errorf("released an unknown thing: %d", code)
	}
	var rows []certsapi.Revocation
	a.order(t, auth.Caller{Role: auth.Viewer}, "GET", "/v1/revocations?limit=5", "", &rows)
	if len(rows) != 1 || rows[0].Thing != vic || rows[0].Reason != "stolen" || rows[0].Revoked.IsZero() {
		t.Errorf("revocations %+v", rows)
	}
	a.order(t, auth.Caller{Role: auth.Viewer}, "GET", "/v1/revocations?before="+rows[0].Revoked.Format(time.RFC3339Nano), "", &rows)
	if len(rows) != 0 {
		t.Errorf("before the first: %+v", rows)
	}
	for _, q := range []string{"limit=0", "limit=x", "limit=1001", "before=yesterday"} {
		if code, _ := a.do(t, admin, "GET", "/v1/revocations?"+q, "", "", nil); code != http.StatusBadRequest {
			t.Errorf("%s: %d", q, code)
		}
	}
	want := []string{"thing.register vic:00e20100", "thing.revoke vic:00e20100", "thing.release vic:00e20100", "thing.release vic:99999999"}
	for i := range want {
		want[i] = "ada@example.com " + want[i]
	}
	if !slices.Equal(a.audit, want) {
		t.Errorf("audit %q, want %q", a.audit, want)
	}
}

// An owner releases robots of theirs; another's answers as one that does not exist.
func TestOwnersRelease(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	a.owns = func(account string, id thing.ID) (bool, error) { return account == "acc-1" && id == vic, nil }
	for _, id := range []string{"vic:00e20100", "vic:00e20101"} {
		a.order(t, admin, "POST", "/v1/things", `{"thing":"`+id+`"}`, nil)
	}
	owner := auth.Caller{Role: auth.Owner, Account: "acc-1", Name: "olga@example.com"}
	var reg certsapi.Registration
	a.order(t, owner, "POST", "/v1/things/vic:00e20100/release", `{"reason":"new board"}`, &reg)
	if reg.Secret == "" {
		t.Error("no secret")
	}
	code, others := a.do(t, owner, "POST", "/v1/things/vic:00e20101/release", "application/json", `{"reason":"mine now"}`, nil)
	_, unknown := a.do(t, owner, "POST", "/v1/things/vic:00e20109/release", "application/json", `{"reason":"mine now"}`, nil)
	if code != http.StatusNotFound || strings.ReplaceAll(others, "vic:00e20101", "X") != strings.ReplaceAll(unknown, "vic:00e20109", "X") {
		t.Errorf("another's robot: %d %s; unknown: %s", code, others, unknown)
	}
	if n := len(a.audit); n != 3 || !strings.HasSuffix(a.audit[2], " thing.release vic:00e20100") || strings.HasPrefix(a.audit[2], "ada@") {
		t.Errorf("audit %q", a.audit)
	}
}

// The whole table, allowed and refused, each also without a line in the audit log.
func TestWhoMayDoWhat(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	staff, support, admins := auth.Staff, []auth.Role{auth.Support, auth.Admin}, auth.Admins
	roles := []auth.Role{"", auth.Thing, auth.Owner, auth.Viewer, auth.Support, auth.ReleaseManager, auth.Admin}
	for _, c := range []struct {
		method, path, body string
		roles              []auth.Role
	}{
		{"POST", "/v1/things/vic:1/revoke", `{"reason":"x"}`, admins},
		{"POST", "/v1/things/vic:1/release", `{"reason":"x"}`, append([]auth.Role{auth.Owner}, admins...)},
		{"GET", "/v1/revocations", "", staff},
		{"GET", "/v1/waiting", "", staff},
		{"POST", "/v1/waiting/vic:1/approve", `{"fingerprint":"x"}`, support},
		{"POST", "/v1/waiting/vic:1/refuse", `{"fingerprint":"x","reason":"x"}`, support},
		{"GET", "/v1/batches", "", staff},
		{"PUT", "/v1/batches/lot", `{"bundle":"x"}`, admins},
		{"POST", "/v1/batches/lot/disable", `{"reason":"x"}`, admins},
		{"POST", "/v1/batches/lot/enable", `{}`, admins},
		{"GET", "/v1/factory-certificates", "", staff},
		{"POST", "/v1/factory-certificates/revoke", `{"certificate_id":"ab","reason":"x"}`, admins},
		{"POST", "/v1/things/batch", "vic:1\n", admins},
	} {
		kind := "application/json"
		if strings.HasSuffix(c.path, "/batch") {
			kind = "text/csv"
		}
		for _, role := range roles {
			code, body := a.do(t, auth.Caller{Role: role, Account: "acc", Name: "x"}, c.method, c.path, kind, c.body, nil)
			allowed := code != http.StatusUnauthorized && code != http.StatusForbidden
			if allowed != slices.Contains(c.roles, role) || code >= 500 {
				t.Errorf("%s %s as %q: %d %s", c.method, c.path, role, code, body)
			}
		}
		if c.method != "GET" {
			a.noAudit = errors.New("disk full")
			if code, _ := a.do(t, admin, c.method, c.path, kind, c.body, nil); code != http.StatusInternalServerError {
				t.Errorf("%s %s without an audit line: %d", c.method, c.path, code)
			}
			a.noAudit = nil
		}
	}
}

func TestDeliveryOverHTTP(t *testing.T) {
	store := certspg.New(pgtest.New(t))
	a := newAPI(t, store)
	const n = 2000
	var file strings.Builder
	for i := range n {
		fmt.Fprintf(&file, "vic:%08x,,lot %d\n", i, i%7)
	}
	code, body := a.do(t, admin, "POST", "/v1/things/batch", "text/csv; charset=utf-8", file.String(), nil)
	if code != http.StatusOK {
		t.Fatalf("%d %.300s", code, body)
	}
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != n+1 || !slices.Equal(rows[0], []string{"thing", "secret"}) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	last := rows[n]
	csr, _ := request(t, thing.ID(last[0]))
	if _, err := a.client().Enroll(t.Context(), certsclient.Enroll{Thing: last[0], Secret: last[1], CSR: csr}); err != nil {
		t.Errorf("%s with its secret: %v", last[0], err)
	}
	if len(a.steps.all) != n+1 {
		t.Errorf("%d steps recorded, want one for each thing and one enrolment", len(a.steps.all))
	}
	// Again: one has enrolled since, so nothing is done, and the line says so.
	code, body = a.do(t, admin, "POST", "/v1/things/batch", "text/csv", file.String(), nil)
	var problem certsapi.DeliveryProblem
	if err := json.Unmarshal([]byte(body), &problem); err != nil || code != http.StatusBadRequest || problem.Code != "csv_refused" ||
		len(problem.Lines) != 1 || problem.Lines[0].Line != n {
		t.Errorf("again: %d %.300s", code, body)
	}
	if code, _ := a.do(t, admin, "POST", "/v1/things/batch", "application/json", `{}`, nil); code != http.StatusBadRequest {
		t.Errorf("JSON: %d", code)
	}
	if code, body := a.do(t, admin, "POST", "/v1/things/batch", "text/csv", strings.Repeat("x", certs.MaxCSV+2), nil); code != http.StatusBadRequest {
		t.Errorf("oversize: %d %.200s", code, body)
	}
}

// lot is a manufacturer over HTTP: its bundle as PEM, and robots with their factory certificates.
type lot struct {
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

func newLot(t testing.TB) lot {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l := lot{&x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Factory"}, NotBefore: time.Now().AddDate(-9, 0, 0),
		NotAfter: time.Now().AddDate(99, 0, 0),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, key}
	der, err := x509.CreateCertificate(rand.Reader, l.ca, l.ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if l.ca, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return l
}

func certPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (l lot) born(t testing.TB, id thing.ID, serial int64) (string, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(serial),
		Subject:   pkix.Name{CommonName: string(id), Organization: []string{"Anki Inc."}},
		NotBefore: time.Now().AddDate(-8, 0, 0), NotAfter: time.Date(2118, 1, 1, 0, 0, 0, 0, time.UTC)}, l.ca, key.Public(), l.key)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM(der), key
}

func TestFactoryOverHTTP(t *testing.T) {
	a := newAPI(t, certspg.New(pgtest.New(t)))
	l := newLot(t)
	put, err := json.Marshal(certsapi.Batch{Bundle: certPEM(l.ca.Raw)})
	if err != nil {
		t.Fatal(err)
	}
	a.order(t, admin, "PUT", "/v1/batches/lot-2018", string(put), nil)
	cert, key := l.born(t, vic, 0xabc)
	enroll := func() error {
		csr, _ := request(t, vic)
		block, _ := pem.Decode([]byte(csr))
		proof, err := certs.FactoryProof(key, block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.client().Enroll(t.Context(), certsclient.Enroll{Thing: string(vic), CSR: csr, Factory: cert, FactoryProof: proof})
		return err
	}
	if err := enroll(); err != nil {
		t.Fatal(err)
	}
	var batches []certsapi.Batch
	a.order(t, admin, "POST", "/v1/batches/lot-2018/disable", `{"reason":"key leaked"}`, nil)
	a.order(t, auth.Caller{Role: auth.Viewer}, "GET", "/v1/batches", "", &batches)
	if len(batches) != 1 || batches[0].Disabled == nil || batches[0].Reason != "key leaked" || batches[0].Organization != "Anki Inc." ||
		batches[0].Bundle != certPEM(l.ca.Raw) {
		t.Errorf("batches %+v", batches)
	}
	if err := enroll(); errs.KindOf(err) != errs.Denied || errs.CodeOf(err) != "revoked" {
		t.Errorf("disabled: %v", err)
	}
	if got := a.steps.all[len(a.steps.all)-1]; got.Code != "batch_disabled" || !strings.Contains(got.Reason, "key leaked") {
		t.Errorf("recorded %+v", got)
	}
	a.order(t, admin, "POST", "/v1/batches/lot-2018/enable", "", nil)
	if err := enroll(); err != nil {
		t.Errorf("enabled: %v", err)
	}
	a.order(t, admin, "POST", "/v1/factory-certificates/revoke", `{"certificate_id":"0ABC","reason":"cloned"}`, nil)
	if err := enroll(); errs.CodeOf(err) != "revoked" {
		t.Errorf("revoked: %v", err)
	}
	var revoked []certsapi.FactoryCertificate
	a.order(t, auth.Caller{Role: auth.Viewer}, "GET", "/v1/factory-certificates", "", &revoked)
	if len(revoked) != 1 || revoked[0].CertificateID != "abc" || revoked[0].Reason != "cloned" {
		t.Errorf("revoked %+v", revoked)
	}
	if code, body := a.do(t, admin, "PUT", "/v1/batches/lot-2018", "application/json", `{"name":"another","bundle":""}`,
		nil); code != http.StatusBadRequest {
		t.Errorf("two names: %d %s", code, body)
	}
	if code, _ := a.do(t, admin, "POST", "/v1/batches/none/enable", "", "", nil); code != http.StatusNotFound {
		t.Errorf("enabled an unknown batch: %d", code)
	}
}

// FuzzOrders: whatever an operator's program sends, the answer is JSON or CSV of ours, and nothing breaks.
func FuzzOrders(f *testing.F) {
	f.Add("POST /v1/things/vic:1/revoke", []byte(`{"reason":"x"}`))
	f.Add("PUT /v1/batches/lot", []byte(`{"bundle":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}`))
	f.Add("POST /v1/factory-certificates/revoke", []byte(`{"certificate_id":"\u0000","reason":"x"}`))
	f.Add("POST /v1/waiting/vic:1/approve", []byte(`{"fingerprint":"0000"}`))
	f.Add("POST /v1/things/batch", []byte("vic:1,\x00\n"))
	a := newAPI(f, certspg.New(pgtest.New(f)))
	a.caller = admin
	paths := []string{"POST /v1/things/vic:1/revoke", "POST /v1/things/vic:1/release", "PUT /v1/batches/lot", "POST /v1/batches/lot/disable",
		"POST /v1/factory-certificates/revoke",
		"POST /v1/waiting/vic:1/approve", "POST /v1/waiting/vic:1/refuse", "POST /v1/things/batch"}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if !slices.Contains(paths, path) {
			path = paths[len(path)%len(paths)]
		}
		method, path, _ := strings.Cut(path, " ")
		req, err := http.NewRequestWithContext(context.Background(), method, a.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if strings.HasSuffix(path, "/batch") {
			req.Header.Set("Content-Type", "text/csv")
		}
		resp, err := a.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 500 {
			t.Fatalf("%s %s %q: %d %s, %v", method, path, body, resp.StatusCode, b, err)
		}
	})
}
