package ota_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/ota"
)

// house is a store, a fleet and a broker in memory. The wish for a species begins a round, as in Postgres.
type house struct {
	ota.Store // what hints do not need
	wish      ota.Version
	own       map[thing.ID]ota.Version
	round     ota.Round
	rounds    int64
	fleet     []thing.ID // present, by id
	orders    []string
	hinted    []thing.ID
	said      map[thing.ID]ota.Version
	each      func() // after each hint; may be nil
}

func (h *house) Release(_ context.Context, s thing.Species, v ota.Version) (ota.Release, error) {
	return ota.Release{Species: s, Version: v}, nil
}

func (h *house) SetDesired(_ context.Context, scope string, v ota.Version, _ string) (time.Time, error) {
	if scope == "vic" {
		h.rounds++
		h.wish, h.round = v, ota.Round{Num: h.rounds}
	} else {
		h.own[thing.ID(scope)] = v
	}
	return time.Time{}, nil
}

func (h *house) Desired(_ context.Context, id thing.ID) (ota.Desired, bool, error) {
	if id == "vic:00000007" {
		return ota.Desired{}, false, errs.New(errs.Internal, "damaged")
	}
	if v := h.own[id]; v != "" {
		return ota.Desired{Release: v}, true, nil
	}
	return ota.Desired{Release: h.wish}, false, nil
}

func (h *house) Round(context.Context, thing.Species) (ota.Round, error) { return h.round, nil }

func (h *house) Hinted(_ context.Context, _ thing.Species, r ota.Round, over bool) error {
	if r.Num == h.round.Num {
		if h.round = r; over {
			h.round = ota.Round{}
		}
	}
	return nil
}

func (h *house) Unhinted(context.Context) (out []thing.Species, err error) {
	if h.round.Num != 0 {
		out = append(out, "vic")
	}
	return out, nil
}

func (h *house) Hint(_ context.Context, id thing.ID, name string, payload []byte) {
	if name != ota.HintName {
		return
	}
	d, err := ota.ParseDesired(payload)
	if err != nil {
		panic(err)
	}
	h.hinted, h.said[id] = append(h.hinted, id), d.Release
	if h.each != nil {
		h.each()
	}
}

func newHouse(robots int) (*house, *ota.Service) {
	h := &house{own: map[thing.ID]ota.Version{}, said: map[thing.ID]ota.Version{}}
	for i := range robots {
		h.fleet = append(h.fleet, thing.ID(fmt.Sprintf("vic:%08x", i)))
	}
	svc := ota.New(h, h)
	svc.Announce(ota.Crowd{Rounds: h, Order: func(_ context.Context, task, id string) error {
		h.orders = append(h.orders, task+" "+id)
		return nil
	}, Present: func(_ context.Context, _ thing.Species, after thing.ID, limit int) (out []thing.ID, err error) {
		for _, id := range h.fleet {
			if id > after && len(out) < limit {
				out = append(out, id)
			}
		}
		return out, nil
	}})
	return h, svc
}

// A wish for a species, and taking it back, hints each present robot once, at HintRate a second, over as many runs as it takes.
func TestSpeciesIsHinted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const robots = 60*ota.HintRate + 1 // more than one run does
		h, svc := newHouse(robots)
		for _, v := range []ota.Version{"2.0.1.6091", ""} {
			h.hinted, h.orders = nil, nil
			clear(h.said)
			if _, err := svc.SetSpeciesDesired(t.Context(), "vic", v, "op"); err != nil || !slices.Equal(h.orders, []string{ota.TaskHint + " vic"}) {
				t.Fatalf("%v, orders %q", err, h.orders)
			}
			began, runs := time.Now(), 0
			for again := true; again; runs++ {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // as jobs.Timeout
				err := svc.HintSpecies(ctx, "vic")
				cancel()
				if again = errs.CodeOf(err) == errs.CodeAgain; err != nil && !again {
					t.Fatal(err)
				}
				most := (int(time.Since(began)/time.Second) + runs + 1) * ota.HintRate
				if len(h.hinted) > most {
					t.Errorf("%d robots were hinted in %v", len(h.hinted), time.Since(began))
				}
			}
			if !slices.Equal(h.hinted, h.fleet) || runs < 2 || time.Since(began) > 70*time.Second {
				t.Errorf("%q: %d of %d robots were hinted in %d runs and %v", v, len(h.hinted), robots, runs, time.Since(began))
			}
			if h.said[h.fleet[1]] != v || h.said["vic:00000007"] != "" {
				t.Errorf("a robot was told %q, and one whose wish cannot be read %q", h.said[h.fleet[1]], h.said["vic:00000007"])
			}
			if err := svc.ResumeHints(t.Context()); err != nil || len(h.orders) != 1 {
				t.Errorf("a round that is over is ordered again: %q, %v", h.orders, err)
			}
		}
	})
}

// A process that ends amid a round leaves it to the next one, which repeats at most a second's robots; a later wish begins with the first robot again.
func TestSpeciesIsHintedAcrossRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, svc := newHouse(3 * ota.HintRate)
		if _, err := svc.SetSpeciesDesired(t.Context(), "vic", "2.0.1.6091", "op"); err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancel(t.Context())
		h.each = func() {
			if len(h.hinted) == ota.HintRate+10 {
				kill()
			}
		}
		if err := svc.HintSpecies(ctx, "vic"); err == nil {
			t.Error("a run that was cut off says that it is through")
		}
		h.orders = nil
		if err := svc.ResumeHints(t.Context()); err != nil || !slices.Equal(h.orders, []string{ota.TaskHint + " vic"}) {
			t.Fatalf("%v, orders %q", err, h.orders)
		}
		newer := false
		h.each = func() {
			if len(h.hinted) == 3*ota.HintRate && !newer {
				newer = true
				if _, err := svc.SetSpeciesDesired(t.Context(), "vic", "2.0.1.6099", "op"); err != nil {
					t.Error(err)
				}
			}
		}
		if err := svc.HintSpecies(t.Context(), "vic"); err != nil {
			t.Fatal(err)
		}
		for _, id := range h.fleet {
			if h.said[id] != "2.0.1.6099" && id != "vic:00000007" {
				t.Fatalf("%s was told %q last", id, h.said[id])
			}
		}
		if n := len(h.hinted); n > 7*ota.HintRate {
			t.Errorf("%d hints for %d robots and two wishes", n, len(h.fleet))
		}
	})
}

// A wish for one robot hints it at once, and so does taking it back.
func TestRobotIsHinted(t *testing.T) {
	h, svc := newHouse(2)
	for _, v := range []ota.Version{"2.0.1.6091", ""} {
		h.hinted = nil
		if _, err := svc.SetDesired(t.Context(), h.fleet[1], v, "op"); err != nil || !slices.Equal(h.hinted, h.fleet[1:]) || h.said[h.fleet[1]] != v || len(h.orders) > 0 {
			t.Errorf("%q: hinted %v, told %v, %v", v, h.hinted, h.said, err)
		}
	}
}
