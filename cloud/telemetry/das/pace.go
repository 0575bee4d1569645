package das

import (
	"sync"
	"time"

	"kennel/infra/backoff"
)

// Pauses that robots are told; our own defaults. They spread a fleet that waits over at least as long as the outage lasted, so that the
// first minute after it is no storm.
const (
	minPause   = time.Second
	maxPause   = 2 * time.Minute
	probeEvery = time.Second
)

// pacer turns robots away while storage is down, and lets one batch in per probeEvery to see whether it is back. Safe for concurrent use.
type pacer struct {
	mu    sync.Mutex
	since time.Time // start of the outage; zero: none
	probe time.Time // when the next batch may try
}

// turnAway reports for how long a robot is to wait, or 0 if its batch may come in.
func (p *pacer) turnAway(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return 0
	}
	if !now.Before(p.probe) {
		p.probe = now.Add(probeEvery)
		return 0
	}
	return backoff.Jitter(min(max(now.Sub(p.since), minPause), maxPause))
}

// failed notes that storage did not take a group and returns the pause for its robots.
func (p *pacer) failed(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
	p.probe = now.Add(probeEvery)
	return backoff.Jitter(min(max(now.Sub(p.since), minPause), maxPause))
}

// worked notes that storage is there.
func (p *pacer) worked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
}
