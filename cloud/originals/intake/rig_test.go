package intake_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/identity/consent"
	"kennel/cloud/identity/sts"
	"kennel/cloud/identity/sts/stspg"
	"kennel/cloud/originals/intake"
	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/cloud/telemetry/uploads"
	"kennel/cloud/telemetry/uploads/uploadspg"
	"kennel/infra/api/files"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	rex = thing.ID("vic:00e20100")
	ann = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
)

// rig is both listeners on real stores.
type rig struct {
	pool    *pgxpool.Pool
	blobs   *blob.Store
	logs    *uploads.Service
	crashes *crash.Service
	store   *daspg.Store
	grants  *sts.Grants
	srv     *httptest.Server
	doubted []string // what the doctor was told
	fleet   fleet
	denied,
	s3Away, torn atomic.Bool
	change  atomic.Pointer[func(*consent.Permit)] // of whose the robot is, and since when; nil: ann's, since long
	between atomic.Pointer[func()]                // what happens after the next look for objects without a row
}

// fleet knows rex: an original robot that called a while ago from this machine.
type fleet struct {
	presence registry.Presence
	called   registry.Outcome
}

func (f *fleet) Thing(_ context.Context, id thing.ID) (registry.Thing, error) {
	if id != rex {
		return registry.Thing{}, errs.Coded(errs.NotFound, "no_thing", "thing %s is not in this fleet", id)
	}
	return registry.Thing{ID: id, Presence: f.presence}, nil
}

func (f *fleet) Steps(context.Context, thing.ID) ([]registry.Outcome, error) {
	return []registry.Outcome{{Name: registry.StepTLS, Peer: "192.0.2.9:1"}, f.called}, nil
}

// standing lets every grant stand.
type standing struct{}

func (standing) Check(context.Context, sts.Grant, bool) error { return nil }

// hold is a consent.Ask.
func (r *rig) hold(_ context.Context, ids ...thing.ID) (consent.Hold, error) {
	p := consent.Permit{Account: ann, Allowed: !r.denied.Load(), Owned: time.Hour, Settled: time.Hour}
	if f := r.change.Load(); f != nil {
		(*f)(&p)
	}
	return consent.Hold{At: time.Now(), Asked: time.Now(), Permits: map[thing.ID]consent.Permit{ids[0]: p}, Release: func() {}}, nil
}

// bucket keeps raw batches.
type bucket struct{ *blob.Store }

func (b bucket) Put(ctx context.Context, key string, body []byte) error {
	return b.Store.Put(ctx, key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{})
}

// away is an object store that can be away.
type away struct {
	*blob.Store
	away *atomic.Bool
}

func (a away) PutOnce(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions, d blob.Digests) (string, error) {
	if a.away.Load() {
		return "", errs.RetryLater(2*time.Second, "the object store is not available", errors.New("connection refused"))
	}
	return a.Store.PutOnce(ctx, key, body, size, o, d)
}

// Put is PutOnce for crashes.
func (a away) Put(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions) error {
	if a.away.Load() {
		return errs.RetryLater(2*time.Second, "the object store is not available", errors.New("connection refused"))
	}
	return a.Store.Put(ctx, key, body, size, o)
}

// torn is a list of logs whose rows cannot be written now.
type torn struct {
	*uploadspg.Store
	torn    *atomic.Bool
	between *atomic.Pointer[func()]
}

func (t torn) Unlisted(ctx context.Context, keys []string) ([]string, error) {
	out, err := t.Store.Unlisted(ctx, keys)
	if f := t.between.Swap(nil); f != nil {
		(*f)()
	}
	return out, err
}

func (t torn) Put(ctx context.Context, l uploads.Log) error {
	if t.torn.Load() {
		return errors.New("no space left on device")
	}
	return t.Store.Put(ctx, l)
}

func newRig(t testing.TB, change ...func(*intake.Config)) *rig {
	t.Helper()
	return newRigOf(t, 0, change...)
}

// newRigOf is newRig for robots that may send so many bytes of events a day.
func newRigOf(t testing.TB, eventDay int64, change ...func(*intake.Config)) *rig {
	t.Helper()
	r := &rig{pool: pgtest.New(t), blobs: blobtest.New(t)}
	var err error
	r.logs, err = uploads.New(uploads.Config{Store: torn{uploadspg.New(r.pool), &r.torn, &r.between}, Objects: away{r.blobs, &r.s3Away}, Prefixes: []string{sts.DefaultPrefix},
		OS: func(context.Context, thing.ID) string { return "1.8.1.6051" }})
	if err != nil {
		t.Fatal(err)
	}
	r.fleet = fleet{registry.Calls, registry.Outcome{Name: registry.StepCall, OK: true, Peer: "127.0.0.1:40000", Last: time.Now().Add(-24 * time.Hour)}}
	log := slog.New(slog.DiscardHandler)
	if r.grants, err = sts.New(sts.Config{Seal: secretbox.New(), Standing: standing{}}); err != nil {
		t.Fatal(err)
	}
	if r.crashes, err = crash.New(crash.Config{Store: crashpg.New(r.pool), Objects: away{r.blobs, &r.s3Away}, Log: log}); err != nil {
		t.Fatal(err)
	}
	r.store = daspg.Open(r.pool)
	ingester, err := das.NewIngester(das.Config{Writer: r.store, Blobs: bucket{r.blobs}, Consent: r.hold, Usage: stspg.NewOf(r.pool, "intake_usage"), MaxDay: eventDay, Linger: time.Millisecond, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1) // the one result of Run
	go func() { done <- ingester.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	cfg := intake.Config{Logs: r.logs, Crashes: r.crashes, Events: ingester, Usage: stspg.New(r.pool), Limiter: ratelimit.New(time.Millisecond, 1000), Log: log,
		Allowed: func(context.Context, thing.ID) (bool, error) { return !r.denied.Load(), nil }, Consent: r.hold}
	for _, f := range change {
		f(&cfg)
	}
	svc := intake.New(cfg)
	mux := http.NewServeMux()
	certified := intake.Certificate(func(*http.Request) (thing.ID, error) { return rex, nil })
	mux.Handle("PUT "+files.Logs+"{name}", svc.Log(certified))
	mux.Handle("POST "+files.Crash, svc.Crash(certified))
	d := &intake.Door{Robots: &r.fleet, Grants: r.grants, ByAddr: ratelimit.NewByAddr(time.Millisecond, 1000), AtOnce: 2, Paths: intake.DefaultPaths,
		Refused: func(_ context.Context, _ string, claim thing.ID, code, detail string) {
			r.doubted = append(r.doubted, string(claim)+" "+code+" "+detail)
		}}
	r.srv = httptest.NewTLSServer(d.Handler(svc, mux))
	t.Cleanup(r.srv.Close)
	return r
}

// cut ends a request after which the client closes its side; the server takes that for a hang-up.
const cut = "\x00cut"

// raw sends bytes over TLS, in pieces, and returns the answer.
func (r *rig) raw(t testing.TB, request string) (*http.Response, string) {
	t.Helper()
	conn, err := tls.Dial("tcp", r.srv.Listener.Addr().String(), r.srv.Client().Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		text, half := strings.CutSuffix(request, cut)
		_, _ = io.Copy(conn, struct{ io.Reader }{strings.NewReader(text)}) // the server may answer before it has all
		if half {
			_ = conn.CloseWrite()
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer to %.80q: %v", request, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// want checks an answer: its status, a part of its body, and that a robot that shall come again is told when.
func want(t testing.TB, what string, resp *http.Response, body string, status int, says string) {
	t.Helper()
	if resp.StatusCode != status || !strings.Contains(body, says) {
		t.Errorf("%s: %d %.300s; want %d with %q", what, resp.StatusCode, body, status, says)
	}
	if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); (status == 429 || status == 503) && (err != nil || wait < 1 || wait > 3600) {
		t.Errorf("%s: %d with Retry-After %d s, %v; want 1 to 3600", what, status, wait, err)
	}
}

func (r *rig) names(t testing.TB) (names []string) {
	t.Helper()
	list, err := r.logs.List(t.Context(), uploads.Query{Thing: rex})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		names = append(names, l.Name)
	}
	return names
}

func (r *rig) objects(t testing.TB) (n int) {
	t.Helper()
	for _, err := range r.blobs.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
