package front

import (
	"net"
	"net/netip"
	"slices"

	"github.com/pires/go-proxyproto"

	"kennel/infra/errs"
)

// proxied hears, from a proxy that passes TLS through, who called it (PROXY protocol, version 1 or 2). Without that every robot and person
// would have the proxy's address, and the limits of attempts by address would be one for all of them. Only networks may say so: from
// anybody else such words are no TLS, and end the connection.
func proxied(l net.Listener, networks []string) (net.Listener, error) {
	trusted, err := ParseProxies(networks)
	if err != nil || len(trusted) == 0 {
		return l, err
	}
	return &proxyproto.Listener{Listener: l, ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		from, err := netip.ParseAddrPort(o.Upstream.String())
		if err != nil || !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) }) {
			return proxyproto.SKIP, nil
		}
		return proxyproto.USE, nil
	}}, nil
}

// ParseProxies reads api.proxies (kind Invalid).
func ParseProxies(networks []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(networks))
	for _, n := range networks {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, errs.New(errs.Invalid, "api.proxies %.80q: want a network such as 10.0.0.0/24", n)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}
