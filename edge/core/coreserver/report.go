package coreserver

import (
	"context"
	"math"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/core/rt"
	"kennel/edge/faultcode"
	"kennel/edge/power"
	"kennel/infra/api/live"
)

// Own defaults: the intervals of messages, and how long a measurement counts as fresh.
const (
	stateEvery = 200 * time.Millisecond
	statsEvery = 5 // states
	window     = time.Minute
	heardFor   = 250 * time.Millisecond
)

// reporter turns the loop's published state into messages.
type reporter struct {
	s      *Server
	snap   rt.Snapshot
	stats  rt.Stats
	report control.Report
	known  bool // report is there
	first  bool // the first measurement was seen
	fault  faultcode.Code
	said   bool          // fault was said
	power  bool          // Power was said
	off    time.Duration // since when the robot is going off; 0: it is not

	older, newer rt.Stats // of the start of the last window but one, and of the last
	turned       time.Duration
}

// Report publishes State and Motion 5 times a second, slowly changing messages each second, and events and a Fault as they occur, until ctx ends.
func (s *Server) Report(ctx context.Context) error {
	r := &reporter{s: s, turned: monoclock.Now()}
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		r.step(ctx, n%statsEvery == 0)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// step publishes all messages; whole: also the slowly changing ones.
func (r *reporter) step(ctx context.Context, whole bool) {
	s := r.s
	r.known = s.cfg.Control.Report(&r.report)
	s.stay()
	state := r.state()
	if !r.first && state.AtUS > 0 && r.known {
		r.first = true
		if s.cfg.First != nil {
			s.cfg.First(ctx, state)
		}
	}
	s.say(ctx, state)
	if r.known {
		s.say(ctx, s.motion(&r.report))
		if !r.power || whole {
			r.power = true
			s.say(ctx, s.power(&r.report))
			if len(s.model.Totals) > 0 {
				s.say(ctx, &corelink.Totals{Names: s.model.Totals, Values: r.report.Totals[:len(s.model.Totals)]})
			}
		}
		r.goOff(ctx)
	}
	for {
		e, ok := s.cfg.Control.Event()
		if !ok {
			break
		}
		s.emit(ctx, &e)
	}
	r.sayFault(ctx)
	if whole {
		s.say(ctx, r.loopStats())
		if r.stats.Linked {
			l := corelink.LinkStats(r.stats.Link)
			s.say(ctx, &l)
		}
	}
}

// emit tells an event to every peer.
func (s *Server) emit(ctx context.Context, e *control.Event) {
	m := &corelink.Event{AtUS: e.At.Microseconds(), Name: e.Name, Warning: e.Warning, Quiet: e.Quiet, Numbers: e.Numbers[:e.N]}
	for i, text := range e.Texts {
		if text != "" { // a text that is empty counts if one follows it
			m.Texts = e.Texts[:i+1]
		}
	}
	if e.Warning {
		s.cfg.Log.WarnContext(ctx, "event", "event", e.Name, "numbers", m.Numbers, "texts", m.Texts)
	}
	s.events.Lock()
	defer s.events.Unlock()
	s.seq++
	m.Seq = s.seq
	s.say(ctx, m)
}

func (r *reporter) sayFault(ctx context.Context) {
	code := r.now()
	if r.said && code == r.fault {
		return
	}
	first := !r.said
	r.said, r.fault = true, code
	if code == 0 {
		if !first {
			r.s.cfg.Log.InfoContext(ctx, "fault ended")
		}
		r.s.say(ctx, &corelink.Fault{})
		return
	}
	r.s.cfg.Log.WarnContext(ctx, "fault", "fault", int(code), "text", code.Text())
	r.s.say(ctx, &corelink.Fault{Code: uint16(code), Text: code.Text()})
}

// offAfter is the time that the robot's other programs have to save their data, between the fault that says why the robot goes off and the
// end of the power (VEC-PWR-41); own default.
const offAfter = 10 * time.Second

// goOff ends the power once the keeper decided so: at once where heat does not wait, otherwise when the other programs had their time. The cause
// is logged and broadcast as the fault of the moment (VEC-PWR-40).
func (r *reporter) goOff(ctx context.Context) {
	off := r.report.Power.Shutdown
	if off.Off == power.StayOn {
		return
	}
	if r.off == 0 {
		r.off = monoclock.Now()
		r.s.cfg.Log.WarnContext(ctx, "robot powering off", "cause", off.Cause.String(), "at_once", off.Off == power.Cut)
	}
	if off.Off == power.Cut || monoclock.Now()-r.off >= offAfter {
		r.s.PowerOff() // each time, in case the body comes back before it got the order
	}
}

// now returns the present fault: the reason why the robot goes off, else robotd's own, else the body's.
func (r *reporter) now() faultcode.Code {
	if code := r.report.Power.Shutdown.Cause.Fault(); code != 0 && r.off != 0 {
		return code
	}
	if code := faultcode.Code(r.s.fault.Load()); code != 0 {
		return code
	}
	return faultcode.Code(r.report.Fault)
}

func (r *reporter) state() *corelink.State {
	s, c := r.s, &r.report
	m := &corelink.State{Fault: uint16(r.now())}
	if !s.cfg.Loop.Snapshot(&r.snap) || s.opened.Load() == 0 {
		return m
	}
	x := &r.snap.Sense
	m.AtUS, m.Seq, m.Epoch, m.Halted = x.At.Microseconds(), x.Seq, x.Epoch, r.snap.Halted
	m.Link = s.there.Load() && x.At > 0 && monoclock.Now()-x.At < heardFor
	m.BatteryVolts, m.BatteryLevel = finite(c.Power.Battery.Volts), uint8(c.Power.Battery.Level)
	m.ChargerVolts, m.Power, m.Posture = finite(c.Volts), uint16(c.Supply), c.Posture
	if s.warm != nil {
		m.Temperature = finite(s.cfg.Control.Board().Sample(s.warm.ID).Value)
	}
	return m
}

// motion is how the body moves, as a message.
func (s *Server) motion(r *control.Report) *corelink.Motion {
	b := &r.Base
	m := &corelink.Motion{AtUS: r.At.Microseconds(), Motion: live.Motion{X: finite(b.Pose.X), Y: finite(b.Pose.Y), Theta: finite(b.Pose.Theta),
		Speed: finite(b.Twist.V), Turning: finite(b.Twist.W), Way: finite(b.Way), Unreliable: b.Unreliable, Moving: r.Moving,
		Posture: r.Posture, Stop: s.reasons(r.Stop)}}
	for i, p := range s.model.Parts {
		if len(p.Devices) == 0 {
			continue // settings, which do not move
		}
		at := &r.Parts[i]
		m.Parts = append(m.Parts, live.Part{Name: p.Name, State: at.State, Outcome: at.Outcome.String(), Known: at.Known})
	}
	for a, n := range s.model.Tree.Actuators() {
		if o := r.Owners[a]; o.Owner != 0 {
			m.Owners = append(m.Owners, live.Owner{Device: n.Compact(), Program: s.program(o.Owner), Priority: int(o.Priority)})
		}
	}
	return m
}

func (r *reporter) loopStats() *corelink.LoopStats {
	s, x := r.s, &r.stats
	s.cfg.Loop.Stats(x) // false: nothing ran yet, all zero
	if now := monoclock.Now(); now-r.turned >= window {
		r.older, r.newer, r.turned = r.newer, *x, now
	}
	late, step := x.Lateness.Sub(&r.older.Lateness), x.StepTime.Sub(&r.older.StepTime)
	peers, drops := s.cfg.Link.Peers()
	m := &corelink.LoopStats{
		UptimeUS: (monoclock.Now() - s.started).Microseconds(),
		Steps:    x.Steps, Missed: x.Missed, Late: x.Late, Long: x.Long, Timeouts: x.Timeouts, Stale: x.Stale, Shifts: x.Shifts, WriteErrs: x.WriteErrs,
		Reopened: uint64(max(s.opened.Load()-1, 0)),
		PeriodUS: micros(x.Period), FIFO: s.fifo.Load(), Locked: s.locked.Load(),
		Lateness: percentiles(&late, x.Lateness.Max), StepTime: percentiles(&step, x.StepTime.Max),
		Refused: x.Refused + s.cfg.Control.Refused(), Drops: drops, Peers: uint32(peers),
	}
	for _, t := range x.Tasks[:x.NTasks] {
		m.Tasks = append(m.Tasks, corelink.TaskStats{
			Name: t.Name, Every: uint32(t.Every), BudgetUS: micros(t.Budget), Runs: t.Runs, Late: t.Late, Skipped: t.Skipped,
			WorstUS: micros(t.Worst), RecentUS: micros(t.Recent),
		})
	}
	return m
}

// lateness returns how late all steps of the loop began.
func (s *Server) lateness(request uint32) *corelink.Lateness {
	var x rt.Stats
	s.cfg.Loop.Stats(&x) // false: nothing ran yet
	m := &corelink.Lateness{Request: request}
	for upTo, n := range x.Lateness.All() {
		m.UpToUS, m.Counts = append(m.UpToUS, micros(upTo)), append(m.Counts, n)
	}
	return m
}

func percentiles(h *rt.Histogram, most time.Duration) corelink.Percentiles {
	return corelink.Percentiles{P50: micros(h.Quantile(0.5)), P99: micros(h.Quantile(0.99)), P999: micros(h.Quantile(0.999)), Max: micros(most)}
}

// micros is d in whole microseconds, as far as they fit.
func micros(d time.Duration) uint32 { return uint32(min(max(d.Microseconds(), 0), math.MaxUint32)) }

// finite replaces NaN and infinities, which the link cannot carry, with 0.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
