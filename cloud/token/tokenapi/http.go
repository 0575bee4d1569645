package tokenapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/token"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

// App is one entry of the list of apps.
type App = token.App

// Admin is the part of *token.Service that operators and owners use.
type Admin interface {
	Tokens(ctx context.Context, id thing.ID) ([]token.TokenInfo, error)
	RevokeThing(ctx context.Context, id thing.ID, why string) (int, error)
	RevokeToken(ctx context.Context, id thing.ID, name, why string) (int, error)
	Apps(ctx context.Context, id thing.ID) ([]token.App, error)
	RevokeApps(ctx context.Context, id thing.ID) error
	RevokeApp(ctx context.Context, id thing.ID, app string) error
	SessionCertificate(ctx context.Context, id thing.ID, addr string) ([]byte, error)
}

// Config holds what the HTTP endpoints need besides the rules.
type Config struct {
	// Known returns NotFound for an unregistered thing.
	Known func(ctx context.Context, id thing.ID) error
	// Owner returns whose a robot is; NotFound.
	Owner func(ctx context.Context, id thing.ID) (account string, err error)
	// Audit writes one line about what the caller in ctx does; an action whose line cannot be written is not done.
	Audit func(ctx context.Context, action, object, detail string) error
	Keys  func() (token.JWKS, error)
	Log   *slog.Logger
}

// tokenJSON is one access token as people read it; it is not the token itself.
type tokenJSON struct {
	ID      string     `json:"id"`
	User    string     `json:"user_id"`
	Issued  time.Time  `json:"issued_at"`
	Expires time.Time  `json:"expires_at"`
	How     string     `json:"how"`
	Parent  string     `json:"refreshed_from,omitempty"`
	Revoked *time.Time `json:"revoked_at,omitempty"`
	Reason  string     `json:"reason,omitempty"`
}

// revokedJSON says how many tokens were in force.
type revokedJSON struct {
	Revoked int `json:"revoked"`
}

// Token and Revoked are what the endpoints answer, for the description of the API.
type (
	Token   = tokenJSON
	Revoked = revokedJSON
)

type oneRequest struct {
	id   thing.ID
	name string
}

// Mount adds the HTTP endpoints to mux. The caller comes from the context (infra/kit).
func Mount(mux *http.ServeMux, svc Admin, cfg Config) {
	a := api{svc, cfg}
	wrap := endpoint.Chain(kit.Recover(cfg.Log), kit.Timeout(timeout))
	see := endpoint.Chain(wrap, auth.Require(auth.People...))
	change := endpoint.Chain(wrap, auth.Require(append([]auth.Role{auth.Owner}, auth.Changers...)...))
	mux.Handle("GET /v1/things/{thing}/tokens", kithttp.Handler(see(kit.Typed(a.tokens)), decodeThing))
	mux.Handle("DELETE /v1/things/{thing}/tokens", kithttp.Handler(change(kit.Typed(a.revokeTokens)), decodeThing))
	mux.Handle("DELETE /v1/things/{thing}/tokens/{token}", kithttp.Handler(change(kit.Typed(a.revokeToken)), decodeOne("token")))
	mux.Handle("GET /v1/things/{thing}/apps", kithttp.Handler(see(kit.Typed(a.apps)), decodeThing))
	mux.Handle("DELETE /v1/things/{thing}/apps", kithttp.Handler(change(kit.Typed(a.revokeApps)), decodeThing))
	mux.Handle("DELETE /v1/things/{thing}/apps/{app}", kithttp.Handler(change(kit.Typed(a.revokeApp)), decodeOne("app")))
	mux.HandleFunc("GET /.well-known/jwks.json", a.jwks)
	mux.HandleFunc("GET /vic/{esn}", a.sessionCertificate)
}

type api struct {
	svc Admin
	cfg Config
}

// mine refuses unregistered robots, and an owner's request for another's robot, with the same answer.
func (a api) mine(ctx context.Context, id thing.ID) error {
	if c := auth.CallerFrom(ctx); c.Role == auth.Owner {
		owner, err := a.cfg.Owner(ctx, id)
		if err != nil && errs.KindOf(err) != errs.NotFound {
			return err
		}
		if err != nil || owner == "" || owner != c.Account {
			return errs.Coded(errs.NotFound, "no_thing", "%s is not known", id)
		}
		return nil
	}
	return a.cfg.Known(ctx, id)
}

// act writes the audit line of a change, after mine.
func (a api) act(ctx context.Context, id thing.ID, action, detail string) error {
	if err := a.mine(ctx, id); err != nil {
		return err
	}
	return a.cfg.Audit(ctx, action, string(id), detail)
}

// by names the caller without the e-mail: an owner's does not belong into the table of tokens.
func by(ctx context.Context) string {
	c := auth.CallerFrom(ctx)
	if c.Role == auth.Owner {
		return "by its owner"
	}
	return "by an operator, role " + string(c.Role)
}

func (a api) tokens(ctx context.Context, id thing.ID) ([]tokenJSON, error) {
	if err := a.mine(ctx, id); err != nil {
		return nil, err
	}
	list, err := a.svc.Tokens(ctx, id)
	if err != nil {
		return nil, err
	}
	c := auth.CallerFrom(ctx)
	out := []tokenJSON{}
	for _, t := range list {
		if c.Role == auth.Owner && t.User != c.Account {
			continue // of the owner before
		}
		j := tokenJSON{ID: t.ID, User: t.User, Issued: t.Issued.UTC(), Expires: t.Expires.UTC(), How: t.How, Parent: t.Parent, Reason: t.Reason}
		if !t.Revoked.IsZero() {
			at := t.Revoked.UTC()
			j.Revoked = &at
		}
		out = append(out, j)
	}
	return out, nil
}

func (a api) revokeTokens(ctx context.Context, id thing.ID) (revokedJSON, error) {
	if err := a.act(ctx, id, "tokens.revoke", "all"); err != nil {
		return revokedJSON{}, err
	}
	n, err := a.svc.RevokeThing(ctx, id, by(ctx))
	return revokedJSON{n}, err
}

func (a api) revokeToken(ctx context.Context, r oneRequest) (revokedJSON, error) {
	if err := a.act(ctx, r.id, "tokens.revoke", r.name); err != nil {
		return revokedJSON{}, err
	}
	n, err := a.svc.RevokeToken(ctx, r.id, r.name, by(ctx))
	return revokedJSON{n}, err
}

func (a api) apps(ctx context.Context, id thing.ID) ([]token.App, error) {
	if err := a.mine(ctx, id); err != nil {
		return nil, err
	}
	return a.svc.Apps(ctx, id)
}

// revokeApps answers nothing: 204.
func (a api) revokeApps(ctx context.Context, id thing.ID) (any, error) {
	if err := a.act(ctx, id, "apps.revoke", "all"); err != nil {
		return nil, err
	}
	return nil, a.svc.RevokeApps(ctx, id)
}

// revokeApp answers nothing: 204.
func (a api) revokeApp(ctx context.Context, r oneRequest) (any, error) {
	if err := a.act(ctx, r.id, "apps.revoke", r.name); err != nil {
		return nil, err
	}
	return nil, a.svc.RevokeApp(ctx, r.id, r.name)
}

// jwksAge is how long others may keep the keys: less than the time that a key is published before it signs.
const jwksAge = 5 * time.Minute

func (a api) jwks(w http.ResponseWriter, _ *http.Request) {
	keys, err := a.cfg.Keys()
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	w = cached{w}
	kithttp.WriteJSON(w, http.StatusOK, keys)
}

// cached lets others keep the answer for jwksAge.
type cached struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (c cached) WriteHeader(code int) {
	c.Header().Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(jwksAge.Seconds())))
	c.ResponseWriter.WriteHeader(code)
}

// sessionCertificate answers as the original server did: the text alone, for clients that pin it. It is for Vectors, whose serial number is
// the whole address.
func (a api) sessionCertificate(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	id, err := thing.New(thing.Vector, strings.ToLower(r.PathValue("esn")))
	if err != nil {
		kithttp.WriteError(w, errs.Coded(errs.Invalid, "serial_malformed", "serial number %.40q: want 8 hex digits", r.PathValue("esn")))
		return
	}
	cert, err := a.svc.SessionCertificate(ctx, id, r.RemoteAddr)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	w.Header().Set("Cache-Control", "no-store") // a robot that was wiped has another
	_, _ = w.Write(cert)                        // it fails only if the peer is gone
}

func decodeThing(r *http.Request) (any, error) { return thingOf(r) }

func decodeOne(name string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := thingOf(r)
		return oneRequest{id, r.PathValue(name)}, err
	}
}

func thingOf(r *http.Request) (thing.ID, error) {
	id, err := thing.Parse(r.PathValue("thing"))
	if err != nil {
		return "", errs.Coded(errs.Invalid, "thing_malformed", "%w", err)
	}
	return id, nil
}
