// Package mdns answers multicast DNS (RFC 6762) for one name, so that robots find this machine by it without a DNS server. It neither probes whether another
// machine has the name nor publishes services.
package mdns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"

	"kennel/infra/errs"
	"kennel/infra/logging"
)

var group = &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}

// ttl is how long others may keep an address, in seconds: what RFC 6762 recommends for host names.
const ttl = 120

const cacheFlush = 1 << 15 // of a class in answers: these are all addresses of the name; of a class in questions: the answer may come to the asker alone

// Check reports whether a name can be announced: LABEL.local, in lower case (kind Invalid).
func Check(name string) error {
	label, ok := strings.CutSuffix(name, ".local")
	if _, err := dnsmessage.NewName(name + "."); err != nil || !ok || label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return errs.New(errs.Invalid, "%.80q: want a name such as escapepod.local", name)
	}
	return nil
}

// Answer returns the answer to a query, and whether it goes to the asker alone instead of everyone. The answer is nil if the query does not ask for an address
// of name, which ends in .local. legacy says that the query came from another port than 5353: its answer repeats id and question.
func Answer(query []byte, name string, addrs []netip.Addr, legacy bool) (answer []byte, alone bool) {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil || head.Response || head.OpCode != 0 {
		return nil, false
	}
	var asked *dnsmessage.Question
	want := map[dnsmessage.Type]bool{}
	for {
		q, err := p.Question()
		if err != nil {
			break // the end, or damage: what came before counts
		}
		class := q.Class &^ cacheFlush
		if !strings.EqualFold(q.Name.String(), name+".") || class != dnsmessage.ClassINET && class != dnsmessage.ClassANY {
			continue
		}
		switch q.Type {
		case dnsmessage.TypeA, dnsmessage.TypeAAAA:
			want[q.Type] = true
		case dnsmessage.TypeALL:
			want[dnsmessage.TypeA], want[dnsmessage.TypeAAAA] = true, true
		default:
			continue
		}
		alone = legacy || q.Class&cacheFlush != 0
		asked = &dnsmessage.Question{Name: q.Name, Type: q.Type, Class: class}
	}
	if asked == nil {
		return nil, false
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true, Authoritative: true}, Answers: records(asked.Name, addrs, want, legacy)}
	if len(m.Answers) == 0 {
		return nil, false
	}
	if legacy {
		m.ID, m.Questions = head.ID, []dnsmessage.Question{*asked}
	}
	answer, err = m.Pack()
	return answer, alone && err == nil
}

func records(name dnsmessage.Name, addrs []netip.Addr, want map[dnsmessage.Type]bool, legacy bool) (out []dnsmessage.Resource) {
	for _, a := range addrs {
		h := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: ttl}
		if !legacy {
			h.Class |= cacheFlush
		}
		var body dnsmessage.ResourceBody
		if a.Is4() {
			h.Type, body = dnsmessage.TypeA, &dnsmessage.AResource{A: a.As4()}
		} else {
			h.Type, body = dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: a.As16()}
		}
		if want[h.Type] {
			out = append(out, dnsmessage.Resource{Header: h, Body: body})
		}
	}
	return out
}

// Responder announces a name on the networks of this machine.
type Responder struct {
	name     string
	conn     *net.UDPConn
	packets  *ipv4.PacketConn     // of conn; says by which network a query came
	networks map[int][]netip.Addr // this machine's addresses by the index of the interface
	log      *slog.Logger
}

// Listen joins the networks that this machine has now; robots ask by IPv4. The name answers with this machine's addresses on each network.
func Listen(name string, log *slog.Logger) (*Responder, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	r := &Responder{name: name, networks: map[int][]netip.Addr{}, log: log}
	var failed error
	for _, i := range ifs {
		addrs := of(i)
		if i.Flags&net.FlagUp == 0 || i.Flags&(net.FlagMulticast|net.FlagLoopback) == 0 || len(addrs) == 0 || !addrs[0].Is4() {
			continue
		}
		if err := r.join(i); err != nil {
			failed = fmt.Errorf("%s: %w", i.Name, err)
			continue
		}
		r.networks[i.Index] = addrs
	}
	if len(r.networks) == 0 {
		return nil, errors.Join(errs.New(errs.Unavailable, "mDNS: no network of this machine can be joined"), failed)
	}
	return r, nil
}

func (r *Responder) join(i net.Interface) (err error) {
	if r.conn != nil {
		return r.packets.JoinGroup(&i, group)
	}
	if r.conn, err = net.ListenMulticastUDP("udp4", &i, group); err != nil { // shares the port with other responders
		return err
	}
	r.packets = ipv4.NewPacketConn(r.conn)
	return errors.Join(r.packets.SetControlMessage(ipv4.FlagInterface, true), r.packets.SetMulticastTTL(255), r.packets.SetMulticastLoopback(true))
}

// of returns the addresses of a network, IPv4 first.
func of(i net.Interface) (out []netip.Addr) {
	all, _ := i.Addrs() // one that has gone has none
	for _, four := range []bool{true, false} {
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap().Is4() == four && (four || !ip.IsLinkLocalUnicast()) {
					out = append(out, ip.Unmap())
				}
			}
		}
	}
	return out
}

// Run announces the name once and answers until ctx ends.
func (r *Responder) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { _ = r.conn.Close() })() // which ends the read
	name := dnsmessage.MustNewName(r.name + ".")
	for i, addrs := range r.networks {
		m := dnsmessage.Message{Header: dnsmessage.Header{Response: true, Authoritative: true}, Answers: records(name, addrs, map[dnsmessage.Type]bool{dnsmessage.TypeA: true, dnsmessage.TypeAAAA: true}, false)}
		if b, err := m.Pack(); err == nil {
			r.send(ctx, i, b, group)
		}
	}
	buf := make([]byte, 9000) // the longest message of RFC 6762
	for {
		n, way, from, err := r.packets.ReadFrom(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		udp, ok := from.(*net.UDPAddr)
		if !ok || way == nil {
			continue // no kernel does that
		}
		if answer, alone := Answer(buf[:n], r.name, r.networks[way.IfIndex], udp.Port != group.Port); answer != nil {
			to := group
			if alone {
				to = udp
			}
			r.send(ctx, way.IfIndex, answer, to)
		}
	}
}

func (r *Responder) send(ctx context.Context, network int, b []byte, to *net.UDPAddr) {
	if _, err := r.packets.WriteTo(b, &ipv4.ControlMessage{IfIndex: network}, to); err != nil { // the asker asks again
		r.log.DebugContext(ctx, "mDNS answer not sent", logging.Addr, to.String(), logging.Err, err)
	}
}
