package rt

import (
	"sync"
	"sync/atomic"
)

// Latest hands the newest T from one writer to any readers without ever making the writer wait: of three buffers the writer owns one, the
// readers one, and the third changes hands. Readers share theirs through a lock that the writer never touches.
type Latest[T any] struct {
	buf   [3]T
	spare atomic.Uint32 // index of the third buffer, and fresh if it was published after the readers' one
	write uint32

	mu   sync.Mutex
	read uint32
	any  bool
}

const fresh = 4

// NewLatest returns one that holds nothing yet.
func NewLatest[T any]() *Latest[T] {
	l := &Latest[T]{write: 0, read: 2}
	l.spare.Store(1)
	return l
}

// Next returns the buffer to fill before Publish. It holds an older value: set every field.
func (l *Latest[T]) Next() *T { return &l.buf[l.write] }

// Publish makes the filled buffer the newest.
func (l *Latest[T]) Publish() { l.write = l.spare.Swap(l.write|fresh) &^ fresh }

// Get copies the newest value to dst; false if none was published yet.
func (l *Latest[T]) Get(dst *T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.GetAlone(dst)
}

// GetAlone is Get for the only reader there is, which then takes no lock: no other may use either of them.
func (l *Latest[T]) GetAlone(dst *T) bool {
	if l.spare.Load()&fresh != 0 {
		l.read = l.spare.Swap(l.read) &^ fresh
		l.any = true
	}
	if l.any {
		*dst = l.buf[l.read]
	}
	return l.any
}
