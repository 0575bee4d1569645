package link

import (
	"crypto/tls"
	"net/url"

	"kennel/certs/devicecert"
)

// credentials returns the TLS settings for each attempt to reach address, with the device certificate of that moment.
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
