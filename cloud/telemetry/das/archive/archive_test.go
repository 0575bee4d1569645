package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/archive"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/blob"
	"kennel/infra/blob/blobtest"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ever = thing.Stretch{Since: noon.Add(-time.Hour), Until: noon.Add(6 * time.Hour)}
	old  = noon.AddDate(-1, 0, 0)
)

// house is an archive in a bucket and a database of its own.
type house struct {
	*archive.Archive
	objects *cutter
	ledger  *daspg.Store
	robots  []thing.ID

	hours, each int // that fill stores, and objects of an hour
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{objects: &cutter{Store: blobtest.New(t)}, ledger: daspg.Open(pgtest.New(t)), hours: 3, each: 4}
	h.Archive = archive.New(h.objects, h.ledger, slog.New(slog.NewTextHandler(t.Output(), nil)))
	for i := range 9 { // more than shards: some share one
		h.robots = append(h.robots, thing.ID(fmt.Sprintf("vic:%08x", i)))
	}
	return h
}

// cutter is a bucket whose writes and deletions fail after some of them, as if the process had been killed.
type cutter struct {
	*blob.Store
	left  atomic.Int64 // 0: it never ends
	calls atomic.Int64
	each  func(key string) // before each Get; may be nil
	fails string           // Gets of keys that begin so fail; "": none
}

var errCut = errors.New("killed")

func (c *cutter) step() error {
	c.calls.Add(1)
	if c.left.Load() > 0 && c.left.Add(-1) == 0 {
		c.left.Store(1) // dead from now on
		return errCut
	}
	return nil
}

func (c *cutter) Put(ctx context.Context, key string, body io.Reader, size int64, o blob.PutOptions) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Store.Put(ctx, key, body, size, o)
}

func (c *cutter) Delete(ctx context.Context, key string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Store.Delete(ctx, key)
}

func (c *cutter) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, blob.Info, error) {
	if c.each != nil {
		c.each(key)
	}
	if c.fails != "" && strings.HasPrefix(key, c.fails) {
		return nil, blob.Info{}, errCut
	}
	return c.Store.Get(ctx, key, offset, length)
}

var _ interface {
	List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error]
} = (*cutter)(nil)

// put stores one loose object with a batch of each of these robots.
func (h *house) put(t *testing.T, key string, at time.Time, text string, robots ...thing.ID) {
	t.Helper()
	var body []byte
	for _, id := range robots {
		body = das.AppendRaw(body, das.RawBatch{Thing: id, Received: at, Payload: []byte(text + " of " + string(id))})
	}
	if err := h.objects.Store.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// fill stores loose objects of some hours, the last of each as a former release did, and returns how many.
func (h *house) fill(t *testing.T) (n int) {
	t.Helper()
	for hour := range h.hours {
		for i := range h.each {
			at := noon.Add(time.Duration(hour)*time.Hour + time.Duration(i)*time.Minute)
			key := das.RawKey(at)
			if i == h.each-1 {
				key = fmt.Sprintf("das/2026-11-21/former%d", hour)
			}
			h.put(t, key, at, fmt.Sprintf("batch %d-%d", hour, i), h.robots...)
			n++
		}
	}
	return n
}

// all returns every batch of every robot by the way of a reader; each twice is an error.
func (h *house) all(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, id := range h.robots {
		s := ever
		s.Thing = id
		if err := h.Each(t.Context(), s, func(b das.RawBatch) error {
			out = append(out, fmt.Sprintf("%s %s %s", b.Thing, b.Received.Format(time.RFC3339Nano), b.Payload))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	if twice := len(out) - len(slices.Compact(slices.Clone(out))); twice > 0 {
		t.Errorf("%d batches are read twice", twice)
	}
	return out
}

// stored returns how many objects there are, and how many batches are in them, those that are there twice counted twice.
func (h *house) stored(t *testing.T) (keys []string, batches int) {
	t.Helper()
	for o, err := range h.objects.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := h.objects.Store.Get(t.Context(), o.Key, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := das.ReadRaw(body, func(das.RawBatch) error { batches++; return nil }); err != nil {
			t.Errorf("%s: %v", o.Key, err)
		}
		_ = body.Close() // only read
		keys = append(keys, o.Key)
	}
	return keys, batches
}

func (h *house) keep(t *testing.T) archive.Report {
	t.Helper()
	r, err := h.Keep(t.Context(), noon.AddDate(0, 0, 1), old)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Objects of an hour become one for each shard, whatever they were called; done twice it is done once; what comes late is joined to it.
func TestJoin(t *testing.T) {
	h := newHouse(t)
	n := h.fill(t)
	want := h.all(t)
	if len(want) != n*len(h.robots) {
		t.Fatalf("%d batches, want %d", len(want), n*len(h.robots))
	}
	// An hour that has not ended for long is left alone.
	if r, err := h.Keep(t.Context(), noon.Add(time.Hour+time.Minute), old); err != nil || r != (archive.Report{}) {
		t.Errorf("at once: %+v %v", r, err)
	}
	r := h.keep(t)
	keys, batches := h.stored(t)
	if len(keys) > 3*8 || len(keys) < 3*4 || r.Joined < n || batches != len(want) || slices.ContainsFunc(keys, func(k string) bool { return len(k) != len("das/2026-11-21/12/0-")+32 }) {
		t.Errorf("%+v, %d batches in %q", r, batches, keys)
	}
	if got := h.all(t); !slices.Equal(got, want) {
		t.Errorf("%d batches, want %d", len(got), len(want))
	}
	if r := h.keep(t); r != (archive.Report{}) {
		t.Errorf("once more: %+v", r)
	}
	h.put(t, das.RawKey(noon), noon, "batch 0-0", h.robots[0]) // moved to S3 a second time after a kill
	h.put(t, das.RawKey(noon), noon, "late", h.robots[0])
	h.keep(t)
	if again, batches := h.stored(t); len(again) != len(keys) || batches != len(want)+1 {
		t.Errorf("%d batches in %q", batches, again)
	}
	if got := h.all(t); len(got) != len(want)+1 {
		t.Errorf("%d batches, want one more than %d", len(got), len(want))
	}
}

// Killed before every single write and deletion: at no moment a batch is lost or read twice, and the next run leaves each stored once.
func TestJoinIsKilled(t *testing.T) {
	h := newHouse(t)
	h.robots, h.hours, h.each = h.robots[:2], 2, 3
	n := h.fill(t)
	want := h.all(t)
	fresh := true // no killed run was before
	for cut := int64(1); ; cut++ {
		h.objects.left.Store(cut)
		_, err := h.Keep(t.Context(), noon.AddDate(0, 0, 1), old)
		h.objects.left.Store(0)
		if err == nil && fresh {
			break
		}
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if got := h.all(t); !slices.Equal(got, want) {
			t.Fatalf("killed before step %d: %d batches, want %d", cut, len(got), len(want))
		}
		if fresh = err == nil || cut%4 != 0; !fresh {
			continue // the next run meets what this one left
		}
		h.keep(t)
		if _, batches := h.stored(t); batches != len(want) {
			t.Fatalf("killed before step %d, then whole: %d batches are stored, want %d", cut, batches, len(want))
		}
		if _, err := h.objects.DeleteAll(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		h.fill(t)
	}
	h.objects.left.Store(0)
	if n == 0 || h.objects.calls.Load() < 40 {
		t.Errorf("only %d steps", h.objects.calls.Load())
	}
}

// Readers that read while objects are joined under their hands see every batch, once.
func TestReadersWhileJoining(t *testing.T) {
	h := newHouse(t)
	h.fill(t)
	want := h.all(t)
	var once sync.Once
	reader := archive.New(&cutter{Store: h.objects.Store, each: func(string) {
		once.Do(func() { h.keep(t) }) // between the reader's list and its first read
	}}, h.ledger, slog.New(slog.DiscardHandler))
	var got []string
	s := ever
	s.Thing = h.robots[0]
	if err := reader.Each(t.Context(), s, func(b das.RawBatch) error { got = append(got, string(b.Payload)); return nil }); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(got); len(got) != len(want)/len(h.robots) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("%d batches, want %d: %q", len(got), len(want)/len(h.robots), got)
	}
}

// erase erases like das.Personal does.
func (h *house) erase(ctx context.Context, s thing.Stretch) (n int, err error) {
	upto, err := h.ledger.BeginErase(ctx, s)
	if err != nil {
		return 0, err
	}
	err = h.Erase(ctx, s, upto, func(ctx context.Context, upto time.Time, batches int) error {
		n += batches
		return h.ledger.ErasedUpTo(ctx, s, upto)
	})
	return n, err
}

// An erasure takes the batches of one robot of a time, loose ones, joined ones and those of a former release, and no others; killed at each step it
// continues where it was; with compactions before, between and after.
func TestErase(t *testing.T) {
	for _, joined := range []bool{false, true} {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("joined %v, killed %v", joined, kill), func(t *testing.T) {
				h := newHouse(t)
				h.fill(t)
				if joined {
					h.keep(t)
				}
				s := thing.Stretch{Thing: h.robots[3], Since: noon.Add(time.Minute), Until: noon.Add(2*time.Hour + 2*time.Minute)}
				want := slices.DeleteFunc(h.all(t), func(line string) bool {
					f := strings.Fields(line)
					at, err := time.Parse(time.RFC3339Nano, f[1])
					return err == nil && s.Holds(thing.ID(f[0]), at)
				})
				n := 0
				for cut := int64(1); ; cut++ {
					if kill {
						h.objects.left.Store(cut)
					}
					m, err := h.erase(t.Context(), s)
					h.objects.left.Store(0)
					if n += m; err == nil {
						break
					}
					if !errors.Is(err, errCut) || cut > 200 {
						t.Fatal(err)
					}
					if cut%4 == 0 {
						h.keep(t)
					}
				}
				if got := h.all(t); !slices.Equal(got, want) {
					t.Errorf("%d batches are left, want %d", len(got), len(want))
				}
				if !kill && n != 9 {
					t.Errorf("%d batches were erased, want 9", n)
				}
				h.keep(t)
				_, batches := h.stored(t)
				if got := h.all(t); !slices.Equal(got, want) || batches != len(want) {
					t.Errorf("joined afterwards: %d batches, %d stored, want %d", len(got), batches, len(want))
				}
				// A late process writes a batch again: it is not kept.
				h.put(t, das.RawKey(noon.Add(time.Hour)), noon.Add(time.Hour), "batch 1-0", s.Thing)
				h.keep(t)
				if got := h.all(t); !slices.Equal(got, want) {
					t.Errorf("a compaction wrote what is erased")
				}
			})
		}
	}
}

// Erasures and compactions at once, in several processes: what is erased stays erased, and nothing else is lost.
func TestEraseWhileJoining(t *testing.T) {
	h := newHouse(t)
	h.fill(t)
	all := h.all(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 3 {
				if _, err := h.Keep(t.Context(), noon.AddDate(0, 0, 1), old); err != nil {
					t.Error(err)
				}
			}
		})
	}
	gone := map[thing.ID]bool{}
	for _, i := range rand.Perm(len(h.robots))[:4] {
		s := ever
		s.Thing = h.robots[i]
		gone[s.Thing] = true
		wg.Go(func() {
			if _, err := h.erase(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h.keep(t)
	want := slices.DeleteFunc(all, func(line string) bool { return gone[thing.ID(strings.Fields(line)[0])] })
	if got := h.all(t); !slices.Equal(got, want) {
		t.Errorf("%d batches are left, want %d; without %v", len(got), len(want), slices.Collect(maps.Keys(gone)))
	}
}

// A run without time does a part and says so; the next ones come to the end.
func TestEraseInParts(t *testing.T) {
	h := newHouse(t)
	h.fill(t)
	s := ever
	s.Thing = h.robots[0]
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than the end of a run takes
	defer cancel()
	if _, err := h.erase(ctx, s); errs.CodeOf(err) != errs.CodeAgain {
		t.Errorf("without time: %v", err)
	}
	if n, err := h.erase(t.Context(), s); err != nil || n != 12 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := h.erase(t.Context(), s); err != nil || n != 0 {
		t.Errorf("again: %d, %v", n, err)
	}
}

// Old objects end, by the hour that they are of, whatever their kind; others stay.
func TestExpire(t *testing.T) {
	h := newHouse(t)
	h.fill(t)
	h.keep(t)
	h.put(t, das.RawKey(noon), noon, "loose", h.robots[0])
	other := "ota/archive"
	h.put(t, other, noon, "no event", h.robots[0])
	h.put(t, "das/README", noon, "no event", h.robots[0])
	if _, err := h.Keep(t.Context(), noon.AddDate(0, 0, 1), noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	keys, _ := h.stored(t)
	if slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "das/2026-11-21/12/") }) || !slices.Contains(keys, other) || !slices.Contains(keys, "das/README") || len(keys) < 6 {
		t.Errorf("after an hour ended: %q", keys)
	}
	if _, err := h.Keep(t.Context(), noon.AddDate(0, 0, 1), noon.AddDate(0, 0, 2)); err != nil {
		t.Fatal(err)
	}
	if keys, _ := h.stored(t); len(keys) != 2 {
		t.Errorf("after all ended: %q", keys)
	}
}

// A damaged object holds up neither the others nor an erasure, which takes its unreadable end away.
func TestDamaged(t *testing.T) {
	h := newHouse(t)
	h.fill(t)
	want := len(h.all(t))
	body := das.AppendRaw(nil, das.RawBatch{Thing: h.robots[1], Received: noon, Payload: []byte("whole")})
	body = append(body, `{"thing":"vic:1","received":"2026-11-21T12:00:00Z","bytes":99}`+"\nshort"...)
	key := "das/2026-11-21/12/DAMAGED"
	if err := h.objects.Store.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	h.keep(t)
	for o, err := range h.objects.List(t.Context(), "das/2026-11-21/12/D") {
		if err != nil || o.Key != key {
			t.Error(o, err)
		}
	}
	s := ever
	s.Thing = h.robots[0]
	if _, err := h.erase(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := h.all(t); len(got) != want-12+1 {
		t.Errorf("%d batches, want %d", len(got), want-12+1)
	}
}

// budget is a context whose time is spent by calls of spend, not by the clock.
type budget struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func newBudget(parent context.Context, left time.Duration) *budget {
	ctx, end := context.WithCancel(parent)
	b := &budget{Context: ctx, end: end}
	b.left.Store(int64(left))
	return b
}

func (b *budget) Deadline() (time.Time, bool) {
	return time.Now().Add(time.Duration(b.left.Load())), true
}

func (b *budget) spend(d time.Duration) {
	if b.left.Add(-int64(d)) <= 0 {
		b.end()
	}
}

// An hour with more objects than one run can read is joined by several runs, and the hours after it are too.
func TestJoinOfManyObjects(t *testing.T) {
	h := newHouse(t)
	h.robots = h.robots[:2]
	for i := range 60 {
		h.put(t, das.RawKey(noon), noon, fmt.Sprint("batch ", i), h.robots...)
	}
	h.put(t, das.RawKey(noon.Add(time.Hour)), noon.Add(time.Hour), "later", h.robots...)
	want := h.all(t)
	runs := 0
	for loose := true; loose; runs++ {
		if runs == 20 {
			t.Fatalf("loose objects are left after %d runs", runs)
		}
		ctx := newBudget(t.Context(), 30*time.Second)
		h.objects.each = func(string) { ctx.spend(time.Second) }
		if _, err := h.Keep(ctx, noon.AddDate(0, 0, 1), old); err != nil {
			t.Errorf("run %d: %v", runs, err)
		}
		h.objects.each = nil
		ctx.end()
		keys, _ := h.stored(t)
		loose = slices.ContainsFunc(keys, func(k string) bool { return len(k) != len("das/2026-11-21/12/0-")+32 })
	}
	if got := h.all(t); !slices.Equal(got, want) {
		t.Errorf("%d batches, want %d", len(got), len(want))
	}
	t.Logf("%d runs", runs)
}

// An hour that cannot be joined holds up neither the hours after it nor what has expired.
func TestHourThatFails(t *testing.T) {
	h := newHouse(t)
	h.fill(t)
	h.objects.fails = "das/2026-11-21/12/"
	if _, err := h.Keep(t.Context(), noon.AddDate(0, 0, 1), old); !errors.Is(err, errCut) {
		t.Errorf("err = %v; want the one of the bucket", err)
	}
	keys, _ := h.stored(t)
	if slices.ContainsFunc(keys, func(k string) bool {
		return strings.HasPrefix(k, "das/2026-11-21/14/") && len(k) != len("das/2026-11-21/14/0-")+32
	}) {
		t.Errorf("the last hour was not joined: %q", keys)
	}
}
