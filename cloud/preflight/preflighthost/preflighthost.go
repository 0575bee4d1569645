// Package preflighthost reads from this machine what the checks of package preflight judge: clock, open ports, names and certificates.
package preflighthost

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kennel/cloud/preflight"
)

// timeError is the state in which the kernel's clock follows nothing (adjtimex(2): TIME_ERROR).
const timeError = 5

// Clock reports whether the kernel's clock follows a time server, and how far it can be off.
func Clock() (synced bool, maxError time.Duration, err error) {
	var x unix.Timex
	state, err := unix.Adjtimex(&x)
	if err != nil {
		return false, 0, fmt.Errorf("adjtimex: %w", err)
	}
	return state != timeError && x.Status&unix.STA_UNSYNC == 0, time.Duration(x.Maxerror) * time.Microsecond, nil
}

// Chain returns the certificates that the TLS server at addr shows for host.
func Chain(ctx context.Context, addr, host string) ([]*x509.Certificate, error) {
	d := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}} // the caller judges what it shows
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", addr, err)
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates, nil
}

// Addresses looks a name up.
func Addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Listeners returns the open TCP ports of this machine, those that Kennel's settings name with their names.
func Listeners(known map[uint16]preflight.Listener) ([]preflight.Listener, error) {
	own, err := ownSockets()
	if err != nil {
		return nil, err
	}
	exposed, err := publicAddress()
	if err != nil {
		return nil, err
	}
	var out []preflight.Listener
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(file)
		if os.IsNotExist(err) { // a kernel without IPv6
			continue
		}
		if err != nil {
			return nil, err
		}
		found := parseSockets(f)
		f.Close()
		for _, s := range found {
			l := known[s.addr.Port()]
			l.Addr, l.Ours = s.addr, own[s.inode]
			l.Near = s.addr.Addr().IsPrivate() || s.addr.Addr().IsLinkLocalUnicast() || s.addr.Addr().IsUnspecified() && !exposed
			if !slices.ContainsFunc(out, func(o preflight.Listener) bool { return o.Addr == l.Addr }) {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// publicAddress reports whether this machine has an address that is neither private nor its own.
func publicAddress() (bool, error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() && !p.Addr().IsPrivate() {
			return true, nil
		}
	}
	return false, err
}

func ownSockets() (map[string]bool, error) {
	fds, err := filepath.Glob("/proc/self/fd/*")
	out := map[string]bool{}
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if inode, ok := strings.CutPrefix(to, "socket:["); ok && err == nil { // it may be closed meanwhile
			out[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return out, err
}

type socket struct {
	addr  netip.AddrPort
	inode string
}

// parseSockets reads the listening sockets of /proc/net/tcp or tcp6; lines that it does not understand are left out.
func parseSockets(r io.Reader) (out []socket) {
	const listening = "0A"
	for lines := bufio.NewScanner(r); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[3] != listening {
			continue
		}
		ip, port, ok := strings.Cut(f[1], ":")
		b, err := hex.DecodeString(ip)
		p, perr := strconv.ParseUint(port, 16, 16)
		if !ok || err != nil || perr != nil || len(b) != 4 && len(b) != 16 {
			continue
		}
		for i := 0; i < len(b); i += 4 { // the kernel prints words as this machine has them
			slices.Reverse(b[i : i+4])
		}
		addr, _ := netip.AddrFromSlice(b)
		out = append(out, socket{netip.AddrPortFrom(addr.Unmap(), uint16(p)), f[9]})
	}
	return out
}
