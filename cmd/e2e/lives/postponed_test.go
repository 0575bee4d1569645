package lives

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/edge/sim"
	"kennel/ota"
)

// TestOwnerPostpones, with a real agent: the owner of a robot postpones a release, which the robot reports and does not install; a stranger cannot undo that. In a
// rollout the robot counts as postponed and keeps nothing from passing. "Now" installs it outside of any window.
func TestOwnerPostpones(t *testing.T) {
	const version, limit = "2.0.0.9200", 3 * time.Minute
	h := housetest.New(t, "-robots", "0", "-log-level", "warn")
	h.Start()
	folder := housetest.FleetRoot(t)
	f := h.StartFleet(t, folder, 1, housetest.FleetProfile(t, housetest.SteadyFleet), "-release-key", h.Ready.Files["release_pub"])
	f.Await(limit, "connected", func(s housetest.FleetStatus) bool { return s.Connected == 1 && s.Enrolled == 1 })
	db := h.DB(t)
	ann, bob := h.Owner(t, "ann@example.com", "Ann"), h.Owner(t, "bob@example.com", "Bob")
	var id string
	if err := db.QueryRow(t.Context(), `SELECT thing FROM registry_thing`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	// Robots of a fleet show no code.
	if _, err := db.Exec(t.Context(), `INSERT INTO owner_tenure (thing, account, how, since) VALUES ($1, $2, 'code', now())`, id, ann.ID); err != nil {
		t.Fatal(err)
	}
	path := "/v1/my/robots/" + id + "/update"
	if out, err := h.Ctl("releases", "upload", makeRelease(h, sim.System{Version: version}, 1<<10)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	closed := time.Now().UTC().Add(12 * time.Hour)
	var r struct {
		ID string `json:"rollout"`
	}
	if err := h.CtlJSON(&r, "rollout", "create", "vic", version, "-channel", "dev", "-phases", "100%:1s", "-guards", "none", "-window", closed.Format("15:04")+"-"+closed.Add(time.Hour).Format("15:04")); err != nil {
		t.Fatal(err)
	}
	var u ota.Update
	await := func(what string, is func() bool) {
		t.Helper()
		housetest.Await(t, limit, what, func() error {
			u = ota.Update{}
			if ann.Do("GET", path, nil, &u); !is() {
				return fmt.Errorf("%+v", u)
			}
			return nil
		})
	}
	await("the release waits for its window", func() bool { return u.Release == version && u.Waits == ota.WaitWindow && u.Size > 0 })
	for _, choice := range []map[string]any{{"now": true}, {"postpone": "1d"}} {
		if code, body := bob.Try("PUT", path, choice); code != http.StatusNotFound {
			t.Errorf("a stranger chooses %v: %d %s, want 404", choice, code, body)
		}
	}
	if code, body := ann.Try("PUT", path, map[string]any{"postpone": "15d"}); code != http.StatusBadRequest {
		t.Errorf("15 days: %d %s, want 400", code, body)
	}
	ann.Do("PUT", path, map[string]any{"postpone": "3d"}, &u)
	if u.When != ota.WhenPostponed || u.Until.Before(time.Now().Add(71*time.Hour)) {
		t.Errorf("postponed: %+v", u)
	}
	var whys []struct{ Thing, Code string }
	if err := h.CtlJSON(&whys, "rollout", "robots", r.ID, "-why", "postponed"); err != nil || len(whys) != 1 || whys[0].Thing != id {
		t.Errorf("postponed in the rollout: %+v, %v; want %s", whys, err, id)
	}
	if out, err := h.Ctl("releases", "want", id, version); err != nil { // without a window: only the owner's choice holds it
		t.Fatalf("%v\n%s", err, out)
	}
	await("the robot says that it waits for its owner", func() bool { return u.Phase == ota.Pending && u.Waits == ota.WaitOwner })
	ann.Do("PUT", path, map[string]any{"now": true}, nil)
	await("it runs the release", func() bool { return u.Running == version && u.Release == "" })
}
