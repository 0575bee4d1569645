package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"kennel/cloud/app/front"
	"kennel/cloud/app/identity"
	"kennel/cloud/wire"
	"kennel/infra/api/large"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/runner"
	"kennel/infra/sdnotify"
	"kennel/infra/tlsserver"
)

// Serve runs the roles of cfg against the parts it names until ctx ends. ready, if not nil, is called once the listeners accept.
func Serve(ctx context.Context, cfg Config, log *slog.Logger, ready func()) error {
	supervisor, err := sdnotify.Claim()
	if err != nil {
		return err
	}
	c, err := Build(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer c.Close()
	services, err := c.Open(supervisor)
	if err != nil {
		return err
	}
	if ready != nil {
		ready()
	}
	return runner.Run(ctx, log, runner.Config{}, services...)
}

// Open opens the ports of this process and returns everything that it runs, in the order of start.
func (c *Cloud) Open(supervisor sdnotify.Supervisor) ([]runner.Service, error) {
	out := c.Services()
	if c.base.Has(wire.API) {
		listeners, err := c.listeners()
		if err != nil {
			return nil, err
		}
		robots, err := c.robots()
		if err != nil {
			return nil, err
		}
		out = append(append(out, listeners...), robots...)
	}
	watching, err := c.watching(supervisor)
	return append(out, watching...), err
}

// listeners opens the ports at once, so that a port in use ends the start, and returns the services that serve them.
func (c *Cloud) listeners() ([]runner.Service, error) {
	h, err := c.Handler()
	if err != nil {
		return nil, err
	}
	h = strict(c.cfg.API.publicName(), front.BoundBodies(h, front.BodyTime))
	cert, public, err := c.certificates()
	if err != nil {
		return nil, err
	}
	admitted, err := c.front.Listen("api", c.cfg.API.Listen, c.cfg.API.Proxies)
	if err != nil {
		return nil, fmt.Errorf("api.listen: %w", err)
	}
	conf := tlsserver.Config()
	conf.GetCertificate, conf.NextProtos = cert, append([]string{"h2", "http/1.1"}, public.protocols...)
	conf.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if !slices.Contains(hello.SupportedProtos, large.ALPN) {
			return nil, nil // people and enrolment: a browser is never asked for a certificate
		}
		// TLS does not decide about the certificate: every refusal has a status code and a reason (design section 4).
		thing := tlsserver.Config()
		thing.GetCertificate, thing.NextProtos, thing.ClientAuth = cert, []string{"http/1.1"}, tls.RequestClientCert
		if large.Calls(hello.SupportedProtos) {
			thing.NextProtos = []string{large.ALPN}
		}
		return thing, nil
	}
	l := tls.NewListener(admitted, conf)
	agents, calls, err := c.agents(cert, l.Addr())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	out := append(public.services, agents, c.front.ServeWith("https", l, h, large.ALPN, c.Identity.Peers.Knows, calls))
	if c.cfg.Console.Listen == "" {
		return out, nil
	}
	plain, err := c.front.Listen("console", c.cfg.Console.Listen, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("console.listen: %w", err), l.Close())
	}
	return append(out, c.front.Serve("console", plain, localOnly(h))), nil
}

// public holds the additions to the listener of the API for certificates by ACME.
type public struct {
	protocols []string
	services  []runner.Service
}

// agents returns the server of gRPC calls that agents make at the address of the API, and what takes their connections.
func (c *Cloud) agents(cert func(*tls.ClientHelloInfo) (*tls.Certificate, error), addr net.Addr) (runner.Service, func(*tls.Conn), error) {
	conf := tlsserver.Config()
	conf.GetCertificate = cert
	calls := kitgrpc.NewServer(conf, c.base.Log,
		grpc.ChainUnaryInterceptor(c.base.Meters.Call), grpc.ChainStreamInterceptor(c.base.Meters.Stream))
	c.slices.RegisterAgents(calls)
	l := kitgrpc.NewHanded(addr)
	return runner.Service{Name: "agents grpc", Fatal: true, Run: func(ctx context.Context) error { return kitgrpc.Run(ctx, calls, l, graceTime) }}, l.Take, checkCalls(calls)
}

func (c *Cloud) web() identity.Web {
	return identity.Web{Authority: c.ca, Ready: c.ready, Log: c.base.Log}
}

// certificates returns the certificate of the API's listener.
func (c *Cloud) certificates() (cert func(*tls.ClientHelloInfo) (*tls.Certificate, error), p public, err error) {
	if cert, err = c.web().Certificate("api", c.cfg.API.CertFile, c.cfg.API.KeyFile, c.cfg.API.Names); err != nil {
		return nil, p, err
	}
	acme, err := c.web().ACME(c.cfg.API.ACME)
	if acme == nil || err != nil {
		return cert, p, err
	}
	c.acme = acme
	p = public{[]string{acme.Protocol()}, []runner.Service{{Name: "acme", Run: acme.Run}}}
	if addr := c.cfg.API.ACME.HTTPListen; addr != "" {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, p, fmt.Errorf("api.acme.http_listen: %w", err)
		}
		p.services = append(p.services, c.front.Serve("acme http", l, acme.Plain()))
	}
	return acme.Get(cert), p, nil
}

// strict has browsers that came by a public name over HTTPS use nothing else there for a year (HSTS). Not by other names: a browser that met a
// certificate which it does not trust could not be told to continue.
func strict(name string, next http.Handler) http.Handler {
	if name == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if r.TLS != nil && strings.EqualFold(host, name) {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// localOnly refuses requests that name another host: a page elsewhere could have its name point here (DNS rebinding).
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "plain HTTP address serves only this machine; use http://localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
