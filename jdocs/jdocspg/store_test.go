package jdocspg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocspg"
)

var (
	robot = thing.MustParse("vic:00e20100")
	other = thing.MustParse("vic:00e20101")
)

func TestStore(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *jdocspg.Store)
	}{
		{"absent", absent},
		{"text is kept byte for byte", textIsKept},
		{"versions count from 1", versionsCount},
		{"a stale put changes nothing", stale},
		{"a deleted document leaves its version", deleted},
		{"history is newest first", history},
		{"keys do not meet", keysDoNotMeet},
		{"list", list},
		{"writers at once: no version twice, no change lost", concurrent},
		{"creators at once: one is first", creators},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, jdocspg.New(pgtest.New(t))) })
	}
}

func key(t *testing.T, id thing.ID, name jdocs.Name) jdocs.Key {
	t.Helper()
	k, err := jdocs.NewKey("", id, name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func doc(version uint64, text string) jdocs.Doc {
	return jdocs.Doc{Version: version, FmtVersion: 1, JSON: text}
}

// put stores and demands the version that follows.
func put(t *testing.T, s *jdocspg.Store, k jdocs.Key, d jdocs.Doc, by string, want uint64) {
	t.Helper()
	if got, _, err := s.Put(t.Context(), k, d, d.FmtVersion, by); err != nil || got != want {
		t.Fatalf("put %s at %d: version %d, %v; want %d", k, d.Version, got, err, want)
	}
}

func absent(t *testing.T, s *jdocspg.Store) {
	k := key(t, robot, jdocs.RobotSettings)
	if got, err := s.Get(t.Context(), k); !errors.Is(err, jdocs.ErrNotFound) {
		t.Errorf("get: %+v, %v; want ErrNotFound", got, err)
	}
	if got, err := s.Revision(t.Context(), k, 1); !errors.Is(err, jdocs.ErrNotFound) {
		t.Errorf("revision: %+v, %v; want ErrNotFound", got, err)
	}
	if got, err := s.History(t.Context(), k, 10); err != nil || len(got) != 0 {
		t.Errorf("history: %+v, %v; want none", got, err)
	}
	if got, err := s.List(t.Context(), robot); err != nil || len(got) != 0 {
		t.Errorf("list: %+v, %v; want none", got, err)
	}
	if got, err := s.Delete(t.Context(), k, "test"); err != nil || got != 0 {
		t.Errorf("delete: %d, %v; want 0", got, err)
	}
	for _, v := range []uint64{1, math.MaxInt64, math.MaxUint64} {
		if _, got, err := s.Put(t.Context(), k, doc(v, "{}"), 9, "test"); !errors.Is(err, jdocs.ErrStale) || got.Version != 0 {
			t.Errorf("put at version %d: %d, %v; want 0, ErrStale", v, got.Version, err)
		}
	}
}

func textIsKept(t *testing.T, s *jdocspg.Store) {
	k := key(t, robot, jdocs.RobotSettings)
	want := jdocs.Doc{FmtVersion: 2, ClientMeta: "ключ", JSON: "{ \"b\":1.0,\n\t\"a\" : \"\\u0000 é <\", \"b\":2 }"}
	before := time.Now().Add(-time.Minute)
	put(t, s, k, want, "ann@example.com", 1)
	want.Version = 1
	for _, read := range []func() (jdocs.Revision, error){
		func() (jdocs.Revision, error) { return s.Get(t.Context(), k) },
		func() (jdocs.Revision, error) { return s.Revision(t.Context(), k, 1) },
	} {
		got, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if got.Doc != want || got.By != "ann@example.com" || got.Deleted {
			t.Errorf("got %+v, want %+v by ann@example.com", got, want)
		}
		if got.At.Before(before) || got.At.After(time.Now().Add(time.Minute)) {
			t.Errorf("accepted at %v, want about now", got.At)
		}
	}
}

func versionsCount(t *testing.T, s *jdocspg.Store) {
	k := key(t, robot, jdocs.RobotLifetimeStats)
	for v := range uint64(5) {
		put(t, s, k, doc(v, fmt.Sprint(v)), "test", v+1)
	}
	if got, err := s.Get(t.Context(), k); err != nil || got.Doc != doc(5, "4") {
		t.Errorf("got %+v, %v; want version 5 of text 4", got, err)
	}
}

func stale(t *testing.T, s *jdocspg.Store) {
	k := key(t, robot, jdocs.RobotSettings)
	put(t, s, k, doc(0, `"one"`), "test", 1)
	put(t, s, k, doc(1, `"two"`), "test", 2)
	for _, v := range []uint64{0, 1, 3, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		if _, got, err := s.Put(t.Context(), k, doc(v, `"late"`), 9, "test"); !errors.Is(err, jdocs.ErrStale) || got.Version != 2 {
			t.Errorf("put at version %d: %d, %v; want 2, ErrStale", v, got.Version, err)
		}
	}
	if got, err := s.Get(t.Context(), k); err != nil || got.Doc != doc(2, `"two"`) {
		t.Errorf("got %+v, %v; want text two at version 2", got, err)
	}
	if revs, err := s.History(t.Context(), k, 10); err != nil || len(revs) != 2 {
		t.Errorf("history of %d, %v; want 2", len(revs), err)
	}
}

func deleted(t *testing.T, s *jdocspg.Store) {
	k := key(t, robot, jdocs.RobotSettings)
	put(t, s, k, doc(0, `"one"`), "test", 1)
	if v, err := s.Delete(t.Context(), k, "ann"); err != nil || v != 2 {
		t.Fatalf("delete: %d, %v; want 2", v, err)
	}
	if v, err := s.Delete(t.Context(), k, "ann"); err != nil || v != 0 {
		t.Errorf("delete again: %d, %v; want 0", v, err)
	}
	if got, err := s.Get(t.Context(), k); !errors.Is(err, jdocs.ErrNotFound) {
		t.Errorf("get: %+v, %v; want ErrNotFound", got, err)
	}
	if ls, err := s.List(t.Context(), robot); err != nil || len(ls) != 0 {
		t.Errorf("list: %+v, %v; want none", ls, err)
	}
	for _, v := range []uint64{1, 2} {
		if _, got, err := s.Put(t.Context(), k, doc(v, `"late"`), 9, "test"); !errors.Is(err, jdocs.ErrStale) || got.Version != 0 {
			t.Errorf("put at version %d: %d, %v; want 0, ErrStale", v, got.Version, err)
		}
	}
	put(t, s, k, doc(0, `"again"`), "test", 3)
	revs, err := s.History(t.Context(), k, 10)
	if err != nil || len(revs) != 3 {
		t.Fatalf("history of %d, %v; want 3", len(revs), err)
	}
	if d := revs[1]; d.Version != 2 || !d.Deleted || d.JSON != "" || d.By != "ann" {
		t.Errorf("deletion in the history: %+v; want version 2, deleted by ann, no text", d)
	}
}

func history(t *testing.T, s *jdocspg.Store) {
	k := key(t, robot, jdocs.RobotSettings)
	for v := range uint64(6) {
		put(t, s, k, doc(v, fmt.Sprint(v)), fmt.Sprintf("writer %d", v), v+1)
	}
	revs, err := s.History(t.Context(), k, 4)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range revs {
		got = append(got, fmt.Sprintf("%d %s by %s", r.Version, r.JSON, r.By))
	}
	want := "6 5 by writer 5, 5 4 by writer 4, 4 3 by writer 3, 3 2 by writer 2"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for i := 1; i < len(revs); i++ {
		if revs[i].At.After(revs[i-1].At) {
			t.Errorf("version %d is younger than version %d", revs[i].Version, revs[i-1].Version)
		}
	}
	if r, err := s.Revision(t.Context(), k, 2); err != nil || r.JSON != "1" {
		t.Errorf("revision 2: %+v, %v; want text 1", r, err)
	}
	if r, err := s.Revision(t.Context(), k, math.MaxUint64); !errors.Is(err, jdocs.ErrNotFound) {
		t.Errorf("revision of the largest number: %+v, %v; want ErrNotFound", r, err)
	}
}

func keysDoNotMeet(t *testing.T, s *jdocspg.Store) {
	acc := func(a string) jdocs.Key {
		k, err := jdocs.NewKey(a, robot, jdocs.AccountSettings)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	keys := []jdocs.Key{
		key(t, robot, jdocs.RobotSettings), key(t, robot, jdocs.RobotLifetimeStats), key(t, other, jdocs.RobotSettings),
		acc("ann"), acc("bob"), acc(string(robot)),
	}
	for i, k := range keys {
		put(t, s, k, doc(0, fmt.Sprint(i)), "test", 1)
	}
	for i, k := range keys {
		if got, err := s.Get(t.Context(), k); err != nil || got.JSON != fmt.Sprint(i) {
			t.Errorf("%s: %+v, %v; want text %d", k, got, err, i)
		}
		if revs, err := s.History(t.Context(), k, 10); err != nil || len(revs) != 1 {
			t.Errorf("%s: history of %d, %v; want 1", k, len(revs), err)
		}
	}
}

func list(t *testing.T, s *jdocspg.Store) {
	put(t, s, key(t, robot, jdocs.RobotSettings), jdocs.Doc{FmtVersion: 2, JSON: "{}"}, "ann", 1)
	put(t, s, key(t, robot, jdocs.RobotLifetimeStats), doc(0, "{}"), string(robot), 1)
	put(t, s, key(t, robot, jdocs.RobotLifetimeStats), doc(1, "{}"), string(robot), 2)
	put(t, s, key(t, other, jdocs.RobotSettings), doc(0, "{}"), "ann", 1)
	ls, err := s.List(t.Context(), robot)
	if err != nil || len(ls) != 2 {
		t.Fatalf("list: %+v, %v; want 2", ls, err)
	}
	for i, want := range []jdocs.Listing{
		{Name: jdocs.RobotLifetimeStats, Version: 2, FmtVersion: 1, By: string(robot)},
		{Name: jdocs.RobotSettings, Version: 1, FmtVersion: 2, By: "ann"},
	} {
		if ls[i].At.IsZero() {
			t.Errorf("%s: no time of change", ls[i].Name)
		}
		ls[i].At = time.Time{}
		if ls[i] != want {
			t.Errorf("got %+v, want %+v", ls[i], want)
		}
	}
}

// concurrent: each writer adds its mark to the text; at the end every mark is there once and versions count without gap.
func concurrent(t *testing.T, s *jdocspg.Store) {
	const writers, each = 8, 10
	k := key(t, robot, jdocs.RobotSettings)
	var mu sync.Mutex
	given := map[uint64]string{} // version -> mark
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				mark := fmt.Sprintf("<%d.%d>", w, i)
				for {
					cur, err := s.Get(t.Context(), k)
					if err != nil && !errors.Is(err, jdocs.ErrNotFound) {
						t.Error(err)
						return
					}
					v, _, err := s.Put(t.Context(), k, doc(cur.Version, cur.JSON+mark), 9, mark)
					if errors.Is(err, jdocs.ErrStale) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if was, twice := given[v]; twice {
						t.Errorf("version %d given to %s and %s", v, was, mark)
					}
					given[v] = mark
					mu.Unlock()
					break
				}
			}
		})
	}
	wg.Wait()
	cur, err := s.Get(t.Context(), k)
	if err != nil || cur.Version != writers*each {
		t.Fatalf("version %d, %v; want %d", cur.Version, err, writers*each)
	}
	var want strings.Builder
	for v := range uint64(writers * each) {
		want.WriteString(given[v+1])
	}
	if cur.JSON != want.String() {
		t.Errorf("text %s; want the marks in the order of their versions: %s", cur.JSON, want.String())
	}
}

func creators(t *testing.T, s *jdocspg.Store) {
	k := key(t, robot, jdocs.RobotSettings)
	const n = 8
	results := make(chan error, n)
	for range n {
		go func() {
			_, _, err := s.Put(context.WithoutCancel(t.Context()), k, doc(0, "{}"), 9, "test")
			results <- err
		}()
	}
	first := 0
	for range n {
		switch err := <-results; {
		case err == nil:
			first++
		case !errors.Is(err, jdocs.ErrStale):
			t.Errorf("create: %v; want nil or ErrStale", err)
		}
	}
	if first != 1 {
		t.Errorf("%d creators were first, want 1", first)
	}
}
