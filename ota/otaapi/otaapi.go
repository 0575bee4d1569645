// Package otaapi serves ota over HTTP for operators and over MQTT for robots.
//
//	GET  /v1/releases?species=            POST /v1/releases {species, version, notes, lowest, url, sha256, size}
//	PUT  /v1/ota/lowest/{species}/{version} {version}                   "" is any
//	GET  /v1/things/{thing}/ota           PUT  /v1/things/{thing}/ota/desired {version}   "" takes the wish back
//	PUT  /v1/ota/desired/{species} {version}
//	req/ota/desired -> Desired            up/ota -> Report, answered on down/ack after the commit
package otaapi

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/envelope"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
)

const (
	storeTimeout = 5 * time.Second
	// retryAfter and as much again at random is when a robot repeats a report that could not be stored.
	retryAfter   = 5 * time.Second
	defaultLimit = 20
	maxLimit     = 200
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

// Mount adds the HTTP endpoints to mux. The caller's role comes from the context (infra/kit). audit writes one line about a change that the caller
// in ctx is about to make; what cannot be written is not done.
func Mount(mux *http.ServeMux, svc *ota.Service, audit func(ctx context.Context, action, object, detail string) error) {
	staff, changers := auth.Require(auth.Staff...), auth.Require(auth.ReleaseManager, auth.Admin)

	mux.Handle("GET /v1/releases", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, species thing.Species) ([]ota.Release, error) {
		out, err := svc.Releases(ctx, species)
		return orEmpty(out), err
	})), func(r *http.Request) (any, error) { return thing.Species(r.URL.Query().Get("species")), nil }))

	mux.Handle("POST /v1/releases", kithttp.Handler(changers(kit.Typed(func(ctx context.Context, r ota.Release) (ota.Release, error) {
		if err := audit(ctx, ota.AuditAdd, string(r.Species), string(r.Version)); err != nil {
			return r, err
		}
		return r, svc.AddRelease(ctx, r)
	})), func(r *http.Request) (any, error) {
		var body struct {
			Species thing.Species `json:"species"`
			Version ota.Version   `json:"version"`
			Notes   string        `json:"notes"`
			Lowest  ota.Version   `json:"lowest"`
			ota.Artifact
		}
		err := kithttp.ReadJSON(r, &body, 64<<10)
		return ota.Release{Species: body.Species, Version: body.Version, Notes: body.Notes, Lowest: body.Lowest, Created: time.Now().UTC(), Artifact: body.Artifact}, err
	}))

	type stateRequest struct {
		id    thing.ID
		limit int
	}
	mux.Handle("GET /v1/things/{thing}/ota", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, q stateRequest) (ota.State, error) {
		st, err := svc.State(ctx, q.id, q.limit)
		st.History = orEmpty(st.History)
		return st, err
	})), func(r *http.Request) (any, error) {
		id, err := kithttp.Thing(r)
		if err != nil {
			return nil, err
		}
		limit, err := limitOf(r)
		return stateRequest{id, limit}, err
	}))

	type wish struct {
		scope            string
		version, release ota.Version
	}
	decode := func(param string) func(r *http.Request) (any, error) {
		return func(r *http.Request) (any, error) {
			var body struct {
				Version *ota.Version `json:"version"`
			}
			if err := kithttp.ReadJSON(r, &body, 4<<10); err != nil {
				return nil, err
			}
			if body.Version == nil {
				return nil, errs.New(errs.Invalid, `body: no version; want {"version": "2.0.1.6076"}, or "" for none`)
			}
			return wish{r.PathValue(param), *body.Version, ota.Version(r.PathValue("version"))}, nil
		}
	}
	mux.Handle("PUT /v1/things/{thing}/ota/desired", kithttp.Handler(changers(kit.Typed(func(ctx context.Context, w wish) (ota.Desired, error) {
		id, err := thing.Parse(w.scope)
		if err != nil {
			return ota.Desired{}, errs.New(errs.Invalid, "%w", err)
		}
		if err := audit(ctx, ota.AuditWant, w.scope, string(w.version)); err != nil {
			return ota.Desired{}, err
		}
		return svc.SetDesired(ctx, id, w.version, auth.CallerFrom(ctx).Subject())
	})), decode("thing")))
	mux.Handle("PUT /v1/ota/desired/{species}", kithttp.Handler(changers(kit.Typed(func(ctx context.Context, w wish) (ota.Desired, error) {
		if err := audit(ctx, ota.AuditWant, w.scope, string(w.version)); err != nil {
			return ota.Desired{}, err
		}
		return svc.SetSpeciesDesired(ctx, thing.Species(w.scope), w.version, auth.CallerFrom(ctx).Subject())
	})), decode("species")))
	mux.Handle("PUT /v1/ota/lowest/{species}/{version}", kithttp.Handler(changers(kit.Typed(func(ctx context.Context, w wish) (ota.Way, error) {
		if err := audit(ctx, ota.AuditLowest, w.scope, fmt.Sprint(w.release, " ", w.version)); err != nil {
			return ota.Way{}, err
		}
		if err := svc.SetLowest(ctx, thing.Species(w.scope), w.release, w.version); err != nil {
			return ota.Way{}, err
		}
		path, err := svc.Path(ctx, thing.Species(w.scope), w.release)
		return ota.Way{Species: thing.Species(w.scope), Version: w.release, Path: orEmpty(path)}, err
	})), decode("species")))
}

func limitOf(r *http.Request) (int, error) {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxLimit {
		return 0, errs.New(errs.Invalid, "limit %.20q: want %s", s, fmt.Sprintf("1 to %d", maxLimit))
	}
	return n, nil
}

// orEmpty makes an empty list [] in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
