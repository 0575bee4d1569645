package otaapi

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

	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otapg"
)

// TestOwnersChoice: only the owner of a robot chooses when it updates, only about a release that is wanted of it, and for at most MaxPostpone. A postponed
// release reaches the robot without an address, so that an agent of an earlier release waits as well.
func TestOwnersChoice(t *testing.T) {
	store := otapg.New(pgtest.New(t))
	svc := ota.New(store, nil)
	svc.Heed(store)
	var lines []string
	mux := http.NewServeMux()
	Operations(svc, func(_ context.Context, action, object, detail string) error {
		if lines = append(lines, action+" "+object+" "+detail); detail == "postpone 5d" {
			return errors.New("the log is away")
		}
		return nil
	}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler), Owns: func(_ context.Context, account string, id thing.ID) (time.Time, bool, error) {
		if account == "ann" && id == vic {
			return time.Now().Add(-time.Hour), true, nil
		}
		return time.Time{}, false, nil
	}})
	ask := func(role auth.Role, account, method, robot, body string) (int, ota.Update) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/v1/my/robots/"+robot+"/update", strings.NewReader(body))
		if role != "" {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role, Account: account, Name: account}))
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		var u ota.Update
		_ = json.Unmarshal(w.Body.Bytes(), &u) // an error is no update
		return w.Code, u
	}
	const next = ota.Version("2.0.1.6079")
	if err := svc.AddRelease(t.Context(), ota.Release{Species: "vic", Version: next, Notes: "Quieter motors.", Artifact: ota.Artifact{URL: "https://o/1", SHA256: strings.Repeat("a", 64), Size: 7}}); err != nil {
		t.Fatal(err)
	}
	if code, _ := ask(auth.Owner, "ann", "PUT", string(vic), `{"now":true}`); code != 409 {
		t.Errorf("a choice about nothing: %d, want 409", code)
	}
	if _, err := svc.SetDesired(t.Context(), vic, next, "op"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		role    auth.Role
		account string
		robot   string
		body    string
		code    int
	}{
		{"a stranger", "", "", string(vic), `{"now":true}`, 401},
		{"another owner", auth.Owner, "bob", string(vic), `{"now":true}`, 404},
		{"a robot without an owner", auth.Owner, "ann", "vic:00e20199", `{"now":true}`, 404},
		{"an operator", auth.Viewer, "op", string(vic), `{"now":true}`, 403},
		{"too long", auth.Owner, "ann", string(vic), `{"postpone":"15d"}`, 400},
		{"a number that overflows", auth.Owner, "ann", string(vic), `{"postpone":"999999999999d"}`, 400},
		{"into the past", auth.Owner, "ann", string(vic), `{"postpone":"-3d"}`, 400},
		{"nothing", auth.Owner, "ann", string(vic), `{}`, 400},
		{"two", auth.Owner, "ann", string(vic), `{"now":true,"tonight":true}`, 400},
		{"no words", auth.Owner, "ann", string(vic), `{"postpone":"later"}`, 400},
		{"without the audit log", auth.Owner, "ann", string(vic), `{"postpone":"5d"}`, 500},
	} {
		if code, _ := ask(tt.role, tt.account, "PUT", tt.robot, tt.body); code != tt.code {
			t.Errorf("%s: %d, want %d", tt.name, code, tt.code)
		}
	}
	if all, err := svc.Choices(t.Context(), nil); err != nil || len(all) > 0 {
		t.Fatalf("choices %v, %v; want none after refusals", all, err)
	}
	for _, reader := range []string{"bob", ""} {
		if code, _ := ask(auth.Owner, reader, "GET", string(vic), ""); code != 404 {
			t.Errorf("%q reads: %d, want 404", reader, code)
		}
	}
	told := func() ota.Desired {
		t.Helper()
		d, err := svc.Ask(t.Context(), vic, "2.0.0.1")
		if err != nil || d.Release != next {
			t.Fatalf("the robot is told %+v, %v", d, err)
		}
		return d
	}
	if d := told(); d.URL == "" || d.Window != nil || !d.NotBefore.IsZero() {
		t.Errorf("without a choice the robot is told %+v", d)
	}
	if code, u := ask(auth.Owner, "ann", "PUT", string(vic), `{"postpone":"3d"}`); code != 200 || u.When != ota.WhenPostponed || u.Release != next || u.Notes == "" || u.Size != 7 || time.Until(u.Until) < 71*time.Hour {
		t.Errorf("postponed: %d %+v", code, u)
	}
	if d := told(); d.URL != "" || d.NotBefore.IsZero() || d.Window == nil || d.Window.From != ota.Night.From {
		t.Errorf("postponed, the robot is told %+v; want no address", d)
	}
	if code, _ := ask(auth.Owner, "ann", "PUT", string(vic), `{"postpone":"14d"}`); code != 400 {
		t.Errorf("14 days after the first postponement: %d, want 400", code)
	}
	if code, u := ask(auth.Owner, "ann", "PUT", string(vic), `{"tonight":true}`); code != 200 || u.When != ota.WhenTonight {
		t.Errorf("tonight: %d %+v", code, u)
	}
	if d := told(); d.URL == "" || !d.NotBefore.IsZero() || d.Window == nil {
		t.Errorf("tonight, the robot is told %+v", d)
	}
	if code, u := ask(auth.Owner, "ann", "PUT", string(vic), `{"now":true}`); code != 200 || u.When != ota.WhenNow {
		t.Errorf("now: %d %+v", code, u)
	}
	if d := told(); d.URL == "" || d.Window != nil {
		t.Errorf("now, the robot is told %+v", d)
	}
	report := func(s ota.Status) {
		t.Helper()
		s.Release, s.Running = next, "2.0.0.1"
		if s.Phase == ota.Current {
			s.Running = string(next)
		}
		if err := svc.Report(t.Context(), vic, s); err != nil {
			t.Fatal(err)
		}
	}
	report(ota.Status{ID: "1", Phase: ota.Pending, Waits: ota.WaitCharger, Reason: "the robot is not on its charger"})
	if _, u := ask(auth.Owner, "ann", "GET", string(vic), ""); u.Waits != ota.WaitCharger || u.Latest.IsZero() {
		t.Errorf("waiting: %+v", u)
	}
	report(ota.Status{ID: "2", Phase: ota.Downloading, Percent: 40})
	if _, u := ask(auth.Owner, "ann", "GET", string(vic), ""); u.Phase != ota.Downloading || u.Percent != 40 || !u.Latest.IsZero() {
		t.Errorf("downloading: %+v", u)
	}
	if code, _ := ask(auth.Owner, "ann", "PUT", string(vic), `{"postpone":"1d"}`); code != 409 {
		t.Errorf("postponed after it began: %d, want 409", code)
	}
	report(ota.Status{ID: "3", Phase: ota.Failed, Code: int(ota.TimedOut)})
	if _, u := ask(auth.Owner, "ann", "GET", string(vic), ""); u.Failed == nil || u.Failed.Code != int(ota.TimedOut) {
		t.Errorf("failed: %+v", u)
	}
	report(ota.Status{ID: "4", Phase: ota.Current})
	if _, u := ask(auth.Owner, "ann", "GET", string(vic), ""); u.Release != "" || u.Failed != nil || u.Running != string(next) {
		t.Errorf("updated: %+v", u)
	}
	if all, err := svc.Choices(t.Context(), nil); err != nil || len(all) > 0 {
		t.Errorf("choices %v, %v; want none after the update", all, err)
	}
	if want := "update.choose vic:00e20100 postpone 3d"; !slices.Contains(lines, want) {
		t.Errorf("audit %q, want %q", lines, want)
	}
}

// TestChoiceEnds: a choice ends with the ownership in which it was made, and not with an earlier one.
func TestChoiceEnds(t *testing.T) {
	store, now := otapg.New(pgtest.New(t)), time.Now().UTC().Truncate(time.Second)
	if err := store.SetChoice(t.Context(), vic, ota.Choice{Release: "2.0.1.1", Until: now, First: now, Chosen: now}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		since, until time.Time
		want         int
	}{{now.Add(-time.Hour), now.Add(-time.Minute), 0}, {now.Add(-time.Hour), now.Add(time.Minute), 1}} {
		if n, err := store.DropChoices(t.Context(), thing.Stretch{Thing: vic, Since: tt.since, Until: tt.until}); n != tt.want || err != nil {
			t.Errorf("%d dropped, %v; want %d", n, err, tt.want)
		}
	}
}
