package admission

import (
	"fmt"
	"net/netip"
	"time"

	"kennel/infra/logging"
)

// How often operators are told, from how many on, and how many addresses are counted for it.
const (
	tellEvery  = 10 * time.Second
	newsFrom   = 20
	newsWindow = time.Minute
	mostBlamed = 1024
)

// told counts those turned away, and notes when operators were told. The owner of its Door's lock uses it.
type told struct {
	logged    time.Time        // last
	unlogged  int              // turned away since
	all       map[Reason]int64 // turned away at all
	exhausted time.Time        // last time without a descriptor
	now, last window
}

// window counts a minute of those turned away.
type window struct {
	from   time.Time
	n      int
	blamed map[netip.Prefix]int
	worst  netip.Prefix // who has most of them
}

// turn begins another window when this one is over.
func (t *told) turn(now time.Time) {
	if now.Sub(t.now.from) < newsWindow {
		return
	}
	t.last = t.now
	if now.Sub(t.last.from) > 2*newsWindow {
		t.last = window{}
	}
	t.now = window{from: now, blamed: map[netip.Prefix]int{}}
}

// note counts a connection that was turned away, and says in the log how many there were.
func (d *Door) note(listener string, addr netip.Prefix, r Reason) {
	if d.cfg.Refused != nil {
		d.cfg.Refused(listener, r)
	}
	now, t := time.Now(), &d.told
	t.turn(now)
	t.all[r]++
	t.unlogged++
	t.now.n++
	if _, known := t.now.blamed[addr]; known || len(t.now.blamed) < mostBlamed {
		t.now.blamed[addr]++
		if t.now.blamed[addr] > t.now.blamed[t.now.worst] {
			t.now.worst = addr
		}
	}
	if d.cfg.Log == nil || t.unlogged < newsFrom || now.Sub(t.logged) < tellEvery {
		return
	}
	d.cfg.Log.Warn("connections refused", "listener", listener, "connections", t.unlogged, logging.Addr, t.now.worst.String(), "reason", words[r])
	t.logged, t.unlogged = now, 0
}

// News returns a sentence for operators about those turned away in the last minutes; "": nothing worth one.
func (d *Door) News() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.told.turn(now)
	w := d.told.now
	if w.n < d.told.last.n {
		w = d.told.last
	}
	out := ""
	if !d.told.exhausted.IsZero() && now.Sub(d.told.exhausted) < 2*newsWindow {
		out = "This process ran out of file descriptors: raise its limit (LimitNOFILE, ulimits). "
	}
	if w.n >= newsFrom {
		out += fmt.Sprintf("%d connections were refused within a minute, %d of them from %s. Others still come in; if it lasts, close your firewall to that address.",
			w.n, w.blamed[w.worst], w.worst)
	}
	return out
}

// Away returns how many connections were turned away, by reason.
func (d *Door) Away() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]int64, len(d.told.all))
	for r, n := range d.told.all {
		out[string(r)] = n
	}
	return out
}

// Counts returns how many connections there are now.
func (d *Door) Counts() (unfinished, open, proven int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unfinished.n, d.open.n, d.proven
}
