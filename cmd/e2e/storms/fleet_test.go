package storms

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"kennel/cmd/e2e/housetest"
)

// stormy is a day in a minute with all that goes wrong.
const stormy = `time_factor: 1440
status: 5s
flush: 500ms
telemetry: 30s
events_per_hour: 2
settings_per_hour: 0.2
drops_per_hour: 0.1
reboots_per_day: 2
offline: {per_day: 2, shortest: 1h, longest: 8h}
clock: {share: 0.4, behind: 9000h, ahead: 20m}
network: {share: 0.3, latency: 30ms, loss: 0.05, stall: 300ms, cuts_per_hour: 0.1}
`

// TestFleet (fleet issue: what must hold 3 and 5): thousands are present with mutual TLS, their events arrive once each, and when many of
// them lose their connection in one moment, all are back soon and none is left behind.
func TestFleet(t *testing.T) {
	n, again, limit := 100, 100, 3*time.Minute
	if housetest.Soak() {
		n, again, limit = 2000, 1000, 10*time.Minute
	}
	h := housetest.New(t, "-robots", "0", "-log-level", "warn")
	h.Start()
	db := h.DB(t)
	f := h.StartFleet(t, housetest.FleetRoot(t), n, housetest.FleetProfile(t, housetest.SteadyFleet))

	start := time.Now()
	s := f.Await(limit, "all connected", func(s housetest.FleetStatus) bool { return s.Connected == n && s.Enrolled == n })
	t.Logf("%d robots made, registered, enrolled and connected in %v; login p50 %.0f ms, p99 %.0f ms; %.0f KiB and %.1f ms of CPU a robot; "+
		"%d open files",
		n, time.Since(start).Round(time.Second), s.Login.P50, s.Login.P99, float64(s.Process.RSS)/1024/float64(n), s.Process.CPU/float64(n),
		s.Process.Files)
	if len(s.Errors) > 0 {
		t.Logf("on the way: %v", s.Errors)
	}
	allPresent := func() {
		t.Helper()
		housetest.Await(t, limit, "all present", func() error {
			if got := housetest.QueryNumber(t, db, `select count(*) from registry_thing where present`); got != int64(n) {
				return fmt.Errorf("%d of %d", got, n)
			}
			return nil
		})
	}
	allPresent()
	f.Await(limit, "events and settings flow", func(s housetest.FleetStatus) bool { return s.Events.Acked > int64(8*n) && s.Settings > int64(n/100) })

	var cut struct{ Cut int }
	if err := f.Ask(t.Context(), http.MethodPost, fmt.Sprintf("/reconnect?n=%d", again), &cut); err != nil || cut.Cut != again {
		t.Fatalf("cut %d connections, %v", cut.Cut, err)
	}
	s = f.Await(limit, "all back", func(s housetest.FleetStatus) bool { return s.Connected == n && s.Absence.N >= again })
	t.Logf("%d that lost their connection in one moment are back: after %.0f ms the first, %.0f ms half, %.0f ms nine of ten, %.0f ms the "+
		"last; tries that failed: %v",
		again, s.Absence.Min, s.Absence.P50, s.Absence.P90, s.Absence.Max, s.Errors)
	// Served one after the other, the last waits twice the mean; a few may have to try once more.
	if s.Absence.Max > 5*s.Absence.Mean+10_000 {
		t.Errorf("the last was back after %.0f ms, on average they were after %.0f ms", s.Absence.Max, s.Absence.Mean)
	}
	allPresent()
	s = f.Stop()
	if s.Connected != n || s.Events.Dropped != 0 || s.Events.Quarantined != 0 {
		t.Errorf("at the end %+v", s)
	}
	eventsOnce(t, db, s.Events.Acked)
}

// eventsOnce: what robots counted up arrived without a gap and without a double, and nothing that was acknowledged is missing.
func eventsOnce(t *testing.T, db *pgx.Conn, acked int64) {
	t.Helper()
	stored := housetest.QueryNumber(t, db, `select count(*) from das_event`)
	if stored < acked {
		t.Errorf("%d events stored, %d acknowledged", stored, acked)
	}
	rows, err := db.Query(t.Context(),
		`select thing, count(*), count(distinct s1), max(s1::bigint) from das_event where event = 'robotsim.event' group by 1`)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	things, events := 0, int64(0)
	for rows.Next() {
		var thing string
		var n, different, last int64
		if err := rows.Scan(&thing, &n, &different, &last); err != nil {
			t.Fatal(err)
		}
		things++
		events += n
		if n != different || n != last+1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d events, %d different, the last is number %d", thing, n, different, last))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(wrong)
	for _, w := range wrong[:min(10, len(wrong))] {
		t.Error(w)
	}
	if len(wrong) > 0 || things == 0 {
		t.Errorf("%d of %d things are wrong", len(wrong), things)
	}
	t.Logf("%d events stored, %d of them counted by %d robots; %d acknowledged to their agents", stored, events, things, acked)
}

// TestFleetInBadWeather: reboots, wrong clocks, bad networks and days offline lose no event and double none (VEC-FLE-03).
func TestFleetInBadWeather(t *testing.T) {
	n, days := 40, 25*time.Second
	if housetest.Soak() {
		n, days = 500, 5*time.Minute
	}
	h := housetest.New(t, "-robots", "0", "-log-level", "warn")
	h.Start()
	db := h.DB(t)
	root := housetest.FleetRoot(t)
	s := end(h.StartFleet(t, root, n, housetest.FleetProfile(t, stormy), "-seed", "11", "-for", days.String()), days+5*time.Minute)
	t.Logf("%d robots: %d reboots, %d drops, %d reconnects, %d settings; events %+v; errors %v", n, s.Reboots, s.Drops, s.Reconnects,
		s.Settings, s.Events, s.Errors)
	if s.Reboots == 0 || s.Drops == 0 || s.Settings == 0 || s.Errors["dial/unreachable"] == 0 {
		t.Errorf("the weather was too good: %+v", s)
	}
	acked := s.Events.Acked
	// The same robots on a quiet day bring what they kept.
	f := h.StartFleet(t, root, n, housetest.FleetProfile(t, "flush: 500ms\n"))
	f.Await(5*time.Minute, "nothing waits", func(s housetest.FleetStatus) bool { return s.Connected == n && s.Events.Waiting == 0 })
	s = f.Stop()
	eventsOnce(t, db, acked+s.Events.Acked)
	if wrong := housetest.QueryNumber(t, db, `select count(*) from das_event where unsynced`); wrong == 0 {
		t.Error("no event says that its robot's clock was wrong")
	}
}

// end waits for a fleet that ends by itself.
func end(f *housetest.Fleet, limit time.Duration) housetest.FleetStatus {
	f.T.Helper()
	select {
	case err := <-f.Exited:
		f.Exited <- err
	case <-time.After(limit):
	}
	return f.Stop()
}
