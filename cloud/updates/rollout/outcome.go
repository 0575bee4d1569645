package rollout

import (
	"slices"
	"strings"
	"time"

	"kennel/infra/thing"
	"kennel/ota"
)

// Count is how many robots of a group turned bad for a guard.
type Count struct {
	Bad     int `json:"bad"`
	Of      int `json:"of"`      // robots that are or were watched
	Full    int `json:"full"`    // of which for the whole time, or until they turned bad
	FullBad int `json:"fullbad"` // of Full
}

func (c *Count) add(bad, full bool) {
	c.Of++
	if bad {
		c.Bad++
	}
	if bad || full {
		c.Full++
		if bad {
			c.FullBad++
		}
	}
}

func (c Count) plus(d Count) Count {
	return Count{c.Bad + d.Bad, c.Of + d.Of, c.Full + d.Full, c.FullBad + d.FullBad}
}

// tally counts robots for guards and stages in one step.
type tally struct {
	guards    []guardTally // in the order of Spec
	codes     map[int]int
	ended     int // attempts to update
	outside   int // of which failed for their environment
	fell      []thing.ID
	lost      []thing.ID
	control   int // robots of the control that are watched
	away      int // of which are away
	watching  int // updated robots that are watched
	phases    []PhaseProgress
	waits     map[WhyCode]int // of the open stage
	open      int
	candidate []int // indices of facts: they could be control
}

type guardTally struct {
	updated, control Count
	atRisk, compared int // that could have turned bad in this step
	events           []event
	robots           []thing.ID // some of the bad updated ones
	still            int        // of Silent: updated ones that are still away
	stillControl     int
}

// event is a robot that turned bad in this step.
type event struct {
	id      thing.ID
	updated bool
}

// watch brings what is known about a robot into its member: that it turned bad for a guard, or which problems it had before. still: what keeps robots away now
// is not the release.
func (r *Rollout) watch(f *Fact, m Member, still bool, l *look, t *tally) (_ Member, changed bool) {
	control, exposed := m.State == Control, !m.Updated.IsZero()
	if m.State == Idle && m.Updated.IsZero() && m.Bad == "" {
		return m, false
	}
	from := m.Updated
	if control {
		from = m.Granted
	}
	watched := l.now.Sub(from) >= r.watchFor()
	if m.State.Open() && !exposed { // what it has before it runs the release is not the release's
		if had := with(m.Had, f.Problems); had != m.Had {
			m.Had, changed = had, true
		}
	}
	for i, g := range r.Guards {
		key, c := g.Key(), &t.guards[i]
		was := m.bad(key)
		turned, over := false, watched
		switch g.Metric {
		case Failures:
			turned = m.State == Fell || m.State == Failed && !ota.Code(m.Code).Environment()
			if control || !turned && !was && m.State != Through && !exposed {
				continue // it has not ended
			}
		case Problems:
			if !control && !exposed {
				continue
			}
			if (control || m.State == Through) && !was && !over {
				if control {
					c.compared++
				} else {
					c.atRisk++
				}
				turned = f.Present && slices.ContainsFunc(f.Problems, func(p string) bool { return g.counts(p) && !slices.Contains(strings.Fields(m.Had), p) })
			}
		case Silent:
			if !control && m.State == Granted && !was {
				continue
			}
			ends := m.Granted.Add(2 * BootsFor)
			if !control {
				if ends = m.Updated.Add(BootsFor); !exposed {
					ends = l.now
				}
			}
			then := l.now.Add(-SilentAfter) // when a robot that is found to be lost now had gone
			if !was && !then.Before(m.Granted) && !then.After(ends) && (control || m.State != Return && m.State != Returned) {
				if control {
					c.compared++
				} else {
					c.atRisk++
				}
			}
			gone := !f.Present && f.Since.After(m.Granted) && !f.Since.After(ends)
			turned = m.State == Lost || gone && l.now.Sub(f.Since) >= SilentAfter && !still && (control || m.State == Updating || m.State == Through)
			over = l.now.Sub(ends) >= SilentAfter && (control || exposed) || !control && m.State == Failed
		}
		if turned && !was {
			m.Bad, changed = strings.TrimSpace(m.Bad+" "+key), true
			c.events = append(c.events, event{thing.ID(strings.Clone(string(f.Thing))), !control})
		}
		bad := turned || was
		if g.Metric == Silent && bad && !f.Present {
			if control {
				c.stillControl++
			} else {
				c.still++
			}
		}
		switch {
		case control:
			c.control.add(bad, over)
		case g.Metric == Failures:
			c.updated.add(bad, true)
		default:
			c.updated.add(bad, over)
		}
		if bad && !control && len(c.robots) < maxRobots {
			c.robots = append(c.robots, f.Thing)
		}
	}
	return m, changed
}

// spend closes the account of a control robot whose time is over, or which gets the release.
func (r *Rollout) spend(m Member, l *look) {
	for _, g := range r.Guards {
		if g.Metric == Failures {
			continue
		}
		key := g.Key()
		bad := m.bad(key)
		if bad || l.now.Sub(m.Granted) >= r.watchFor() {
			if r.Spent == nil {
				r.Spent = map[string]Count{}
			}
			c := r.Spent[key]
			c.add(bad, true)
			r.Spent[key] = c
		}
	}
}

// compare makes robots that wait the control, the next in the order first, as many as are watched with the release, and watches them from now on.
func (r *Rollout) compare(facts []Fact, members map[thing.ID]Member, granted int, t *tally, l *look) (out []Member) {
	if len(r.Guards) == 0 || r.State != Running && r.State != Baking {
		return nil
	}
	open := 0
	for i := range t.candidate {
		if m := members[facts[t.candidate[i]].Thing]; m.State == Control && l.now.Sub(m.Granted) < r.watchFor() {
			open++
		}
	}
	want := min(max(t.watching+t.open+granted, MinControl), MaxControl) - open
	if want <= 0 || t.watching+t.open+granted == 0 {
		return nil
	}
	slices.SortFunc(t.candidate, func(a, b int) int {
		if x, y := r.placeOf(&facts[a]), r.placeOf(&facts[b]); x < y {
			return -1
		} else if x > y {
			return 1
		}
		return 0
	})
	for _, i := range t.candidate {
		f := &facts[i]
		m := members[f.Thing]
		if m.State == Control && l.now.Sub(m.Granted) < r.watchFor() || m.State != Control && m.State != Idle {
			continue
		}
		if m.State == Control {
			r.spend(m, l)
		}
		out = append(out, Member{Thing: thing.ID(strings.Clone(string(f.Thing))), State: Control, From: f.Running, Granted: l.now, Until: l.now, At: l.now, Had: strings.Join(f.Problems, " ")})
		if want--; want == 0 {
			break
		}
	}
	return out
}

// with adds problems to a list of them.
func with(had string, problems []string) string {
	list := strings.Fields(had)
	for _, p := range problems {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return strings.Join(list, " ")
}

// suspended reports whether nothing is judged now, and why: the cloud was away, or much of the control is.
func (r *Rollout) suspended(t *tally, now time.Time) (bool, string) {
	switch {
	case now.Before(r.Still):
		return true, "The cloud was away; robots have until " + r.Still.UTC().Format(stamp) + " to come back."
	case t.control >= 5 && float64(t.away) > AwayShare*float64(t.control):
		return true, robots(t.away) + " of the " + robots(t.control) + " of the control are away: this is no time to judge."
	}
	return false, ""
}
