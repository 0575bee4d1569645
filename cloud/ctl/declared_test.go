package ctl

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
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

// TestDeclaredForms: what a declared command may take, and how it draws the answer.
func TestDeclaredForms(t *testing.T) {
	before := client.Commands
	t.Cleanup(func() { client.Commands = before })
	body := []client.Parameter{{In: "body", Name: "kinds", Kind: "array"}, {In: "body", Name: "level", Kind: "number"}, {In: "body", Name: "from", Kind: "date-time"}, {In: "body", Name: "text", Kind: "string"},
		{In: "body", Name: "keep", Kind: "boolean"}, {In: "body", Name: "version", Kind: "string"}}
	echo := func(method, use string) client.Declared {
		return client.Declared{Use: use, Short: "Echo.", Method: method, Path: "/v1/echoes/{id}", Fields: body, Table: "={{.sent}}"}
	}
	list := client.Declared{Use: "echo list", Short: "List.", Method: "GET", Path: "/v1/echoes",
		Table: "at; note?=.none\n=\nechoes: LAST SEEN; STATE={{if .off}}off; since {{clock .off}}{{else}}on{{end}}; KINDS; BY=or .by `nobody`\n=that is all; really"}
	gone := client.Declared{Use: "echo drop ECHO", Short: "Drop.", Method: "DELETE", Path: "/v1/echoes/{id}", Asks: "Drop {{.ECHO}}?", Says: "{{.ECHO}} is gone, {{.left}} left"}
	client.Commands = append(before[:len(before):len(before)], list, gone, echo("PUT", "echo put ECHO [TEXT...] -kind:kinds! -level=0.5 -from -secret-file:text@"), echo("PUT", "echo on ECHO text:=on keep:=true"),
		echo("PATCH", "echo change ECHO -level -keep"), echo("PUT", "echo want ECHO [VERSION] -none?"), echo("PUT", "echo keep ECHO WORD=keep"),
		client.Declared{Use: "echo end ECHO -others!", Short: "End.", Method: "DELETE", Path: "/v1/echoes/{id}", Says: "all but {{.ECHO}}"},
		client.Declared{Use: "echo end ECHO PART -level", Short: "End.", Method: "PUT", Path: "/v1/echoes/{id}/{part}", Fields: body, Says: "{{.PART}} of {{.ECHO}}", Done: `{"ended":1}`})
	_, _, dir := newPeople(t, func(mux *http.ServeMux, _ accounttest.Accounts, _ *pgxpool.Pool) {
		answer := func(w http.ResponseWriter, v any) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		}
		mux.HandleFunc("GET /v1/echoes", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, json.RawMessage(`{"at":"2026-05-06T12:00:00Z","echoes":[{"last_seen":"0001-01-01T00:00:00Z","kinds":["a","b"]},{"off":"2026-05-06T12:00:00Z","by":"me","kinds":[]}]}`))
		})
		mux.HandleFunc("DELETE /v1/echoes/{id}", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]int{"left": 2}) })
		mux.HandleFunc("PUT /v1/echoes/{id}/{part}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		mux.HandleFunc("/v1/echoes/{id}", func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			answer(w, map[string]any{"sent": r.Method + " " + string(b)})
		})
	})
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, "from a file\n")
	for _, tt := range []struct {
		code int
		want string // of what is printed
		args []string
	}{
		{0, `^at +1 h ago\n\nLAST SEEN +STATE +KINDS +BY\n- +on +a, b +nobody\n- +off; since 2026-05-06 12:00:00 UTC +- +me\nthat is all; really\n$`, []string{"list"}},
		{0, `"last_seen": "0001`, []string{"list", "-o", "json"}},
		{0, `^1 is gone, 2 left\n$`, []string{"drop", "1", "-yes"}},
		{cli.ExitUsage, `Drop 1\? \[y/N\] .*not confirmed`, []string{"drop", "1"}},
		{cli.ExitUsage, `missing -kind KINDS`, []string{"put", "1"}},
		{0, `^PUT {"from":"2026-01-02T00:00:00Z","kinds":\["a","b"\],"level":0.5,"text":"two words"}\n$`, []string{"put", "1", "two", "words", "-kind", "a,b", "-from", "2026-01-02"}},
		{0, `"level":2,"text":"from a file"}`, []string{"put", "1", "-kind", "a", "-level", "2", "-secret-file", file}},
		{cli.ExitUsage, `no such file`, []string{"put", "1", "-kind", "a", "-secret-file", file + "x"}},
		{cli.ExitUsage, `want a date such as`, []string{"put", "1", "-kind", "a", "-from", "soon"}},
		{0, `^PUT {"keep":true,"text":"on"}\n$`, []string{"on", "1"}},
		{0, `^PATCH {"keep":false,"level":0}\n$`, []string{"change", "1", "-level", "0", "-keep=false"}},
		{cli.ExitUsage, `nothing to change.*-level, -keep`, []string{"change", "1"}},
		{0, `^PUT {"version":"2.0"}\n$`, []string{"want", "1", "2.0"}},
		{0, `^PUT {}\n$`, []string{"want", "1", "-none"}},
		{cli.ExitUsage, `VERSION or -none`, []string{"want", "1"}},
		{cli.ExitUsage, `VERSION or -none`, []string{"want", "1", "2.0", "-none"}},
		{0, `^PUT {"keep":true}\n$`, []string{"keep", "1", "yes"}},
		{cli.ExitUsage, `"maybe": want yes or no`, []string{"keep", "1", "maybe"}},
		{0, `^all but 1\n$`, []string{"end", "1", "-others"}},
		{0, `^{"ended":1}\n$`, []string{"end", "1", "2", "-level", "1", "-o", "json"}},
		{cli.ExitUsage, `PART or -others`, []string{"end", "1"}},
		{cli.ExitUsage, `PART or -others`, []string{"end", "1", "2", "-others"}},
	} {
		want(t, dir, "", tt.code, tt.want, append([]string{"echo"}, tt.args...)...)
	}
}

// TestDeclaredTexts: the texts of all declared commands are templates, and name fields that exist.
func TestDeclaredTexts(t *testing.T) {
	for _, c := range client.Commands {
		answerTable(c.Table)
		parsed(c.Says)
		parsed(c.Asks)
		d := declared{Declared: c, fixed: map[string]string{}}
		d.parse()
		known := func(field string) bool {
			return strings.Contains(c.Path, "{"+field+"}") || slices.ContainsFunc(c.Fields, func(f client.Parameter) bool { return f.Name == field })
		}
		for _, a := range d.args {
			if !known(a.field) {
				t.Errorf("%s: argument %s is no field", c.Use, a.name)
			}
		}
		for _, f := range d.flags {
			if !known(f.field) && !f.instead && len(c.Fields) > 0 {
				t.Errorf("%s: flag -%s is no field", c.Use, f.name)
			}
		}
		for field := range d.fixed {
			if !known(field) {
				t.Errorf("%s: %s is no field", c.Use, field)
			}
		}
	}
}
