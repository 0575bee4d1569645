// Package dasapi is robots' events over HTTP, for operators, and for owners about one robot of theirs since it is theirs.
//
// A tail begins now, or at since; a client that reconnects with Last-Event-ID continues after the event it saw last. Silence is broken by a comment
// every 15 seconds.
package dasapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/dasfile"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/thing"
)

type (
	// filter is das.Filter as parameters, which das reads.
	filter struct {
		Thing   thing.ID   `query:"thing" about:"Only events of this robot; required for owners."`
		Robots  string     `query:"robots" about:"Only events of robots that match this filter, such as cohort:beta; for operators."`
		Event   string     `query:"event" about:"Only events whose name begins with this."`
		Name    string     `query:"name" about:"Full name of the event."`
		Version string     `query:"version" about:"Only events of robots with this release; may end in *."`
		Level   string     `query:"level" about:"Only events of at least this level." enum:"debug,info,warning,error"`
		Source  string     `query:"source" about:"Only events of this program of the robot."`
		Value   string     `query:"value" about:"Condition such as battery<3500 or s1=low; may be repeated, all must hold. A value is named by its field, s1 to s4 and i1 to i4, or, with name, as in the event's description."`
		Fits    string     `query:"fits" about:"Only events that do not match their description." enum:"no"`
		Since   string     `query:"since" about:"Only events received since this time, or this long ago, such as 24h or 7d."`
		Until   string     `query:"until" about:"Only events received before this time, or this long ago."`
		Clock   string     `query:"clock" about:"Clock that since and until refer to." enum:"cloud,robot"`
		All     url.Values `query:"*"`
	}
	listed struct {
		filter
		Limit  int    `query:"limit" about:"Maximum number of results." min:"1" max:"1000" default:"100"`
		Before string `query:"before" about:"Only events before this cursor, from the end of the previous page."`
	}
	counted struct {
		filter
		By string `query:"by" about:"What to group by." enum:"hour,day,event,version,source,level,robot"`
		Of string `query:"of" about:"Number whose quantiles to return: i1 to i4 or, with name, its name in the event's description."`
	}
	exported struct {
		filter
		Format string `query:"format" about:"Format of the file." enum:"ndjson,csv,parquet"`
	}
	tailed struct {
		filter
		Seen string `header:"Last-Event-ID"`
	}
	experiments struct {
		Since string `query:"since" about:"Only experiments reported since this time, or this long ago, such as 30d." default:"30d"`
	}
	compared struct {
		Key   string     `path:"key"`
		Name  string     `query:"name" about:"Full name of the event."`
		Of    string     `query:"of" about:"Number of the event to compare: i1 to i4, or its name in the event's description."`
		Since string     `query:"since" about:"Start time, or how long ago; default: a week ago."`
		Until string     `query:"until" about:"End time, or how long ago; default: now."`
		All   url.Values `query:"*"`
	}
	booted struct {
		Thing thing.ID `query:"thing" about:"Robot whose boots to list."`
		Limit int      `query:"limit" about:"Maximum number of results." min:"1" max:"1000" default:"100"`
	}
)

// read reads the filter, in which the parameters more may be, too. For the owner of a robot it begins where the robot became theirs.
func (f filter) read(ctx context.Context, more ...string) (das.Filter, error) {
	out, err := das.ReadFilter(f.All, time.Now(), func(key, _ string) (bool, error) { return slices.Contains(more, key), nil })
	since, mine := auth.OwnedSince(ctx)
	switch {
	case err != nil:
	case mine && out.Robots != "":
		err = errs.New(errs.Denied, "robots %.60q: only operators may use filters of the fleet", out.Robots)
	case mine:
		out.Owned = since
	}
	return out, err
}

// Config holds what the operations need besides the events.
type Config struct {
	Owns  auth.Owns                                                      // whether a tail's reader still owns the robot
	Audit func(ctx context.Context, action, object, detail string) error // writes a line for each export
}

// Operations returns what operators and owners may do.
func Operations(svc *das.Service, cfg Config) op.List {
	return op.List{
		op.New(op.Spec{Route: "GET /v1/events", Tag: "Events", Summary: "List events, the newest first. Link rel=\"next\" leads to the next page.", Roles: auth.Staff, Own: true, Timeout: -1},
			func(ctx context.Context, q listed) (p op.Page[das.Record], err error) {
				f, err := q.read(ctx, "limit", "before")
				if err != nil {
					return p, err
				}
				before, err := das.ParseCursor(q.Before)
				if err != nil {
					return p, errs.New(errs.Invalid, "before %.60q: %w", q.Before, err)
				}
				recs, err := svc.List(ctx, f, q.Limit, before)
				return op.Before(recs, q.Limit, func(r das.Record) string { return r.Cursor().String() }), err
			}),
		op.New(op.Spec{Route: "GET /v1/events/counts", Tag: "Events", Roles: auth.Staff, Timeout: -1,
			Summary: "Count events, and compute quantiles of a number. Without since: of the last day."},
			func(ctx context.Context, c counted) (das.Counts, error) {
				q, err := das.ReadCounts(c.All, time.Now(), nil)
				if err != nil {
					return das.Counts{}, err
				}
				return svc.Counts(ctx, q)
			}),
		op.New(op.Spec{Route: "GET /v1/events/export", Tag: "Events", Roles: auth.Staff, Timeout: -1, AnswerMedia: "application/x-ndjson",
			Summary: "Download the oldest million events as one file. The trailer Kennel-Events counts them; Kennel-Cut says that there are more."},
			func(ctx context.Context, e exported) (http.Handler, error) {
				f, err := e.read(ctx, "format")
				if err != nil {
					return nil, err
				}
				format := dasfile.Format(cmp.Or(e.Format, string(dasfile.NDJSON)))
				err = cfg.Audit(ctx, "events.export", string(f.Thing), string(format)+" "+nameless(f))
				return export{svc, f, format}, err
			}),
		op.New(op.Spec{Route: "GET /v1/experiments", Tag: "Events", Summary: "List experiments that robots reported, with the number of robots in each variation.", Roles: auth.Staff, Timeout: -1}.With(
			op.Command{Use: "experiments list -since", Short: "List experiments that robots reported", Table: "EXPERIMENT=.key; VARIATIONS={{range $i, $v := .variations}}{{if $i}}, {{end}}{{$v.variation}} {{$v.robots}}{{end}}; FILES; LAST"}),
			func(ctx context.Context, q experiments) ([]das.Experiment, error) {
				f, err := das.ReadFilter(url.Values{"since": {q.Since}}, time.Now(), nil)
				if err != nil {
					return nil, err
				}
				return svc.Experiments(ctx, f.Since)
			}),
		op.New(op.Spec{Route: "GET /v1/experiments/{key}", Tag: "Events", Roles: auth.Staff, Timeout: -1,
			Summary: "Compare the variations of an experiment: how often an event occurs per robot and day, or the mean of a number."},
			func(ctx context.Context, c compared) (das.Comparison, error) {
				q, err := das.ReadCompare(c.Key, c.All, time.Now())
				if err != nil {
					return das.Comparison{}, err
				}
				return svc.Compare(ctx, q)
			}),
		op.New(op.Spec{Route: "GET /v1/events/boots", Tag: "Events", Summary: "List a robot's latest boots, and how many of their events were lost.", Roles: auth.Staff, Own: true, Strict: true, Timeout: -1}.With(
			op.Command{Use: "events boots THING -limit=20", Short: "List a robot's latest boots, and how many of their events were lost", Table: "LATEST; BOOT=.boot_id; EVENTS; FIRST; LAST; LOST; ORIGIN"}),
			func(ctx context.Context, q booted) ([]das.Boot, error) {
				if q.Thing == "" {
					return nil, errs.New(errs.Invalid, "want thing, the robot whose boots are listed, and limit")
				}
				since, _ := auth.OwnedSince(ctx)
				return svc.Boots(ctx, q.Thing, since, q.Limit)
			}),
		op.New(op.Spec{Route: "GET /v1/events/tail", Tag: "Events", Summary: "Stream events as they are stored, as server-sent events.", Roles: auth.Staff, Own: true, Timeout: -1, AnswerMedia: "text/event-stream"},
			func(ctx context.Context, q tailed) (http.Handler, error) {
				f, err := q.read(ctx)
				if err != nil {
					return nil, err
				}
				seen, err := das.ParseCursor(q.Seen)
				if err != nil {
					return nil, errs.New(errs.Invalid, "Last-Event-ID: %w", err)
				}
				return tail{svc, cfg.Owns, f, seen}, nil
			}),
	}
}

// Heartbeat breaks silence, so that neither proxies nor clients take it for a dead connection; writeTimeout ends clients that do not read.
const (
	heartbeat    = 15 * time.Second
	writeTimeout = 30 * time.Second
)

// errNotYours ends a tail.
var errNotYours = errors.New("dasapi: the robot has another owner")

// askAgain is how long the owner of a robot is one without asking, while a tail shows its events.
const askAgain = time.Second

// tail is a stream of events after seen.
type tail struct {
	svc    *das.Service
	owns   auth.Owns
	filter das.Filter
	seen   das.Cursor
}

// ServeHTTP implements http.Handler.
func (t tail) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, since := after(t.filter, t.seen), t.filter.Owned
	if !f.Since.IsZero() && f.Since.Before(since) {
		f.Since = since
	}
	ctx, cancel := context.WithCancel(r.Context())
	recs := make(chan das.Record)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(recs)
		asked := time.Now()
		// ctx has ended, the caller no longer owns the robot, or the database does not recover: either way the stream
		// ends, and the client comes again.
		_ = t.svc.Tail(ctx, f, skip(t.seen, func(rec das.Record) error {
			if !since.IsZero() && time.Since(asked) > askAgain {
				if again, mine, err := t.owns(ctx, auth.CallerFrom(ctx).Account, f.Thing); err != nil || !mine || !again.Equal(since) {
					return errNotYours
				}
				asked = time.Now()
			}
			select {
			case recs <- rec:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	})
	stream(ctx, kithttp.Stream(w, writeTimeout), recs)
}

// after makes the filter of a tail that continues after the event at seen.
func after(f das.Filter, seen das.Cursor) das.Filter {
	if !seen.Received.IsZero() {
		f.Since = seen.Received
	}
	return f
}

// skip passes records on that come behind seen. Records come in the order of commit, so those before it were seen too, although some may
// have been received later. If it does not come, because its day was dropped, a minute's worth is passed over at most.
func skip(seen das.Cursor, fn func(das.Record) error) func(das.Record) error {
	found := seen.Received.IsZero()
	return func(rec das.Record) error {
		if !found {
			found = rec.Cursor().String() == seen.String() // times may differ in location
			if found || rec.Received.Sub(seen.Received) < time.Minute {
				return nil
			}
			found = true
		}
		return fn(rec)
	}
}

// stream writes records until they end, ctx does, or the client is gone.
func stream(ctx context.Context, send func(text string) bool, recs <-chan das.Record) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for text := ": events follow\n\n"; send(text); {
		select {
		case rec, ok := <-recs:
			if !ok {
				return
			}
			b, err := json.Marshal(rec)
			if err != nil {
				return // of plain fields: cannot be
			}
			text = fmt.Sprintf("id: %s\ndata: %s\n\n", rec.Cursor(), b)
		case <-beat.C:
			text = ": still here\n\n"
		case <-ctx.Done():
			return
		}
	}
}
