package link

import "time"

// A robot has no clock that runs while it is off: after a start its time is the system's initial one, until the network sets it
// (VEC-BOOT-14). agentd learns about that from others: the cloud sends its time with every answer, and a certificate proves that it is not
// earlier than its issue.

// ClockSlack is our own default.
const ClockSlack = 2 * time.Minute // between our clock and the cloud's, when they say the same; an answer may be that long under way

// heard is the cloud's last statement of the time.
type heard struct {
	cloud time.Time
	at    time.Duration // of the agent's uptime
}

// HearTime takes note of the cloud's time, now.
func (c *Cloud) HearTime(cloud time.Time) { c.heard.Store(&heard{cloud, c.host.Uptime()}) }

// Time returns the cloud's time, extrapolated from its newest answer, whatever the system's clock says; known is false without one. It is behind by as
// long as that answer was under way.
func (c *Cloud) Time() (now time.Time, known bool) {
	h := c.heard.Load()
	if h == nil {
		return now, false
	}
	return h.cloud.Add(c.host.Uptime() - h.at), true
}

// ClockAgrees reports whether the system's clock agrees with the cloud's; known is false before the cloud said its time.
func (c *Cloud) ClockAgrees() (agrees, known bool) {
	now, known := c.Time()
	return known && c.host.Now().Sub(now).Abs() <= ClockSlack, known
}

// ClockRight reports whether the system's clock is known to be right: false until the first evidence.
func (c *Cloud) ClockRight() bool {
	if agrees, known := c.ClockAgrees(); known {
		return agrees
	}
	id := c.identified()
	return id != nil && id.Now().Sub(c.host.Now()) < time.Second
}

// Believed returns the time to believe: a certificate may prove that the system's clock is behind.
func (c *Cloud) Believed() time.Time {
	if id := c.identified(); id != nil {
		return id.Now()
	}
	return c.host.Now()
}
