package das

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// memory is a Writer that can fail.
type memory struct {
	mu     sync.Mutex
	known  map[Key]Seqs
	groups []int // items of each commit
	raws   []Raw
	fail   func(Group) error
}

func (m *memory) Commit(_ context.Context, g Group, raw Raw) (Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(g); err != nil {
			return Outcome{}, err
		}
	}
	if m.known == nil {
		m.known = map[Key]Seqs{}
	}
	_, out := Plan(g.Items, m.known)
	m.groups = append(m.groups, len(g.Items))
	m.raws = append(m.raws, raw)
	return out, nil
}

func (m *memory) MoveRaw(ctx context.Context, put func(ctx context.Context, key string, body []byte) error) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range m.raws {
		if r.Body != nil {
			if err := put(ctx, r.Key, r.Body); err != nil {
				return false, err
			}
			m.raws[i].Body = nil
			return true, nil
		}
	}
	return false, nil
}

// bucket is S3 that can be away.
type bucket struct {
	mu   sync.Mutex
	down bool
	has  map[string][]byte
}

func (b *bucket) Put(_ context.Context, key string, body []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errors.New("no S3")
	}
	if b.has == nil {
		b.has = map[string][]byte{}
	}
	b.has[key] = body
	return nil
}

type consentFunc func(thing.ID) (bool, error)

func (f consentFunc) Allowed(_ context.Context, id thing.ID) (bool, error) { return f(id) }

// harness runs an Ingester in a bubble and collects answers by batch.
type harness struct {
	*Ingester
	t       *testing.T
	mu      sync.Mutex
	answers map[string]ack.Ack
	stop    func()
}

func start(t *testing.T, c Config) *harness {
	t.Helper()
	c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	if c.Blobs == nil {
		c.Blobs = &bucket{}
	}
	in, err := NewIngester(c)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{Ingester: in, t: t, answers: map[string]ack.Ack{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = in.Run(ctx) }() // nil when ctx ends
	h.stop = func() { cancel(); <-done }
	return h
}

func (h *harness) send(id thing.ID, name string, first, last uint64) {
	h.t.Helper()
	var evs []events.Event
	for seq := first; seq <= last; seq++ {
		evs = append(evs, events.Event{Seq: seq, Level: events.Info, RobotID: id.Serial(), BootID: "b", Name: "robot.boot"})
	}
	msg, err := events.EncodeBatch(name, evs)
	if err != nil {
		h.t.Fatal(err)
	}
	h.sendRaw(id, msg)
}

func (h *harness) sendRaw(id thing.ID, msg []byte) {
	h.Handle(h.t.Context(), id, msg, func(a ack.Ack) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if old, ok := h.answers[a.Batch]; ok {
			h.t.Errorf("batch %s answered twice: %+v, %+v", a.Batch, old, a)
		}
		h.answers[a.Batch] = a
	})
}

// answer takes the answer of one batch, which must be there.
func (h *harness) answer(name string) ack.Ack {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.answers[name]
	if !ok {
		h.t.Fatalf("batch %s has no answer", name)
	}
	delete(h.answers, name)
	return a
}

func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := &memory{}, &bucket{}
		h := start(t, Config{Writer: w, Blobs: b})
		for i := range 50 {
			h.send(thing.ID(fmt.Sprint("vic:", i)), fmt.Sprint("batch", i), 1, 3)
		}
		time.Sleep(time.Second)
		h.stop()
		for i := range 50 {
			if a := h.answer(fmt.Sprint("batch", i)); a.Status != ack.Stored {
				t.Errorf("%+v", a)
			}
		}
		if len(w.groups) > 3 {
			t.Errorf("50 batches at once took transactions of %v", w.groups)
		}
		n := 0
		for key, body := range b.has {
			if !strings.HasPrefix(key, "das/"+time.Now().UTC().Format(time.DateOnly)+"/") {
				t.Errorf("raw object %s", key)
			}
			if err := ReadRaw(strings.NewReader(string(body)), func(r RawBatch) error {
				_, err := events.DecodeBatch(r.Payload)
				n++
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		if s := h.Stats(); n != 50 || s.Stored != 150 || s.Waiting != 0 {
			t.Errorf("%d raw batches, %+v", n, s)
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		allowed := false
		w := &memory{fail: func(g Group) error {
			for _, it := range g.Items {
				if it.Thing == "vic:bad" {
					return errs.New(errs.Invalid, "the database refuses the events")
				}
			}
			return nil
		}}
		h := start(t, Config{Writer: w, Consent: consentFunc(func(id thing.ID) (bool, error) {
			if id == "vic:no" {
				asked++
				return allowed, nil
			}
			return true, nil
		})})
		h.send("vic:ok", "a", 1, 2)
		h.send("vic:bad", "b", 1, 2) // what no check foresaw
		h.send("vic:ok2", "c", 1, 2)
		h.send("vic:no", "d", 1, 2)
		h.sendRaw("vic:1", mustEncode(t, "e", "2")) // another robot's serial
		h.sendRaw("vic:1", []byte(`{"v":1,"batch":"f","robot_id":"1","boot_id":"b","first":1,"last":1,"count":1}`+"\nnonsense"))
		h.sendRaw("vic:1", []byte("nonsense")) // names no batch: no one to answer
		time.Sleep(time.Second)
		for name, want := range map[string]struct {
			status ack.Status
			code   string
		}{
			"a": {ack.Stored, ""}, "b": {ack.Refused, CodeUnstorable}, "c": {ack.Stored, ""}, "d": {ack.Refused, CodeOptedOut},
			"e": {ack.Refused, CodeRobotID}, "f": {ack.Refused, "encoding"},
		} {
			if a := h.answer(name); a.Status != want.status || a.Code != want.code || (a.Status == ack.Refused && a.Reason == "") {
				t.Errorf("%s: %+v; want %v", name, a, want)
			}
		}
		// The answer is remembered until it changes.
		allowed = true
		h.send("vic:no", "g", 1, 2)
		time.Sleep(time.Second)
		if a := h.answer("g"); a.Code != CodeOptedOut || asked != 1 {
			t.Errorf("%+v after %d questions", a, asked)
		}
		h.ConsentChanged("vic:no")
		h.send("vic:no", "h", 1, 2)
		time.Sleep(time.Second)
		if a := h.answer("h"); a.Status != ack.Stored {
			t.Errorf("%+v", a)
		}
		h.stop()
		if len(h.answers) != 0 {
			t.Errorf("more answers: %v", h.answers)
		}
	})
}

func mustEncode(t *testing.T, name, serial string) []byte {
	t.Helper()
	msg, err := events.EncodeBatch(name, []events.Event{{Seq: 1, Level: events.Info, RobotID: serial, BootID: "b", Name: "a.b"}})
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

// Postgres away for ten minutes: robots are told to wait, longer and longer, hardly any batch is tried, and after it all is as before
// (issue 3, "what must hold" 4).
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		down := true
		w := &memory{fail: func(Group) error {
			if tries++; down {
				return errs.RetryLater(time.Second, "the database is not available", nil)
			}
			return nil
		}}
		h := start(t, Config{Writer: w})
		var longest time.Duration
		for s := range 600 {
			for i := range 5 {
				name := fmt.Sprint("s", s, "-", i)
				h.send(thing.ID(fmt.Sprint("vic:", i)), name, 1, 3)
				time.Sleep(200 * time.Millisecond)
				a := h.answer(name)
				if a.Status != ack.RetryAfter || a.After <= 0 {
					t.Fatalf("%+v", a)
				}
				if s > 300 {
					longest = max(longest, time.Duration(a.After))
					if time.Duration(a.After) < maxPause/2 {
						t.Fatalf("after %d s: pause of only %v", s, time.Duration(a.After))
					}
				}
			}
		}
		if longest > maxPause*3/2 || h.Stats().Waiting != 0 || tries > 700 {
			t.Errorf("longest pause %v, %d tries, %+v", longest, tries, h.Stats())
		}
		down = false
		time.Sleep(2 * time.Second)
		h.send("vic:1", "probe", 1, 3)
		time.Sleep(time.Second)
		if a := h.answer("probe"); a.Status != ack.Stored {
			t.Errorf("after the outage: %+v", a)
		}
		h.send("vic:2", "next", 1, 3)
		time.Sleep(time.Second)
		if a := h.answer("next"); a.Status != ack.Stored {
			t.Errorf("then: %+v", a)
		}
		h.stop()
	})
}

// A database that hangs: what waits is bounded, the rest is told to wait at once.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		w := &memory{fail: func(Group) error { <-hang; return nil }}
		h := start(t, Config{Writer: w, QueueBytes: 2000, Committers: 1})
		for i := range 100 {
			h.send("vic:1", fmt.Sprint("b", i), uint64(1+3*i), uint64(3+3*i))
			time.Sleep(time.Millisecond)
		}
		if n := h.Stats().Waiting; n > 2000 || n == 0 {
			t.Errorf("%d bytes wait; want at most 2000", n)
		}
		h.mu.Lock()
		turned := len(h.answers)
		h.mu.Unlock()
		if turned < 80 {
			t.Errorf("%d of 100 were turned away", turned)
		}
		close(hang)
		time.Sleep(time.Second)
		h.stop()
		if len(h.answers) != 100 {
			t.Errorf("%d answers; want 100", len(h.answers))
		}
	})
}

// S3 away: events are stored all the same, the raw batches wait in the database and move later.
func TestBlobsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := &memory{}, &bucket{down: true}
		h := start(t, Config{Writer: w, Blobs: b})
		for i := range 3 {
			name := fmt.Sprint("b", i)
			h.send("vic:1", name, uint64(1+3*i), uint64(3+3*i))
			time.Sleep(time.Second)
			if a := h.answer(name); a.Status != ack.Stored {
				t.Errorf("%+v", a)
			}
		}
		b.mu.Lock()
		b.down = false
		b.mu.Unlock()
		time.Sleep(skipBlobs)
		h.stop()
		for _, r := range w.raws {
			if r.Body != nil || b.has[r.Key] == nil {
				t.Errorf("raw batch %s is not in S3", r.Key)
			}
		}
		if len(w.raws) != 3 || h.Stats().RawToDB != 3 {
			t.Errorf("%d raws, %+v", len(w.raws), h.Stats())
		}
	})
}

// A panic delays the robots of that group only.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		w := &memory{fail: func(Group) error {
			if broken {
				panic("a bug")
			}
			return nil
		}}
		h := start(t, Config{Writer: w})
		h.send("vic:1", "a", 1, 1)
		time.Sleep(time.Second)
		if a := h.answer("a"); a.Status != ack.RetryAfter {
			t.Errorf("%+v", a)
		}
		broken = false
		h.send("vic:1", "b", 1, 1)
		time.Sleep(time.Second)
		if a := h.answer("b"); a.Status != ack.Stored {
			t.Errorf("%+v", a)
		}
		h.stop()
	})
}

// The hash that is stored in place of a profile id is the same for each event of a profile, also for those that begin and end its session.
func TestProfilesAreHidden(t *testing.T) {
	const id = "MTIzNDU2Nzg5MDEyMzQ1Ng=="
	p := NewProfiles([]byte(strings.Repeat("k", 32)))
	in := &Ingester{Config: Config{Profile: p.Key}}
	evs := []events.Event{{Name: "a", ProfileID: id, S1: id}, {Name: "profile_id.start", S1: id}, {Name: "profile_id.stop", ProfileID: id, S1: id}, {Name: "b"}}
	for i := range evs {
		in.hideProfile(&evs[i])
	}
	want := []events.Event{{Name: "a", ProfileID: p.Key(id), S1: id}, {Name: "profile_id.start", S1: p.Key(id)}, {Name: "profile_id.stop", ProfileID: p.Key(id), S1: p.Key(id)}, {Name: "b"}}
	if !slices.Equal(evs, want) || strings.Contains(p.Key(id), id) || !p.Keyed(p.Key(id)) {
		t.Errorf("%+v", evs)
	}
}
