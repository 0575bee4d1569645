// Package pleodebug runs an application on a simulated Pleo, pauses its scripts and records its drives and properties, for programs that show them to a person:
// robotkit pleo debug, and the playground in a browser.
//
// While a script is paused no time passes for the Pleo, and its time has no relation to the clock. Scripts need symbols.
package pleodebug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
	"kennel/edge/pawn"
)

// The errors of a Session.
var (
	ErrNotPaused = errors.New("no script is paused")
	ErrOff       = errors.New("the power is off")
)

// TouchFor is how long a touch usually lasts.
const TouchFor = 300 * time.Millisecond

const (
	piece = 100 * time.Millisecond // between two looks at the context, and between two points of a curve
	first = 10 * time.Millisecond  // of the first readings: what changes later is a trigger
)

// Point is a place or a variable that pauses a script.
type Point struct {
	N        int    // from 1, given by Mark
	File     string // "": any
	Line     int    // 0: no line
	Function string // pauses at its first statement
	Watch    string // a variable, which pauses when its value changes
	value    string // of the watched variable
	known    bool
}

// String returns "break main.p:12" or "watch total".
func (p *Point) String() string {
	switch {
	case p.Watch != "":
		return "watch " + p.Watch
	case p.Function != "":
		return "break " + p.Function
	case p.File != "":
		return fmt.Sprintf("break %s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("break %d", p.Line)
}

// Pace says how far Go goes.
type Pace uint8

// The paces. Next and Finish need a script that is paused.
const (
	Free   Pace = iota // to the next point
	Step               // to the next statement
	Next               // likewise, but over functions that it calls
	Finish             // to the end of the function
)

// Pause is where Go has ended.
type Pause struct {
	lifeos.Stop
	Stopped bool
	Why     string // "step", or the number of the point and what it found
}

// Config describes the Pleo. The zero value is one of firmware 1.1 without a card.
type Config struct {
	Profile lifeos.Profile
	Card    lifeos.Storage
	Seed    uint64               // of random choices
	Log     func(lifeos.Message) // nil: the log is dropped
}

// Session is one Pleo. It belongs to one goroutine.
type Session struct {
	OS     *lifeos.System
	Body   *pleosim.Body
	points []*Point
	last   int // number of a point
	plans  []plan
	curves curves

	pace  func(at lifeos.Stop) bool // pauses at a step; nil: none
	prior map[lifeos.VM]lifeos.Stop // the statement before, of each machine
	why   string
}

// plan is the end of a touch.
type plan struct {
	at time.Duration
	do func()
}

// New switches a Pleo on. Its time begins with the first Go.
func New(cfg Config) *Session {
	s := &Session{Body: pleosim.New(), prior: map[lifeos.VM]lifeos.Stop{}}
	s.Body.Set(lifeos.SensorCardDetect, 1)
	s.OS = lifeos.New(lifeos.Config{Profile: cfg.Profile, Hardware: s.Body, Card: cfg.Card, Seed: cfg.Seed, Statement: s.statement, Log: cfg.Log})
	return s
}

// Mark adds a point, and gives it a number.
func (s *Session) Mark(p Point) *Point {
	if v, ok := s.Variable(p.Watch); ok {
		p.value, p.known = v.Value, true
	}
	s.last++
	p.N = s.last
	s.points = append(s.points, &p)
	return &p
}

// Points returns the points in the order in which they were added.
func (s *Session) Points() []*Point { return s.points }

// Forget removes a point by its number, and reports whether there was one.
func (s *Session) Forget(n int) bool {
	i := slices.IndexFunc(s.points, func(p *Point) bool { return p.N == n })
	if i >= 0 {
		s.points = slices.Delete(s.points, i, i+1)
	}
	return i >= 0
}

// statement is called before each statement.
func (s *Session) statement(at lifeos.Stop) bool {
	before := s.prior[at.VM]
	s.prior[at.VM] = at
	s.why = ""
	if s.pace != nil && s.pace(at) {
		s.why = "step"
	}
	for _, p := range s.points {
		switch {
		case p.Watch != "":
			v, ok := s.Variable(p.Watch)
			if ok && p.known && v.Value != p.value {
				s.why = fmt.Sprintf("%d: %s changed from %s to %s", p.N, p.Watch, p.value, v.Value)
			}
			if ok {
				p.value, p.known = v.Value, true
			}
		case p.Function != "":
			if at.Function == p.Function && at.Begins {
				s.why = fmt.Sprintf("%d: %v", p.N, p)
			}
		case at.Line == p.Line && (p.File == "" || strings.EqualFold(p.File, at.File)) && !sameLine(before, at):
			s.why = fmt.Sprintf("%d: %v", p.N, p)
		}
	}
	return s.why != ""
}

// sameLine reports whether at continues the line of the statement before, so that a line pauses once.
func sameLine(before, at lifeos.Stop) bool {
	return before.Script == at.Script && before.File == at.File && before.Line == at.Line && before.Depth == at.Depth && before.Offset < at.Offset
}

// Variable returns a variable that exists where a script is paused.
func (s *Session) Variable(name string) (pawn.Variable, bool) {
	all := s.OS.Variables()
	i := slices.IndexFunc(all, func(v pawn.Variable) bool { return v.Name == name })
	if i < 0 {
		return pawn.Variable{}, false
	}
	return all[i], true
}

// Go lets time pass, until a script is paused or limit is over. ErrNotPaused for a pace that needs a script that is paused, ErrOff once the power is off.
func (s *Session) Go(ctx context.Context, pace Pace, limit time.Duration) (Pause, error) {
	here, stopped := s.OS.Stopped()
	s.pace = nil
	switch depth := here.Depth; {
	case pace == Step:
		s.pace = func(at lifeos.Stop) bool { return !stopped || at.VM == here.VM }
	case pace != Free && !stopped:
		return Pause{}, ErrNotPaused
	case pace == Next || pace == Finish:
		if pace == Finish {
			depth--
		}
		s.pace = func(at lifeos.Stop) bool { return at.VM == here.VM && at.Depth <= depth }
	}
	s.OS.Continue()
	for end := s.OS.Now() + limit; s.OS.Now() < end; {
		if err := ctx.Err(); err != nil {
			return Pause{}, err
		}
		next := min(s.OS.Now()+piece, end)
		s.plans = slices.DeleteFunc(s.plans, func(p plan) bool {
			if p.at <= s.OS.Now() {
				p.do()
				return true
			}
			next = min(next, p.at)
			return false
		})
		s.Body.Run(s.OS, max(next, s.OS.Now()+lifeos.Tick))
		s.curves.sample(s.OS)
		if at, stopped := s.OS.Stopped(); stopped {
			return Pause{at, true, s.why}, nil
		}
		if s.OS.Power() != lifeos.On {
			return Pause{}, ErrOff
		}
	}
	return Pause{}, nil
}

// Set gives a sensor a reading, which it keeps.
func (s *Session) Set(sensor string, v int32) error {
	id, ok := lifeos.SensorNamed(sensor)
	if !ok {
		return fmt.Errorf("no sensor %.20q", sensor)
	}
	s.Body.Set(id, v)
	return nil
}

// Touch touches a pad, such as head, for a time.
func (s *Session) Touch(pad string, lasts time.Duration) error {
	id, ok := lifeos.SensorNamed(pad)
	if !ok || id < lifeos.SensorHead || id > lifeos.SensorTail {
		return fmt.Errorf("no pad %.20q", pad)
	}
	if s.OS.Now() == 0 {
		s.Body.Run(s.OS, first)
	}
	s.Body.Set(id, 1)
	s.plans = append(s.plans, plan{s.OS.Now() + lasts, func() { s.Body.Set(id, 0) }})
	return nil
}
