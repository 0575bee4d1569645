package diag

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/outbox"
	"kennel/edge/env/platform"
	"kennel/infra/api/commandwire"
	"kennel/infra/logging"
	"kennel/infra/runner"
)

// frugalLook is how often each of many robots in one process looks at its folders.
const frugalLook = 5 * time.Minute

// Request says what to send.
type Request = commandwire.LogRequest

// Logs collects and uploads a robot's logs. The original's two uploaders have a folder each: of files that programs leave, and of snapshots. Safe for
// concurrent use.
type Logs struct {
	collect Collector
	boxes   []*outbox.Outbox
}

// New opens the logs of a robot, which are collected while its owner allows it. A mistake in its settings leaves the rest in force.
func New(robot host.Robot, ways platform.Uploads, allowed func() bool, profile func() string, upload func(context.Context, *http.Request) (*http.Response, error)) *Logs {
	conf, err := platform.LoadLogUploader(robot.Root, robot.Getenv)
	out, oerr := conf.Outgoing(robot.Root)
	work, werr := Work(robot.Root)
	if err := errors.Join(err, oerr, werr); err != nil {
		robot.Log.Error("settings ignored", logging.Err, err)
	}
	l := &Logs{collect: Collector{Root: robot.Root, Thing: robot.Thing, Logs: conf, Allowed: allowed, Now: robot.Now, Host: func() string { return cloudHost(robot) }}}
	if robot.Recovery { // the user data are left alone
		return l
	}
	send := Sender{Root: robot.Root, Hardware: robot.Hardware, Thing: robot.Thing, OS: robot.OS, Profile: profile, Now: robot.Now, Upload: upload}.Send
	add := func(kind, dir string, match func(string) bool, open bool) {
		c := outbox.Config{Kind: kind, Root: robot.Root, Dir: dir, Match: match, Quota: int64(conf.QuotaMB) * 1_000_000, Every: conf.Every, Allowed: allowed,
			Unwatched: robot.Frugal, Emit: robot.Emit, Log: robot.Log}
		if open {
			c.Send = send
		}
		if robot.Frugal {
			c.Every = max(c.Every, frugalLook)
		}
		l.boxes = append(l.boxes, outbox.New(c))
	}
	add("logs", out, nil, ways.Logs)
	add("snapshots", work, IsSnapshot, ways.Snapshots)
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

// Look says that there is a connection, or that the owner may have changed their mind.
func (l *Logs) Look() {
	for _, o := range l.boxes {
		o.Look()
	}
}

// Services upload what waits.
func (l *Logs) Services() (all []runner.Service) {
	for _, o := range l.boxes {
		all = append(all, o.Services()...)
	}
	return all
}

// Send collects the robot's logs, whose upload follows by itself, and returns the name of the upload.
func (l *Logs) Send(ctx context.Context, r Request) (name string, err error) {
	if r.Diagnostics {
		return l.collect.Archive(ctx, r.Reason)
	}
	return l.collect.Snapshot(r.Reason)
}
