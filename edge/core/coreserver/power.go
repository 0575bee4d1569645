package coreserver

import (
	"context"
	"os"
	"time"

	"kennel/edge/core/control"
	"kennel/edge/core/corelink"
	"kennel/edge/power"
	"kennel/edge/power/lastoff"
	"kennel/infra/logging"
)

// markPatience is how long the end of the power waits for the note that it is meant: a medium that hangs must not keep a hot battery on.
const markPatience = 500 * time.Millisecond

// CameOn reads how the run before this one ended, and notes that the robot is on (VEC-PWR-42). An end that nothing decided is reported with the
// cause unknown. After a recovery boot the note, which is among the user data, is left alone (VEC-BOOT-07).
func (s *Server) CameOn(ctx context.Context) error {
	log := s.cfg.Log
	root, err := os.OpenRoot(s.cfg.Root)
	if err == nil {
		defer root.Close() // nothing buffered
		boot, berr := s.cfg.Hardware.Boot(root)
		if berr != nil {
			log.ErrorContext(ctx, "boot parameters unreadable; assuming a normal boot", logging.Err, berr)
		}
		if s.recovery = boot.Recovery; !s.recovery {
			s.lastOff, err = lastoff.Started(root)
		}
	}
	switch {
	case s.recovery:
		log.WarnContext(ctx, "recovery boot; user data not touched")
	case err != nil:
		log.WarnContext(ctx, "last shutdown cause unreadable", logging.Err, err)
		s.lastOff = lastoff.Unmeant
	case s.lastOff == lastoff.Unmeant:
		log.WarnContext(ctx, "last shutdown was unexpected", "cause", power.UnknownCause.String())
	default:
		log.DebugContext(ctx, "last shutdown", "last", s.lastOff.String())
	}
	return err
}

// GoingOff notes that the end is meant.
func (s *Server) GoingOff() {
	if s.recovery {
		return
	}
	if err := s.atRoot(lastoff.GoingOff); err != nil {
		s.cfg.Log.Warn("power-off note not written", logging.Err, err)
	}
}

// PowerOff makes the body cut its power: the note that this is meant is the last that is written (VEC-PWR-41).
func (s *Server) PowerOff() {
	if s.marked.CompareAndSwap(false, true) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.GoingOff()
		}()
		select {
		case <-done:
		case <-time.After(markPatience):
			s.cfg.Log.Warn("power-off note not written in time; power cut without it")
		}
	}
	s.cfg.Loop.Shutdown()
}

var offNames = [...]string{power.StayOn: "stay_on", power.Clean: "clean", power.Cut: "cut"}

// power is the keeper's part of a report as a message.
func (s *Server) power(r *control.Report) *corelink.Power {
	k, sl := &r.Power, &r.Sleep
	allow := power.Allow(r.Calm, sl.State.Asleep(), k.Hottest(), k.Shedding.Now)
	s.allowed(allow)
	m := &corelink.Power{
		AtUS: r.At.Microseconds(), Status: r.Status, Calm: r.Calm, Sleep: sl.State.String(),
		LastSleep: sl.LastSleep.String(), LastWake: sl.LastWake.String(), SleepDebtHours: finite(float64(k.Debt)),
		Charging: k.Charge.State.String(), ChargedSec: seconds(k.Charge.Charged), SuggestedSec: seconds(k.Gauge.Suggested(k.Battery)),
		Heat: k.Body.Heat.String(), CPUHeat: k.CPU.Heat.String(), Shed: k.Shedding.Now.String(), SeekCharger: k.SeekCharger(),
		ChargeAllowed: k.MayCharge(), CameraHz: allow.CameraHz, Display: allow.Display, ProxMS: uint32(allow.ProxEvery.Milliseconds()),
		CPUMHz: uint32(allow.CPUMHz), Cloud: allow.Cloud, Off: offNames[k.Shutdown.Off], Cause: k.Shutdown.Cause.String(), LastOff: s.lastOff.String(),
	}
	if k.Battery.Level != power.Unknown {
		m.PlayLeftSec = seconds(power.PlayLeft(power.DefaultGauge, k.Battery.Volts))
	}
	return m
}

// seconds is d in whole seconds, as far as they fit.
func seconds(d time.Duration) uint32 { return uint32(min(max(d/time.Second, 0), 1<<32-1)) }
