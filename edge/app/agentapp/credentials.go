package agentapp

import (
	"crypto/tls"
	"net/url"

	"kennel/certs/devicecert"
)

// credentials returns what each attempt to reach the broker proves itself with: the device certificate of that moment.
func credentials(id *devicecert.Identity, broker string) func() (*tls.Config, error) {
	return func() (*tls.Config, error) {
		u, err := url.Parse(broker)
		if err != nil {
			return nil, err
		}
		if _, err := id.TLSCertificate(); err != nil {
			return nil, err
		}
		return id.TLSConfig(u.Hostname()), nil
	}
}
