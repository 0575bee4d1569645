package devicecert

import (
	"runtime/debug"
	"sync"
	"time"
)

// clock is the time that a robot believes. An empty battery may have reset its system clock. Two facts are certain: the time when the
// program was built, and that the first day of validity of a certificate signed below our root has come. Only such proof is kept, never the
// system's own time: otherwise a clock that once ran ahead would keep the robot in the future for good.
type clock struct {
	system func() time.Time

	mu    sync.Mutex
	floor time.Time // true when it was set
	set   time.Time // with the monotonic reading
	proof time.Time // latest proven time
}

func newClock(system func() time.Time, build, proven time.Time) *clock {
	if build.IsZero() {
		build = buildTime()
	}
	c := &clock{system: system, floor: build, set: system()}
	c.prove(proven)
	return c
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(c.system())
}

func (c *clock) at(now time.Time) time.Time {
	if f := c.floor.Add(now.Sub(c.set)); f.After(now) {
		return f
	}
	return now
}

// prove says that t has passed. It reports whether that is later than any earlier proof.
func (c *clock) prove(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !t.After(c.proof) {
		return false
	}
	c.proof = t
	if now := c.system(); t.After(c.at(now)) {
		c.floor, c.set = t, now
	}
	return true
}

func (c *clock) proven() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proof
}

// buildTime returns the time of the commit this program was built from; zero if the build did not record it.
func buildTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			t, err := time.Parse(time.RFC3339, s.Value)
			if err == nil {
				return t
			}
		}
	}
	return time.Time{}
}
