package identity

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kennel/certs/ca"
	"kennel/infra/telemetry"
	"kennel/infra/webcert"
)

// ServerTTL is the life of the certificates that our own authority gives our listeners; they are renewed on the way.
const ServerTTL = 30 * 24 * time.Hour

// Web makes the certificates of listeners.
type Web struct {
	Authority *ca.Authority
	Ready     *telemetry.Readiness // is told of certificates that end
	Log       *slog.Logger
}

// Certificate returns a listener's certificate: from files, read again when they change, or issued and renewed by our authority. what names the settings.
func (w Web) Certificate(what, certFile, keyFile string, names []string) (webcert.Get, error) {
	if certFile != "" {
		files, err := webcert.Open(certFile, keyFile, w.Log)
		if err != nil {
			return nil, fmt.Errorf("%s.cert_file: %w", what, err)
		}
		w.Ready.Add(telemetry.Check{Name: what + "_certificate", Ask: files.Check})
		return files.Get, nil
	}
	if len(names) == 0 {
		return nil, errors.New(what + ".names is empty: want host names and addresses")
	}
	issued, err := ca.NewRenewing(func() (ca.Pair, error) { return w.Authority.IssueServer(names, ServerTTL) })
	if err != nil {
		return nil, fmt.Errorf("%s.names: %w", what, err)
	}
	w.Ready.Add(telemetry.Check{Name: what + "_certificate", Ask: webcert.Ending("of our own authority for "+names[0], issued.GetCertificate)})
	return issued.GetCertificate, nil
}

// ACMEConfig says which authority issues the certificates of public names.
type ACMEConfig = webcert.ACMEConfig

// ACME returns what gets the certificates of public names; nil without an authority in cfg.
func (w Web) ACME(cfg ACMEConfig) (*webcert.ACME, error) {
	if cfg.Directory == "" {
		return nil, nil
	}
	a, err := webcert.NewACME(cfg, w.Log)
	if err != nil {
		return nil, fmt.Errorf("api.%w", err)
	}
	w.Ready.Add(telemetry.Check{Name: "acme", Ask: a.Check})
	return a, nil
}
