package state

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"kennel/edge/robot"
)

// Layout of a board's numbers in memory that other programs read. All of it has the machine's own byte order, and every part begins at a multiple of 8 bytes.
//
//	sharedHead            what this is, how many slots there are, and the newest publication
//	slots × sharedSlot    the slot's kind, whether its device is gone, its value until it is measured
//	rounds × snapshot     sharedPlace, then slots × Sample
//
// Publication n is in snapshot n mod rounds. A reader that is overtaken while it copies sees that in sharedHead.newest and begins again; the writer never looks at
// readers.
const (
	sharedMagic = 0x3264_7261_6f62_6b00 // and the layout's version
	rounds      = 8
	maxShared   = 1 << 14 // slots
)

type sharedHead struct {
	magic     uint64
	slots     uint64
	newest    atomic.Uint64 // publications so far
	measuring atomic.Uint64 // 0: no body is connected, and measured values do not count
}

type sharedPlace struct {
	at                 time.Duration // of the publication
	x, y, theta, pitch float64
	moving             uint64
}

type sharedSlot struct {
	kind   uint32
	absent atomic.Uint32
	value  float64
	of     [3]uint16 // the slots that it is derived from
}

// Kinds of slots.
const (
	elsewhere uint32 = iota // a text, list or bytes: not in shared memory
	measured
	preset // measured; value holds until the first measurement
	fixed
	angle     // turns as an angle, -pi to pi
	direction // turns as an angle, 0 to 2 pi, of a part that rotates endlessly
	strongest // of three colours
	visible   // a ratio reaches a threshold
)

// Sample has to be two words, since it is shared.
var _ = [1]struct{}{}[unsafe.Sizeof(Sample{})-16]

type sharedMemory struct {
	head   *sharedHead
	slots  []sharedSlot
	places [rounds]*sharedPlace
	snaps  [rounds][]Sample
}

func sharedSize(slots int) int {
	return int(unsafe.Sizeof(sharedHead{})) + slots*int(unsafe.Sizeof(sharedSlot{})) + rounds*(int(unsafe.Sizeof(sharedPlace{}))+slots*int(unsafe.Sizeof(Sample{})))
}

// sharedOver returns the parts of the board in mem, which has sharedSize(slots) bytes.
func sharedOver(mem []byte, slots int) (m sharedMemory) {
	at := func(offset int) unsafe.Pointer { return unsafe.Pointer(&mem[offset]) }
	m.head = (*sharedHead)(at(0))
	next := int(unsafe.Sizeof(sharedHead{}))
	m.slots = unsafe.Slice((*sharedSlot)(at(next)), slots)
	next += slots * int(unsafe.Sizeof(sharedSlot{}))
	for i := range rounds {
		m.places[i] = (*sharedPlace)(at(next))
		next += int(unsafe.Sizeof(sharedPlace{}))
		m.snaps[i] = unsafe.Slice((*Sample)(at(next)), slots)
		next += slots * int(unsafe.Sizeof(Sample{}))
	}
	return m
}

// SharedSize returns how many bytes Share needs.
func (b *Board) SharedSize() int { return sharedSize(len(b.tree.Slots())) }

// Share shows the numbers of b in memory that other programs read (ReadShared): SharedSize bytes, all 0. Call it once, and not concurrently with Publish. Each Publish then makes
// one more copy, regardless of the number of readers.
func (b *Board) Share(mem []byte) error {
	slots := b.tree.Slots()
	if len(slots) == 0 || len(slots) > maxShared || len(mem) != b.SharedSize() {
		return fmt.Errorf("share the values of %d slots in %d bytes: want 1 to %d slots in %d", len(slots), len(mem), maxShared, b.SharedSize())
	}
	m := sharedOver(mem, len(slots))
	m.head.magic, m.head.slots = sharedMagic, uint64(len(slots))
	for _, r := range slots {
		m.slots[r.ID].describe(r)
	}
	b.presenceMu.Lock()
	defer b.presenceMu.Unlock()
	b.shared = &m
	b.shareAbsent(b.present())
	if newest := b.acquire(); newest != nil {
		m.publish(newest.snap.At, b.place, newest.snap.Samples)
		newest.release()
	}
	return nil
}

// describe says how r is read, as Live.value reads it.
func (s *sharedSlot) describe(r *robot.Ref) {
	number := func(t robot.Type) bool { return t == robot.Float || t == robot.Int || t == robot.Bool }
	of := func(kind uint32, names ...string) {
		s.kind = kind
		for i, name := range names {
			var x sharedSlot
			if source := r.Node.Slot(name); source != nil {
				x.describe(source)
				s.of[i] = uint16(source.ID)
			}
			if x.kind == elsewhere {
				s.kind = elsewhere
			}
		}
	}
	v, constant := r.Fixed()
	switch {
	case !r.Slot.Access.Holds():
	case constant && number(v.Type):
		s.kind, s.value = fixed, v.Number
	case constant, r.Slot.Points != "", !number(r.Slot.Type):
	case !derived(r) && number(r.Slot.Default.Type):
		s.kind, s.value = preset, r.Slot.Default.Number
	case !derived(r):
		s.kind = measured
	case r.Interface.Name == "RotationalMotor" && r.Node.Endless():
		of(direction, "turn")
	case r.Interface.Name == "RotationalMotor":
		of(angle, "turn")
	case r.Interface.Name == "RGBLed":
		of(strongest, "r", "g", "b")
	case r.Interface.Name == "BlobDetector":
		of(visible, "ratio", "threshold")
	}
}

// sources returns the slots that s is derived from.
func (s *sharedSlot) sources() []uint16 {
	switch s.kind {
	case angle, direction:
		return s.of[:1]
	case visible:
		return s.of[:2]
	case strongest:
		return s.of[:3]
	}
	return nil
}

// sound reports whether the kind of s is known and every slot that it is derived from is itself not derived.
func (s *sharedSlot) sound(all []sharedSlot) bool {
	for _, id := range s.sources() {
		if int(id) >= len(all) || all[id].kind >= angle {
			return false
		}
	}
	return s.kind <= visible
}

// shareAbsent shows which slots belong to devices that are gone; presenceMu is held.
func (b *Board) shareAbsent(p *presence) {
	for id := range b.shared.slots {
		absent := uint32(0)
		if p.gone[id] != nil {
			absent = 1
		}
		b.shared.slots[id].absent.Store(absent)
	}
}

// SetMeasuring tells readers of the shared memory whether a body is connected. Without one they ignore measured values.
func (b *Board) SetMeasuring(on bool) {
	switch {
	case b.shared == nil:
	case on:
		b.shared.head.measuring.Store(1)
	default:
		b.shared.head.measuring.Store(0)
	}
}

func (m *sharedMemory) publish(now time.Duration, p robot.Place, samples []Sample) {
	n := m.head.newest.Load() + 1
	place := m.places[n%rounds]
	*place = sharedPlace{at: now, x: p.X, y: p.Y, theta: p.Theta, pitch: p.Pitch}
	if p.Moving {
		place.moving = 1
	}
	copy(m.snaps[n%rounds], samples)
	m.head.newest.Store(n)
}

// Shared is the numbers of another program's board. It is safe for concurrent use, and reading it costs that program nothing.
type Shared struct{ sharedMemory }

// MaxShared is how many bytes a board has at most.
var MaxShared = sharedSize(maxShared)

// ErrShared is returned for memory that holds no board in a form that this program knows.
var ErrShared = errors.New("no values of a robot, or in another form")

// ReadShared returns the board in mem, which another program fills, and which must be there as long as the board is read.
func ReadShared(mem []byte) (*Shared, error) {
	if len(mem) < sharedSize(1) || uintptr(unsafe.Pointer(&mem[0]))%8 != 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrShared, len(mem))
	}
	head := (*sharedHead)(unsafe.Pointer(&mem[0]))
	if head.magic != sharedMagic || head.slots > maxShared || sharedSize(int(head.slots)) != len(mem) {
		return nil, fmt.Errorf("%w: %d bytes for %d slots, kind %#x", ErrShared, len(mem), head.slots, head.magic)
	}
	s := &Shared{sharedOver(mem, int(head.slots))}
	for i := range s.slots {
		if !s.slots[i].sound(s.slots) {
			return nil, fmt.Errorf("%w: slot %d", ErrShared, i)
		}
	}
	return s, nil
}

// Has reports whether the values of all those slots can be read here.
func (s *Shared) Has(ids []int) bool {
	for _, id := range ids {
		if id < 0 || id >= len(s.slots) || s.slots[id].kind == elsewhere {
			return false
		}
	}
	return true
}

// Read fills dst with the numbers of the slots ids, all of one publication, and returns the robot's pose in it. dst is as long as ids, and Has(ids) holds. An unknown number
// is NaN. A number that has a value but was never measured has the time 0.
func (s *Shared) Read(ids []int, dst []Sample) (p robot.Place) {
	for {
		n := s.head.newest.Load()
		for i, id := range ids {
			dst[i] = s.read(s.snaps[n%rounds], id)
		}
		at := s.places[n%rounds]
		p = robot.Place{At: at.at, X: at.x, Y: at.y, Theta: at.theta, Pitch: at.pitch, Moving: at.moving != 0}
		if s.head.newest.Load()-n < rounds-1 { // the writer fills the snapshot after the newest
			return p
		}
	}
}

func (s *Shared) read(snap []Sample, id int) Sample {
	slot, x := &s.slots[id], snap[id]
	unknown := Sample{Value: math.NaN()}
	switch {
	case slot.kind == fixed:
		return Sample{Value: slot.value}
	case slot.absent.Load() != 0:
		return unknown
	case slot.kind >= angle:
		x = s.read(snap, int(slot.of[0]))
	case x.Known() && s.head.measuring.Load() == 0, !x.Known() && slot.kind == measured:
		return unknown
	case !x.Known():
		x.Value = slot.value
	}
	switch slot.kind {
	case angle:
		x.Value = robot.WrapPi(x.Value * 2 * math.Pi)
	case direction:
		x.Value = robot.WrapTurn(x.Value * 2 * math.Pi)
	case strongest:
		for _, id := range slot.sources()[1:] {
			y := s.read(snap, int(id))
			x = Sample{max(x.Value, y.Value), min(x.At, y.At)}
		}
	case visible:
		if !math.IsNaN(x.Value) {
			reached := x.Value >= s.read(snap, int(slot.of[1])).Value
			if x.Value = 0; reached {
				x.Value = 1
			}
		}
	}
	return x
}
