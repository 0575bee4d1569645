package registryapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

const (
	heartbeat = 15 * time.Second // keeps proxies from closing a quiet stream
	// streamLife limits a stream; then the browser reconnects, so that an ended session does not watch for ever.
	streamLife   = 10 * time.Minute
	writeTimeout = 10 * time.Second
	// gather is how long changes are gathered into one write, after one that went at once. A robot that changed twice meanwhile is told once.
	gather     = 250 * time.Millisecond
	countEvery = 2 * time.Second
	maxKnown   = 200_000 // things remembered as not selected; beyond it, some are told of twice
)

// watch streams changes as server-sent events:
//
//	thing   a robot that changed and is selected, as GET /v1/things/{thing} shows it
//	left    {"thing": ...}: one that changed and is not selected (any more)
//	counts  the selection in numbers, if asked for, whenever they changed
//
// A client that comes back has missed some: it lists again. So must one whose filter speaks of ages now and then: time alone is no change.
func (a *api) watch(ctx context.Context, r watching) (http.Handler, error) {
	f, err := r.filter()
	if err != nil {
		return nil, err
	}
	s := &stream{pending: map[thing.ID]*registry.Update{}, out: map[thing.ID]bool{}}
	if r.Counts {
		s.counts = func(ctx context.Context) (registry.Counts, error) { return a.svc.Counts(ctx, f) }
	}
	if s.filter, err = a.svc.Resolve(ctx, f); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), streamLife)
		defer cancel()
		send := kithttp.Stream(w, writeTimeout)
		if send("retry: 1000\n: watching\n\n") {
			s.run(ctx, a.svc.Follow(ctx), send)
		}
	}), nil
}

type watching struct {
	selection
	Counts bool `query:"counts" about:"1: include counts."`
}

// stream is one watcher.
type stream struct {
	filter  filter.Filter // resolved
	counts  func(context.Context) (registry.Counts, error)
	pending map[thing.ID]*registry.Update
	order   []thing.ID // of pending, as they came
	out     map[thing.ID]bool
	buf     bytes.Buffer
	last    []byte // counts as they were told
}

// run tells changes by send until ctx ends, the changes end, or send fails.
func (s *stream) run(ctx context.Context, changes <-chan *registry.Update, send func(string) bool) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	count := time.NewTicker(countEvery)
	defer count.Stop()
	if s.counts == nil {
		count.Stop()
	} else if s.count(ctx); !s.flush(send) {
		return
	}
	var rest <-chan time.Time // nil: the next change goes at once
	for {
		select {
		case u, ok := <-changes:
			if !ok {
				return
			}
			s.add(u)
			if rest != nil {
				continue
			}
			for more := true; more; {
				select {
				case u, ok := <-changes:
					if more = ok; ok {
						s.add(u)
					}
				default:
					more = false
				}
			}
			s.write(time.Now())
			rest = time.After(gather)
		case <-rest:
			if rest = nil; len(s.order) > 0 {
				s.write(time.Now())
				rest = time.After(gather)
			}
		case <-count.C:
			s.count(ctx)
		case <-beat.C:
			s.buf.WriteString(": beat\n\n")
		}
		if !s.flush(send) {
			return
		}
	}
}

func (s *stream) flush(send func(string) bool) bool {
	if s.buf.Len() == 0 {
		return true
	}
	ok := send(s.buf.String())
	s.buf.Reset()
	return ok
}

func (s *stream) add(u *registry.Update) {
	if s.pending[u.Thing.ID] == nil {
		s.order = append(s.order, u.Thing.ID)
	}
	s.pending[u.Thing.ID] = u
}

// write puts what is pending into the buffer.
func (s *stream) write(now time.Time) {
	for _, id := range s.order {
		u := s.pending[id]
		if len(s.filter.Terms) > 0 && !u.Match(s.filter, now) {
			if !s.out[id] {
				if len(s.out) >= maxKnown {
					clear(s.out)
				}
				s.out[id] = true
				s.event("left", []byte(`{"thing":"`+string(id)+`"}`)) // an id needs no escape
			}
			continue
		}
		delete(s.out, id)
		if b, err := u.JSON(); err == nil { // what was read from JSON is written as JSON
			s.event("thing", b)
		}
	}
	clear(s.pending)
	s.order = s.order[:0]
}

// count puts the counts into the buffer if they changed. A database that is away is asked again.
func (s *stream) count(ctx context.Context) {
	n, err := s.counts(ctx)
	if err != nil {
		return
	}
	at := n.At
	n.At = time.Time{}
	b, err := json.Marshal(n)
	if err != nil || bytes.Equal(b, s.last) {
		return
	}
	s.last = b
	n.At = at
	if b, err = json.Marshal(n); err == nil {
		s.event("counts", b)
	}
}

func (s *stream) event(name string, data []byte) {
	s.buf.WriteString("event: " + name + "\ndata: ")
	s.buf.Write(data)
	s.buf.WriteString("\n\n")
}
