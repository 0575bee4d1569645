package claim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

const (
	head  = 0
	left  = 1
	right = 2

	ms = time.Millisecond
)

func table(t *testing.T) *Table {
	t.Helper()
	tab, err := New(4)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func (t *Table) show() string {
	s := ""
	for a := range t.n {
		o, p := t.OwnerOf(a)
		s += fmt.Sprintf("%d:%d ", o, p)
	}
	return s
}

// TestClaims is a day of three actuators: one owner each, refusal, preemption, release, expiry and death (style section 5).
func TestClaims(t *testing.T) {
	tab := table(t)
	const idle, program, safety Owner = 1, 2, 3
	expect := func(what, want string) {
		t.Helper()
		if got := tab.show(); got != want {
			t.Fatalf("%s: %swant %s", what, got, want)
		}
	}
	breath, err := tab.Claim(1*ms, idle, SetOf(head, left), Idle, 0)
	if err != nil {
		t.Fatal(err)
	}
	expect("the first takes both", "1:10 1:10 0:0 0:0 ")
	if _, err := tab.Claim(2*ms, 9, SetOf(left, right), Idle, 0); !errors.Is(err, ErrBusy) ||
		err.Error() != "actuator 1 is taken by 1 with priority 10" {
		t.Fatalf("an equal: %v", err)
	}
	expect("who gets not all gets nothing", "1:10 1:10 0:0 0:0 ")
	drive, err := tab.Claim(3*ms, program, SetOf(left, right), Program, 100*ms)
	if err != nil {
		t.Fatal(err)
	}
	expect("a higher one takes over", "1:10 2:40 2:40 0:0 ")
	if tab.Holds(idle, left) || !tab.Holds(idle, head) {
		t.Error("who lost the left wheel does not know")
	}
	if _, err := tab.Claim(4*ms, safety, SetOf(0, 1, 2, 3), Safety, 20*ms); err != nil {
		t.Fatal(err)
	}
	expect("safety takes all", "3:250 3:250 3:250 3:250 ")
	var busy Busy
	if _, err := tab.Claim(5*ms, program, SetOf(head), Person, 0); !errors.As(err, &busy) || busy != (Busy{head, safety, Safety}) {
		t.Fatalf("against safety: %v", err)
	}
	tab.Step(23 * ms)
	expect("not yet", "3:250 3:250 3:250 3:250 ")
	tab.Step(24 * ms)
	expect("safety's time is over, all goes back", "1:10 2:40 2:40 0:0 ")
	if err := tab.Renew(90*ms, drive, 100*ms); err != nil {
		t.Fatal(err)
	}
	tab.Step(189 * ms)
	expect("renewed", "1:10 2:40 2:40 0:0 ")
	tab.Step(190 * ms)
	expect("expired", "1:10 1:10 0:0 0:0 ")
	if err := tab.Renew(191*ms, drive, 100*ms); !errors.Is(err, ErrGone) {
		t.Errorf("renewed after its end: %v", err)
	}
	if drive, err = tab.Claim(200*ms, program, SetOf(right), Program, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Claim(200*ms, program, SetOf(head), Program, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Claim(200*ms, program, SetOf(head), Program, 0); err != nil {
		t.Fatalf("in its own way: %v", err)
	}
	expect("two claims of one", "2:40 1:10 2:40 0:0 ")
	tab.Drop(300*ms, program)
	expect("it died", "1:10 1:10 0:0 0:0 ")
	tab.Release(301*ms, drive) // long gone
	tab.Release(302*ms, Lease{})
	tab.Release(303*ms, breath)
	tab.Release(304*ms, breath)
	expect("nobody", "0:0 0:0 0:0 0:0 ")
	if tab.Holds(0, head) {
		t.Error("a lease of no owner holds an actuator")
	}
}

// TestRefusals: what no claim can be.
func TestRefusals(t *testing.T) {
	tab := table(t)
	for name, err := range map[string]error{
		"of nobody":  errOf(tab.Claim(0, 0, SetOf(head), Idle, 0)),
		"of nothing": errOf(tab.Claim(0, 1, Set{}, Idle, 0)),
		"not there":  errOf(tab.Claim(0, 1, SetOf(4, 200, -1, 999), Idle, 0)),
		"negative":   errOf(tab.Claim(0, 1, SetOf(head), Idle, -1)),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("a claim %s: %v", name, err)
		}
	}
	for range maxClaims {
		if _, err := tab.Claim(0, 1, SetOf(head), Idle, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tab.Claim(0, 1, SetOf(head), Idle, 0); !errors.Is(err, ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := New(MaxActuators + 1); err == nil {
		t.Error("a table for more actuators than a Set has")
	}
	if s := SetOf(0, 63, 64, 255); s.Len() != 4 || !s.Has(255) || s.Has(1) || s.Has(-1) || s.Has(256) {
		t.Errorf("%v", s)
	}
}

func errOf[T any](_ T, err error) error { return err }

// model is the rule in one line: of the living claims that want an actuator, the one with the highest priority owns it, the older of equals.
type model struct {
	lease   Lease
	owner   Owner
	set     Set
	p       Priority
	expires time.Duration
}

// TestOneOwner plays random claims of six owners against the rule, step by step; KENNEL_SOAK plays on. A failure prints its seed.
func TestOneOwner(t *testing.T) {
	seeds, steps := 2, 400
	if os.Getenv("KENNEL_SOAK") == "1" {
		seeds, steps = 500, 5000
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		const n = 70 // across the words of a Set
		tab, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		var alive []model // in the order they came
		now := time.Duration(0)
		owner := func(a int) (Owner, Priority) {
			best := -1
			for i, m := range alive {
				if m.set.Has(a) && (best < 0 || m.p > alive[best].p) {
					best = i
				}
			}
			if best < 0 {
				return 0, 0
			}
			return alive[best].owner, alive[best].p
		}
		drop := func(f func(model) bool) {
			kept := alive[:0]
			for _, m := range alive {
				if !f(m) {
					kept = append(kept, m)
				}
			}
			alive = kept
		}
		for step := range steps {
			now += time.Duration(r.IntN(5)) * ms
			drop(func(m model) bool { return m.expires != 0 && m.expires <= now })
			switch r.IntN(10) {
			case 0, 1, 2, 3:
				m := model{owner: Owner(1 + r.IntN(6)), p: Priority(10 * (1 + r.IntN(4)))}
				for range 1 + r.IntN(4) {
					one := SetOf(r.IntN(n))
					for i := range m.set {
						m.set[i] |= one[i]
					}
				}
				ttl := time.Duration(r.IntN(60)) * ms
				if ttl > 0 {
					m.expires = now + ttl
				}
				var want error
				for a := range n {
					if o, p := owner(a); m.set.Has(a) && o != 0 && o != m.owner && p >= m.p {
						want = Busy{a, o, p}
						break
					}
				}
				if want == nil && len(alive) == maxClaims {
					want = ErrFull
				}
				lease, err := tab.Claim(now, m.owner, m.set, m.p, ttl)
				if err != want {
					t.Fatalf("seed %d step %d: claim is %v, want %v", seed, step, err, want)
				}
				if m.lease = lease; err == nil {
					alive = append(alive, m)
				}
			case 4, 5:
				if len(alive) > 0 {
					l := alive[r.IntN(len(alive))].lease
					tab.Release(now, l)
					drop(func(m model) bool { return m.lease == l })
				}
			case 6:
				if len(alive) > 0 {
					m := &alive[r.IntN(len(alive))]
					if err := tab.Renew(now, m.lease, 30*ms); err != nil {
						t.Fatalf("seed %d step %d: renew: %v", seed, step, err)
					}
					m.expires = now + 30*ms
				}
			case 7:
				dead := Owner(1 + r.IntN(6))
				tab.Drop(now, dead)
				drop(func(m model) bool { return m.owner == dead })
			default:
				tab.Step(now)
			}
			tab.Step(now)
			for a := range n {
				o, p := tab.OwnerOf(a)
				if wantO, wantP := owner(a); o != wantO || p != wantP {
					t.Fatalf("seed %d step %d: actuator %d is %d's with %d, want %d's with %d", seed, step, a, o, p, wantO, wantP)
				}
				holders := 0
				for who := range Owner(8) {
					if tab.Holds(who, a) {
						holders++
					}
				}
				if holders > 1 || (holders == 1) != (o != 0) {
					t.Fatalf("seed %d step %d: actuator %d has %d owners", seed, step, a, holders)
				}
			}
		}
	}
}

// TestNoAllocation: a step of the loop with claims that come and go allocates nothing.
func TestNoAllocation(t *testing.T) {
	tab := table(t)
	now := time.Duration(0)
	if got := testing.AllocsPerRun(100, func() {
		now += ms
		l, err := tab.Claim(now, 1, SetOf(head, left), Idle, ms)
		if err != nil {
			t.Fatal(err)
		}
		if err := tab.Renew(now, l, ms); err != nil {
			t.Fatal(err)
		}
		tab.Release(now, l)
		tab.Drop(now, 1)
		tab.Step(now)
	}); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
}

// BenchmarkStep is the table's share of a step: 24 actuators, 10 claims.
func BenchmarkStep(b *testing.B) {
	tab, err := New(24)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10 {
		if _, err := tab.Claim(0, Owner(i+1), SetOf(i, i+1), Priority(10+i), 0); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		tab.Step(ms)
	}
}
