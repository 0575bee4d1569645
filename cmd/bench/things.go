package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kennel/certs/ca"
	"kennel/infra/api/topics"
	"kennel/infra/thing"
)

// firstSerial is that of the first thing we make up; the robots of a house have others.
const firstSerial = 0x00b00000

// certLife is the life of our certificates: longer than any run.
const certLife = 24 * time.Hour

// issuer makes identities from the authorities of a house.
type issuer struct{ ca *ca.Authority }

func openIssuer(dir string) (issuer, error) {
	a, err := ca.Load(dir)
	return issuer{a}, err
}

// peer is somebody with a certificate.
type peer struct {
	id  thing.ID // "": a service of the cloud
	tls *tls.Config
}

// thing makes the n-th thing.
func (i issuer) thing(n int) (peer, error) {
	id, err := thing.New(thing.Vector, fmt.Sprintf("%08x", firstSerial+n))
	if err != nil {
		return peer{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return peer{}, err
	}
	chain, err := i.ca.IssueDevice(&x509.CertificateRequest{PublicKey: key.Public()}, id, certLife)
	if err != nil {
		return peer{}, err
	}
	cert := tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, c := range chain {
		cert.Certificate = append(cert.Certificate, c.Raw)
	}
	return peer{id, i.config(cert)}, nil
}

// things makes n things, from the first-th on.
func (i issuer) things(first, n int) ([]peer, error) {
	out := make([]peer, n)
	for k := range out {
		var err error
		if out[k], err = i.thing(first + k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// service makes the credentials of one of the cloud's programs.
func (i issuer) service() (peer, error) {
	pair, err := i.ca.IssueService("kenneld", certLife)
	if err != nil {
		return peer{}, err
	}
	cert, err := pair.TLS()
	return peer{tls: i.config(cert)}, err
}

func (i issuer) config(cert tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.ca.RootPool(), ServerName: "localhost", Certificates: []tls.Certificate{cert}}
}

// credentials is p for infra/mqtt.
func (p peer) credentials() (*tls.Config, error) { return p.tls, nil }

// loginTime bounds one login or handshake, on a machine that is busy with many.
const loginTime = time.Minute

// handshake connects to a bare listener; its one byte says that the listener has checked our certificate.
func (p peer) handshake(ctx context.Context, addr string) (net.Conn, error) {
	return p.dial(ctx, addr, func(conn net.Conn) error {
		_, err := io.ReadFull(conn, make([]byte, 1))
		return err
	})
}

// login connects to a broker and subscribes as a robot does.
func (p peer) login(ctx context.Context, addr string) (net.Conn, error) {
	return p.dial(ctx, addr, func(conn net.Conn) error {
		if _, err := conn.Write(appendConnect(nil, string(p.id), 1200)); err != nil {
			return err
		}
		if err := expect(conn, packetConnack, 1); err != nil {
			return fmt.Errorf("CONNECT: %w", err)
		}
		if _, err := conn.Write(appendSubscribe(nil, topics.ThingFilters(p.id)...)); err != nil {
			return err
		}
		if err := expect(conn, packetSuback, 2); err != nil {
			return fmt.Errorf("SUBSCRIBE: %w", err)
		}
		return nil
	})
}

func (p peer) dial(ctx context.Context, addr string, rest func(net.Conn) error) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	conn, err := (&tls.Dialer{Config: p.tls}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.id, err)
	}
	deadline, _ := ctx.Deadline() // it has one
	if err := errors.Join(conn.SetDeadline(deadline), rest(conn), conn.SetDeadline(time.Time{})); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", p.id, err)
	}
	return conn, nil
}

// crowd connects all peers, so many at once, and returns their connections and how long it took. On error none is open.
func crowd(ctx context.Context, peers []peer, atOnce int, connect func(context.Context, peer) (net.Conn, error)) ([]net.Conn, time.Duration, error) {
	conns := make([]net.Conn, len(peers))
	var next atomic.Int64
	var wg sync.WaitGroup
	errc := make(chan error, atOnce) // one from each
	start := time.Now()
	for range atOnce {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(peers) {
					return
				}
				var err error
				if conns[n], err = connect(ctx, peers[n]); err != nil {
					errc <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	select {
	case err := <-errc:
		closeAll(conns)
		return nil, 0, err
	default:
		return conns, took, nil
	}
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}
