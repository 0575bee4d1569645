// Package claim lets an owner claim the robot: a person asks for a code at the robot, the cloud issues one, the robot shows it, and
// the person who types it into the app owns the robot (design, section 6). The robot shows the code only while it is valid.
package claim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kennel/infra/api/owners"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/wake"
)

// Display shows a code on the robot. Its methods do not block; Hide without Show is fine.
type Display interface {
	Show(code string, goodFor time.Duration) error
	Hide() error
}

// Config names the cloud to ask and the display to show the code on.
type Config struct {
	Ask     kitmqtt.Requester
	Display Display
	Log     *slog.Logger
	// Auto shows a code whenever the robot has no owner, as a robot does that is taken out of its box.
	Auto bool
	// OnStatus is called with the owner status whenever the cloud has sent it. It must not block.
	OnStatus func(owners.Status)
}

// Intervals; our own defaults. While a code is shown the agent asks the cloud whether it was used.
const (
	askTime    = 20 * time.Second
	lookEvery  = 5 * time.Second
	firstPause = 2 * time.Second
	maxPause   = time.Minute
)

// State is the code that is shown, for doctor.
type State struct {
	Known   bool      `json:"known"` // the cloud has said whose robot it is
	Owned   bool      `json:"owned"`
	Code    string    `json:"code,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Problem string    `json:"problem,omitempty"`
}

// Agent is safe for concurrent use; Run is called once at a time.
type Agent struct {
	cfg  Config
	wake wake.Signal // one slot

	mu     sync.Mutex
	wish   *wish  // for a code; nil: none
	code   string // shown
	until  time.Time
	known  bool
	status owners.Status
	err    error
	look   bool // ask whose robot it is
}

// wish is a request for one code. Its result is set before done is closed.
type wish struct {
	key   string
	done  chan struct{}
	code  string
	until time.Time
	err   error
}

func newWish() *wish { return &wish{key: rand.Text(), done: make(chan struct{})} }

// New returns an Agent that does nothing until Run.
func New(cfg Config) (*Agent, error) {
	if cfg.Ask == nil || cfg.Display == nil || cfg.Log == nil {
		return nil, errors.New("claim: want a requester, a display and a logger")
	}
	if cfg.OnStatus == nil {
		cfg.OnStatus = func(owners.Status) {}
	}
	return &Agent{cfg: cfg, wake: wake.New()}, nil
}

// State returns the current state of the claim.
func (a *Agent) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := State{Known: a.known, Owned: a.status.Owned, Code: a.code, Until: a.until}
	if a.err != nil {
		s.Problem = a.err.Error()
	}
	return s
}

// Connected says that there is a connection: the cloud is asked whose robot it is.
func (a *Agent) Connected() { a.lookNow() }

// Look asks the cloud again whose robot it is, such as after an exchange of tokens.
func (a *Agent) Look() { a.lookNow() }

// Ask asks the cloud now whose robot it is, and returns when OnStatus has heard it.
func (a *Agent) Ask(ctx context.Context) error {
	s, err := a.askStatus(ctx)
	if err == nil {
		a.cfg.OnStatus(s)
	}
	return err
}

func (a *Agent) lookNow() {
	a.mu.Lock()
	a.look = true
	a.mu.Unlock()
	a.wake.Set()
}

// Want shows a code, and returns it when it is shown. A code that is already shown stays. The cloud refuses while the robot has an owner.
func (a *Agent) Want(ctx context.Context) (code string, until time.Time, err error) {
	w, code, until := a.wanted()
	if code != "" {
		return code, until, nil
	}
	select {
	case <-ctx.Done():
		return "", time.Time{}, errs.New(errs.Unavailable, "no code from the cloud yet: %w", ctx.Err())
	case <-w.done:
		return w.code, w.until, w.err
	}
}

// Show asks for a code to be shown, and does not wait for it.
func (a *Agent) Show() { a.wanted() }

// wanted returns the wish for a code, or the code that is shown.
func (a *Agent) wanted() (w *wish, code string, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.code != "" {
		return nil, a.code, a.until
	}
	if a.wish == nil {
		a.wish = newWish()
		a.wake.Set()
	}
	return a.wish, "", time.Time{}
}

// Run asks and shows until ctx ends; then nothing is shown.
func (a *Agent) Run(ctx context.Context) error {
	defer a.hide()
	pause := backoff.Pause{Min: firstPause, Max: maxPause}
	for {
		wait, err := a.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			pause.Reset()
		} else {
			a.cfg.Log.WarnContext(ctx, "claiming", "err", err)
			wait = pause.Next(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
		case <-time.After(wait):
		}
	}
}

// idle is how long nothing needs to be done.
const idle = time.Hour

// step does the work that is due and returns the time of the next step.
func (a *Agent) step(ctx context.Context) (time.Duration, error) {
	a.mu.Lock()
	w, code, until, look := a.wish, a.code, a.until, a.look
	a.mu.Unlock()
	now := time.Now()
	if code != "" && !now.Before(until) {
		a.hide()
		code = ""
		look = true // it may have been used at the last moment
	}
	if look || code != "" {
		s, err := a.askStatus(ctx)
		if err != nil {
			return 0, err
		}
		a.mu.Lock()
		a.look, a.known, a.status, a.err = false, true, s, nil
		if a.wish == nil && a.code == "" && a.cfg.Auto && !s.Owned {
			a.wish = newWish()
		}
		w = a.wish
		a.mu.Unlock()
		a.cfg.OnStatus(s)
		if code != "" && (s.Owned || s.CodeExpiresInMS == 0) { // used, or tried too often
			a.hide()
			a.mu.Lock()
			a.look = !s.Owned // its owner may be known a moment later; without one the robot shows another code
			a.mu.Unlock()
			return 0, nil
		}
	}
	if w == nil {
		if code != "" {
			return min(lookEvery, max(until.Sub(now), 0)), nil
		}
		return idle, nil
	}
	return a.fetch(ctx, w)
}

func (a *Agent) askStatus(ctx context.Context) (owners.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	b, err := a.cfg.Ask.Do(ctx, owners.Service, owners.StatusMethod, nil)
	if err != nil {
		return owners.Status{}, fmt.Errorf("ask for the owner: %w", err)
	}
	s, err := owners.ParseStatus(b)
	if err != nil {
		return owners.Status{}, errs.New(errs.Corrupt, "owner of the robot: %w", err)
	}
	return s, nil
}

// fetch asks the cloud for a code. A refusal ends the wish: asking again would get the same answer.
func (a *Agent) fetch(ctx context.Context, w *wish) (time.Duration, error) {
	body, err := owners.Encode(owners.Keyed{Key: w.key})
	if err != nil {
		return 0, err
	}
	actx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	sent := time.Now() // its life began no earlier
	b, err := a.cfg.Ask.Do(actx, owners.Service, owners.CodeMethod, body)
	if err != nil {
		switch errs.KindOf(err) {
		case errs.Unavailable, errs.Exhausted, errs.Internal:
			a.mu.Lock()
			a.err = err
			a.mu.Unlock()
			return 0, fmt.Errorf("ask for a code: %w", err)
		}
		a.settle("", time.Time{}, err)
		a.mu.Lock()
		a.look = true // the cloud knows something that the robot does not
		a.mu.Unlock()
		return 0, fmt.Errorf("ask for a code: %w", err)
	}
	c, err := owners.ParseCode(b)
	if err != nil {
		return 0, errs.New(errs.Corrupt, "code: %w", err)
	}
	goodFor := time.Duration(c.ExpiresInMS) * time.Millisecond
	if err := a.cfg.Display.Show(c.Code, goodFor); err != nil {
		err = fmt.Errorf("show the code: %w", err)
		a.settle("", time.Time{}, err)
		return 0, err
	}
	a.settle(c.Code, sent.Add(goodFor), nil)
	return lookEvery, nil
}

// settle ends the wish for a code.
func (a *Agent) settle(code string, until time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wish.code, a.wish.until, a.wish.err = code, until, err
	close(a.wish.done)
	a.wish, a.code, a.until, a.err = nil, code, until, err
}

func (a *Agent) hide() {
	a.mu.Lock()
	a.code, a.until = "", time.Time{}
	a.mu.Unlock()
	if err := a.cfg.Display.Hide(); err != nil {
		a.cfg.Log.Warn("claim code still displayed", "err", err)
	}
}
