package das

import (
	"time"

	"kennel/infra/api/events"
	"kennel/infra/thing"
)

// Clock says how right the clock of a robot was in one boot, by what came of it. With it an event that was recorded before a change of owner and
// came after it is told from the next owner's. The zero value is of a boot of which nothing is known.
type Clock struct {
	Ahead int64  // ms that it was ahead of ours although set from the network, at least: no event comes before it happened. 0 to maxClock
	Began *int64 // ms since 1970, when uptime was 0, by the events whose time was set from the network; nil: there is none
}

// MaxAhead is how far a clock may be ahead, in ms, to tell when events were recorded: one that is further ahead was wrong by we do not know how much.
const MaxAhead = 10 * 60 * 1000

// maxClock bounds times and differences, in ms, so that sums do not overflow.
const maxClock = 1 << 50

// ClockOf returns what events of one boot, received at a time, say of its clock.
func ClockOf(received time.Time, batch []events.Event) (c Clock) {
	for _, e := range batch {
		if e.Unsynced {
			continue
		}
		ts := min(e.TS, maxClock)
		c.Ahead = max(c.Ahead, ts-received.UnixMilli())
		if began := ts - min(e.UptimeMS, maxClock); c.Began == nil || began < *c.Began {
			c.Began = &began
		}
	}
	return c
}

// With returns what two sets of events of one boot say together.
func (c Clock) With(d Clock) Clock {
	c.Ahead = max(c.Ahead, d.Ahead)
	if c.Began == nil || d.Began != nil && *d.Began < *c.Began {
		c.Began = d.Began
	}
	return c
}

// Since reports whether an event was recorded at a time or later, for certain: a time that was a guess counts from the begin of the boot, if that is
// known.
func (c Clock) Since(e *events.Event, at time.Time) bool {
	from := at.UnixMilli() + c.Ahead
	switch {
	case c.Ahead > MaxAhead:
		return false
	case e.Unsynced:
		return c.Began != nil && e.UptimeMS >= from-*c.Began
	}
	return e.TS >= from
}

// clocks answers Since for the events of one robot.
type clocks map[string]Clock // by boot

// since returns those of a batch that were recorded at a time or later.
func (c clocks) since(batch []events.Event, at time.Time) (out []events.Event) {
	for _, e := range batch {
		if c[e.BootID].Since(&e, at) {
			out = append(out, e)
		}
	}
	return out
}

// lateOf returns the stretches in which what was recorded in a stretch came late: each is one transaction.
func lateOf(s thing.Stretch, received []time.Time) (out []thing.Stretch) {
	for _, at := range received {
		out = append(out, thing.Stretch{Thing: s.Thing, Since: at, Until: at.Add(time.Microsecond)})
	}
	return out
}
