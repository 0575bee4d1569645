package hostile

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// TestMalformedInput (issue: what must hold 6), from outside: malformed input on the public wires
// is refused with a reason, and the services keep running. (Each codec and handler has its own fuzz
// target; robots' batches are poisoned in edge/agent/das and cloud/telemetry/das.)
func TestMalformedInput(t *testing.T) {
	h := housetest.New(t, "-robots", "1")
	h.Start()
	id := h.AwaitPresent(1)[0]
	token, err := os.ReadFile(h.Ready.Files["operator_token"])
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.ReadFile(h.Ready.Files["root_ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	tlsConfig := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	weakSuites(t, h, tlsConfig)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig}, Timeout: 30 * time.Second}

	bodies := map[string]string{
		"empty": "", "half": `{"thing":`, "array": `[1,2]`, "number": "7", "wrong types": `{"thing":1,"secret":{},"csr":[],"set":3,"email":{},"version":1}`,
		"unknown fields": `{"surprise":true}`, "deep": strings.Repeat("[", 100_000), "nul": "{\"thing\":\"\x00\"}", "large": `{"thing":"` + strings.Repeat("x", 4<<20) + `"}`,
	}
	for _, ep := range []struct{ method, path string }{
		{"POST", "/v1/enroll"}, {"POST", "/v1/renew"}, {"POST", "/v1/login"}, {"POST", "/v1/things"},
		{"PATCH", "/v1/things/" + id + "/jdocs/vic.RobotSettings"}, {"PUT", "/v1/things/" + id + "/ota/desired"},
		{"PATCH", "/v1/things/cat:1/jdocs/x"},
	} {
		for name, body := range bodies {
			req, err := http.NewRequestWithContext(t.Context(), ep.method, h.Ready.Endpoints["api"]+ep.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
			resp, err := c.Do(req)
			if err != nil {
				t.Errorf("%s %s, %s: %v", ep.method, ep.path, name, err)
				continue
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			var problem struct{ Error, Kind string }
			if resp.StatusCode < 400 || resp.StatusCode >= 500 || json.Unmarshal(b, &problem) != nil || problem.Error == "" || problem.Kind == "internal" {
				t.Errorf("%s %s, %s: %s %.200s", ep.method, ep.path, name, resp.Status, b)
			}
		}
	}

	// Rubbish on both TLS ports, before and after the handshake.
	noise := make([]byte, 64<<10)
	_, _ = rand.Read(noise)
	for _, part := range []string{"mqtt", "api"} {
		_, addr, _ := strings.Cut(h.Ready.Endpoints[part], "://")
		for range 5 {
			if conn, err := tls.Dial("tcp", addr, tlsConfig); err == nil {
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = conn.Write(noise)         // the peer may have hung up
				_, _ = io.Copy(io.Discard, conn) // until it does
				conn.Close()
			}
			if resp, err := http.Post("http://"+addr+"/v1/enroll", "application/json", bytes.NewReader(noise)); err == nil {
				resp.Body.Close()
			}
		}
	}
	var report struct{ Verdict string }
	if err := h.CtlJSON(&report, "doctor", id); report.Verdict == "" {
		t.Errorf("after the noise: %v", err)
	}
	if left := h.PartPid("broker"); left != h.Ready.Pids["broker"] {
		t.Errorf("the broker was restarted: pid %d became %d", h.Ready.Pids["broker"], left)
	}
}

// weakSuites asks each port for a suite of CBC, which is refused (issue 31.7), and for one of GCM.
func weakSuites(t *testing.T, h *housetest.House, trust *tls.Config) {
	t.Helper()
	for _, port := range []string{"api", "mqtt", "robots"} {
		_, addr, _ := strings.Cut(h.Ready.Endpoints[port], "://")
		conf := trust.Clone()
		conf.MaxVersion, conf.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}
		if conn, err := tls.Dial("tcp", addr, conf); err == nil || !strings.Contains(err.Error(), "handshake failure") {
			t.Errorf("%s at %s with a suite of CBC: %v", port, addr, err)
			if err == nil {
				_ = conn.Close() // it should not be there
			}
		}
		conf.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
		conn, err := tls.Dial("tcp", addr, conf)
		if err != nil {
			t.Errorf("%s at %s: %v", port, addr, err)
			continue
		}
		_ = conn.Close() // nothing was said
	}
}
