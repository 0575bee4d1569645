package doorapi_test

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/originals/door"
	"kennel/cloud/originals/door/doorapi"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// fleet keeps what a door tells it.
type fleet struct {
	mu    sync.Mutex
	calls []registry.Call
	steps []registry.Step
}

func (f *fleet) Seen(_ context.Context, c registry.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
}

func (f *fleet) RecordAll(_ context.Context, steps []registry.Step) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps = append(f.steps, steps...)
	return nil
}

// shelf stores strangers in memory: what is stored is tested with the door.
type shelf []door.Stranger

func (s *shelf) Add(_ context.Context, all []door.Stranger) error {
	*s = append(*s, all...)
	return nil
}
func (s *shelf) Take(context.Context, string, thing.ID, time.Time) ([]door.Stranger, error) {
	return nil, nil
}
func (s *shelf) Strangers(context.Context) ([]door.Stranger, error) { return *s, nil }

const rex = thing.ID("vic:00e20100")

// TestCalls: a call with a proof is a sign of life, whatever came of it, but not each of a busy robot's calls; what names itself without a
// proof is none.
func TestCalls(t *testing.T) {
	robots, rows, proofs, good := &fleet{}, &shelf{}, 0, []string{"good"}
	d := door.New(rows, robots, func(string, string) {}, slog.New(slog.DiscardHandler))
	w := doorapi.NewWatch(d, func(_ context.Context, chain []*x509.Certificate, token logging.Secret) thing.ID {
		if proofs++; slices.Contains(good, token.Reveal()) {
			return rex
		}
		return ""
	})
	call := func(method string, err error, md ...string) {
		t.Helper()
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(md...))
		_, got := w.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, err })
		if got != err {
			t.Errorf("%s: %v, want %v", method, got, err)
		}
	}
	const read, check = "/jdocspb.Jdocs/ReadDocs", "/chippergrpc2.ChipperGrpc/StreamingConnectionCheck"
	call(check, nil, "device-id", string(rex)) // a name is no proof
	if proofs != 0 || len(robots.calls) != 0 {
		t.Errorf("%d proofs, calls %+v without a proof", proofs, robots.calls)
	}
	call(read, nil, "anki-access-token", "bad")
	for range 100 {
		call(read, status.Error(codes.NotFound, "no such document"), "anki-access-token", "good", "user-agent", "Victor/2.0.1.6076")
	}
	call(check, nil, "anki-access-token", "good")
	if proofs != 3 || len(robots.calls) != 2 || robots.calls[0].What != "documents" || robots.calls[0].Version != "Victor/2.0.1.6076" || robots.calls[1].What != registry.CallCheck {
		t.Errorf("%d proofs, calls %+v; want one of documents and one connection check", proofs, robots.calls)
	}
	// A robot that is let in after it was refused is there at once.
	call(read, status.Error(codes.Unauthenticated, "not accepted"), "anki-access-token", "late")
	good = append(good, "late")
	call(read, nil, "anki-access-token", "late")
	if n := len(robots.calls); n != 3 {
		t.Errorf("calls %+v, want one more", robots.calls)
	}
	robots.calls = robots.calls[:2]
	// A document read over HTTP is a call, too.
	mux := http.NewServeMux()
	mux.HandleFunc("POST /1/read-docs", func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest("POST", "/1/read-docs", nil)
	r.Header.Set("anki-access-token", "good")
	other := doorapi.NewWatch(d, func(_ context.Context, _ []*x509.Certificate, token logging.Secret) thing.ID { return rex })
	other.Routes(mux, mux).ServeHTTP(httptest.NewRecorder(), r)
	if len(robots.calls) != 3 || robots.calls[2].What != "documents" || robots.calls[2].Peer != "192.0.2.1:1234" {
		t.Errorf("calls %+v, want one over HTTP", robots.calls)
	}
	// Every refusal is noted, with the robot if it is proved.
	for range 3 {
		call("/x.Y/Z", status.Error(codes.Unimplemented, "no"), "anki-access-token", "good")
	}
	call("/x.Y/Z", status.Error(codes.Unimplemented, "no"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(robots.calls); robots.calls[n-1].What != registry.CallRefused {
		t.Errorf("calls %+v, want the refused one told apart: it shows nothing of what is served", robots.calls)
	}
	if len(robots.steps) != 1 || robots.steps[0].Thing != rex || robots.steps[0].Times != 3 || robots.steps[0].Code != door.CodeService || len(*rows) != 1 || (*rows)[0].Times != 1 {
		t.Errorf("steps %+v, strangers %+v", robots.steps, *rows)
	}
}

// TestPaths: plain HTTP serves the connection check alone, and what is not served is noted.
func TestPaths(t *testing.T) {
	rows := &shelf{}
	d := door.New(rows, &fleet{}, func(string, string) {}, slog.New(slog.DiscardHandler))
	w := doorapi.NewWatch(d, func(context.Context, []*x509.Certificate, logging.Secret) thing.ID { return "" })
	plain := w.Plain(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("ok\n")) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /vic/{esn}", func(http.ResponseWriter, *http.Request) {})
	secure := w.Routes(mux, mux)
	for _, tc := range []struct {
		h            http.Handler
		method, path string
		code         int
	}{{plain, "HEAD", "/ok?emresn=00e20100", 200}, {plain, "GET", "/ok", 200}, {secure, "GET", "/vic/00e20100", 200}, {plain, "GET", "/v1/things", 404}, {plain, "POST", "/ok", 404},
		{secure, "GET", "/favicon.ico", 404}, {secure, "GET", "/vic/prod/full/latest.ota", 404}, {plain, "GET", "/vic/prod/diff/2.0.1.6076.ota", 404}} {
		rec := httptest.NewRecorder()
		tc.h.ServeHTTP(rec, httptest.NewRequest(tc.method, tc.path, nil))
		if rec.Code != tc.code {
			t.Errorf("%s %s: %d, want %d", tc.method, tc.path, rec.Code, tc.code)
		}
		if update := strings.HasSuffix(tc.path, ".ota"); update != strings.Contains(rec.Body.String(), "no channel of this cloud offers that update") {
			t.Errorf("%s: %s", tc.path, rec.Body)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Run(ctx); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(*rows, func(a, b door.Stranger) int { return strings.Compare(a.Code, b.Code) })
	if len(*rows) != 2 || (*rows)[0].Times != 3 || (*rows)[0].Code != door.CodePath || !strings.Contains((*rows)[0].Detail, "GET /favicon.ico") ||
		(*rows)[1].Times != 2 || (*rows)[1].Code != door.CodeUpdate || !strings.Contains((*rows)[1].Detail, "asked for the update /vic/prod/diff/2.0.1.6076.ota") {
		t.Errorf("strangers %+v, want one address that was refused three paths and two updates", *rows)
	}
	// The page shows them, and escapes what a client made up.
	(*rows)[0].Detail = "asked for GET /<script>"
	page, err := doorapi.Page(d).Show(t.Context())
	if err != nil || strings.Contains(string(page), "<script>") || !strings.Contains(string(page), "192.0.2.1") || !strings.Contains(string(page), "path_unknown") {
		t.Errorf("%v\n%s", err, page)
	}
}

// TestWhy: a fleet without robots says what was refused last and what to do, or that none came.
func TestWhy(t *testing.T) {
	rows := &shelf{}
	d := door.New(rows, &fleet{}, func(string, string) {}, slog.New(slog.DiscardHandler))
	why := doorapi.Page(d).Why
	if text, err := why(t.Context()); err != nil || !strings.Contains(text, "kenneld originals check says whether one can") {
		t.Errorf("nothing refused: %q, %v", text, err)
	}
	*rows = shelf{{Addr: "192.0.2.7", Code: door.CodeRoot, Detail: "it called kennel.lan and does not trust the certificate", Last: time.Now().Add(-time.Minute)}}
	if text, err := why(t.Context()); err != nil || text != "A client at 192.0.2.7 called the original robots' port and was refused 1 min ago: it called kennel.lan and does not trust the certificate. "+registry.Advice(door.CodeRoot)+"." {
		t.Errorf("refused: %q, %v", text, err)
	}
}

// TestWhyNot: a robot that is not in the fleet hears of refusals that were its own, else of those of callers without a name, and never of another robot's.
func TestWhyNot(t *testing.T) {
	const rex, bo = thing.ID("vic:00e20100"), thing.ID("vic:00e20101")
	rows := &shelf{}
	d := door.New(rows, &fleet{}, func(string, string) {}, slog.New(slog.DiscardHandler))
	refused := func(claim thing.ID, addr string) door.Stranger {
		return door.Stranger{Addr: addr, Code: door.CodeRoot, Claim: claim, Detail: "no root", Last: time.Now().Add(-time.Minute)}
	}
	for name, tt := range map[string]struct {
		rows shelf
		want string
	}{
		"nothing refused":         {nil, "Nothing that may have been this robot"},
		"another robot's":         {shelf{refused(bo, "192.0.2.8")}, "Nothing that may have been this robot"},
		"nobody's":                {shelf{refused(bo, "192.0.2.8"), refused("", "192.0.2.9")}, "A client that did not say which robot it is called the original robots' port from 192.0.2.9 and was refused 1 min ago: no root. "},
		"its own, not the newest": {shelf{refused("", "192.0.2.9"), refused(bo, "192.0.2.8"), refused(rex, "192.0.2.7")}, "It called the original robots' port from 192.0.2.7 and was refused"},
	} {
		*rows = tt.rows
		if text, err := d.WhyNot(t.Context(), rex); err != nil || !strings.HasPrefix(text, tt.want) {
			t.Errorf("%s: %q, %v; want %q", name, text, err, tt.want)
		}
	}
}
