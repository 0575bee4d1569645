package jdocspg_test

import (
	"encoding/json"
	"strings"
	"testing"

	"kennel/certs/thing"
	"kennel/infra/pg/pgtest"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

// VEC-JDS-11: robots' documents forget whom they spoke of, and stay the robots' own.
func TestTraces(t *testing.T) {
	pool := pgtest.New(t)
	store := jdocspg.New(pool)
	docs := jdocs.New(store)
	const ada, bob = "6f1c1bb2-6f1f-4a51-9a30-0d6b0a1f4a01", "6f1c1bb2-6f1f-4a51-9a30-0d6b0a1f4a02"
	rex, max := thing.MustParse("vic:00e20100"), thing.MustParse("vic:00e20101")
	live := func(id thing.ID, by, place string) {
		t.Helper()
		text, err := json.Marshal(place)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := docs.Set(t.Context(), jdocs.Key{Thing: id, Name: jdocs.RobotSettings}, map[string]json.RawMessage{"default_location": text}, by); err != nil {
			t.Fatal(err)
		}
	}
	live(rex, ada, "Lovelace Street, London")
	live(rex, ada, "Paris, France")
	live(max, bob, "Turing Road, Wilmslow")
	held, err := store.OfRobots(t.Context(), []thing.ID{rex})
	if err != nil || len(held) != 1 || held[0].Thing != rex || !strings.Contains(held[0].JSON, "Paris") {
		t.Fatalf("held %+v %v", held, err)
	}
	for range 2 { // it may be repeated
		if err := store.EraseTraces(t.Context(), ada, []thing.ID{rex}); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"jdocs_doc", "jdocs_history"} {
		var n int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` x WHERE x::text LIKE '%`+ada+`%' OR x::text LIKE '%Lovelace%'`).Scan(&n); err != nil || n > 0 {
			t.Errorf("%s: %d rows of her left, %v", table, n, err)
		}
	}
	if d, err := docs.Get(t.Context(), jdocs.Key{Thing: rex, Name: jdocs.RobotSettings}); err != nil || !strings.Contains(d.JSON, "Paris") {
		t.Errorf("the robot's own document: %+v %v", d, err)
	}
	if h, err := docs.History(t.Context(), jdocs.Key{Thing: max, Name: jdocs.RobotSettings}, 10); err != nil || len(h) != 1 || h[0].By != bob {
		t.Errorf("another's: %+v %v", h, err)
	}
	if err := store.EraseTraces(t.Context(), "", nil); err != nil {
		t.Error(err)
	}
}
