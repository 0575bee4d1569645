package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kennel/edge/robot"
)

// Change is what a watch tells: that a slot reads otherwise than it told last, or the event that a device is gone or back.
type Change struct {
	Ref      *robot.Ref    // nil: an event
	Property string        // of the slot, as in a name
	Value    robot.Value   // None if nobody knows it: then Err says why
	Err      error         // ErrUnknown or ErrUnavailable, wrapped; nil
	At       time.Duration // when it was measured, or of an event when it happened; 0: it never changes, or nobody knows

	Event *Presence
}

// MS returns At in whole milliseconds, the time stamp of a subscription (GOSTAI-OPEN-02).
func (c *Change) MS() int64 { return c.At.Milliseconds() }

// Watch is a subscription to slots: on change, and of each slot at most once in a given time (GOSTAI-OPEN-02). It keeps what it told last and nothing else,
// and looks at the board only when it is asked: what changes between two looks is told once, as it is then, and whoever publishes never knows of it, however
// slow its reader is. It reads no clock. One goroutine uses it; there may be any number of watches.
type Watch struct {
	live    *Live
	every   time.Duration
	watched []watched
	nodes   []*robot.Node // whose presence matters: those of the slots and all above them
	there   map[*robot.Node]Presence
}

type watched struct {
	ref      *robot.Ref
	property string
	told     bool
	last     Change
	at       time.Duration // when it was told
}

// Watch returns a subscription to the slots that names name, in that order. A group is all its slots, and a device without a slot its val, as in a line. Of
// each slot it tells a change at most once in every; 0: at each look. What cannot be read at all, such as a method, is refused.
func (l *Live) Watch(every time.Duration, names ...string) (*Watch, error) {
	if every < 0 || len(names) == 0 {
		return nil, fmt.Errorf("%w: a watch of %d names every %v, want at least one name, and no time below 0", robot.ErrRange, len(names), every)
	}
	w := &Watch{live: l, every: every, there: map[*robot.Node]Presence{}}
	for _, name := range names {
		target, err := l.target(name)
		if err != nil {
			return nil, err
		}
		if len(target.Refs) == 0 {
			return nil, fmt.Errorf("%w: %s is no slot; name one, such as %s.val", robot.ErrName, name, target.Nodes[0].Full())
		}
		for _, r := range target.Refs {
			if _, _, err := l.read(r, target.Property, nil); err != nil && !unknown(err) {
				return nil, err
			}
			if !slices.ContainsFunc(w.watched, func(x watched) bool { return x.ref == r && x.property == target.Property }) {
				w.watched = append(w.watched, watched{ref: r, property: target.Property})
			}
			for n := r.Node; n != nil; n = n.Parent() {
				if !slices.Contains(w.nodes, n) {
					w.nodes = append(w.nodes, n)
				}
			}
		}
	}
	return w, nil
}

// unknown reports whether err is only that nobody knows a value at the moment.
func unknown(err error) bool { return errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnavailable) }

// Poll returns what is to be told at the time now, on any clock that never goes back: the first time every slot, and who is gone; later the events since, and
// the slots that changed and were not told within the time of the watch. All values are of the same moment, but for words and images, which have none.
func (w *Watch) Poll(now time.Duration) []Change {
	var out []Change
	present := w.live.board.present()
	for _, n := range w.nodes {
		if p := present.nodes[n]; p.Gone != w.there[n].Gone {
			w.there[n] = p
			out = append(out, Change{Event: &p, At: p.At})
		}
	}
	buf := w.live.board.acquire()
	var snap *Snapshot
	if buf != nil {
		defer buf.release()
		snap = &buf.snap
	}
	for i := range w.watched {
		x := &w.watched[i]
		if x.told && now-x.at < w.every {
			continue
		}
		c := Change{Ref: x.ref, Property: x.property}
		c.Value, c.At, c.Err = w.live.read(x.ref, x.property, snap)
		if c.Err != nil {
			c.Value, c.At = robot.Value{}, 0
		}
		if x.told && !c.differs(&x.last) {
			continue
		}
		x.told, x.last, x.at = true, c, now
		out = append(out, c)
	}
	return out
}

// differs reports whether c is worth telling after o.
func (c *Change) differs(o *Change) bool {
	if (c.Err == nil) != (o.Err == nil) || errors.Is(c.Err, ErrUnavailable) != errors.Is(o.Err, ErrUnavailable) {
		return true
	}
	return !same(c.Value, o.Value) || c.Value.Type == robot.Bytes && c.At != o.At // one image may be as large as another
}

func same(a, b robot.Value) bool {
	return a.Type == b.Type && (a.Number == b.Number || math.IsNaN(a.Number) && math.IsNaN(b.Number)) && a.Text == b.Text && len(a.Data) == len(b.Data) &&
		slices.EqualFunc(a.Items, b.Items, same)
}
