package admission

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"
	"golang.org/x/sys/unix"

	"kennel/infra/logging"
)

// Reason is why a connection was turned away: a word for metrics.
type Reason string

// The reasons.
const (
	Silent      Reason = "silent"      // no first byte in time
	Slow        Reason = "slow"        // handshake not complete in time
	Crowded     Reason = "crowded"     // no turn in time
	Left        Reason = "left"        // hung up while it waited for its turn
	Share       Reason = "share"       // its address had the most
	Full        Reason = "full"        // all places are taken by those whom we know
	Unread      Reason = "unread"      // did not read what we wrote
	Descriptors Reason = "descriptors" // made room when the process had no file descriptor left
)

var words = map[Reason]string{
	Silent: fmt.Sprintf("no first byte within %v or a little more", firstTime), Slow: fmt.Sprintf("handshake not complete within %v or a little more", handshakeTime),
	Crowded: fmt.Sprintf("no turn for a handshake within %v", queueTime), Left: "the client hung up while it waited for its turn",
	Share: "its address had the most connections when places were short", Full: "all places are taken by robots and people who proved themselves",
	Unread: fmt.Sprintf("the client read nothing for %v", writeTime), Descriptors: "no file descriptor was left",
}

// Reasons are all of them.
var Reasons = []Reason{Silent, Slow, Crowded, Left, Share, Full, Unread, Descriptors}

// Config configures a Door. Its zero value works.
type Config struct {
	Proven int // most connections that proved themselves; 0: as many as there are places for
	// Handshakes is the most that run at once; 0: as many as keep every processor busy, which delays clients that are connected already.
	Handshakes int
	// Refused, if set, hears of each connection turned away, from any goroutine. It must not block.
	Refused func(listener string, r Reason)
	Log     *slog.Logger
}

// Door admits the connections of one process. Safe for concurrent use.
type Door struct {
	cfg  Config
	main *Door // this one is a reserve beside it; nil: it is the main one

	mu         sync.Mutex
	limit, n   int
	proven     int
	unfinished *pool
	open       *pool
	turns      turns
	known      map[netip.Prefix]time.Time // addresses that proved something, and when
	told       told
}

// Places of a process. What it opens itself (database, objects, logs) has a part of its descriptors; metrics and readiness have a few places of their own.
const (
	leastOwn, mostOwn = 64, 1024
	mostUnfinished    = 8192
	leastKept         = 8
	mostKept          = 512 // for those who have not proved themselves yet, services among them
	reserved          = 32
	knownTime         = 24 * time.Hour
	mostKnown         = 1 << 16
)

// New returns a Door with as many places as the process's limit of file descriptors leaves. (Go has raised it to the hard limit.)
func New(cfg Config) (*Door, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return nil, fmt.Errorf("limit of file descriptors: %w", err)
	}
	return newDoor(cfg, places(l.Cur)), nil
}

// places returns how many connections fit below a limit of descriptors.
func places(descriptors uint64) int {
	n := int(min(descriptors, 1<<20))
	return max(leastKept, n-min(max(n/8, leastOwn), mostOwn)-reserved)
}

func newDoor(cfg Config, limit int) *Door {
	most := limit - min(max(limit/16, leastKept/2), mostKept)
	if cfg.Proven == 0 || cfg.Proven > most {
		cfg.Proven = most
	}
	return &Door{cfg: cfg, limit: limit, unfinished: newPool(max(1, min(limit/4, mostUnfinished))), open: newPool(max(1, limit/2)), turns: newTurns(cfg.Handshakes),
		known: map[netip.Prefix]time.Time{}, told: told{all: map[Reason]int64{}}}
}

// Reserve returns a Door with a few places of its own, for listeners that must answer when all others are taken.
func (d *Door) Reserve() *Door {
	r := newDoor(d.cfg, reserved)
	r.main = d
	return r
}

// Listener admits what l accepts.
type Listener struct {
	net.Listener
	name string
	door *Door
}

// Listen returns a listener that admits what l accepts. name is for metrics and the log.
func (d *Door) Listen(name string, l net.Listener) *Listener { return &Listener{l, name, d} }

// Accept returns the next admitted connection, a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	pause := 5 * time.Millisecond
	for {
		raw, err := l.Listener.Accept()
		switch {
		case err == nil:
			if c := l.door.admit(l, raw); c != nil {
				return c, nil
			}
			continue
		case !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) && !errors.Is(err, syscall.ENOBUFS) && !errors.Is(err, syscall.ENOMEM):
			return nil, err
		}
		l.door.exhausted(l, err)
		time.Sleep(pause) // a closed listener ends the next turn
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// weight is how much an address may have.
func (d *Door) weight(a netip.Prefix) int {
	if at, ok := d.known[a]; ok && time.Since(at) < knownTime {
		return familiar
	}
	return 1
}

// admit gives a connection its place; nil if it lost it at once.
func (d *Door) admit(l *Listener, raw net.Conn) *Conn {
	now := time.Now()
	c := &Conn{Conn: raw, listener: l, door: d, since: now, reason: Silent}
	c.behind, _ = raw.(*proxyproto.Conn)
	if c.behind != nil {
		c.addr = addressOf(c.behind.Raw().RemoteAddr())
	} else {
		c.addr = addressOf(raw.RemoteAddr())
	}
	d.mu.Lock()
	weight := d.weight(c.addr)
	if c.behind != nil {
		weight = familiar // the proxy speaks for many, and says at once for whom
	}
	d.n++
	d.unfinished.add(c, weight)
	lost := d.displace()
	if state(c.now.Load()) == unfinished {
		c.timer = time.AfterFunc(about(firstTime), func() { d.late(c) })
	}
	d.mu.Unlock()
	closeAll(lost)
	if state(c.now.Load()) == ended {
		return nil
	}
	return c
}

// displace takes connections out until every limit holds, for its caller to close once the lock is free.
func (d *Door) displace() (lost []*Conn) {
	for {
		s := (*share)(nil)
		switch {
		case d.unfinished.n > d.unfinished.limit:
			s = d.unfinished.largest()
		case d.open.n > d.open.limit:
			s = d.open.largest()
		case d.n > d.limit:
			s = d.most()
		}
		if s == nil {
			return lost
		}
		lost = append(lost, d.drop(s.oldest(), Share))
	}
}

// most returns the larger of the largest shares; nil if there are none.
func (d *Door) most() *share {
	a, b := d.unfinished.largest(), d.open.largest()
	if a == nil || b != nil && larger(b, a) {
		return b
	}
	return a
}

// drop takes c out, turned away.
func (d *Door) drop(c *Conn, r Reason) *Conn {
	c.why.Store(&RefusedError{r})
	d.out(c)
	d.note(c.listener.name, c.addr, r)
	return c
}

// out takes c out of everything.
func (d *Door) out(c *Conn) {
	switch state(c.now.Load()) {
	case ended:
		return
	case proven:
		d.proven--
	}
	d.settle(c, ended)
	d.n--
}

// settle takes c out of pool, line and time limit, into another state.
func (d *Door) settle(c *Conn, to state) {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.now.Store(int32(to))
	d.turns.forget(c)
	if c.pool != nil {
		c.pool.remove(c)
	}
	d.grant()
}

// grant gives free turns to those who wait.
func (d *Door) grant() {
	for c := d.turns.next(); c != nil; c = d.turns.next() {
		d.begin(c)
		close(c.granted)
		c.granted = nil
	}
}

// begin gives c a turn. The first begins its handshake's time.
func (d *Door) begin(c *Conn) {
	d.turns.running++
	c.turn, c.since = true, time.Now()
	d.unfinished.owe(c)
	if !c.begun {
		c.begun, c.reason = true, Slow
		c.timer.Reset(about(handshakeTime))
	}
}

// await returns when c has a turn, or need not have one.
func (d *Door) await(c *Conn) error {
	d.mu.Lock()
	if state(c.now.Load()) != unfinished || c.turn {
		d.mu.Unlock()
		return c.gone()
	}
	if d.turns.running < d.turns.most { // then the queue is empty
		d.begin(c)
		d.mu.Unlock()
		return nil
	}
	first := !c.begun
	if first {
		c.reason = Crowded
		c.timer.Reset(queueTime)
	}
	d.turns.wait(c)
	granted := c.granted
	d.mu.Unlock()
	<-granted
	if first && left(c.Conn) { // costs no other client's time
		d.refuse(c, Left)
	}
	return c.gone()
}

// gone returns why the connection is no longer good, or nil.
func (c *Conn) gone() error {
	if why := c.why.Load(); why != nil {
		return why
	}
	if state(c.now.Load()) == ended {
		return net.ErrClosed
	}
	return nil
}

// rest takes c's turn back, before it waits for its client.
func (d *Door) rest(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.turn {
		d.turns.forget(c)
		c.since = time.Now()
		d.unfinished.owe(c)
		d.grant()
	}
}

// move gives c to the share of another address.
func (d *Door) move(c *Conn, to netip.Prefix) {
	d.mu.Lock()
	var lost []*Conn
	if c.pool != nil {
		p := c.pool
		p.remove(c)
		c.addr = to
		p.add(c, d.weight(to))
		lost = d.displace()
	}
	d.mu.Unlock()
	closeAll(lost)
}

func (d *Door) done(c *Conn) {
	d.mu.Lock()
	var lost []*Conn
	switch state(c.now.Load()) {
	case unfinished:
		d.settle(c, open)
		c.since = time.Now()
		d.open.add(c, d.weight(c.addr))
		lost = d.displace()
	case open:
		c.since = time.Now()
		d.open.owe(c)
	}
	d.mu.Unlock()
	closeAll(lost)
}

func (d *Door) prove(c *Conn, service bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch state(c.now.Load()) {
	case ended:
		return net.ErrClosed
	case proven:
		return nil
	}
	if d.proven >= d.cfg.Proven && !service {
		return &RefusedError{Full}
	}
	d.proven++
	d.settle(c, proven)
	for a := range d.known {
		if len(d.known) < mostKnown {
			break
		}
		delete(d.known, a) // any: it is known again when it comes again
	}
	d.known[c.addr] = time.Now()
	for _, p := range []*pool{d.unfinished, d.open} {
		if s := p.by[c.addr]; s != nil && s.weight == 1 {
			s.weight = familiar
			p.changed(s)
		}
	}
	return nil
}

// late ends a connection whose time is over.
func (d *Door) late(c *Conn) {
	d.mu.Lock()
	over := state(c.now.Load()) == unfinished
	if over {
		d.drop(c, c.reason)
	}
	d.mu.Unlock()
	if over {
		closeAll([]*Conn{c})
	}
}

// refuse turns c away.
func (d *Door) refuse(c *Conn, r Reason) {
	d.mu.Lock()
	over := state(c.now.Load()) != ended
	if over {
		d.drop(c, r)
	}
	d.mu.Unlock()
	if over {
		closeAll([]*Conn{c})
	}
}

func (d *Door) leave(c *Conn) {
	d.mu.Lock()
	d.out(c)
	d.mu.Unlock()
}

// exhausted makes room for a connection that could not be accepted.
func (d *Door) exhausted(l *Listener, err error) {
	for _, at := range []*Door{d.main, d} { // the reserve last
		if at == nil {
			continue
		}
		at.mu.Lock()
		s := at.most()
		var lost []*Conn
		if s != nil {
			lost = append(lost, at.drop(s.oldest(), Descriptors))
		}
		at.told.exhausted = time.Now()
		at.mu.Unlock()
		closeAll(lost)
		if s != nil {
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cfg.Log != nil && time.Since(d.told.logged) > tellEvery {
		d.told.logged = time.Now()
		d.cfg.Log.Error("connection not accepted", "listener", l.name, logging.Err, err)
	}
}

func closeAll(conns []*Conn) {
	for _, c := range conns {
		_ = c.Conn.Close() // it is out already
	}
}
