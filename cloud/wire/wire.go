// Package wire says what the wiring of every slice of the cloud gets, and what it gives back. Each slice has one such function, in its own
// folder or in one of cloud/app's for its family; cloud/app calls them in the order in which slices need each other, and hands what they return to the
// listeners, the bridge, the jobs and the runner.
package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"

	"kennel/cloud/access"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/owner"
	"kennel/cloud/metrics"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/blob"
	"kennel/infra/diskspace"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/observer"
	"kennel/infra/op"
	"kennel/infra/runner"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

// Role is a share of the cloud's work that one process may take. Any number of processes may have the same role.
type Role string

// The roles.
const (
	Bridge Role = "bridge" // MQTT in and out: events, statuses, requests of robots
	API    Role = "api"    // enrolment, the public API and the console, over HTTPS
	Jobs   Role = "jobs"   // leases, partitions, hints of changes made elsewhere
)

var allRoles = []Role{Bridge, API, Jobs}

// ParseRoles reads "all" or a list such as "bridge,jobs".
func ParseRoles(words []string) ([]Role, error) {
	var out []Role
	for _, w := range words {
		switch r := Role(strings.TrimSpace(w)); {
		case r == "all":
			return allRoles, nil
		case slices.Contains(allRoles, r):
			out = append(out, r)
		default:
			return nil, errs.New(errs.Invalid, "role %.40q: want all, or some of %v", w, allRoles)
		}
	}
	if len(out) == 0 {
		return nil, errs.New(errs.Invalid, "role is empty: want all, or some of %v", allRoles)
	}
	return out, nil
}

// Base is the ground of one process that every slice may build on.
type Base struct {
	Log     *slog.Logger
	Pool    *pgxpool.Pool
	Blobs   *blob.Store
	Orders  *jobs.Orders
	Seal    secretbox.Key
	Meters  *metrics.Meters
	Volumes *diskspace.Watch
	Roles   []Role
}

// Has reports whether this process has a role.
func (b Base) Has(r Role) bool { return slices.Contains(b.Roles, r) }

// Doors are the questions that routes ask before they serve a caller.
type Doors struct {
	Log   *slog.Logger
	Known func(ctx context.Context, id thing.ID) error // NotFound for an unregistered thing
	Owns  auth.Owns
	Audit func(ctx context.Context, action, object, detail string) error
}

// Run is a service of the process.
type Run struct {
	Name string
	Run  func(ctx context.Context) error
	Role Role // only processes with this role run it; "": all do
}

// Holding is something that a slice keeps about people or their robots. All of them together are the one table by which the cloud exports what it
// knows of a person, erases it, and does what the end of an ownership asks.
type Holding struct {
	Name  string   // as account.Holder has it
	Keeps []string // its tables, and prefixes of its objects such as "s3 logs/"
	Data  account.Personal
	// Ended does what the end of an ownership asks of the slice. It is called until all holdings have returned nil at once, in time or late, perhaps
	// when the robot has another owner already: it touches only what is of t's account and time. nil: what was of that time stays the former owner's,
	// and everything that the slice tells the next one is of their own time.
	Ended func(ctx context.Context, t owner.Tenure) error
}

// Operations are those that a slice declares.
type Operations = op.List

// Slice holds everything that one slice adds to the process. Any field may be empty.
type Slice struct {
	Operations func(d Doors) Operations                // of the public API
	Routes     func(mux *http.ServeMux, d Doors) error // of the public API and the pages
	Public     func(mux *http.ServeMux, d Doors)       // of the public API and of the port of original robots
	Calls      func(s grpc.ServiceRegistrar)           // gRPC calls of original robots
	Agents     func(s grpc.ServiceRegistrar)           // gRPC calls of robots with a device certificate of ours
	Requests   map[string]kitmqtt.ReqHandler           // what robots may ask, by service/method
	Ups        map[string]kitmqtt.UpHandler            // what robots report, by name below up/
	Runs       []Run
	Jobs       []jobs.Job // periodic, once for all processes with the role jobs
	Tasks      []jobs.Task
	Personal   []Holding
	Pages      []page.Extra // of the console, with their places in its menu
	Close      func() error // called after everything has ended
}

// Routes returns Slice.Routes that only mount.
func Routes(mount func(mux *http.ServeMux, d Doors)) func(*http.ServeMux, Doors) error {
	return func(mux *http.ServeMux, d Doors) error { mount(mux, d); return nil }
}

// Slices are all slices of a process.
type Slices []Slice

// Mount adds the routes of all slices to mux.
func (all Slices) Mount(mux *http.ServeMux, d Doors) error {
	all.MountPublic(mux, d)
	for _, s := range all {
		if s.Operations != nil {
			list := s.Operations(d)
			if err := access.HTTP.CheckDeclared(list); err != nil {
				return err
			}
			list.Mount(mux, op.Doors{Log: d.Log, Owns: d.Owns})
		}
		if s.Routes != nil {
			if err := s.Routes(mux, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// MountPublic adds those routes that the port of original robots has too.
func (all Slices) MountPublic(mux *http.ServeMux, d Doors) {
	for _, s := range all {
		if s.Public != nil {
			s.Public(mux, d)
		}
	}
}

// Register adds the gRPC calls of all slices to server.
func (all Slices) Register(server grpc.ServiceRegistrar) {
	for _, s := range all {
		if s.Calls != nil {
			s.Calls(server)
		}
	}
}

// RegisterAgents adds the gRPC calls of robots with a device certificate of ours to server.
func (all Slices) RegisterAgents(server grpc.ServiceRegistrar) {
	for _, s := range all {
		if s.Agents != nil {
			s.Agents(server)
		}
	}
}

// Handlers returns what robots may ask and report.
func (all Slices) Handlers() (map[string]kitmqtt.ReqHandler, map[string]kitmqtt.UpHandler, error) {
	requests, ups, n := map[string]kitmqtt.ReqHandler{}, map[string]kitmqtt.UpHandler{}, 0
	for _, s := range all {
		maps.Copy(requests, s.Requests)
		maps.Copy(ups, s.Ups)
		n += len(s.Requests) + len(s.Ups)
	}
	if n != len(requests)+len(ups) {
		return nil, nil, fmt.Errorf("duplicate handler for one of %v, %v", slices.Collect(maps.Keys(requests)), slices.Collect(maps.Keys(ups)))
	}
	return requests, ups, nil
}

// Services returns what a process with these roles runs.
func (all Slices) Services(roles []Role) (out []runner.Service) {
	for _, s := range all {
		for _, r := range s.Runs {
			if r.Role == "" || slices.Contains(roles, r.Role) {
				out = append(out, runner.Service{Name: r.Name, Run: r.Run})
			}
		}
	}
	return out
}

// Jobs returns the periodic jobs of all slices.
func (all Slices) Jobs() []jobs.Job { return collect(all, func(s Slice) []jobs.Job { return s.Jobs }) }

// Tasks returns the tasks of all slices.
func (all Slices) Tasks() []jobs.Task {
	return collect(all, func(s Slice) []jobs.Task { return s.Tasks })
}

// Personal returns everything that slices hold about people.
func (all Slices) Personal() []Holding {
	return collect(all, func(s Slice) []Holding { return s.Personal })
}

// Hold adds everything that slices hold about people to what p exports and erases, and has each end of an ownership told to who asks for it.
func (all Slices) Hold(p *account.Privacy, ended *observer.Of[owner.Tenure]) error {
	for _, h := range all.Personal() {
		if err := p.Hold(account.Holder{Name: h.Name, Personal: h.Data}); err != nil {
			return err
		}
		if h.Ended != nil {
			ended.Hear(h.Ended)
		}
	}
	return nil
}

// Pages returns the pages that slices bring along.
func (all Slices) Pages() []page.Extra {
	return collect(all, func(s Slice) []page.Extra { return s.Pages })
}

// Close gives back what slices hold open.
func (all Slices) Close() (err error) {
	for _, s := range all {
		if s.Close != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

func collect[T any](all Slices, of func(Slice) []T) (out []T) {
	for _, s := range all {
		out = append(out, of(s)...)
	}
	return out
}
