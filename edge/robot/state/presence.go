package state

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"kennel/edge/robot"
)

// ErrUnavailable: the device that the slot belongs to is gone (GOSTAI-OPEN-13). Its component stays
// in the tree, and what never changes of it is read as before.
var ErrUnavailable = errors.New("unavailable")

// Presence is the event on a node that a device is gone, or back.
type Presence struct {
	Node *robot.Node
	Gone bool
	Why  string        // for people, of one that is gone
	At   time.Duration // since then, on the clock of Sample.At
}

// presence lists the devices that are or were gone. It is immutable once published.
type presence struct {
	nodes map[*robot.Node]Presence
	gone  map[int]*Presence // by slot: the nearest node above it that is gone
}

// SetGone marks the device n with all its parts as gone, for the reason why, and SetBack marks it as present again. They report whether
// that is news; watches tell news as events. Neither may be called from the loop.
func (b *Board) SetGone(n *robot.Node, why string, at time.Duration) bool {
	return b.setPresence(Presence{n, true, why, at})
}

// SetBack is told with SetGone.
func (b *Board) SetBack(n *robot.Node, at time.Duration) bool {
	return b.setPresence(Presence{Node: n, At: at})
}

func (b *Board) setPresence(p Presence) bool {
	b.presenceMu.Lock()
	defer b.presenceMu.Unlock()
	old := b.present()
	if was, known := old.nodes[p.Node]; p.Gone == (known && was.Gone) {
		return false
	}
	next := &presence{nodes: maps.Clone(old.nodes), gone: map[int]*Presence{}}
	if next.nodes == nil {
		next.nodes = map[*robot.Node]Presence{}
	}
	next.nodes[p.Node] = p
	for _, r := range b.tree.Slots() {
		for n := r.Node; n != nil; n = n.Parent() {
			if x := next.nodes[n]; x.Gone {
				next.gone[r.ID] = &x
				break
			}
		}
	}
	b.presence.Store(next)
	if b.shared != nil {
		b.shareAbsent(next)
	}
	return true
}

func (b *Board) present() *presence {
	if p := b.presence.Load(); p != nil {
		return p
	}
	return &nobody
}

var nobody presence // is gone

// Gone returns the devices that are gone, in the order of the tree; a part of one that is gone as a whole is not listed.
func (b *Board) Gone() []Presence {
	now := b.present()
	var out []Presence
	var walk func(*robot.Node)
	walk = func(n *robot.Node) {
		if p := now.nodes[n]; p.Gone {
			out = append(out, p)
			return
		}
		for _, c := range n.Children() {
			walk(c)
		}
	}
	walk(b.tree.Root())
	return out
}

// absent is the error of a slot whose device is gone, nil if it is there.
func (b *Board) absent(r *robot.Ref) error {
	if p := b.present().gone[r.ID]; p != nil {
		return fmt.Errorf("%s: %w: %s", r, ErrUnavailable, p.Why)
	}
	return nil
}
