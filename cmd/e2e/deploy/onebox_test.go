package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
)

// TestOneCommand: five new robots are present and on the page; after Ctrl-C no process is left; the next start continues with the same robots.
func TestOneCommand(t *testing.T) {
	h := housetest.New(t, "-robots", "5")
	h.Start()
	first := h.AwaitPresent(5)

	page := consolePage(t, h)
	for _, id := range first {
		if !strings.Contains(page, id) {
			t.Errorf("the fleet page does not show %s", id)
		}
	}
	var shown struct {
		Status struct {
			Loop struct {
				Steps   uint64  `json:"steps"`
				LateP99 float64 `json:"late_p99_us"`
				StepP99 float64 `json:"step_p99_us"`
			} `json:"loop"`
		} `json:"status"`
	}
	housetest.Await(t, time.Minute, "loop statistics in robots show", func() error {
		if err := h.CtlJSON(&shown, "robots", "show", first[0]); err != nil {
			return err
		}
		if shown.Status.Loop.Steps == 0 {
			return fmt.Errorf("%+v", shown)
		}
		return nil
	})
	out, err := h.Ctl("robots", "show", first[0])
	if err != nil || !strings.Contains(string(out), "p99") {
		t.Errorf("robots show: %v\n%s", err, out)
	}
	out, err = h.Ctl("doctor", first[0])
	if err != nil && !strings.HasSuffix(strings.TrimSpace(err.Error()), "failed checks: loop") { // this machine has other work
		t.Errorf("doctor: %v\n%s", err, out)
	}

	if code := h.Stop(); code != 0 {
		t.Errorf("Ctrl-C: exit code %d", code)
	}
	if left := housetest.Survivors(h.Dir); len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "run/lock")); err == nil {
		t.Error("the lock stayed")
	}
	h.Start()
	if again := h.AwaitPresent(5); !slices.Equal(first, again) {
		t.Errorf("robots %v became %v", first, again)
	}
}

// consolePage signs in to the console as a person does for the first time, chooses another password, and returns the fleet page. The machine's
// token file gets a new session, so kennelctl keeps working.
func consolePage(t *testing.T, h *housetest.House) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Timeout: 10 * time.Second}
	base := h.Ready.Endpoints["console"]
	var pw struct {
		Operator struct{ Email, Password string } `json:"operator"`
	}
	b, err := os.ReadFile(h.Ready.Files["passwords"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &pw); err != nil {
		t.Fatal(err)
	}
	send := func(path string, v url.Values) (int, string) {
		t.Helper()
		req, err := http.NewRequest("GET", base+path, nil)
		if v != nil {
			req, err = http.NewRequest("POST", base+path, strings.NewReader(v.Encode()))
		}
		if err != nil {
			t.Fatal(err)
		}
		if v != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Sec-Fetch-Site", "same-origin")
			req.Header.Set("Origin", base)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	send("/login", url.Values{"email": {pw.Operator.Email}, "password": {pw.Operator.Password}})
	if status, _ := send("/", nil); status != http.StatusForbidden {
		t.Errorf("a first password, which others have seen, opens the console: %d", status)
	}
	before := h.Operator(t)
	if status, body := send("/account/password",
		url.Values{"old": {pw.Operator.Password}, "password": {"a password of my own"}, "again": {"a password of my own"}}); status != http.StatusOK {
		t.Fatalf("first password not changed: %d %s", status, body)
	}
	housetest.Await(t, 10*time.Second, "the token file to hold a session that is good", func() error {
		if code, b := h.Operator(t).Try("GET", "/v1/me", nil); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, b)
		}
		return nil
	})
	if code, _ := before.Try("GET", "/v1/me", nil); code != http.StatusUnauthorized || h.Operator(t).Token == before.Token {
		t.Errorf("the session from before the change is good still: %d", code)
	}
	if info, err := os.Stat(h.Ready.Files["operator_token"]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("token file: %v, %v", info.Mode(), err)
	}
	if out, err := h.Ctl("robots", "list"); err != nil {
		t.Errorf("kennelctl after the change: %v\n%s", err, out)
	}
	status, body := send("/", nil)
	if status != http.StatusOK {
		t.Fatalf("fleet page: %d\n%s", status, body)
	}
	return body
}

// TestPortInUse: the error names the port and the flag that changes it.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", freeaddr.For(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, part := range []string{"api", "mqtt", "postgres"} {
		t.Run(part, func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"onebox", "-data", dir, "-robots", "0"}, housetest.ListenArgs(t)...)
			args = append(args, "-listen", part+"="+l.Addr().String())
			out, err := exec.Command(filepath.Join(housetest.Bin, "kenneld"), args...).CombinedOutput()
			if err == nil {
				t.Fatal("started on a port in use")
			}
			if s := string(out); !strings.Contains(s, l.Addr().String()) || !strings.Contains(s, "-listen "+part+"=") {
				t.Errorf("want the address and the flag, got %s", s)
			}
		})
	}
}

// TestSecondStartIsRefused: one data folder, one kenneld.
func TestSecondStartIsRefused(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	out, err := exec.Command(filepath.Join(housetest.Bin, "kenneld"), append([]string{"onebox", "-data", h.Dir}, housetest.ListenArgs(t)...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprint(h.Cmd.Process.Pid)) {
		t.Errorf("want a refusal that names process %d, got %v: %s", h.Cmd.Process.Pid, err, out)
	}
}

// TestStrangers: a client without or with a foreign certificate is turned away from the broker, and enrolment with a wrong secret is refused; each
// with a reason (what must hold 5; the broker's and certs' own tests walk all cases).
func TestStrangers(t *testing.T) {
	h := housetest.New(t, "-robots", "1")
	h.Start()
	id := h.AwaitPresent(1)[0]
	pem, err := os.ReadFile(h.Ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate in root_ca")
	}
	u, err := url.Parse(h.Ready.Endpoints["mqtt"])
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: pool, ServerName: "localhost"})
	if err == nil {
		// TLS 1.3 tells the client only at its first read.
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = conn.Write([]byte{0x10, 0x0c, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 0})
		var b [4]byte
		n, rerr := conn.Read(b[:])
		if rerr == nil && n >= 4 && b[0] == 0x20 && b[3] == 0 {
			t.Error("the broker let a client in without a certificate")
		}
		conn.Close()
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}, Timeout: 10 * time.Second}
	resp, err := c.Post(h.Ready.Endpoints["api"]+"/v1/enroll", "application/json",
		strings.NewReader(fmt.Sprintf(`{"thing":%q,"secret":"wrong","csr":"x"}`, id)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode < 400 || resp.StatusCode >= 500 || !strings.Contains(string(b), "error") {
		t.Errorf("enrolment with rubbish: %s %s", resp.Status, b)
	}
}
