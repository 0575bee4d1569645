package ctl

import (
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"kennel/infra/errs"
)

// TestUnreachable: each class VEC-CLD-07 is told apart, with the name it is about.
func TestUnreachable(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"no address", &net.DNSError{Name: "x.example", Err: "no such host"}, "x.example"},
		{"another name", x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"b"}}, Host: "a"},
			"valid for b, not a"},
		{"over", x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.IncompatibleUsage},
			"incompatible key usage"},
		{"too slow", os.ErrDeadlineExceeded, "in time"},
		{"broken off", io.ErrUnexpectedEOF, "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := unreachable("https://a", &url.Error{Op: "Get", URL: "https://a/v1/things", Err: tt.err})
			if !strings.Contains(err.Error(), tt.want) || errs.KindOf(err) != errs.Unavailable {
				t.Errorf("got %q (%v), want %q", err, errs.KindOf(err), tt.want)
			}
		})
	}
}
