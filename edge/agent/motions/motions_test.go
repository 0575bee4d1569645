package motions

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
	"kennel/infra/testwait"
)

const patience = time.Minute

// cloud is the cloud's side of the requests, with one fault in three.
type cloud struct {
	mu       sync.Mutex
	rnd      *rand.Rand // nil: no faults
	files    map[string]string
	verdicts map[string]motionwire.Verdict // by name and hash
	body     string
	fetched  int
}

var errCut = errors.New("the line was cut")

// Do answers one request. A fault is before or after it took effect.
func (c *cloud) Do(_ context.Context, service, method string, b []byte) (answer []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := 0
	if c.rnd != nil {
		fault = c.rnd.IntN(6)
	}
	if fault == 1 {
		return nil, errCut
	}
	if fault == 2 {
		defer func() { answer, err = nil, errCut }()
	}
	if service != motionwire.Service {
		return nil, errs.New(errs.Invalid, "%s", service)
	}
	switch method {
	case motionwire.SyncMethod:
		h, err := motionwire.ParseHave(b)
		if err != nil {
			return nil, err
		}
		w := motionwire.Want{V: 1, Body: h.Body != c.body}
		for _, name := range slices.Sorted(maps.Keys(c.files)) {
			ref := motionwire.Ref{Name: name, SHA256: motionwire.Sum([]byte(c.files[name]))}
			v, judged := c.verdicts[ref.Name+ref.SHA256]
			if !judged || v.Kept {
				w.Motions = append(w.Motions, motionwire.Asked{Ref: ref, Judge: !judged})
			}
		}
		return json.Marshal(w)
	case motionwire.BodyMethod:
		if _, err := motionwire.ParseBody(b); err != nil {
			return nil, err
		}
		c.body = motionwire.Sum(b)
	case motionwire.FileMethod:
		r, err := motionwire.ParseRef(b)
		if err != nil {
			return nil, err
		}
		c.fetched++
		f, has := c.files[r.Name]
		if !has || motionwire.Sum([]byte(f)) != r.SHA256 {
			return nil, errs.New(errs.NotFound, "no motion %s", r.Name)
		}
		return json.Marshal(motionwire.File{V: 1, File: []byte(f)})
	case motionwire.VerdictMethod:
		v, err := motionwire.ParseVerdict(b)
		if err != nil {
			return nil, err
		}
		c.verdicts[v.Name+v.SHA256] = v
	default:
		return nil, errs.New(errs.Invalid, "%s", method)
	}
	return []byte("{}"), nil
}

// mind keeps motions that begin with "good".
type mind struct {
	play func(ctx context.Context, r mindlink.Request, tell func(mindlink.Progress) error) (mindlink.Ended, error)
}

func (mind) Body(context.Context) (motionwire.Body, error) {
	return motionwire.Body{V: 1, Model: "toy", Ending: "toy"}, nil
}

func (mind) Judge(_ context.Context, d mindlink.Draft) (motionwire.Verdict, error) {
	v := motionwire.Verdict{V: 1, Ref: motionwire.Ref{Name: d.Name}, Kept: strings.HasPrefix(string(d.File), "good")}
	if !v.Kept {
		v.Why = "it is not good"
	}
	return v, nil
}

func (m mind) Play(ctx context.Context, r mindlink.Request, tell func(mindlink.Progress) error) (mindlink.Ended, error) {
	return m.play(ctx, r, tell)
}

func newKeeper(t *testing.T, m Mind, c *cloud) (*Keeper, *host.Host, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	h := host.New(host.Robot{Root: root, Dir: dir, Thing: "aibo:00e20100", Log: slog.New(slog.DiscardHandler), Now: time.Now})
	k := New(h, m, c)
	if err := h.Add(k.Part()); err != nil {
		t.Fatal(err)
	}
	return k, h, filepath.Join(dir, mindlink.MotionsDir)
}

// disk returns the motions that are on disk.
func disk(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(e.Name(), mindlink.MotionsEnding)] = string(b)
	}
	return out
}

// TestSync: whatever request fails, before or after it took effect, and wherever agentd dies, the robot ends with just the motions that its owner has and that its
// body can do, and the cloud with a verdict for each. What it has is not fetched again.
func TestSync(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 35))
		c := &cloud{rnd: rnd, files: map[string]string{}, verdicts: map[string]motionwire.Verdict{}}
		k, _, dir := newKeeper(t, mind{}, c)
		for range 60 {
			name := "m" + string(rune('a'+rnd.IntN(4)))
			c.mu.Lock()
			switch rnd.IntN(4) {
			case 0:
				delete(c.files, name)
			case 1:
				c.files[name] = []string{"good one", "good two", "bad one"}[rnd.IntN(3)]
			}
			c.mu.Unlock()
			_ = k.sync(t.Context())
			if rnd.IntN(5) == 0 { // agentd died; a file of before is torn by no power cut, but a temporary one may be left
				k = New(k.host, mind{}, c)
			}
		}
		c.rnd = nil
		if err := k.sync(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := map[string]string{}
		for name, f := range c.files {
			v, judged := c.verdicts[name+motionwire.Sum([]byte(f))]
			if !judged || v.Kept != strings.HasPrefix(f, "good") || v.Kept == (v.Why != "") {
				t.Errorf("seed %d, %s: verdict %+v", seed, name, v)
			}
			if v.Kept {
				want[name] = f
			}
		}
		if got := disk(t, dir); !maps.Equal(got, want) {
			t.Errorf("seed %d: it has %v, want %v", seed, got, want)
		}
		before := c.fetched
		if err := k.sync(t.Context()); err != nil || c.fetched != before {
			t.Errorf("seed %d: fetched %d again, %v", seed, c.fetched-before, err)
		}
	}
}

// TestRun: nothing is asked before the cloud's list is the owner's, nor after that is in doubt; a message of the cloud makes the robot ask again.
func TestRun(t *testing.T) {
	c := &cloud{files: map[string]string{"hop": "good"}, verdicts: map[string]motionwire.Verdict{}}
	k, h, dir := newKeeper(t, mind{}, c)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	h.Down()["motion"](nil)
	h.Publish(host.MaySync{})
	testwait.Until(t, patience, "hop", testwait.Holds(func() bool { return disk(t, dir)["hop"] == "good" }))
	c.mu.Lock()
	c.files = map[string]string{"bow": "good bow"}
	c.mu.Unlock()
	h.Down()["motion"](nil)
	testwait.Until(t, patience, "bow alone", testwait.Holds(func() bool { d := disk(t, dir); return d["bow"] == "good bow" && len(d) == 1 }))
	h.Publish(host.Withhold{})
	if k.mu.Lock(); k.may {
		t.Error("it would ask while the owner is in doubt")
	}
	k.mu.Unlock()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPlay: a play is a person's, says how far it is, and ends once: done, interrupted with the reason, or refused with the reason.
func TestPlay(t *testing.T) {
	var k *Keeper
	answer := map[string]func(ctx context.Context, tell func(mindlink.Progress) error) (mindlink.Ended, error){
		"motion/sit": func(_ context.Context, tell func(mindlink.Progress) error) (mindlink.Ended, error) {
			_ = tell(mindlink.Progress{Began: &mindlink.Began{SpanMS: 1200}})
			_ = tell(mindlink.Progress{AtMS: 400})
			if p := k.Playing(); p == nil || p.Name != "motion/sit" || p.AtMS != 400 || p.SpanMS != 1200 {
				t.Errorf("playing %+v", p)
			}
			return mindlink.Ended{Outcome: mindlink.Done, AtMS: 1208}, nil
		},
		"motion/bow": func(context.Context, func(mindlink.Progress) error) (mindlink.Ended, error) {
			return mindlink.Ended{Outcome: mindlink.Stopped, Reason: "all motors were stopped", AtMS: 300}, nil
		},
	}
	m := mind{play: func(ctx context.Context, r mindlink.Request, tell func(mindlink.Progress) error) (mindlink.Ended, error) {
		if r.Priority != int(claim.Person) {
			t.Errorf("%+v", r)
		}
		if f := answer[r.Clip]; f != nil {
			return f(ctx, tell)
		}
		return mindlink.Ended{}, errs.Coded(errs.Conflict, "refused", "motion %s: the body lies on its side", r.Clip)
	}}
	var h *host.Host
	k, h, _ = newKeeper(t, m, &cloud{})
	run := h.Commands()["play"]
	for args, want := range map[string]struct{ detail, err string }{
		`{"name":"motion/sit"}`: {"motion/sit done in 1.208s", ""},
		`{"name":"motion/bow"}`: {"", "motion/bow interrupted after 300ms: all motors were stopped"},
		`{"name":"motion/fly"}`: {"", "motion motion/fly: the body lies on its side"},
		`{"name":"../x"}`:       {"", "want an animation's"},
	} {
		out, err := run(t.Context(), json.RawMessage(args))
		if out.Detail != want.detail || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: %+v, %v", args, out, err)
		}
	}
	if k.Playing() != nil {
		t.Error("it still plays")
	}
}
