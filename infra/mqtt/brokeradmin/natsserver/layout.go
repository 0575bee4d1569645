package natsserver

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kennel/infra/errs"
)

// routeLife is the life of the certificate between servers. Write makes another when nine tenths of it are over.
const routeLife = 10 * 365 * 24 * time.Hour

// Place says where one server of a Layout is reached, and listens; each but Bind is host:port.
type Place struct {
	Name     string
	MQTT     string // robots, and the cloud's MQTT connections
	Services string // the cloud's processes
	Cluster  string // the other servers
	Monitor  string // the server's own status pages; "": none
	Bind     string // the host to listen on for the first three, such as 0.0.0.0; "": theirs
}

// listens returns addr with the host to listen on.
func (p Place) listens(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if p.Bind == "" || err != nil { // Config refuses it
		return addr
	}
	return net.JoinHostPort(p.Bind, port)
}

// Layout is a cluster whose servers' files lie below one folder: on one machine, or to be copied to several.
type Layout struct {
	Dir     string // DIR/NAME/nats.conf and what it needs
	At      string // where the servers find Dir, if it is copied elsewhere; "": Dir
	Streams string // folder for the streams on each server; "": streams in the server's folder
	Places  []Place

	Chain, Key        []byte // PEM: the servers' certificate with its chain, for the names by which clients call them
	Devices, Services []byte // PEM: the authorities of things and of services
	MaxConnections    int    // of each server; 0: as Node has it
}

// Write writes each server's folder and returns their configuration files, in the order of Places. A certificate between the servers that is there
// already is kept.
func (l Layout) Write(keys Keys) (files []string, err error) {
	if len(l.Places) != 1 && len(l.Places) < 3 {
		return nil, errs.New(errs.Invalid, "nats: %d servers: want 1, or at least 3, because the streams need a majority", len(l.Places))
	}
	cert, key, err := l.route()
	if err != nil {
		return nil, err
	}
	for i, p := range l.Places {
		dir := filepath.Join(l.Dir, p.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		at := filepath.Join(cmp.Or(l.At, l.Dir), p.Name)
		n := Node{
			Name: p.Name, MQTT: p.listens(p.MQTT), Services: p.listens(p.Services), Monitor: p.Monitor, Cluster: p.listens(p.Cluster), Dir: cmp.Or(l.Streams, filepath.Join(at, "streams")),
			Replicas: min(len(l.Places), 3), MaxConnections: l.MaxConnections,
		}
		for j, other := range l.Places {
			if i != j {
				n.Routes = append(n.Routes, other.Cluster)
			}
		}
		for _, f := range []struct {
			to   *string
			name string
			b    []byte
		}{
			{&n.Cert, "server.crt", l.Chain}, {&n.Key, "server.key", l.Key}, {&n.ClientCA, "clients.crt", slices.Concat(l.Devices, l.Services)},
			{&n.ServiceCA, "services.crt", l.Services}, {&n.RouteCert, "route.crt", cert}, {&n.RouteKey, "route.key", key},
		} {
			*f.to = filepath.Join(at, f.name)
			if err := os.WriteFile(filepath.Join(dir, f.name), f.b, 0o600); err != nil {
				return nil, err
			}
		}
		text, err := n.Config(keys)
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", p.Name, err)
		}
		file := filepath.Join(dir, "nats.conf")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// route returns the certificate between the servers: the one that the first of them has, while it is young enough.
func (l Layout) route() (cert, key []byte, err error) {
	old := filepath.Join(l.Dir, l.Places[0].Name, "route")
	if fi, err := os.Stat(old + ".crt"); err == nil && time.Since(fi.ModTime()) < routeLife*9/10 {
		cert, err1 := os.ReadFile(old + ".crt")
		key, err2 := os.ReadFile(old + ".key")
		if err1 == nil && err2 == nil && bytes.Contains(cert, []byte("BEGIN CERTIFICATE")) && bytes.Contains(key, []byte("PRIVATE KEY")) {
			return cert, key, nil
		}
	}
	var hosts []string
	for _, p := range l.Places {
		host, _, err := net.SplitHostPort(p.Cluster)
		if err != nil {
			return nil, nil, errs.New(errs.Invalid, "nats: server %s: cluster %q: want host:port", p.Name, p.Cluster)
		}
		hosts = append(hosts, strings.Trim(host, "[]"))
	}
	slices.Sort(hosts)
	return NewRoute(slices.Compact(hosts), routeLife)
}

// URLs returns the addresses for Servers.URLs.
func (l Layout) URLs() []string {
	var out []string
	for _, p := range l.Places {
		out = append(out, "tls://"+p.Services)
	}
	return out
}
