package intentsapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/command/commandpg"
	"kennel/cloud/voice/intents"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/speech/intent"
)

const rex = thing.ID("vic:00e20100")

// TestSay: a sentence becomes an intent and a command, for owners and for operators; what was said is in neither the audit log nor the command.
func TestSay(t *testing.T) {
	outbox := command.New(commandpg.New(pgtest.New(t)))
	svc := intents.New(func(_ context.Context, _ thing.ID, text string) (intent.Match, error) {
		switch text {
		case "my secret plan is to go forward":
			return intent.Match{UserIntent: "movement_forward", Cloud: "intent_imperative_forward", Confidence: 0.9}, nil
		case "set a timer":
			return intent.Match{UserIntent: "set_timer", Cloud: "intent_clock_settimer_extend", Params: map[string]string{"timer_duration": "300"}}, nil
		case "stop":
			return intent.Match{UserIntent: "global_stop", Cloud: "intent_global_stop_extend"}, nil
		case "broken":
			return intent.Match{}, errors.New("away")
		}
		return intent.Match{}, nil
	}, outbox)
	var audit []string
	var auditErr error
	mux := http.NewServeMux()
	since := time.Now().Add(-time.Hour)
	Operations(svc, Config{
		Known: func(_ context.Context, id thing.ID) error {
			if id != rex {
				return errs.Coded(errs.NotFound, "no_thing", "thing %s is not known", id)
			}
			return nil
		},
		Audit: func(_ context.Context, action, object, detail string) error {
			audit = append(audit, strings.Join([]string{action, object, detail}, " "))
			return auditErr
		}}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return since, account == "ann" && id == rex, nil
	}})
	do := func(c auth.Caller, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
		r = r.WithContext(auth.WithCaller(r.Context(), c))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	ann, bob, op := auth.Caller{Role: auth.Owner, Account: "ann", Name: "ann@example.org"}, auth.Caller{Role: auth.Owner, Account: "bob"}, auth.Caller{Role: auth.Admin, Name: "op@example.org"}
	const my, all = "/v1/my/robots/vic:00e20100/intents", "/v1/things/vic:00e20100/intents"
	for _, tt := range []struct {
		who        auth.Caller
		path, body string
		code       int
		want       string
	}{
		{auth.Caller{}, my, `{"text":"stop"}`, 401, "sign in"},
		{bob, my, `{"text":"stop"}`, 404, "no_thing"},
		{bob, all, `{"text":"stop"}`, 404, "no_thing"},
		{op, my, `{"text":"stop"}`, 403, "denied"},
		{auth.Caller{Role: auth.Viewer}, all, `{"text":"stop"}`, 403, "denied"},
		{op, "/v1/things/vic:00e20101/intents", `{"text":"stop"}`, 404, "no_thing"},
		{ann, my, `{}`, 400, "want a text or an intent"},
		{ann, my, `{"text":"x","intent":"global_stop"}`, 400, "want a text or an intent"},
		{ann, my, `{"text":"` + strings.Repeat("x", 501) + `"}`, 400, "at most 500"},
		{ann, my, `{"text":"mumble"}`, 400, "not_understood"},
		{ann, my, `{"text":"broken"}`, 500, "internal"},
		{ann, my, `{"intent":"fly"}`, 400, "no_intent"},
		{ann, my, `{"words":"x"}`, 400, "words"},
		{ann, my, `{"text":" my secret plan is to go forward "}`, 200, `"intent":"movement_forward"`},
		{op, all, `{"text":"set a timer"}`, 200, `"timer_duration":"300"`},
		{ann, all, `{"intent":"kennel_lookup"}`, 200, `"by":"owner"`},
		{ann, my, `{"intent":"imperative_volumelevel","params":{"volume_level":"3"}}`, 200, `"intent_imperative_volumelevel_extend"`},
		{ann, my, `{"text":"stop"}`, 200, `"intent_global_stop_extend"`},
	} {
		if code, body := do(tt.who, tt.path, tt.body); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %.80s: %d %s, want %d %q", tt.path, tt.body, code, body, tt.code, tt.want)
		}
	}
	if got, want := audit, []string{"intent.send vic:00e20100 movement_forward", "intent.send vic:00e20100 set_timer", "intent.send vic:00e20100 kennel_lookup",
		"intent.send vic:00e20100 imperative_volumelevel", "intent.send vic:00e20100 global_stop"}; !slices.Equal(got, want) {
		t.Errorf("audit %q, want %q", got, want)
	}
	given, err := outbox.Commands(t.Context(), rex, true, 20)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range given {
		kinds = append(kinds, c.Kind+" "+c.By)
		if b, err := json.Marshal(c); err != nil || strings.Contains(string(b), "secret") {
			t.Errorf("the command keeps the words: %s, %v", b, err)
		}
		if ttl := c.Expires.Sub(c.Created); c.Kind == commandwire.Intent && ttl.Round(time.Second) != intents.TTL {
			t.Errorf("it waits for %v", ttl)
		}
	}
	if want := []string{"intent owner", "robot_stop owner", "intent owner", "intent owner", "intent op@example.org", "intent owner"}; !slices.Equal(kinds, want) {
		t.Errorf("commands %q, want %q", kinds, want) // a stop goes first
	}
	recent, err := svc.Recent(t.Context(), rex, since, 2)
	if err != nil || len(recent) != 2 || intents.IntentOf(recent[0]) != "global_stop" || intents.IntentOf(recent[1]) != "imperative_volumelevel" {
		t.Errorf("recent %+v, %v", recent, err)
	}
	if recent, err := svc.Recent(t.Context(), rex, time.Now().Add(time.Hour), 5); err != nil || len(recent) != 0 {
		t.Errorf("of an owner before: %+v, %v", recent, err)
	}
	if s := svc.Stats(); s != (intents.Stats{Pressed: 3, Matched: 3, Unmatched: 1}) {
		t.Errorf("%+v", s)
	}
	auditErr = errors.New("the database is away")
	if code, _ := do(ann, my, `{"text":"set a timer"}`); code != 500 {
		t.Errorf("without audit: %d", code)
	}
	if now, err := outbox.Commands(t.Context(), rex, true, 20); err != nil || len(now) != len(given) {
		t.Errorf("%d commands without audit, %v", len(now), err)
	}
}
