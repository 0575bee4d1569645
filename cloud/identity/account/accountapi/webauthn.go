package accountapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/op"
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

type (
	passkeyLogin struct {
		Request *http.Request `request:""`
		Body    PasskeyAnswer `body:""`
	}
	passkey struct {
		ID string `path:"id"`
	}
)

const maxPasskeyBody = 64 << 10 // bytes: attestations carry certificates

// PasskeyOperations returns signing in with passkeys, and people's own, for a server behind Authenticator.
func PasskeyOperations(keys *account.Passkeys, p Passkeys, log *slog.Logger) op.List {
	return op.List{
		op.New(op.Spec{Route: "POST /v1/login/passkey/begin", Tag: "Session", Summary: "Request a challenge to sign in with a passkey.", By: "nothing: a challenge", Timeout: timeout},
			func(ctx context.Context, _ op.None) (PasskeyCeremony, error) {
				_, from := caller(ctx)
				c, options, err := p.BeginLogin(ctx, from)
				return PasskeyCeremony{c.Reveal(), options}, err
			}),
		op.New(op.Spec{Route: "POST /v1/login/passkey", Tag: "Session", Summary: "Sign in with a passkey.", By: "the passkey", Timeout: timeout, MaxBody: maxPasskeyBody, Described: LoginAnswer{}},
			func(ctx context.Context, l passkeyLogin) (http.Handler, error) {
				return signedIn(l.Request, l.Body.Cookie, log, func() (account.Login, error) {
					_, from := caller(ctx)
					return p.FinishLogin(ctx, logging.Secret(l.Body.Ceremony), l.Body.Credential, from)
				})
			}),
		op.New(op.Spec{Route: "POST /v1/me/passkeys/begin", Tag: "Session", Summary: "Request a challenge to add a passkey.", Roles: auth.People, Quiet: true, Timeout: timeout, MaxBody: maxBody},
			func(ctx context.Context, b PasskeyBegin) (PasskeyCeremony, error) {
				id, from := caller(ctx)
				c, options, err := p.BeginRegister(ctx, id, logging.Secret(b.Password), from)
				return PasskeyCeremony{c.Reveal(), options}, err
			}),
		op.New(op.Spec{Route: "POST /v1/me/passkeys", Tag: "Session", Summary: "Add a passkey.", Roles: auth.People, Timeout: timeout, MaxBody: maxPasskeyBody},
			func(ctx context.Context, a PasskeyAnswer) (Passkey, error) {
				id, from := caller(ctx)
				key, err := p.FinishRegister(ctx, id, logging.Secret(a.Ceremony), a.Name, a.Credential, from)
				return shownPasskey(key), err
			}),
		op.New(op.Spec{Route: "GET /v1/me/passkeys", Tag: "Session", Summary: "List your passkeys.", Roles: auth.People, Timeout: timeout}.With(
			op.Command{Use: "passkeys list", Short: "List your passkeys", Table: "PASSKEY=.id; NAME; SINCE=.created; LAST USED"}),
			func(ctx context.Context, _ op.None) ([]Passkey, error) {
				id, _ := caller(ctx)
				_, all, err := keys.Person(ctx, id)
				out := make([]Passkey, 0, len(all))
				for _, key := range all {
					out = append(out, shownPasskey(key))
				}
				return out, err
			}),
		op.New(op.Spec{Route: "DELETE /v1/me/passkeys/{id}", Tag: "Session", Summary: "Remove a passkey.", Roles: auth.People, Timeout: timeout}.With(
			op.Command{Use: "passkeys remove PASSKEY", Short: "Remove one of your passkeys", Says: "{{.PASSKEY}} removed"}),
			func(ctx context.Context, k passkey) (op.None, error) {
				raw, err := base64.RawURLEncoding.DecodeString(k.ID)
				if err != nil {
					return op.None{}, errs.New(errs.NotFound, "no such passkey")
				}
				id, from := caller(ctx)
				return op.None{}, keys.Remove(ctx, id, raw, from)
			}),
	}
}

func shownPasskey(k account.Passkey) Passkey {
	return Passkey{base64.RawURLEncoding.EncodeToString(k.ID), k.Name, k.Created.UTC(), k.LastUsed.UTC()}
}
