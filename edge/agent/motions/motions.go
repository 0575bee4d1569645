// Package motions keeps the motions that the robot's owner uploaded, and plays animations for people.
//
//	down/motion, a connection ─► sync ─► fetch, judge (mindd), keep or refuse ─► verdict
//	command play ─► mindd ─► one result when it has ended; meanwhile Playing says how far it is
//
// The cloud's list counts: what it does not name is removed. A step that was cut off is done again at the next connection, so that nothing depends on what
// agentd was doing when it died: a motion is on disk whole or not, and the cloud asks for a verdict until it has one.
package motions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/host"
	"kennel/edge/core/corelink"
	"kennel/edge/env/robotfs"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/live"
	"kennel/infra/api/motionwire"
	"kennel/infra/api/topics"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/wake"
)

// Mind is the robot's character; *mindlink.Client is one.
type Mind interface {
	Body(ctx context.Context) (motionwire.Body, error)
	Judge(ctx context.Context, d mindlink.Draft) (motionwire.Verdict, error)
	Play(ctx context.Context, r mindlink.Request, tell func(mindlink.Progress) error) (mindlink.Ended, error)
}

// Pauses between two tries; own defaults.
const (
	minRetry = 2 * time.Second
	maxRetry = time.Minute
)

// Keeper is safe for concurrent use.
type Keeper struct {
	host *host.Host
	mind Mind
	ask  kitmqtt.Requester
	work wake.Signal // one slot: there is something to bring in step

	mu      sync.Mutex
	may     bool // what the cloud has is the owner's, and it can be reached
	playing *live.Playing
}

// New returns a keeper that does nothing before its part runs.
func New(h *host.Host, mind Mind, ask kitmqtt.Requester) *Keeper {
	return &Keeper{host: h, mind: mind, ask: ask, work: wake.New()}
}

// Part is the keeper as a part of agentd.
func (k *Keeper) Part() host.Part {
	return host.Part{
		Name:     "motions",
		Services: []runner.Service{{Name: "motions", Run: k.Run}},
		Hears: []host.Hearing{
			host.On(func(host.MaySync) { k.allow(true) }),
			host.On(func(host.Withhold) { k.allow(false) }),
			host.On(func(host.LinkDown) { k.allow(false) }),
			host.On(func(*corelink.Hello) { k.work.Set() }), // perhaps with another body
		},
		Down:     map[string]func([]byte){topics.Motion: func([]byte) { k.work.Set() }},
		Commands: map[string]commands.Executor{commandwire.Play: k.play},
	}
}

func (k *Keeper) allow(may bool) {
	k.mu.Lock()
	k.may = may
	k.mu.Unlock()
	if may {
		k.work.Set()
	}
}

// Run keeps the robot in step with the cloud until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	if err := robotfs.CleanTemp(k.host.Root, mindlink.MotionsDir); err != nil {
		return fmt.Errorf("motions: %w", err)
	}
	pause := backoff.Pause{Min: minRetry, Max: maxRetry}
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.work:
		case <-retry.C:
		}
		retry.Stop()
		k.mu.Lock()
		may := k.may
		k.mu.Unlock()
		if !may {
			continue // MaySync wakes it
		}
		err := k.sync(ctx)
		if err == nil {
			pause.Reset()
		} else if ctx.Err() == nil {
			wait := pause.Next(nil)
			k.host.Log.DebugContext(ctx, "motions not in step; retrying", logging.Err, err, "again_in", wait)
			retry.Reset(wait)
		}
	}
}

// do makes one request.
func (k *Keeper) do(ctx context.Context, method string, req any) ([]byte, error) {
	b, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	return k.ask.Do(ctx, motionwire.Service, method, b)
}

// sync makes the robot have what the cloud says.
func (k *Keeper) sync(ctx context.Context) error {
	body, err := k.mind.Body(ctx)
	if errs.CodeOf(err) == "unable" {
		return nil // this body has no joints that move by motions
	} else if err != nil {
		return err
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answer, err := k.do(ctx, motionwire.SyncMethod, motionwire.Have{V: 1, Body: motionwire.Sum(b)})
	if err != nil {
		return err
	}
	want, err := motionwire.ParseWant(answer)
	if err != nil {
		return err
	}
	if want.Body {
		if _, err := k.ask.Do(ctx, motionwire.Service, motionwire.BodyMethod, b); err != nil {
			return err
		}
	}
	if err := k.prune(want.Motions); err != nil {
		return err
	}
	for _, m := range want.Motions {
		if err := k.bring(ctx, m); err != nil {
			return fmt.Errorf("motion %s: %w", m.Name, err)
		}
	}
	return nil
}

func fileOf(name string) string {
	return path.Join(mindlink.MotionsDir, name+mindlink.MotionsEnding)
}

// prune removes what the robot should not have.
func (k *Keeper) prune(want []motionwire.Asked) error {
	entries, err := fs.ReadDir(k.host.Root.FS(), mindlink.MotionsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	removed := false
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), mindlink.MotionsEnding)
		if !slices.ContainsFunc(want, func(m motionwire.Asked) bool { return m.Name == name }) {
			if err := k.host.Root.Remove(path.Join(mindlink.MotionsDir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed = true
		}
	}
	if removed {
		return robotfs.SyncDir(k.host.Root, mindlink.MotionsDir)
	}
	return nil
}

// bring makes the robot have a motion, and tells the verdict that the cloud lacks.
func (k *Keeper) bring(ctx context.Context, m motionwire.Asked) error {
	has, err := robotfs.ReadFile(k.host.Root, fileOf(m.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	same := err == nil && motionwire.Sum(has) == m.SHA256
	if same && !m.Judge {
		return nil
	}
	if !same {
		b, err := k.do(ctx, motionwire.FileMethod, m.Ref)
		if errs.KindOf(err) == errs.NotFound {
			return nil // it was replaced meanwhile, and down/motion is on its way
		} else if err != nil {
			return err
		}
		f, err := motionwire.ParseFile(b)
		if err != nil {
			return err
		}
		if has = f.File; motionwire.Sum(has) != m.SHA256 {
			return errs.New(errs.Corrupt, "file of %d bytes: expected SHA-256 %s, found %s", len(has), m.SHA256, motionwire.Sum(has))
		}
	}
	v, err := k.mind.Judge(ctx, mindlink.Draft{Name: m.Name, File: has})
	if err != nil {
		return err
	}
	v.Ref = m.Ref
	switch {
	case v.Kept && !same:
		err = robotfs.WriteFile(k.host.Root, fileOf(m.Name), has, 0o644)
	case !v.Kept:
		if err = k.host.Root.Remove(fileOf(m.Name)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	_, err = k.do(ctx, motionwire.VerdictMethod, v)
	if errs.KindOf(err) == errs.NotFound {
		return nil // likewise
	}
	return err
}

// play plays for a person, until it has ended.
func (k *Keeper) play(ctx context.Context, args json.RawMessage) (commands.Outcome, error) {
	a, err := commandwire.ParsePlay(args)
	if err != nil {
		return commands.Outcome{}, err
	}
	now := &live.Playing{Name: a.Name}
	say := func(p *live.Playing) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.playing = p
	}
	defer say(nil)
	ended, err := k.mind.Play(ctx, mindlink.Request{Clip: a.Name, Program: "owner", Priority: int(claim.Person)}, func(p mindlink.Progress) error {
		if p.Began != nil {
			now.SpanMS = p.Began.SpanMS
		}
		say(&live.Playing{Name: now.Name, AtMS: p.AtMS, SpanMS: now.SpanMS})
		return nil
	})
	if err != nil {
		return commands.Outcome{}, err
	}
	took := time.Duration(ended.AtMS) * time.Millisecond
	if ended.Outcome != mindlink.Done {
		return commands.Outcome{}, fmt.Errorf("%s interrupted after %v: %s", a.Name, took, ended.Reason)
	}
	return commands.Outcome{Detail: fmt.Sprintf("%s done in %v", a.Name, took)}, nil
}

// Playing returns what plays for a person; nil: nothing.
func (k *Keeper) Playing() *live.Playing {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.playing
}
