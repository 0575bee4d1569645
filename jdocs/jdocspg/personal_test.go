package jdocspg

import (
	"encoding/json"
	"strings"
	"testing"

	"kennel/infra/pg/pgtest"
	"kennel/jdocs"
)

// TestPersonal: VEC-JDS-11. A person's documents can be listed and erased; nobody else's go with them.
func TestPersonal(t *testing.T) {
	pool := pgtest.New(t)
	s := New(pool)
	put := func(k jdocs.Key, version uint64, text string) {
		t.Helper()
		if _, err := s.Put(t.Context(), k, jdocs.Doc{Version: version, FmtVersion: 1, JSON: text}, "owner"); err != nil {
			t.Fatal(err)
		}
	}
	ann, bob := jdocs.Key{Account: "ann", Name: jdocs.AccountSettings}, jdocs.Key{Account: "bob", Name: jdocs.AccountSettings}
	robot := jdocs.Key{Thing: "vic:00e20100", Name: jdocs.RobotSettings}
	put(ann, 0, `{"app_locale":"de-DE"}`)
	put(ann, 1, `{"app_locale":"en-GB"}`)
	put(jdocs.Key{Account: "ann", Name: jdocs.UserEntitlements}, 0, `{}`)
	if _, err := s.Delete(t.Context(), ann, "owner"); err != nil {
		t.Fatal(err)
	}
	put(bob, 0, `{"app_locale":"fr-FR"}`)
	put(robot, 0, `{}`)
	export := func(account string) string {
		t.Helper()
		v, err := s.Export(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	text := export("ann")
	for _, want := range []string{"de-DE", "en-GB", "vic.UserEntitlements", `"deleted":true`} {
		if !strings.Contains(text, want) {
			t.Errorf("export %s lacks %s", text, want)
		}
	}
	if strings.Contains(text, "fr-FR") || strings.Contains(export(""), "vic.") {
		t.Errorf("export of somebody else's: %s, %s", text, export(""))
	}
	for range 2 {
		if err := s.Erase(t.Context(), "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Erase(t.Context(), ""); err == nil {
		t.Error("nobody's documents were erased")
	}
	var left string
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(d::text, ' ') FROM (SELECT account, thing FROM jdocs_doc UNION ALL SELECT account, thing FROM jdocs_history) d`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(left, "ann") || strings.Count(left, "bob") != 2 || strings.Count(left, "vic:00e20100") != 2 {
		t.Errorf("left: %s; want bob's and the robot's alone", left)
	}
}
