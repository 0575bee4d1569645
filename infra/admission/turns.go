package admission

import (
	"cmp"
	"container/list"
	"errors"
	"net"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// turns gives out the processor to handshakes. The owner of its Door's lock uses it.
type turns struct {
	most, running int
	begun         list.List // of *Conn whose handshake has begun
	round         list.List // of *share, each with connections that wait for their first turn
}

// newTurns lets so many handshakes run at once; 0: as many as keep every processor busy.
func newTurns(most int) turns { return turns{most: cmp.Or(most, 2*runtime.GOMAXPROCS(0))} }

// wait puts c in line. An address that is new in the round and proved something lately goes first.
func (t *turns) wait(c *Conn) {
	c.granted = make(chan struct{})
	if c.begun {
		c.line = t.begun.PushBack(c)
		return
	}
	c.pool.queue(c)
	if s := c.share; s.round == nil && s.weight > 1 {
		s.round = t.round.PushFront(s)
	} else if s.round == nil {
		s.round = t.round.PushBack(s)
	}
}

// forget takes c out of the line, or its turn from it.
func (t *turns) forget(c *Conn) {
	if c.turn {
		c.turn = false
		t.running--
	}
	if c.granted == nil {
		return
	}
	if c.line != nil {
		t.begun.Remove(c.line)
		c.line = nil
	} else if s := c.share; s != nil && s.round != nil && (s.queued.Len() == 0 || s.queued.Len() == 1 && s.queued.Front() == c.at) {
		t.round.Remove(s.round)
		s.round = nil
	}
	close(c.granted)
	c.granted = nil
}

// next returns who is next in line, out of it; nil if there is no turn or no connection waits.
func (t *turns) next() *Conn {
	if t.running >= t.most {
		return nil
	}
	if e := t.begun.Front(); e != nil {
		c := t.begun.Remove(e).(*Conn)
		c.line = nil
		return c
	}
	e := t.round.Front()
	if e == nil {
		return nil
	}
	s := e.Value.(*share)
	c := s.queued.Front().Value.(*Conn)
	c.pool.owe(c)
	if s.queued.Len() == 0 {
		t.round.Remove(e)
		s.round = nil
	} else {
		t.round.MoveToBack(e)
	}
	return c
}

// left reports whether the client has hung up. Reading would not show it, because earlier bytes may still be unread.
func left(conn net.Conn) bool {
	if p, ok := conn.(interface{ Raw() net.Conn }); ok { // behind a proxy
		conn = p.Raw()
	}
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false // no socket
	}
	s, err := c.SyscallConn()
	if err != nil {
		return true
	}
	state := uint8(unix.BPF_TCP_ESTABLISHED)
	var failed error
	err = s.Control(func(fd uintptr) {
		var info *unix.TCPInfo
		if info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); failed == nil {
			state = info.State
		}
	})
	return errors.Join(err, failed) != nil || state != unix.BPF_TCP_ESTABLISHED
}
