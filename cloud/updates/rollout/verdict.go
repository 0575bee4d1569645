package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kennel/cloud/updates/rollout/sprt"
	"kennel/infra/proportion"
	"kennel/infra/thing"
)

// Verdict holds the findings of a guard so far.
type Verdict struct {
	Guard
	Updated  Count   `json:"updated"`
	Control  Count   `json:"controls"`
	Strength float64 `json:"evidence"` // of harm, as a likelihood ratio: 1 is none
	HoldAt   float64 `json:"hold_at"`
	StopAt   float64 `json:"stop_at"`
	Low      float64 `json:"low"`  // of the difference between the shares of bad robots, updated ones less control
	High     float64 `json:"high"` // likewise, of robots that were watched for the whole time
	Pass     bool    `json:"pass"`
	Words    string  `json:"words"`

	robots []thing.ID
}

// verdicts brings what this step has seen into the guards' tests, and returns what they find.
func (r *Rollout) verdicts(t *tally) []Verdict {
	out := make([]Verdict, len(r.Guards))
	if r.Tests == nil {
		r.Tests = map[string]sprt.Test{}
	}
	for i, g := range r.Guards {
		c, key := &t.guards[i], g.Key()
		v := Verdict{Guard: g, Updated: c.updated, Control: c.control.plus(r.Spent[key]), HoldAt: HoldAt * float64(len(r.Guards)), StopAt: StopAt * float64(len(r.Guards)), robots: c.robots}
		test := r.Tests[key]
		switch g.Metric {
		case Failures:
			test = sprt.Trials(v.Updated.Bad, v.Updated.Of, g.Share)
			v.Low, v.High = proportion.Share(v.Updated.Bad, v.Updated.Of, proportion.Z)
			v.Low -= g.Share
		default:
			slices.SortFunc(c.events, func(a, b event) int { return strings.Compare(string(a.id), string(b.id)) }) // ids say nothing of groups
			atRisk, compared := c.atRisk, c.compared
			for _, e := range c.events {
				test.Bad(e.updated, float64(atRisk)/float64(max(atRisk+compared, 1)))
				if e.updated {
					atRisk--
				} else {
					compared--
				}
			}
			v.Low, _ = proportion.Difference(v.Updated.Bad, v.Updated.Of, v.Control.Bad, v.Control.Of, proportion.Z)
			bad, controlBad := v.Updated.FullBad, v.Control.FullBad
			if g.Metric == Silent { // one that came back is no loss
				bad, controlBad = c.still, c.stillControl
			}
			_, v.High = proportion.Difference(bad, v.Updated.Full, controlBad, v.Control.Full, proportion.Z)
		}
		r.Tests[key] = test
		v.Strength = test.Evidence()
		v.Pass = v.Updated.Full >= g.Needs() && v.High <= g.Share
		v.Words = v.words()
		out[i] = v
	}
	return out
}

// what says what a guard counts.
func (g Guard) what() string {
	switch {
	case g.Metric == Failures:
		return "failed to update"
	case g.Metric == Silent:
		return "vanished during the update"
	case g.Problem != "":
		return "have the new problem " + g.Problem
	}
	return "have a new problem"
}

func (v Verdict) words() string {
	s := fmt.Sprintf("%d of %d updated robots %s", v.Updated.Bad, v.Updated.Of, v.what())
	if v.Metric != Failures {
		s += fmt.Sprintf(", %d of %d in the control", v.Control.Bad, v.Control.Of)
	}
	return fmt.Sprintf("%s; evidence of harm %.3g (holds at %.3g, stops at %.3g)", s, v.Strength, v.HoldAt, v.StopAt)
}

// lack says what keeps a guard from passing a phase; "" if nothing does.
func (v Verdict) lack() string {
	switch {
	case v.Pass:
		return ""
	case v.Updated.Full < v.Needs():
		return fmt.Sprintf("%s: %d updated robots have been watched to the end; it needs %d", v.Key(), v.Updated.Full, v.Needs())
	}
	return fmt.Sprintf("%s: up to %.1f %% more updated robots than usual may be bad (97.5 %% confidence); it allows %.3g %%", v.Key(), 100*v.High, 100*v.Share)
}

// harm returns what speaks for harm; stops: enough to stop the rollout, otherwise enough to ask a person. nil: nothing does.
func (r *Rollout) harm(t *tally, verdicts []Verdict, now time.Time) (e *Evidence, stops bool) {
	if len(r.Guards) == 0 {
		return nil, false
	}
	evidence := func(code HoldCode, v Verdict, bad int, robots []thing.ID) *Evidence {
		e := &Evidence{Guard: v.Guard, Code: code, At: now, Bad: bad, Of: v.Updated.Of, Controls: v.Control, Strength: v.Strength, Robots: robots, Words: v.Words}
		if v.Control.Of > 0 {
			e.Control = float64(v.Control.Bad) / float64(v.Control.Of)
		}
		if v.Metric == Failures {
			e.Codes = map[string]int{}
			for c, n := range t.codes {
				e.Codes[fmt.Sprint(c)] = n
			}
		}
		return e
	}
	var silent Verdict
	for _, v := range verdicts {
		if v.Metric == Silent {
			silent = v
		}
	}
	if silent.Metric == "" {
		silent = Verdict{Guard: Guard{Metric: Silent, Share: 0.03}}
	}
	fell, lost := len(t.fell), len(t.lost)
	more := func(key HoldCode, n, least int) bool { return n >= least && n > r.Accepted[string(key)] }
	fellBack := func() *Evidence {
		e := evidence(HoldFell, Verdict{Guard: Guard{Metric: Failures}, Updated: Count{Bad: fell, Of: t.ended}}, fell, first(t.fell))
		e.Words = robots(fell) + " fell back to the release before."
		return e
	}
	vanished := func() *Evidence {
		e := evidence(HoldLost, silent, lost, first(t.lost))
		e.Words = fmt.Sprintf("%s vanished during the update and stayed away for %v; none of the control did.", robots(lost), SilentAfter)
		return e
	}
	controls := float64(silent.Control.Of)
	unlikely := controls > 0 && math.Pow(float64(silent.Updated.Of)/(float64(silent.Updated.Of)+controls), float64(lost)) <= 0.01 ||
		float64(lost) > silent.Share*float64(max(silent.Updated.Of, lost))
	switch {
	case more(HoldFell, fell, 5):
		return fellBack(), true
	case more(HoldLost, lost, 5) && silent.Control.Bad == 0 && unlikely:
		return vanished(), true
	}
	var held *Evidence
	for _, v := range verdicts {
		if v.Updated.Bad <= r.Accepted[v.Key()] {
			continue
		}
		switch {
		case v.Strength >= v.StopAt && v.Low > v.margin():
			return evidence(HoldEvidence, v, v.Updated.Bad, v.robots), true
		case held == nil && v.Strength >= v.HoldAt:
			held = evidence(HoldEvidence, v, v.Updated.Bad, v.robots)
		case held == nil && r.Small:
			held = evidence(HoldBad, v, v.Updated.Bad, v.robots)
		}
	}
	switch {
	case held != nil:
	case more(HoldFell, fell, 2):
		held = fellBack()
	case more(HoldLost, lost, 2) && silent.Control.Bad == 0:
		held = vanished()
	case t.ended >= 5 && float64(t.outside) > AwayShare*float64(t.ended) && t.outside > r.Accepted[string(HoldEnvironment)]:
		held = &Evidence{Guard: Guard{Metric: Failures}, Code: HoldEnvironment, At: now, Bad: t.outside, Of: t.ended,
			Words: fmt.Sprintf("%d of %d updates failed, but not for the release: %s", t.outside, t.ended, t.codeWords())}
	}
	return held, false
}

// margin is the difference above which the lower bound has to be before the guard stops the rollout.
func (v Verdict) margin() float64 {
	if v.Metric == Failures {
		return 0 // Low is above Share already
	}
	return v.Share / 2
}

func first(list []thing.ID) []thing.ID {
	slices.Sort(list)
	return list[:min(len(list), maxRobots)]
}

// accept notes the bad robots of now, which a person has seen who continues the rollout.
func (r *Rollout) accept(members map[thing.ID]Member) {
	r.Accepted = map[string]int{}
	for _, m := range members {
		if m.State == Control {
			continue
		}
		for key := range strings.FieldsSeq(m.Bad) {
			r.Accepted[key]++
			if key == string(Silent) {
				r.Accepted[string(HoldLost)]++
			}
		}
		switch {
		case m.State == Fell:
			r.Accepted[string(HoldFell)]++
		case m.State == Failed && environment(m.Code):
			r.Accepted[string(HoldEnvironment)]++
		}
	}
}

// move judges the guards and moves the rollout to its next state.
func (r *Rollout) move(t *tally, still string, now time.Time, turn func(kind, words string)) {
	switch r.State {
	case Running, Baking, Paused, Held:
	default:
		return
	}
	verdicts := r.verdicts(t)
	r.Progress.Guards, r.Progress.Lacks = verdicts, nil
	lacks := func(code, format string, args ...any) {
		r.Progress.Lacks = append(r.Progress.Lacks, Lack{code, fmt.Sprintf(format, args...)})
	}
	under := r.State == Running || r.State == Baking
	if e, stops := r.harm(t, verdicts, now); e != nil && stops {
		r.State, r.Changed, r.Evidence, r.Why, r.Hold = Stopped, now, e, e.Words, ""
		r.Back = r.Rollback && (e.Metric == Problems || len(t.fell) >= 2) // harm from running it
		turn(TurnStopped, e.Words)
		return
	} else if e != nil && under {
		r.hold(e.Code, e.Words, now, turn)
		r.Evidence = e
		return
	}
	if !under || len(r.Stages) == 0 {
		return
	}
	if r.State == Baking && still == "" && !r.Progress.At.IsZero() {
		r.BakedS += max(0, int64(now.Sub(r.Progress.At).Round(time.Second)/time.Second))
	}
	for {
		p, stage := t.phases[r.Phase], r.Stages[r.Phase]
		reach := p.Robots - p.Offline - p.Kept
		ended := p.Done + p.Failed - p.again
		if p.Robots == 0 { // nothing to watch
			if r.next(now, turn); r.State == Done {
				return
			}
			continue
		}
		through := ended > 0 && float64(ended) >= Reached*float64(reach)
		switch {
		case !through:
			if r.State == Baking { // robots came back, or were added
				r.State, r.Changed = Running, now
			}
			if n := p.Robots - ended; n > 0 {
				lacks("robots", "%d of %d robots of this phase have not updated: %s", n, p.Robots, waiting(t.waits))
			}
			return
		case stage.Rest:
			r.next(now, turn)
			return
		case r.State == Running:
			r.State, r.Changed = Baking, now
			if r.BakedAt.IsZero() {
				r.BakedAt = now
			}
			turn(TurnBaking, fmt.Sprintf("phase %d: %d updated, %d failed, %d offline", r.Phase+1, p.Done, p.Failed, p.Offline))
		}
		if r.early(p, stage, still, lacks) {
			return
		}
		if least := int(math.Ceil(Majority * float64(p.Robots-p.Kept-p.absent))); p.Done < least {
			lacks("reach", "%d of %d robots of this phase run the release: %s; want at least %d", p.Done, p.Robots, waiting(t.waits), least)
		}
		for _, v := range verdicts {
			if s := v.lack(); s != "" {
				lacks("evidence", "%s", s)
			}
		}
		last := r.Phase == len(r.Stages)-1
		switch {
		case len(r.Progress.Lacks) == 0, last && r.Small && p.Done == ended:
			if r.next(now, turn); r.State == Done {
				return
			}
			return // the robots of the new phase are granted first
		default:
			r.hold(HoldPhase, r.shows(t), now, turn)
			return
		}
	}
}

// early reports whether the phase needs more time before it can be judged, and says for what.
func (r *Rollout) early(p PhaseProgress, stage Stage, still string, lacks func(code, format string, args ...any)) bool {
	if still != "" {
		lacks("suspended", "%s", still)
	}
	if left := stage.BakeS - r.BakedS; left > 0 {
		lacks("bake", "the phase is under observation for another %v", time.Duration(left)*time.Second)
	}
	if len(r.Guards) > 0 && float64(p.Watched) < Reached*float64(p.Done) {
		lacks("exposure", "%d of %d updated robots have been watched for %v", p.Watched, p.Done, r.watchFor())
	}
	return len(r.Progress.Lacks) > 0
}

// shows says what the robots of a phase that ended without enough evidence can show, and what they cannot.
func (r *Rollout) shows(t *tally) string {
	n, bad := 0, 0
	for _, p := range t.phases[:r.Phase+1] {
		n += p.Watched
	}
	for _, v := range r.Progress.Guards {
		bad = max(bad, v.Updated.Bad)
	}
	s := fmt.Sprintf("Phase %d is over: %s watched", r.Phase+1, robots(n))
	if bad == 0 {
		s += fmt.Sprintf(", none bad. A problem that up to %.0f %% of robots would have may still be hidden (95 %% confidence).", 100*sprt.Hidden(n))
	} else {
		s += fmt.Sprintf(", %d bad.", bad)
	}
	return s + " A person decides whether the next phase opens."
}

func (r *Rollout) hold(code HoldCode, why string, now time.Time, turn func(kind, words string)) {
	r.State, r.Changed, r.Hold, r.Why = Held, now, code, why
	turn(TurnHeld, why)
}

// next opens the next stage, or lets those that were held out have their turn, or ends the rollout.
func (r *Rollout) next(now time.Time, turn func(kind, words string)) {
	r.State, r.Changed, r.Since, r.BakedAt, r.BakedS, r.Hold, r.Why, r.Evidence = Running, now, now, time.Time{}, 0, "", "", nil
	switch {
	case r.Phase < len(r.Stages)-1:
		r.Phase++
	default:
		r.State = Done
		turn(TurnDone, "")
		return
	}
	turn(TurnPhase, r.inPhase())
}

// waitWords are codes of which the letters are no words that follow a number.
var waitWords = map[WhyCode]string{WhyGranted: "about to begin", WhyCap: "waiting for a free place", WhyPhase: "waiting for their phase", WhyApproval: "waiting for approval",
	WhyWindow: "outside their maintenance window", WhyBattery: "with a low battery", WhyBusy: "busy with another rollout", WhyWished: "kept by a person's wish"}

// waiting says in words why robots of a phase have not updated, the most frequent reason first.
func waiting(waits map[WhyCode]int) string {
	codes := make([]WhyCode, 0, len(waits))
	for c := range waits {
		codes = append(codes, c)
	}
	slices.SortFunc(codes, func(a, b WhyCode) int { return cmp.Or(waits[b]-waits[a], strings.Compare(string(a), string(b))) })
	var parts []string
	for _, c := range codes {
		parts = append(parts, fmt.Sprintf("%d %s", waits[c], cmp.Or(waitWords[c], strings.ReplaceAll(string(c), "_", " "))))
	}
	return strings.Join(parts, ", ")
}
