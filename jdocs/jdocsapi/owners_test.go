package jdocsapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
	"kennel/jdocs/people"
)

// TestOwners: an owner reads and changes the settings of an own robot and nothing else; others' robots answer as unknown ones.
func TestOwners(t *testing.T) {
	pool := pgtest.New(t)
	svc, told := jdocs.New(jdocspg.New(pool)), listen(t, pool)
	put := func(k jdocs.Key, text, by string) {
		t.Helper()
		cur, err := svc.Get(t.Context(), k)
		if err != nil && !errors.Is(err, jdocs.ErrNotFound) {
			t.Fatal(err)
		}
		if _, err := svc.Write(t.Context(), k, jdocs.Doc{Version: cur.Version, FmtVersion: 2, JSON: text}, by); err != nil {
			t.Fatal(err)
		}
	}
	put(settings, `{"default_location":"the home of before"}`, "owner")
	put(settings, `{"default_location":"here"}`, "support@kennel.local")
	since := time.Now()
	put(settings, `{"master_volume":1}`, "support@kennel.local")
	put(settings, `{"master_volume":2}`, string(robot))
	put(jdocs.Key{Thing: robot, Name: jdocs.RobotLifetimeStats}, `{"Pet.ms":1}`, string(robot))
	put(jdocs.Key{Thing: robot, Name: jdocs.AppTokens}, `{"client_tokens":[]}`, "kenneld")
	put(jdocs.Key{Account: "bob", Name: jdocs.AccountSettings}, `{"data_collection":true,"app_locale":"de-DE"}`, "owner")
	put(jdocs.Key{Account: "ann", Name: jdocs.AccountSettings}, `{"APP_LOCALE":"en-US","DATA_COLLECTION":true}`, string(other))

	var changed []string
	mux := http.NewServeMux()
	Operations(&people.Documents{Docs: svc,
		Exists: func(_ context.Context, id thing.ID) error {
			if id != robot && id != other {
				return auth.UnknownThing(id)
			}
			return nil
		},
		Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
			return since, account == "ann" && id == robot, nil
		},
		Changed: func(_ context.Context, account string, name jdocs.Name) {
			changed = append(changed, account+" "+string(name))
		}}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	do := func(account, method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(auth.WithCaller(t.Context(), auth.Caller{Role: auth.Owner, Account: account,
			Name: account + "@example.org"}), method, path, strings.NewReader(body))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const docs = "/v1/things/vic:00e20100/jdocs"
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want, not                string
	}{
		{"list", "GET", docs, "", 200, `"doc_name":"vic.AccountSettings","doc_version":1`, "AppTokens"},
		{"get", "GET", docs + "/vic.RobotSettings", "", 200, `"by":"vic:00e20100"`, ""},
		{"statistics", "GET", docs + "/vic.RobotLifetimeStats", "", 200, `"Pet.ms":1`, ""},
		{"statistics are the robot's", "PATCH", docs + "/vic.RobotLifetimeStats", `{"set":{"Pet.ms":9}}`, 403, "read_only", ""},
		{"tokens", "GET", docs + "/vic.AppTokens", "", 404, "no such document", ""},
		{"tokens' past", "GET", docs + "/vic.AppTokens/history", "", 404, "no such document", ""},
		{"another client's token", "PATCH", docs + "/vic.AppTokens", `{"set":{"client_tokens":[]}}`, 404, "no such document", ""},
		{"a document of one's own making", "PATCH", docs + "/vic.Mine", `{"set":{"a":1}}`, 404, "no such document", ""},
		{"set", "PATCH", docs + "/vic.RobotSettings", `{"set":{"master_volume":3}}`, 200, `"by":"owner"`, "example.org"},
		{"what is allowed", "PATCH", docs + "/vic.RobotSettings", `{"set":{"master_volume":9}}`, 400, "5 HIGH", ""},
		{"the past since it is ann's", "GET", docs + "/vic.RobotSettings/history", "", 200, `"by":"operator"`, "here"},
		{"and not before", "GET", docs + "/vic.RobotSettings/history", "", 200, `"doc_version":3`, "home of before"},
		{"no operator by name", "GET", docs + "/vic.RobotSettings/history", "", 200, "operator", "support@"},
		{"ann's own settings", "GET", docs + "/vic.AccountSettings", "", 200, `"APP_LOCALE":"en-US"`, "de-DE"},
		{"by another robot of hers", "GET", docs + "/vic.AccountSettings/history", "", 200, `"by":"vic:00e20101"`, ""},
		{"consent", "PATCH", docs + "/vic.AccountSettings", `{"set":{"Data_Collection":false}}`, 200, `"jdoc":{"APP_LOCALE":"en-US","data_collection":false}`, ""},
		{"no maybe", "PATCH", docs + "/vic.AccountSettings", `{"set":{"data_collection":"maybe"}}`, 400, "true or false", ""},
		{"no number", "PATCH", docs + "/vic.AccountSettings", `{"set":{"APP_LOCALE":7}}`, 400, "language tag", ""},
		{"yes and no", "PATCH", docs + "/vic.AccountSettings", `{"set":{"data_collection":true,"DATA_COLLECTION":false}}`, 400, "twice", ""},
		{"entitlements", "PATCH", docs + "/vic.UserEntitlements", `{"set":{"kickstarter_eyes":true}}`, 200, `"kickstarter_eyes":true`, ""},
		{"another's robot", "GET", "/v1/things/vic:00e20101/jdocs", "", 404, `"thing vic:00e20101 is not in this fleet"`, ""},
		{"another's document", "PATCH", "/v1/things/vic:00e20101/jdocs/vic.RobotSettings", `{"set":{"master_volume":3}}`, 404, "no_thing", ""},
		{"an unknown robot", "GET", "/v1/things/vic:00e20199/jdocs", "", 404, `"thing vic:00e20199 is not in this fleet"`, ""},
	} {
		status, body := do("ann", c.method, c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) || c.not != "" && strings.Contains(body, c.not) {
			t.Errorf("%s: %d %s; want %d with %q, without %q", c.name, status, body, c.status, c.want, c.not)
		}
	}
	if status, body := do("bob", "GET", docs+"/vic.AccountSettings", ""); status != 404 || !strings.Contains(body, "no_thing") {
		t.Errorf("bob's own settings through ann's robot: %d %s", status, body)
	}
	// Operators do not reach what is a person's.
	if status, body := ask(t, mux, auth.Admin, "PATCH", docs+"/vic.AccountSettings", `{"set":{"data_collection":true}}`); status != 400 ||
		!strings.Contains(body, "want the account") {
		t.Errorf("an operator consents: %d %s", status, body)
	}
	told("vic:00e20100/vic.RobotSettings 5")
	if want := "[ann vic.AccountSettings ann vic.UserEntitlements]"; fmt.Sprint(changed) != want {
		t.Errorf("changed %v, want %s", changed, want)
	}
	cur, err := svc.Get(t.Context(), jdocs.Key{Account: "bob", Name: jdocs.AccountSettings})
	if err != nil || cur.Version != 1 {
		t.Errorf("bob's settings: %+v, %v; want them untouched", cur, err)
	}
}

// TestRobotsOfAnOwner: a robot reads and writes the account documents of its owner only, and of no account without one.
func TestRobotsOfAnOwner(t *testing.T) {
	svc := jdocs.New(jdocspg.New(pgtest.New(t)))
	owners := map[thing.ID]string{robot: "ann", other: "bob", "vic:broken": ""}
	var changed []string
	h := Handlers(jdocs.Robots{Docs: svc,
		OwnerOf: func(_ context.Context, id thing.ID) (string, error) {
			account, ok := owners[id]
			switch {
			case !ok:
				return "", errs.New(errs.NotFound, "%s has no owner", id)
			case account == "":
				return "", errs.RetryLater(time.Second, "the database is not available", nil)
			}
			return account, nil
		},
		Changed: func(_ context.Context, account string, name jdocs.Name) {
			changed = append(changed, account+" "+string(name))
		}}, slog.New(slog.DiscardHandler))
	const alone = thing.ID("vic:00e20102")
	doc := func(version int, text string) string {
		return fmt.Sprintf(`"doc_name":"vic.AccountSettings","doc":{"doc_version":%d,"fmt_version":1,"json_doc":"%s"}}`, version, text)
	}
	for _, c := range []struct {
		name, method string
		id           thing.ID
		body, want   string // part of the answer, or of the error
		kind         errs.Kind
		code         string
	}{
		{"write", "write", robot, `{` + doc(0, "{}"), `{"status":"ACCEPTED","latest_doc_version":1}`, 0, ""},
		{"write again", "write", robot, `{"user_id":"ann",` + doc(0, "{}"), `REJECTED_BAD_DOC_VERSION`, 0, ""},
		{"of somebody else", "write", robot, `{"user_id":"bob",` + doc(0, "{}"), "bob", errs.Denied, "wrong_account"},
		{"of somebody else, read", "read", robot, `{"account":"bob","items":[{"doc_name":"vic.AccountSettings"}]}`, "bob", errs.Denied, "wrong_account"},
		{"read", "read", robot, `{"user_id":"ann","items":[{"doc_name":"vic.RobotSettings"},{"doc_name":"vic.AccountSettings"}]}`, `"status":"CHANGED","doc":{"doc_version":1`, 0, ""},
		{"another person's robot", "read", other, `{"items":[{"doc_name":"vic.AccountSettings"}]}`, `NOT_FOUND`, 0, ""},
		{"what it wrote", "revision", robot, `{"doc_name":"vic.AccountSettings","doc_version":1}`, `{"found":true,"by_you":true`, 0, ""},
		{"what it did not write", "revision", other, `{"doc_name":"vic.AccountSettings","doc_version":1}`, `{"found":false`, 0, ""},
		{"delete", "delete", robot, `{"doc_name":"vic.AccountSettings"}`, "may not delete", errs.Denied, "account_document"},
		{"without an owner", "write", alone, `{` + doc(0, "{}"), "has none", errs.Denied, "no_owner"},
		{"without an owner, for one", "write", alone, `{"user_id":"ann",` + doc(1, "{}"), "ann", errs.Denied, "wrong_account"},
		{"without an owner, read", "read", alone, `{"items":[{"doc_name":"vic.RobotSettings"},{"doc_name":"vic.AccountSettings"},{"doc_name":"vic.RobotLifetimeStats"}]}`,
			`{"items":[{"status":"NOT_FOUND","doc":{"doc_version":0,"fmt_version":0,"client_metadata":"","json_doc":""}},{"status":"NOT_FOUND","doc"`, 0, ""},
		{"its own, whoever it says owns it", "read", alone, `{"user_id":"u","items":[{"doc_name":"vic.RobotSettings"}]}`, "NOT_FOUND", 0, ""},
		{"owner not known now", "read", "vic:broken", `{"items":[{"doc_name":"vic.AccountSettings"}]}`, "not available", errs.Unavailable, "retry_after"},
		{"too many", "read", robot, `{"items":[` + strings.Repeat(`{"doc_name":"vic.AccountSettings"},`, 64) + `{"doc_name":"vic.AccountSettings"}]}`, "at most 64", errs.Invalid, ""},
	} {
		got, err := h["jdocs/"+c.method](t.Context(), c.id, []byte(c.body))
		if err != nil {
			got = []byte(err.Error())
		}
		if (err != nil) != (c.kind != 0) || err != nil && (errs.KindOf(err) != c.kind || errs.CodeOf(err) != c.code) ||
			!strings.Contains(string(got), c.want) {
			t.Errorf("%s: %s, %v (%s); want %q, %v %s", c.name, got, err, errs.CodeOf(err), c.want, c.kind, c.code)
		}
	}
	if want := "[ann vic.AccountSettings]"; fmt.Sprint(changed) != want {
		t.Errorf("changed %v, want %s", changed, want)
	}
	if got, err := svc.Get(t.Context(), jdocs.Key{Account: "ann", Name: jdocs.AccountSettings}); err != nil || got.Version != 1 ||
		got.By != string(robot) {
		t.Errorf("ann's settings %+v, %v; want version 1 by her robot", got, err)
	}
}
