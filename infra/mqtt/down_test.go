package mqtt

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestClock: a clock that lies is told from a certificate that ended.
func TestClock(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cert := &x509.Certificate{NotBefore: now, NotAfter: now.Add(time.Hour)}
	err := x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired}
	if r, advice := classify("tls", err, now.Add(-8000*time.Hour)); r != Clock || !strings.Contains(advice, "2026-11-21 12:00 UTC") {
		t.Errorf("before: %s, %s", r, advice)
	}
	if r, advice := classify("tls", err, now.Add(2*time.Hour)); r != ServerCertificate || !strings.Contains(advice, "ended 2026-11-21 13:00 UTC") {
		t.Errorf("after: %s, %s", r, advice)
	}
	if r, _ := classify("login", errors.New("EOF"), now); r != Protocol {
		t.Errorf("EOF at login: %s", r)
	}
}
