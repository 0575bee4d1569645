package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"kennel/infra/errs"
)

// Guard says which addresses may be called: public ones, and those that the operator of the cloud allowed by name of their network. Without
// it a webhook would be a way into the cloud's own network.
type Guard struct{ allow []netip.Prefix }

// NewGuard reads networks such as 10.1.0.0/16 that may be called although they are not public.
func NewGuard(allow []string) (Guard, error) {
	var g Guard
	for _, s := range allow {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return Guard{}, errs.New(errs.Invalid, "network %.60q: want one such as 10.1.0.0/16 or fd00::/8", s)
		}
		g.allow = append(g.allow, p.Masked())
	}
	return g, nil
}

// special are networks that are not the public internet, beyond those that netip.Addr knows by name, and those that lead to another address
// in disguise (IANA special-purpose registries).
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(all))
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// Check refuses an address that may not be called.
func (g Guard) Check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	for _, p := range g.allow {
		if p.Contains(a) {
			return nil
		}
	}
	public := a.IsValid() && a.IsGlobalUnicast() && !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast()
	for _, p := range special {
		public = public && !p.Contains(a)
	}
	if !public {
		return fmt.Errorf("address %s is not a public one; to allow its network use kenneld onebox -webhook-allow NETWORK, or the setting webhooks.allow", a)
	}
	return nil
}

// CheckHost is Check for a host that is an address; names are judged when they are called, by what they then stand for.
func (g Guard) CheckHost(host string) error {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return g.Check(a)
	}
	return nil
}

// control judges the address that a connection is about to be made to, after every look-up: a name cannot change its mind in between.
func (g Guard) control(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	return g.Check(a)
}
