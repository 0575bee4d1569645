package commandpg_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
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
	carol := auth.WithCaller(t.Context(), auth.Caller{Role: auth.Owner, Account: "carol-id"})
	if _, err := svc.Send(carol, command.Draft{Thing: rex, Kind: "ping", By: command.ByOwner, TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if held, err := store.Export(t.Context(), "carol-id"); err != nil || len(held.([]commandpg.Held)) != 1 {
		t.Errorf("held: %+v %v", held, err)
	}
	if err := store.Erase(t.Context(), "carol-id"); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := pool.QueryRow(t.Context(), `SELECT array_agg(by_whom) FROM command_outbox`).Scan(&left); err != nil || len(left) != 1 || left[0] != "bob-id" {
		t.Errorf("left: %q %v", left, err)
	}
}

// TestTenureEnded (issue 28.2): the open commands of an owner end with the ownership, also when that is told late, and have no place among the next owner's. Commands of operators and of the next owner stay,
// and are sent at once.
func TestTenureEnded(t *testing.T) {
	pool := pgtest.New(t)
	svc := command.New(commandpg.New(pool))
	rex := thing.MustParse("vic:00e20100")
	send := func(account string) command.Command {
		t.Helper()
		ctx, by := t.Context(), "operator-id"
		if account != "" {
			ctx, by = auth.WithCaller(ctx, auth.Caller{Role: auth.Owner, Account: account}), command.ByOwner
		}
		c, err := svc.Send(ctx, command.Draft{Thing: rex, Kind: "set_lights", Args: json.RawMessage(`{"lights":[{},{},{},{}]}`), By: by, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var ada []command.Command
	for range commandwire.MaxOpen - commandwire.MaxUrgent - 1 {
		ada = append(ada, send("ada-id"))
	}
	staff := send("")
	ended := time.Now()
	if err := svc.TenureEnded(t.Context(), rex, "bob-id", ended); err != nil { // another's
		t.Fatal(err)
	}
	if c, err := svc.Command(t.Context(), rex, ada[0].ID); err != nil || c.State.Closed() {
		t.Fatalf("%+v, %v", c, err)
	}
	for range 2 {
		if err := svc.TenureEnded(t.Context(), rex, "ada-id", ended); err != nil {
			t.Fatal(err)
		}
	}
	next := send("bob-id") // there is a place
	if err := svc.TenureEnded(t.Context(), rex, "ada-id", ended); err != nil {
		t.Fatal(err)
	}
	again := send("ada-id") // she got it back
	if err := svc.TenureEnded(t.Context(), rex, "ada-id", ended); err != nil {
		t.Fatal(err)
	}
	pulled, err := svc.Pull(t.Context(), rex)
	var got []string
	for _, o := range pulled {
		got = append(got, o.ID)
	}
	if want := []string{staff.ID, next.ID, again.ID}; err != nil || !slices.Equal(got, want) {
		t.Errorf("pulled %q, %v; want %q", got, err, want)
	}
	if c, err := svc.Command(t.Context(), rex, ada[0].ID); err != nil || c.State != command.Expired {
		t.Errorf("%+v, %v", c, err)
	}
}
