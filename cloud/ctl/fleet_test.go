package ctl

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/bulk"
	"kennel/cloud/fleet/bulk/bulkapi"
	"kennel/cloud/fleet/bulk/bulkpg"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/cohort/cohortapi"
	"kennel/cloud/fleet/cohort/cohortpg"
	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/fleet/registry/registryapi"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/account/accounttest"
	"kennel/infra/cli"
	"kennel/infra/jobs"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// fleetCloud is the real rules, endpoints and jobs of the fleet, and the command line of an admin.
func fleetCloud(t *testing.T) (svc *registry.Service, dir string) {
	log := slog.New(slog.DiscardHandler)
	_, _, dir = newPeople(t, func(mux *http.ServeMux, _ accounttest.Accounts, pool *pgxpool.Pool) {
		if _, err := jobs.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		orders, err := jobs.NewOrders(pool)
		if err != nil {
			t.Fatal(err)
		}
		audit := func(context.Context, string, string, string) error { return nil }
		cohorts := cohort.New(cohortpg.New(pool))
		store := registrypg.New(pool, log)
		svc = registry.New(store, store, registry.Sources{Filter: filter.Sources{Cohort: cohorts.Filter}}, log)
		docs, cmds := jdocs.New(jdocspg.New(pool)), command.New(commandpg.New(pool))
		work := bulk.New(bulkpg.New(pool, orders), bulk.Robots{
			Select: svc.Select, Tag: svc.Tag, Cohort: cohorts.Get, Send: cmds.Send,
			Owned: func(_ context.Context, ids []thing.ID) (n int, _ error) {
				if slices.Contains(ids, "vic:a0") {
					n = 1
				}
				return n, nil
			},
			Known: func(ctx context.Context, id thing.ID) error { _, err := svc.Thing(ctx, id); return err },
			Set: func(ctx context.Context, key jdocs.Key, fields map[string]json.RawMessage, by string) (uint64, error) {
				rev, err := docs.Set(ctx, key, fields, by)
				return rev.Version, err
			},
		})
		registryapi.Operations(svc, audit).Mount(mux, op.Doors{Log: log})
		cohortapi.Operations(cohorts, cohortapi.Config{Audit: audit, Count: func(ctx context.Context, f filter.Filter) (int, error) {
			n, err := svc.Counts(ctx, f)
			return n.Total, err
		}}).Mount(mux, op.Doors{Log: log})
		bulkapi.Operations(work, audit).Mount(mux, op.Doors{Log: log})
		r, err := jobs.New(pool, log)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Handle(jobs.Task{Name: bulk.TaskRun, Run: work.Run}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	for i := range 5 {
		if err := svc.Register(t.Context(), thing.ID(fmt.Sprint("vic:a", i))); err != nil {
			t.Fatal(err)
		}
	}
	return svc, dir
}

// TestFleetCommands: filters, tags, cohorts and bulk jobs from a command line to the database and back.
func TestFleetCommands(t *testing.T) {
	svc, dir := fleetCloud(t)
	try := func(stdin string, args ...string) (int, string, string) {
		return run(t.Context(), nil, stdin, append([]string{"-onebox", dir}, args...)...)
	}
	ok := func(stdin string, args ...string) string {
		t.Helper()
		code, out, errOut := try(stdin, args...)
		if code != 0 {
			t.Fatalf("kennelctl %q: exit %d: %s%s", args, code, out, errOut)
		}
		return out
	}
	ids := func(filter ...string) string {
		t.Helper()
		var list []registry.Thing
		if err := json.Unmarshal([]byte(ok("", append([]string{"robots", "list", "-o", "json"}, filter...)...)), &list); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, th := range list {
			out = append(out, string(th.ID))
		}
		return strings.Join(out, " ")
	}
	has := func(what, got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", what, w, got)
			}
		}
	}

	has("tag", ok("", "robots", "tag", "add", "vic:a1", "lab", "demo"), "vic:a1  demo lab")
	has("tag", ok("", "robots", "tag", "remove", "vic:a1", "demo"), "vic:a1  lab")
	if got := ids("tag:lab"); got != "vic:a1" {
		t.Errorf("tag:lab: %s", got)
	}
	if got := ids("-filter", "-tag:lab", "species:vic", "-sort", "-id"); got != "vic:a4 vic:a3 vic:a2 vic:a0" {
		t.Errorf("without the tag, backwards: %s", got)
	}
	rows, err := csv.NewReader(strings.NewReader(ok("", "robots", "list", "tag:lab", "-csv"))).ReadAll()
	if err != nil || len(rows) != 2 || rows[0][0] != "thing" || rows[1][0] != "vic:a1" || !slices.Contains(rows[1], "lab") {
		t.Errorf("csv: %q, %v", rows, err)
	}
	has("counts", ok("", "robots", "counts", "species:vic"), "robots  5", "Tag\nlab     1", "never   5")

	has("create", ok("", "cohorts", "create", "labs", "tag:lab", "-note", "ours"), "tag:lab", "ours")
	if code, _, errOut := try("", "cohorts", "create", "labs", "tag:x"); code == 0 {
		t.Errorf("a cohort twice: %s", errOut)
	}
	has("change", ok("", "cohorts", "change", "labs", "tag:lab", "-rev", "1"), "revision  2")
	has("list", ok("", "cohorts", "list"), "labs", "tag:lab")
	has("show", ok("", "cohorts", "show", "labs"), "robots    1")

	has("dry run", ok("", "robots", "bulk", "tag", "id:vic:a0,vic:a2", "-add", "x", "-dry-run"), "add tag x", "robots  2")
	if code, _, errOut := try("n\n", "robots", "bulk", "tag", "id:vic:a0,vic:a2", "-add", "x"); code == 0 ||
		!strings.Contains(errOut, "add tag x: 2 robots (vic:a0, vic:a2). Continue?") || ids("tag:x") != "" {
		t.Errorf("refused: %d %s", code, errOut)
	}
	has("bulk tag", ok("y\n", "robots", "bulk", "tag", "id:vic:a0,vic:a2", "-add", "x"), "2: 2 done, 0 failed")
	if got := ids("tag:x"); got != "vic:a0 vic:a2" {
		t.Errorf("tagged: %s", got)
	}
	has("bulk cohort", ok("", "robots", "bulk", "cohort", "", "labs", "-thing", "vic:a3,vic:a4", "-yes"), "2 done")
	if got := ids("cohort:labs"); got != "vic:a1 vic:a3 vic:a4" {
		t.Errorf("cohort: %s", got)
	}
	has("bulk send", ok("", "robots", "bulk", "send", "cohort:labs", "ping", "-yes"), "3 stored", "send command ping", "kennelctl commands list THING")
	has("bulk set, dry", ok("", "robots", "bulk", "set", "tag:x", "master_volume=2", "-dry-run"), "set master_volume=2 of", "owned   1 ")
	if code, _, errOut := try("n\n", "robots", "bulk", "set", "tag:x", "master_volume=2"); code == 0 || !strings.Contains(errOut, "1 owner") {
		t.Errorf("bulk set: %d %s; want a word on owners", code, errOut)
	}
	set := ok("", "robots", "bulk", "set", "tag:x", "master_volume=2", "-yes", "-key", "k")
	has("bulk set", set, "2 stored", "set master_volume=2 of vic.RobotSettings")
	has("results of what is stored", ok("", "robots", "bulk", "results", strings.Fields(set)[1]), "stored as version 1; replaces its owner's choice", "vic:a2  stored  ")
	has("jobs", ok("", "robots", "bulk", "list"), "set master_volume=2 of vic.RobotSettings  stored", "add tag x                                 done")
	code, out, errOut := try("", "robots", "bulk", "tag", "", "-thing", "vic:a0,vic:gone", "-add", "y", "-yes")
	if code != cli.ExitFailed || !strings.Contains(out, "1 done, 1 failed") || !strings.Contains(errOut, "-state failed") {
		t.Errorf("with an unknown one: %d %s%s", code, out, errOut)
	}
	var list []bulk.Job
	if err := json.Unmarshal([]byte(ok("", "robots", "bulk", "list", "-o", "json")), &list); err != nil || len(list) != 5 {
		t.Fatalf("%d jobs, %v; want 5", len(list), err)
	}
	has("results", ok("", "robots", "bulk", "results", list[0].ID, "-state", "failed"), "vic:gone", "thing vic:gone")
	has("job", ok("", "robots", "bulk", "show", list[0].ID), "done", "add tag y")
	has("cancelled too late", ok("", "robots", "bulk", "cancel", list[0].ID), "done")
	if th, err := svc.Thing(t.Context(), "vic:a0"); err != nil || !slices.Equal(th.Tags, []string{"x", "y"}) {
		t.Errorf("vic:a0: %v, %v", th.Tags, err)
	}
	if code, _, errOut := try("n\n", "cohorts", "delete", "labs"); code != cli.ExitUsage ||
		!strings.Contains(errOut, "Delete cohort labs? [y/N]") {
		t.Errorf("delete, not confirmed: %d %s", code, errOut)
	}
	has("still there", ok("", "cohorts", "list"), "labs")
	has("delete", ok("", "cohorts", "delete", "labs", "-yes"), "labs")

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"robots", "list", "colour:red"}, "colour"},
		{[]string{"robots", "list", "-sort", "colour"}, "want one of id, presence, since"},
		{[]string{"robots", "bulk", "tag", "tag:x"}, "-remove TAG"},
		{[]string{"robots", "bulk", "tag", "tag:x", "-add", "Big", "-yes"}, "want 1 to 32 lower-case letters"},
		{[]string{"robots", "bulk", "set", "tag:x", "master_volume=9", "-yes"}, "master_volume"},
		{[]string{"robots", "bulk", "set", "tag:x", "volume=2", "-yes"}, `no field "volume"; did you mean master_volume`},
		{[]string{"robots", "bulk", "send", "tag:x", "dance", "-yes"}, "dance"},
		{[]string{"robots", "list", "cohort:labs"}, "there is no cohort labs"},
	} {
		if code, _, errOut := try("", c.args...); code == 0 || !strings.Contains(errOut, c.want) {
			t.Errorf("%q: exit %d, %s; want %q", c.args, code, errOut, c.want)
		}
	}
	_, out, _ = run(t.Context(), nil, "", "__complete", "-onebox", dir, "robots", "list", "tag:lab presence:of")
	has("completion", out, "tag:lab presence:offline")
	_, out, _ = run(t.Context(), nil, "", "__complete", "-onebox", dir, "robots", "list", "ve")
	has("completion", out, "version:")
}
