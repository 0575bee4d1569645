package audit

import (
	"context"
	"strings"
	"sync"
	"time"

	"kennel/infra/errs"
)

// Refused is the action of a line about a request that was refused before it announced what it would do, and Asked of one whose operation
// announces nothing. The detail is the route.
const (
	Refused = "refused"
	Asked   = "request"
)

const (
	notDone = "not done: " // begins the detail of a line that tells a refusal
	ahead   = 1000         // later lines that are read to find out what became of an action: a request tells it within seconds
	endTime = 5 * time.Second
)

// Request gathers what one request writes into the log, so that its result can be written too. A line of Note comes before its change, because a
// change that cannot be written is not made; if the change is refused, Refused appends a second line that says so, and readers see the result of both
// as Entry.Refused of the first one. Safe for concurrent use.
type Request struct {
	log       *Log
	mu        sync.Mutex
	announced []Entry // by Note, before the change
	written   bool    // another line of the request is in the log, or will be if its change is made
}

type requestKey struct{}

// Begin returns a context in which Note and Append tell the request what they write.
func (l *Log) Begin(ctx context.Context) (context.Context, *Request) {
	r := &Request{log: l}
	return context.WithValue(ctx, requestKey{}, r), r
}

// wrote tells the request in ctx, if there is one, of a line. announced: the line comes before its change.
func wrote(ctx context.Context, e Entry, announced bool) {
	r, _ := ctx.Value(requestKey{}).(*Request)
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if announced {
		r.announced = append(r.announced, e)
	}
	r.written = true
}

// Done writes the line of a request that was done and has none.
func (r *Request) Done(ctx context.Context, route, object string) error {
	r.mu.Lock()
	written := r.written
	r.mu.Unlock()
	if written {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime) // the caller may have left
	defer cancel()
	return r.log.Note(ctx, Asked, object, route)
}

// Refused writes that the request was refused, and why, beside each line that announced something; without one, a line about route and object is
// written if alone is set.
func (r *Request) Refused(ctx context.Context, why, route, object string, alone bool) error {
	r.mu.Lock()
	announced := r.announced
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if len(announced) == 0 && alone {
		return r.log.Note(ctx, Refused, object, notDone+why+", "+route)
	}
	for _, e := range announced {
		e.Detail = notDone + why
		if err := r.log.Append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// about holds the fields that the line about an action and the line about its result have in common.
type about struct{ actor, action, object string }

// results holds why actions were not done, as the lines read so far, the newest first, say about older ones.
type results map[about]string

// read sets the result of a line; false: the line only tells the result of an older one.
func (r results) read(l *Entry) bool {
	k := about{l.Actor, l.Action, l.Object}
	why, is := strings.CutPrefix(l.Detail, notDone)
	switch {
	case l.Action == Refused && is:
		l.Refused, l.Detail, _ = strings.Cut(why, ", ")
	case is:
		r[k] = why
		return false
	case l.Action == Refused || strings.HasSuffix(l.Action, "."+Refused):
		l.Refused = errs.Denied.String()
	default:
		l.Refused = r[k]
		delete(r, k)
	}
	return true
}
