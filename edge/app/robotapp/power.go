package robotapp

import (
	"context"
	"log/slog"
	"os"
	"time"

	"kennel/edge/bootparam"
	"kennel/edge/corelink"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
	"kennel/infra/logging"
)

// markPatience is how long the end of the power waits for the note that it is meant: a medium that hangs must not keep a hot battery on.
const markPatience = 500 * time.Millisecond

// cameOn reads how the run before this one ended, and notes that the robot is on (VEC-PWR-42). An end that nobody decided is reported with the
// cause unknown. After a recovery boot the note, which is among the user data, is left alone (VEC-BOOT-07).
func (c *core) cameOn(ctx context.Context) error {
	root, err := os.OpenRoot(c.cfg.Root)
	if err == nil {
		defer root.Close()
		c.recovery = inRecovery(ctx, c.log, root)
		if !c.recovery {
			c.lastOff, err = lastoff.Started(root)
		}
	}
	switch {
	case c.recovery:
		c.log.WarnContext(ctx, "recovery boot: the user data are left alone")
	case err != nil:
		c.log.WarnContext(ctx, "how the robot went off is not known", logging.Err, err)
		c.lastOff = lastoff.Unmeant
	case c.lastOff == lastoff.Unmeant:
		c.log.WarnContext(ctx, "the robot went off and nobody meant it to", "cause", power.UnknownCause.String())
	default:
		c.log.DebugContext(ctx, "how the robot went off", "last", c.lastOff.String())
	}
	return err
}

// inRecovery reports whether this is a recovery boot. Where that cannot be read it is not.
func inRecovery(ctx context.Context, log *slog.Logger, root *os.Root) bool {
	p, err := bootparam.Read(root)
	if err != nil {
		log.ErrorContext(ctx, "taken for a normal boot", logging.Err, err)
	}
	return p.Recovery
}

// goingOff notes that the end is meant.
func (c *core) goingOff() {
	if c.recovery {
		return
	}
	root, err := os.OpenRoot(c.cfg.Root)
	if err == nil {
		defer root.Close()
		err = lastoff.GoingOff(root)
	}
	if err != nil {
		c.log.Warn("note that the end is meant", logging.Err, err)
	}
}

// powerOff has the body's power cut: the note that this is meant is the last that is written (VEC-PWR-41).
func (c *core) powerOff() {
	if c.marked.CompareAndSwap(false, true) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.goingOff()
		}()
		select {
		case <-done:
		case <-time.After(markPatience):
			c.log.Warn("the note that the end is meant is not written yet; the power is cut without it")
		}
	}
	c.loop.Shutdown()
}

var offNames = [...]string{power.StayOn: "stay_on", power.Clean: "clean", power.Cut: "cut"}

// power is the keeper's part of the helm's report as a message.
func (r *reporter) power() *corelink.Power {
	k, s := &r.helm.Power, &r.helm.Sleep
	allow := power.Allow(r.helm.Calm, s.State.Asleep(), k.Hottest(), k.Shedding.Now)
	r.c.clock.Store(uint32(allow.CPUMHz))
	m := &corelink.Power{
		AtUS: r.helm.At.Microseconds(), Status: r.c.kind.status(&r.snap.Sense) | r.c.deck.helm.RobotStatus(&r.helm), Calm: r.helm.Calm, Sleep: s.State.String(), LastSleep: s.LastSleep.String(), LastWake: s.LastWake.String(),
		SleepDebtHours: finite(float64(k.Debt)), Charging: k.Charge.State.String(), ChargedSec: seconds(k.Charge.Charged),
		SuggestedSec: seconds(k.Gauge.Suggested(k.Battery)), Heat: k.Body.Heat.String(), CPUHeat: k.CPU.Heat.String(), Shed: k.Shedding.Now.String(), SeekCharger: k.SeekCharger(),
		ChargeAllowed: k.MayCharge(), CameraHz: allow.CameraHz, Display: allow.Display, ProxMS: uint32(allow.ProxEvery.Milliseconds()),
		CPUMHz: uint32(allow.CPUMHz), Cloud: allow.Cloud, Off: offNames[k.Shutdown.Off], Cause: k.Shutdown.Cause.String(), LastOff: r.c.lastOff.String(),
	}
	if k.Battery.Level != power.Unknown {
		m.PlayLeftSec = seconds(power.PlayLeft(power.DefaultGauge, k.Battery.Volts))
	}
	return m
}

// seconds is d in whole seconds, as far as they fit.
func seconds(d time.Duration) uint32 { return uint32(min(max(d/time.Second, 0), 1<<32-1)) }
