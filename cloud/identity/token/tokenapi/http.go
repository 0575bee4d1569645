package tokenapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"kennel/cloud/identity/token"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
	"kennel/infra/thing"
)

// Admin is the part of *token.Service that operators and owners use.
type Admin interface {
	Tokens(ctx context.Context, id thing.ID) ([]token.TokenInfo, error)
	RevokeThing(ctx context.Context, id thing.ID, why string) (int, error)
	RevokeToken(ctx context.Context, id thing.ID, name, why string) (int, error)
	Apps(ctx context.Context, id thing.ID) ([]token.App, error)
	RevokeApps(ctx context.Context, id thing.ID) error
	RevokeApp(ctx context.Context, id thing.ID, app string) error
	AddProgram(ctx context.Context, id thing.ID, account string, p token.NewProgram) (token.ProgramFile, error)
	SessionCertificate(ctx context.Context, id thing.ID, addr string) ([]byte, error)
}

// Config holds what the operations need besides the rules.
type Config struct {
	// Known returns NotFound for an unregistered thing.
	Known func(ctx context.Context, id thing.ID) error
	// Audit writes one line about what the caller in ctx does; an action whose line cannot be written is not done.
	Audit func(ctx context.Context, action, object, detail string) error
}

// tokenJSON is one access token as people read it; it is not the token itself.
type tokenJSON struct {
	ID      string    `json:"id"`
	User    string    `json:"user_id"`
	Issued  time.Time `json:"issued_at"`
	Expires time.Time `json:"expires_at"`
	How     string    `json:"how"`
	Parent  string    `json:"refreshed_from,omitempty"`
	Revoked time.Time `json:"revoked_at,omitzero"`
	Reason  string    `json:"reason,omitempty"`
}

// revokedJSON says how many tokens were in force.
type revokedJSON struct {
	Revoked int `json:"revoked"`
}

type (
	robot struct {
		Thing thing.ID `path:"thing"`
	}
	oneToken struct {
		robot
		Token string `path:"token"`
	}
	oneApp struct {
		robot
		App string `path:"app"`
	}
)

// Operations returns the operations on tokens and apps of robots.
func Operations(svc Admin, cfg Config) op.List {
	a := api{svc, cfg}
	spec := func(route, summary string, roles []auth.Role) op.Spec {
		return op.Spec{Route: route, Tag: "Identity", Summary: summary, Roles: roles, Own: true}
	}
	return append(op.List{
		op.New(spec("GET /v1/things/{thing}/tokens", "List a robot's access tokens.", auth.Staff).With(
			op.Command{Use: "robots tokens list THING", Short: "List a robot's access tokens", Table: "TOKEN=.id; ISSUED=.issued_at; UNTIL=.expires_at; BY=.how; REVOKED=.revoked_at; REASON"}), a.tokens),
		op.New(spec("DELETE /v1/things/{thing}/tokens", "Revoke all access tokens of a robot.", auth.Changers).With(
			op.Command{Use: "robots tokens revoke THING -all!", Says: "all tokens of {{.THING}} revoked"}), a.revokeTokens),
		op.New(spec("DELETE /v1/things/{thing}/tokens/{token}", "Revoke an access token of a robot.", auth.Changers).With(
			op.Command{Use: "robots tokens revoke THING TOKEN", Short: "Revoke an access token of a robot, or all of them", Example: "robots tokens revoke vic:00e20100 ID\nrobots tokens revoke vic:00e20100 -all", Says: "{{.TOKEN}} revoked"}), a.revokeToken),
		op.New(spec("GET /v1/things/{thing}/apps", "List apps and programs that may talk to a robot.", auth.Staff).With(
			op.Command{Use: "robots apps list THING", Short: "List a robot's apps", Table: "APP=.id; NAME=.client_name; PROGRAM=.app_id; SINCE=.issued_at"}), a.apps),
		op.New(spec("DELETE /v1/things/{thing}/apps", "Revoke all apps of a robot.", auth.Changers).With(
			op.Command{Use: "robots apps revoke THING -all!", Says: "all apps of {{.THING}} revoked"}), a.revokeApps),
		op.New(spec("DELETE /v1/things/{thing}/apps/{app}", "Revoke an app of a robot.", auth.Changers).With(
			op.Command{Use: "robots apps revoke THING APP", Short: "Revoke an app of a robot, or all of them", Example: "robots apps revoke vic:00e20100 ID\nrobots apps revoke vic:00e20100 -all", Says: "{{.APP}} revoked"}), a.revokeApp),
	}, a.programs()...)
}

// Mount adds what the port of original robots has too: the keys of access tokens, and certificates to be pinned.
func Mount(mux *http.ServeMux, svc Admin, keys func() (token.JWKS, error)) {
	mux.HandleFunc("GET /.well-known/jwks.json", func(w http.ResponseWriter, _ *http.Request) { jwks(w, keys) })
	mux.HandleFunc("GET /vic/{esn}", api{svc: svc}.sessionCertificate)
}

type api struct {
	svc Admin
	cfg Config
}

// known refuses an operator's request for an unregistered robot. An owner has come as far as this for an own one alone.
func (a api) known(ctx context.Context, id thing.ID) error {
	if _, mine := auth.OwnedSince(ctx); mine {
		return nil
	}
	return a.cfg.Known(ctx, id)
}

// act writes the audit line of a change, after known.
func (a api) act(ctx context.Context, id thing.ID, action, detail string) error {
	if err := a.known(ctx, id); err != nil {
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

func (a api) tokens(ctx context.Context, r robot) ([]tokenJSON, error) {
	if err := a.known(ctx, r.Thing); err != nil {
		return nil, err
	}
	list, err := a.svc.Tokens(ctx, r.Thing)
	if err != nil {
		return nil, err
	}
	c := auth.CallerFrom(ctx)
	var out []tokenJSON
	for _, t := range list {
		if c.Role == auth.Owner && t.User != c.Account {
			continue // of the owner before
		}
		out = append(out, tokenJSON{ID: t.ID, User: t.User, Issued: t.Issued.UTC(), Expires: t.Expires.UTC(), How: t.How, Parent: t.Parent, Revoked: t.Revoked.UTC(),
			Reason: t.Reason})
	}
	return out, nil
}

func (a api) revokeTokens(ctx context.Context, r robot) (revokedJSON, error) {
	if err := a.act(ctx, r.Thing, "tokens.revoke", "all"); err != nil {
		return revokedJSON{}, err
	}
	n, err := a.svc.RevokeThing(ctx, r.Thing, by(ctx))
	return revokedJSON{n}, err
}

func (a api) revokeToken(ctx context.Context, r oneToken) (revokedJSON, error) {
	if err := a.act(ctx, r.Thing, "tokens.revoke", r.Token); err != nil {
		return revokedJSON{}, err
	}
	n, err := a.svc.RevokeToken(ctx, r.Thing, r.Token, by(ctx))
	return revokedJSON{n}, err
}

func (a api) apps(ctx context.Context, r robot) ([]token.App, error) {
	if err := a.known(ctx, r.Thing); err != nil {
		return nil, err
	}
	return a.svc.Apps(ctx, r.Thing)
}

func (a api) revokeApps(ctx context.Context, r robot) (op.None, error) {
	if err := a.act(ctx, r.Thing, "apps.revoke", "all"); err != nil {
		return op.None{}, err
	}
	return op.None{}, a.svc.RevokeApps(ctx, r.Thing)
}

func (a api) revokeApp(ctx context.Context, r oneApp) (op.None, error) {
	if err := a.act(ctx, r.Thing, "apps.revoke", r.App); err != nil {
		return op.None{}, err
	}
	return op.None{}, a.svc.RevokeApp(ctx, r.Thing, r.App)
}

// jwksAge is how long others may keep the keys: less than the time that a key is published before it signs.
const jwksAge = 5 * time.Minute

func jwks(w http.ResponseWriter, ask func() (token.JWKS, error)) {
	keys, err := ask()
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
