// Package latency measures how long a robot's name servers and the endpoints of its cloud take to answer, now and then, and reports that as events
// (VEC-CLD-08).
package latency

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"time"

	"kennel/edge/env/platform"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
)

// Event is one measurement: s1 is the endpoint's keys in the server configuration, s2 its host, s3 what failed ("" if nothing did), i1 the time in
// ms from the first packet to an open connection, i2 the time of the name servers. A number is absent if that step failed or was not reached; i2 also for an address in numbers.
const Event = "cloud.latency"

// Config configures Run. Endpoints, Emit and Every are required.
type Config struct {
	Endpoints platform.Endpoints
	Emit      func(events.Event)
	Every     time.Duration                                                     // between measurements; the first comes by chance within it, so that a fleet does not measure at once
	Lookup    func(ctx context.Context, host string) ([]string, error)          // nil: the system's
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error) // nil: net.Dialer's
}

// patience is how long one endpoint is given, of our own choice.
const patience = 10 * time.Second

// endpoint is one address of the cloud, with the keys that name it.
type endpoint struct{ keys, host, port string }

// endpoints lists each address once.
func endpoints(e platform.Endpoints) (out []endpoint) {
	for _, x := range []struct{ key, value string }{
		{"kennel.api", e.Kennel.API}, {"kennel.mqtt", e.Kennel.MQTT}, {"check", e.Check}, {"chipper", e.Chipper}, {"jdocs", e.Jdocs}, {"tms", e.TMS}, {"logfiles", e.LogFiles},
	} {
		if x.value == "" {
			continue
		}
		value := x.value
		if !strings.Contains(value, "://") {
			value = "https://" + value
		}
		u, err := url.Parse(value)
		if err != nil || u.Hostname() == "" {
			continue // who uses the endpoint says that it is wrong
		}
		found := endpoint{x.key, u.Hostname(), cmp.Or(u.Port(), "443")}
		for i := range out {
			if out[i].host == found.host && out[i].port == found.port {
				out[i].keys += " " + x.key
				found.host = ""
			}
		}
		if found.host != "" {
			out = append(out, found)
		}
	}
	return out
}

// Run measures until ctx ends.
func (c Config) Run(ctx context.Context) error {
	all := endpoints(c.Endpoints)
	for backoff.Sleep(ctx, rand.N(c.Every)) == nil {
		for _, e := range all {
			c.Emit(c.measure(ctx, e))
		}
		if backoff.Sleep(ctx, c.Every/2) != nil { // and half of it on average before the next
			break
		}
	}
	return nil
}

// measure makes one connection, and closes it.
func (c Config) measure(ctx context.Context, e endpoint) events.Event {
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupHost
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := events.Event{Source: "agentd", Name: Event, S1: e.keys, S2: e.host}
	addr := e.host
	if net.ParseIP(e.host) == nil {
		began := time.Now()
		addrs, err := c.Lookup(ctx, e.host)
		if err != nil || len(addrs) == 0 {
			out.S3 = "no address"
			return out
		}
		out.I2 = events.Num(time.Since(began).Milliseconds())
		addr = addrs[0]
	}
	began := time.Now()
	conn, err := c.Dial(ctx, "tcp", net.JoinHostPort(addr, e.port))
	if err != nil {
		out.S3 = "no connection"
		return out
	}
	out.I1 = events.Num(time.Since(began).Milliseconds())
	conn.Close()
	return out
}
