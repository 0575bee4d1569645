package ctl

import (
	"crypto/x509"
	"io"
	"net"
	"net/url"
	"os"
	"testing"

	"kennel/infra/errs"
)

// TestUnreachable: the classes of VEC-CLD-07, in words for people.
func TestUnreachable(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"no address", &net.DNSError{Name: "x.example", Err: "no such host"}, "no address for x.example; check the name and the network"},
		{"another name", x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"b"}}, Host: "a"},
			"https://a has a certificate for another name: certificate is valid for b, not a"},
		{"over", x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.IncompatibleUsage},
			"https://a has an invalid certificate: certificate specifies an incompatible key usage"},
		{"too slow", os.ErrDeadlineExceeded, "https://a did not answer in time; check the network, or try again later"},
		{"broken off", io.ErrUnexpectedEOF, "the connection to https://a broke: unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := unreachable("https://a", &url.Error{Op: "Get", URL: "https://a/v1/things", Err: tt.err})
			if err.Error() != tt.want || errs.KindOf(err) != errs.Unavailable {
				t.Errorf("got %q (%v), want %q", err, errs.KindOf(err), tt.want)
			}
		})
	}
}
