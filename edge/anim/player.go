package anim

import (
	"fmt"
	"math"
)

// Events are what happens at a row.
type Events uint8

// The events. Finished and Stopped come with the first row that is not the motion's any longer, in which the joints are held.
const (
	Began    Events = 1 << iota // the row of the first keyframe, in each loop
	Reached                     // the row of a keyframe, the first included; see Player.Keyframe
	Looped                      // a loop has ended and another one follows
	Finished                    // the last loop has ended
	Stopped                     // by Stop
)

// Has reports whether all of q happened.
func (e Events) Has(q Events) bool { return e&q == q }

// The lead-in to the first keyframe: at half of the speed of each joint, and not faster than this (MTN-53).
const (
	leadShare = 0.5
	leadRows  = 63 // half a second
)

type phase int

const (
	idle phase = iota
	leading
	playing
)

// Player plays one motion on one body.
type Player struct {
	score  score
	report Report
	speeds []int32 // of the body's joints
	loops  int

	phase    phase
	paused   bool
	stopping bool
	loop     int     // of those that have begun
	keyframe int     // the next one; while leading 0
	reached  int     // the newest one that was sent; -1: none
	f        int64   // rows behind the keyframe before, or of the lead-in
	lead     int64   // rows of the lead-in
	played   int64   // rows of this loop
	from     []int32 // where the lead-in began
	at       []int32 // the newest set-points of the body's joints
}

// New returns a Player of a motion on a body. The error is ErrMotion; Report says what was made to fit.
func New(m *Motion, body []Joint, o Options) (*Player, error) {
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Loops == 0 {
		o.Loops = 1
	}
	if o.Loops < Forever {
		return nil, fmt.Errorf("%w: loops: expected at least 1, or %d for ever, found %d", ErrMotion, Forever, o.Loops)
	}
	s, report, err := compile(m, body, o)
	if err != nil {
		return nil, err
	}
	p := &Player{score: s, report: report, loops: o.Loops, from: make([]int32, len(body)), at: make([]int32, len(body)), reached: -1}
	for _, j := range body {
		p.speeds = append(p.speeds, j.Speed)
	}
	return p, nil
}

// Report returns what was made to fit the body. Its slices must not be changed.
func (p *Player) Report() Report { return p.report }

// Rows returns the rows of one loop, without the lead-in.
func (p *Player) Rows() int64 { return p.score.total }

// Keyframe returns the keyframe whose row was sent last; -1: none yet in this loop.
func (p *Player) Keyframe() int { return p.reached }

// Loop returns which loop is played, from 1; 0: none yet.
func (p *Player) Loop() int { return p.loop }

// Progress returns how much of this loop has been played, from 0 to 1; during the lead-in 0.
func (p *Player) Progress() float64 {
	if p.score.total == 0 {
		return 1
	}
	return min(1, float64(p.played)/float64(p.score.total))
}

// Playing reports whether the motion has begun and not ended; also while it is paused.
func (p *Player) Playing() bool { return p.phase != idle }

// Start begins to play from where the body's joints are, one position each, in micro-radian. The joints first move to the first keyframe (MTN-53),
// unless they are there.
func (p *Player) Start(at []int32) error {
	if len(at) != len(p.at) {
		return fmt.Errorf("positions: expected %d, one for each joint of the body, found %d", len(p.at), len(at))
	}
	copy(p.at, at)
	p.paused, p.stopping, p.loop = false, false, 0
	p.again()
	return nil
}

// again begins a loop.
func (p *Player) again() {
	copy(p.from, p.at)
	p.phase, p.keyframe, p.reached, p.f, p.lead, p.played = leading, 0, -1, 0, 0, 0
	p.loop++
	for c, j := range p.score.joints {
		d := distance(p.from[j], p.score.values[c])
		if d > 0 {
			half := int32(math.Ceil(float64(p.speeds[j]) * leadShare))
			p.lead = max(p.lead, leadRows, rowsFor(d, half, 1, true))
		}
	}
}

// Pause holds the joints where they are until Resume.
func (p *Player) Pause() { p.paused = true }

// Resume continues after Pause.
func (p *Player) Resume() { p.paused = false }

// Stop ends the motion at the next Step, where the joints are.
func (p *Player) Stop() { p.stopping = p.phase != idle }

// Step fills out with the next set-points of the body's joints, one row later than the ones before, and says what happened. A Player that does not play
// holds the newest ones. out has a place for each joint of the body.
func (p *Player) Step(out []int32) (e Events) {
	switch {
	case p.stopping:
		p.stopping, p.phase, e = false, idle, Stopped
	case p.phase != idle && !p.paused:
		e = p.step()
	}
	copy(out, p.at)
	return e
}

// step moves on by one row.
func (p *Player) step() (e Events) {
	s := &p.score
	if p.phase == leading {
		if p.f++; p.f < p.lead {
			t := float64(p.f) / float64(p.lead)
			for c, j := range s.joints {
				p.at[j] = mix(p.from[j], s.values[c], t, 0)
			}
			return 0
		}
		p.phase, p.keyframe, p.f = playing, 1, 0
		if s.total > 0 { // a single keyframe is not sent by every rule
			e = Began
		} else {
			for c, j := range s.joints {
				p.at[j] = s.values[c]
			}
		}
	}
	if p.played == s.total {
		return e | p.end()
	}
	if p.keyframe == s.keyframes { // the last one itself
		last := s.values[(s.keyframes-1)*len(s.joints):]
		for c, j := range s.joints {
			p.at[j] = last[c]
		}
		p.played++
		p.reached = p.keyframe - 1
		return e | Reached
	}
	if p.f == 0 {
		p.reached = p.keyframe - 1
		e |= Reached
	}
	s.row(p.keyframe, p.f, p.at)
	p.played++
	if p.f++; p.f == s.rows[p.keyframe] {
		p.keyframe, p.f = p.keyframe+1, 0
	}
	return e
}

// end ends a loop, and begins the next one if there is one.
func (p *Player) end() Events {
	if p.loops != Forever && p.loop >= p.loops {
		p.phase = idle
		return Finished
	}
	p.again()
	if p.score.total == 0 && p.lead == 0 {
		return Looped // a motion of no rows takes one, so that it can be stopped
	}
	return Looped | p.step()
}
