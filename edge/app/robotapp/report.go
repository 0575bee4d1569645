package robotapp

import (
	"context"
	"math"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/mono"
	"kennel/edge/corelink"
	"kennel/edge/faultcode"
	"kennel/edge/helm"
	"kennel/edge/power"
	"kennel/edge/rt"
	"kennel/infra/logging"
)

// Own defaults: how often what is said, and how long a measurement counts as heard.
const (
	stateEvery = 200 * time.Millisecond
	statsEvery = 5 // states
	window     = time.Minute
	heardFor   = 250 * time.Millisecond
)

// reporter turns what the loop publishes into messages. It is the only reader in robotd, and runs outside the loop: what it allocates and how
// long it takes is nothing to the loop.
type reporter struct {
	c       *core
	snap    rt.Snapshot
	stats   rt.Stats
	helm    helm.Report
	fault   faultcode.Code
	said    bool          // fault was said
	charged bool          // Power was said
	checked bool          // the body's first frame was looked at
	off     time.Duration // since when the robot is going off; 0: it is not
	felt    corelink.Inertial
	sensed  corelink.Senses

	older, newer rt.Stats // of the start of the last window but one, and of the last
	turned       time.Duration
}

// report publishes State 5 times a second, the statistics each second and a Fault when it changes, until ctx ends.
func (c *core) report(ctx context.Context) error {
	r := &reporter{c: c, turned: mono.Now()}
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		state := r.state()
		r.checkStart(ctx)
		r.say(ctx, state)
		if m, ok := c.deck.motion(&r.helm); ok {
			r.say(ctx, m)
			r.sayInertial(ctx, n%statsEvery == statsEvery-1)
			r.saySenses(ctx, n%statsEvery == statsEvery-1)
			if !r.charged || n%statsEvery == statsEvery-1 {
				r.charged = true
				r.say(ctx, r.power())
			}
			r.goOff(ctx)
		}
		r.sayFault(ctx)
		if n%statsEvery == statsEvery-1 {
			r.say(ctx, r.loopStats())
			if r.stats.Linked {
				l := corelink.LinkStats(r.stats.Link)
				r.say(ctx, &l)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *reporter) say(ctx context.Context, m corelink.Message) {
	if err := r.c.srv.Publish(m); err != nil {
		r.c.log.ErrorContext(ctx, "publish", logging.Err, err) // a bug of ours: values are made to fit
	}
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
			r.c.log.InfoContext(ctx, "no fault left")
		}
		r.say(ctx, &corelink.Fault{})
		return
	}
	r.c.log.WarnContext(ctx, "fault", "fault", int(code), "text", code.Text())
	r.say(ctx, &corelink.Fault{Code: uint16(code), Text: code.Text()})
}

// offAfter is how long the robot's other programs have, to write what is to be written, between the fault that says why the robot goes off and the
// end of the power (VEC-PWR-41); own default.
const offAfter = 10 * time.Second

// goOff ends the power once the helm decided so: at once where heat does not wait, else when the others had their time. The cause is logged and
// broadcast as the fault of the moment (VEC-PWR-40).
func (r *reporter) goOff(ctx context.Context) {
	off := r.helm.Power.Shutdown
	if off.Off == power.StayOn {
		return
	}
	if r.off == 0 {
		r.off = mono.Now()
		r.c.log.WarnContext(ctx, "the robot goes off", "cause", off.Cause.String(), "at_once", off.Off == power.Cut)
	}
	if off.Off == power.Cut || mono.Now()-r.off >= offAfter {
		r.c.powerOff() // again and again, should the body come back before it heard
	}
}

// now returns the fault of the moment: why the robot goes off, our own, else the one the body reports.
func (r *reporter) now() faultcode.Code {
	if code := r.helm.Power.Shutdown.Cause.Fault(); code != 0 && r.off != 0 {
		return code
	}
	if code := faultcode.Code(r.c.fault.Load()); code != 0 {
		return code
	}
	return faultcode.Code(r.snap.Sense.Fault)
}

func (r *reporter) state() *corelink.State {
	c := r.c
	m := &corelink.State{Fault: uint16(c.fault.Load())}
	d := c.desc.Load()
	if !c.loop.Snapshot(&r.snap) || d == nil {
		return m
	}
	s, f := &r.snap.Sense, &r.snap.Frame
	m.AtUS = s.At.Microseconds()
	m.Link = c.running.Load() && s.At > 0 && mono.Now()-s.At < heardFor
	m.Seq, m.Epoch = s.Seq, s.Epoch
	m.Fault = uint16(r.now())
	m.BatteryVolts, m.BatteryVoltsRaw, m.BatteryLevel = finite(f.Battery.Volts), finite(s.BatteryVolts), uint8(f.Battery.Level)
	m.ChargerVolts, m.Power, m.Temperature = finite(s.ChargerVolts), uint16(s.Power), finite(s.Temperature)
	if s.At > 0 {
		for i := range min(len(d.Motors), body.MaxMotors) {
			m.Motors = append(m.Motors, corelink.Motor{
				Position: finite(s.Motors[i].Position), Speed: finite(s.Motors[i].Speed), Duty: finite(r.snap.Act.Motors[i]), Unseen: s.Motors[i].Unseen,
			})
		}
		for _, v := range s.Cliffs[:min(len(d.Cliffs), body.MaxCliffs)] {
			m.Cliffs = append(m.Cliffs, finite(v))
		}
	}
	m.ProxMetres, m.ProxAtUS = finite(s.ProxMetres), s.ProxAt.Microseconds()
	m.Touch, m.TouchAtUS, m.Button, m.Halted = finite(s.Touch), s.TouchAt.Microseconds(), s.Button, r.snap.Halted
	return m
}

func (r *reporter) loopStats() *corelink.LoopStats {
	c, s := r.c, &r.stats
	c.loop.Stats(s) // false: nothing ran yet, all zero
	if now := mono.Now(); now-r.turned >= window {
		r.older, r.newer, r.turned = r.newer, *s, now
	}
	late, step := s.Lateness.Sub(&r.older.Lateness), s.StepTime.Sub(&r.older.StepTime)
	peers, drops := c.srv.Peers()
	m := &corelink.LoopStats{
		UptimeUS: (mono.Now() - c.started).Microseconds(),
		Steps:    s.Steps, Missed: s.Missed, Late: s.Late, Long: s.Long, Timeouts: s.Timeouts, Stale: s.Stale, Shifts: s.Shifts, WriteErrs: s.WriteErrs,
		Reopened: uint64(max(c.opened.Load()-1, 0)),
		PeriodUS: micros(s.Period), FIFO: c.fifo.Load(), Locked: c.locked.Load(),
		Lateness: percentiles(&late, s.Lateness.Max), StepTime: percentiles(&step, s.StepTime.Max),
		Refused: s.Refused + c.deck.helm.Refused(), Drops: drops, Peers: uint32(peers),
	}
	for _, t := range s.Tasks[:s.NTasks] {
		m.Tasks = append(m.Tasks, corelink.TaskStats{
			Name: t.Name, Every: uint32(t.Every), BudgetUS: micros(t.Budget), Runs: t.Runs, Late: t.Late, Skipped: t.Skipped,
			WorstUS: micros(t.Worst), RecentUS: micros(t.Recent),
		})
	}
	return m
}

func percentiles(h *rt.Histogram, most time.Duration) corelink.Percentiles {
	return corelink.Percentiles{P50: micros(h.Quantile(0.5)), P99: micros(h.Quantile(0.99)), P999: micros(h.Quantile(0.999)), Max: micros(most)}
}

func bodyInfo(d *body.Description) corelink.BodyInfo {
	return corelink.BodyInfo{
		Species: d.Species, Model: d.Model, Firmware: d.Firmware, PeriodUS: micros(d.Period), Motors: d.Motors, Cliffs: d.Cliffs, Lights: d.Lights,
	}
}

// micros is d in whole microseconds, as far as they fit.
func micros(d time.Duration) uint32 { return uint32(min(max(d.Microseconds(), 0), math.MaxUint32)) }

// finite replaces what is no number, which the link cannot carry, with 0.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
