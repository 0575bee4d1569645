package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
	"kennel/infra/webcert/webcerttest"
)

// comesHome has a robot that was erased take the way of its first minutes: the connection check before it has a token, the login, documents, the whole check.
func comesHome(t *testing.T, r *housetest.Replayed, owner *housetest.Person) error {
	t.Helper()
	if r.Token != "" {
		t.Fatal("the robot has a token")
	}
	if err := r.CheckHTTP(t.Context()); err != nil {
		return fmt.Errorf("connection check: %w", err)
	}
	var session struct {
		Token string `json:"session_token"`
	}
	owner.Do("POST", "/v1/account/apps", struct{}{}, &session)
	if err := r.Associate(t.Context(), session.Token); err != nil {
		return fmt.Errorf("login: %w", err)
	}
	if _, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0)); err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	return r.CheckStream(t.Context())
}

// TestErasedRobotComesHome (issue 31, must hold 1): a robot whose user data was erased, and which trusts only public roots, signs in to a cloud that has a
// certificate by ACME for the name in the robot's server file. The embedded authority plays the one that the robot trusts. By a name that only the cloud's
// own authority vouches for it cannot sign in.
func TestErasedRobotComesHome(t *testing.T) {
	const name = "kennel.example.org"
	h := housetest.New(t, "-robots", "0", "-originals", "localhost")
	h.Start()
	robots := freeaddr.For(t)
	_, port, err := net.SplitHostPort(robots)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	directory, rootFile, public := webcerttest.Authority(t, 1, number)
	h.ServeWith(t, "all", fmt.Sprintf("robots: {listen: %q, public: %q, app_keys_file: %q}\nmail: {spool: %q}\n", robots, name+":443", h.Ready.Files["app_key"], h.Ready.Files["mail"]),
		"KENNELD_API_ACME_DIRECTORY="+directory, "KENNELD_API_ACME_ROOT_FILE="+rootFile, "KENNELD_API_ACME_NAMES="+name, "KENNELD_API_ACME_DIR="+filepath.Join(t.TempDir(), "acme"))
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(public) {
		t.Fatal("no root of the authority")
	}
	housetest.Await(t, time.Minute, "a certificate by ACME", func() error {
		conn, err := tls.Dial("tcp", robots, &tls.Config{RootCAs: roots, ServerName: name})
		if err == nil {
			conn.Close()
		}
		return err
	})
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	owner := h.Owner(t, "ada@example.com", "Ada")
	r := h.Replay(t, maker, "00e40100", "robot")
	r.Roots = roots
	r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, robots)
	}
	if err := comesHome(t, r, owner); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("by %s, for which only the cloud's own authority vouches: %v; want an unknown authority", r.Servers.Tms, err)
	}
	r.Servers.Tms, r.Servers.Jdocs, r.Servers.Chipper, r.Servers.Check = name+":443", name+":443", name+":443", name+":443/ok"
	if err := comesHome(t, r, owner); err != nil {
		t.Errorf("%v; doctor: %s", err, admin.Doctor(r.Thing))
	}
}

// found asks this machine's own network for a name by multicast DNS.
func found(t *testing.T, name string) (ip string, err error) {
	t.Helper()
	ifs, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(ifs, func(i net.Interface) bool { return i.Flags&net.FlagLoopback != 0 })
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", err
	}
	defer c.Close()
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	query, err := m.Pack()
	if err != nil {
		return "", err
	}
	if err := errors.Join(ipv4.NewPacketConn(c).SetMulticastInterface(&ifs[i]), c.SetDeadline(time.Now().Add(2*time.Second))); err != nil {
		return "", err
	}
	if _, err := c.WriteToUDP(query, &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}); err != nil {
		return "", err
	}
	buf := make([]byte, 1500)
	n, err := c.Read(buf)
	if err == nil {
		err = m.Unpack(buf[:n])
	}
	if err != nil || len(m.Answers) == 0 {
		return "", fmt.Errorf("%s: no answer (%w)", name, err)
	}
	a, ok := m.Answers[0].Body.(*dnsmessage.AResource)
	if !ok {
		return "", fmt.Errorf("%s: %v", name, m.Answers)
	}
	return netip.AddrFrom4(a.A).String(), nil
}

// TestErasedRobotFindsEscapePod (issue 31, must hold 1): a robot whose user data was erased, and whose software trusts the root behind escapepod.local, finds
// this cloud by that name, announced by mDNS, and signs in. The test's own authority plays that root.
func TestErasedRobotFindsEscapePod(t *testing.T) {
	const name = "escapepod.local"
	h := housetest.New(t, "-robots", "0", "-originals", "localhost")
	h.Start()
	robots, dir := freeaddr.For(t), t.TempDir()
	_, port, err := net.SplitHostPort(robots)
	if err != nil {
		t.Fatal(err)
	}
	pod := housetest.NewFactory(t)
	leaf := pod.Make(name, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{name}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]pem.Block{"pod.crt": {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}, "pod.key": {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.ServeWith(t, "all", fmt.Sprintf("robots: {listen: %q, app_keys_file: %q, cert_file: %q, key_file: %q, mdns: %s}\nmail: {spool: %q}\n", robots, h.Ready.Files["app_key"],
		filepath.Join(dir, "pod.crt"), filepath.Join(dir, "pod.key"), name, h.Ready.Files["mail"]))
	housetest.Await(t, time.Minute, "an answer by mDNS", func() error { _, err := found(t, name); return err })
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	owner := h.Owner(t, "ada@example.com", "Ada")
	r := h.Replay(t, maker, "00e40101", "robot")
	r.Roots = x509.NewCertPool()
	at := name + ":" + port
	r.Servers.Tms, r.Servers.Jdocs, r.Servers.Chipper, r.Servers.Check = at, at, at, at+"/ok"
	r.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		ip, err := found(t, host)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(ip, port))
	}
	if err := comesHome(t, r, owner); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("before the software has the root: %v; want an unknown authority", err)
	}
	r.Roots.AppendCertsFromPEM([]byte(pod.Bundle())) // as stock software does at its first request for a document, which it cannot send yet
	if err := comesHome(t, r, owner); err != nil {
		t.Errorf("%v; doctor: %s", err, admin.Doctor(r.Thing))
	}
}
