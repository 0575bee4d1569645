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
		Species thing.Species `query:"species" about:"Only this species."`
	}
	archives struct {
		bySpecies
		Version ota.Version `query:"version" about:"Only archives of this release."`
	}
	archive struct {
		Species thing.Species `path:"species"`
		Sum     string        `path:"sum"`
	}
	upload struct {
		archive
		Notes   string      `query:"notes" about:"Release notes, if this creates the release."`
		Version ota.Version `query:"version" about:"Version of an SWUpdate file."`
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
			Summary: "Upload a release archive (creates the release if needed). An archive that robots would refuse is rejected with their code, such as archive_209."},
			func(ctx context.Context, u upload) (artifact.Artifact, error) {
				if len(u.Notes) > ota.MaxNotes {
					return artifact.Artifact{}, errs.New(errs.Invalid, "notes have %d bytes: at most %d", len(u.Notes), ota.MaxNotes)
				}
				return svc.Upload(ctx, artifact.Upload{Species: u.Species, SHA256: u.Sum, Version: u.Version, Size: u.Body.Size, Body: u.Body, Notes: u.Notes,
					By: auth.CallerFrom(ctx).Subject(), Audit: audit})
			}),
		op.New(op.Spec{Route: "GET /v1/archives", Tag: "Releases", Summary: "List release archives.", Roles: auth.Staff}.With(
			op.Command{Use: "releases archives SPECIES [VERSION]", Short: "List archives of a release, or of all releases of a species", Example: "releases archives vic\nreleases archives vic 2.0.1.6076", Table: "SPECIES; VERSION; ARCHIVE={{if .base_version}}delta from {{.base_version}}{{else if .qsn}}{{.kind}} for {{.qsn}}{{else}}{{.kind}}{{end}}; SIZE=bytes .size; SHA256; UPLOADED=.created; BY"}),
			func(ctx context.Context, q archives) ([]artifact.Artifact, error) {
				return svc.List(ctx, q.Species, q.Version)
			}),
		op.New(op.Spec{Route: "DELETE /v1/archives/{species}/{sum}", Tag: "Releases", Roles: changers, Timeout: deleteTime,
			Summary: "Delete an archive, unless a channel, a target, a rollout or another release uses its release."}.With(
			op.Command{Use: "releases delete SPECIES SHA256", Short: "Delete an archive", Long: "kennelctl releases archives lists them. Refused while a channel, a target, a rollout or another release uses the release.", Says: "deleted {{.species}} {{.version}}: {{if .base_version}}delta from {{.base_version}}{{else if .qsn}}{{.kind}} for {{.qsn}}{{else}}{{.kind}}{{end}}"}),
			func(ctx context.Context, a archive) (artifact.Artifact, error) {
				return svc.Delete(ctx, a.Species, a.Sum, audit)
			}),
		op.New(op.Spec{Route: "GET /v1/channels", Tag: "Releases", Summary: "List channels and the releases that they offer to original robots.", Roles: auth.Staff}.With(
			op.Command{Use: "channels list -species", Short: "List channels and the releases that they offer", Table: "SPECIES; CHANNEL; VERSION=or .version `none`; SINCE; BY"}),
			func(ctx context.Context, q bySpecies) ([]artifact.Channel, error) {
				return svc.Channels(ctx, q.Species)
			}),
		op.New(op.Spec{Route: "PUT /v1/channels/{species}/{channel}", Tag: "Releases", Summary: "Set which release a channel offers, if any.", Roles: changers, MaxBody: 4 << 10}.With(
			op.Command{Use: "channels set SPECIES CHANNEL [VERSION] -none?", Short: "Set which release a channel offers", Long: "Original robots download /vic/CHANNEL/full/latest.ota, or /vic/CHANNEL/diff/VERSION.ota, the delta from the version that they run.\n-none: the channel offers nothing.", Example: "channels set vic prod 2.0.1.6076\nchannels set vic beta -none", Table: "channel={{.species}} {{.channel}}; offers=or .version `none`; since"}),
			func(ctx context.Context, o offer) (artifact.Channel, error) {
				c := artifact.Channel{Species: o.Species, Channel: o.Channel, Version: o.Body.Version, By: auth.CallerFrom(ctx).Subject()}
				if err := audit(ctx, artifact.AuditChannel, string(c.Species), c.Channel+" "+string(c.Version)); err != nil {
					return c, err
				}
				return svc.SetChannel(ctx, c)
			}),
	}
}
