package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/infra/backoff"
	"kennel/infra/telemetry"
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
	// Problems need attention, as the processes of the cloud say; each is listed once.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a part of the cloud's ground that needs attention.
type Problem struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
	Do     string `json:"do"`
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
	http    *http.Client

	mu  sync.Mutex
	now Status
}

// startWatch begins to look and serves what it sees.
func (c *cluster) startWatch(running context.Context) error {
	w := &watch{cluster: c, http: &http.Client{Timeout: lookTime, Transport: &http.Transport{DisableKeepAlives: true}}}
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
.down{color:#b00020;font-weight:bold}.warn{background:#fff4d6;color:#3d2c00;padding:.5em 1em}</style><h1>Cluster</h1>
<p>{{if ge .Robots 0}}{{.Robots}} robots connected. {{end}}{{if ge .Waiting 0}}{{.Waiting}} messages waiting in the uplink.{{else}}The uplink's lag is unknown.{{end}}</p>
{{range .Problems}}<p class="warn"><strong>{{.Part}}</strong>: {{.Reason}}. {{.Do}}</p>
{{end}}<table><thead><tr><th>Part</th><th>Process</th><th>State</th><th>Role</th><th>Notes</th></tr></thead><tbody>
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
	problems := make([][]Problem, cloudProcesses)
	for i := range cloudProcesses {
		wg.Go(func() { problems[i] = w.askKenneld(ctx, at[kenneldName(i)], i) })
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
	for _, p := range slices.Concat(problems...) {
		if !slices.ContainsFunc(s.Problems, func(q Problem) bool { return p.Part == q.Part && p.Reason == q.Reason }) {
			s.Problems = append(s.Problems, p)
		}
	}
	return s
}

// get reads the JSON of url into out.
func (w *watch) get(ctx context.Context, url string, out any) error {
	return w.ask(ctx, url, out, http.StatusOK)
}

// ask is get of an answer with one of these status codes.
func (w *watch) ask(ctx context.Context, url string, out any, good ...int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !slices.Contains(good, resp.StatusCode) {
		return fmt.Errorf("%s", resp.Status)
	}
	return json.NewDecoder(http.MaxBytesReader(nil, resp.Body, maxAnswer)).Decode(out)
}

// ground are the parts of readiness that the page shows.
var ground = []string{"postgres", "broker", "uplink"}

// askKenneld asks a process which ground it uses, and returns what it says needs attention.
func (w *watch) askKenneld(ctx context.Context, p *Part, i int) (out []Problem) {
	if p == nil {
		return nil
	}
	var r telemetry.Report
	if err := w.ask(ctx, "http://"+w.cluster.addr(portMetrics+i)+"/readyz", &r, http.StatusOK, http.StatusServiceUnavailable); err != nil {
		p.Up, p.Note = false, "not ready: "+err.Error()
		return nil
	}
	if p.Up = p.Up && r.Ready; !r.Ready {
		p.Note = r.String()
	}
	var says []string
	for _, part := range r.Parts {
		if part.Reason != "" {
			out = append(out, Problem{part.Name, part.Reason, part.Do})
		}
		if slices.Contains(ground, part.Name) && part.Says != "" {
			says = append(says, part.Name+": "+part.Says)
		}
	}
	if r.Ready {
		p.Note = strings.Join(says, ". ")
	}
	return out
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
	type cluster struct {
		Members []struct {
			Name  string `json:"name"`
			Role  string `json:"role"`
			State string `json:"state"`
			Lag   any    `json:"lag"`
		} `json:"members"`
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	answers := make(chan cluster, 2) // one each
	for i := range 2 {
		wg.Go(func() {
			var c cluster
			_ = w.get(ctx, "http://"+w.cluster.addr(portPatroni+i)+"/cluster", &c) // it has no members then
			answers <- c
		})
	}
	seen := <-answers
	if len(seen.Members) == 0 {
		seen = <-answers
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
