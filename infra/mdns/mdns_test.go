package mdns

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"

	"kennel/infra/testwait"
)

var addrs = []netip.Addr{netip.MustParseAddr("192.168.1.5"), netip.MustParseAddr("fd00::5")}

func query(t testing.TB, name string, kind dnsmessage.Type, class dnsmessage.Class) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: class}}}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// said returns the addresses in an answer.
func said(t testing.TB, answer []byte) (id uint16, questions int, out []string) {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		t.Fatal(err)
	}
	for _, a := range m.Answers {
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			out = append(out, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			out = append(out, netip.AddrFrom16(b.AAAA).String())
		}
	}
	return m.ID, len(m.Questions), out
}

// TestAnswer: addresses of the name and nothing else; to everyone, unless the asker wants it alone or speaks plain DNS.
func TestAnswer(t *testing.T) {
	const flush = cacheFlush | dnsmessage.ClassINET
	for _, tc := range []struct {
		name   string
		query  []byte
		legacy bool
		want   string // addresses
		alone  bool
	}{
		{"address", query(t, "escapepod.local.", dnsmessage.TypeA, dnsmessage.ClassINET), false, "192.168.1.5", false},
		{"in capitals, to it alone", query(t, "EscapePod.local.", dnsmessage.TypeAAAA, flush), false, "fd00::5", true},
		{"all", query(t, "escapepod.local.", dnsmessage.TypeALL, dnsmessage.ClassANY), false, "192.168.1.5 fd00::5", false},
		{"plain DNS", query(t, "escapepod.local.", dnsmessage.TypeA, dnsmessage.ClassINET), true, "192.168.1.5", true},
		{"another name", query(t, "other.local.", dnsmessage.TypeA, dnsmessage.ClassINET), false, "", false},
		{"a text", query(t, "escapepod.local.", dnsmessage.TypeTXT, dnsmessage.ClassINET), false, "", false},
		{"damage", []byte("damage"), false, "", false},
	} {
		got, alone := Answer(tc.query, "escapepod.local", addrs, tc.legacy)
		if alone != tc.alone || (got == nil) != (tc.want == "") {
			t.Errorf("%s: %x, alone %v", tc.name, got, alone)
			continue
		}
		if got == nil {
			continue
		}
		id, questions, found := said(t, got)
		if strings.Join(found, " ") != tc.want || tc.legacy != (id == 7 && questions == 1) {
			t.Errorf("%s: %q, id %d, %d questions", tc.name, found, id, questions)
		}
	}
	own, _ := Answer(query(t, "escapepod.local.", dnsmessage.TypeA, dnsmessage.ClassINET), "escapepod.local", addrs, false)
	if again, _ := Answer(own, "escapepod.local", addrs, false); again != nil {
		t.Error("an answer is answered")
	}
}

func TestCheck(t *testing.T) {
	for name, ok := range map[string]bool{"escapepod.local": true, "kennel-2.local": true, "kennel.lan": false, ".local": false, "a.b.local": false, "Kennel.local": false, strings.Repeat("a", 64) + ".local": false} {
		if err := Check(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestResponder: a question to the group on this machine's own network gets its address.
func TestResponder(t *testing.T) {
	r, err := Listen("kennel-test.local", slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ifs, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ifs, func(i net.Interface) bool { return i.Flags&net.FlagLoopback != 0 })
	if i < 0 {
		t.Fatal("this machine has no network of its own")
	}
	if err := ipv4.NewPacketConn(c).SetMulticastInterface(&ifs[i]); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, 20*time.Second, "an answer", func() error {
		if _, err := c.WriteToUDP(query(t, "kennel-test.local.", dnsmessage.TypeA, dnsmessage.ClassINET), group); err != nil {
			return err
		}
		buf := make([]byte, 1500)
		if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, _, err := c.ReadFromUDP(buf)
		if err == nil {
			if _, _, found := said(t, buf[:n]); !slices.Equal(found, []string{"127.0.0.1"}) {
				t.Errorf("found %q", found)
			}
		}
		return err
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "escapepod.local.", dnsmessage.TypeA, dnsmessage.ClassINET), false)
	f.Add(query(f, "escapepod.local.", dnsmessage.TypeALL, dnsmessage.ClassANY), true)
	f.Fuzz(func(t *testing.T, b []byte, legacy bool) {
		if answer, _ := Answer(b, "escapepod.local", addrs, legacy); answer != nil {
			if _, _, found := said(t, answer); len(found) == 0 {
				t.Error("an answer without an address")
			}
		}
	})
}

// TestNetworksChange: the name answers with the addresses of now, also on a network that came after the start.
func TestNetworksChange(t *testing.T) {
	r, err := Listen("kennel-later.local", slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.conn.Close()
	real, err := networks()
	if err != nil {
		t.Fatal(err)
	}
	now := map[int]network{}
	r.look = func() (map[int]network, error) { return maps.Clone(now), nil }
	known := func() (out []string) {
		r.join(t.Context())
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, n := range r.networks {
			out = append(out, n.addrs[0].String())
		}
		return out
	}
	if got := known(); len(got) > 0 {
		t.Errorf("without a network: %v", got)
	}
	var index int
	for i, n := range real {
		if n.Flags&net.FlagLoopback != 0 {
			index, now[i] = i, n
		}
	}
	if got := known(); !slices.Equal(got, []string{"127.0.0.1"}) {
		t.Errorf("a network that came later: %v", got)
	}
	now[index] = network{now[index].Interface, addrs}
	if got := known(); !slices.Equal(got, []string{"192.168.1.5"}) {
		t.Errorf("another address: %v", got)
	}
	now[-1] = network{net.Interface{Index: 1 << 30, Name: "gone"}, addrs}
	if got := known(); len(got) != 1 {
		t.Errorf("a network that cannot be joined: %v", got)
	}
}
