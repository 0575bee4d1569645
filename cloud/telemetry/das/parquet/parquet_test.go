package parquet

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/dasfile/dasfiletest"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/api/events"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type house struct {
	*Files
	store   *daspg.Store
	objects *blob.Store
	seq     uint64
}

func newHouse(t *testing.T, days int) *house {
	t.Helper()
	h := &house{store: daspg.Open(pgtest.New(t)), objects: blobtest.New(t)}
	h.Files = New(h.objects, h.store, days, slog.New(slog.NewTextHandler(t.Output(), nil)))
	return h
}

func (h *house) put(t *testing.T, at time.Time, ids ...thing.ID) {
	t.Helper()
	g := das.Group{Received: at}
	for _, id := range ids {
		h.seq++
		g.Items = append(g.Items, das.Item{Thing: id, Events: []events.Event{{Seq: h.seq, BootID: "b", RobotID: id.Serial(), Level: events.Info, Name: "a.b"}}})
	}
	if _, err := h.store.Commit(t.Context(), g, das.Raw{Key: "k"}); err != nil {
		t.Fatal(err)
	}
}

// files returns each file with its robots.
func (h *house) files(t *testing.T) string {
	t.Helper()
	var out []string
	for o, err := range h.objects.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := h.objects.Get(t.Context(), o.Key, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		robots := ""
		for _, r := range dasfiletest.Read(t, b) {
			robots += " " + r.Thing.Serial()
		}
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(o.Key, Root), ".parquet")+robots)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func (h *house) keep(t *testing.T, now time.Time, want string) {
	t.Helper()
	if err := h.Keep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if got := h.files(t); got != want {
		t.Errorf("at %s: %s\nwant %s", now.Format(time.RFC3339), got, want)
	}
}

// TestKeep: hours that are over get a file, once; old files go; off, all go.
func TestKeep(t *testing.T) {
	h := newHouse(t, 1)
	h.put(t, noon.Add(-23*time.Hour), "vic:1")
	h.put(t, noon.Add(-3*time.Hour+time.Minute), "vic:1", "vic:2")
	h.put(t, noon.Add(-time.Microsecond), "vic:3")
	h.put(t, noon, "vic:4")
	h.keep(t, noon.Add(9*time.Minute), "2026-11-20/13 1; 2026-11-21/09 1 2")
	h.keep(t, noon.Add(10*time.Minute), "2026-11-20/13 1; 2026-11-21/09 1 2; 2026-11-21/11 3")
	h.keep(t, noon.Add(10*time.Minute), "2026-11-20/13 1; 2026-11-21/09 1 2; 2026-11-21/11 3")
	h.keep(t, noon.Add(3*time.Hour), "2026-11-21/09 1 2; 2026-11-21/11 3; 2026-11-21/12 4")
	h.Files = New(h.objects, h.store, 0, h.log)
	h.keep(t, noon.Add(3*time.Hour), "")
}

// TestDrop: the files with events of an erased stretch go, and are made again without them; others stay as they are.
func TestDrop(t *testing.T) {
	h := newHouse(t, 2)
	for hour := range 4 {
		h.put(t, noon.Add(time.Duration(hour)*time.Hour), "vic:1")
		if hour%2 == 0 {
			h.put(t, noon.Add(time.Duration(hour)*time.Hour+time.Minute), "vic:2")
		}
	}
	now := noon.Add(5 * time.Hour)
	h.keep(t, now, "2026-11-21/12 1 2; 2026-11-21/13 1; 2026-11-21/14 1 2; 2026-11-21/15 1")
	s := thing.Stretch{Thing: "vic:2", Since: noon, Until: noon.Add(time.Hour)}
	if _, err := h.store.BeginErase(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n, err := h.Drop(t.Context(), s); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if got, want := h.files(t), "2026-11-21/13 1; 2026-11-21/14 1 2; 2026-11-21/15 1"; got != want {
		t.Errorf("dropped: %s; want %s", got, want)
	}
	h.keep(t, now, "2026-11-21/12 1; 2026-11-21/13 1; 2026-11-21/14 1 2; 2026-11-21/15 1") // its events are in Postgres still
	s = thing.Stretch{Thing: "vic:1", Since: noon.Add(time.Hour), Until: noon.Add(2 * time.Hour)}
	if _, err := h.store.BeginErase(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for range 2 { // an erasure that is killed comes again
		if _, err := h.Drop(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	h.keep(t, now, "2026-11-21/12 1; 2026-11-21/14 1 2; 2026-11-21/15 1")
}

// failing is a bucket that refuses what is put below a key.
type failing struct {
	*blob.Store
	below string
	tries *[]string // keys that were put
}

func (f failing) Put(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions) error {
	if f.tries != nil {
		*f.tries = append(*f.tries, key)
	}
	if strings.HasPrefix(key, f.below) {
		return fmt.Errorf("away")
	}
	return f.Store.Put(ctx, key, body, size, o)
}

// TestBucketAway: no file is missing for good.
func TestBucketAway(t *testing.T) {
	h := newHouse(t, 1)
	h.put(t, noon, "vic:1")
	h.Files = New(failing{Store: h.objects}, h.store, 1, h.log)
	if err := h.Keep(t.Context(), noon.Add(2*time.Hour)); err == nil || !strings.Contains(err.Error(), "parquet/2026-11-21/12.parquet: away") {
		t.Errorf("%v", err)
	}
	h.Files = New(h.objects, h.store, 1, h.log)
	h.keep(t, noon.Add(2*time.Hour), "2026-11-21/12 1")
}

// An hour that cannot be written holds up no other, and comes last the next time: it may take all the time of a run.
func TestHourThatFails(t *testing.T) {
	h := newHouse(t, 1)
	for i := range 3 {
		h.put(t, noon.Add(time.Duration(i)*time.Hour), "vic:1")
	}
	var tries []string
	const bad = Root + "2026-11-21/14.parquet"
	h.Files = New(failing{h.objects, bad, &tries}, h.store, 1, h.log)
	if err := h.Keep(t.Context(), noon.Add(4*time.Hour)); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("%v", err)
	}
	if got, want := h.files(t), "2026-11-21/12 1; 2026-11-21/13 1"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	h.put(t, noon.Add(-time.Hour), "vic:1") // an hour without a file, older than the bad one
	h.Files.empty = map[string]bool{}
	tries = nil
	if err := h.Keep(t.Context(), noon.Add(4*time.Hour)); err == nil || !slices.Equal(tries, []string{Root + "2026-11-21/11.parquet", bad}) {
		t.Errorf("%v; tried %q", err, tries)
	}
}
