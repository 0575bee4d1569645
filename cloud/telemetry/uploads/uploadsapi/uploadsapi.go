// Package uploadsapi is the logs that robots uploaded over HTTP, for operators, and for owners those that the robot uploaded for them (VEC-LOG-10).
package uploadsapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/telemetry/uploads/logfile"
	"kennel/infra/api/events"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/thing"
)

const (
	readTimeout = 30 * time.Second // a log may unpack to 128 MiB
	sendTimeout = 10 * time.Minute // of a whole log
)

// Config holds what the operations need besides the rules.
type Config struct {
	Known func(ctx context.Context, id thing.ID) error // refuses things that are not registered
	Log   *slog.Logger
}

// Account returns whose logs the caller in ctx may read: "" for all, which is for operators alone.
func Account(ctx context.Context) string {
	if c := auth.CallerFrom(ctx); !c.Role.Staff() {
		return c.Account
	}
	return ""
}

type (
	// choice chooses logs.
	choice struct {
		Name    string `query:"name" about:"Only logs whose name contains this (case-insensitive)."`
		Day     day    `query:"day" about:"Only logs uploaded on this day (UTC), such as 2026-05-06."`
		Version string `query:"version" about:"Only logs of robots whose version begins with this."`
		Kind    string `query:"kind" about:"Only logs of this kind: diagnostics, fault, log or snapshot."`
		Reason  string `query:"reason" about:"Only logs sent for this reason, such as request or fault-914."`
		After   string `query:"after" about:"Continue after the log with this id."`
	}
	// words choose lines of logs.
	words struct {
		Text  string       `query:"text" about:"Only lines that contain this (case-insensitive)."`
		Level events.Level `query:"level" about:"Only lines of at least this level; a line without a level counts as info." enum:"debug,info,warning,error"`
	}
	lines struct {
		words
		From moment `query:"from" about:"Only lines written since this time."`
		To   moment `query:"to" about:"Only lines written before this time."`
	}
	// part is where to look in a log.
	part struct {
		File string `query:"file" about:"Only lines of this file in the log."`
		Skip int    `query:"skip" about:"Number of lines to skip, as more in the previous answer says." min:"0" max:"2147483647"`
	}
	limit struct {
		Limit int `query:"limit" about:"Maximum number of results." min:"1" max:"1000" default:"100"`
	}

	fleetRequest struct {
		choice
		limit
	}
	robotRequest struct {
		Thing thing.ID `path:"thing"`
		choice
		limit
	}
	searchRequest struct {
		Thing thing.ID `path:"thing"`
		lines
		choice
		limit
	}
	logRequest struct {
		Thing thing.ID `path:"thing"`
		Log   string   `path:"log"`
	}
	linesRequest struct {
		logRequest
		lines
		part
		limit
	}
)

func (c choice) query(ctx context.Context, id thing.ID, limit int) uploads.Query {
	return uploads.Query{Thing: id, Account: Account(ctx), Name: c.Name, Day: c.Day.Time, Version: c.Version, Kind: c.Kind, Reason: c.Reason, After: c.After, Limit: limit}
}

func (l lines) search(p part, limit int) uploads.Search {
	return uploads.Search{Filter: logfile.Filter{File: p.File, Text: l.Text, Level: l.Level, From: time.Time(l.From), To: time.Time(l.To)}, Skip: p.Skip, Limit: limit}
}

// shownLogs is how kennelctl shows logs.
const shownLogs = "LOG=.id; THING; NAME; SIZE=bytes .size; UPLOADED=.at; REASON=or .reason .kind; RELEASE=or .os `–`; EXPIRES"

// Operations returns what operators and owners may do.
func Operations(svc *uploads.Service, cfg Config) op.List {
	list := func(ctx context.Context, q uploads.Query) (op.Page[uploads.Log], error) {
		logs, err := svc.List(ctx, q)
		return op.Of(logs, q.Limit, func(l uploads.Log) string { return l.ID }), err
	}
	of := func(ctx context.Context, r logRequest) (uploads.Log, error) {
		if err := cfg.Known(ctx, r.Thing); err != nil {
			return uploads.Log{}, err
		}
		return svc.Get(ctx, r.Thing, Account(ctx), r.Log)
	}
	return op.List{
		op.New(op.Spec{Route: "GET /v1/logs", Tag: "Logs", Summary: "List logs that robots uploaded, the newest first. Link rel=\"next\" leads to the next page.", Roles: auth.Staff, Strict: true}.With(
			op.Command{Use: "logs list -name -day -version -kind -reason -after -limit=100", Table: shownLogs}),
			func(ctx context.Context, r fleetRequest) (op.Page[uploads.Log], error) {
				return list(ctx, r.query(ctx, "", r.Limit))
			}),
		op.New(op.Spec{Route: "GET /v1/things/{thing}/logs", Tag: "Logs", Summary: "List logs that a robot uploaded, the newest first. Link rel=\"next\" leads to the next page.", Roles: auth.Staff, Own: true, Strict: true}.With(
			op.Command{Use: "logs list THING -name -day -version -kind -reason -after -limit=100", Short: "List logs of a robot, or of all robots, the newest first", Example: "logs list vic:00e20100\nlogs list vic:00e20100 -day 2026-05-06 -name engine\nlogs list -version 2.0.1 -reason fault-914", Table: shownLogs}),
			func(ctx context.Context, r robotRequest) (op.Page[uploads.Log], error) {
				if err := cfg.Known(ctx, r.Thing); err != nil {
					return op.Page[uploads.Log]{}, err
				}
				return list(ctx, r.query(ctx, r.Thing, r.Limit))
			}),
		op.New(op.Spec{Route: "GET /v1/things/{thing}/logs/search", Tag: "Logs", Summary: "Search a robot's logs for lines, the newest log first.", Roles: auth.Staff, Own: true, Strict: true,
			Timeout: readTimeout}, func(ctx context.Context, r searchRequest) (uploads.Found, error) {
			if err := cfg.Known(ctx, r.Thing); err != nil {
				return uploads.Found{}, err
			}
			return svc.Search(ctx, r.query(ctx, r.Thing, r.Limit), r.search(part{}, r.Limit))
		}),
		op.New(op.Spec{Route: "GET /v1/things/{thing}/logs/{log}", Tag: "Logs", Summary: "Show a log, unpacked: its files and selected lines.", Roles: auth.Staff, Own: true, Strict: true,
			Timeout: readTimeout}, func(ctx context.Context, r linesRequest) (uploads.Contents, error) {
			l, err := of(ctx, r.logRequest)
			if err != nil {
				return uploads.Contents{}, err
			}
			return svc.Read(ctx, l, r.search(r.part, r.Limit))
		}),
		op.New(op.Spec{Route: "GET /v1/things/{thing}/logs/{log}/content", Tag: "Logs", Summary: "Download a log as it was uploaded.", Roles: auth.Staff, Own: true, Strict: true, AnswerMedia: "application/octet-stream"},
			func(ctx context.Context, r logRequest) (http.Handler, error) {
				l, err := of(ctx, r)
				return content{svc, l, cfg.Log}, err
			}),
	}
}

// day is a date.
type day struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *day) UnmarshalText(b []byte) (err error) {
	if d.Time, err = time.Parse(time.DateOnly, string(b)); err != nil {
		return errors.New("want a date such as 2026-05-06")
	}
	return nil
}

// moment is a time; what a person types on a page needs neither seconds nor a zone, which is then UTC.
type moment time.Time

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *moment) UnmarshalText(b []byte) error {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, string(b)); err == nil {
			*m = moment(t.UTC())
			return nil
		}
	}
	return errors.New("want a time such as 2026-05-06T12:00:00Z")
}

// content sends a log as it was uploaded.
type content struct {
	svc *uploads.Service
	uploads.Log
	log *slog.Logger
}

// ServeHTTP implements http.Handler.
func (c content) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), sendTimeout)
	defer cancel()
	body, err := c.svc.Open(ctx, c.Log)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	defer body.Close() // only read
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream") // whatever the robot says: a browser must not run it
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.FormatInt(c.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": FileName(c.Log)}))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTimeout)) // a server without deadlines needs none
	if _, err := io.CopyN(w, body, c.Size); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "log not sent completely", logging.Thing, c.Thing, logging.Err, err)
	}
}

// FileName returns what a downloaded log is called on a computer.
func FileName(l uploads.Log) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, l.Name)
	return l.Thing.Slug() + "-" + strings.TrimLeft(name, ".-")
}
