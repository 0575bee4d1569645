package daspg

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/telemetry/das"
	"kennel/infra/api/events"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
)

// stretches is an archive that keeps what is erased from it.
type stretches struct{ erased []thing.Stretch }

func (*stretches) Each(context.Context, thing.Stretch, func(das.RawBatch) error) error { return nil }

func (a *stretches) Erase(_ context.Context, s thing.Stretch, _ time.Time, _ func(context.Context, time.Time, int) error) error {
	a.erased = append(a.erased, s)
	return nil
}

// At noon the robot became the next owner's. What it recorded before and sent later is not the next owner's, by whatever clock, and goes with the former
// owner's erasure; what cannot be placed is not shown.
func TestRecordedBeforeHandOver(t *testing.T) {
	pool := pgtest.New(t)
	s := Open(pool)
	const next, former, neither = "next", "former", "neither"
	type recorded struct {
		name     string // and whose
		boot     string
		ts       time.Duration // from noon, by the robot's clock
		uptime   time.Duration
		unsynced bool
		received time.Duration // from noon
		whose    string
	}
	all := []recorded{
		{"at once", "a", time.Minute, time.Hour, false, time.Minute, next},
		{"in the same boot, spooled before", "a", -time.Minute, time.Hour - 2*time.Minute, false, time.Minute + 1, former},
		{"days later", "b", -time.Hour, 0, false, 48 * time.Hour, former},
		{"its clock was ahead", "c", 30 * time.Minute, 0, false, time.Hour, former},
		{"that clock says so itself", "c", 3*time.Hour + time.Minute, 3 * time.Hour, false, 61 * time.Minute, neither},
		{"its clock begins in 1970", "d", -498_000 * time.Hour, 0, false, 2 * time.Hour, former},
		{"its clock is beyond all", "e", 1<<63 - 1, 0, false, 2*time.Hour + 2*time.Microsecond, neither},
		{"its clock was never set", "f", -time.Hour, time.Minute, true, 3 * time.Hour, former},
		{"nor was that, which guessed well", "g", time.Hour, time.Minute, true, 3*time.Hour + 2*time.Microsecond, neither},
		{"begin of a boot that is the next owner's", "h", -9 * time.Hour, time.Second, true, 4 * time.Hour, next},
		{"set in that boot", "h", 4 * time.Hour, time.Minute, false, 4*time.Hour + 1, next},
		{"begin of a boot that is the former owner's", "i", 9 * time.Hour, time.Second, true, 5 * time.Hour, former},
		{"set in that boot, before", "i", -time.Minute, time.Minute, false, 5*time.Hour + 1, former},
		{"its clock was a minute ahead", "j", 30 * time.Second, 0, false, 6 * time.Hour, former},
		{"as that says itself", "j", 7*time.Hour + time.Minute, 7 * time.Hour, false, 7*time.Hour - 2*time.Microsecond, next},
		{"not set again in that boot", "i", -time.Hour, 3 * time.Minute, true, 5*time.Hour + 2, next},
	}
	want, seqs, payloads := map[string][]string{}, map[string]uint64{}, map[string]events.Event{}
	for _, r := range all {
		seqs[r.boot]++
		e := events.Event{Source: "test", Name: "robot.poked", S1: r.name, Level: events.Info, RobotID: rex.Serial(), RobotVersion: "2", BootID: r.boot, Seq: seqs[r.boot],
			TS: noon.Add(r.ts).UnixMilli(), UptimeMS: r.uptime.Milliseconds(), Unsynced: r.unsynced}
		if r.ts == 1<<63-1 {
			e.TS = 1<<63 - 1
		}
		at := noon.Add(r.received)
		at = at.Truncate(time.Microsecond).Add(time.Duration(e.Seq) * time.Microsecond) // a time for each
		if err := s.EnsurePartitions(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		payload, err := events.EncodeBatch("b1", []events.Event{e})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), das.Group{Received: at, Items: []das.Item{{Thing: rex, Events: []events.Event{e}}}},
			das.Raw{Key: r.name, Body: das.AppendRaw(nil, das.RawBatch{Thing: rex, Received: at, Payload: payload})}); err != nil {
			t.Fatal(err)
		}
		want[r.whose] = append(want[r.whose], r.name)
		payloads[r.name] = e
	}
	same := func(what string, got []string, want []string) {
		t.Helper()
		got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	names := func(f das.Filter) (out []string) {
		t.Helper()
		recs, err := s.List(t.Context(), f, 100, das.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			out = append(out, r.S1)
		}
		return out
	}
	same("shown", names(das.Filter{Thing: rex, Owned: noon}), want[next])
	boots, err := s.Boots(t.Context(), rex, noon, 100)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, b := range boots {
		ids = append(ids, b.BootID)
	}
	same("boots", ids, []string{"a", "h", "i", "j"})
	known, err := s.Clocks(t.Context(), rex)
	if err != nil {
		t.Fatal(err)
	}
	var placed []string
	for name, e := range payloads {
		if known[e.BootID].Since(&e, noon) {
			placed = append(placed, name)
		}
	}
	same("by the rule in Go", placed, want[next])

	archive := &stretches{}
	account := func(id string) ([]thing.Stretch, error) {
		return []thing.Stretch{map[string]thing.Stretch{
			next:   {Thing: rex, Since: noon, Until: noon.AddDate(0, 0, 3)},
			former: {Thing: rex, Since: noon.AddDate(0, 0, -3), Until: noon},
		}[id]}, nil
	}
	p := das.Personal{Eraser: s, Archive: archive, Reader: s, Now: time.Now,
		Owned: func(_ context.Context, id string) ([]thing.Stretch, error) { return account(id) },
		Left:  func(_ context.Context, id string) ([]thing.Stretch, error) { return account(id) }}
	if err := p.Files(t.Context(), next, func(name string, write func(io.Writer) error) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		var in []string
		for _, r := range all {
			if strings.Contains(b.String(), `"`+r.name+`"`) {
				in = append(in, r.name)
			}
		}
		same("exported in "+name, in, want[next])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.Erase(t.Context(), former); err != nil {
		t.Fatal(err)
	}
	same("left after the former owner's erasure", names(das.Filter{Thing: rex}), append(slices.Clone(want[next]), want[neither]...))
	var waiting []string
	if err := s.EachWaiting(t.Context(), thing.Stretch{Thing: rex, Since: noon, Until: noon.AddDate(0, 0, 3)}, func(b das.RawBatch) error {
		for name := range maps.Keys(payloads) {
			in, err := events.DecodeBatch(b.Payload)
			if err != nil {
				return err
			}
			if in.Events[0].S1 == name {
				waiting = append(waiting, name)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	same("raw batches left", waiting, append(slices.Clone(want[next]), want[neither]...))
	if len(archive.erased) != 1+len(want[former]) {
		t.Errorf("erased from the archive: %v", archive.erased)
	}
}
