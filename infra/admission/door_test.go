package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func addr(ip string) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 40000))
}

// called is a connection from an address.
type called struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *called) RemoteAddr() net.Addr { return c.from }
func (c *called) Close() error         { c.closed = true; return c.Conn.Close() }

// pipe returns our end of a connection from ip, whose other end says nothing.
func pipe(t *testing.T, ip string) *called {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { theirs.Close() })
	return &called{Conn: ours, from: addr(ip)}
}

// counted returns a Door with so many places, and what it says of each one turned away.
func counted(limit int) (*Door, *Listener, map[Reason]int) {
	refused := map[Reason]int{}
	d := newDoor(Config{Refused: func(listener string, r Reason) { refused[r]++ }}, limit)
	return d, d.Listen("test", nil), refused
}

// TestShares: where places are short, the address that has most loses its oldest, and no other address anything.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l, refused := counted(400) // of which 100 unfinished
		come := func(ip string) *Conn { time.Sleep(time.Millisecond); return d.admit(l, pipe(t, ip)) }
		guest, neighbour := come("192.0.2.1"), come("2001:db8:0:1::7")
		var flood []*Conn
		for range 300 {
			flood = append(flood, come("203.0.113.5"))
		}
		for i, c := range flood {
			if gone := c.gone() != nil; gone != (i < 202) {
				t.Fatalf("connection %d of 300: gone %v; want the oldest 202 gone", i, gone)
			}
		}
		// A network of 64 bits is one address.
		for i := range 100 {
			flood = append(flood, come(fmt.Sprintf("2001:db8:0:2::%x", i+1)))
		}
		if n := d.unfinished.by[netip.MustParsePrefix("2001:db8:0:2::/64")].count(); n < 48 || n > 50 {
			t.Errorf("%d of the network, want half of what the two guests leave", n)
		}
		// Many addresses with one connection each: the oldest goes, but only among those with most.
		for i := range 300 {
			flood = append(flood, come(fmt.Sprintf("198.18.%d.%d", i/200, i%200)))
		}
		if guest.gone() == nil || neighbour.gone() == nil {
			t.Error("among equals the oldest stays; want it gone")
		}
		late := come("192.0.2.1")
		if late == nil || late.gone() != nil {
			t.Error("a newcomer has no place")
		}
		if d.unfinished.n != 100 || refused[Share] != len(flood)+3-100 {
			t.Errorf("%d unfinished, refused %v, of %d", d.unfinished.n, refused, len(flood)+3)
		}
		for _, c := range flood {
			if c != nil {
				_ = c.Close()
			}
		}
		_ = late.Close()
		if d.n != 0 || d.unfinished.n != 0 || len(d.unfinished.by) != 0 || len(d.unfinished.order) != 0 {
			t.Errorf("left over %d, %+v", d.n, d.unfinished)
		}
	})
}

// TestKnownAddresses: an address that proved something lately may have eight times as much before it is the largest; the day after it may not.
func TestKnownAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l, _ := counted(400)
		school := func() *Conn { return d.admit(l, pipe(t, "192.0.2.1")) }
		if err := Prove(school(), false); err != nil {
			t.Fatal(err)
		}
		const robots = 50
		fill := func() (kept int) {
			var mine []*Conn
			for range robots {
				mine = append(mine, school())
			}
			var others []*Conn
			for i := range 2000 {
				if c := d.admit(l, pipe(t, fmt.Sprintf("198.18.%d.%d", i%10, i/10%10))); c != nil {
					others = append(others, c)
				}
			}
			for _, c := range mine {
				if c.gone() == nil {
					kept++
				}
			}
			for _, c := range slices.Concat(mine, others) {
				_ = c.Close()
			}
			return kept
		}
		if kept := fill(); kept < familiar-1 {
			t.Errorf("%d of the school's robots kept their place beside 100 strangers' addresses", kept)
		}
		time.Sleep(knownTime)
		if kept := fill(); kept > 2 {
			t.Errorf("%d kept their place a day later", kept)
		}
	})
}

// TestProven: a connection that proved something has its place for good; the number of those is limited, but services always have room, and newcomers too.
func TestProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l, _ := counted(100)
		var robots []*Conn
		for {
			c := d.admit(l, pipe(t, "192.0.2.1"))
			if c == nil {
				t.Fatal("no place for a newcomer")
			}
			err := Prove(c, false)
			var full *RefusedError
			if errors.As(err, &full) && full.Reason == Full {
				_ = c.Close()
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			robots = append(robots, c)
		}
		if len(robots) < 90 || len(robots) > 100-leastKept/2 {
			t.Errorf("room for %d", len(robots))
		}
		service := d.admit(l, pipe(t, "127.0.0.1"))
		if err := Prove(service, true); err != nil {
			t.Errorf("a service: %v", err)
		}
		for range 200 {
			if c := d.admit(l, pipe(t, "203.0.113.5")); c != nil {
				Done(c)
			}
		}
		for _, c := range append(robots, service) {
			if c.gone() != nil || c.Conn.(*called).closed {
				t.Fatal("one that proved itself lost its place")
			}
			_ = c.Close()
			_ = c.Close() // again
		}
		if d.proven != 0 {
			t.Errorf("%d left over", d.proven)
		}
	})
}

// TestTimes: a client that says nothing, or does not finish, is gone in time; the server's Read says why. One that is done may be silent.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l, refused := counted(100)
		began := time.Now()
		ends := func(c *Conn, words string, after time.Duration) {
			t.Helper()
			_, err := io.ReadAll(c)
			if took := time.Since(began); err == nil || !strings.Contains(err.Error(), words) || took < after || took > after*3/2 {
				t.Errorf("after %v: %v; want %q after %v to %v", took, err, words, after, after*3/2)
			}
		}
		silent := d.admit(l, pipe(t, "192.0.2.1"))
		ends(silent, "no first byte", firstTime)

		ours, theirs := net.Pipe()
		slow := d.admit(l, &called{Conn: ours, from: addr("192.0.2.1")})
		began = time.Now()
		go func(theirs net.Conn) {
			for {
				if _, err := theirs.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(3 * time.Second)
			}
		}(theirs)
		ends(slow, "not complete", handshakeTime)

		ours, theirs = net.Pipe()
		quiet := d.admit(l, &called{Conn: ours, from: addr("192.0.2.1")})
		Done(quiet)
		time.Sleep(time.Hour)
		go func() { _, _ = theirs.Write([]byte("hello")) }()
		b := make([]byte, 10)
		if n, err := quiet.Read(b); err != nil || string(b[:n]) != "hello" {
			t.Errorf("%q, %v", b[:n], err)
		}

		// Each piece has its own time: a slow reader is served, one that stops is gone.
		go func() {
			for range 10 {
				time.Sleep(writeTime - time.Second)
				_, _ = io.ReadFull(theirs, make([]byte, piece))
			}
		}()
		if n, err := quiet.Write(make([]byte, 11*piece)); n != 10*piece || err == nil || !strings.Contains(err.Error(), "read nothing") {
			t.Errorf("wrote %d pieces, %v", n/piece, err)
		}
		if refused[Silent] != 1 || refused[Slow] != 1 || refused[Unread] != 1 || d.n != 0 {
			t.Errorf("refused %v, %d left", refused, d.n)
		}
	})
}

// TestNotAllAtOnce: connections that came together and say nothing leave one by one.
func TestNotAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l, _ := counted(1000)
		for range 100 {
			d.admit(l, pipe(t, "192.0.2.1"))
		}
		held := func() int {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.n
		}
		for begin, before := time.Now(), 100; before > 0; {
			if time.Since(begin) > 2*firstTime {
				t.Fatalf("%d are still there after %v", before, time.Since(begin))
			}
			time.Sleep(firstTime / 20)
			synctest.Wait()
			now := held()
			if before-now > 35 { // of 100, where 10 are expected
				t.Errorf("%d left within %v", before-now, firstTime/20)
			}
			before = now
		}
	})
}

// TestServersDeadline: a server's own write deadline holds beside ours, and does not outlive it.
func TestServersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l, refused := counted(100)
		c := d.admit(l, pipe(t, "192.0.2.1"))
		Done(c)
		began := time.Now()
		if err := c.SetDeadline(began.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err == nil || time.Since(began) != time.Second || refused[Unread] != 0 {
			t.Errorf("after %v: %v, %v", time.Since(began), err, refused)
		}
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err == nil || time.Since(began) != time.Second+writeTime || refused[Unread] != 1 {
			t.Errorf("after %v: %v, %v", time.Since(began), err, refused)
		}
	})
}

// scarce is a listener of a process that has no descriptor left, until one of its connections is closed.
type scarce struct {
	net.Listener
	next   []*called
	held   []*called
	closed atomic.Bool
}

func (s *scarce) Accept() (net.Conn, error) {
	if len(s.next) == 0 || s.closed.Load() {
		return nil, net.ErrClosed
	}
	if !slices.ContainsFunc(s.held, func(c *called) bool { return c.closed }) {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	c := s.next[0]
	s.next, s.held = s.next[1:], nil
	return c, nil
}

// TestNoDescriptor: when the process has no descriptor left, a connection that proved nothing makes room, for the reserve first of all.
func TestNoDescriptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var made atomic.Int64 // room; the reserve says it too
		d := newDoor(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Refused: func(_ string, r Reason) {
			if r == Descriptors {
				made.Add(1)
			}
		}}, 100)
		held := []*called{pipe(t, "192.0.2.1"), pipe(t, "203.0.113.5"), pipe(t, "203.0.113.5")}
		for _, c := range held {
			d.admit(d.Listen("api", nil), c)
		}
		metrics := d.Reserve().Listen("metrics", &scarce{next: []*called{pipe(t, "127.0.0.1")}, held: held})
		if _, err := metrics.Accept(); err != nil {
			t.Fatal(err)
		}
		if held[0].closed || !held[1].closed || held[2].closed || made.Load() != 1 {
			t.Errorf("closed %v %v %v, %d made room; want the oldest of the address with two", held[0].closed, held[1].closed, held[2].closed, made.Load())
		}
		if _, err := metrics.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener: %v", err)
		}
		if !strings.Contains(d.News(), "LimitNOFILE") {
			t.Errorf("news %q", d.News())
		}
		// Nothing to close: it is said once in a while.
		none := newDoor(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, 100)
		l := none.Listen("api", &scarce{next: []*called{pipe(t, "127.0.0.1")}})
		go func() { time.Sleep(time.Minute); l.Listener.(*scarce).closed.Store(true) }()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "connection not accepted"); n < 2 || n > 7 {
			t.Errorf("said %d times in a minute:\n%s", n, log.String())
		}
	})
}

// TestNews: operators hear of many turned away, with how many and from where, and of few nothing.
func TestNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := newDoor(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, 40)
		l := d.Listen("mqtt", nil)
		flood := func(n int, ip string) {
			for range n {
				d.admit(l, pipe(t, ip))
			}
		}
		flood(25, "192.0.2.1")
		if n := d.News(); n != "" || log.Len() > 0 {
			t.Errorf("news %q, log %s", n, log.String())
		}
		flood(500, "203.0.113.5")
		if n := d.News(); !strings.Contains(n, "203.0.113.5/32") || !strings.Contains(n, "refused") {
			t.Errorf("news %q", n)
		}
		if n := strings.Count(log.String(), "connections refused"); n != 1 {
			t.Errorf("said %d times at once: %s", n, log.String())
		}
		if a := d.Away()[string(Share)]; a != 515 {
			t.Errorf("%d refused", a)
		}
		if u, o, p := d.Counts(); u != 10 || o != 0 || p != 0 {
			t.Errorf("%d %d %d", u, o, p)
		}
		time.Sleep(3 * newsWindow)
		if n := d.News(); n != "" {
			t.Errorf("news %q", n)
		}
	})
}

func TestPlaces(t *testing.T) {
	for descriptors, want := range map[uint64]int{50: leastKept, 200: 104, 1024: 864, 20000: 18944, 1 << 40: 1<<20 - 1056} {
		if got := places(descriptors); got != want {
			t.Errorf("%d descriptors: %d places, want %d", descriptors, got, want)
		}
	}
}

func TestAddressOf(t *testing.T) {
	for in, want := range map[string]string{"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64"} {
		if got := addressOf(addr(in)); got.String() != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if got := addressOf(&net.UnixAddr{Name: "/tmp/x"}); got.IsValid() {
		t.Errorf("a socket file: %s", got)
	}
}
