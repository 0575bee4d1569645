package broker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerauth"
	"kennel/infra/tlsserver"
)

// trust is the content of the files: our certificate and the authorities that we trust.
type trust struct {
	raw    [][]byte // the files' bytes, to see a change
	server *tls.Config
	brokerauth.Trust
}

func loadTrust(cfg Config) (*trust, error) {
	t := &trust{}
	for _, f := range []string{cfg.Cert, cfg.Key, cfg.DeviceCA, cfg.ServiceCA} {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		t.raw = append(t.raw, b)
	}
	pair, err := tls.X509KeyPair(t.raw[0], t.raw[1])
	if err != nil {
		return nil, fmt.Errorf("server certificate %s with key %s: %w", cfg.Cert, cfg.Key, err)
	}
	if t.Devices, err = pool(cfg.DeviceCA, t.raw[2]); err != nil {
		return nil, err
	}
	if t.Services, err = pool(cfg.ServiceCA, t.raw[3]); err != nil {
		return nil, err
	}
	t.server = tlsserver.Config()
	t.server.Certificates, t.server.NextProtos = []tls.Certificate{pair}, []string{"mqtt", "x-amzn-mqtt-ca"}
	t.server.ClientAuth = tls.RequestClientCert // judged by identify, so that a refusal has a reason
	return t, nil
}

func pool(file string, pem []byte) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate: want PEM", file)
	}
	return p, nil
}

// trustFiles keeps the trust of the files, reread while watch runs.
type trustFiles struct {
	cfg Config
	now atomic.Pointer[trust]
}

// watch looks at the files every ten seconds. Files that do not load, as while they are being replaced, leave the last trust in force.
func (f *trustFiles) watch(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.reload(ctx, log)
		}
	}
}

func (f *trustFiles) reload(ctx context.Context, log *slog.Logger) {
	t, err := loadTrust(f.cfg)
	if err != nil {
		log.WarnContext(ctx, "certificate files unreadable; keeping the loaded ones", logging.Err, err)
		return
	}
	for i, old := range f.now.Load().raw {
		if !bytes.Equal(old, t.raw[i]) {
			f.now.Store(t)
			log.InfoContext(ctx, "certificate files reloaded")
			return
		}
	}
}
