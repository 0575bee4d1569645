// Package host is agentd as a list of parts: what a part offers, the bus on which parts hear of each other, and the order in which they run.
//
//	robotd ──► core ──┐                 ┌─► On: at once, in the order of the list
//	cloud ───► link ──┼─► Publish ─► bus┤
//	any part ─────────┘                 └─► Queue: in a service of the part; what finds it full is lost, under the part's name
//	cloud ───► link ──► Down, Commands
//	programs of the robot ─► localapi ─► Local
//
// A part is made with the few values that it needs of other parts; everything else it hears on the bus. edge/app/agentapp has the lists.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"kennel/edge/agent/commands"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/status"
	"kennel/infra/cli/version"
	"kennel/infra/runner"
)

// Part is one piece of agentd. What is zero is not offered. Functions are called from several goroutines.
type Part struct {
	Name     string
	Begin    func()                       // called once, after all parts are made and before any service runs
	Services []runner.Service             // run while agentd does, and stop in reverse order
	Hears    []Hearing                    // events of the bus
	Down     map[string]func([]byte)      // messages of the cloud, by name below down/; must not block
	Commands map[string]commands.Executor // commands of the cloud, by kind
	Local    map[string]http.Handler      // requests on agentd's socket, by pattern
	Fill     func(*status.Message)        // adds to the robot's status; must not block
}

// Hearing is how a part hears events of one type: On or Queue.
type Hearing struct {
	take func(event any) (lost bool)
	run  func(context.Context) error // nil: take does it all
}

// On calls f with each event of type E in the goroutine that publishes it. f must not block. E may be an interface, such as corelink.Message.
func On[E any](f func(E)) Hearing {
	return Hearing{take: func(event any) bool {
		if e, ok := event.(E); ok {
			f(e)
		}
		return false
	}}
}

// Queue calls f with one event of type E after the other, in a service of the part, which an error of f restarts. Up to most events wait; an event
// that finds the queue full is lost, which the log and the status say.
func Queue[E any](most int, f func(context.Context, E) error) Hearing {
	waiting := make(chan E, most)
	return Hearing{
		take: func(event any) bool {
			if e, ok := event.(E); ok {
				select {
				case waiting <- e:
				default:
					return true
				}
			}
			return false
		},
		run: func(ctx context.Context) error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case e := <-waiting:
					if err := f(ctx, e); err != nil {
						return err
					}
				}
			}
		},
	}
}

// member is a part in the host.
type member struct {
	Part
	lost atomic.Uint64 // events, since the start of agentd
}

// Host holds the parts of one agentd. Add is called before Services, from one goroutine; everything else is safe for concurrent use.
type Host struct {
	Robot
	parts    []*member
	down     map[string]func([]byte)
	commands map[string]commands.Executor
	local    map[string]http.Handler
	end      chan error // why agentd is to end; one slot
}

// New returns a host without parts, which answers a ping and restarts when the cloud asks for it. The parts for events and for the link set Emit, Keep and Changed of its Robot.
func New(robot Robot) *Host {
	h := &Host{Robot: robot, down: map[string]func([]byte){}, local: map[string]http.Handler{}, end: make(chan error, 1)}
	h.commands = map[string]commands.Executor{
		commandwire.Ping: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: fmt.Sprintf("agentd %s, up for %v", version.String(), h.Uptime().Round(time.Second))}, nil
		},
		commandwire.RestartAgent: func(context.Context, json.RawMessage) (commands.Outcome, error) {
			return commands.Outcome{Detail: "agentd restarts", After: func() { h.End(errAsked) }}, nil
		},
	}
	return h
}

// Add adds a part after those that are there. Its name, and what it answers, must be its alone.
func (h *Host) Add(p Part) error {
	if p.Name == "" || slices.ContainsFunc(h.parts, func(m *member) bool { return m.Name == p.Name }) {
		return fmt.Errorf("part %q: want a unique name", p.Name)
	}
	h.parts = append(h.parts, &member{Part: p})
	if err := errors.Join(join(h.down, p.Down), join(h.commands, p.Commands), join(h.local, p.Local)); err != nil {
		return fmt.Errorf("part %s: %w", p.Name, err)
	}
	return nil
}

func join[V any](all, more map[string]V) error {
	for key, v := range more {
		if _, twice := all[key]; twice {
			return fmt.Errorf("%q is answered by another part", key)
		}
		all[key] = v
	}
	return nil
}

// Publish tells every part that hears events of this type. It does not block.
func (h *Host) Publish(event any) {
	for _, m := range h.parts {
		for _, x := range m.Hears {
			if !x.take(event) {
				continue
			}
			if n := m.lost.Add(1); n&(n-1) == 0 {
				h.Log.Warn("event of agentd lost; part too slow", "part", m.Name, "event", fmt.Sprintf("%T", event), "lost", n)
			}
		}
	}
}

// Services calls Begin of each part and returns the services of all, in their order, and one that fails when End is called.
func (h *Host) Services() []runner.Service {
	all := []runner.Service{{Name: "restart", Run: h.awaitEnd, Fatal: true}}
	for _, m := range h.parts {
		if m.Begin != nil {
			m.Begin()
		}
		all = append(all, m.Services...)
		for _, x := range m.Hears {
			if x.run != nil {
				all = append(all, runner.Service{Name: m.Name, Run: x.run})
			}
		}
	}
	return all
}

// Down returns what the parts do with messages of the cloud, Commands with its commands, and Local with requests on the socket. The maps are complete
// when all parts are added, and are not changed after that.
func (h *Host) Down() map[string]func([]byte) { return h.down }

// Commands: see Down.
func (h *Host) Commands() map[string]commands.Executor { return h.commands }

// Local: see Down.
func (h *Host) Local() map[string]http.Handler { return h.local }

// Status returns the robot's status now. It waits for each part that has something to add.
func (h *Host) Status() status.Message {
	m := status.Message{Agent: version.String(), OS: h.OS, Recovery: h.Recovery, UptimeMS: h.Uptime().Milliseconds()}
	for _, p := range h.parts {
		if p.Fill != nil {
			p.Fill(&m)
		}
		if n := p.lost.Load(); n > 0 {
			m.Tell(status.Problem{Kind: status.KindOther, Text: fmt.Sprintf("agentd's part %s lost %d events", p.Name, n)})
		}
	}
	return m
}

// Reasons for which agentd ends.
var (
	errEnd   = errors.New("restart of agentd requested") // so that its supervisor restarts it
	errAsked = errors.New("requested by the cloud")
)

// Ended reports whether err is the end that End asked for.
func Ended(err error) bool { return errors.Is(err, errEnd) }

// End ends agentd, because of why; its supervisor restarts it.
func (h *Host) End(why error) {
	select {
	case h.end <- fmt.Errorf("%w: %w", errEnd, why):
	default: // asked for already
	}
}

// awaitEnd fails once End was called.
func (h *Host) awaitEnd(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-h.end:
		return err
	}
}
