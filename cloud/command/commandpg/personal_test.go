package commandpg_test

import (
	"testing"
	"time"

	"kennel/cloud/command"
	"kennel/cloud/command/commandpg"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// A person's commands are exported and erased with them; the commands of others stay.
func TestPersonal(t *testing.T) {
	pool := pgtest.New(t)
	store := commandpg.New(pool)
	svc := command.New(store)
	rex := thing.MustParse("vic:00e20100")
	for _, by := range []string{"ada-id", "ada-id", "bob-id"} {
		if _, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: "ping", By: by, TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	held, err := store.Export(t.Context(), "ada-id")
	if all, ok := held.([]commandpg.Held); err != nil || !ok || len(all) != 2 || all[0].Thing != rex {
		t.Errorf("held: %+v %v", held, err)
	}
	for range 2 {
		if err := store.Erase(t.Context(), "ada-id"); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Erase(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := pool.QueryRow(t.Context(), `SELECT array_agg(by_whom) FROM command_outbox`).Scan(&left); err != nil || len(left) != 1 || left[0] != "bob-id" {
		t.Errorf("left: %q %v", left, err)
	}
}
