// Package large is the way for what does not fit a broker message: the same request, by the same name, over HTTPS with the device
// certificate (design section 4). The body travels as it is; an error is a problem document with an errs kind.
//
//	POST /v1/req/<service>/<method>
//
// A robot offers the ALPN protocol of this package in its handshake; only then does the listener ask for a client certificate. A browser
// at the same address is never asked for one.
package large

import "slices"

// ALPN is the protocol that a robot offers first in its TLS handshake. The connection then uses the second, "http/1.1". A robot that offers "h2" as
// the second makes gRPC calls over it (Calls).
const ALPN = "kennel-thing"

// MaxBody is the largest body in either direction, in bytes.
const MaxBody = 1 << 20

// Path returns the path of a request.
func Path(service, method string) string { return "/v1/req/" + service + "/" + method }

// Calls reports whether a client that offers protos makes gRPC calls with its device certificate.
func Calls(protos []string) bool {
	return slices.Contains(protos, ALPN) && slices.Contains(protos, "h2") && !slices.Contains(protos, "http/1.1")
}
