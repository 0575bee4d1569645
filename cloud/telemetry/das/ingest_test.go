package das

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/identity/consent"
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

// permits is a consent.Ask with an answer for each robot; without one it has no owner, and had none before.
func permits(f func(id thing.ID, p *consent.Permit) error) consent.Ask {
	return func(_ context.Context, ids ...thing.ID) (consent.Hold, error) {
		h := consent.Hold{At: time.Now(), Asked: time.Now(), Permits: map[thing.ID]consent.Permit{}, Release: func() {}}
		for _, id := range ids {
			p := consent.Permit{Allowed: true, Owned: 1 << 60, Settled: 1 << 60}
			if err := f(id, &p); err != nil {
				return consent.Hold{}, err
			}
			h.Permits[id] = p
		}
		return h, nil
	}
}

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
		allowed, changed := false, time.Now()
		w := &memory{fail: func(g Group) error {
			for _, it := range g.Items {
				if it.Thing == "vic:bad" {
					return errs.New(errs.Invalid, "the database refuses the events")
				}
			}
			return nil
		}}
		h := start(t, Config{Writer: w, Consent: permits(func(id thing.ID, p *consent.Permit) error {
			switch id {
			case "vic:no":
				p.Allowed = allowed
			case "vic:sold":
				p.Owned = time.Since(changed)
			case "vic:set":
				p.Settled = time.Since(changed)
			}
			return nil
		})})
		h.send("vic:ok", "a", 1, 2)
		h.send("vic:bad", "b", 1, 2) // what no check foresaw
		h.send("vic:ok2", "c", 1, 2)
		h.send("vic:no", "d", 1, 2)
		h.send("vic:sold", "sold", 1, 2)
		h.send("vic:set", "set", 1, 2)
		changed = time.Now().Add(time.Millisecond)  // while they wait
		h.sendRaw("vic:1", mustEncode(t, "e", "2")) // another robot's serial
		h.sendRaw("vic:1", []byte(`{"v":1,"batch":"f","robot_id":"1","boot_id":"b","first":1,"last":1,"count":1}`+"\nnonsense"))
		h.sendRaw("vic:1", []byte("nonsense")) // names no batch: no one to answer
		time.Sleep(time.Second)
		for name, want := range map[string]struct {
			status ack.Status
			code   string
		}{
			"a": {ack.Stored, ""}, "b": {ack.Refused, CodeUnstorable}, "c": {ack.Stored, ""}, "d": {ack.Refused, consent.CodeOptedOut},
			"sold": {ack.Refused, consent.CodeOwnerChanged}, "set": {ack.RetryAfter, ""},
			"e": {ack.Refused, CodeRobotID}, "f": {ack.Refused, "encoding"},
		} {
			if a := h.answer(name); a.Status != want.status || a.Code != want.code || (a.Status == ack.Refused && a.Reason == "") {
				t.Errorf("%s: %+v; want %v", name, a, want)
			}
		}
		allowed = true // each batch asks
		h.send("vic:no", "g", 1, 2)
		h.send("vic:sold", "h", 1, 2)
		time.Sleep(time.Second)
		for _, name := range []string{"g", "h"} {
			if a := h.answer(name); a.Status != ack.Stored {
				t.Errorf("%+v", a)
			}
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
			h.send(thing.ID(fmt.Sprint("vic:", i)), fmt.Sprint("b", i), 1, 3)
			time.Sleep(time.Millisecond)
		}
		if n := h.Stats().Waiting; n > 2000 || n < 1000 {
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

// said are the robots that Paused was told of.
type said struct {
	mu  sync.Mutex
	all []string
}

func (s *said) paused(_ context.Context, id thing.ID, code, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, string(id)+" "+code)
}

func (s *said) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.all = nil }()
	return s.all
}

// TestShare: one robot that sends without end has its share of the queue: its next batch waits on the robot, others' come in. It is told so, and the operator once an
// hour (build 5 of the issue of ownerships).
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		w, told := &memory{fail: func(Group) error { <-hang; return nil }}, &said{}
		h := start(t, Config{Writer: w, QueueBytes: 64 << 10, Committers: 1, Paused: told.paused})
		for i := range 1000 {
			h.send("vic:flood", fmt.Sprint("f", i), uint64(1+3*i), uint64(3+3*i))
		}
		time.Sleep(time.Millisecond)
		if n := h.Stats().Waiting; n > 4<<10 || n < 3<<10 {
			t.Errorf("%d bytes of one robot wait; want nearly %d", n, 4<<10)
		}
		if a := h.answer("f999"); a.Status != ack.RetryAfter || a.Code != CodeShare || a.After <= 0 {
			t.Errorf("beyond its share: %+v", a)
		}
		if got := told.take(); !slices.Equal(got, []string{"vic:flood " + CodeShare}) {
			t.Errorf("told %q", got)
		}
		for i := range 10 {
			h.send(thing.ID(fmt.Sprint("vic:", i)), fmt.Sprint("b", i), 1, 3)
		}
		close(hang)
		time.Sleep(time.Second)
		for i := range 10 {
			if a := h.answer(fmt.Sprint("b", i)); a.Status != ack.Stored {
				t.Errorf("another robot's: %+v", a)
			}
		}
		h.send("vic:flood", "later", 4001, 4003)
		h.sendRaw("vic:flood", large(t, "large")) // larger than a share: it is alone
		time.Sleep(time.Second)
		if a := h.answer("later"); a.Status != ack.Stored {
			t.Errorf("once there is room: %+v", a)
		}
		h.send("vic:flood", "small", 5001, 5003)
		h.sendRaw("vic:flood", large(t, "second"))
		time.Sleep(time.Second)
		if a := h.answer("second"); a.Code != CodeShare {
			t.Errorf("a large one beside another: %+v", a)
		}
		h.sendRaw("vic:flood", large(t, "third"))
		time.Sleep(time.Second)
		if a := h.answer("third"); a.Status != ack.Stored {
			t.Errorf("a large one alone: %+v", a)
		}
		if s := h.Stats(); s.Share < 900 || s.Paced != 0 || s.Waiting != 0 || len(told.take()) != 0 {
			t.Errorf("%+v", s)
		}
		h.stop()
		if len(h.robots.waiting) != 0 {
			t.Errorf("%v wait", h.robots.waiting)
		}
	})
}

// large is a batch that does not compress below 8 KiB.
func large(t *testing.T, name string) []byte {
	t.Helper()
	noise := make([]byte, 6<<10)
	mathrand.NewChaCha8([32]byte{}).Read(noise)
	var evs []events.Event
	for i := range 40 {
		evs = append(evs, events.Event{Seq: uint64(10_000 + i), Level: events.Info, RobotID: "flood", BootID: "b", Name: "robot.noise", S1: hex.EncodeToString(noise[i*150 : i*150+150])})
	}
	msg, err := events.EncodeBatch(name, evs)
	if err != nil || len(msg) < 5<<10 {
		t.Fatalf("%d bytes, %v", len(msg), err)
	}
	return msg
}

// counted is a Usage.
type counted struct {
	mu   sync.Mutex
	days map[thing.ID]int64
	err  error
}

func (c *counted) Add(_ context.Context, sent map[thing.ID]int64) (map[thing.ID]int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[thing.ID]int64{}
	for id, n := range sent {
		c.days[id] += n
		out[id] = c.days[id]
	}
	return out, c.err
}

// TestDay: a robot that has sent its bytes of today over any wire, to any process, keeps the rest until tomorrow; it is told so each time, and the operator once an hour.
func TestDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, told := &counted{days: map[thing.ID]int64{}}, &said{}
		h := start(t, Config{Writer: &memory{}, Usage: c, MaxDay: 1000, Paused: told.paused})
		send := func(id thing.ID, name string, seq uint64) ack.Ack {
			t.Helper()
			h.send(id, name, seq, seq+2)
			time.Sleep(time.Second)
			return h.answer(name)
		}
		if a := send("vic:1", "a", 1); a.Status != ack.Stored {
			t.Errorf("%+v", a)
		}
		c.mu.Lock()
		n := c.days["vic:1"]
		c.days["vic:1"] = 1000 // by another process
		c.mu.Unlock()
		if n < 100 || n > 999 {
			t.Errorf("%d bytes are counted of three events", n)
		}
		if a := send("vic:1", "b", 4); a.Status != ack.Stored { // it is here already, and no later one follows
			t.Errorf("%+v", a)
		}
		for i, name := range []string{"c", "d"} {
			if a := send("vic:1", name, uint64(7+3*i)); a.Status != ack.RetryAfter || a.Code != CodeQuota || time.Duration(a.After) > time.Hour || a.After <= 0 {
				t.Errorf("beyond the day: %+v", a)
			}
		}
		if a := send("vic:2", "e", 1); a.Status != ack.Stored {
			t.Errorf("another robot's: %+v", a)
		}
		if got := told.take(); !slices.Equal(got, []string{"vic:1 " + CodeQuota}) || h.Stats().Quota != 2 {
			t.Errorf("told %q, %+v", got, h.Stats())
		}
		c.mu.Lock()
		c.days = map[thing.ID]int64{}
		c.mu.Unlock()
		time.Sleep(24 * time.Hour)
		if a := send("vic:1", "f", 13); a.Status != ack.Stored {
			t.Errorf("the next day: %+v", a)
		}
		c.err = errors.New("no database")
		if a := send("vic:1", "g", 16); a.Status != ack.Stored {
			t.Errorf("what cannot be counted: %+v", a)
		}
		h.stop()
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
