package control

import (
	"kennel/edge/motion"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
)

// obey executes o, if its owner may, and answers.
func (c *Control) obey(o *Order) {
	now := c.moment.Now
	r := &c.result
	*r = Result{Owner: o.Owner, Request: o.Request, Actuator: -1}
	if o.Owner <= Self {
		if o.Kind == Heat && o.Owner == Self {
			c.cpu, c.cpuAt = o.A, now
		}
		return // no program speaks for the loop itself
	}
	switch o.Kind {
	case Claim:
		c.claim(o, r)
	case Renew, Release:
		l, err := c.claims.LeaseOf(o.Owner, o.Lease)
		switch {
		case err != nil:
			r.Code = Gone
		case o.Kind == Release:
			c.claims.Release(now, l)
		case o.TTL < 0:
			r.Code = Invalid
		case c.claims.Renew(now, l, o.TTL) != nil:
			r.Code = Gone
		}
	case Drop:
		c.claims.Drop(now, o.Owner)
		c.saver.End(power.Behavior(o.Owner)) // however it ended
		return
	case Set, Go, Turn:
		c.move(o, r)
	case Stop:
		for p := range c.parts {
			if !c.parts[p].Shared {
				c.plant.Rest(p, false)
				c.parts[p].now.end(motion.Cancelled)
			}
		}
	case Calm:
		c.saver.End(power.Behavior(o.Owner)) // asked twice is asked once
		if o.On && !c.saver.Request(power.Behavior(o.Owner)) {
			r.Code = Full
		}
	case Sleep:
		c.changeSleep(o, r)
	default:
		r.Code = Invalid
	}
	c.results.Put(*r)
}

// changeSleep changes to another state, if that may follow. A refusal allocates, as nothing else here does: it is a mistake of the peer.
func (c *Control) changeSleep(o *Order, r *Result) {
	s, err := c.sleep, error(nil)
	switch {
	case o.Sleep == s.State:
		return // already at the target
	case o.Sleep.Asleep():
		s, err = s.FallAsleep(o.Sleep, power.SleepReason(o.Why))
	case o.Sleep == power.Awake && s.State.Asleep():
		s, err = s.WakeUp(power.WakeReason(o.Why))
	default:
		s, err = s.Go(o.Sleep)
	}
	if err != nil {
		r.Code = Invalid
		return
	}
	c.sleep = s
}

// inTheWay returns the first actuator of set that o cannot have, and its owner; -1 if there is none. (claim.Busy says the same, but allocates.)
func (c *Control) inTheWay(o claim.Owner, set *claim.Set, p claim.Priority) (int, claim.Owner, claim.Priority) {
	for a := range c.actuators {
		if owner, priority := c.claims.OwnerOf(a); set.Has(a) && owner != 0 && owner != o && priority >= p {
			return a, owner, priority
		}
	}
	return -1, 0, 0
}

func (c *Control) claim(o *Order, r *Result) {
	if a, owner, p := c.inTheWay(o.Owner, &o.Set, o.Priority); a >= 0 {
		r.Code, r.Actuator, r.By, r.Priority = Busy, a, owner, p
		return
	}
	l, err := c.claims.Claim(c.moment.Now, o.Owner, o.Set, o.Priority, o.TTL)
	switch err {
	case nil:
		r.Lease = l.Number()
	case claim.ErrFull:
		r.Code = Full
	default:
		r.Code = Invalid
	}
}

// holds reports whether o owns every actuator of set.
func (c *Control) holds(o claim.Owner, set *claim.Set) bool {
	for a := range c.actuators {
		if set.Has(a) && !c.claims.Holds(o, a) {
			return false
		}
	}
	return true
}

// may reports whether o may set part p; if not, r says which actuator is another's.
func (c *Control) may(o *Order, p int, r *Result) bool {
	q := &c.parts[p]
	if !q.Shared {
		for a := range c.actuators {
			if q.set.Has(a) && !c.claims.Holds(o.Owner, a) {
				c.notHeld(a, r)
				return false
			}
		}
		return true
	}
	for _, g := range o.Goals[:o.N] {
		a := c.of[g.Slot]
		if a < 0 || c.model.Slots[g.Slot] != p {
			continue
		}
		if owner, _ := c.claims.OwnerOf(a); owner != 0 && owner != o.Owner {
			c.notHeld(a, r)
			return false
		}
	}
	return true
}

func (c *Control) notHeld(a int, r *Result) {
	r.Code, r.Actuator = NotHeld, a
	r.By, r.Priority = c.claims.OwnerOf(a)
}

// concerns returns the parts of the order as a bit set; 0: no part can do it.
func (c *Control) concerns(o *Order) (parts uint32) {
	if o.Kind != Set {
		for p := range c.parts {
			if c.parts[p].Base {
				return 1 << p
			}
		}
		return 0
	}
	for _, g := range o.Goals[:o.N] {
		p, ok := c.model.Slots[g.Slot]
		if !ok {
			return 0
		}
		parts |= 1 << p
	}
	return parts
}

// move begins o's motion in each part that it concerns, in all of them or none.
func (c *Control) move(o *Order, r *Result) {
	if o.Within < 0 || o.Within > 0 && o.Speed != 0 {
		r.Code = Invalid
		return
	}
	for i, g := range o.Goals[:o.N] {
		r.Taken[i] = g.Value
	}
	parts := c.concerns(o)
	if parts == 0 {
		r.Code = Unable
		return
	}
	for p := range c.parts {
		if parts>>p&1 == 0 {
			continue
		}
		if !c.may(o, p, r) {
			return
		}
		if c.parts[p].Timed && (o.For <= 0 || o.For > MaxFor) {
			r.Code = Invalid
			return
		}
	}
	for p := range c.parts {
		if parts>>p&1 == 0 {
			continue
		}
		if err := c.plant.Begin(&c.moment, p, o, r); err != nil {
			c.refuse(err, r)
			for q := range p { // those that began before
				if u := &c.parts[q].now; parts>>q&1 == 1 && !c.parts[q].Shared {
					c.plant.Rest(q, false)
					u.moving = false
				}
			}
			return
		}
		u := &c.parts[p].now
		switch how := c.plant.Outcome(p); {
		case c.parts[p].Shared:
			continue
		case how == motion.None: // a setting, which lasts as long as the claim
			u.owner = o.Owner
			continue
		case how != motion.Running:
			continue // it is done
		}
		if u.moving {
			c.ended(p, motion.Cancelled)
		}
		*u = underway{owner: o.Owner, request: o.Request, kind: o.Kind, moving: true, began: c.way, asked: o.A}
		if c.parts[p].Timed {
			u.until = c.moment.Now + o.For
		}
		r.Underway = true
	}
}

// refuse says why the plant did not begin.
func (c *Control) refuse(err error, r *Result) {
	r.Underway = false
	switch err {
	case motion.ErrStopped:
		r.Code, r.Stop = Refused, c.stop
	case ErrUnable:
		r.Code = Unable
	case ErrUnmeasured:
		r.Code = Unmeasured
	default:
		r.Code = Invalid
	}
}

// listen obeys the waiting orders, and every order on the tape for this step.
func (c *Control) listen() {
	b := c.input[:0]
	for o := c.box.Peek(); o != nil && len(b)+o.size() <= maxInput; o = c.box.Peek() {
		b = o.append(b)
		c.box.Drop()
	}
	o := &c.order
	for b = c.tape.Input(b); ; {
		n := o.parse(b)
		if n == 0 {
			return
		}
		b = b[n:]
		if c.moment.Opened && o.Kind.moves() {
			// It waited for a body for an unknown time: its owner does not expect it any longer.
			c.results.Put(Result{Owner: o.Owner, Request: o.Request, Code: Refused, Actuator: -1, Stop: motion.Link})
		} else {
			c.obey(o)
		}
	}
}
