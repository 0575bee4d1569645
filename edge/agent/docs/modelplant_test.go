package docs_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"kennel/edge/agent/docs"
	"kennel/jdocs"

	"pgregory.net/rapid"
)

// plant is a fault put into the house, to prove that the model finds it; the zero plant is none.
type plant struct {
	storeOf func(jdocs.Store) jdocs.Store
	rulesOf func(jdocs.Store) jdocs.Service
	linkOf  func(docs.Remote) docs.Remote
	merge   func(base, local, remote []byte) ([]byte, []string, error)
	finds   string // what the model says of it
}

func (p plant) store(s jdocs.Store) jdocs.Store {
	if p.storeOf == nil {
		return s
	}
	return p.storeOf(s)
}

func (p plant) rules(s jdocs.Store) jdocs.Service {
	if p.rulesOf == nil {
		return jdocs.New(s)
	}
	return p.rulesOf(s)
}

func (p plant) remote(r docs.Remote) docs.Remote {
	if p.linkOf == nil {
		return r
	}
	return p.linkOf(r)
}

// blind stores whatever version the writer had: the last one wins.
type blind struct{ jdocs.Store }

func (b blind) Put(ctx context.Context, key jdocs.Key, d jdocs.Doc, newest uint64, by string) (uint64, jdocs.Revision, error) {
	for {
		v, cur, err := b.Store.Put(ctx, key, d, newest, by)
		if !errors.Is(err, jdocs.ErrStale) {
			return v, cur, err
		}
		d.Version = cur.Version
	}
}

// polite reports a write that came too late as accepted.
type polite struct{ jdocs.Service }

func (p polite) Write(ctx context.Context, key jdocs.Key, d jdocs.Doc, by string) (jdocs.WriteResult, error) {
	res, err := p.Service.Write(ctx, key, d, by)
	if err == nil && res.Status == jdocs.RejectedBadDocVersion && res.Latest > 0 {
		res.Status = jdocs.Accepted
	}
	return res, err
}

// forgetful has no history for robots: they cannot find out whether a write whose answer was lost was stored.
type forgetful struct{ docs.Remote }

func (forgetful) Revision(context.Context, jdocs.Name, uint64) (jdocs.Doc, bool, bool, error) {
	return jdocs.Doc{}, false, false, nil
}

// TestModelFindsPlantedFaults: the model finds each of these lost updates within so many histories.
func TestModelFindsPlantedFaults(t *testing.T) {
	setFlags(t, map[string]string{"rapid.checks": "200", "rapid.steps": "60", "rapid.nofailfile": "true", "rapid.shrinktime": "250ms"})
	for name, p := range map[string]plant{
		"a store that does not compare versions": {finds: "LOST UPDATE", storeOf: func(s jdocs.Store) jdocs.Store { return blind{s} }},
		"rules that accept what came too late": {finds: "was given version",
			rulesOf: func(s jdocs.Store) jdocs.Service { return polite{jdocs.New(s)} }},
		"a cloud that forgets who wrote what": {finds: "LOST", linkOf: func(r docs.Remote) docs.Remote { return forgetful{r} }},
		"a merge that takes the robot's copy": {finds: "LOST UPDATE",
			merge: func(_, local, _ []byte) ([]byte, []string, error) { return local, nil, nil }},
		"a merge that takes the cloud's copy": {finds: "LOST UPDATE",
			merge: func(_, _, remote []byte) ([]byte, []string, error) { return remote, nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			var story string
			for seed := range 5 { // agents run in real time: on a loaded machine one seed may tell another story, or none
				setFlags(t, map[string]string{"rapid.seed": strconv.Itoa(1 + seed)})
				tb := &witness{name: t.Name()}
				done := make(chan struct{})
				go func() {
					defer close(done)
					check(t, tb, p)
				}()
				<-done
				story = strings.Join(tb.lines, "\n")
				if tb.failed && strings.Contains(story, "rapid.seed=") && strings.Contains(story, p.finds) {
					t.Logf("found:\n%s", story)
					return
				}
			}
			t.Fatalf("not found, or the story does not name its seed and %q; the last one:\n%s", p.finds, story)
		})
	}
}

// witness is a test that may fail: it keeps what it is told.
type witness struct {
	name   string
	failed bool
	lines  []string
}

var _ rapid.TB = (*witness)(nil)

func (*witness) Helper()                          {}
func (w *witness) Name() string                   { return w.name }
func (w *witness) Logf(format string, a ...any)   { w.lines = append(w.lines, fmt.Sprintf(format, a...)) }
func (w *witness) Log(a ...any)                   { w.lines = append(w.lines, fmt.Sprint(a...)) }
func (w *witness) Skipf(format string, a ...any)  { w.Logf(format, a...); w.SkipNow() }
func (w *witness) Skip(a ...any)                  { w.Log(a...); w.SkipNow() }
func (*witness) SkipNow()                         { panic("a history does not skip") }
func (w *witness) Errorf(format string, a ...any) { w.Logf(format, a...); w.Fail() }
func (w *witness) Error(a ...any)                 { w.Log(a...); w.Fail() }
func (w *witness) Fatalf(format string, a ...any) { w.Logf(format, a...); w.FailNow() }
func (w *witness) Fatal(a ...any)                 { w.Log(a...); w.FailNow() }
func (w *witness) Fail()                          { w.failed = true }
func (w *witness) FailNow()                       { w.failed = true; runtime.Goexit() }
func (w *witness) Failed() bool                   { return w.failed }
