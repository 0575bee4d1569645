package coreclient

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"kennel/edge/corelink"
	"kennel/edge/robot"
	"kennel/infra/api/live"
)

// minEvery is how often a watch looks at most: each look is one of the messages that robotd reads of this program. Own default.
const minEvery = 50 * time.Millisecond

// Change says that a slot reads otherwise than it was told last.
type Change struct {
	Device string // full name
	Slot   live.Slot
	Value  *live.Value // nil: it is not known, or its device is gone
}

// Watch calls tell with the values of the named slots: first all of them, later those that changed, all of one moment, at most once in
// every (GOSTAI-OPEN-02). A name names a slot or, for all its slots, a device, a group or a component. Watch polls, so a value that changes
// several times between two looks is told once. It ends with ctx, an error of tell, or an error of robotd.
func (c *Client) Watch(ctx context.Context, every time.Duration, tell func([]Change) error, names ...string) error {
	tree, err := c.Tree(ctx)
	if err != nil {
		return err
	}
	var watched []Change
	for _, name := range names {
		found := slotsOf(tree, name)
		if len(found) == 0 {
			return fmt.Errorf("%w: %.80s", robot.ErrNotFound, name)
		}
		watched = append(watched, found...)
	}
	tick := time.NewTicker(max(every, minEvery))
	defer tick.Stop()
	for first := true; ; first = false {
		values, err := c.Values(ctx)
		if err != nil {
			return err
		}
		var changed []Change
		for i := range watched {
			w := &watched[i]
			var now *live.Value
			if at := slices.IndexFunc(values.Values, func(v live.Value) bool { return v.Slot == w.Slot.ID }); at >= 0 {
				now = &values.Values[at]
			}
			if first || !same(w.Value, now) {
				w.Value = now
				changed = append(changed, *w)
			}
		}
		if len(changed) > 0 {
			if err := tell(changed); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// same reports whether two values read alike; how old they are does not matter.
func same(a, b *live.Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.AgeMS = y.AgeMS
	return reflect.DeepEqual(x, y)
}

// slotsOf returns the slots that name means, full, compact or an alias; of a full one "robot." may be left out (GOSTAI-TREE-02).
func slotsOf(t *corelink.Tree, name string) (out []Change) {
	for _, n := range t.Nodes {
		for _, s := range n.Slots {
			if slices.ContainsFunc(slices.Concat(n.Aliases, []string{n.Full, n.Compact, strings.TrimPrefix(n.Full, "robot.")}), func(own string) bool {
				rest, ok := strings.CutPrefix(own+"."+s.Name, name)
				return own != "" && ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
			}) {
				out = append(out, Change{Device: n.Full, Slot: s})
			}
		}
	}
	return out
}
