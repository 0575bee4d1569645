package rt

import (
	"sync"
	"sync/atomic"

	"kennel/edge/body"
)

// CommandKind says what a Command asks for. The zero value asks for nothing.
type CommandKind uint8

// The commands that go through the mailbox.
const (
	_         CommandKind = iota
	SetLights             // Lights become the body's lights until the next SetLights
	Resume                // lifts a halt
)

// Command is a request to the loop. It has a fixed size and holds no pointers.
type Command struct {
	Kind   CommandKind
	Lights [body.MaxLights]body.Light
}

const mailboxSize = 64 // of which a loop that runs empties all in each step

// mailbox is a ring from many producers to the loop. Producers share a lock; the consumer takes none.
type mailbox struct {
	mu      sync.Mutex // producers only
	ring    [mailboxSize]Command
	head    atomic.Uint32 // next to read; written by the consumer
	tail    atomic.Uint32 // next to write; written under mu
	refused atomic.Uint64
}

// post adds c. If the ring is full it refuses c, the newest, and counts that: what was accepted is never lost.
func (m *mailbox) post(c Command) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	tail := m.tail.Load()
	if tail-m.head.Load() == mailboxSize {
		m.refused.Add(1)
		return false
	}
	m.ring[tail%mailboxSize] = c
	m.tail.Store(tail + 1)
	return true
}

// peek returns the oldest command or nil; drop removes it.
func (m *mailbox) peek() *Command {
	head := m.head.Load()
	if head == m.tail.Load() {
		return nil
	}
	return &m.ring[head%mailboxSize]
}

func (m *mailbox) drop() { m.head.Add(1) }
