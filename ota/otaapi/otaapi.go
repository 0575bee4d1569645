// Package otaapi serves ota over HTTP for operators and over MQTT for robots: req/ota/desired -> Desired; up/ota -> Report, answered on down/ack after the
// commit.
package otaapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/envelope"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/ota"
)

const (
	storeTimeout = 5 * time.Second
	// retryAfter and as much again at random is when a robot repeats a report that could not be stored.
	retryAfter = 5 * time.Second
)

// MQTT are the handlers the bridge calls.
type MQTT struct {
	svc *ota.Service
	log *slog.Logger
}

// NewMQTT returns the handlers of svc: Desired for "ota/desired", Report for "ota".
func NewMQTT(svc *ota.Service, log *slog.Logger) *MQTT { return &MQTT{svc, log} }

// Desired answers req/ota/desired.
func (m *MQTT) Desired() kitmqtt.ReqHandler {
	return kitmqtt.Handler(ota.ParseRequest, func(ctx context.Context, id thing.ID, q ota.DesiredRequest) (ota.Desired, error) {
		return m.svc.Ask(ctx, id, q.Running)
	})
}

// Report stores one message of up/ota and acknowledges it after the commit. A report whose id cannot be read gets no answer: there is
// nothing the robot could match it with.
func (m *MQTT) Report(ctx context.Context, id thing.ID, payload []byte, answer func(ack.Ack)) {
	st, err := ota.ParseStatus(payload)
	if err != nil {
		m.log.WarnContext(ctx, "update report refused", logging.Thing, id, logging.Err, err)
		if st.ID != "" {
			answer(ack.Ack{Batch: st.ID, Status: ack.Refused, Code: "malformed", Reason: errs.Public(err)})
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := m.svc.Report(ctx, id, st); err != nil {
		m.log.WarnContext(ctx, "update report not stored", logging.Thing, id, logging.Err, err)
		answer(ack.Ack{Batch: st.ID, Status: ack.RetryAfter, After: envelope.Millis(retryAfter + rand.N(retryAfter))})
		return
	}
	answer(ack.Ack{Batch: st.ID, Status: ack.Stored})
}

// NewRelease makes a release known.
type NewRelease struct {
	Species thing.Species `json:"species"`
	Version ota.Version   `json:"version"`
	Notes   string        `json:"notes,omitempty"`  // for people
	Lowest  ota.Version   `json:"lowest,omitempty"` // that it can be installed on; a robot with an older one gets that release first
	ota.Artifact
}

// Wish says what should run; "" takes the wish back.
type Wish struct {
	Version ota.Version `json:"version"`
}

// UnmarshalJSON refuses a wish without a version, which would take one back by mistake.
func (w *Wish) UnmarshalJSON(b []byte) error {
	var body struct {
		Version *ota.Version `json:"version"`
	}
	if err := kithttp.StrictJSON(b, &body); err != nil {
		return err
	}
	if body.Version == nil {
		return errors.New(`no version; want {"version": "2.0.1.6076"}, or "" for none`)
	}
	w.Version = *body.Version
	return nil
}

type (
	bySpecies struct {
		Species thing.Species `query:"species" about:"Only this species."`
	}
	state struct {
		Thing thing.ID `path:"thing"`
		Limit int      `query:"limit" about:"Maximum number of results." min:"1" max:"200" default:"20"`
	}
	wishForThing struct {
		Thing thing.ID `path:"thing"`
		Wish  Wish     `body:""`
	}
	wishForSpecies struct {
		Species thing.Species `path:"species"`
		Wish    Wish          `body:""`
	}
	lowest struct {
		Species thing.Species `path:"species"`
		Version ota.Version   `path:"version"`
		Wish    Wish          `body:""`
	}
)

// Operations returns the operations of people on releases. audit writes one line about a change that the caller in ctx is about to make; what cannot be
// written is not done.
func Operations(svc *ota.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	staff := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Releases", Summary: summary, Roles: auth.Staff}
	}
	managers := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Releases", Summary: summary, Roles: []auth.Role{auth.ReleaseManager, auth.Admin}}
	}
	return append(mine(svc, audit), op.List{
		op.New(staff("GET /v1/releases", "List releases."), func(ctx context.Context, r bySpecies) ([]ota.Release, error) { return svc.Releases(ctx, r.Species) }),
		op.New(managers("POST /v1/releases", "Add a release.").With(
			op.Command{Use: "releases add SPECIES VERSION -notes", Short: "Add a release", Example: "releases add vic 2.0.1.6076 -notes 'quieter motors'", Table: "species; version; notes"}), func(ctx context.Context, n NewRelease) (ota.Release, error) {
			r := ota.Release{Species: n.Species, Version: n.Version, Notes: n.Notes, Lowest: n.Lowest, Created: time.Now().UTC(), Artifact: n.Artifact}
			if err := audit(ctx, ota.AuditAdd, string(r.Species), string(r.Version)); err != nil {
				return r, err
			}
			return r, svc.AddRelease(ctx, r)
		}),
		op.New(managers("PUT /v1/ota/lowest/{species}/{version}", "Set the minimum version a release can be installed from. Robots with an older version get that version first.").With(
			op.Command{Use: "releases lowest SPECIES VERSION [LOWEST]=version -none?", Short: "Set the minimum version a release can be installed from", Long: "A robot with an older version installs LOWEST first, by itself. LOWEST is an older release with an archive, and may itself have a minimum.\n-none removes the minimum.", Example: "releases lowest vic 2.0.1.6076 1.8.0.6051", Table: "release={{.species}} {{.version}}; installed first={{or (join .path `, before it `) `nothing`}}"}),
			func(ctx context.Context, r lowest) (ota.Way, error) {
				if err := audit(ctx, ota.AuditLowest, string(r.Species), fmt.Sprint(r.Version, " ", r.Wish.Version)); err != nil {
					return ota.Way{}, err
				}
				if err := svc.SetLowest(ctx, r.Species, r.Version, r.Wish.Version); err != nil {
					return ota.Way{}, err
				}
				path, err := svc.Path(ctx, r.Species, r.Version)
				return ota.Way{Species: r.Species, Version: r.Version, Path: orEmpty(path)}, err
			}),
		op.New(staff("GET /v1/things/{thing}/ota", "Show a robot's target release and the results of its updates.").With(
			op.Command{Use: "releases show THING -limit=20", Short: "Show a robot's target release and the results of its updates", Table: "thing; target=.desired.release; since=.desired.since; installs first?=.first\n=\nhistory: RECEIVED; PHASE; RELEASE; RUNNING; CODE; REASON"}), func(ctx context.Context, r state) (ota.State, error) {
			st, err := svc.State(ctx, r.Thing, r.Limit)
			st.History = orEmpty(st.History)
			return st, err
		}),
		op.New(managers("PUT /v1/things/{thing}/ota/desired", "Set the target release of a robot."), func(ctx context.Context, r wishForThing) (ota.Desired, error) {
			if err := audit(ctx, ota.AuditWant, string(r.Thing), string(r.Wish.Version)); err != nil {
				return ota.Desired{}, err
			}
			return svc.SetDesired(ctx, r.Thing, r.Wish.Version, auth.CallerFrom(ctx).Subject())
		}),
		op.New(managers("PUT /v1/ota/desired/{species}", "Set the target release of a species."), func(ctx context.Context, r wishForSpecies) (ota.Desired, error) {
			if err := audit(ctx, ota.AuditWant, string(r.Species), string(r.Wish.Version)); err != nil {
				return ota.Desired{}, err
			}
			return svc.SetSpeciesDesired(ctx, r.Species, r.Wish.Version, auth.CallerFrom(ctx).Subject())
		}),
	}...)
}

// orEmpty makes an empty list [] in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
