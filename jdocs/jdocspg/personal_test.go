package jdocspg_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// VEC-JDS-11: what is held about a person can be listed, and erased without taking other people's or the robot's own.
func TestPersonal(t *testing.T) {
	pool := pgtest.New(t)
	store := jdocspg.New(pool)
	docs := jdocs.New(store)
	const ada, bob = "6f1c1bb2-6f1f-4a51-9a30-0d6b0a1f4a01", "6f1c1bb2-6f1f-4a51-9a30-0d6b0a1f4a02"
	rex, max := thing.MustParse("vic:00e20100"), thing.MustParse("vic:00e20101")
	set := func(key jdocs.Key, by, field, value string) {
		t.Helper()
		if _, err := docs.Set(t.Context(), key, map[string]json.RawMessage{field: json.RawMessage(value)}, by); err != nil {
			t.Fatal(err)
		}
	}
	settings := func(id thing.ID) jdocs.Key { return jdocs.Key{Thing: id, Name: jdocs.RobotSettings} }
	set(jdocs.Key{Account: ada, Name: jdocs.AccountSettings}, ada, "app_locale", `"de-DE"`)
	set(jdocs.Key{Account: bob, Name: jdocs.AccountSettings}, bob, "app_locale", `"fr-FR"`)
	set(settings(rex), ada, "default_location", `"Lovelace Street, London"`)
	set(settings(rex), ada, "default_location", `"Paris, France"`)
	set(settings(max), bob, "default_location", `"Turing Road, Wilmslow"`)

	held, err := store.OfAccount(t.Context(), ada, []thing.ID{rex})
	if err != nil || len(held) != 2 || !strings.Contains(held[0].JSON+held[1].JSON, "Paris") || !strings.Contains(held[0].JSON+held[1].JSON, "de-DE") {
		t.Fatalf("held %+v %v", held, err)
	}
	for range 2 { // it may be repeated
		if err := store.EraseAccount(t.Context(), ada, []thing.ID{rex}); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"jdocs_doc", "jdocs_history"} {
		var n int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` x WHERE x::text LIKE '%`+ada+
			`%' OR x::text LIKE '%Lovelace%' OR x::text LIKE '%de-DE%'`).Scan(&n); err != nil || n > 0 {
			t.Errorf("%s: %d rows of her left, %v", table, n, err)
		}
	}
	if d, err := docs.Get(t.Context(), settings(rex)); err != nil || !strings.Contains(d.JSON, "Paris") {
		t.Errorf("the robot's own document: %+v %v", d, err)
	}
	if h, err := docs.History(t.Context(), settings(max), 10); err != nil || len(h) != 1 || h[0].By != bob {
		t.Errorf("another's: %+v %v", h, err)
	}
	if held, err := store.OfAccount(t.Context(), bob, []thing.ID{max}); err != nil || len(held) != 2 {
		t.Errorf("another's: %+v %v", held, err)
	}
	if err := store.EraseAccount(t.Context(), "", nil); err != nil {
		t.Error(err)
	}
}

// TestTenureEnded (issue 28.6): the next owner does not see where the former one lived, and keeps what they have set themselves when the end is told late.
func TestTenureEnded(t *testing.T) {
	docs := jdocs.New(jdocspg.New(pgtest.New(t)))
	p := jdocs.Personal{Docs: docs}
	rex := thing.MustParse("vic:00e20100")
	key := jdocs.Key{Thing: rex, Name: jdocs.RobotSettings}
	set := func(fields map[string]json.RawMessage) {
		t.Helper()
		if _, err := docs.Set(t.Context(), key, fields, "owner"); err != nil {
			t.Fatal(err)
		}
	}
	has := func(location, zone, volume string) {
		t.Helper()
		d, err := docs.Get(t.Context(), key)
		var got map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal([]byte(d.JSON), &got)
		}
		if err != nil || string(got["default_location"]) != location || string(got["time_zone"]) != zone || string(got["master_volume"]) != volume {
			t.Errorf("%v, %v; want %s, %s, %s", d.JSON, err, location, zone, volume)
		}
	}
	var first map[string]json.RawMessage
	if err := json.Unmarshal([]byte(jdocs.Default(jdocs.RobotSettings).JSON), &first); err != nil {
		t.Fatal(err)
	}
	none, utc := string(first["default_location"]), string(first["time_zone"])
	end := func(then time.Time) {
		t.Helper()
		if err := p.TenureEnded(t.Context(), rex, then); err != nil {
			t.Fatal(err)
		}
	}
	end(time.Now()) // no settings yet
	home := map[string]json.RawMessage{"default_location": json.RawMessage(`"Lovelace Street, London"`), "time_zone": json.RawMessage(`"Europe/London"`), "master_volume": json.RawMessage(`3`)}
	set(home)
	end(time.Now().Add(time.Second)) // in time
	has(none, utc, "3")

	set(home)
	over, err := docs.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	set(map[string]json.RawMessage{"default_location": json.RawMessage(`"Turing Road, Wilmslow"`), "master_volume": json.RawMessage(`5`)})
	for range 2 { // late
		end(over.At)
		has(`"Turing Road, Wilmslow"`, utc, "5")
	}
}
