package local

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/das"
	"kennel/edge/agent/host"
	"kennel/infra/api/events"
)

// TestParseEvent: numbers and texts in their order, and fields by name.
func TestParseEvent(t *testing.T) {
	for args, want := range map[string]events.Event{
		"a.b":               {Name: "a.b"},
		"a.b x 1 y -2":      {Name: "a.b", S1: "x", S2: "y", I1: events.Num(1), I2: events.Num(-2)},
		"a.b s3=1 i4=7 x=2": {Name: "a.b", S3: "1", S4: "x=2", I4: events.Num(7)},
		"a.b i2=1 2 s1=":    {Name: "a.b", I2: events.Num(1), I3: events.Num(2)},
		"a.b s5=1 i0=2":     {Name: "a.b", S1: "s5=1", S2: "i0=2"},
	} {
		if got, err := parseEvent(strings.Fields(args)); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", args, got, err, want)
		}
	}
	for args, want := range map[string]string{
		"ab": "want module.name", "a.b i1=x": "want a 64-bit integer", "a.b s4=x y": "s1 to s4 are given", "a.b i4=1 2": "i1 to i4 are given",
	} {
		if e, err := parseEvent(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", args, e, err, want)
		}
	}
}

// TestPostWithoutConsent: a program hears that the owner allows no events (VEC-DAS-08), and what is wrong with one.
func TestPostWithoutConsent(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m, err := das.New(das.Config{Root: root, Thing: "vic:00e20100", BootID: "b1", Uptime: func() time.Duration { return time.Second }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		allow  bool
		event  string
		status int
		want   string
	}{
		{true, `{"event":"poked"}`, http.StatusBadRequest, "want module.name"},
		{true, `{"event":"robot.poked","level":"Loud"}`, http.StatusBadRequest, "want a lower-case word"},
		{false, `{"event":"robot.poked"}`, http.StatusForbidden, "opted_out"},
	} {
		if err := m.SetAllowUpload(tc.allow); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		Programs(host.New(host.Robot{Root: root}), m).Local["POST /event"].ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/event", strings.NewReader(tc.event)))
		if b, _ := io.ReadAll(w.Body); w.Code != tc.status || !strings.Contains(string(b), tc.want) {
			t.Errorf("%s, allowed %v: %d %s, want %d %s", tc.event, tc.allow, w.Code, b, tc.status, tc.want)
		}
	}
}
