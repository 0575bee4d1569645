// Package controltest runs a loop, its control and the driver of a body in simulated time, so that a test gives orders and looks at the tree between two steps.
package controltest

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/core/control"
	"kennel/edge/core/rt"
	"kennel/edge/robot/claim"
	"kennel/edge/robot/state"
)

// Alice is the owner that gives the orders of a Place.
const Alice = claim.Owner(2)

// patience is the simulated time in which an order is answered and ends.
const patience = 20 * time.Second

// Clock is a simulated body's time, such as a uart.Stepped.
type Clock interface {
	Now() time.Duration
	SleepUntil(t time.Duration)
}

// Place is a body under its loop. A test's script runs between two steps of the loop.
type Place struct {
	*testing.T
	Control *control.Control
	Live    *state.Live
	Report  control.Report
	Results []control.Result
	Events  []control.Event
	Request uint32 // of the newest order

	clock Clock
	step  func()
}

// Run runs script on the body behind driver, which it closes.
func Run(t *testing.T, model control.Model, clock Clock, driver body.Body, script func(p *Place)) {
	t.Helper()
	p := &Place{T: t, clock: clock}
	var err error
	if p.Control, err = control.New(model, nil); err != nil {
		t.Fatal(err)
	}
	p.Live = state.NewLive(p.Control.Board(), nil)
	// The loop runs in a goroutine that takes turns with the script's: one step each.
	turn, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	task := rt.Task{Name: "test", Every: 1, Run: func(*rt.Frame) {
		select {
		case done <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case <-turn:
		case <-ctx.Done():
		}
	}}
	loop, err := rt.New(rt.Config{}, clock, p.Control.Task(), task)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- loop.Run(ctx, driver) }()
	defer func() {
		cancel()
		if err := errors.Join(<-ended, driver.Close()); err != nil {
			t.Error(err)
		}
	}()
	first := true
	p.step = func() {
		if !first {
			turn <- struct{}{}
		}
		first = false
		select {
		case <-done:
		case err := <-ended:
			ended <- err
			t.Fatalf("the loop ended: %v", err)
		}
		p.hear()
	}
	p.step()
	script(p)
}

func (p *Place) hear() {
	p.Control.Report(&p.Report)
	for r, ok := p.Control.Result(); ok; r, ok = p.Control.Result() {
		p.Results = append(p.Results, r)
	}
	for e, ok := p.Control.Event(); ok; e, ok = p.Control.Event() {
		p.Events = append(p.Events, e)
	}
}

// Step lets the loop make one step.
func (p *Place) Step() { p.step() }

// Wait lets a time pass.
func (p *Place) Wait(d time.Duration) {
	for until := p.clock.Now() + d; p.clock.Now() < until; {
		p.step()
	}
}

// Happened reports whether an event was emitted.
func (p *Place) Happened(name string) bool {
	return slices.ContainsFunc(p.Events, func(e control.Event) bool { return e.Name == name })
}

// Result waits for a result, and takes it.
func (p *Place) Result(what string, ok func(control.Result) bool) control.Result {
	p.Helper()
	for until := p.clock.Now() + patience; ; p.step() {
		if i := slices.IndexFunc(p.Results, ok); i >= 0 {
			r := p.Results[i]
			p.Results = slices.Delete(p.Results, i, i+1)
			return r
		}
		if p.clock.Now() > until {
			p.Fatalf("no result: %s", what)
		}
	}
}

// Ask gives an order of Alice's, and returns the answer.
func (p *Place) Ask(o control.Order) control.Result {
	p.Helper()
	p.Request++
	o.Owner, o.Request = Alice, p.Request
	if !p.Control.Post(o) {
		p.Fatal("mailbox full")
	}
	return p.Result("an answer", func(r control.Result) bool { return r.Request == o.Request })
}

// Claim claims parts for Alice.
func (p *Place) Claim(names ...string) {
	p.Helper()
	set, err := p.Control.Actuators(names...)
	if err != nil {
		p.Fatal(err)
	}
	if r := p.Ask(control.Order{Kind: control.Claim, Set: set, Priority: claim.Person}); r.Code != control.OK {
		p.Fatalf("claim of %v: %+v", names, r)
	}
}

// Goals returns the order to set slots.
func (p *Place) Goals(goals map[string]float64) (o control.Order) {
	p.Helper()
	o.Kind = control.Set
	for _, name := range slices.Sorted(maps.Keys(goals)) {
		v := goals[name]
		if joint, angle := strings.CutSuffix(name, ".angle"); angle { // the core's server does this for programs
			name, v = joint+".turn", v/(2*math.Pi)
		}
		target, err := p.Control.Model().Tree.Lookup(name)
		if err != nil || len(target.Refs) != 1 {
			p.Fatalf("%s: %d slots, %v", name, len(target.Refs), err)
		}
		o.Goals[o.N] = control.Goal{Slot: target.Refs[0].ID, Value: v}
		o.N++
	}
	return o
}

// Move does an order to its end.
func (p *Place) Move(o control.Order) control.Result {
	p.Helper()
	if r := p.Ask(o); r.Code != control.OK {
		p.Fatalf("refused: %+v", r)
	}
	id := p.Request
	return p.Result("the end of a motion", func(r control.Result) bool { return r.Request == id && r.Code == control.Ended })
}

// Value returns the value of a slot.
func (p *Place) Value(name string) float64 {
	p.Helper()
	v, err := p.Live.Read(name)
	if err != nil {
		p.Fatal(err)
	}
	return v.Value.Number
}
