package agentapp

import "time"

// A robot has no clock that runs while it is off: after a start its time is the system's initial one, until the network sets it
// (VEC-BOOT-14). agentd learns about that from others: the cloud sends its time with every answer, and a certificate proves that it is not
// earlier than its issue.

// clockSlack is our own default.
const clockSlack = 2 * time.Minute // between our clock and the cloud's, when they say the same; an answer may be that long under way

// heard is the cloud's last statement of the time.
type heard struct {
	cloud time.Time
	at    time.Duration // of the agent's uptime
}

// hearTime takes note of the cloud's time, now.
func (a *Agent) hearTime(cloud time.Time) { a.heard.Store(&heard{cloud, a.uptime()}) }

// clockOff returns by how much the system's clock is ahead of the cloud's, extrapolated from its newest answer; false: there was no answer.
func (a *Agent) clockOff() (time.Duration, bool) {
	h := a.heard.Load()
	if h == nil {
		return 0, false
	}
	return a.cfg.Now().Sub(h.cloud.Add(a.uptime() - h.at)), true
}

// clockRight reports whether the system's clock is known to be right: false until the first evidence.
func (a *Agent) clockRight() bool {
	if off, known := a.clockOff(); known {
		return off.Abs() <= clockSlack
	}
	a.mu.Lock()
	id := a.identity
	a.mu.Unlock()
	return id != nil && id.Now().Sub(a.cfg.Now()) < time.Second
}
