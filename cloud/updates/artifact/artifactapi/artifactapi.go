// Package artifactapi serves archives and channels over HTTP: to operators, and to original robots (Files)
//
//	GET /vic/{channel}/full/latest.ota                      the release that the channel offers
//	GET /vic/{channel}/full/{version}.ota                   one that it offers or offered
//	GET /vic/{channel}/diff/{running}.ota                   the delta to the release that it offers
package artifactapi

import (
	"context"
	"time"

	"kennel/cloud/updates/artifact"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otaapi"
)

type (
	bySpecies struct {
		Species thing.Species `query:"species" about:"Only those of one."`
	}
	archives struct {
		bySpecies
		Version ota.Version `query:"version" about:"Only those of one release."`
	}
	archive struct {
		Species thing.Species `path:"species"`
		Sum     string        `path:"sum"`
	}
	upload struct {
		archive
		Notes   string      `query:"notes" about:"For people, if the release is not known yet."`
		Version ota.Version `query:"version" about:"Of a file for SWUpdate."`
		Body    op.Raw      `body:""`
	}
	offer struct {
		Species thing.Species `path:"species"`
		Channel string        `path:"channel"`
		Body    otaapi.Wish   `body:""`
	}
)

const deleteTime = time.Minute // of an archive, with its object

// Operations returns what operators may do. audit writes one line about a change that the caller in ctx is about to make.
func Operations(svc *artifact.Service, audit func(ctx context.Context, action, object, detail string) error) op.List {
	changers := []auth.Role{auth.ReleaseManager, auth.Admin}
	return op.List{
		op.New(op.Spec{Route: "PUT /v1/releases/{species}/archives/{sum}", Tag: "Releases", Roles: changers, Timeout: -1, BodyMedia: "application/octet-stream",
			Summary: "Upload an archive of a release, which becomes known. An archive that robots would refuse is not kept; the code of the error has theirs, as archive_209."},
			func(ctx context.Context, u upload) (artifact.Artifact, error) {
				if len(u.Notes) > ota.MaxNotes {
					return artifact.Artifact{}, errs.New(errs.Invalid, "notes have %d bytes: at most %d", len(u.Notes), ota.MaxNotes)
				}
				return svc.Upload(ctx, artifact.Upload{Species: u.Species, SHA256: u.Sum, Version: u.Version, Size: u.Body.Size, Body: u.Body, Notes: u.Notes,
					By: auth.CallerFrom(ctx).Subject(), Audit: audit})
			}),
		op.New(op.Spec{Route: "GET /v1/archives", Tag: "Releases", Summary: "Archives of releases.", Roles: auth.Staff},
			func(ctx context.Context, q archives) ([]artifact.Artifact, error) {
				return svc.List(ctx, q.Species, q.Version)
			}),
		op.New(op.Spec{Route: "DELETE /v1/archives/{species}/{sum}", Tag: "Releases", Roles: changers, Timeout: deleteTime,
			Summary: "Delete an archive, unless a channel, a wish, a rollout or another release uses its release."},
			func(ctx context.Context, a archive) (artifact.Artifact, error) {
				return svc.Delete(ctx, a.Species, a.Sum, audit)
			}),
		op.New(op.Spec{Route: "GET /v1/channels", Tag: "Releases", Summary: "Which release each channel offers to original robots.", Roles: auth.Staff},
			func(ctx context.Context, q bySpecies) ([]artifact.Channel, error) {
				return svc.Channels(ctx, q.Species)
			}),
		op.New(op.Spec{Route: "PUT /v1/channels/{species}/{channel}", Tag: "Releases", Summary: "Have a channel offer a release, or none.", Roles: changers, MaxBody: 4 << 10},
			func(ctx context.Context, o offer) (artifact.Channel, error) {
				c := artifact.Channel{Species: o.Species, Channel: o.Channel, Version: o.Body.Version, By: auth.CallerFrom(ctx).Subject()}
				if err := audit(ctx, artifact.AuditChannel, string(c.Species), c.Channel+" "+string(c.Version)); err != nil {
					return c, err
				}
				return svc.SetChannel(ctx, c)
			}),
	}
}
