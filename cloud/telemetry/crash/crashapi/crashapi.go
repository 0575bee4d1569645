// Package crashapi is crashes over HTTP and as pages of the console, for operators.
package crashapi

import (
	"context"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/telemetry/crash"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/thing"
)

const sendTime = 10 * time.Minute // of a dump

// Actions of the audit log.
const (
	AuditGroup   = "crash.group"
	AuditSymbols = "crash.symbols"
	AuditRemove  = "crash.symbols.remove"
	AuditDump    = "crash.download"
)

// Audit writes one line about what the caller in ctx does; what cannot be written down is not done.
type Audit func(ctx context.Context, action, object, detail string) error

type (
	groups struct {
		State   string `query:"state" about:"Only groups in this state." enum:"open,resolved,regressed"`
		Program string `query:"program" about:"Only groups of this program."`
		Version string `query:"version" about:"Only groups with crashes of this version."`
		Limit   int    `query:"limit" about:"Maximum number of results." min:"1" max:"500" default:"50"`
		After   string `query:"after" about:"Continue after the group with this id."`
	}
	crashes struct {
		Thing   thing.ID `query:"thing" about:"Only crashes of this robot."`
		Group   string   `query:"group" about:"Only crashes of this group."`
		Version string   `query:"version" about:"Only crashes of this version."`
		Limit   int      `query:"limit" about:"Maximum number of results." min:"1" max:"500" default:"50"`
		After   string   `query:"after" about:"Continue after the crash with this id."`
	}
	group struct {
		ID string `path:"group"`
	}
	changed struct {
		group
		Change crash.Change `body:""`
	}
	one struct {
		ID string `path:"crash"`
	}
	symbols struct {
		Debug string `path:"debug"`
	}
	upload struct {
		Body op.Raw `body:""`
	}
)

func (r groups) query() crash.GroupQuery {
	return crash.GroupQuery{State: crash.State(r.State), Program: r.Program, Version: r.Version, Limit: r.Limit, After: r.After}
}

func (r crashes) query() crash.Query {
	return crash.Query{Thing: r.Thing, Group: r.Group, Version: r.Version, Limit: r.Limit, After: r.After}
}

// shownGroup is how kennelctl shows a group.
const shownGroup = "group=.id; state; fixed in=or .fixed_in `–`; note=or .note `–`; program; signature; crashes; robots; versions; first seen; last seen"

// Operations returns the operations on crashes.
func Operations(svc *crash.Service, audit Audit, log *slog.Logger) op.List {
	spec := func(route, summary string, roles []auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Crashes", Summary: summary, Roles: roles, Strict: true}
	}
	file := func(part, summary string, tail bool) op.Op {
		s := spec("GET /v1/crashes/{crash}/"+part, summary, auth.Staff)
		s.AnswerMedia = "application/octet-stream"
		return op.New(s, func(ctx context.Context, r one) (http.Handler, error) {
			found, err := svc.Crash(ctx, r.ID)
			if err == nil { // a dump is the robot's memory, and may hold what a person said or saw
				err = audit(ctx, AuditDump, r.ID, "")
			}
			return content{svc, found, log, tail}, err
		})
	}
	uploads := spec("POST /v1/crash-symbols", "Upload a Breakpad symbol file. It replaces the one with the same debug id, and stored crashes are analysed again.", auth.Changers)
	uploads.BodyMedia, uploads.Timeout = "text/plain", -1
	sees := func(route string) op.Op { return op.Rule(op.Spec{Route: route, Roles: auth.Staff, Page: true}) }
	return op.List{
		sees("GET /things/{thing}/crashes"), sees("GET /crashes"), sees("GET /crashes/group"), sees("GET /crashes/crash"), sees("GET /crashes/symbols"),
		op.Rule(op.Spec{Route: "POST /crashes/group", Roles: auth.Changers, Page: true}),
		op.New(spec("GET /v1/crash-groups", "List groups of crashes with the same cause, the latest seen first. Link rel=\"next\" leads to the next page.", auth.Staff).With(
			op.Command{Use: "crashes list -state -program -version -after -limit=50", Short: "List groups of crashes, the latest seen first", Example: "crashes list\ncrashes list -state open -version 2.0.1.6076", Table: "GROUP=.id; STATE; CRASHES; ROBOTS; LAST SEEN; PROGRAM; SIGNATURE"}),
			func(ctx context.Context, r groups) (op.Page[crash.Group], error) {
				list, err := svc.Groups(ctx, r.query())
				return op.Of(list, r.Limit, func(g crash.Group) string { return g.ID }), err
			}),
		op.New(spec("GET /v1/crash-groups/{group}", "Show a group of crashes.", auth.Staff).With(op.Command{Use: "crashes group GROUP", Table: shownGroup}),
			func(ctx context.Context, r group) (crash.Group, error) { return svc.Group(ctx, r.ID) }),
		op.New(spec("PATCH /v1/crash-groups/{group}", "Resolve or reopen a group of crashes, or change its note. A crash of a fixed version makes a resolved group regressed.", auth.Changers).With(
			op.Command{Use: "crashes resolve GROUP state:=resolved -fixed-in -note", Short: "Resolve a group of crashes", Long: "The group regresses when -fixed-in or a later version crashes; without -fixed-in, when a version later than all crashed ones does.", Example: "crashes resolve 6d59fcd7-0b97-4572-9d24-27ee3045a43f -fixed-in 2.0.1.6076 -note 'checks for nil'", Table: shownGroup},
			op.Command{Use: "crashes reopen GROUP state:=open -note", Short: "Reopen a group of crashes", Table: shownGroup}),
			func(ctx context.Context, r changed) (crash.Group, error) {
				return change(ctx, svc, audit, r.ID, r.Change)
			}),
		op.New(spec("GET /v1/crashes", "List crashes without their stacks, the newest first. Link rel=\"next\" leads to the next page.", auth.Staff).With(
			op.Command{Use: "crashes reports -thing -group -version -after -limit=50", Short: "List crashes, the newest first", Example: "crashes reports -thing vic:00e20100\ncrashes reports -group 6d59fcd7-0b97-4572-9d24-27ee3045a43f -version 2.0.1.6076", Table: "CRASH=.id; THING; CRASHED=.at; PROGRAM; VERSION=or .version `–`; REASON"}),
			func(ctx context.Context, r crashes) (op.Page[crash.Crash], error) {
				list, err := svc.Crashes(ctx, r.query())
				return op.Of(list, r.Limit, func(c crash.Crash) string { return c.ID }), err
			}),
		op.New(spec("GET /v1/crashes/{crash}", "Show a crash with its stacks.", auth.Staff), func(ctx context.Context, r one) (crash.Crash, error) { return svc.Crash(ctx, r.ID) }),
		file("dump", "Its dump as it came.", false),
		file("log", "Its log as it came.", true),
		op.New(spec("GET /v1/crash-symbols", "List symbol files.", auth.Staff).With(
			op.Command{Use: "crashes symbols list", Short: "List symbol files", Table: "DEBUG ID; MODULE; CPU; FUNCTIONS; SIZE=bytes .size; UPLOADED; BY"}), func(ctx context.Context, _ op.None) ([]crash.Symbols, error) { return svc.Symbols(ctx) }),
		op.New(uploads, func(ctx context.Context, r upload) (crash.Symbols, error) {
			if err := audit(ctx, AuditSymbols, "", strconv.FormatInt(r.Body.Size, 10)+" bytes"); err != nil {
				return crash.Symbols{}, err
			}
			return svc.Upload(ctx, r.Body, r.Body.Size, auth.CallerFrom(ctx).Subject())
		}),
		op.New(spec("DELETE /v1/crash-symbols/{debug}", "Delete a symbol file.", auth.Changers).With(
			op.Command{Use: "crashes symbols remove DEBUG-ID", Short: "Delete a symbol file; names already resolved with it stay", Example: "crashes symbols remove 3983974E3E1BE0D45C55B2B5C59FD7DF0", Says: "symbol file deleted"}), func(ctx context.Context, r symbols) (op.None, error) {
			if err := audit(ctx, AuditRemove, r.Debug, ""); err != nil {
				return op.None{}, err
			}
			return op.None{}, svc.Remove(ctx, r.Debug)
		}),
	}
}

// change changes a group, and writes that down first.
func change(ctx context.Context, svc *crash.Service, audit Audit, id string, c crash.Change) (crash.Group, error) {
	if err := c.Check(); err != nil {
		return crash.Group{}, err
	}
	var words []string
	if c.State != "" {
		words = append(words, string(c.State))
	}
	if c.FixedIn != "" {
		words = append(words, "fixed in "+c.FixedIn)
	}
	if c.Note != nil {
		words = append(words, "note")
	}
	if err := audit(ctx, AuditGroup, id, strings.Join(words, ", ")); err != nil {
		return crash.Group{}, err
	}
	return svc.Change(ctx, id, c, auth.CallerFrom(ctx).Subject())
}

// content sends a dump or a log as it came.
type content struct {
	svc   *crash.Service
	found crash.Crash
	log   *slog.Logger
	tail  bool // the log
}

func (c content) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := c.found
	ctx, cancel := context.WithTimeout(r.Context(), sendTime)
	defer cancel()
	body, err := c.svc.Open(ctx, found, c.tail)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	defer body.Close() // only read
	size, name := found.Size, found.Program+"-"+found.ID+".dmp"
	if c.tail {
		size, name = found.LogSize, found.Program+"-"+found.ID+".log"
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream") // whatever the robot says: a browser must not run it
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, c) {
			return '-'
		}
		return c
	}, name)}))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime)) // a server without deadlines needs none
	if _, err := io.CopyN(w, body, size); err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "crash not sent completely", "crash", found.ID, logging.Err, err)
	}
}
