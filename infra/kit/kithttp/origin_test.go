package kithttp

import (
	"crypto/tls"
	"net/http/httptest"
	"testing"

	"kennel/infra/errs"
)

// TestSameOrigin (issue 16, finding 8): a form from another host, port or scheme is refused, by what every browser says of it.
func TestSameOrigin(t *testing.T) {
	const site = "kennel.example:8443"
	for _, tt := range []struct {
		name, method, host, peer string
		plain                    bool
		head                     map[string]string
		ok                       bool
	}{
		{"our page", "POST", site, "192.0.2.1:5", false, map[string]string{"Origin": "https://kennel.example:8443", "Sec-Fetch-Site": "same-origin"}, true},
		{"our page that tells no address", "POST", site, "192.0.2.1:5", false, map[string]string{"Origin": "null", "Sec-Fetch-Site": "same-origin"}, true},
		{"our page, older browser", "POST", site, "192.0.2.1:5", false, map[string]string{"Origin": "https://kennel.example:8443"}, true},
		{"our page, no origin", "POST", site, "192.0.2.1:5", false, map[string]string{"Referer": "https://kennel.example:8443/things"}, true},
		{"behind what ends TLS", "POST", site, "10.0.0.1:5", true, map[string]string{"Origin": "https://kennel.example:8443"}, true},
		{"another scheme", "POST", site, "192.0.2.1:5", false, map[string]string{"Origin": "http://kennel.example:8443"}, false},
		{"another scheme behind what ends TLS", "POST", site, "10.0.0.1:5", true, map[string]string{"Origin": "http://kennel.example:8443"}, false},
		{"another scheme by referrer", "PUT", site, "192.0.2.1:5", false, map[string]string{"Referer": "http://kennel.example:8443/x"}, false},
		{"another port", "POST", site, "192.0.2.1:5", false, map[string]string{"Origin": "https://kennel.example"}, false},
		{"another port by referrer", "POST", site, "192.0.2.1:5", false, map[string]string{"Referer": "https://kennel.example/"}, false},
		{"another host", "DELETE", site, "192.0.2.1:5", false, map[string]string{"Origin": "https://evil.example"}, false},
		{"another site", "POST", site, "192.0.2.1:5", false, map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		{"a sandbox", "POST", site, "192.0.2.1:5", false, map[string]string{"Origin": "null"}, false},
		{"reading", "GET", site, "192.0.2.1:5", false, map[string]string{"Origin": "https://evil.example"}, true},
		{"a program", "POST", site, "192.0.2.1:5", false, nil, true},
		{"this machine", "POST", "127.0.0.1:8080", "127.0.0.1:5", true, map[string]string{"Origin": "http://127.0.0.1:8080"}, true},
		{"this machine, another port", "POST", "127.0.0.1:8080", "127.0.0.1:5", true, map[string]string{"Origin": "http://127.0.0.1:9090"}, false},
		{"this machine, another scheme", "POST", "localhost:8080", "127.0.0.1:5", true, map[string]string{"Origin": "https://localhost:8080"}, false},
	} {
		r := httptest.NewRequest(tt.method, "/x", nil)
		r.Host, r.RemoteAddr = tt.host, tt.peer
		if !tt.plain {
			r.TLS = &tls.ConnectionState{}
		}
		for k, v := range tt.head {
			r.Header.Set(k, v)
		}
		if err := SameOrigin(r); (err == nil) != tt.ok || err != nil && errs.CodeOf(err) != "cross_site" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
