// Package claim says who may move an actuator. At every moment each actuator has one owner or none: the claim with the highest priority
// of those that want it. A claim is refused while an owner of the same or a higher priority has one of its actuators. A claim of higher
// priority takes them over; when it ends, by release, by expiry or by its owner's death, they go back to the claim it took them from.
//
// A Table belongs to one goroutine, the real-time loop. It reads no clock, takes no lock and allocates nothing after New.
package claim

import (
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Owner is a holder of claims: a connection, the animation player, the safety reflex. 0 is no owner.
type Owner uint32

// Priority ranks claims; own default, from what may wait to what must not.
type Priority uint8

// The priorities in use. Values between them are free.
const (
	Idle      Priority = 10  // little movements that show life
	Behavior  Priority = 20  // what the character does of its own accord
	Animation Priority = 30  // played by a behaviour
	Program   Priority = 40  // an SDK program, the standard's scripts
	Person    Priority = 50  // a person drives by hand
	Indicator Priority = 60  // a light that no program may hide: the microphones are switched off
	Safety    Priority = 250 // reflexes: cliff, fall, stall
)

// MaxActuators is how many actuators a tree may have; own default.
const MaxActuators = 256

// maxClaims is how many claims there may be at once; own default. More are refused.
const maxClaims = 64

// Set is a set of actuators by their number in the tree (robot.Node.Actuator).
type Set [MaxActuators / 64]uint64

// SetOf returns the set of those actuators. Numbers that no actuator can have are left out.
func SetOf(actuators ...int) Set {
	var s Set
	for _, a := range actuators {
		if a >= 0 && a < MaxActuators {
			s[a/64] |= 1 << (a % 64)
		}
	}
	return s
}

// Has reports whether actuator a is in the set.
func (s *Set) Has(a int) bool { return a >= 0 && a < MaxActuators && s[a/64]&(1<<(a%64)) != 0 }

// Len returns how many there are.
func (s *Set) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Errors of claims.
var (
	ErrBusy    = errors.New("actuator is taken")
	ErrFull    = errors.New("too many claims at once")
	ErrInvalid = errors.New("claim: no owner or no actuator")
	ErrGone    = errors.New("claim has ended") // released, expired, or never there
)

// Busy says who is in the way. It is ErrBusy.
type Busy struct {
	Actuator int
	Owner    Owner
	Priority Priority
}

// Error names the actuator by number; who shows it to people knows the tree.
func (b Busy) Error() string {
	return fmt.Sprintf("actuator %d is taken by %d with priority %d", b.Actuator, b.Owner, b.Priority)
}

// Is makes errors.Is(err, ErrBusy) work.
func (b Busy) Is(target error) bool { return target == ErrBusy }

// Lease is one claim, to renew or release it. The zero Lease is none.
type Lease struct {
	slot int
	id   uint64
}

// Number names the lease to who cannot hold a Lease, such as a peer behind a socket (Table.LeaseOf); 0 for none.
func (l Lease) Number() uint64 { return l.id }

type claim struct {
	id       uint64 // 0: free
	owner    Owner
	priority Priority
	set      Set
	expires  time.Duration // 0: never
}

// Table is the claims of one tree.
type Table struct {
	n      int
	claims [maxClaims]claim
	owners [MaxActuators]int8 // index of the owning claim, -1: none
	last   uint64
}

// New returns the table of a tree with that many actuators.
func New(actuators int) (*Table, error) {
	if actuators < 0 || actuators > MaxActuators {
		return nil, fmt.Errorf("claim: %d actuators, at most %d", actuators, MaxActuators)
	}
	t := &Table{n: actuators}
	for i := range t.owners {
		t.owners[i] = -1
	}
	return t, nil
}

// Claim asks for all actuators of set at once, for as long as ttl; 0: until released. It gets all or none: a Busy names the first that
// another owner has with the same or a higher priority. An owner's own claims never block it.
func (t *Table) Claim(now time.Duration, o Owner, set Set, p Priority, ttl time.Duration) (Lease, error) {
	t.Step(now)
	// Actuators that this tree has not cannot be owned.
	for a := t.n; a < MaxActuators; a++ {
		set[a/64] &^= 1 << (a % 64)
	}
	if o == 0 || set.Len() == 0 || ttl < 0 {
		return Lease{}, ErrInvalid
	}
	for a := range t.n {
		if !set.Has(a) || t.owners[a] < 0 {
			continue
		}
		if c := &t.claims[t.owners[a]]; c.owner != o && c.priority >= p {
			return Lease{}, Busy{a, c.owner, c.priority}
		}
	}
	for i := range t.claims {
		c := &t.claims[i]
		if c.id != 0 {
			continue
		}
		t.last++
		*c = claim{id: t.last, owner: o, priority: p, set: set}
		if ttl > 0 {
			c.expires = now + ttl
		}
		t.settle()
		return Lease{i, c.id}, nil
	}
	return Lease{}, ErrFull
}

func (t *Table) find(l Lease) *claim {
	if l.id == 0 || l.slot < 0 || l.slot >= maxClaims || t.claims[l.slot].id != l.id {
		return nil
	}
	return &t.claims[l.slot]
}

// LeaseOf returns the lease of that number, if it lives and is o's.
func (t *Table) LeaseOf(o Owner, number uint64) (Lease, error) {
	for i := range t.claims {
		if c := &t.claims[i]; c.id == number && c.id != 0 && c.owner == o {
			return Lease{i, c.id}, nil
		}
	}
	return Lease{}, ErrGone
}

// Renew extends a claim to ttl from now, also one that waits for its actuators to come back; ErrGone if it has ended.
func (t *Table) Renew(now time.Duration, l Lease, ttl time.Duration) error {
	t.Step(now)
	c := t.find(l)
	if c == nil {
		return ErrGone
	}
	c.expires = 0
	if ttl > 0 {
		c.expires = now + ttl
	}
	return nil
}

// Release ends a claim. Safe to repeat.
func (t *Table) Release(now time.Duration, l Lease) {
	if c := t.find(l); c != nil {
		*c = claim{}
		t.settle()
	}
	t.Step(now)
}

// Drop ends all claims of an owner that died or left.
func (t *Table) Drop(now time.Duration, o Owner) {
	for i := range t.claims {
		if t.claims[i].id != 0 && t.claims[i].owner == o {
			t.claims[i] = claim{}
		}
	}
	t.settle()
	t.Step(now)
}

// Step ends the claims whose time is over. The loop calls it each step.
func (t *Table) Step(now time.Duration) {
	ended := false
	for i := range t.claims {
		if c := &t.claims[i]; c.id != 0 && c.expires != 0 && c.expires <= now {
			*c, ended = claim{}, true
		}
	}
	if ended {
		t.settle()
	}
}

// settle finds the owner of each actuator. Of two claims with the same priority the older one counts: the newer
// could only come in under a higher one of its own owner.
func (t *Table) settle() {
	for a := range t.n {
		best := int8(-1)
		for i := range t.claims {
			c := &t.claims[i]
			if c.id == 0 || !c.set.Has(a) {
				continue
			}
			if best < 0 || c.priority > t.claims[best].priority || c.priority == t.claims[best].priority && c.id < t.claims[best].id {
				best = int8(i)
			}
		}
		t.owners[a] = best
	}
}

// OwnerOf returns the owner of actuator a and its priority; 0 if it has none. The answer is true at the last call with a time.
func (t *Table) OwnerOf(a int) (Owner, Priority) {
	if a < 0 || a >= t.n || t.owners[a] < 0 {
		return 0, 0
	}
	c := &t.claims[t.owners[a]]
	return c.owner, c.priority
}

// Holds reports whether o owns actuator a: whether what it asks of it may be done.
func (t *Table) Holds(o Owner, a int) bool {
	owner, _ := t.OwnerOf(a)
	return o != 0 && owner == o
}
