package natsserver

import (
	"bytes"
	"cmp"
	_ "embed"
	"net"
	"net/url"
	"strconv"
	"text/template"

	"github.com/nats-io/nkeys"

	"kennel/infra/errs"
)

//go:embed nats.conf.tmpl
var confText string

var conf = template.Must(template.New("nats.conf").Option("missingkey=error").Funcs(template.FuncMap{"q": strconv.Quote}).Parse(confText))

// Node describes one NATS server of the cluster. Files are PEM; a listener is host:port.
type Node struct {
	Name     string // unique in the cluster
	MQTT     string // listener of the robots, and of the cloud's MQTT connections
	Services string // listener of the cloud's processes in NATS' own protocol
	Monitor  string // listener of the server's own status pages, on a loopback address; "": none
	Dir      string // where the server keeps its streams

	Cert      string // server certificate with its chain
	Key       string // its key
	ClientCA  string // the authorities of things and of services
	ServiceCA string // the authorities of services

	// Cluster is the listener of the other servers, and Routes are theirs, host:port; no Routes: a server alone. All servers have the same certificate
	// for that, of NewRoute: who has its key belongs to the cluster, and nothing else does.
	Cluster   string
	Routes    []string
	RouteCert string
	RouteKey  string

	Replicas       int    // copies of each stream: 1, 3 or 5, at most the number of servers
	MaxConnections int    // most clients, default 50,000; the limit of file descriptors must be 2,000 above it
	PIDFile        string // "": none
}

// Config returns the server's configuration. It holds no secret: of keys it has the public halves.
func (n Node) Config(keys Keys) ([]byte, error) {
	for name, addr := range map[string]string{"mqtt": n.MQTT, "services": n.Services} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, errs.New(errs.Invalid, "nats: listener %s %q: want host:port", name, addr)
		}
	}
	need := map[string]string{"name": n.Name, "dir": n.Dir, "cert": n.Cert, "key": n.Key, "client ca": n.ClientCA, "service ca": n.ServiceCA}
	routes := make([]string, len(n.Routes))
	if len(n.Routes) > 0 {
		need["route cert"], need["route key"], need["cluster"] = n.RouteCert, n.RouteKey, n.Cluster
	}
	for i, r := range n.Routes {
		if _, _, err := net.SplitHostPort(r); err != nil {
			return nil, errs.New(errs.Invalid, "nats: route %q: want host:port", r)
		}
		routes[i] = (&url.URL{Scheme: "nats", Host: r}).String()
	}
	for name, value := range need {
		if value == "" {
			return nil, errs.New(errs.Invalid, "nats: %s is empty", name)
		}
	}
	if n.Replicas != 1 && n.Replicas != 3 && n.Replicas != 5 || n.Replicas > len(n.Routes)+1 {
		return nil, errs.New(errs.Invalid, "nats: %d replicas with %d servers: want 1, 3 or 5, and as many servers", n.Replicas, len(n.Routes)+1)
	}
	n.MaxConnections = cmp.Or(n.MaxConnections, 50_000)
	v := struct {
		Node
		Account, ServiceKey, SystemKey, Issuer string
	}{Node: n, Account: account}
	v.Routes = routes
	for to, pair := range map[*string]nkeys.KeyPair{&v.ServiceKey: keys.service, &v.SystemKey: keys.system, &v.Issuer: keys.issuer} {
		var err error
		if *to, err = pair.PublicKey(); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	if err := conf.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
