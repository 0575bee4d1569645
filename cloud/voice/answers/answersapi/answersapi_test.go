package answersapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/voice/answers"
	"kennel/cloud/voice/answers/answerspg"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/speech/knowledge"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const rex = thing.ID("vic:00e20100")

// TestTalk: only its owner reads, changes and deletes what is kept of a robot's talks; what is left out of a change stays, and each change is audited.
func TestTalk(t *testing.T) {
	svc := &answers.Service{Model: "a model", Store: answerspg.New(pgtest.New(t)), Now: time.Now,
		Owner: func(context.Context, thing.ID) (string, error) { return "ada", nil }}
	var audits []string
	mux := http.NewServeMux()
	Operations(svc, func(_ context.Context, action, object, detail string) error {
		audits = append(audits, action+" "+object+" "+detail)
		return nil
	}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		return time.Now().Add(-time.Hour), account == "ada" && id == rex, nil
	}})
	door := access.HTTP.Guard(mux, slog.New(slog.DiscardHandler))
	ask := func(who, method, path, body string) (int, string) {
		role := auth.Owner
		if who == "admin" {
			role = auth.Admin
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: role, Account: who, Name: who}), method,
			"/v1/my/robots/"+string(rex)+path, strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	for _, s := range []struct {
		who, method, path, body string
		code                    int
		has                     string
	}{
		{"bob", "GET", "/talk", "", 404, ""},
		{"admin", "GET", "/talk", "", 403, ""},
		{"bob", "PATCH", "/talk", `{"asks":true}`, 404, ""},
		{"bob", "DELETE", "/talk/memory", "", 404, ""},
		{"ada", "GET", "/talk", "", 200, `"asks":false`},
		{"ada", "PATCH", "/talk", `{"asks":true,"remember":true}`, 200, `"model":"a model","asks":true,"persona":"","remember":true`},
		{"ada", "PATCH", "/talk", `{"persona":" You are a pirate. "}`, 200, `"asks":true,"persona":"You are a pirate.","remember":true`},
		{"ada", "PATCH", "/talk", `{"persona":"` + strings.Repeat("x", answers.MaxPersona+1) + `"}`, 400, `invalid`},
		{"ada", "PATCH", "/talk", `{"mood":"bad"}`, 400, "mood"},
		{"talk", "", "", "", 0, ""}, // the robot talks
		{"ada", "GET", "/talk", "", 200, `"asked":"why","said":"because"`},
		{"ada", "DELETE", "/talk/memory", "", 204, ""},
		{"ada", "GET", "/talk", "", 200, `"turns":[]`},
	} {
		if s.who == "talk" {
			if err := svc.Remember(t.Context(), rex, knowledge.Turn{At: time.Now(), Asked: "why", Said: "because"}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if code, body := ask(s.who, s.method, s.path, s.body); code != s.code || !strings.Contains(body, s.has) {
			t.Errorf("%s %s %s %s: %d %s; want %d with %s", s.who, s.method, s.path, s.body, code, body, s.code, s.has)
		}
	}
	if got, want := strings.Join(audits, "|"), "talk.choose vic:00e20100 asks true, remembers true|talk.choose vic:00e20100 asks true, remembers true|"+
		"talk.choose vic:00e20100 asks true, remembers true|talk.forget vic:00e20100 "; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
}
