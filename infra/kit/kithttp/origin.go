package kithttp

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"kennel/infra/errs"
)

var crossOrigin = http.NewCrossOriginProtection()

// SameOrigin refuses a request that changes something and that a page of another origin made: another host, port or scheme. Origin is Denied "cross_site".
// A request that says nothing about where it comes from passes, as from a program.
//
// The standard library compares hosts only. A browser that sends no Sec-Fetch-Site would let http://HOST, which anybody on the way can write, post to
// https://HOST.
func SameOrigin(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	bad := func(where string) error {
		return errs.Coded(errs.Denied, "cross_site", "request sent from another site%s; open the page here and try again", where)
	}
	if crossOrigin.Check(r) != nil {
		return bad("")
	}
	if r.Header.Get("Sec-Fetch-Site") != "" { // the browser has compared hosts and schemes; Origin is "null" from a page that tells no address
		return nil
	}
	from := cmp.Or(r.Header.Get("Origin"), r.Header.Get("Referer"))
	if from == "" {
		return nil
	}
	u, err := url.Parse(from)
	scheme := "https" // also behind what ends TLS for us
	if PlainLocal(r) {
		scheme = "http"
	}
	if err != nil || u.Scheme != scheme || !strings.EqualFold(u.Host, r.Host) {
		return bad(", " + scheme + "://" + r.Host + " accepts only its own pages")
	}
	return nil
}

// PlainLocal reports whether a request came over plain HTTP from a browser on this very machine.
func PlainLocal(r *http.Request) bool {
	return r.TLS == nil && Loopback(r.RemoteAddr) && Loopback(r.Host)
}

// Loopback reports whether a host, with or without a port, is this very machine: localhost or a loopback address.
func Loopback(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
