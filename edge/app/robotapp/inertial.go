package robotapp

import (
	"context"

	"kennel/edge/corelink"
	"kennel/edge/sense"
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

// senses is what the helm knows by the other senses as a message.
func (r *reporter) senses() corelink.Senses {
	s, f := &r.helm.Sense, &r.helm.Felt
	m := corelink.Senses{
		AtUS: r.snap.Sense.At.Microseconds(), Touched: s.Touched, Petting: s.Petting, Metres: finite(s.Prox.Metres), Quality: finite(s.Prox.Quality), Found: s.Prox.Found,
		Unobstructed: s.Prox.Unobstructed, LiftInView: s.Prox.LiftInView, Touches: f.Touches, Pettings: f.Pettings, PettedMS: uint64(f.Petted.Milliseconds()),
		ChargerChecks: f.ChargerChecks, BaselinesLearnt: f.BaselinesLearnt, BaselinesChanged: f.BaselinesChanged, BaselinesKept: f.BaselinesKept,
		BaselinesHigh: f.BaselinesHigh, CliffsSeen: f.Cliffs, Lines: f.Lines, ProxInvalid: f.ProxInvalid, ProxSevere: f.ProxSevere,
		Singles: f.Gestures[sense.Single], Doubles: f.Gestures[sense.Double], Mutes: f.Gestures[sense.Mute], Recoveries: f.Gestures[sense.Recovery],
	}
	if s.CliffsKnown {
		m.Cliffs = uint8(s.Cliffs)
	}
	return m
}

// saySenses tells it when something of it changed, beside what changes all the time, or when anyway.
func (r *reporter) saySenses(ctx context.Context, anyway bool) {
	m := r.senses()
	was := r.sensed
	was.AtUS, was.Metres, was.Quality, was.PettedMS = m.AtUS, m.Metres, m.Quality, m.PettedMS
	if m == was && !anyway {
		return
	}
	r.sensed = m
	r.say(ctx, &m)
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
