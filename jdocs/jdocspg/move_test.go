package jdocspg_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/infra/migrations"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// before returns the migrations before one.
func before(t *testing.T, name string) fs.FS {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for _, f := range files {
		if f < name {
			b, err := fs.ReadFile(migrations.FS, f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = &fstest.MapFile{Data: b}
		}
	}
	return out
}

func migrate(t *testing.T, pool *pgxpool.Pool, files fs.FS) {
	t.Helper()
	if _, err := pg.Migrate(t.Context(), pool, files); err != nil {
		t.Fatal(err)
	}
}

// rows returns the rows of a query as texts.
func rows(t *testing.T, pool *pgxpool.Pool, sql string) (out []string) {
	t.Helper()
	r, err := pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for r.Next() {
		v, err := r.Values()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(v...))
	}
	return out
}

// TestSettingsMove: migration 0164 gives the settings of AmigoBots their own name, with all versions and everything that is said of them, and
// leaves all others alone.
func TestSettingsMove(t *testing.T) {
	pool := pgtest.NewEmpty(t)
	migrate(t, pool, before(t, "0164"))
	store := jdocspg.New(pool)
	ctx := context.Background()
	put := func(id thing.ID, name jdocs.Name, version uint64, text, by string) {
		t.Helper()
		if _, _, err := store.Put(ctx, jdocs.Key{Thing: id, Name: name}, jdocs.Doc{Version: version, FmtVersion: 2, JSON: text}, 2, by); err != nil {
			t.Fatal(err)
		}
	}
	const rex, ami, gone, odd = thing.ID("vic:00e20100"), thing.ID("amigo:1"), thing.ID("amigo:2"), thing.ID("amigo:3")
	for _, id := range []thing.ID{rex, ami} {
		put(id, jdocs.RobotSettings, 0, `{"time_zone":"Europe/Rome", "eye_color":3}`, string(id))
		put(id, jdocs.RobotSettings, 1, `{"time_zone":"Europe/Paris", "eye_color":3}`, "owner")
	}
	put(ami, jdocs.RobotLifetimeStats, 0, `{"Pet.ms":1}`, string(ami))
	put(gone, jdocs.RobotSettings, 0, `{"locale":"fr-FR"}`, string(gone))
	if _, err := store.Delete(ctx, jdocs.Key{Thing: gone, Name: jdocs.RobotSettings}, "ann"); err != nil {
		t.Fatal(err)
	}
	put(odd, jdocs.RobotSettings, 0, `{"locale":"de-DE"}`, string(odd))
	put(odd, "amigo.RobotSettings", 0, `{"forced":true}`, "ann")
	if _, err := pool.Exec(ctx, `INSERT INTO registry_thing (thing, status) VALUES ('amigo:1', '{"docs":{"vic.RobotSettings":2,"vic.RobotLifetimeStats":1},"dirty":["vic.RobotSettings"]}'),
		('vic:00e20100', '{"docs":{"vic.RobotSettings":2}}')`); err != nil {
		t.Fatal(err)
	}
	const (
		all    = `SELECT thing, ' ', replace(name, 'amigo.', 'vic.'), ' ', doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at FROM %s WHERE thing <> 'amigo:3' ORDER BY 1, 3, 5`
		events = `SELECT count(*) FROM webhook_event`
	)
	doc, history := rows(t, pool, fmt.Sprintf(all, "jdocs_doc")), rows(t, pool, fmt.Sprintf(all, "jdocs_history"))
	if _, err := pool.Exec(ctx, `INSERT INTO webhook_hook (id, url, kinds, filter, secret, note, by_whom, created)
		VALUES (gen_random_uuid(), 'https://x.example', '{setting.changed}', '', '', '', 'ann', now())`); err != nil {
		t.Fatal(err)
	}

	migrate(t, pool, migrations.FS)
	if got := rows(t, pool, fmt.Sprintf(all, "jdocs_doc")); fmt.Sprint(got) != fmt.Sprint(doc) || len(got) != 4 {
		t.Errorf("documents\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(doc, "\n"))
	}
	if got := rows(t, pool, fmt.Sprintf(all, "jdocs_history")); fmt.Sprint(got) != fmt.Sprint(history) || len(got) != 7 {
		t.Errorf("history\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(history, "\n"))
	}
	for sql, want := range map[string]string{
		`SELECT thing, ' ', name FROM jdocs_doc WHERE name LIKE '%Settings' ORDER BY thing, name COLLATE "C"`: "[amigo:1 amigo.RobotSettings amigo:2 amigo.RobotSettings amigo:3 amigo.RobotSettings amigo:3 vic.RobotSettings vic:00e20100 vic.RobotSettings]",
		`SELECT status::text FROM registry_thing ORDER BY thing`:                                              `[{"docs":{"amigo.RobotSettings":2,"vic.RobotLifetimeStats":1},"dirty":["amigo.RobotSettings"]} {"docs":{"vic.RobotSettings":2}}]`,
		`SELECT thing, ' ', zone FROM rollout_zone ORDER BY thing`:                                            "[amigo:1 Europe/Paris vic:00e20100 Europe/Paris]",
		events: "[0]",
	} {
		if got := fmt.Sprint(rows(t, pool, sql)); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}

	// The zone follows the settings under their own name.
	docs := jdocs.New(store)
	key := jdocs.Key{Thing: ami, Name: jdocs.RobotSettings.Of(ami)}
	if rev, err := docs.Set(ctx, key, map[string]json.RawMessage{"time_zone": json.RawMessage(`"Asia/Tokyo"`)}, "owner"); err != nil || rev.Version != 3 || !strings.Contains(rev.JSON, `"eye_color":3`) {
		t.Errorf("%+v, %v", rev, err)
	}
	if got := fmt.Sprint(rows(t, pool, `SELECT zone FROM rollout_zone WHERE thing = 'amigo:1'`)); got != "[Asia/Tokyo]" {
		t.Errorf("zone %s", got)
	}
	// A deleted document continues with the version after its last.
	if rev, err := docs.Set(ctx, jdocs.Key{Thing: gone, Name: key.Name}, map[string]json.RawMessage{"master_volume": json.RawMessage("1")}, "ann"); err != nil || rev.Version != 3 {
		t.Errorf("%+v, %v", rev, err)
	}

	// kenneld of the previous release, which still runs beside this one, begins no second document.
	former := jdocs.Key{Thing: ami, Name: jdocs.RobotSettings}
	if _, _, err := store.Put(ctx, former, jdocs.Doc{FmtVersion: 2, JSON: "{}"}, 2, "owner"); !errors.Is(err, jdocs.ErrStale) {
		t.Errorf("a document beside another: %v", err)
	}
	put("amigo:4", jdocs.RobotSettings, 0, `{"locale":"it-IT"}`, "amigo:4")
	if rev, err := docs.History(ctx, jdocs.Key{Thing: "amigo:4", Name: key.Name}, 10); err != nil || len(rev) != 1 || rev[0].JSON != `{"locale":"it-IT"}` {
		t.Errorf("a new document: %+v, %v", rev, err)
	}
}
