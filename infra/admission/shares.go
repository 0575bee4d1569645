package admission

import (
	"cmp"
	"container/heap"
	"container/list"
	"net"
	"net/netip"
)

// familiar is how much more of a pool an address may have that proved something lately.
const familiar = 8

// share holds the connections of one address in a pool.
type share struct {
	addr   netip.Prefix
	weight int
	owing  list.List // of *Conn; we wait for them, longest first
	queued list.List // of *Conn; they wait for their turn, in order
	round  *list.Element
	place  int // in the heap
}

func (s *share) count() int { return s.owing.Len() + s.queued.Len() }

// oldest returns the connection that has let us wait longest, else the last one in the queue.
func (s *share) oldest() *Conn {
	e := s.owing.Front()
	if e == nil {
		e = s.queued.Back()
	}
	return e.Value.(*Conn)
}

// pool holds connections by address. The owner of its Door's lock uses it.
type pool struct {
	limit, n int
	by       map[netip.Prefix]*share
	order    byCount
}

func newPool(limit int) *pool { return &pool{limit: limit, by: map[netip.Prefix]*share{}} }

// add gives c a place in the share of its address.
func (p *pool) add(c *Conn, weight int) {
	s := p.by[c.addr]
	if s == nil {
		s = &share{addr: c.addr, weight: weight, place: -1}
		p.by[c.addr] = s
	}
	c.pool, c.share, c.at = p, s, s.owing.PushBack(c)
	p.n++
	p.changed(s)
}

// remove takes c out of whatever list it is in.
func (p *pool) remove(c *Conn) {
	c.share.owing.Remove(c.at) // of another list: does nothing
	c.share.queued.Remove(c.at)
	p.n--
	p.changed(c.share)
	c.pool, c.share, c.at = nil, nil, nil
}

// queue puts c among those that wait for their turn; owe puts it among those that owe us something, as the youngest.
func (p *pool) queue(c *Conn) {
	c.share.owing.Remove(c.at)
	c.at = c.share.queued.PushBack(c)
	p.changed(c.share)
}

func (p *pool) owe(c *Conn) {
	c.share.owing.Remove(c.at)
	c.share.queued.Remove(c.at)
	c.at = c.share.owing.PushBack(c)
	p.changed(c.share)
}

// changed keeps the heap in order; an empty share goes.
func (p *pool) changed(s *share) {
	switch {
	case s.count() == 0:
		heap.Remove(&p.order, s.place)
		delete(p.by, s.addr)
	case s.place < 0:
		heap.Push(&p.order, s)
	default:
		heap.Fix(&p.order, s.place)
	}
}

// largest returns the share that loses a connection next; nil if the pool is empty.
func (p *pool) largest() *share {
	if len(p.order) == 0 {
		return nil
	}
	return p.order[0]
}

// larger reports whether a has more of its right than b; of equals, whether it has let us wait longer.
func larger(a, b *share) bool {
	if c := cmp.Compare(a.count()*b.weight, b.count()*a.weight); c != 0 {
		return c > 0
	}
	return a.oldest().since.Before(b.oldest().since)
}

// byCount is a heap of shares, the largest first.
type byCount []*share

func (h byCount) Len() int           { return len(h) }
func (h byCount) Less(i, j int) bool { return larger(h[i], h[j]) }
func (h byCount) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i, j }
func (h *byCount) Push(x any)        { s := x.(*share); s.place = len(*h); *h = append(*h, s) }
func (h *byCount) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h, s.place = old[:len(old)-1], -1
	return s
}

// addressOf returns what a share belongs to: an IPv4 address, or the network of 64 bits of an IPv6 address.
func addressOf(a net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{} // no address of a network: one share for all
	}
	ip, bits := ap.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits) // both are possible
	return p
}
