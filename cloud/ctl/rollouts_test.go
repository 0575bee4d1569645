package ctl

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutwire"
	"kennel/cloud/wire"
	"kennel/infra/cli"
	"kennel/infra/op"
	"kennel/ota"
	"kennel/ota/otapg"
)

// TestRollouts (issue 17.8): a rollout from a command line to the database and back: made, shown, asked about, told to pause and to go back; each change is in
// the audit log.
func TestRollouts(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	var releases *ota.Service
	var step func(context.Context) error
	var db *pgxpool.Pool
	var lines []string
	_, _, dir := newPeople(t, func(mux *http.ServeMux, _ accounttest.Accounts, pool *pgxpool.Pool) {
		store := registrypg.New(pool, log)
		db, releases = pool, ota.New(otapg.New(pool), nil)
		slice := rolloutwire.Wire(wire.Base{Pool: pool, Log: log}, registry.New(store, store, registry.Sources{}, log), cohort.New(nil), releases, nil, nil)
		slice.Operations(wire.Doors{Audit: func(_ context.Context, action, object, detail string) error {
			lines = append(lines, action+" "+detail)
			return nil
		}}).Mount(mux, op.Doors{Log: log})
		step = slice.Jobs[0].Run
	})
	ctl := func(want int, args ...string) string {
		t.Helper()
		code, out, errOut := run(t.Context(), nil, "", append([]string{"-onebox", dir}, args...)...)
		if code != want {
			t.Fatalf("kennelctl %q: exit %d: %s%s", args, code, out, errOut)
		}
		return out + errOut
	}
	has := func(got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("no %q in\n%s", w, got)
			}
		}
	}
	if err := releases.AddRelease(t.Context(), ota.Release{Species: "vic", Version: "2.0.1.1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `INSERT INTO registry_thing (thing, present, since) SELECT 'vic:a' || i, i > 1, now() FROM generate_series(1, 8) AS i`); err != nil {
		t.Fatal(err)
	}
	has(ctl(cli.ExitUsage, "rollout", "create", "vic", "2.0.1.1", "-phases", "x"), "such as 10%:2h")
	has(ctl(cli.ExitUsage, "rollout", "create", "vic", "2.0.1.1", "-cap", "-1"), "cap")
	ctl(cli.ExitNotFound, "rollout", "create", "vic", "9.9.9.9")
	has(ctl(0, "rollout", "create", "vic", "2.0.1.1"), "waiting", "1 of 4 (1 %)")
	var list []rollout.Rollout
	if err := json.Unmarshal([]byte(ctl(0, "rollout", "list", "-o", "json")), &list); err != nil || len(list) != 1 {
		t.Fatal(err)
	}
	id := list[0].ID
	ctl(cli.ExitDenied, "rollout", "approve", id) // by its author
	ctl(0, "rollout", "abort", id, "-why", "wrong release")
	ctl(0, "rollout", "create", "vic", "2.0.1.1", "-channel", "dev", "-draft", "-guards", "failures:10%:5,problems:3%:9:fault/914")
	if err := json.Unmarshal([]byte(ctl(0, "rollout", "list", "-o", "json")), &list); err != nil || list[0].Guards[0].Share != 0.1 || list[0].Guards[1].Problem != "fault/914" {
		t.Errorf("%+v, %v", list[0], err)
	}
	ctl(0, "rollout", "abort", list[0].ID)
	ctl(0, "rollout", "create", "vic", "2.0.1.1", "-channel", "dev", "-phases", "100%:1d", "-cap", "2", "-guards", "none", "-watch", "2h", "-charger")
	if err := json.Unmarshal([]byte(ctl(0, "rollout", "list", "-o", "json")), &list); err != nil || len(list) != 3 {
		t.Fatal(err)
	}
	id = list[0].ID
	if r := list[0]; r.State != rollout.Running || r.Phases[0].BakeS != 86400 || len(r.Guards) != 0 || r.WatchS != 7200 || !r.Needs.Charger || r.Cap != 2 {
		t.Errorf("%+v", r)
	}
	if err := step(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(ctl(0, "rollout", "show", id), "running", "2               granted", "5               waits for place", "1               offline", "1 of 1 (8 robots)", "100 %    8               0     0       2         1", "started")
	has(ctl(0, "rollout", "why", "vic:a1"), "It is offline since")
	var granted []rollout.Why
	if err := json.Unmarshal([]byte(ctl(0, "rollout", "robots", id, "-why", "granted", "-o", "json")), &granted); err != nil || len(granted) != 2 {
		t.Fatal(granted, err)
	}
	if err := releases.Report(t.Context(), granted[0].Thing, ota.Status{ID: "1", Release: "2.0.1.1", Phase: "failed", Code: 209}); err != nil {
		t.Fatal(err)
	}
	if err := step(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(ctl(0, "rollout", "show", id), "209", "the signature does not belong")
	has(ctl(0, "rollout", "why", string(granted[0].Thing)), "code 209")
	has(ctl(0, "rollout", "pause", id, "-why", "lunch"), "vic 2.0.1.1 is paused")
	has(ctl(0, "rollout", "resume", id), "running")
	has(ctl(0, "rollout", "retry", id), "running")
	has(ctl(0, "rollout", "rollback", id), "aborted")
	ctl(cli.ExitFailed, "rollout", "pause", id)
	has(strings.Join(lines, "\n"), "rollout.create vic 2.0.1.1 to dev", "rollout.pause lunch", "rollout.rollback ")
}
