package rt

import (
	"sync"
	"sync/atomic"
)

// CommandKind says what a Command asks for. The zero value asks for nothing.
type CommandKind uint8

// The commands that go through the mailbox.
const (
	_      CommandKind = iota
	Resume             // lifts a halt
)

// Command is a request to the loop. It has a fixed size and holds no pointers.
type Command struct{ Kind CommandKind }

const mailboxSize = 64 // of which a loop that runs empties all in each step

// Ring is a queue of fixed size from one producer to one consumer, neither of which ever waits. The zero value is empty.
type Ring[T any] struct {
	ring    [mailboxSize]T
	head    atomic.Uint32 // next to read; written by the consumer
	tail    atomic.Uint32 // next to write; written by the producer
	refused atomic.Uint64
}

// Put adds v. If the ring is full it refuses v, the newest, and counts that: what was accepted is never lost.
func (r *Ring[T]) Put(v T) bool {
	tail := r.tail.Load()
	if tail-r.head.Load() == mailboxSize {
		r.refused.Add(1)
		return false
	}
	r.ring[tail%mailboxSize] = v
	r.tail.Store(tail + 1)
	return true
}

// Peek returns the oldest value or nil; Drop removes it.
func (r *Ring[T]) Peek() *T {
	head := r.head.Load()
	if head == r.tail.Load() {
		return nil
	}
	return &r.ring[head%mailboxSize]
}

// Drop removes what Peek returned.
func (r *Ring[T]) Drop() { r.head.Add(1) }

// Refused returns how many values found the ring full.
func (r *Ring[T]) Refused() uint64 { return r.refused.Load() }

// Mailbox is a Ring from many producers to the loop. Producers share a lock; the consumer takes none.
type Mailbox[T any] struct {
	mu   sync.Mutex // producers only
	ring Ring[T]
}

// Post is Put, for any number of producers.
func (m *Mailbox[T]) Post(v T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ring.Put(v)
}

// Peek returns the oldest value or nil; Drop removes it.
func (m *Mailbox[T]) Peek() *T { return m.ring.Peek() }

// Drop removes what Peek returned.
func (m *Mailbox[T]) Drop() { m.ring.Drop() }

// Refused returns how many values found the mailbox full.
func (m *Mailbox[T]) Refused() uint64 { return m.ring.Refused() }
