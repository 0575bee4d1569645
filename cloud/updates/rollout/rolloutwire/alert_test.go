package rolloutwire

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrypg"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutpg"
	"kennel/cloud/wire"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otapg"
)

// TestStopped: a rollout that a guard stopped is an alert with the reason, told by the job that steps; one that continues is told no longer. What it uses is kept.
func TestStopped(t *testing.T) {
	pool := pgtest.New(t)
	log, ctx := slog.New(slog.DiscardHandler), t.Context()
	releases, archives := ota.New(otapg.New(pool), nil), artifact.New(artifact.Config{})
	if err := releases.AddRelease(ctx, ota.Release{Species: thing.Vector, Version: "2.0.1.1"}); err != nil {
		t.Fatal(err)
	}
	store := registrypg.New(pool, log)
	slice := Wire(wire.Base{Pool: pool, Log: log}, registry.New(store, store, registry.Sources{}, log), cohort.New(nil), releases, archives, nil)
	slice.Operations(wire.Doors{})
	rollouts := rolloutpg.New(pool)
	now := time.Now().UTC().Truncate(time.Second)
	r, err := rollouts.Add(ctx, rollout.Rollout{Spec: rollout.Spec{Species: thing.Vector, Version: "2.0.1.1", Phases: []rollout.Phase{{Percent: 100}}, Cap: 1}, State: rollout.Running, Changed: now, Progress: rollout.NoProgress()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	alarms := alertpg.New(pool)
	told := func(state rollout.State) []alert.Alert {
		t.Helper()
		if err := rollouts.Update(ctx, r.ID, nil, func(w *rollout.Work) error {
			w.Rollout.State, w.Rollout.Why = state, "7 of 60 updated robots failed"
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(ctx, `UPDATE alert_part SET told = told - $1::interval`, alert.PartAfter); err != nil { // as if it had been a while
			t.Fatal(err)
		}
		if err := slice.Jobs[0].Run(ctx); err != nil {
			t.Fatal(err)
		}
		if err := alarms.Told(ctx, "others", nil); err != nil {
			t.Fatal(err)
		}
		list, err := alarms.Alerts(ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := told(rollout.Running); len(list) > 0 {
		t.Errorf("alerts %+v", list)
	}
	for range 2 { // it is one alert, however often it is told
		list := told(rollout.Stopped)
		if len(list) != 1 || list[0].Kind != alert.PartFailing || list[0].Code != "rollout of vic 2.0.1.1" || list[0].Reason != "7 of 60 updated robots failed" || list[0].Resolved != nil && !list[0].Resolved.IsZero() {
			t.Errorf("alerts %+v", list)
		}
	}
	if list := told(rollout.Aborted); len(list) != 1 || list[0].Resolved == nil {
		t.Errorf("alerts %+v; want it resolved", list)
	}
	for state, used := range map[rollout.State]bool{rollout.Done: true, rollout.Aborted: false} {
		told(state)
		what, err := archives.Users[0](ctx, thing.Vector, "2.0.1.1")
		if err != nil || strings.Contains(what, r.ID) != used {
			t.Errorf("%s: used by %q, %v", state, what, err)
		}
	}
}
