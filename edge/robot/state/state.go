// Package state holds what the slots of a tree read as at the moment: numbers with the time each was measured, published whole by one
// writer, the real-time loop, and read by anybody without making it wait. Live reads and writes slots by name, groups among them, and
// watches them for changes. A device that is gone keeps its place, and its slots are unavailable.
package state

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"kennel/edge/robot"
)

// ErrUnknown: the slot has not been measured or set yet.
var ErrUnknown = errors.New("not measured yet")

// Sample is one number and when it was measured, a duration since the epoch of the system's monotonic clock; 0: never.
type Sample struct {
	Value float64
	At    time.Duration
}

// Known reports whether the sample was ever measured.
func (s Sample) Known() bool { return s.At > 0 }

// Age returns how old the sample is; a reader that comes late sees it grow.
func (s Sample) Age(now time.Duration) time.Duration { return now - s.At }

// Snapshot is all numbers of a tree at one moment, by the ID of their slot.
type Snapshot struct {
	At      time.Duration // when it was published
	Seq     uint64        // publications so far
	Samples []Sample
}

// buffers is how many snapshots there are. All but the newest and the one being filled may be held by slow readers; should more be, that
// publication is left out and counted, and the next one has everything.
const buffers = 8

type buffer struct {
	readers atomic.Int32
	snap    Snapshot
}

// Board is the values of one tree. Set and Publish belong to one goroutine and never wait or allocate; all else is for any number.
type Board struct {
	tree *robot.Tree
	work []Sample // of the writer
	seq  uint64

	bufs    [buffers]buffer
	current atomic.Int32 // index of the newest; -1: none yet
	skipped atomic.Uint32

	words []atomic.Pointer[word] // strings, lists and bytes, by the ID of their slot

	presenceMu sync.Mutex // of who changes it
	presence   atomic.Pointer[presence]

	shared *sharedMemory // nil: for this program alone
	place  robot.Place   // of the writer
}

type word struct {
	value robot.Value
	at    time.Duration
}

// New returns the board of a sealed tree, nothing known yet.
func New(tree *robot.Tree) *Board {
	n := len(tree.Slots())
	b := &Board{tree: tree, work: make([]Sample, n), words: make([]atomic.Pointer[word], n)}
	for i := range b.bufs {
		b.bufs[i].snap.Samples = make([]Sample, n)
	}
	b.current.Store(-1)
	return b
}

// Tree returns the tree whose values these are.
func (b *Board) Tree() *robot.Tree { return b.tree }

// Set notes a number for the next publication. An invalid ID is ignored: -1 means a slot that a body lacks.
func (b *Board) Set(id int, value float64, at time.Duration) {
	if id >= 0 && id < len(b.work) {
		b.work[id] = Sample{value, at}
	}
}

// SetPlace notes the robot's pose for the next publication, for readers of the shared memory.
func (b *Board) SetPlace(p robot.Place) { b.place = p }

// Forget makes a number unknown from the next publication on.
func (b *Board) Forget(id int) { b.Set(id, 0, 0) }

// Publish shows all that was set. It reports whether it could: see Skipped.
func (b *Board) Publish(now time.Duration) bool {
	b.seq++
	if b.shared != nil {
		b.shared.publish(now, b.place, b.work)
	}
	current := b.current.Load()
	for i := range int32(buffers) {
		// A reader that comes now sees that this buffer is not the newest and lets go before it looks inside.
		if i == current || b.bufs[i].readers.Load() != 0 {
			continue
		}
		s := &b.bufs[i].snap
		s.At, s.Seq = now, b.seq
		copy(s.Samples, b.work)
		b.current.Store(i)
		return true
	}
	b.skipped.Add(1)
	return false
}

// Skipped counts publications left out because readers held all buffers.
func (b *Board) Skipped() uint32 { return b.skipped.Load() }

// acquire returns the newest buffer, held until release; nil if nothing was published.
func (b *Board) acquire() *buffer {
	for {
		i := b.current.Load()
		if i < 0 {
			return nil
		}
		buf := &b.bufs[i]
		buf.readers.Add(1)
		if b.current.Load() == i {
			return buf
		}
		buf.readers.Add(-1) // overtaken; what it holds may be half written
	}
}

func (b *buffer) release() { b.readers.Add(-1) }

// Read copies the newest snapshot to dst; false if nothing was published yet. It allocates only while dst is too small.
func (b *Board) Read(dst *Snapshot) bool {
	buf := b.acquire()
	if buf == nil {
		return false
	}
	defer buf.release()
	dst.At, dst.Seq = buf.snap.At, buf.snap.Seq
	dst.Samples = append(dst.Samples[:0], buf.snap.Samples...)
	return true
}

// Sample returns one number of the newest snapshot.
func (b *Board) Sample(id int) Sample {
	buf := b.acquire()
	if buf == nil || id < 0 || id >= len(buf.snap.Samples) {
		if buf != nil {
			buf.release()
		}
		return Sample{}
	}
	defer buf.release()
	return buf.snap.Samples[id]
}

// Identity holds the facts that only the running robot knows about itself (GOSTAI-IF-01.2, GOSTAI-IF-01.4, GOSTAI-IF-02.1); type and model
// are in the tree.
type Identity struct {
	Name   string
	Serial string // "" when unknown
	IP     string // of a body without network: of the agent that hosts it
}

// Introduce shows who the robot is in the slots of its root, as far as it has them. It is not for the loop.
func (b *Board) Introduce(who Identity, at time.Duration) {
	for name, v := range map[string]string{"name": who.Name, "serial": who.Serial, "IP": who.IP} {
		if r := b.tree.Root().Slot(name); r != nil {
			b.SetValue(r.ID, robot.S(v), at)
		}
	}
}

// SetValue publishes a string, a list or bytes at once, outside the snapshots; the loop must not call it. v must not change afterwards.
func (b *Board) SetValue(id int, v robot.Value, at time.Duration) {
	if id >= 0 && id < len(b.words) {
		b.words[id].Store(&word{v, at})
	}
}
