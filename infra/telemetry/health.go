package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"kennel/infra/kit/kithttp"
)

// Check is one thing that a process cannot work without.
type Check struct {
	Name string
	// Ask returns nil, or why it is not there, in words for an operator; a Warning if it works and soon will not. ctx bounds it. Advise adds what to do.
	Ask func(ctx context.Context) error
	// Look, if not nil, is called instead of Ask; it also describes the part, in words for an operator: which server is used, how far one is behind.
	Look func(ctx context.Context) (says string, err error)
}

// Warning is the answer of a check whose part works, and needs attention so that it continues to.
type Warning string

func (w Warning) Error() string { return string(w) }

// advice is an error with its remedy.
type advice struct {
	error
	do string
}

func (a advice) Unwrap() error { return a.error }

// Advise adds to the error of a check what an operator does about it, a sentence. A nil error stays nil.
func Advise(err error, do string) error {
	if err == nil {
		return nil
	}
	return advice{err, do}
}

// Part is the result of one check.
type Part struct {
	Name   string    `json:"part"`
	OK     bool      `json:"ok"`
	Reason string    `json:"reason,omitempty"` // why it is not OK; of a part that is, a warning
	Do     string    `json:"do,omitempty"`     // what to do about the reason, a sentence
	Says   string    `json:"says,omitempty"`   // which server is used, and how far others are behind
	Since  time.Time `json:"since,omitzero"`   // when the reason was first seen; zero without one
}

// Report says whether this process can do its work. A process that is not ready is left out by a load balancer; it is not restarted for
// that, because a restart mends nothing that is away.
type Report struct {
	Ready bool      `json:"ready"`
	At    time.Time `json:"at"`
	Parts []Part    `json:"parts"`
	News  []string  `json:"news,omitempty"` // what operators should know of a process that can do its work
}

// String returns one line for people: "ready", or the checks that failed and why, then the warnings and, of a ready process, the news.
func (r Report) String() string {
	var bad, soon []string
	for _, p := range r.Parts {
		switch text := p.Name + ": " + p.Reason; {
		case !p.OK:
			bad = append(bad, text)
		case p.Reason != "":
			soon = append(soon, text)
		}
	}
	line := "ready"
	if len(bad) > 0 {
		line = "not ready: " + strings.Join(bad, "; ")
	}
	if len(soon) > 0 {
		line += "; warning: " + strings.Join(soon, "; ")
	}
	if r.Ready {
		line = strings.Join(append([]string{line}, r.News...), "; ")
	}
	return line
}

// Our own limits: how long one check may take, and how long an answer is reused, so that requests from outside cost at most one check a
// second.
const (
	checkTime  = 2 * time.Second
	reportLife = time.Second
)

// Readiness runs its checks, all at once, for each request. It is safe for concurrent use.
type Readiness struct {
	checks []Check
	news   []func() string

	mu   sync.Mutex
	last Report
}

// NewReadiness returns a Readiness of checks, and shows each as kennel_ready.
func (t *Telemetry) NewReadiness(checks ...Check) (*Readiness, error) {
	r := &Readiness{checks: checks}
	err := t.Asked(Metric{Name: "kennel_ready", Help: "1 while this process has the part it cannot work without, else 0."}, []string{"part"}, 0,
		func(ctx context.Context) ([]Sample, error) {
			var out []Sample
			for _, p := range r.Now(ctx).Parts {
				v := 0.0
				if p.OK {
					v = 1
				}
				out = append(out, Sample{[]string{p.Name}, v})
			}
			return out, nil
		})
	return r, err
}

// Tell adds sentences for operators to the reports; "" is none. Call it before the first report.
func (r *Readiness) Tell(news ...func() string) { r.news = append(r.news, news...) }

// Add adds a check.
func (r *Readiness) Add(c Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks, r.last = append(r.checks, c), Report{}
}

// Now returns a report that is at most a second old.
func (r *Readiness) Now(ctx context.Context) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.last.At) < reportLife {
		return r.last
	}
	// Not the caller's to cancel: others wait for the same answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
	defer cancel()
	rep := Report{Ready: true, Parts: make([]Part, len(r.checks))}
	var wg sync.WaitGroup
	for i, c := range r.checks {
		wg.Go(func() { rep.Parts[i] = ask(ctx, c) })
	}
	wg.Wait()
	for _, news := range r.news {
		if said := news(); said != "" {
			rep.News = append(rep.News, said)
		}
	}
	rep.At = time.Now().UTC()
	for i := range rep.Parts {
		p := &rep.Parts[i]
		rep.Ready = rep.Ready && p.OK
		if p.Reason == "" {
			continue
		}
		p.Since = rep.At
		if was := r.last.Parts; i < len(was) && was[i].Reason != "" && was[i].OK == p.OK {
			p.Since = was[i].Since
		}
	}
	r.last = rep
	return rep
}

// ask bounds one check, also one that does not look at its context.
func ask(ctx context.Context, c Check) Part {
	type answer struct {
		says string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- answer{err: fmt.Errorf("the check panicked: %v", p)}
			}
		}()
		var a answer
		if c.Look != nil {
			a.says, a.err = c.Look(ctx)
		} else {
			a.err = c.Ask(ctx)
		}
		done <- a
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		a.err = fmt.Errorf("no answer within %v", checkTime)
	}
	if a.err == nil {
		return Part{Name: c.Name, OK: true, Says: a.says}
	}
	_, works := errors.AsType[Warning](a.err)
	remedy, _ := errors.AsType[advice](a.err) // the zero one has none
	return Part{Name: c.Name, OK: works, Reason: a.err.Error(), Do: remedy.do, Says: a.says}
}

func status(ready bool) int {
	if ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// Detail answers with the whole report as JSON, 200 or 503.
func (r *Readiness) Detail() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rep := r.Now(req.Context())
		kithttp.WriteJSON(w, status(rep.Ready), rep)
	})
}

// Brief answers 200 or 503 with one word, all that strangers learn.
func (r *Readiness) Brief() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		rep := r.Now(req.Context())
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status(rep.Ready))
		if rep.Ready {
			_, _ = w.Write([]byte("ready\n"))
		} else {
			_, _ = w.Write([]byte("not ready\n"))
		}
	})
}

// Watch calls changed with each report that says something else than the one before, until ctx ends; the first at once.
func (r *Readiness) Watch(ctx context.Context, every time.Duration, changed func(Report)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		if rep := r.Now(ctx); ctx.Err() == nil && rep.String() != said {
			said = rep.String()
			changed(rep)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
