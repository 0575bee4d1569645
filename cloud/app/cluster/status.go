package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"kennel/infra/backoff"
)

// Our own limits (the source gives none).
const (
	lookEvery = time.Second
	lookTime  = 2 * time.Second
	maxAnswer = 8 << 20 // bytes of one part's answer
)

// Status is how the installation is.
type Status struct {
	At    time.Time `json:"at"`
	Parts []Part    `json:"parts"`
	// Waiting is the uplink's lag: messages of robots that no kenneld was given yet; -1: not known.
	Waiting int64 `json:"waiting"`
	Robots  int   `json:"robots"` // connected, as the simulated robots say; -1: not known
}

// Part is one process.
type Part struct {
	Name string `json:"name"`
	Pid  int    `json:"pid"`  // 0: down
	Up   bool   `json:"up"`   // answers as it should
	Role string `json:"role"` // leader, standby, follower; "": has none
	Note string `json:"note"` // for people: what it says of itself
}

// watch asks the parts how they are.
type watch struct {
	cluster *cluster
	http    *http.Client // trusts the installation's root

	mu  sync.Mutex
	now Status
}

// startWatch begins to look and serves what it sees.
func (c *cluster) startWatch(running context.Context, root []byte) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		return errors.New("root certificate unreadable")
	}
	w := &watch{cluster: c, http: &http.Client{Timeout: lookTime, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}}
	ln, err := net.Listen("tcp", c.addr(portStatus))
	if err != nil {
		return fmt.Errorf("status page: %w", err)
	}
	s := &http.Server{Handler: w.routes(), ReadHeaderTimeout: lookTime}
	c.wg.Go(func() { _ = s.Serve(ln) }) // ends with Close
	c.wg.Go(func() {
		defer s.Close()
		for running.Err() == nil {
			seen := w.look(running)
			w.mu.Lock()
			w.now = seen
			w.mu.Unlock()
			_ = backoff.Sleep(running, lookEvery) // the loop looks at running
		}
	})
	return nil
}

func (w *watch) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(w.status()) // the reader is gone
	})
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(rw, w.status()) // as above
	})
	return mux
}

func (w *watch) status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

var page = template.Must(template.New("status").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>Cluster</title><style>body{font:16px system-ui;margin:2em;max-width:60em}td,th{padding:.3em 1em;text-align:left;border-bottom:1px solid #ccc}
.down{color:#b00020;font-weight:bold}</style><h1>Cluster</h1>
<p>{{if ge .Robots 0}}{{.Robots}} robots connected. {{end}}{{if ge .Waiting 0}}{{.Waiting}} messages waiting in the uplink.{{else}}The uplink's lag is unknown.{{end}}</p>
<table><thead><tr><th>Part</th><th>Process</th><th>State</th><th>Role</th><th>Notes</th></tr></thead><tbody>
{{range .Parts}}<tr><td>{{.Name}}</td><td>{{if .Pid}}{{.Pid}}{{end}}</td><td>{{if .Up}}Up{{else}}<span class="down">Down</span>{{end}}</td><td>{{.Role}}</td><td>{{.Note}}</td></tr>
{{end}}</tbody></table><p>{{.At.Format "15:04:05"}}</p></html>
`))

// look asks every part, all at once.
func (w *watch) look(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	c := w.cluster
	c.mu.Lock()
	kids := slices.Clone(c.kids)
	c.mu.Unlock()
	s := Status{At: time.Now(), Waiting: -1, Robots: -1, Parts: make([]Part, len(kids))}
	at := map[string]*Part{}
	for i, k := range kids {
		s.Parts[i] = Part{Name: k.Name(), Pid: k.Pid(), Up: k.Pid() != 0}
		at[k.Name()] = &s.Parts[i]
	}
	var wg sync.WaitGroup
	for i := range cloudProcesses {
		wg.Go(func() { w.askKenneld(ctx, at[kenneldName(i)], i) })
	}
	waiting := make([]int64, brokerServers)
	for i := range brokerServers {
		wg.Go(func() { waiting[i] = w.askNATS(ctx, at[natsName(i)], i) })
	}
	wg.Go(func() { w.askPatroni(ctx, at) })
	wg.Go(func() {
		var f struct {
			Connected int `json:"connected"`
		}
		if err := w.get(ctx, "http://"+c.addr(portFleet)+"/status", &f); err == nil {
			s.Robots = f.Connected
		}
	})
	wg.Wait()
	s.Waiting = slices.Max(waiting)
	return s
}

// get reads the JSON of url into out; with a nil out only its status counts.
func (w *watch) get(ctx context.Context, url string, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(http.MaxBytesReader(nil, resp.Body, maxAnswer)).Decode(out)
}

func (w *watch) askKenneld(ctx context.Context, p *Part, i int) {
	if p == nil {
		return
	}
	if err := w.get(ctx, "https://"+w.cluster.addr(portKenneld+i)+"/readyz", nil); err != nil {
		p.Up, p.Note = false, "not ready: "+err.Error()
	}
}

// jsz holds the fields of a NATS server's answer about its streams.
type jsz struct {
	Meta struct {
		Leader string `json:"leader"`
	} `json:"meta_cluster"`
	Accounts []struct {
		Streams []struct {
			Name    string `json:"name"`
			Cluster struct {
				Leader string `json:"leader"`
			} `json:"cluster"`
			State struct {
				Messages int64 `json:"messages"`
			} `json:"state"`
			Consumers []struct {
				Pending int64 `json:"num_pending"`
			} `json:"consumer_detail"`
		} `json:"stream_detail"`
	} `json:"account_details"`
}

// askNATS returns the uplink's lag if this server leads the stream, else -1.
func (w *watch) askNATS(ctx context.Context, p *Part, i int) int64 {
	if p == nil {
		return -1
	}
	base := "http://" + w.cluster.addr(portNATS+4*i+3)
	var v struct {
		Connections int `json:"connections"`
	}
	var j jsz
	if err := cmp.Or(w.get(ctx, base+"/varz", &v), w.get(ctx, base+"/jsz?accounts=true&streams=true&consumers=true", &j)); err != nil {
		p.Up, p.Note = false, err.Error()
		return -1
	}
	p.Role, p.Note = "follower", fmt.Sprintf("%d connections", v.Connections)
	if j.Meta.Leader == p.Name {
		p.Role = "leader"
	}
	for _, a := range j.Accounts {
		for _, s := range a.Streams {
			if s.Name != "KENNEL" || s.Cluster.Leader != p.Name {
				continue
			}
			p.Note += ", leads the uplink"
			waiting := int64(0)
			for _, k := range s.Consumers {
				waiting += k.Pending
			}
			return waiting
		}
	}
	return -1
}

// askPatroni asks whichever Patroni answers about both Postgres.
func (w *watch) askPatroni(ctx context.Context, at map[string]*Part) {
	var seen struct {
		Members []struct {
			Name  string `json:"name"`
			Role  string `json:"role"`
			State string `json:"state"`
			Lag   any    `json:"lag"`
		} `json:"members"`
	}
	for i := range 2 {
		if err := w.get(ctx, "http://"+w.cluster.addr(portPatroni+i)+"/cluster", &seen); err == nil {
			break
		}
	}
	for _, m := range seen.Members {
		p := at[m.Name]
		if p == nil {
			continue
		}
		p.Up = p.Up && (m.State == "running" || m.State == "streaming")
		p.Role = map[string]string{"leader": "primary", "sync_standby": "synchronous standby"}[m.Role]
		p.Role = cmp.Or(p.Role, m.Role)
		p.Note = m.State
		if m.Lag != nil {
			p.Note += fmt.Sprintf(", %v bytes behind", m.Lag)
		}
	}
}
