package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"
)

// TestRefusedForLong: a broker that refuses who we are is asked ever less, but not because its database was away for some minutes; what is not a
// refusal of us does not count.
func TestRefusedForLong(t *testing.T) {
	if d := longest(time.Minute, 15); d != time.Minute {
		t.Errorf("after 15 refusals every %v", d)
	}
	if d := longest(time.Minute, 21); d != 10*time.Minute {
		t.Errorf("after 21 refusals every %v", d)
	}
	for reason, want := range map[Reason]bool{NotAuthorised: true, OwnCertificate: true, ClientID: true, Unreachable: false, Busy: false, Lost: false, ServerCertificate: false} {
		if refused(&DownError{Reason: reason}) != want {
			t.Errorf("%s counts as a refusal of us: %v", reason, !want)
		}
	}
}

// TestRenewEndsAPause: new credentials are tried at once, whatever the pause after the last failure.
func TestRenewEndsAPause(t *testing.T) {
	tries := make(chan bool, 10)
	c, err := New(Config{URL: "ssl://127.0.0.1:1", ClientID: "vic:1", MinBackoff: time.Hour, MaxBackoff: time.Hour,
		TLS: func() (*tls.Config, error) {
			return &tls.Config{RootCAs: x509.NewCertPool(), Certificates: make([]tls.Certificate, 1)}, nil
		},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			tries <- true
			return nil, errors.New("no way")
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-tries
	c.Renew()
	<-tries // or the test's own limit ends it
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
