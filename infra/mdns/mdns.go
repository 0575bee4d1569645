// Package mdns answers multicast DNS (RFC 6762) for one name, so that robots find this machine by it without a DNS server. It neither probes whether another
// machine has the name nor publishes services.
package mdns

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"

	"kennel/infra/backoff"
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
	packets  *ipv4.PacketConn // of conn; says by which network a query came
	log      *slog.Logger
	look     func() (map[int]network, error)
	mu       sync.Mutex
	networks map[int]network // that were joined, by the index of the interface
}

// network is one that others can ask on, with this machine's addresses there.
type network struct {
	net.Interface
	addrs []netip.Addr
}

// lookEvery is how often networks and addresses are looked at: a robot's cloud may get another address, or its network, after it started. Our own.
const lookEvery = 10 * time.Second

// Listen joins the networks that this machine has now, and Run those that it gets; robots ask by IPv4. The name, which is announced on each, answers with this
// machine's addresses there.
func Listen(name string, log *slog.Logger) (*Responder, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	conn, err := net.ListenPacket("udp4", group.String()) // shares the port with other responders
	if err != nil {
		return nil, errs.New(errs.Unavailable, "mDNS: %w", err)
	}
	r := &Responder{name: name, conn: conn.(*net.UDPConn), packets: ipv4.NewPacketConn(conn), log: log, look: networks, networks: map[int]network{}}
	err = errors.Join(r.packets.SetControlMessage(ipv4.FlagInterface, true), r.packets.SetMulticastTTL(255), r.packets.SetMulticastLoopback(true))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if r.join(context.Background()); len(r.networks) == 0 {
		log.Warn("mDNS: no network of this machine can be joined yet", "name", name)
	}
	return r, nil
}

// networks returns those of this machine that carry multicast over IPv4.
func networks() (map[int]network, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	out := map[int]network{}
	for _, i := range ifs {
		if addrs := of(i); i.Flags&net.FlagUp != 0 && i.Flags&(net.FlagMulticast|net.FlagLoopback) != 0 && len(addrs) > 0 && addrs[0].Is4() {
			out[i.Index] = network{i, addrs}
		}
	}
	return out, nil
}

// join joins networks that are new, and announces the name where an address changed.
func (r *Responder) join(ctx context.Context) {
	now, err := r.look()
	if err != nil {
		r.log.WarnContext(ctx, "mDNS: networks not read", logging.Err, err)
		return
	}
	r.mu.Lock()
	before := r.networks
	r.mu.Unlock()
	for index, n := range now {
		old, had := before[index]
		if had && slices.Equal(old.addrs, n.addrs) {
			continue
		}
		if !had {
			// An interface that went and came back under its index may still be joined.
			if err := r.packets.JoinGroup(&n.Interface, group); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
				r.log.DebugContext(ctx, "mDNS: network not joined", "network", n.Name, logging.Err, err)
				delete(now, index) // looked at again
				continue
			}
		}
		r.announce(ctx, index, n.addrs)
	}
	r.mu.Lock()
	r.networks = now
	r.mu.Unlock()
}

// announce tells everyone on a network the addresses of the name.
func (r *Responder) announce(ctx context.Context, index int, addrs []netip.Addr) {
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true, Authoritative: true}, Answers: records(dnsmessage.MustNewName(r.name+"."), addrs,
		map[dnsmessage.Type]bool{dnsmessage.TypeA: true, dnsmessage.TypeAAAA: true}, false)}
	if b, err := m.Pack(); err == nil {
		r.log.InfoContext(ctx, "announced by mDNS", "name", r.name, logging.Addr, addrs[0].String())
		r.send(ctx, index, b, group)
	}
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

// Run answers until ctx ends, and announces the name where networks or addresses change.
func (r *Responder) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = r.conn.Close() })() // which ends the read
	wg.Go(func() {
		for backoff.Sleep(ctx, lookEvery) == nil {
			r.join(ctx)
		}
	})
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
		r.mu.Lock()
		addrs := r.networks[way.IfIndex].addrs
		r.mu.Unlock()
		if answer, alone := Answer(buf[:n], r.name, addrs, udp.Port != group.Port); answer != nil {
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
