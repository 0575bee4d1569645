package otaapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"kennel/infra/api/ack"
	"kennel/infra/auth"
	"kennel/infra/op"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/otapg"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const vic = thing.ID("vic:00e20100")

type hints struct{ got []string }

func (h *hints) Hint(_ context.Context, id thing.ID, name string, payload []byte) {
	h.got = append(h.got, string(id)+" "+name+" "+string(payload[:len(`{"v":1,"release":"2.0.1.6079"`)]))
}

func TestHTTP(t *testing.T) {
	h := &hints{}
	mux := http.NewServeMux()
	var lines []string
	Operations(ota.New(otapg.New(pgtest.New(t)), h), func(_ context.Context, action, object, detail string) error {
		if lines = append(lines, action+" "+object+" "+detail); detail == "8.8.8.8" {
			return errors.New("the log is away")
		}
		return nil
	}).Mount(mux, op.Doors{Log: slog.New(slog.DiscardHandler)})
	for _, tt := range []struct {
		role         auth.Role
		method, path string
		body         string
		code         int
		want         string
	}{
		{"", "GET", "/v1/releases", "", 401, "sign in first"},
		{auth.Owner, "GET", "/v1/releases", "", 403, "denied"},
		{auth.Viewer, "GET", "/v1/releases", "", 200, "[]\n"},
		{auth.Viewer, "POST", "/v1/releases", `{"species":"vic","version":"2.0.1.6079"}`, 403, "denied"},
		{auth.Admin, "POST", "/v1/releases", `{"species":"vic","version":"2.0"}`, 400, "four numbers"},
		{auth.Admin, "POST", "/v1/releases", `{"species":"cat","version":"2.0.1.6079"}`, 400, "species"},
		{auth.Admin, "POST", "/v1/releases", `{"species":"vic","version":"2.0.1.6079","notes":"calm"}`, 200, `"notes":"calm"`},
		{auth.Viewer, "GET", "/v1/releases?species=vic", "", 200, `"version":"2.0.1.6079"`},
		{auth.Admin, "PUT", "/v1/things/vic:00e20100/ota/desired", `{}`, 400, "no version"},
		{auth.Admin, "PUT", "/v1/things/cat:1/ota/desired", `{"version":""}`, 400, "thing id"},
		{auth.Admin, "PUT", "/v1/things/vic:00e20100/ota/desired", `{"version":"9.9.9.9"}`, 404, "no_release"},
		{auth.ReleaseManager, "PUT", "/v1/things/vic:00e20100/ota/desired", `{"version":"2.0.1.6079"}`, 200, `"release":"2.0.1.6079"`},
		{auth.Admin, "PUT", "/v1/ota/desired/vic", `{"version":"2.0.1.6079"}`, 200, `"release":"2.0.1.6079"`},
		{auth.Admin, "PUT", "/v1/ota/desired/vic", `{"version":"8.8.8.8"}`, 500, ""}, // before it is found not to be there
		{auth.Viewer, "GET", "/v1/things/vic:00e20100/ota?limit=0", "", 400, "limit"},
		{auth.Viewer, "GET", "/v1/things/vic:00e20100/ota", "", 200, `"history":[]`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.body))
		if tt.role != "" {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Role: tt.role, Name: "op@example.org"}))
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s %s as %q: %d %s; want %d and %q", tt.method, tt.path, tt.body, tt.role, w.Code, w.Body, tt.code, tt.want)
		}
	}
	if len(h.got) != 1 || h.got[0] != `vic:00e20100 ota {"v":1,"release":"2.0.1.6079"` {
		t.Errorf("hints %q; want one", h.got)
	}
	for _, want := range []string{"release.add vic 2.0.1.6079", "release.want vic:00e20100 2.0.1.6079", "release.want vic 2.0.1.6079"} {
		if !slices.Contains(lines, want) {
			t.Errorf("lines of the audit log %q; want %q", lines, want)
		}
	}
}

func TestMQTT(t *testing.T) {
	m := NewMQTT(ota.New(otapg.New(pgtest.New(t)), nil), slog.New(slog.DiscardHandler))
	body, err := m.Desired()(t.Context(), vic, []byte(`{"v":1,"running":"2.0.1.6076"}`))
	if err != nil || string(body) != `{"v":1}` {
		t.Errorf("desired %s, %v", body, err)
	}
	if _, err := m.Desired()(t.Context(), vic, []byte(`[`)); err == nil {
		t.Error("a damaged request was answered")
	}
	report := func(payload string) (acks []ack.Ack) {
		m.Report(t.Context(), vic, []byte(payload), func(a ack.Ack) { acks = append(acks, a) })
		return acks
	}
	for range 2 { // a repeated report is stored, once
		if got := report(`{"v":1,"id":"r1","phase":"pending","release":"2.0.1.6079"}`); len(got) != 1 || got[0].Batch != "r1" ||
			got[0].Status != ack.Stored {
			t.Errorf("acks %+v; want stored", got)
		}
	}
	if got := report(`{"v":1,"id":"r2","phase":"?"}`); len(got) != 1 || got[0].Status != ack.Refused || !strings.Contains(got[0].Reason, "phase") {
		t.Errorf("acks %+v; want refused with a reason", got)
	}
	if got := report(`not json`); len(got) != 0 {
		t.Errorf("acks %+v; want none without an id", got)
	}
	st, err := m.svc.State(t.Context(), vic, 10)
	if err != nil || len(st.History) != 1 {
		t.Errorf("state %+v, %v; want one report", st, err)
	}
}

type brokenStore struct{ ota.Store }

func (brokenStore) AddStatus(context.Context, thing.ID, ota.Status) error {
	return errors.New("disk full")
}

func TestReportThatCannotBeStoredIsAskedForAgain(t *testing.T) {
	m := NewMQTT(ota.New(brokenStore{}, nil), slog.New(slog.DiscardHandler))
	m.Report(t.Context(), vic, []byte(`{"v":1,"id":"r1","phase":"current"}`), func(a ack.Ack) {
		if a.Status != ack.RetryAfter || a.Batch != "r1" || a.After == 0 {
			t.Errorf("ack %+v; want retry_after", a)
		}
	})
}
