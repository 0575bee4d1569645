// Package vouchapi serves the metadata of releases: to robots over MQTT (req/ota/trust), and to operators over HTTP
//
//	GET  /v1/releases/metadata               the state of each role
//	POST /v1/releases/metadata {metadata}    what people signed, by role
package vouchapi

import (
	"context"
	"net/http"

	"kennel/cloud/vouch"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/kit/kitmqtt"
	"kennel/ota"
	"kennel/ota/trust"
)

// Metadata holds signed metadata, as text, by role: 2.root, targets, prod and so on.
type Metadata struct {
	Metadata map[string]string `json:"metadata"`
}

const maxUpload = 8 << 20

// Handlers answers robots.
func Handlers(svc *vouch.Service) map[string]kitmqtt.ReqHandler {
	return map[string]kitmqtt.ReqHandler{"ota/trust": kitmqtt.Handler(trust.ParseQuestion, svc.Answer)}
}

// Mount adds the endpoints for operators to mux. audit writes one line about a change that the caller in ctx is about to make.
func Mount(mux *http.ServeMux, svc *vouch.Service, audit func(ctx context.Context, action, object, detail string) error) {
	states := func(ctx context.Context) ([]ota.RoleState, error) {
		out, err := svc.States(ctx)
		return append([]ota.RoleState{}, out...), err
	}
	mux.Handle("GET /v1/releases/metadata", kithttp.Handler(auth.Require(auth.Staff...)(kit.Typed(func(ctx context.Context, _ struct{}) ([]ota.RoleState, error) {
		return states(ctx)
	})), func(*http.Request) (any, error) { return struct{}{}, nil }))

	mux.Handle("POST /v1/releases/metadata", kithttp.Handler(auth.Require(auth.ReleaseManager, auth.Admin)(kit.Typed(func(ctx context.Context, u Metadata) ([]ota.RoleState, error) {
		files := map[string][]byte{}
		for role, text := range u.Metadata {
			files[role] = []byte(text)
		}
		if len(files) == 0 {
			return nil, errs.New(errs.Invalid, "body: no metadata; want {\"metadata\": {\"prod\": \"...\"}}")
		}
		if err := audit(ctx, vouch.AuditUpload, "metadata", vouch.Names(files)); err != nil {
			return nil, err
		}
		if err := svc.Publish(ctx, files, auth.CallerFrom(ctx).Subject()); err != nil {
			return nil, err
		}
		return states(ctx)
	})), func(r *http.Request) (any, error) {
		var u Metadata
		err := kithttp.ReadJSON(r, &u, maxUpload)
		return u, err
	}))
}
