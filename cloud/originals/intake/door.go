package intake

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"kennel/certs"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/sts"
	"kennel/cloud/originals/door"
	"kennel/cloud/telemetry/das"
	"kennel/infra/blob/sigv4"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/ratelimit"
	"kennel/infra/thing"
)

// Certificate is the Caller of the things' listener.
type Certificate func(*http.Request) (thing.ID, error)

// Enter implements Caller: who has a certificate is paced by thing.
func (c Certificate) Enter(*http.Request) (func(), error) { return func() {}, nil }

// Thing implements Caller.
func (c Certificate) Thing(_ context.Context, r *http.Request, _ string) (thing.ID, error) {
	return c(r)
}

// Signed implements Caller.
func (c Certificate) Signed(_ context.Context, r *http.Request, _ []byte, _ string) (thing.ID, string, error) {
	id, err := c(r)
	return id, das.Certified, err
}

// Robots is the part of the fleet that Door needs; *registry.Service has it.
type Robots interface {
	Thing(ctx context.Context, id thing.ID) (registry.Thing, error)
	Steps(ctx context.Context, id thing.ID) ([]registry.Outcome, error)
}

// Grants opens temporary credentials; *sts.Grants does.
type Grants interface {
	Open(accessKeyID, sessionToken string) (sts.Grant, logging.Secret, error)
	Check(ctx context.Context, g sts.Grant) error
}

// Paths are where the forms are served on the listener of original robots. They begin with a slash; the path of logs ends with one too.
type Paths struct {
	Events string `koanf:"events" json:"events"`
	Logs   string `koanf:"logs" json:"logs"`
	Crash  string `koanf:"crash" json:"crash"`
}

// DefaultPaths are those of a robot whose files name this cloud (kenneld originals).
var DefaultPaths = Paths{"/das", "/logs/", "/crash"}

// Or returns the paths with the defaults in place of those that are empty.
func (p Paths) Or(d Paths) Paths {
	return Paths{cmp.Or(p.Events, d.Events), cmp.Or(p.Logs, d.Logs), cmp.Or(p.Crash, d.Crash)}
}

// Validate reports the first path that cannot work.
func (p Paths) Validate() error {
	for name, path := range map[string]string{"events": p.Events, "logs": strings.TrimSuffix(p.Logs, "/"), "crash": p.Crash} {
		if path != "" && (len(path) < 2 || path[0] != '/' || strings.ContainsAny(path, "{} ?#%") || strings.HasSuffix(path, "/")) {
			return errs.New(errs.Invalid, "robots.intake.%s %q: want a path such as /%s", name, path, name)
		}
	}
	if p.Logs != "" && !strings.HasSuffix(p.Logs, "/") {
		return errs.New(errs.Invalid, "robots.intake.logs %q: want a trailing slash", p.Logs)
	}
	return nil
}

// believed is for how long an address counts as a robot's after it proved there who it is: robots refresh their token about once a day.
const believed = 30 * 24 * time.Hour

// Door is the Caller of the listener of original robots. They sign nothing of these forms and show no certificate, so that a robot is believed by its address: it
// must have proved there lately, by its certificate or its access token, who it is. A stranger who knows a serial number and is elsewhere is refused; one in
// the robot's own network can add events of boots that never were, within the robot's quota, and cannot touch those of real ones, whose boot ids only the robot
// and the cloud know. Requests that are signed with temporary credentials are believed for those.
type Door struct {
	Robots Robots
	Grants Grants
	ByAddr certs.Limiter
	AtOnce int // bodies of one address; 0: 4
	Paths  Paths
	// Refused hears of robots that were not believed.
	Refused func(ctx context.Context, addr string, claim thing.ID, code, detail string)

	mu    sync.Mutex
	under map[string]int // bodies under way, by address
}

// Step is the doctor's name for what is sent here.
const Step = "files and events"

// CodeUnproved says that a robot is not believed.
const CodeUnproved = door.CodeUnproved

// Enter implements Caller.
func (d *Door) Enter(r *http.Request) (leave func(), err error) {
	if wait := d.ByAddr.Allow(r.RemoteAddr); wait > 0 {
		return nil, &errs.Error{Kind: errs.Exhausted, Code: "slow_down", Msg: "too many requests from this address", Retry: wait}
	}
	addr := ratelimit.Network(r.RemoteAddr)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.under == nil {
		d.under = map[string]int{}
	}
	if d.under[addr] >= cmp.Or(d.AtOnce, 4) {
		return nil, &errs.Error{Kind: errs.Exhausted, Code: "slow_down", Msg: "too many requests from this address at once", Retry: 2 * time.Second}
	}
	d.under[addr]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.under[addr]--; d.under[addr] == 0 {
			delete(d.under, addr)
		}
	}, nil
}

// Thing implements Caller.
func (d *Door) Thing(ctx context.Context, r *http.Request, claim string) (thing.ID, error) {
	if claim == "" {
		if strings.HasPrefix(r.URL.Path, d.Paths.Logs) {
			return "", errs.Coded(errs.Invalid, CodeForm, "no header Usr-RobotESN")
		}
		return "", nil
	}
	id, err := thing.New(thing.Vector, strings.ToLower(claim))
	if err != nil {
		return "", errs.Coded(errs.Invalid, CodeForm, "serial %.40q: want the serial number of a robot, such as 00e20100", claim)
	}
	why, err := d.doubt(ctx, id, r.RemoteAddr)
	if err != nil || why == "" {
		return id, err
	}
	d.Refused(ctx, r.RemoteAddr, id, CodeUnproved, why)
	// The answer does not tell which robots are known.
	return "", errs.Coded(errs.Denied, CodeUnproved, "%s has not recently proved from this address that it is an original robot of this cloud", id)
}

// doubt returns why a robot is not believed; "": it is.
func (d *Door) doubt(ctx context.Context, id thing.ID, addr string) (string, error) {
	t, err := d.Robots.Thing(ctx, id)
	switch {
	case err != nil && errs.KindOf(err) == errs.NotFound:
		return "not in this fleet", nil
	case err != nil:
		return "", err
	case t.Presence != registry.Calls:
		return "not an original robot: it sends over its own connection", nil
	}
	steps, err := d.Robots.Steps(ctx, id)
	if err != nil {
		return "", err
	}
	here := ratelimit.Network(addr)
	for _, o := range steps {
		if o.OK && o.Name == registry.StepCall && ratelimit.Network(o.Peer) == here && time.Since(o.Last) < believed {
			return "", nil
		}
	}
	return "no recent call from this address", nil
}

// Signed implements Caller.
func (d *Door) Signed(ctx context.Context, r *http.Request, body []byte, claim string) (thing.ID, string, error) {
	if r.Header.Get("Authorization") == "" {
		id, err := d.Thing(ctx, r, claim)
		if err == nil && id == "" {
			err = errs.Coded(errs.Invalid, codeContents, "no robot_id in the events")
		}
		return id, das.Claimed, err
	}
	a, err := sigv4.ParseFor(r, "sqs", body)
	if err != nil {
		return "", "", err
	}
	g, secret, err := d.Grants.Open(a.AccessKeyID, a.Token)
	if err != nil {
		return "", "", errs.Coded(errs.Denied, "InvalidClientTokenId", "the security token included in the request is invalid: %s", errs.Public(err))
	}
	if err := a.Verify(ctx, r, secret.Reveal(), time.Now()); err != nil {
		return "", "", err
	}
	if err := d.Grants.Check(ctx, g); err != nil {
		return "", "", err
	}
	if claim != g.Thing.Serial() {
		return "", "", errs.Coded(errs.Denied, codeAccess, "robot_id %.40q: the credentials are of %s", claim, g.Thing)
	}
	return g.Thing, das.Signed, nil
}

// Handler serves the three forms and hands everything else to next.
func (d *Door) Handler(s *Service, next http.Handler) http.Handler {
	events, logs, crash := s.SendMessage(d), s.Log(d), s.Crash(d)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		name, log := strings.CutPrefix(path, d.Paths.Logs)
		switch {
		case r.Method == http.MethodPost && strings.TrimSuffix(path, "/") == d.Paths.Events: // some clients of queues add a slash
			events.ServeHTTP(w, r)
		case r.Method == http.MethodPut && log:
			r.SetPathValue("name", name)
			logs.ServeHTTP(w, r)
		case r.Method == http.MethodPost && path == d.Paths.Crash:
			crash.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
