package robotapp

import (
	"context"

	"kennel/edge/corelink"
)

// inertial is what the helm knows by the inertial sensors as a message.
func (r *reporter) inertial() corelink.Inertial {
	s, f := &r.helm.Sense.Motion, &r.helm.Felt
	m := corelink.Inertial{
		AtUS: r.snap.Sense.Inertial.At.Microseconds(), OffTreads: s.OffTreads.String(), Falling: s.Falling, PickedUp: s.PickedUp, Held: s.Held, HeldInPalm: s.HeldInPalm,
		Shaken: s.Shaken, InMotion: s.InMotion, Pitch: finite(s.Pitch), Roll: finite(s.Roll), Gyro: s.Gyro.String(), Falls: f.Falls, Impacts: f.Impacts,
		Delocalized: f.Delocalized, LongInAir: f.LongInAir, Shakes: f.Shakes, Pokes: f.Pokes, FistBumps: f.FistBumps, GyroReady: f.GyroReady, Unexpected: f.Unexpected,
	}
	if f.Unexpected > 0 {
		m.Movement, m.Side = f.Last.Type.String(), f.Last.Side.String()
	}
	return m
}

// sayInertial tells it when something of it changed, beside what changes with each sample, or when anyway.
func (r *reporter) sayInertial(ctx context.Context, anyway bool) {
	m := r.inertial()
	was := r.felt
	was.AtUS, was.Pitch, was.Roll = m.AtUS, m.Pitch, m.Roll
	if m == was && !anyway {
		return
	}
	if m.Falls != r.felt.Falls {
		r.c.log.WarnContext(ctx, "the robot fell", "falls", m.Falls, "impacts", m.Impacts)
	}
	if m.OffTreads != r.felt.OffTreads {
		r.c.log.DebugContext(ctx, "the robot stands or lies otherwise", "off_treads", m.OffTreads, "before", r.felt.OffTreads)
	}
	if m.Unexpected != r.felt.Unexpected {
		r.c.log.DebugContext(ctx, "the robot moved otherwise than it was told to", "movement", m.Movement, "side", m.Side)
	}
	r.felt = m
	r.say(ctx, &m)
}
