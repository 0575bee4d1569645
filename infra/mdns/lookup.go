package mdns

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"

	"kennel/infra/errs"
)

// Asked names end in this.
const domain = ".local"

// Local reports whether a name is one for multicast DNS.
func Local(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(strings.ToLower(name), "."), domain)
}

// Lookup asks the networks of this machine by multicast DNS for the IPv4 address of a name, as a robot does, each second until ctx ends (kind Unavailable).
func Lookup(ctx context.Context, name string) (netip.Addr, error) {
	wire, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return netip.Addr{}, errs.New(errs.Invalid, "%.80q: %w", name, err)
	}
	q := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: wire, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	question, err := q.Pack()
	if err != nil {
		return netip.Addr{}, err
	}
	c, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // which ends the read
	out, err := networks()
	if err != nil {
		return netip.Addr{}, err
	}
	packets, buf := ipv4.NewPacketConn(c), make([]byte, 9000)
	for ctx.Err() == nil {
		for _, n := range out {
			if packets.SetMulticastInterface(&n.Interface) == nil {
				_, _ = c.WriteToUDP(question, group) // a network that went is one of several
			}
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		for {
			n, _, err := c.ReadFromUDP(buf)
			if err != nil {
				break
			}
			if a, ok := addressIn(buf[:n], wire.String()); ok {
				return a, nil
			}
		}
	}
	return netip.Addr{}, errs.New(errs.Unavailable, "nothing on the networks of this machine answers for %s by multicast DNS", name)
}

// addressIn returns the first IPv4 address that an answer gives for a name.
func addressIn(answer []byte, name string) (netip.Addr, bool) {
	var m dnsmessage.Message
	if m.Unpack(answer) != nil || !m.Response {
		return netip.Addr{}, false
	}
	for _, r := range m.Answers {
		if a, ok := r.Body.(*dnsmessage.AResource); ok && strings.EqualFold(r.Header.Name.String(), name) {
			return netip.AddrFrom4(a.A), true
		}
	}
	return netip.Addr{}, false
}
