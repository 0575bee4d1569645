package accountapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
)

// Passkeys is an accountwebauthn.Passkeys.
type Passkeys interface {
	BeginRegister(ctx context.Context, id account.ID, password logging.Secret, addr string) (logging.Secret, json.RawMessage, error)
	FinishRegister(ctx context.Context, id account.ID, ceremony logging.Secret, name string, answer []byte, addr string) (account.Passkey, error)
	BeginLogin(ctx context.Context, addr string) (logging.Secret, json.RawMessage, error)
	FinishLogin(ctx context.Context, ceremony logging.Secret, answer []byte, addr string) (account.Login, error)
}

// PasskeyBegin is the body of POST /v1/me/passkeys/begin.
type PasskeyBegin struct {
	Password string `json:"password"`
}

// PasskeyCeremony is a challenge: the options go to navigator.credentials, the ceremony comes back with its answer.
type PasskeyCeremony struct {
	Ceremony string          `json:"ceremony"`
	Options  json.RawMessage `json:"options"`
}

// PasskeyAnswer is the body of POST /v1/me/passkeys and, with Cookie in place of Name, of POST /v1/login/passkey.
type PasskeyAnswer struct {
	Ceremony   string          `json:"ceremony"`
	Credential json.RawMessage `json:"credential"` // as the browser's toJSON gives it
	Name       string          `json:"name,omitempty"`
	Cookie     bool            `json:"cookie,omitempty"`
}

// Passkey is one line of GET /v1/me/passkeys.
type Passkey struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created,omitzero"`
	LastUsed time.Time `json:"last_used,omitzero"`
}

// MountPasskeys adds signing in with passkeys to mux, which must be behind Authenticator.
//
//	POST   /v1/login/passkey/begin                              -> {ceremony, options}             anyone
//	POST   /v1/login/passkey        {ceremony, credential, cookie?} -> as POST /v1/login           who has the passkey
//	POST   /v1/me/passkeys/begin    {password}                  -> {ceremony, options}             signed in
//	POST   /v1/me/passkeys          {ceremony, credential, name} -> {id, name}                     signed in
//	GET    /v1/me/passkeys                                      -> [{id, name, created, last_used}] signed in
//	DELETE /v1/me/passkeys/{id}                                                                    signed in
func MountPasskeys(mux *http.ServeMux, keys *account.Passkeys, p Passkeys, log *slog.Logger) {
	wrap := endpoint.Chain(kit.Recover(log), kit.Timeout(timeout))
	person := endpoint.Chain(wrap, auth.Require(auth.People...))
	k := passkeyAPI{keys, p}
	mux.Handle("POST /v1/login/passkey/begin", kithttp.Handler(wrap(kit.Typed(k.beginLogin)), none))
	mux.Handle("POST /v1/login/passkey", api{log: log}.passkeyLogin(wrap(kit.Typed(k.login))))
	mux.Handle("POST /v1/me/passkeys/begin", kithttp.Handler(person(kit.Typed(k.beginRegister)), decode[PasskeyBegin]))
	mux.Handle("POST /v1/me/passkeys", kithttp.Handler(person(kit.Typed(k.register)), decodePasskey))
	mux.Handle("GET /v1/me/passkeys", kithttp.Handler(person(kit.Typed(k.list)), none))
	mux.Handle("DELETE /v1/me/passkeys/{id}", kithttp.Handler(person(kit.NoContent(kit.Typed(k.remove))),
		func(r *http.Request) (any, error) { return r.PathValue("id"), nil }))
}

type passkeyAPI struct {
	keys *account.Passkeys
	p    Passkeys
}

const maxPasskeyBody = 64 << 10 // bytes: attestations carry certificates

func decodePasskey(r *http.Request) (any, error) {
	var req PasskeyAnswer
	err := kithttp.ReadJSON(r, &req, maxPasskeyBody)
	return req, err
}

func (k passkeyAPI) beginLogin(ctx context.Context, _ nothing) (PasskeyCeremony, error) {
	_, from := caller(ctx)
	c, options, err := k.p.BeginLogin(ctx, from)
	return PasskeyCeremony{c.Reveal(), options}, err
}

func (k passkeyAPI) login(ctx context.Context, req PasskeyAnswer) (account.Login, error) {
	_, from := caller(ctx)
	return k.p.FinishLogin(ctx, logging.Secret(req.Ceremony), req.Credential, from)
}

func (k passkeyAPI) beginRegister(ctx context.Context, req PasskeyBegin) (PasskeyCeremony, error) {
	id, from := caller(ctx)
	c, options, err := k.p.BeginRegister(ctx, id, logging.Secret(req.Password), from)
	return PasskeyCeremony{c.Reveal(), options}, err
}

func (k passkeyAPI) register(ctx context.Context, req PasskeyAnswer) (Passkey, error) {
	id, from := caller(ctx)
	key, err := k.p.FinishRegister(ctx, id, logging.Secret(req.Ceremony), req.Name, req.Credential, from)
	return shownPasskey(key), err
}

func shownPasskey(k account.Passkey) Passkey {
	return Passkey{base64.RawURLEncoding.EncodeToString(k.ID), k.Name, k.Created.UTC(), k.LastUsed.UTC()}
}

func (k passkeyAPI) list(ctx context.Context, _ nothing) ([]Passkey, error) {
	id, _ := caller(ctx)
	_, keys, err := k.keys.Person(ctx, id)
	out := make([]Passkey, 0, len(keys))
	for _, key := range keys {
		out = append(out, shownPasskey(key))
	}
	return out, err
}

func (k passkeyAPI) remove(ctx context.Context, key string) (nothing, error) {
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		return nothing{}, errs.New(errs.NotFound, "no such passkey")
	}
	id, from := caller(ctx)
	return nothing{}, k.keys.Remove(ctx, id, raw, from)
}
