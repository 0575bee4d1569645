package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kennel/infra/thing"
	"kennel/ota"
)

// Ask decides about one robot that asks for its release. open is how many robots hold a grant now. The returned Member is to be kept if changed.
func (r *Rollout) Ask(f Fact, m Member, open int, now time.Time) (_ Member, why Why, changed bool) {
	f.Present, m.Thing = true, f.Thing
	l := newLook(now)
	before := m.State
	m, changed = r.settle(&f, m, l)
	if before.Open() && !m.State.Open() {
		open--
	}
	why = r.judge(&f, m, l)
	if why.Code == whyGrantable {
		if why.Code = WhyCap; r.Grants() && open < r.Cap {
			m, changed = r.grant(&f, m, l), true
			why = r.judge(&f, m, l)
		}
	}
	return m, r.inWords(why, m), changed
}

// Explain says why a robot does not update, or what it does.
func (r *Rollout) Explain(f Fact, m Member, now time.Time) Why {
	w := r.judge(&f, m, newLook(now))
	if w.Code == whyGrantable {
		w.Code = WhyCap
	}
	return r.inWords(w, m)
}

func (r *Rollout) grant(f *Fact, m Member, l *look) Member {
	until := l.now.Add(GrantFor)
	if s := l.window(r.Window, f.Zone); !s.until.IsZero() && s.until.Before(until) {
		until = s.until
	}
	return Member{Thing: thing.ID(strings.Clone(string(f.Thing))), State: Granted, From: f.Running, Granted: l.now, Until: until.UTC(), At: l.now, Tries: m.Tries + 1, Had: strings.Join(f.Problems, " ")}
}

// Report brings a robot's report into its standing.
func (r *Rollout) Report(m Member, s ota.Status, now time.Time) (_ Member, changed bool) {
	before := m
	to := func(st Standing) {
		if m.State != st {
			m.State, m.At = st, now
		}
	}
	switch {
	case m.State == Return:
		if s.Running == m.From && s.Running != string(r.Version) {
			to(Returned)
		}
		return m, m != before
	case m.State != Granted && m.State != Updating && m.State != Lost && m.State != Failed || s.Release != r.Version && !slices.Contains(r.Path, s.Release):
		return m, false
	}
	m.Code, m.Phase, m.Reason = s.Code, string(s.Phase), s.Reason
	switch {
	case s.Running == string(r.Version):
		to(Through)
	case s.Code != 0:
		to(Failed)
	case m.State.Open() && s.Running != m.From && slices.Contains(r.Path, ota.Version(s.Running)): // on its way: it keeps its place, and has new time for what follows
		m.State, m.At, m.From, m.Granted, m.Until = Granted, now, s.Running, now, now.Add(GrantFor)
	case s.Phase == ota.Pending || m.State == Failed:
	default:
		to(Updating)
	}
	return m, m != before
}

// settle brings what is known about a robot, and the time, into its standing.
func (r *Rollout) settle(f *Fact, m Member, l *look) (_ Member, changed bool) {
	to := func(s Standing) (Member, bool) { m.State, m.At = s, l.now; return m, true }
	runs := f.Running == string(r.Version)
	switch m.State {
	case Granted, Updating, Lost, Failed:
		gone := !f.Present && f.Since.After(m.Granted) && l.now.Sub(f.Since) > SilentAfter
		switch {
		case runs:
			m.Code, m.Reason = 0, ""
			return to(Through)
		case m.State == Granted && l.now.After(m.Until):
			return to(Idle)
		case m.State == Lost && f.Present: // it may try again, after those that did not try yet
			return to(Idle)
		case m.State == Updating && gone:
			return to(Lost)
		case m.State == Updating && l.now.Sub(m.At) > StallAfter:
			m.Code, m.Reason = int(ota.TimedOut), fmt.Sprintf("nothing came of it in %v", StallAfter)
			return to(Failed)
		}
	case Through:
		if f.Running == m.From && !runs && f.Present && l.now.Sub(m.At) > FellBack && m.From != "" {
			m.Code, m.Reason = int(ota.Other), "it went back to "+m.From+" by itself"
			return to(Failed)
		}
	case Return:
		if f.Running == m.From && !runs {
			return to(Returned)
		}
	}
	return m, false
}

// Outcome holds the results of a step.
type Outcome struct {
	Changed []Member // to be kept
	Told    []thing.ID
	Turns   []Turn
}

// tally counts robots for guards and phases.
type tally struct {
	bad, of     map[Metric]int
	robots      map[Metric][]thing.ID
	codes       map[int]int
	quiet, wait int // of the control group: silent, all
	had         int // updated robots that had a problem before
	ill         int // of the control group, present: with the problem
	present     int // of the control group
	phases      []PhaseProgress
	open        int // robots that hold a grant
}

// Step brings everything that is known into the rollout, moves it to its next state, and hands out grants. It changes r and members.
func (r *Rollout) Step(facts []Fact, members map[thing.ID]Member, now time.Time) Outcome {
	var out Outcome
	l := newLook(now)
	changed := map[thing.ID]bool{}
	keep := func(m Member) { members[m.Thing] = m; changed[m.Thing] = true }
	t := tally{bad: map[Metric]int{}, of: map[Metric]int{}, robots: map[Metric][]thing.ID{}, codes: map[int]int{}}
	for _, p := range r.Phases {
		t.phases = append(t.phases, PhaseProgress{Percent: p.Percent})
	}
	for i := range facts {
		f := &facts[i]
		m, known := members[f.Thing]
		if known {
			if settled, ok := r.settle(f, m, l); ok {
				m = settled
				keep(m)
			}
		}
		r.count(f, m, l, &t)
	}
	for _, m := range members {
		if m.State.Open() {
			t.open++
		}
	}
	turn := func(kind, words string) {
		out.Turns = append(out.Turns, Turn{At: now, Kind: kind, Phase: r.Phase, Words: words})
	}
	r.move(&t, now, turn)
	if r.State == Stopped || r.State == Aborted {
		for _, m := range r.Take(slices.Collect(maps.Values(members)), now) {
			keep(m)
			out.Told = append(out.Told, m.Thing)
		}
	}
	for _, m := range r.hand(facts, members, t.open, l) {
		keep(m)
		t.phases[r.PhaseOf(m.Thing)].Open++
		out.Told = append(out.Told, m.Thing)
	}
	r.Progress.At, r.Progress.Phases = now, t.phases
	r.Progress.Codes = []CodeCount{}
	for c, n := range t.codes {
		r.Progress.Codes = append(r.Progress.Codes, CodeCount{c, ota.Code(c).Words(), n})
	}
	slices.SortFunc(r.Progress.Codes, func(a, b CodeCount) int { return cmp.Or(b.Robots-a.Robots, a.Code-b.Code) })
	for id := range changed {
		out.Changed = append(out.Changed, members[id])
	}
	return out
}

// count adds one robot to the tally.
func (r *Rollout) count(f *Fact, m Member, l *look, t *tally) {
	away := !f.Present && l.now.Sub(f.Since) > SilentAfter
	sick := slices.ContainsFunc(f.Problems, r.counts)
	had := m.State != Idle && m.State != Granted
	if had && !m.At.Before(r.Watched) {
		note := func(g Metric, bad bool) {
			if t.of[g]++; bad {
				if t.bad[g]++; len(t.robots[g]) < maxRobots {
					t.robots[g] = append(t.robots[g], f.Thing)
				}
			}
		}
		lost := m.State == Lost || away && f.Since.After(m.Granted) && (m.State == Through || m.State == Updating)
		if m.State != Updating {
			note(Failures, m.State == Failed)
			note(Silent, lost)
		}
		if m.State == Through && f.Present {
			before := strings.Fields(m.Had)
			note(Problems, slices.ContainsFunc(f.Problems, func(p string) bool { return r.counts(p) && !slices.Contains(before, p) }))
			if slices.ContainsFunc(before, r.counts) {
				t.had++
			}
		}
	}
	if m.State == Failed {
		t.codes[m.Code]++
	}
	if !r.in(f) && m.State == Idle {
		return
	}
	current := l.newer(f.Running, r.Version) >= 0
	if !had && !current {
		switch {
		case f.Present:
			t.present++
			t.wait++
			if sick {
				t.ill++
			}
		case f.Since.After(r.Since):
			if t.wait++; away {
				t.quiet++
			}
		}
	}
	i := r.PhaseOf(f.Thing)
	if i == len(r.Phases) {
		return
	}
	p := &t.phases[i]
	p.Robots++
	switch {
	case m.State == Failed || m.State == Lost || m.State == Return || m.State == Returned:
		p.Failed++
	case m.State == Through || m.State == Idle && current:
		p.Done++
	case m.State.Open():
		p.Open++
	case !f.Present:
		p.Offline++
	}
}

// counts reports whether a guard counts a problem.
func (r *Rollout) counts(problem string) bool {
	for _, g := range r.Guards {
		if g.Metric == Problems {
			kind, _, _ := strings.Cut(problem, "/")
			return g.Problem == "" && kind != "battery" || g.Problem == kind || g.Problem == problem
		}
	}
	return false
}

// move judges the guards and moves the rollout to its next state.
func (r *Rollout) move(t *tally, now time.Time, turn func(kind, words string)) {
	if r.State != Running && r.State != Baking {
		return
	}
	robots := 0
	for _, p := range t.phases {
		robots += p.Robots
	}
	for robots > 0 {
		var sum PhaseProgress
		for _, p := range t.phases[:r.Phase+1] {
			sum.Robots, sum.Done, sum.Failed, sum.Offline = sum.Robots+p.Robots, sum.Done+p.Done, sum.Failed+p.Failed, sum.Offline+p.Offline
		}
		ended := sum.Done + sum.Failed
		through := ended > 0 && float64(ended) >= Reached*float64(sum.Robots-sum.Offline)
		baked := r.State == Baking && now.Sub(r.BakedAt) >= time.Duration(r.Phases[r.Phase].BakeS)*time.Second
		if e := r.guarded(t, baked, now); e != nil {
			r.State, r.Changed, r.Evidence, r.Why, r.Back = Stopped, now, e, e.Words, r.Rollback
			turn(TurnStopped, e.Words)
			return
		}
		switch {
		case r.State == Running && through:
			r.State, r.BakedAt, r.Changed = Baking, now, now
			turn(TurnBaking, fmt.Sprintf("phase %d: %d updated, %d failed, %d offline", r.Phase+1, sum.Done, sum.Failed, sum.Offline))
		case baked && r.Phase == len(r.Phases)-1:
			r.State, r.Changed = Done, now
			turn(TurnDone, fmt.Sprintf("%d updated, %d failed, %d offline", sum.Done, sum.Failed, sum.Offline))
			return
		case baked || sum.Robots == 0: // a phase without robots has nothing to watch
			r.Phase++
			r.State, r.Since, r.Changed, r.BakedAt = Running, now, now, time.Time{}
			turn(TurnPhase, fmt.Sprintf("phase %d: %g %% of the robots", r.Phase+1, r.Phases[r.Phase].Percent))
			if sum.Robots > 0 {
				return // the robots of the new phase are granted first
			}
		default:
			return
		}
	}
}

// guarded returns the evidence of a guard that holds; nil: none does. At the end of a phase any sample is large enough.
func (r *Rollout) guarded(t *tally, end bool, now time.Time) *Evidence {
	if r.Control == nil {
		r.Control = map[Metric]float64{}
	}
	for _, g := range r.Guards {
		switch {
		case g.Metric == Silent && t.wait >= g.Sample:
			r.Control[Silent] = float64(t.quiet) / float64(t.wait)
		case g.Metric == Problems && t.present >= g.Sample:
			// New problems among those that wait: all of theirs, less the share that the updated robots had before.
			r.Control[Problems] = max(0, float64(t.ill)/float64(t.present)-float64(t.had)/float64(max(1, t.of[Problems])))
		}
		bad, of := t.bad[g.Metric], t.of[g.Metric]
		if of == 0 || of < g.Sample && !end || float64(bad)/float64(of)-r.Control[g.Metric] <= g.Share {
			continue
		}
		e := &Evidence{Guard: g, At: now, Bad: bad, Of: of, Control: r.Control[g.Metric], Robots: t.robots[g.Metric]}
		what := map[Metric]string{Failures: "failed", Silent: "went silent", Problems: "have a new problem"}[g.Metric]
		e.Words = fmt.Sprintf("%d of %d updated robots (%.1f %%) %s; %.1f %% of those that wait; more than %g %% above them is too many", bad, of,
			100*float64(bad)/float64(of), what, 100*e.Control, 100*g.Share)
		if g.Metric == Failures {
			e.Codes = map[string]int{}
			for c, n := range t.codes {
				e.Codes[fmt.Sprint(c)] = n
			}
		}
		return e
	}
	return nil
}

// Take takes grants back of which nothing has come, once the rollout no longer hands out any, and returns what it changed. If the rollout takes its robots back, those that had the release are told to return.
func (r *Rollout) Take(members []Member, now time.Time) (changed []Member) {
	for _, m := range members {
		switch {
		case r.Back && (m.State == Through || m.State == Updating || m.State == Lost) && m.From != "":
			m.State = Return
		case m.State == Granted && !r.Grants():
			m.State = Idle
		default:
			continue
		}
		m.At = now
		changed = append(changed, m)
	}
	return changed
}

// hand grants what is free, and counts all robots by their answer.
func (r *Rollout) hand(facts []Fact, members map[thing.ID]Member, open int, l *look) (granted []Member) {
	type candidate struct {
		f     *Fact
		tries int
		place float64
	}
	var ready []candidate
	r.Progress.Robots, r.Progress.Why = 0, map[WhyCode]int{}
	for i := range facts {
		f := &facts[i]
		m := members[f.Thing]
		w := r.judge(f, m, l)
		if w.Code == WhyNotIn {
			continue
		}
		r.Progress.Robots++
		if w.Code == whyGrantable {
			ready = append(ready, candidate{f, m.Tries, r.Place(f.Thing)})
			continue
		}
		r.Progress.Why[w.Code]++
	}
	free := 0
	if r.State == Running || r.State == Baking {
		free = min(max(r.Cap-open, 0), len(ready))
	}
	if free > 0 {
		slices.SortFunc(ready, func(a, b candidate) int { return cmp.Or(a.tries-b.tries, cmp.Compare(a.place, b.place)) })
	}
	for _, c := range ready[:free] {
		granted = append(granted, r.grant(c.f, members[c.f.Thing], l))
	}
	if free > 0 {
		r.Progress.Why[WhyGranted] += free
	}
	if n := len(ready) - free; n > 0 {
		r.Progress.Why[WhyCap] += n
	}
	return granted
}
