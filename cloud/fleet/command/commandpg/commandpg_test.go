package commandpg

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex, bo = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")

// pace is longer than any test: a pause ends when the test says so (makeDue).
const pace = time.Hour

func service(t *testing.T) (*command.Service, *Store) {
	t.Helper()
	store := New(pgtest.New(t), WithPace(pace, pace))
	return command.New(store), store
}

func draft(id thing.ID, key string) command.Draft {
	return command.Draft{Thing: id, Kind: commandwire.Ping, TTL: time.Minute, By: "op", Key: key}
}

func send(t *testing.T, svc *command.Service, d command.Draft) command.Command {
	t.Helper()
	c, err := svc.Send(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// due returns the ids that are to be sent now.
func due(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	out, err := s.Due(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		ids = append(ids, o.ID)
	}
	return ids
}

// makeDue ends all pauses.
func makeDue(t *testing.T, s *Store) {
	t.Helper()
	exec(t, s, `UPDATE command_due SET next_send = now() WHERE next_send < 'infinity'`)
}

func exec(t *testing.T, s *Store, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func finish(t *testing.T, svc *command.Service, id thing.ID, name string, st commandwire.Status) command.Command {
	t.Helper()
	c, err := svc.Finish(t.Context(), id, commandwire.Result{ID: name, Status: st, Detail: "d", Finished: 5})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestOneAfterTheOther(t *testing.T) {
	svc, store := service(t)
	a, b, other := send(t, svc, draft(rex, "")), send(t, svc, draft(rex, "")), send(t, svc, draft(bo, ""))
	equal(t, "first round", due(t, store), []string{a.ID, other.ID})
	equal(t, "within the pause", due(t, store), []string(nil))
	makeDue(t, store)
	equal(t, "again until the result", due(t, store), []string{a.ID, other.ID})

	got := finish(t, svc, rex, a.ID, commandwire.Done)
	want := a
	want.State, want.Sends, want.Closed, want.Result = command.Done, 2, got.Closed, &command.Result{Status: commandwire.Done, Detail: "d", FinishedMS: 5}
	equal(t, "first result", asJSON(t, got), asJSON(t, want))
	equal(t, "repetition", asJSON(t, finish(t, svc, rex, a.ID, commandwire.Failed)), asJSON(t, want))
	equal(t, "the next at once", due(t, store), []string{b.ID})
	if _, err := svc.Finish(t.Context(), bo, commandwire.Result{ID: b.ID, Status: commandwire.Done}); errs.CodeOf(err) != "no_command" {
		t.Errorf("another thing's result: %v", err)
	}
	equal(t, "unknown to the robot", finish(t, svc, rex, b.ID, commandwire.Unknown).State, command.Failed)
	equal(t, "too late at the robot", finish(t, svc, bo, other.ID, commandwire.Expired).State, command.Expired)
	equal(t, "nothing left", due(t, store), []string(nil))
	var idle int
	if err := store.pool.QueryRow(t.Context(), `SELECT count(*) FROM command_due WHERE next_send = 'infinity'`).Scan(&idle); err != nil || idle != 2 {
		t.Errorf("%d idle things, %v; want 2", idle, err)
	}
	c := send(t, svc, draft(rex, ""))
	equal(t, "an idle thing wakes", due(t, store), []string{c.ID})
	list, err := svc.Commands(t.Context(), rex, true, 10)
	if err != nil || len(list) != 1 || list[0].ID != c.ID {
		t.Errorf("open: %v, %v", list, err)
	}
	if list, err = svc.Commands(t.Context(), rex, false, 2); err != nil || len(list) != 2 || list[1].ID != b.ID {
		t.Errorf("newest two: %v, %v", list, err)
	}
}

// TestStopGoesFirst: a stop is sent at once, whatever is under way or waits, and what waits comes after it.
func TestStopGoesFirst(t *testing.T) {
	svc, store := service(t)
	drive := command.Draft{Thing: rex, Kind: commandwire.RobotDo, Args: json.RawMessage(`{"line":"robot.go(0.1)"}`), By: "op"}
	if _, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: drive.Kind, Args: drive.Args, TTL: time.Minute, By: "op"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a drive that may wait for a minute: %v", err)
	}
	a, b := send(t, svc, draft(rex, "")), send(t, svc, drive)
	if ttl := b.Expires.Sub(b.Created); ttl < commandwire.MaxWait-time.Second || ttl > commandwire.MaxWait+time.Second {
		t.Errorf("a drive waits for %v at most, want %v", ttl, commandwire.MaxWait)
	}
	equal(t, "first round", due(t, store), []string{a.ID})
	stop := send(t, svc, command.Draft{Thing: rex, Kind: commandwire.RobotStop, By: "op"})
	equal(t, "the stop at once", due(t, store), []string{stop.ID})
	makeDue(t, store)
	equal(t, "again until the result", due(t, store), []string{stop.ID})
	finish(t, svc, rex, stop.ID, commandwire.Done)
	equal(t, "then the others in their order", due(t, store), []string{a.ID})
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPull(t *testing.T) {
	svc, store := service(t)
	var want []string
	for range 3 {
		want = append(want, send(t, svc, draft(rex, "")).ID)
	}
	for range 2 {
		open, err := svc.Pull(t.Context(), rex)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range open {
			if got = append(got, o.ID); o.Expire <= 50*time.Second || o.Expire > time.Minute {
				t.Errorf("expires in %v", o.Expire)
			}
		}
		equal(t, "pull", got, want)
	}
	equal(t, "what was pulled has its pause", due(t, store), []string(nil))
	makeDue(t, store)
	equal(t, "then it is sent", due(t, store), want[:1])
	if open, err := svc.Pull(t.Context(), bo); err != nil || open != nil {
		t.Errorf("a thing without commands: %v, %v", open, err)
	}
	c, err := svc.Command(t.Context(), rex, want[0])
	if err != nil || c.Sends != 3 || c.State != command.Sent {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestGivenRises: the robot goes by it, also when the database's clock goes back.
func TestGivenRises(t *testing.T) {
	svc, store := service(t)
	a := send(t, svc, draft(rex, ""))
	exec(t, store, `UPDATE command_outbox SET created = now() + interval '1 day' WHERE id = $1`, a.ID)
	send(t, svc, draft(rex, ""))
	open, err := svc.Pull(t.Context(), rex)
	if err != nil || len(open) != 2 || !open[1].Given.After(open[0].Given) || open[1].Wire().GivenUS <= open[0].Wire().GivenUS {
		t.Errorf("%+v, %v", open, err)
	}
}

func TestExpiry(t *testing.T) {
	svc, store := service(t)
	a, b := send(t, svc, draft(rex, "")), send(t, svc, draft(rex, ""))
	exec(t, store, `UPDATE command_outbox SET expires = now() - interval '10 s' WHERE id = $1`, a.ID)
	equal(t, "an expired one holds up nobody", due(t, store), []string{b.ID})
	if open, err := svc.Pull(t.Context(), rex); err != nil || len(open) != 1 || open[0].ID != b.ID {
		t.Errorf("pull: %v, %v", open, err)
	}
	if err := svc.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := svc.Command(t.Context(), rex, a.ID)
	if err != nil || got.State.Closed() {
		t.Errorf("within the grace: %+v, %v", got, err)
	}
	if n, err := store.Expire(t.Context(), 5*time.Second); n != 1 || err != nil {
		t.Errorf("expired %d, %v", n, err)
	}
	equal(t, "too late", finish(t, svc, rex, a.ID, commandwire.Done).State, command.Expired)
	if got, err = svc.Command(t.Context(), rex, a.ID); err != nil || got.Result != nil {
		t.Errorf("a result after the expiry was kept: %+v, %v", got, err)
	}
	if n, err := store.Forget(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	if n, err := store.Forget(t.Context(), -time.Hour); n != 1 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	if _, err := svc.Command(t.Context(), rex, a.ID); errs.KindOf(err) != errs.NotFound {
		t.Errorf("forgotten: %v", err)
	}
}

func TestKeys(t *testing.T) {
	svc, _ := service(t)
	a := send(t, svc, draft(rex, "k"))
	equal(t, "again", send(t, svc, draft(rex, "k")).ID, a.ID)
	elsewhere := send(t, svc, draft(bo, "k"))
	by := draft(rex, "k")
	by.By = "someone else"
	if theirs := send(t, svc, by); theirs.ID == a.ID || elsewhere.ID == a.ID {
		t.Error("a key is the caller's and the thing's own")
	}
	other := draft(rex, "k")
	other.Kind = commandwire.Sync
	if _, err := svc.Send(t.Context(), other); errs.CodeOf(err) != "key_used" {
		t.Errorf("another kind: %v", err)
	}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			c, err := svc.Send(t.Context(), draft(rex, "race"))
			if err != nil {
				t.Error(err)
			}
			ids[i] = c.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		equal(t, "at the same time", id, ids[0])
	}
}

func TestOpenCommandsAreBounded(t *testing.T) {
	svc, store := service(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	good, full := 0, 0
	for range commandwire.MaxOpen + 8 {
		wg.Go(func() {
			_, err := svc.Send(t.Context(), draft(rex, ""))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				good++
			} else if errs.CodeOf(err) == "too_many_open" {
				full++
			} else {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	equal(t, "accepted, refused", []int{good, full}, []int{commandwire.MaxOpen - commandwire.MaxUrgent, 8 + commandwire.MaxUrgent})
	// A refused command does not take the row of the thing, which senders pass by while it is locked: it is refused although another has the row.
	tx, err := store.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM command_due WHERE thing = $1 FOR UPDATE`, rex); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := svc.Send(ctx, draft(rex, "")); errs.CodeOf(err) != "too_many_open" {
		t.Errorf("a command beyond the bound, while the row is locked: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var last command.Command
	hold, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.RobotHold, Args: json.RawMessage(`{"reason":"a wheel is loose"}`), By: "op", TTL: commandwire.MaxWait})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.RobotRelease, By: "op", TTL: commandwire.MaxWait}); err != nil {
		t.Fatal(err)
	}
	for range 3 * commandwire.MaxUrgent { // a stop is never refused (issue 28.1)
		var err error
		if last, err = svc.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.RobotStop, By: "op", TTL: commandwire.MaxWait}); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := svc.Command(t.Context(), rex, hold.ID); err != nil || c.State.Closed() {
		t.Errorf("stops took the place of a hold: %+v, %v", c, err)
	}
	if _, err := svc.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.RobotRelease, By: "op", TTL: commandwire.MaxWait}); errs.CodeOf(err) != "too_many_open" {
		t.Errorf("a release took the place of another command: %v", err)
	}
	list, err := svc.Commands(t.Context(), rex, true, 100)
	if err != nil || len(list) != commandwire.MaxOpen || list[0].ID != last.ID {
		t.Errorf("%d open, the newest %+v, %v; want %d and %s", len(list), list[0], err, commandwire.MaxOpen, last.ID)
	}
}

func TestRefusals(t *testing.T) {
	svc, _ := service(t)
	for name, change := range map[string]func(*command.Draft){
		"kind": func(d *command.Draft) { d.Kind = "dance" },
		"args": func(d *command.Draft) { d.Args = json.RawMessage(`{"x":1}`) },
		"ttl":  func(d *command.Draft) { d.TTL = time.Millisecond },
		"long": func(d *command.Draft) { d.TTL = 8 * 24 * time.Hour },
		"key":  func(d *command.Draft) { d.Key = "a\x00" },
	} {
		d := draft(rex, "")
		change(&d)
		if _, err := svc.Send(t.Context(), d); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "x", "0b6f1c9e-8d0a-4a53-9d06-2d3e0c9f5a11", "'; DROP TABLE"} {
		if _, err := svc.Command(t.Context(), rex, name); errs.CodeOf(err) != "no_command" {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestManySendersTakeEachOnce: what one process took, no other takes within the pause.
func TestManySendersTakeEachOnce(t *testing.T) {
	store := New(pgtest.New(t))
	svc := command.New(store)
	const things = 50
	for i := range things {
		send(t, svc, draft(thing.ID(fmt.Sprintf("vic:%08x", i)), ""))
	}
	var mu sync.Mutex
	taken := map[string]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				out, err := store.Due(t.Context(), 7)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, o := range out {
					taken[o.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	equal(t, "taken", len(taken), things)
}

func TestFollowHears(t *testing.T) {
	svc, store := service(t)
	heard := make(chan struct{}, 8) // more than the test causes
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- store.Follow(ctx, slog.New(slog.DiscardHandler), time.Hour, func(context.Context) error { heard <- struct{}{}; return nil })
	}()
	<-heard // at once
	<-heard // connected
	c := send(t, svc, draft(rex, ""))
	<-heard
	finish(t, svc, rex, c.ID, commandwire.Done)
	<-heard
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func BenchmarkDue(b *testing.B) {
	store := New(pgtest.New(b))
	if _, err := store.pool.Exec(b.Context(), `INSERT INTO command_outbox (thing, kind, args, by_whom, expires)
		SELECT 'vic:' || lpad(to_hex(t), 8, '0'), 'ping', '{}', 'op', now() + interval '1 h' FROM generate_series(1, 10000) t, generate_series(1, 5)`); err != nil {
		b.Fatal(err)
	}
	if _, err := store.pool.Exec(b.Context(), `INSERT INTO command_due SELECT DISTINCT thing, now() + interval '1 h' FROM command_outbox`); err != nil {
		b.Fatal(err)
	}
	// Nothing is due among 10,000 waiting things: what every process asks each second.
	for b.Loop() {
		if out, err := store.Due(b.Context(), 64); err != nil || len(out) != 0 {
			b.Fatal(out, err)
		}
	}
}
