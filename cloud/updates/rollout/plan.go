package rollout

import (
	"fmt"
	"math"
	"slices"

	"kennel/infra/thing"
)

// Stage is a phase as it is carried out: an exact number of robots from the front of the rollout's order. Until it opens, each step counts them again.
type Stage struct {
	Percent float64 `json:"percent"`
	Robots  int     `json:"robots"` // with those of the stages before
	Cut     float64 `json:"cut"`    // robots with a lower place belong to it, those that appear later too
	BakeS   int64   `json:"bake_s"`
	Rest    bool    `json:"rest,omitempty"` // the robots that were held out as control until all phases had passed
}

// beyond is above every place.
const beyond = 2.0

// plan brings the stages that are not open yet in line with the places of the robots that the rollout is for, in ascending order. A fleet that is too small
// for evidence gets stages of 1, 2, 4, 8 and so on instead of the operator's phases.
func (r *Rollout) plan(places []float64) {
	n := len(places)
	if n == 0 {
		return
	}
	last := r.Phases[len(r.Phases)-1]
	end := count(last.Percent, n)
	first := len(r.Stages) == 0
	if first {
		r.Small = n < r.least()
	}
	if r.Small {
		k := 0
		if !first {
			r.Stages = r.Stages[:r.Phase+1]
			k = r.Stages[r.Phase].Robots
			if k >= end {
				r.Stages[r.Phase].Cut = cut(places, end, last.Percent)
			}
		}
		for k < end {
			k = min(max(2*k, 1), end)
			r.Stages = append(r.Stages, Stage{Percent: 100 * float64(k) / float64(n), Robots: k, Cut: cut(places, k, last.Percent), BakeS: r.Phases[min(len(r.Stages), len(r.Phases)-1)].BakeS})
		}
		return
	}
	held := 0
	if len(r.Guards) > 0 && last.Percent == 100 {
		held = min(max(int(HeldOut*float64(n)), MinControl), n-1)
	}
	if first {
		r.Stages = make([]Stage, len(r.Phases))
		if held > 0 {
			r.Stages = append(r.Stages, Stage{})
		}
	}
	for i := range r.Stages {
		switch {
		case !first && i <= r.Phase:
		case i == len(r.Phases):
			r.Stages[i] = Stage{Percent: 100, Robots: n, Cut: beyond, Rest: true}
		default:
			p := r.Phases[i]
			k := min(count(p.Percent, n), n-held)
			r.Stages[i] = Stage{Percent: p.Percent, Robots: k, Cut: cut(places, k, p.Percent), BakeS: p.BakeS}
		}
	}
}

// count returns how many of n robots a share is: at least one, and never more than the share otherwise.
func count(percent float64, n int) int { return max(1, int(percent/100*float64(n)+1e-9)) }

// cut returns the bound of the first k places. The last stage of all robots has none.
func cut(places []float64, k int, percent float64) float64 {
	switch {
	case k < len(places):
		return places[k]
	case percent == 100:
		return beyond
	}
	return math.Nextafter(places[len(places)-1], beyond)
}

// PhaseOf returns the stage that the robot belongs to, from 0; len(r.Stages): none, or not known before the first step.
func (r *Rollout) PhaseOf(id thing.ID) int { return r.phaseAt(r.Place(id)) }

// placeOf is Place, worked out once.
func (r *Rollout) placeOf(f *Fact) float64 {
	if f.salt != r.Salt {
		f.salt, f.place = r.Salt, r.Place(f.Thing)
	}
	return f.place
}

func (r *Rollout) phaseAt(place float64) int {
	i := slices.IndexFunc(r.Stages, func(s Stage) bool { return place < s.Cut })
	if i < 0 {
		return len(r.Stages)
	}
	return i
}

// inPhase names the open stage.
func (r *Rollout) inPhase() string {
	if len(r.Stages) == 0 {
		return "phase 1"
	}
	s := r.Stages[r.Phase]
	if s.Rest {
		return fmt.Sprintf("phase %d: all %s, with those that were held out for comparison", r.Phase+1, robots(s.Robots))
	}
	return fmt.Sprintf("phase %d: %s", r.Phase+1, robots(s.Robots))
}

// robots counts them in words.
func robots(n int) string {
	if n == 1 {
		return "1 robot"
	}
	return fmt.Sprintf("%d robots", n)
}
