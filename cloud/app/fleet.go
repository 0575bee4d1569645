package app

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"kennel/certs"
	"kennel/certs/certspg"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/account/accountpg"
	"kennel/cloud/bulk"
	"kennel/cloud/bulk/bulkapi"
	"kennel/cloud/bulk/bulkpg"
	"kennel/cloud/cohort"
	"kennel/cloud/cohort/cohortapi"
	"kennel/cloud/cohort/cohortpg"
	outbox "kennel/cloud/command"
	"kennel/cloud/registry"
	"kennel/cloud/registry/filter"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// maxFound bounds the robots that a person's word finds by what their owners are called or call them.
const maxFound = 1000

// filterSources is whom filters of the fleet ask.
func (c *Cloud) filterSources() filter.Sources {
	return filter.Sources{
		Cohort: func(ctx context.Context, name string) (filter.Filter, error) { return c.Cohorts.Filter(ctx, name) },
		Named: func(ctx context.Context, text string) ([]thing.ID, error) {
			return c.ownerStore.Named(ctx, text, maxFound)
		},
		OwnedBy: func(ctx context.Context, text string) ([]thing.ID, error) {
			if role := auth.CallerFrom(ctx).Role; role != auth.Support && role != auth.Admin {
				return nil, errs.New(errs.Denied, "role %s may not look for owners: it needs %s or %s", role, auth.Support, auth.Admin)
			}
			accounts, err := accountpg.New(c.pool).OwnersLike(ctx, text, maxFound)
			if err != nil || len(accounts) == 0 {
				return nil, err
			}
			return c.ownerStore.OwnedBy(ctx, accounts)
		},
	}
}

// robotNames returns what owners call their robots.
func (c *Cloud) robotNames(ctx context.Context, ids []thing.ID) (map[thing.ID]string, error) {
	return c.ownerStore.Names(ctx, ids)
}

// wireFleet makes cohorts and bulk jobs. Everything that they ask is wired when they are.
func (c *Cloud) wireFleet() {
	c.Cohorts = cohort.New(cohortpg.New(c.pool))
	c.Bulk = bulk.New(bulkpg.New(c.pool, c.orders), bulk.Robots{
		Select: c.Registry.Select, Known: c.known, Tag: c.Registry.Tag, Cohort: c.Cohorts.Get,
		Send: func(ctx context.Context, d outbox.Draft) (outbox.Command, error) { return c.Commands.Send(ctx, d) },
		Set: func(ctx context.Context, key jdocs.Key, fields map[string]json.RawMessage, by string) (uint64, error) {
			rev, err := c.Docs.Set(ctx, key, fields, by)
			if err != nil {
				return 0, err
			}
			c.hinter.DocChanged(ctx, key, rev.Version)
			return rev.Version, nil
		},
	})
}

// mountFleet adds the endpoints of the fleet as a whole.
func (c *Cloud) mountFleet(mux *http.ServeMux) {
	audit := accountapi.Auditor(c.Accounts)
	cohortapi.Mount(mux, c.Cohorts, cohortapi.Config{Audit: audit, Log: c.log, Count: func(ctx context.Context, f filter.Filter) (int, error) {
		n, err := c.Registry.Counts(ctx, f)
		return n.Total, err
	}})
	bulkapi.Mount(mux, c.Bulk, bulkapi.Config{Audit: audit, Log: c.log})
}

// fleetTasks are the parts of bulk jobs.
func (c *Cloud) fleetTasks() []jobs.Task { return []jobs.Task{{Name: bulk.TaskRun, Run: c.Bulk.Run}} }

// fleetPeriodic lists the tasks that keep the fleet's table right and bulk jobs running.
func (c *Cloud) fleetPeriodic() []jobs.Job {
	return []jobs.Job{
		{Name: "bulk.resume", Every: time.Minute, Run: c.Bulk.Resume},
		{Name: "bulk.forget", Every: time.Hour, Run: c.Bulk.Forget},
		{Name: "registry.certificates", Every: time.Hour, Run: c.compareCertificates},
	}
}

// tellTable passes steps of activation on, and tells the fleet's table of those that change a robot's certificate.
func (c *Cloud) tellTable(next certs.Recorder) certs.Recorder {
	return tableTold{next, c.certificateChanged}
}

type tableTold struct {
	certs.Recorder
	changed func(ctx context.Context, id thing.ID)
}

func (t tableTold) Record(ctx context.Context, s certs.Step) {
	t.Recorder.Record(ctx, s)
	if !s.OK || s.Thing == "" {
		return
	}
	switch s.Step {
	case certs.StepEnroll, certs.StepRenew, certs.StepRevoke, certs.StepRelease:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderTime)
		defer cancel()
		t.changed(ctx, s.Thing)
	}
}

// RecordAll implements certs.BatchRecorder: a delivery changes no certificate.
func (t tableTold) RecordAll(ctx context.Context, all []certs.Step) {
	if next, ok := t.Recorder.(certs.BatchRecorder); ok {
		next.RecordAll(ctx, all)
		return
	}
	for _, s := range all {
		t.Recorder.Record(ctx, s)
	}
}

// certificateChanged tells the fleet's table until when a robot's certificate is good, after a step that may have changed it.
func (c *Cloud) certificateChanged(ctx context.Context, id thing.ID) {
	cert, ok, err := newestCertificate(certspg.New(c.pool))(ctx, id)
	if err == nil {
		until := cert.NotAfter
		if !ok || !cert.Revoked.IsZero() {
			until = time.Time{}
		}
		err = c.Registry.SetCertificates(ctx, map[thing.ID]time.Time{id: until})
	}
	if err != nil {
		c.log.WarnContext(ctx, "certificate date in the registry out of date", logging.Thing, id, logging.Err, err)
	}
}

// compareCertificates does so for the whole fleet: what a process that died did not tell.
func (c *Cloud) compareCertificates(ctx context.Context) error {
	store := certspg.New(c.pool)
	for after := thing.ID(""); ; {
		until, last, err := store.Newest(ctx, after, registry.MaxLimit)
		if err != nil || len(until) == 0 {
			return err
		}
		if err := c.Registry.SetCertificates(ctx, until); err != nil {
			return err
		}
		after = last
	}
}
