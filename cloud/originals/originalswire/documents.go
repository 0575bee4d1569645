package originalswire

import (
	"context"
	"net/http"

	"kennel/cloud/identity/account/audit"
	"kennel/cloud/identity/token"
	"kennel/cloud/wire"
	"kennel/infra/auth"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocsapi"
)

// Documents wires the documents as original robots call them (VEC-JDS-01 to 04).
func Documents(b wire.Base, robots jdocs.Robots, personal jdocs.Personal, tokens *token.Service, log *audit.Log) wire.Slice {
	personal.Note = func(ctx context.Context, by, account, reason string) error {
		return log.Append(ctx, audit.Entry{Actor: by, Role: auth.Admin, Action: "documents.purge", Object: account, Detail: reason})
	}
	published := jdocsapi.NewPublished(robots, personal, callers{tokens}, b.Log)
	return wire.Slice{Calls: published.Register, Public: func(mux *http.ServeMux, _ wire.Doors) { published.Mount(mux) }}
}

// callers asks the token service who calls.
type callers struct{ tokens *token.Service }

func peer(c jdocsapi.Credentials) token.Peer {
	return token.Peer{Chain: c.Chain, Addr: c.Addr, Version: c.Version, AppKey: c.AppKey, AccessToken: c.AccessToken}
}

func (c callers) Robot(ctx context.Context, cr jdocsapi.Credentials) (thing.ID, error) {
	a, err := c.tokens.Caller(ctx, peer(cr), token.StepDocuments)
	return a.Thing, err
}

func (c callers) Service(ctx context.Context, cr jdocsapi.Credentials) (string, error) {
	return c.tokens.ServiceCaller(ctx, peer(cr), token.StepAccounts)
}
