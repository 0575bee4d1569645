package dasapi

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/dasfile/dasfiletest"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// TestCountsAndExport: operators count, and take everything along in each form; others do not; what cannot be asked is answered before a file begins.
func TestCountsAndExport(t *testing.T) {
	store := daspg.Open(pgtest.New(t))
	f := &fixture{store: store, svc: das.NewService(store)}
	f.put(t, "vic:1", 1, 3)
	f.put(t, "vic:2", 1, 2)
	var told []string
	mux := http.NewServeMux()
	owns := func(context.Context, string, thing.ID) (time.Time, bool, error) { return time.Now(), true, nil }
	Operations(f.svc, Config{Owns: owns, Audit: func(_ context.Context, action, object, detail string) error {
		if told = append(told, action+" "+object+" "+detail); strings.Contains(detail, "source=untold") {
			return errs.New(errs.Unavailable, "the audit log is away")
		}
		return nil
	}}).Mount(mux, quiet(owns))
	ask := func(role auth.Role, path string) *httptest.ResponseRecorder {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		mux.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: role})))
		return w
	}
	for _, tt := range []struct {
		role auth.Role
		path string
		code int
		want string
	}{
		{auth.Viewer, "/v1/events/counts?by=robot", 200, `"events":5,"robots":2`},
		{auth.Viewer, "/v1/events/counts?by=week", 400, "want one of hour, day"},
		{auth.Viewer, "/v1/events/counts?limit=3", 400, "want thing, robots"},
		{auth.Viewer, "/v1/events/counts?robots=cohort:beta", 400, "want thing"},
		{auth.Owner, "/v1/events/counts", 403, "owner"},
		{auth.Owner, "/v1/events/export", 403, "owner"},
		{auth.Owner, "/v1/events?thing=vic:1&robots=owner:x", 403, "only operators"},
		{auth.Owner, "/v1/events?thing=vic:1&clock=robot&since=2001-01-01T00:00:00Z", 200, "[]"},
		{auth.Viewer, "/v1/events/export?format=xml", 400, "want one of ndjson, csv"},
		{auth.Viewer, "/v1/events/export?source=untold", 503, "audit log"},
		{auth.Viewer, "/v1/events/export?robots=cohort:beta", 400, "want thing"},
	} {
		if w := ask(tt.role, tt.path); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s: %d %s; want %d %s", tt.role, tt.path, w.Code, w.Body, tt.code, tt.want)
		}
	}
	told = nil
	lines, err := csv.NewReader(ask(auth.Viewer, "/v1/events/export?format=csv&thing=vic:1").Body).ReadAll()
	if err != nil || len(lines) != 4 || lines[0][0] != "received" || lines[3][3] != "3" || len(lines[3]) != len(lines[0]) {
		t.Errorf("CSV %v, %v", lines, err)
	}
	if want := "events.export vic:1 csv thing=vic%3A1"; len(told) != 1 || told[0] != want {
		t.Errorf("audited %q; want %q", told, want)
	}
	_ = ask(auth.Viewer, "/v1/events/export?thing=vic:1&robots=owner:ann@example.org&value=s1~ann") // refused later: there is no fleet
	if last := told[len(told)-1]; len(told) != 2 || strings.Contains(last, "ann") {
		t.Errorf("the audit log has a person's name: %q", last)
	}
	var seqs []uint64
	for in := json.NewDecoder(ask(auth.Viewer, "/v1/events/export").Body); ; {
		var r das.Record
		if err := in.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, r.Seq)
	}
	if len(seqs) != 5 {
		t.Errorf("NDJSON %v", seqs)
	}
	for path, want := range map[string]int{"/v1/events/export?format=parquet": 5, "/v1/events/export?format=parquet&name=no.such": 0} {
		w := ask(auth.Viewer, path)
		if n := len(dasfiletest.Read(t, w.Body.Bytes())); n != want || w.Header().Get("Content-Type") != "application/vnd.apache.parquet" {
			t.Errorf("%s: %d events, %v; want %d", path, n, w.Header(), want)
		}
		if n := w.Result().Trailer.Get(eventsTrailer); n != strconv.Itoa(want) {
			t.Errorf("%s: the trailer counts %q events, want %d", path, n, want)
		}
	}
}
