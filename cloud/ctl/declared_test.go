package ctl

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
)

// TestDeclared: an operation that declares a command has it, in a group that exists or a new one, with its parameters, completion and answer.
func TestDeclared(t *testing.T) {
	before := client.Commands
	t.Cleanup(func() { client.Commands = before })
	client.Commands = append(before[:len(before):len(before)],
		client.Declared{Use: "echo say", Method: "PUT", Path: "/v1/things/{thing}/echo/{id}", Short: "Say something.", Fields: []client.Parameter{{In: "body", Name: "text", About: "what"}, {In: "body", Name: "loud"}}},
		client.Declared{Use: "robots echoes", Method: "GET", Path: "/v1/echoes", Short: "List echoes.", Fields: []client.Parameter{{In: "query", Name: "limit"}}},
		client.Declared{Use: "echo drop", Method: "DELETE", Path: "/v1/echoes/{id}", Short: "Drop an echo."})
	_, _, dir := newPeople(t, func(mux *http.ServeMux, _ accounttest.Accounts, _ *pgxpool.Pool) {
		mux.HandleFunc("PUT /v1/things/{thing}/echo/{id}", func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil || r.Header.Get("Content-Type") != "application/json" {
				t.Error(err, r.Header)
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"thing": r.PathValue("thing"), "id": r.PathValue("id"), "sent": json.RawMessage(b), "text": "first\nsecond", "long": strings.Repeat("ä", 200)})
		})
		mux.HandleFunc("GET /v1/echoes", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `[{"word":"one two","n":`+r.FormValue("limit")+`},{"n":4,"word":"three"}]`)
		})
		mux.HandleFunc("DELETE /v1/echoes/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	})
	want(t, dir, "", 0, `(?m)^id +a/b$(.|\n)*^sent +{"loud":true,"text":"hello you"}$(.|\n)*^thing +vic:00e20100$`, "echo", "say", "vic:00e20100", "a/b", "text=hello you", "loud=true")
	want(t, dir, "", 0, `(?m)^long +ä{120} … \(-o json shows all\)$`, "echo", "say", "vic:00e20100", "a/b", "text=x")
	want(t, dir, "", 0, `(?m)^text +first … \(-o json shows all\)$`, "echo", "say", "vic:00e20100", "a/b", "text=x")
	want(t, dir, "", 0, `(?m)^WORD +N$\n^one two +7$\n^three +4$`, "robots", "echoes", "limit=7")
	want(t, dir, "", 0, `"word": "three"`, "robots", "echoes", "limit=7", "-o", "json")
	want(t, dir, "", 0, `^$`, "echo", "drop", "1")
	want(t, dir, "", 0, `"done": true`, "echo", "drop", "1", "-o", "json")
	want(t, dir, "", cli.ExitUsage, "thing id", "echo", "say", "rex", "1")
	want(t, dir, "", cli.ExitUsage, "KEY=VALUE", "echo", "say", "vic:00e20100", "1", "text")
	want(t, dir, "", cli.ExitUsage, "missing ID", "echo", "drop")
	for _, problem := range cli.Lint(Command()) {
		t.Error(problem)
	}
}
