package diag

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/host"
	"kennel/edge/agent/localapi"
	"kennel/edge/agent/outbox"
	"kennel/edge/env/platform"
	"kennel/infra/api/commandwire"
	"kennel/infra/logging"
)

// frugalLook is how often each of many robots in one process looks at its folders.
const frugalLook = 5 * time.Minute

// Request says what to send.
type Request = commandwire.LogRequest

// Logs collects and uploads a robot's logs. The original's two uploaders have a folder each: of files that programs leave, and of snapshots. Safe for
// concurrent use.
type Logs struct {
	cfg     Config
	collect Collector
	boxes   []*outbox.Outbox
}

// Config holds what logs need beside the robot.
type Config struct {
	Ways    platform.Uploads
	Allowed func() bool                 // the owner allows that logs are collected
	Profile func() string               // of the owner; "": none
	Confirm func(context.Context) error // asks whether the owner is who the robot takes for it, before logs are collected for the cloud; nil: the robot has none
	Upload  func(context.Context, *http.Request) (*http.Response, error)
}

// Part returns the logs as a part of agentd.
//
//	POST /logs/send  Request -> Queued   for the command line (VEC-DGN-11)
func (l *Logs) Part() host.Part {
	p := host.Part{
		Name:  "uploads",
		Hears: []host.Hearing{host.On(func(host.LinkUp) { l.look() }), host.On(func(host.Consented) { l.look() })},
		Commands: map[string]commands.Executor{commandwire.SendLogs: func(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
			r, err := commandwire.ParseLogRequest(args)
			if err == nil && l.cfg.Confirm != nil {
				err = l.cfg.Confirm(ctx)
			}
			if err != nil {
				return commands.Outcome{}, err
			}
			name, err := l.Send(ctx, r)
			return commands.Outcome{Detail: commandwire.Queued(name)}, err
		}},
		Local: map[string]http.Handler{"POST /logs/send": localapi.Answer(func(ctx context.Context, r Request) (Queued, error) {
			name, err := l.Send(ctx, r)
			return Queued{name}, err
		})},
	}
	for _, o := range l.boxes {
		p.Services = append(p.Services, o.Services()...)
	}
	return p
}

// Queued names an upload.
type Queued struct {
	Name string `json:"name"`
}

// New returns the logs of a robot. A mistake in its settings leaves the rest in force.
func New(robot host.Robot, cfg Config) *Logs {
	conf, err := platform.LoadLogUploader(robot.Root, robot.Getenv)
	out, oerr := conf.Outgoing(robot.Root)
	work, werr := Work(robot.Root)
	if err := errors.Join(err, oerr, werr); err != nil {
		robot.Log.Error("settings ignored", logging.Err, err)
	}
	l := &Logs{cfg: cfg, collect: Collector{Root: robot.Root, Thing: robot.Thing, Logs: conf, Allowed: cfg.Allowed, Now: robot.Now, Host: func() string { return cloudHost(robot) }}}
	if robot.Recovery { // the user data are left alone
		return l
	}
	send := Sender{Root: robot.Root, Hardware: robot.Hardware, Thing: robot.Thing, OS: robot.OS, Profile: cfg.Profile, Now: robot.Now, Upload: cfg.Upload}.Send
	add := func(kind, dir string, match func(string) bool, open bool) {
		c := outbox.Config{Kind: kind, Root: robot.Root, Dir: dir, Match: match, Quota: int64(conf.QuotaMB) * 1_000_000, Every: conf.Every, Allowed: cfg.Allowed,
			Emit: robot.Emit, Log: robot.Log}
		if open {
			c.Send = send
		}
		if robot.Frugal {
			c.Unwatched, c.Every = true, max(c.Every, frugalLook)
		}
		l.boxes = append(l.boxes, outbox.New(c))
	}
	add("logs", out, nil, cfg.Ways.Logs)
	add("snapshots", work, IsSnapshot, cfg.Ways.Snapshots)
	return l
}

// cloudHost returns the name of the cloud's host; "": not known.
func cloudHost(robot host.Robot) string {
	e, _ := platform.LoadEndpoints(robot.Root, robot.Hardware) // an archive without it is better than none
	u, err := url.Parse(e.Kennel.API)
	if err != nil || strings.HasPrefix(u.Hostname(), "-") {
		return ""
	}
	return u.Hostname()
}

// look says that there is a connection, or that the owner may have changed their mind.
func (l *Logs) look() {
	for _, o := range l.boxes {
		o.Look()
	}
}

// Send collects the robot's logs, whose upload follows by itself, and returns the name of the upload. Denied: the owner does not allow it.
func (l *Logs) Send(ctx context.Context, r Request) (name string, err error) {
	if r.Diagnostics {
		return l.collect.Archive(ctx, r.Reason)
	}
	return l.collect.Snapshot(r.Reason)
}
