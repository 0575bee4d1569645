package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactpg"
	"kennel/cloud/updates/rollout"
	"kennel/cloud/updates/rollout/rolloutpg"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/manifest"
	"kennel/ota/otapg"
)

// Ids of the rollouts, by which pictures and tests find them.
const (
	OverRollout = "5c1d9e6a-2f0b-4a77-9c35-1be4a1d7de01"
	Rollout     = "b3f07c42-81ae-4d19-a6d0-94c2e85fde02" // under way
)

// releaseManager made the releases and the rollouts; Config.Operator approved them.
const releaseManager = "releases@kennel.local"

const (
	salt          = "demo-160"       // makes the same robots come first at each seeding, the hero among them
	stepEvery     = 20 * time.Minute // between two steps of a seeded rollout
	approvedAfter = 25 * time.Minute
	day           = 24 * time.Hour
	// When the rollouts were made, and when the last phase of the one that is under way was released.
	overBegan, began = 6 * day, 28 * time.Hour
	lastPhase        = 70 * time.Minute
)

// updates are the services of releases at the time of the seeding.
type updates struct {
	*seeding
	rng      *rand.Rand
	releases *ota.Service
	rollouts *rollout.Service
	failed   int // updates of the last phase
}

// rollouts uploads the releases and brings two of them to the fleet.
func (s *seeding) rollouts(ctx context.Context) error {
	u := &updates{seeding: s, rng: rand.New(rand.NewPCG(seed, 2)), releases: ota.New(otapg.New(s.clock.pool), nil)}
	u.rollouts = rollout.New(rollout.Config{Store: rolloutpg.New(s.clock.pool), Fleet: u.facts, Known: u.releases.Known, Size: u.releases.Size, Path: u.releases.Path, Wished: u.releases.Wished, Now: s.clock.now})
	u.releases.Follow(u.rollouts)
	now := s.Now
	for i, r := range []struct{ version, notes string }{{older, "First release with the new recogniser."}, {steady, "Fixes a crash when the clock was set back."}, {newest, "Follows speech from the side. Quieter lift."}} {
		if err := u.upload(ctx, now.Add(-time.Duration(20-6*i)*day), ota.Version(r.version), r.notes); err != nil {
			return fmt.Errorf("release %s: %w", r.version, err)
		}
	}
	spec := func(v ota.Version, phases ...rollout.Phase) rollout.Spec {
		return rollout.Spec{Species: thing.Vector, Version: v, Channel: rollout.Prod, Cohort: filter.MustParse("tag:" + home), Phases: phases, Cap: 30, WatchS: int64((2 * time.Hour).Seconds()),
			Guards: []rollout.Guard{{Metric: rollout.Failures, Share: 0.1, Sample: 10}, {Metric: rollout.Silent, Share: 0.1, Sample: 10}, {Metric: rollout.Problems, Problem: "fault", Share: 0.1, Sample: 10}}}
	}
	hour := int64(time.Hour / time.Second)
	over := spec(steady, rollout.Phase{Percent: 10, BakeS: hour}, rollout.Phase{Percent: 50, BakeS: hour}, rollout.Phase{Percent: 100, BakeS: hour})
	if err := u.run(ctx, OverRollout, over, now.Add(-overBegan), now.Add(-overBegan+3*day), nil); err != nil {
		return err
	}
	next := spec(newest, rollout.Phase{Percent: 5, BakeS: 2 * hour}, rollout.Phase{Percent: 20, BakeS: 3 * hour}, rollout.Phase{Percent: 45, BakeS: 6 * hour}, rollout.Phase{Percent: 100, BakeS: 12 * hour})
	next.Cap, next.Note = 8, "Watch the crashes in voice: the lab saw one."
	return u.run(ctx, Rollout, next, now.Add(-began), now, func(r rollout.Rollout) bool { return r.Phase < 1 || !s.clock.now().Before(now.Add(-lastPhase)) })
}

// upload signs a small archive and uploads it.
func (u *updates) upload(ctx context.Context, at time.Time, v ota.Version, notes string) error {
	u.clock.set(at)
	image := func(n int) io.Reader {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(u.rng.Uint32())
		}
		return bytes.NewReader(b)
	}
	var out bytes.Buffer
	if err := archive.Write(&out, &manifest.Manifest{Version: v}, map[manifest.Part]io.Reader{manifest.Boot: image(4 << 10), manifest.System: image(32 << 10)}, archive.WriteOptions{Key: u.Sign}); err != nil {
		return err
	}
	conf := u.Archives.Config
	conf.Store, conf.Add = artifactpg.New(u.clock.pool), u.releases.AddRelease
	svc, sum := artifact.New(conf), sha256.Sum256(out.Bytes())
	if _, err := svc.Upload(ctx, artifact.Upload{Species: thing.Vector, SHA256: hex.EncodeToString(sum[:]), Size: int64(out.Len()), Body: &out, Notes: notes, By: releaseManager,
		Audit: func(context.Context, string, string, string) error { return nil }}); err != nil { // audit writes them all, in order
		return err
	}
	channel := map[ota.Version]string{older: "dev", steady: artifact.Prod, newest: "beta"}[v]
	_, err := svc.SetChannel(ctx, artifact.Channel{Species: thing.Vector, Channel: channel, Version: v, By: releaseManager})
	return err
}

// facts is the fleet as the rollouts see it at the time of the seeding.
func (u *updates) facts(context.Context, filter.Filter, []thing.ID) ([]rollout.Fact, error) {
	var out []rollout.Fact
	t := u.clock.now()
	for _, r := range u.robots {
		if r.id.Species() == thing.Vector {
			present, since := r.at(t)
			out = append(out, rollout.Fact{Thing: r.id, In: r.has(home), Running: r.os(t), Present: present, Since: since, Zone: r.zone})
		}
	}
	return out, nil
}

// run makes a rollout and steps it from one time to another, or until it is done. An operator releases it when it is held and release, unless nil, says so.
func (u *updates) run(ctx context.Context, id string, spec rollout.Spec, from, to time.Time, release func(rollout.Rollout) bool) error {
	u.clock.set(from)
	if _, err := u.rollouts.Create(ctx, id, spec, false, releaseManager); err != nil {
		return err
	}
	if err := u.rollouts.Store.Update(ctx, id, nil, func(w *rollout.Work) error { w.Rollout.Salt = salt; return nil }); err != nil {
		return err
	}
	u.clock.set(from.Add(approvedAfter))
	if _, err := u.rollouts.Do(ctx, id, rollout.Approve, "", u.Operator); err != nil {
		return err
	}
	for t := from.Add(30 * time.Minute); !t.After(to); t = t.Add(stepEvery) {
		if to.Sub(t) < lastPhase {
			t = t.Add(-stepEvery / 2) // the last phase in more detail
		}
		u.clock.set(t)
		if err := u.robotsAct(ctx, id); err != nil {
			return err
		}
		if err := u.rollouts.StepOne(ctx, id); err != nil {
			return err
		}
		r, err := u.rollouts.Get(ctx, id)
		if err != nil || r.State == rollout.Done {
			return err
		}
		if r.State == rollout.Held && t.Sub(r.Changed) >= time.Hour && (release == nil || release(r)) {
			if _, err := u.rollouts.Do(ctx, id, rollout.Release, "Looked at the robots: all is well.", u.Operator); err != nil {
				return err
			}
		}
	}
	return nil
}

// robotsAct has the robots that were granted an update go one step on with it.
func (u *updates) robotsAct(ctx context.Context, id string) error {
	work, err := u.rollouts.Store.Look(ctx, id)
	if err != nil {
		return err
	}
	now := u.clock.now()
	byID := map[thing.ID]*robot{}
	for _, r := range u.robots {
		byID[r.id] = r
	}
	for _, id := range slices.Sorted(maps.Keys(work.Members)) {
		m, r := work.Members[id], byID[id]
		present, _ := r.at(now)
		if !m.State.Open() || !present || u.rng.IntN(5) == 0 {
			continue
		}
		st := ota.Status{ID: fmt.Sprintf("demo-%s-%d", work.Rollout.Version, r.standing), Release: work.Rollout.Version, Since: m.Granted, Running: r.os(now), Phase: ota.Downloading, TS: now.UnixMilli()}
		switch r.standing++; {
		case m.State == rollout.Granted:
		case u.failed < 2 && work.Rollout.Phase == 2 && work.Rollout.Version == newest:
			u.failed++
			st.Phase, st.Code, st.Reason = ota.Failed, int(ota.BadArchive), "the download ended within an image"
		default:
			r.runs = append(r.runs, run{now, string(work.Rollout.Version)})
			st.Running, st.Phase = string(work.Rollout.Version), ota.Current
		}
		if err := u.releases.Report(ctx, id, st); err != nil {
			return err
		}
	}
	return nil
}
