package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutpg"
	"kennel/infra/cli"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otapg"
)

// Rollouts, wishes, bulk actions and commands of a restored backup rest until a person starts them again: people may have stopped them since the backup was made.
func TestRestoreStopsWhatWasUnderWay(t *testing.T) {
	dir := stocked(t, 10)
	archive := filepath.Join(t.TempDir(), "kennel.backup")
	ids := map[rollout.State]string{}
	inDatabase(t, dir, func(pool *pgxpool.Pool) {
		for _, state := range []rollout.State{rollout.Draft, rollout.Running, rollout.Baking, rollout.Paused, rollout.Stopped, rollout.Aborted, rollout.Done} {
			r, err := rolloutpg.New(pool).Add(t.Context(), rollout.Rollout{Spec: rollout.Spec{Species: thing.Vector, Version: "2.0.1.6091", Phases: []rollout.Phase{{Percent: 10}, {Percent: 100}}}, Phase: 1, State: state}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ids[state] = r.ID
		}
		store := otapg.New(pool)
		for _, scope := range []string{"vic", "vic:00e20100"} {
			if _, err := store.SetDesired(t.Context(), scope, "2.0.1.6091", "ann"); err != nil {
				t.Fatal(err)
			}
		}
		for _, sql := range []string{
			`INSERT INTO bulk_job (by_whom, action, filter, total) VALUES ('ann', '{}', 'species:vic', 1)`,
			`INSERT INTO bulk_item (job, thing, part) SELECT id, 'vic:00e20100', 0 FROM bulk_job`,
			`INSERT INTO command_outbox (thing, kind, args, by_whom, expires) VALUES ('vic:00e20100', 'drive', '{}', 'ann', clock_timestamp() + interval '10 years')`,
		} {
			if _, err := pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	})
	if out, code := kenneldRun(t, "backup", "-data", dir, "-out", archive); code != cli.ExitOK {
		t.Fatalf("backup: exit %d: %s", code, out)
	}
	back := filepath.Join(filepath.Dir(dir), "back")
	out, code := kenneldRun(t, "restore", "-in", archive, "-data", back)
	if code != cli.ExitOK || !regexp.MustCompile(`\b3 rollouts.*\b1 bulk job,.*\b1 command and 2 `).MatchString(out) || !strings.Contains(out, "want vic 2.0.1.6091") {
		t.Fatalf("restore: exit %d: %s", code, out)
	}
	fi, err := os.Stat(archive)
	if err != nil {
		t.Fatal(err)
	}
	inDatabase(t, back, func(pool *pgxpool.Pool) {
		store := rolloutpg.New(pool)
		for was, id := range ids {
			r, err := store.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			turns, err := store.Turns(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			want, stopped := was, was == rollout.Running || was == rollout.Baking || was == rollout.Done
			if stopped {
				want = rollout.Paused
			}
			var column rollout.State
			if err := pool.QueryRow(t.Context(), `SELECT state FROM rollout_rollout WHERE id::text = $1`, id).Scan(&column); err != nil || column != want || r.State != want || r.Phase != 1 {
				t.Errorf("%s is %s (%s) in phase %d, %v; want %s", was, r.State, column, r.Phase, err, want)
			}
			if stopped != (len(turns) == 1) || stopped && (turns[0].Kind != rollout.TurnPaused || turns[0].Phase != 1 || turns[0].Words != r.Why ||
				!strings.Contains(r.Why, "restored from a backup of "+fi.ModTime().UTC().Format("2006-01-02")) || r.Changed.IsZero()) {
				t.Errorf("%s: why %q, turns %+v", was, r.Why, turns)
			}
		}
		wishes := otapg.New(pool)
		if d, own, err := wishes.Desired(t.Context(), "vic:00e20100"); err != nil || own || d.Release != "" {
			t.Errorf("a robot is told %+v, %v", d, err)
		}
		if _, err := wishes.SetDesired(t.Context(), "vic", "2.0.1.6091", "bob"); err != nil {
			t.Fatal(err)
		}
		if d, _, err := wishes.Desired(t.Context(), "vic:00e20100"); err != nil || d.Release != ota.Version("2.0.1.6091") {
			t.Errorf("wished for again, a robot is told %+v, %v", d, err)
		}
		rows, err := pool.Query(t.Context(), `SELECT j.state || ' ' || i.state || ' ' || c.state FROM bulk_job AS j, bulk_item AS i, command_outbox AS c`)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || fmt.Sprint(got) != "[cancelled dropped expired]" {
			t.Errorf("bulk job, its robot and a command are %v, %v", got, err)
		}
	})
}
