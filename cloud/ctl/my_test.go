package ctl

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/owner/ownerapi"
	"kennel/cloud/identity/owner/ownerpg"
	"kennel/infra/auth"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs/jdocspg"
)

type free struct{}

func (free) Allow(string) time.Duration { return 0 }

// TestMy: two people at a real cloud, from the code that the robot shows to handing it on.
func TestMy(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	store := ownerpg.New(pgtest.New(t))
	svc, err := owner.New(owner.Config{Store: store, Codes: store, Transfers: store, Remains: store, Secret: make([]byte, 32), ByThing: free{}, ByAddr: free{}, Log: log,
		Confirm: func(_ context.Context, _ string, by owner.Proof) error {
			if by.Password != "right" {
				return errs.Coded(errs.Unauthenticated, "wrong_password", "wrong")
			}
			return nil
		},
		Docs: jdocspg.New(pgtest.New(t)), Record: func(context.Context, owner.Step) {}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	ownerapi.Operations(svc, ownerapi.Config{Known: func(context.Context, thing.ID) error { return nil },
		Audit: func(context.Context, string, string, string) error { return nil }}).Mount(mux, op.Doors{Log: log})
	// as returns the command line of one person.
	as := func(who string) func(args ...string) (int, string) {
		c := &cloud{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "Bearer "+token {
				r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: auth.Owner, Account: who + "-id", Name: who + "@example.org"}))
			}
			mux.ServeHTTP(w, r)
		}))}
		t.Cleanup(c.Close)
		c.ca = filepath.Join(t.TempDir(), "root.pem")
		write(t, c.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw})))
		dir := c.onebox(t)
		return func(args ...string) (int, string) {
			code, out, errOut := run(t.Context(), nil, "right\n", append([]string{"-onebox", dir, "my"}, args...)...)
			return code, out + errOut
		}
	}
	ann, bob := as("ann"), as("bob")
	guess := filepath.Join(t.TempDir(), "guess")
	write(t, guess, "guess\n")
	code, _, err := svc.OfferCode(t.Context(), "vic:00e20100", "k")
	if err != nil {
		t.Fatal(err)
	}
	offer := func() string {
		t.Helper()
		all, err := svc.Offers(t.Context(), "ann-id", "ann@example.org")
		if err != nil || len(all) != 1 {
			t.Fatalf("offers %+v, %v; want one", all, err)
		}
		return all[0].ID
	}
	for _, c := range []struct {
		who  func(...string) (int, string)
		line string
		exit int
		want string
	}{
		{ann, "list", 0, "THING  NAME  YOURS SINCE  BY"},
		{ann, "list -o json", 0, "[]"},
		{ann, "claim 0000-0000", cli.ExitNotFound, "ask the robot for a new one"},
		{ann, "claim 0000", cli.ExitUsage, "want 8 letters and digits"},
		{ann, "claim CODE -robot rex", cli.ExitUsage, "species:serial"},
		{ann, "claim CODE -robot vic:00e20101", cli.ExitNotFound, "ask the robot for a new one"},
		{ann, "claim CODE -robot vic:00e20100", 0, "vic:00e20100"},
		{ann, "rename vic:00e20100 Rex", 0, "Rex"},
		{ann, "list", 0, "vic:00e20100  Rex"},
		{bob, "release vic:00e20100", cli.ExitNotFound, "vic:00e20100"},
		{ann, "transfer vic:00e20100 bob@example.org -password-file GUESS", cli.ExitDenied, "wrong"},
		{ann, "transfer vic:00e20100 bob@example.org", 0, "expires"},
		{bob, "transfers", 0, "to you"},
		{bob, "decline OFFER", 0, ""},
		{ann, "transfers -o json", 0, "[]"},
		{ann, "transfer vic:00e20100 bob-id -o json", 0, `"mine":true`},
		{ann, "transfers", 0, "by you"},
		{ann, "accept OFFER", cli.ExitNotFound, "no such transfer"},
		{bob, "accept OFFER", 0, "transfer"},
		{bob, "list -o json", 0, `"how":"transfer"`},
		{ann, "list -o json", 0, "[]"},
		{bob, "release vic:00e20100", 0, ""},
		{bob, "list -o json", 0, "[]"},
	} {
		line := strings.ReplaceAll(strings.ReplaceAll(c.line, "CODE", code), "GUESS", guess)
		if strings.Contains(line, "OFFER") {
			line = strings.ReplaceAll(line, "OFFER", offer())
		}
		exit, out := c.who(strings.Fields(line)...)
		if exit != c.exit || !strings.Contains(strings.ReplaceAll(out, `": `, `":`), c.want) { // JSON is printed for people
			t.Errorf("my %s: exit %d, %s; want %d with %q", c.line, exit, out, c.exit, c.want)
		}
	}
	// Names are offered as they are typed.
	if err := svc.Associate(t.Context(), "vic:00e20100", "ann-id", owner.HowAssociate); err != nil {
		t.Fatal(err)
	}
	if exit, out := ann("rename", "vic:00e20100", "Rex the second"); exit != 0 || !strings.Contains(out, "Rex the second") {
		t.Errorf("rename: %d %s", exit, out)
	}
}
