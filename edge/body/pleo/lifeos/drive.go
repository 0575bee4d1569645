package lifeos

import (
	"slices"
	"time"

	"kennel/edge/body/pleo/format"
	"kennel/edge/pawn"
)

// motive is a drive: a name, a value, and the behaviors that serve it (PLEO-DRV-01).
type motive struct {
	name      string
	low, high int32
	every     time.Duration
	next      time.Duration
	asked     bool // its evaluator is running
	value     int32
	behaviors []*behavior
}

// behavior is a script that a drive can choose (PLEO-BHV-02).
type behavior struct {
	id             int32
	lead           time.Duration
	up, same, down int32 // percent
	every, next    time.Duration
	asked          bool
	value          int32
	bestSince      time.Duration // -1: it is not the best
}

// maxDrives bounds what scripts can add.
const maxDrives = 32

type drives struct {
	list   []*motive
	active *motive
}

// named returns a drive.
func (d *drives) named(name string) *motive {
	if i := slices.IndexFunc(d.list, func(m *motive) bool { return m.name == name }); i >= 0 {
		return d.list[i]
	}
	return nil
}

// addDrive adds a drive, whose evaluator the main script must have (PLEO-DRV-02, PLEO-DRV-04).
func (s *System) addDrive(name string, low, high, interval int32) bool {
	m, d := s.machines[VMMain], &s.drivers
	if m.phase == vacant || d.named(name) != nil || len(d.list) >= maxDrives || interval <= 0 {
		s.log(Warning, LogDrive, "add %s: want a new name, a positive interval, at most %d drives and a main script", name, maxDrives)
		return false
	}
	if _, ok := m.amx.Public(name + "_eval"); !ok {
		s.log(Error, LogDrive, "add %s: the main script has no public function %s_eval", name, name)
		return false
	}
	d.list = append(d.list, &motive{name: name, low: low, high: high, every: ms(interval), next: s.now})
	s.queue(VMMain, name+"_init", nil) // PLEO-DRV-06
	return true
}

// addBehavior adds a script to a drive.
func (s *System) addBehavior(drive string, b behavior) bool {
	d := s.drivers.named(drive)
	if d == nil || b.every <= 0 || len(d.behaviors) >= maxDrives {
		s.log(Warning, LogDrive, "add behavior %#x to %s: want a drive, a positive interval and at most %d behaviors", b.id, drive, maxDrives)
		return false
	}
	b.next, b.bestSince = s.now, -1
	d.behaviors = append(d.behaviors, &b)
	return true
}

// stepDrives asks the evaluators that are due, and lets the strongest drive act. Evaluators run in the Main VM between the slices of its main function
// (PLEO-DRV-11).
func (s *System) stepDrives() {
	d := &s.drivers
	if s.machines[VMMain].phase != running || len(d.list) == 0 {
		return
	}
	for _, m := range d.list {
		if s.now < m.next || m.asked {
			continue
		}
		m.next = s.now + m.every
		m.asked = s.queue(VMMain, m.name+"_eval", func(v int32, code pawn.Code) {
			m.asked = false
			if code == pawn.OK {
				m.value = v
				s.compete()
			}
		})
	}
	if d.active != nil {
		s.stepBehaviors(d.active)
	}
}

// compete makes the drive with the highest value the active one; the present one wins a tie.
func (s *System) compete() {
	d := &s.drivers
	best := d.active
	for _, m := range d.list {
		if best == nil || m.value > best.value {
			best = m
		}
	}
	if best == d.active {
		return
	}
	if d.active != nil {
		s.queue(VMMain, d.active.name+"_deactivate", nil) // PLEO-DRV-08
	}
	d.active = best
	s.log(Info, LogDrive, "%s is active, value %d", best.name, best.value)
	for _, b := range best.behaviors {
		b.next, b.bestSince = s.now, -1
	}
	s.queue(VMMain, best.name+"_activate", nil)
	s.SetProperty(PropDrive, int32(slices.Index(d.list, best))+1) // PLEO-DRV-09
}

// weight returns the value of a behavior for the direction in which its drive is regulated (PLEO-DRV-03).
func (m *motive) weight(b *behavior) int64 {
	switch {
	case m.value > m.high:
		return int64(b.value) * int64(b.down) / 100
	case m.value < m.low:
		return int64(b.value) * int64(b.up) / 100
	}
	return int64(b.value) * int64(b.same) / 100
}

// stepBehaviors asks the evaluator of the active drive about each of its behaviors, and runs the best one (PLEO-BHV-01, PLEO-BHV-03).
func (s *System) stepBehaviors(m *motive) {
	for _, b := range m.behaviors {
		if s.now < b.next || b.asked {
			continue
		}
		b.next = s.now + b.every
		b.asked = s.queue(VMMain, m.name+"_behavior_eval", func(v int32, code pawn.Code) {
			b.asked = false
			if code == pawn.OK {
				b.value = v
				s.chooseBehavior(m)
			}
		}, b.id)
		if !b.asked { // the value that a script has set counts (PLEO-BHV-04)
			s.chooseBehavior(m)
		}
	}
}

// chooseBehavior runs the behavior with the highest value, once it has been the best for its lead time. A finished one runs again (PLEO-BHV-07); another
// one is closed first (PLEO-BHV-08).
func (s *System) chooseBehavior(m *motive) {
	if m != s.drivers.active || len(m.behaviors) == 0 || slices.ContainsFunc(m.behaviors, func(b *behavior) bool { return b.asked }) {
		return
	}
	aux := s.machines[VMAux]
	running := aux.id
	if aux.phase == vacant {
		running = 0
	}
	if aux.next != nil {
		running = aux.next.id
	}
	var best *behavior
	for _, b := range m.behaviors {
		if best == nil || m.weight(b) > m.weight(best) || m.weight(b) == m.weight(best) && b.id == running {
			best = b
		}
	}
	for _, b := range m.behaviors {
		if b != best {
			b.bestSince = -1
		} else if b.bestSince < 0 {
			b.bestSince = s.now
		}
	}
	if best.id == running || s.now-best.bestSince < best.lead {
		return
	}
	r, err := s.numbered(format.Scripts, best.id, s.machines[VMMain].from)
	if err != nil {
		s.log(Warning, LogDrive, "behavior of %s: %v", m.name, err)
		best.next = s.now + best.every
		return
	}
	s.exec(VMAux, r)
}

// exitDrives calls the exit function of each drive when the main script closes, the first drive first (PLEO-DRV-07).
func (s *System) exitDrives(main *machine) {
	for _, m := range slices.Backward(s.drivers.list) {
		s.begin(main, m.name+"_exit", nil)
	}
	s.drivers = drives{}
	s.SetProperty(PropDrive, 0)
}
