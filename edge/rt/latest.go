package rt

import (
	"sync"
	"sync/atomic"
)

// latest hands the newest T from one writer to any readers without ever making the writer wait: of three buffers the writer owns one, the
// readers one, and the third changes hands. Readers share theirs through a lock that the writer never touches.
type latest[T any] struct {
	buf   [3]T
	spare atomic.Uint32 // index of the third buffer, and fresh if it was published after the readers' one
	write uint32

	mu   sync.Mutex
	read uint32
	any  bool
}

const fresh = 4

func newLatest[T any]() *latest[T] {
	l := &latest[T]{write: 0, read: 2}
	l.spare.Store(1)
	return l
}

// next returns the buffer to fill before publish. It holds an older value: set every field.
func (l *latest[T]) next() *T { return &l.buf[l.write] }

// publish makes the filled buffer the newest.
func (l *latest[T]) publish() { l.write = l.spare.Swap(l.write|fresh) &^ fresh }

// get copies the newest value to dst; false if none was published yet.
func (l *latest[T]) get(dst *T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare.Load()&fresh != 0 {
		l.read = l.spare.Swap(l.read) &^ fresh
		l.any = true
	}
	if l.any {
		*dst = l.buf[l.read]
	}
	return l.any
}
