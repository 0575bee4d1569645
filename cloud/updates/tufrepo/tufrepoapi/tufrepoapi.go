// Package tufrepoapi serves the metadata of releases: to robots over MQTT (req/ota/trust), and to operators over HTTP.
package tufrepoapi

import (
	"context"
	"time"

	"kennel/cloud/updates/tufrepo"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/op"
	"kennel/ota"
	"kennel/ota/trust"
)

// Metadata holds signed metadata of releases, as text, by role: 2.root, targets, prod and so on.
type Metadata struct {
	Metadata map[string]string `json:"metadata"`
}

const maxUpload = 8 << 20

// Handlers answers robots.
func Handlers(svc *tufrepo.Service) map[string]kitmqtt.ReqHandler {
	return map[string]kitmqtt.ReqHandler{"ota/trust": kitmqtt.Handler(trust.ParseQuestion, svc.Answer)}
}

// Operations returns what operators may do. audit writes one line about a change that the caller in ctx is about to make.
func Operations(svc *tufrepo.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	return op.List{
		op.New(op.Spec{Route: "GET /v1/releases/metadata", Tag: "Releases", Summary: "Show release metadata with their signers and expiry dates.", Roles: auth.Staff},
			func(ctx context.Context, _ op.None) ([]ota.RoleState, error) { return svc.States(ctx) }),
		op.New(op.Spec{Route: "POST /v1/releases/metadata", Tag: "Releases", Roles: []auth.Role{auth.ReleaseManager, auth.Admin}, MaxBody: maxUpload, Timeout: time.Minute,
			Summary: "Publish signed release metadata, by role: 2.root, targets, prod and so on. Metadata that robots would refuse is rejected."},
			func(ctx context.Context, u Metadata) ([]ota.RoleState, error) {
				files := map[string][]byte{}
				for role, text := range u.Metadata {
					files[role] = []byte(text)
				}
				if len(files) == 0 {
					return nil, errs.New(errs.Invalid, "body has no metadata: want {\"metadata\": {\"prod\": \"...\"}}")
				}
				if err := audit(ctx, tufrepo.AuditUpload, "metadata", tufrepo.Names(files)); err != nil {
					return nil, err
				}
				if err := svc.Publish(ctx, files, auth.CallerFrom(ctx).Subject()); err != nil {
					return nil, err
				}
				return svc.States(ctx)
			}),
	}
}
