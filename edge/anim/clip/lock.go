package clip

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Parts is a set of what clips move and show: what locks are about (VEC-TRG-06).
type Parts uint8

// The parts.
const (
	Display Parts = 1 << iota
	BackpackLights
	CubeLights
	Speaker
	HeadMotor
	LiftMotor
	Wheels
	AllParts Parts = 1<<iota - 1
)

var partNames = [...]string{"display", "backpack lights", "cube lights", "audio", "head", "lift", "body"}

// String returns the names of the parts.
func (p Parts) String() string { return strings.Join(p.Names(), ", ") }

// Names returns the names of the parts, in their order.
func (p Parts) Names() (names []string) {
	for i, name := range partNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// PartNamed returns the part with a name such as "backpack lights"; 0: there is none.
func PartNamed(name string) Parts {
	if i := slices.Index(partNames[:], name); i >= 0 {
		return 1 << i
	}
	return 0
}

// Parts returns what the clip uses.
func (c *Clip) Parts() (p Parts) {
	k := &c.Tracks
	for _, t := range [...]struct {
		n    int
		part Parts
	}{{len(k.Face) + len(k.Sprites) + len(k.Boxes), Display}, {len(k.Backpack), BackpackLights}, {len(k.Audio), Speaker}, {len(k.Head), HeadMotor}, {len(k.Lift), LiftMotor},
		{len(k.Body) + len(k.Return), Wheels}} {
		if t.n > 0 {
			p |= t.part
		}
	}
	return p
}

// Level says how important the owner of a part is.
type Level int

// The levels: an idle layer gives way to everything, and a command of a person or a program to nothing but another robot's safety.
const (
	Idle Level = iota
	Behavior
	Command
)

// ErrLocked: a part that a clip needs is used by something as important.
var ErrLocked = errors.New("part in use")

// Locks says who owns which part; the zero value has no owners. It belongs to one goroutine.
type Locks struct{ owner [len(partNames)]*Lock }

// Lock is the right of one owner to some parts. It may lose parts to more important owners: Parts says what it still has.
type Lock struct {
	locks *Locks
	level Level
	name  string
}

// Take gives all of some parts to an owner, or none: ErrLocked if one of them belongs to an owner of the same or a higher level (VEC-TRG-06). Owners of a lower
// level lose the parts. Release gives them back.
func (l *Locks) Take(name string, level Level, parts Parts) (*Lock, error) {
	for i, o := range l.owner {
		if parts&(1<<i) != 0 && o != nil && o.level >= level {
			return nil, fmt.Errorf("%w: %s plays on %s, which %s needs", ErrLocked, o.name, partNames[i], name)
		}
	}
	k := &Lock{l, level, name}
	for rest := parts & AllParts; rest != 0; rest &= rest - 1 {
		l.owner[bits.TrailingZeros8(uint8(rest))] = k
	}
	return k, nil
}

// Parts returns the parts that the owner still has. A nil Lock has none.
func (k *Lock) Parts() (p Parts) {
	if k == nil {
		return 0
	}
	for i, o := range k.locks.owner {
		if o == k {
			p |= 1 << i
		}
	}
	return p
}

// Release gives back what the owner still has. It may be repeated, and be called on a nil Lock.
func (k *Lock) Release() {
	if k == nil {
		return
	}
	for i, o := range k.locks.owner {
		if o == k {
			k.locks.owner[i] = nil
		}
	}
}
