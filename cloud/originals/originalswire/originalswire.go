// Package originalswire wires the slice of original robots' names and their self-test.
package originalswire

import (
	"cmp"
	"context"
	"net"
	"slices"

	"kennel/certs/ca"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/sts"
	"kennel/cloud/originals"
	"kennel/cloud/originals/door/doorapi"
	"kennel/cloud/originals/intake"
	"kennel/cloud/originals/originalsapi"
	"kennel/cloud/originals/originalspg"
	"kennel/cloud/originals/replay"
	"kennel/cloud/page"
	"kennel/cloud/wire"
	"kennel/infra/op"
)

// Config is a part of the settings robots.
type Config struct {
	Listen, Uploads, Public string   // host:port
	Names                   []string // in the certificate; none: it is another authority's
	ACME                    []string // names with a certificate of a public authority
	Bucket, AppKeys, Advice string
	Intake                  intake.Paths
}

// Names returns names and the one to which robots upload.
func Names(names []string, bucket string) []string {
	if upload := replay.UploadHost(bucket); len(names) > 0 && !slices.Contains(names, upload) {
		names = append(slices.Clone(names), upload)
	}
	return names
}

// Wire wires them. all is asked for what slices hold about people once everything is wired.
func Wire(b wire.Base, cfg Config, authority *ca.Authority, robots *registry.Service, all func() wire.Slices) wire.Slice {
	d := originals.Door{Listen: cfg.Listen, Public: cfg.Public, Names: cfg.Names, ACME: cfg.ACME, Bucket: cfg.Bucket, Prefix: sts.DefaultPrefix, AppKeys: cfg.AppKeys, Intake: cfg.Intake.Or(intake.DefaultPaths), Root: authority.Root, Advice: cfg.Advice}
	if _, port, err := net.SplitHostPort(cmp.Or(cfg.Uploads, cfg.Listen)); err == nil && d.Public == "" && len(d.Names) > 0 {
		d.Public = net.JoinHostPort(d.Names[0], port)
	}
	svc := originals.New(originals.Config{
		Door: d, Issuer: authority, Sessions: originals.NewSessions(b.Seal), Turns: originalspg.New(b.Pool),
		Mark: func(ctx context.Context) error {
			if err := robots.Register(ctx, originals.TestThing); err != nil {
				return err
			}
			_, err := robots.Tag(ctx, originals.TestThing, []string{originals.TestTag}, nil)
			return err
		},
		Forget: func(ctx context.Context) error { return robots.Forget(ctx, originals.TestThing) },
		Erase: func(ctx context.Context, account string) error {
			for _, h := range all().Personal() {
				if err := h.Data.Erase(ctx, account); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return wire.Slice{
		Operations: func(d wire.Doors) wire.Operations { return originalsapi.Operations(svc, d.Audit) },
		Pages:      []page.Extra{originalsapi.Page(svc, b.Log)},
	}
}

// Operations lists the operations about original robots, for their declarations alone.
func Operations() op.List {
	return slices.Concat(doorapi.Operations(nil), originalsapi.Operations(nil, nil))
}
