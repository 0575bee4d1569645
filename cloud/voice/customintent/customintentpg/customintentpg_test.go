package customintentpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kennel/cloud/voice/customintent"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/speech/intent"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestCustoms: an operator's intents for the fleet and for one robot, from storage to the meaning of a sentence and the webhooks.
func TestCustoms(t *testing.T) {
	pool, ctx := pgtest.New(t), t.Context()
	if _, err := pool.Exec(ctx, `INSERT INTO webhook_hook (id, url, kinds, filter, secret, note, by_whom, created) VALUES (gen_random_uuid(), 'https://x', '{intent.custom}', '', '', '', '', now())`); err != nil {
		t.Fatal(err)
	}
	svc := customintent.New(New(pool), slog.New(slog.NewTextHandler(io.Discard, nil)))
	rex, ada := thing.MustParse("vic:00e20100"), thing.MustParse("vic:00e20101")
	add := func(w customintent.Wanted) (customintent.Custom, error) { return svc.Add(ctx, w, "op") }
	fleet, err := add(customintent.Wanted{Custom: intent.Custom{Name: "feed_cat", Phrases: []string{"feed (the|my) cat [at {time}]"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := add(customintent.Wanted{Thing: rex, Custom: intent.Custom{Name: "tell", Phrases: []string{"tell the house {text}"}, Reaction: "imperative_praise", Languages: []string{"en-US"}}}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		w    customintent.Wanted
		kind errs.Kind
		want string
	}{
		{fleet.Wanted, errs.Conflict, "custom intent feed_cat "},
		{customintent.Wanted{Custom: intent.Custom{Name: "x", Phrases: []string{"turn left"}}}, errs.Conflict, "already means movement_turnleft"},
	} {
		if _, err := add(tc.w); errs.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %s", tc.w, err, tc.want)
		}
	}
	match := func(id thing.ID, language, text, custom, user string) {
		t.Helper()
		if got := svc.Match(ctx, intent.Listener{Thing: id, Language: language}, text); got.Custom != custom || got.UserIntent != user {
			t.Errorf("%s %s %q: %+v, want %q %q", id, language, text, got, custom, user)
		}
	}
	match(rex, "en-US", "please feed my cat at half past seven", "feed_cat", "imperative_affirmative")
	match(ada, "en-GB", "feed the cat", "feed_cat", "imperative_affirmative")
	match(rex, "en-US", "tell the house good morning", "tell", "imperative_praise")
	match(ada, "en-US", "tell the house good morning", "", "")
	match(rex, "en-GB", "tell the house good morning", "", "")
	match("", "en-US", "turn left", "", "movement_turnleft")
	match(rex, "tlh", "turn left", "", "")
	rows, err := pool.Query(ctx, `SELECT thing || ' ' || data::text FROM webhook_event WHERE kind = 'intent.custom' ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var heard []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		heard = append(heard, strings.ReplaceAll(line, " ", ""))
	}
	want := `vic:00e20100{"intent":"feed_cat","params":{"time":"07:30"}}|vic:00e20101{"intent":"feed_cat","params":{}}|vic:00e20100{"intent":"tell","params":{}}` // free words stay here (VEC-NLP-07)
	if got := strings.Join(heard, "|"); got != want {
		t.Errorf("webhooks hear %s; want %s", got, want)
	}
	if all, err := svc.List(ctx, ada); err != nil || len(all) != 1 || all[0].Name != "feed_cat" || all[0].By != "op" || time.Since(all[0].Created) > time.Hour {
		t.Errorf("list of %s: %+v, %v", ada, all, err)
	}
	if err := svc.Drop(ctx, fleet.ID); err != nil {
		t.Error(err)
	}
	match(rex, "en-US", "feed the cat", "", "")
	match(rex, "en-US", "tell the house good morning", "tell", "imperative_praise")
	if err := svc.Drop(ctx, fleet.ID); errs.KindOf(err) != errs.NotFound {
		t.Errorf("dropped twice: %v", err)
	}
}

// broken is a store that cannot be read.
type broken struct{ customintent.Store }

func (broken) List(context.Context) ([]customintent.Custom, error) { return nil, errors.New("down") }

// TestStorageDown: built-in intents work without storage.
func TestStorageDown(t *testing.T) {
	svc := customintent.New(broken{}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if got := svc.Match(t.Context(), intent.Listener{Thing: "vic:00e20100"}, "turn left"); got.UserIntent != "movement_turnleft" {
		t.Errorf("%+v", got)
	}
}

// TestHeard: a recogniser listens for the custom intents of a robot with that one alone, and not for more than it can in time.
func TestHeard(t *testing.T) {
	svc, ctx := customintent.New(New(pgtest.New(t)), slog.New(slog.DiscardHandler)), t.Context()
	rex, ada := thing.MustParse("vic:00e20100"), thing.MustParse("vic:00e20101")
	add := func(w customintent.Wanted) (customintent.Custom, error) { return svc.Add(ctx, w, "op") }
	if _, err := add(customintent.Wanted{Thing: rex, Custom: intent.Custom{Name: "walk_dog", Phrases: []string{"walk the dog"}}}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[thing.ID]bool{rex: true, ada: false, "": false} { // a robot listens for its own, and for no other's
		g := svc.Grammar(ctx, intent.Listener{Thing: id})
		if strings.Contains(g, "walk the dog") != want {
			t.Errorf("%q listens for %q", id, g)
		}
	}
	long := strings.Repeat("a", 40)
	for i := 0; ; i++ {
		w := customintent.Wanted{Custom: intent.Custom{Name: fmt.Sprintf("long_%d", i)}}
		for j := range 20 {
			w.Phrases = append(w.Phrases, fmt.Sprintf("%s x%s%s", long, strings.Repeat("b", i+1), strings.Repeat("c", j+1)))
		}
		_, err := add(w)
		if err == nil && i < 30 {
			continue
		}
		if errs.KindOf(err) != errs.Exhausted || !strings.Contains(err.Error(), "shorter phrases") || i < 5 {
			t.Errorf("after %d of the fleet: %v", i, err)
		}
		break
	}
	if _, err := add(customintent.Wanted{Thing: ada, Custom: intent.Custom{Name: "fetch", Phrases: []string{"fetch the paper"}}}); err != nil {
		t.Errorf("a robot's own, with those of the fleet at their bound: %v", err)
	}
}
