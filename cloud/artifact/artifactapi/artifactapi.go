// Package artifactapi serves archives and channels over HTTP: to operators
//
//	PUT /v1/releases/{species}/archives/{sum}?notes=&version=   the archive as it is; Artifact. version: of a file for SWUpdate
//	GET /v1/archives?species=&version=                      DELETE /v1/archives/{species}/{sum}
//	GET /v1/channels?species=                               PUT /v1/channels/{species}/{channel} {version}   "" offers none
//
// and to original robots (Files)
//
//	GET /vic/{channel}/full/latest.ota                      the release that the channel offers
//	GET /vic/{channel}/full/{version}.ota                   one that it offers or offered
//	GET /vic/{channel}/diff/{running}.ota                   the delta to the release that it offers
package artifactapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"kennel/cloud/artifact"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
	"kennel/ota"
)

// stallTime is how long one read of an upload may wait, whatever the whole takes.
const stallTime = 30 * time.Second

// Version names a release; "" is none.
type Version struct {
	Version *ota.Version `json:"version"`
}

// query chooses archives or channels.
type query struct {
	species thing.Species
	version ota.Version
}

// Mount adds the endpoints for operators to mux. audit writes one line about a change that the caller in ctx is about to make.
func Mount(mux *http.ServeMux, svc *artifact.Service, audit func(ctx context.Context, action, object, detail string) error) {
	staff, changers := auth.Require(auth.Staff...), auth.Require(auth.ReleaseManager, auth.Admin)
	chosen := func(r *http.Request) (any, error) {
		q := r.URL.Query()
		return query{thing.Species(q.Get("species")), ota.Version(q.Get("version"))}, nil
	}
	mux.Handle("GET /v1/archives", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, q query) ([]artifact.Artifact, error) {
		out, err := svc.List(ctx, q.species, q.version)
		return append([]artifact.Artifact{}, out...), err
	})), chosen))
	mux.Handle("DELETE /v1/archives/{species}/{sum}", kithttp.Handler(changers(kit.Typed(func(ctx context.Context, q [2]string) (artifact.Artifact, error) {
		return svc.Delete(ctx, thing.Species(q[0]), q[1], audit)
	})), func(r *http.Request) (any, error) { return [2]string{r.PathValue("species"), r.PathValue("sum")}, nil }))
	mux.Handle("GET /v1/channels", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, q query) ([]artifact.Channel, error) {
		out, err := svc.Channels(ctx, q.species)
		return append([]artifact.Channel{}, out...), err
	})), chosen))

	mux.Handle("PUT /v1/channels/{species}/{channel}", kithttp.Handler(changers(kit.Typed(func(ctx context.Context, c artifact.Channel) (artifact.Channel, error) {
		if err := audit(ctx, artifact.AuditChannel, string(c.Species), c.Channel+" "+string(c.Version)); err != nil {
			return c, err
		}
		c.By = auth.CallerFrom(ctx).Subject()
		return svc.SetChannel(ctx, c)
	})), func(r *http.Request) (any, error) {
		var body Version
		if err := kithttp.ReadJSON(r, &body, 4<<10); err != nil {
			return nil, err
		}
		if body.Version == nil {
			return nil, errs.New(errs.Invalid, `body: no version; want {"version": "2.0.1.6076"}, or "" to offer none`)
		}
		return artifact.Channel{Species: thing.Species(r.PathValue("species")), Channel: r.PathValue("channel"), Version: *body.Version}, nil
	}))

	upload := kithttp.Handler(changers(kit.Typed(func(ctx context.Context, u artifact.Upload) (artifact.Artifact, error) {
		u.By, u.Audit = auth.CallerFrom(ctx).Subject(), audit
		return svc.Upload(ctx, u)
	})), func(r *http.Request) (any, error) {
		u := artifact.Upload{Species: thing.Species(r.PathValue("species")), SHA256: r.PathValue("sum"), Size: r.ContentLength, Body: r.Body, Notes: r.URL.Query().Get("notes"),
			Version: ota.Version(r.URL.Query().Get("version"))}
		if len(u.Notes) > ota.MaxNotes {
			return nil, errs.New(errs.Invalid, "notes have %d bytes: at most %d", len(u.Notes), ota.MaxNotes)
		}
		return u, nil
	})
	mux.HandleFunc("PUT /v1/releases/{species}/archives/{sum}", func(w http.ResponseWriter, r *http.Request) {
		r.Body = patient{r.Body, http.NewResponseController(w)}
		upload.ServeHTTP(w, r)
	})
}

// patient gives each read of a body its own time, in place of one for the whole.
type patient struct {
	io.ReadCloser
	rc *http.ResponseController
}

// Read implements io.Reader.
func (p patient) Read(b []byte) (int, error) {
	_ = p.rc.SetReadDeadline(time.Now().Add(stallTime)) // a writer that cannot is none of a network
	return p.ReadCloser.Read(b)
}
