package agentapp

import (
	"crypto/tls"
	"net/url"

	"kennel/certs/devicecert"
)

// credentials returns what each attempt to reach address proves itself with: the device certificate of that moment.
func credentials(id *devicecert.Identity, address string) func() (*tls.Config, error) {
	return func() (*tls.Config, error) {
		u, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		if _, err := id.TLSCertificate(); err != nil {
			return nil, err
		}
		return id.TLSConfig(u.Hostname()), nil
	}
}
