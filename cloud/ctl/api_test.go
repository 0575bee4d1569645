package ctl

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account/accounttest"
	"kennel/cloud/identity/account/audit"
	"kennel/cloud/openapi"
	"kennel/infra/cli"
)

// TestAPI: an operation is asked by its path, whatever it is.
func TestAPI(t *testing.T) {
	svc, _, dir := newPeople(t, func(mux *http.ServeMux, _ accounttest.Accounts, _ *pgxpool.Pool) {
		if err := openapi.Mount(mux); err != nil {
			t.Fatal(err)
		}
	})
	for range 5 {
		if err := svc.Audit.Append(t.Context(), audit.Entry{Actor: "vic:00e20100", Role: "thing", Action: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	want(t, dir, "", 0, `(?m)^GET +/v1/audit +Staff +\S`, "api", "list", "audit")
	want(t, dir, "", 0, `^\[\]\n$`, "api", "list", "no such word", "-o", "json")
	for args, n := range map[string]int{"limit=2": 2, "limit=2 -all": 6, "before=3": 2} {
		out := want(t, dir, "", 0, "", append([]string{"api", "call", "get", "/v1/audit"}, strings.Fields(args)...)...)
		var lines []audit.Entry
		if err := json.Unmarshal([]byte(out), &lines); err != nil || len(lines) != n {
			t.Errorf("%s: %d lines, %v; want %d: %s", args, len(lines), err, n, out)
		}
	}
	want(t, dir, "", 0, `"password": "`, "api", "call", "POST", "/v1/operators", "email=grace@example.org", "role=viewer")
	want(t, dir, `{"email":"ada@example.org","role":"viewer"}`, 0, `"password": "`, "api", "call", "POST", "/v1/operators", "-data", "-")
	want(t, dir, "", 0, "ada@example.org", "operators", "list")

	want(t, dir, "", cli.ExitNotFound, "no operation GET /v1/nothing", "api", "call", "GET", "/v1/nothing")
	want(t, dir, "", cli.ExitNotFound, "no operation PUT /v1/audit", "api", "call", "PUT", "/v1/audit")
	want(t, dir, "", cli.ExitUsage, "KEY=VALUE", "api", "call", "GET", "/v1/audit", "limit")
	want(t, dir, "", cli.ExitUsage, "-data", "api", "call", "POST", "/v1/operators", "email=x", "-data", "-")
	want(t, dir, "", cli.ExitUsage, "application/json", "api", "call", "POST", "/v1/operators", "-data", "-", "-type", "text/csv")
	want(t, dir, "", cli.ExitUsage, "limit", "api", "call", "GET", "/v1/audit", "limit=many")
	want(t, dir, "", cli.ExitUsage, "no list", "api", "call", "GET", "/v1/me", "-all")
	want(t, dir, "", 0, `(?m)^/v1/audit\t`, "__complete", "api", "call", "get", "/v1/au")
}
