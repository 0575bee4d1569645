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

// Ask decides about one robot that asks for its release. open is how many robots hold a grant now. The returned Member is to be kept if changed. A robot of the
// control waits for the next step, which closes its account.
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
		if why.Code = WhyCap; r.Grants() && open < r.Cap && (m.State != Control || r.State == Done) {
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
	if s := r.window(f, l); !s.until.IsZero() && s.until.Before(until) {
		until = s.until
	}
	g := Member{Thing: thing.ID(strings.Clone(string(f.Thing))), State: Granted, From: f.Running, Granted: l.now, Until: until.UTC(), At: l.now, Tries: m.Tries + 1, Had: strings.Join(f.Problems, " ")}
	if m.State != Control { // once bad stays bad, also in another try
		g.Bad = m.Bad
	}
	return g
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
		r.returning(&m, s, to)
		return m, m != before
	case m.State == Through && (s.Phase == ota.FellBack && s.Release == r.Version || s.Release == r.Version && s.Running == m.From && m.From != "" && s.Code != 0):
		m.Code, m.Phase, m.Reason = cmp.Or(s.Code, int(ota.Other)), string(s.Phase), s.Reason
		to(Fell)
		return m, true
	case m.State == Idle && r.began(m, s):
		m.Code, m.Phase, m.Reason = s.Code, string(s.Phase), s.Reason
		switch {
		case s.Running != string(r.Version):
			to(Updating)
		case r.Back:
			m.Updated = now
			to(Return)
		default:
			m.Updated = now
			to(Through)
		}
		return m, true
	case m.State != Granted && m.State != Updating && m.State != Lost && m.State != Failed || s.Release != r.Version && !slices.Contains(r.Path, s.Release):
		return m, false
	}
	if s.Phase == ota.Installed && m.Phase != string(ota.Installed) {
		m.At = now // its wait for the reboot begins
	}
	m.Code, m.Phase, m.Reason = s.Code, string(s.Phase), s.Reason
	switch {
	case s.Running == string(r.Version):
		to(Through)
		if m.Updated.IsZero() {
			m.Updated = now
		}
	case s.Phase == ota.FellBack:
		to(Fell)
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

// began reports whether a robot says that it began, or finished, what it had been granted, although the grant was withdrawn meanwhile.
func (r *Rollout) began(m Member, s ota.Status) bool {
	mine := s.Release == r.Version && s.Since.Equal(m.Granted)
	if m.Granted.IsZero() || m.From == "" || s.Code != 0 {
		return false
	}
	if s.Running == string(r.Version) {
		return mine || s.Release == "" // nothing else asked it to run that
	}
	return mine && (s.Phase == ota.Downloading || s.Phase == ota.Installed)
}

// returning brings the report of a robot that is to run what it ran before into its standing. It has returned when it says so of this very wish, with nothing
// that waits for a reboot. Robots of earlier releases do not name the wish: those count only if they were seen to run the release.
func (r *Rollout) returning(m *Member, s ota.Status, to func(Standing)) {
	this := s.Since.Equal(m.At) || s.Since.IsZero() && !m.Updated.IsZero()
	switch {
	case s.Running == string(r.Version) && m.Updated.IsZero():
		m.Updated = m.At // it was installed, and a reboot came before the wish
	case !this || string(s.Release) != m.From && s.Release != "":
	case s.Running == m.From && s.Running != string(r.Version) && s.Next == "" && (s.Phase == ota.Current || s.Phase == ota.FellBack):
		m.Code, m.Phase, m.Reason = 0, string(s.Phase), ""
		to(Returned)
	case s.Code != 0:
		m.Code, m.Phase, m.Reason = s.Code, string(s.Phase), s.Reason
	}
}

func environment(code int) bool { return ota.Code(code).Environment() }

// settle brings what is known about a robot, and the time, into its standing.
func (r *Rollout) settle(f *Fact, m Member, l *look) (_ Member, changed bool) {
	to := func(s Standing) (Member, bool) { m.State, m.At = s, l.now; return m, true }
	runs := f.Running == string(r.Version)
	switch m.State {
	case Control:
		if runs || !r.in(f) {
			return to(Idle)
		}
	case Granted, Updating, Lost, Failed:
		gone := !f.Present && f.Since.After(m.Granted) && l.now.Sub(f.Since) >= SilentAfter
		switch {
		case runs:
			m.Code, m.Reason = 0, ""
			if m.Updated.IsZero() {
				m.Updated = l.now
			}
			return to(Through)
		case m.State == Granted && (l.now.After(m.Until) || f.Choice.At(l.now) == ota.WhenPostponed):
			return to(Idle)
		case m.State == Lost && f.Present && m.Tries < MaxTries: // it may try again, after those that did not try yet
			return to(Idle)
		case m.State == Failed && environment(m.Code) && m.Tries < MaxTries && l.now.Sub(m.At) >= RetryAfter && r.Grants():
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
			return to(Fell)
		}
	case Fell, Returned:
		if runs && m.State == Returned { // it had waited for a reboot after all
			if m.Updated.IsZero() {
				m.Updated = l.now
			}
			return to(Return)
		}
	case Return:
		if runs && m.Updated.IsZero() {
			m.Updated = l.now
			return m, true
		}
		if f.Running != "" && f.Running != m.From && !runs && !slices.Contains(r.Path, ota.Version(f.Running)) {
			return to(Idle) // another release took its place
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

// Step brings everything that is known into the rollout, moves it to its next state, and hands out grants. It changes r and members.
func (r *Rollout) Step(facts []Fact, members map[thing.ID]Member, now time.Time) Outcome {
	var out Outcome
	l := newLook(now)
	changed := map[thing.ID]bool{}
	keep := func(m Member) { members[m.Thing] = m; changed[m.Thing] = true }
	turn := func(kind, words string) {
		out.Turns = append(out.Turns, Turn{At: now, Kind: kind, Phase: r.Phase, Words: words})
	}
	under := r.State == Running || r.State == Baking || r.State == Paused || r.State == Held
	if !r.Progress.At.IsZero() && now.Sub(r.Progress.At) > CloudGap {
		r.Still = now.Add(CloudGap)
	}
	t := tally{guards: make([]guardTally, len(r.Guards)), codes: map[int]int{}, waits: map[WhyCode]int{}}
	places, in := r.survey(facts, members, l, &t, keep)
	if under {
		slices.Sort(places)
		r.plan(places)
	}
	still, why := r.suspended(&t, now)
	for _, s := range r.Stages {
		t.phases = append(t.phases, PhaseProgress{Percent: s.Percent})
	}
	for i := range facts {
		f := &facts[i]
		m, known := members[f.Thing]
		if known && len(r.Guards) > 0 {
			if watched, ok := r.watch(f, m, still, l, &t); ok {
				m = watched
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
	if under && len(r.Stages) == 0 && in && r.State == Running { // all run it already
		r.State, r.Changed = Done, now
		turn(TurnDone, "")
	}
	r.move(&t, why, now, turn)
	if !r.Grants() {
		for _, m := range r.Take(slices.Collect(maps.Values(members)), now) {
			keep(m)
			out.Told = append(out.Told, m.Thing)
		}
	}
	for _, m := range r.takeBack(facts, members, now) {
		keep(m)
		out.Told = append(out.Told, m.Thing)
	}
	for _, m := range r.hand(facts, members, &t, l) {
		if before := members[m.Thing]; before.State == Control {
			r.spend(before, l)
		}
		keep(m)
		t.phases[min(r.PhaseOf(m.Thing), len(t.phases)-1)].Open++
		out.Told = append(out.Told, m.Thing)
	}
	for _, m := range r.compare(facts, members, len(out.Told), &t, l) {
		keep(m)
	}
	r.Progress.At, r.Progress.Phases, r.Progress.Least = now, t.phases, r.least()
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

// survey settles the members and returns the places of the robots that have or need the release, and whether the rollout is for any robot at all.
func (r *Rollout) survey(facts []Fact, members map[thing.ID]Member, l *look, t *tally, keep func(Member)) (places []float64, in bool) {
	for i := range facts {
		f := &facts[i]
		m, known := members[f.Thing]
		if known {
			if settled, ok := r.settle(f, m, l); ok {
				if m.State == Control {
					r.spend(m, l)
				}
				m = settled
				keep(m)
			}
			if m.State == Control && l.now.Sub(m.Granted) < r.watchFor() {
				if t.control++; !f.Present {
					t.away++
				}
			}
		}
		if m.treated() || r.in(f) {
			in = true
			if m.treated() || l.newer(f.Running, r.Version) < 0 {
				places = append(places, r.placeOf(f))
			}
		}
	}
	return places, in
}

// count adds one robot to the tally.
func (r *Rollout) count(f *Fact, m Member, l *look, t *tally) {
	switch m.State {
	case Failed:
		t.codes[m.Code]++
		if t.ended++; environment(m.Code) {
			t.outside++
		}
	case Fell:
		t.codes[m.Code]++
		t.ended++
		t.fell = append(t.fell, f.Thing)
	case Through:
		t.ended++
		if l.now.Sub(m.Updated) < r.watchFor() {
			t.watching++
		}
	}
	if m.State != Control && m.bad(string(Silent)) {
		t.lost = append(t.lost, f.Thing)
	}
	current := l.newer(f.Running, r.Version) >= 0
	if !m.treated() && (!r.in(f) || current) {
		return
	}
	i := r.phaseAt(r.placeOf(f))
	if i == len(r.Stages) {
		return
	}
	p := &t.phases[i]
	p.Robots++
	switch {
	case m.State == Failed || m.State == Fell || m.State == Lost || m.State == Return || m.State == Returned:
		p.Failed++
		if m.Bad != "" {
			p.Watched++
		}
		if m.State == Failed && environment(m.Code) && m.Tries < MaxTries {
			p.again++
			if i == r.Phase {
				t.waits[WhyFailed]++
			}
		}
	case m.State == Through:
		p.Done++
		if m.Bad != "" || l.now.Sub(m.Updated) >= r.watchFor() {
			p.Watched++
		}
	case m.State.Open():
		p.Open++
		if i == r.Phase {
			t.waits[map[Standing]WhyCode{Granted: WhyGranted, Updating: WhyUpdating}[m.State]]++
		}
	case f.Wished || f.Busy || f.Choice.At(l.now) == ota.WhenPostponed:
		p.Kept++
	case f.Present && i == r.Phase:
		t.waits[cmp.Or(r.judge(f, m, l).Code, WhyCap)]++
	case !f.Present:
		if i == r.Phase {
			t.waits[WhyOffline]++
		}
		p.Offline++
		if f.Since.IsZero() || l.now.Sub(f.Since) > absentAfter {
			p.absent++
		}
	}
}

// absentAfter is how long a robot is away until a phase is no longer expected to reach it.
const absentAfter = 7 * 24 * time.Hour

// codeWords says which codes failed for the robots' environment.
func (t *tally) codeWords() string {
	var parts []string
	for _, c := range slices.Sorted(maps.Keys(t.codes)) {
		if environment(c) {
			parts = append(parts, fmt.Sprintf("%d with code %d (%s)", t.codes[c], c, ota.Code(c).Words()))
		}
	}
	return strings.Join(parts, ", ")
}

// Take takes grants back of which nothing has come, once the rollout hands out no grants, and returns what it changed. Once it was stopped or aborted, robots that
// update are told to return to what they run, so that they drop a release that waits for their reboot.
func (r *Rollout) Take(members []Member, now time.Time) (changed []Member) {
	for _, m := range members {
		switch {
		case r.Grants():
			return nil
		case m.State == Granted:
			m.State = Idle
		case (m.State == Updating || m.State == Lost) && (r.State == Stopped || r.State == Aborted) && m.From != "":
			m.State, m.Code, m.Reason = Return, 0, ""
		default:
			continue
		}
		m.At = now
		changed = append(changed, m)
	}
	return changed
}

// takeBack tells robots that run the release to return, once the rollout takes its robots back: BackFirst present ones, and ten times as many whenever those that
// were told have returned. If many cannot, the others are not told until a person asks again.
func (r *Rollout) takeBack(facts []Fact, members map[thing.ID]Member, now time.Time) (changed []Member) {
	if !r.Back {
		return nil
	}
	type candidate struct {
		Member
		place float64
	}
	var ready []candidate
	told, back, away, stuck := 0, 0, 0, 0
	for i := range facts {
		f := &facts[i]
		m, ok := members[f.Thing]
		switch {
		case !ok || m.Updated.IsZero():
		case m.State == Return:
			if told++; !f.Present {
				away++
			} else if m.Code != 0 {
				stuck++
			}
		case m.State == Returned:
			told++
			back++
		case m.State == Through && m.From != "" && f.Present:
			ready = append(ready, candidate{m, r.placeOf(f)})
		}
	}
	allowed := BackFirst
	for allowed <= told && float64(back) >= Reached*float64(min(told, allowed)-away) && back >= allowed/2 {
		allowed *= 10
	}
	if stuck > max(2, told/10) && stuck > r.Accepted[acceptStuck] {
		r.Why = fmt.Sprintf("%d of %d robots cannot go back; the others were not told to.", stuck, told)
		return nil
	}
	slices.SortFunc(ready, func(a, b candidate) int { return cmp.Compare(a.place, b.place) })
	for _, c := range ready[:min(max(allowed-told, 0), len(ready))] {
		m := c.Member
		m.State, m.At, m.Code, m.Reason = Return, now, 0, ""
		changed = append(changed, m)
	}
	return changed
}

// acceptStuck is the key of Accepted for robots that cannot go back.
const acceptStuck = "stuck"

// hand grants what is free, and counts all robots by their answer.
func (r *Rollout) hand(facts []Fact, members map[thing.ID]Member, t *tally, l *look) (granted []Member) {
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
			ready = append(ready, candidate{f, m.Tries, r.placeOf(f)})
			continue
		}
		r.Progress.Why[w.Code]++
		switch w.Code {
		case WhyPhase, WhyControl, WhyExcluded:
			if r.obstacle(f, l, &Why{}) == whyGrantable {
				t.candidate = append(t.candidate, i)
			}
		}
	}
	free := 0
	if (r.State == Running || r.State == Baking) && !l.now.Before(r.Still) {
		free = min(max(r.Cap-t.open, 0), len(ready))
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
