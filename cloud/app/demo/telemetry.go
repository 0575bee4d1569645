package demo

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/vitals"
	"kennel/cloud/fleet/vitals/vitalspg"
	"kennel/cloud/identity/consent"
	"kennel/cloud/telemetry/alert"
	"kennel/cloud/telemetry/alert/alertpg"
	"kennel/cloud/telemetry/crash"
	"kennel/cloud/telemetry/crash/crashpg"
	"kennel/cloud/telemetry/crash/crashwire"
	"kennel/cloud/telemetry/das"
	"kennel/cloud/telemetry/das/archive"
	"kennel/cloud/telemetry/das/daspg"
	"kennel/infra/api/ack"
	"kennel/infra/api/events"
	"kennel/infra/thing"
)

// slot is how much of the robots' lives one delivery of events is about.
const slot = time.Hour

// events has the robots send the events of their week, as far as their owners allow it, and crash now and then.
func (s *seeding) events(ctx context.Context) error {
	store := daspg.Open(s.clock.pool)
	in, err := das.NewIngester(das.Config{Writer: store, Blobs: archive.New(s.Blobs, store, s.Log), Log: slog.New(slog.DiscardHandler), Committers: 1, Linger: 5 * time.Millisecond, Now: s.clock.now,
		Consent: func(ctx context.Context, ids ...thing.ID) (consent.Hold, error) { // what owners allow now holds for the week
			h, err := s.Owners.Hold(ctx, ids...)
			h.At = s.clock.now()
			return h, err
		}})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- in.Run(running) }()
	defer func() { stop(); <-done }()
	dumps, err := s.crashes(in)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	for t := s.Now.Add(-past); t.Before(s.Now); t = t.Add(slot) {
		s.clock.set(t.Add(slot - time.Minute))
		if err := s.deliver(ctx, in, t, rng); err != nil {
			return err
		}
		for len(dumps) > 0 && dumps[0].at.Before(t.Add(slot)) {
			s.clock.set(dumps[0].at)
			if err := dumps[0].take(ctx); err != nil {
				return err
			}
			dumps = dumps[1:]
		}
	}
	s.clock.set(s.Now)
	for {
		if r, err := store.Roll(ctx); err != nil || r.Groups == 0 {
			return err
		}
	}
}

// deliver has each robot that is online send a batch about an hour.
func (s *seeding) deliver(ctx context.Context, in *das.Ingester, from time.Time, rng *rand.Rand) error {
	answers := make(chan ack.Ack, len(s.robots))
	sent := 0
	for _, r := range s.robots {
		if present, _ := r.at(from.Add(slot / 2)); !present {
			continue
		}
		evs := r.events(s.Now, from, rng)
		b, err := events.EncodeBatch(fmt.Sprintf("demo-%s-%d", r.id.Slug(), from.Unix()), evs)
		if err != nil {
			return err
		}
		in.HandleFrom(ctx, r.id, das.Certified, time.Now(), b, func(a ack.Ack) { answers <- a })
		sent++
	}
	for range sent {
		select {
		case a := <-answers:
			if a.Status != ack.Stored && a.Code != consent.CodeOptedOut {
				return fmt.Errorf("events of %s: %s %s: %s", from.Format(time.RFC3339), a.Status, a.Code, a.Reason)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// events returns what the robot tells of an hour.
func (r *robot) events(now, from time.Time, rng *rand.Rand) []events.Event {
	boot := r.bootID(from.Add(slot / 2))
	var out []events.Event
	at := from
	add := func(e events.Event) {
		r.seq++
		at = at.Add(time.Duration(1+rng.IntN(12)) * time.Minute)
		e.Source, e.TS, e.Seq, e.RobotID, e.RobotVersion, e.BootID, e.UptimeMS = "demo", at.UnixMilli(), r.seq, r.id.Serial(), r.os(from.Add(slot/2)), boot, at.Sub(from.Truncate(day)).Milliseconds()
		if e.Level == "" {
			e.Level = events.Info
		}
		out = append(out, e)
	}
	add(events.Event{Name: "battery.periodic_log", S1: "nominal", I1: events.Num(int64(1000 * r.volts))})
	if r.id.Species() == thing.Vector && rng.IntN(3) == 0 {
		add(events.Event{Name: "wakeword.triggered"})
		if rng.IntN(6) > 0 {
			add(events.Event{Name: "robot.intent", S1: "intent_imperative_dance", S3: "voice"})
		} else {
			add(events.Event{Name: "behavior.voice_command.dropped"})
		}
	}
	if rng.IntN(5) == 0 {
		add(events.Event{Name: "robot.cliff_detected", S1: "front left"})
	}
	if rng.IntN(60) == 0 {
		add(events.Event{Name: "wifi.disconnection", Level: events.Warning, S1: "weak signal"})
	}
	for _, x := range r.runs[1:] {
		if !x.since.Before(from) && x.since.Before(from.Add(slot)) {
			add(events.Event{Name: "robot.ota_download_start", S2: r.runs[0].os})
			add(events.Event{Name: "robot.ota_download_end", S1: "success", S2: x.os})
		}
	}
	if r.fault && from.After(now.Add(-faultSince-slot)) {
		add(events.Event{Name: "robot.fault_code", Level: events.Error, S1: "vic-anim", I1: events.Num(faultCode)})
	}
	return out
}

// cause is why programs crash.
type cause struct {
	program, reason string
	stack           []string // function and place, with a space between, the innermost first
}

var causes = map[string]cause{
	"voice": {"agentd", "panic: runtime error: index out of range [160] with length 160", []string{"kennel/edge/agent/voice.(*Stream).window /edge/agent/voice/stream.go:212", "kennel/edge/agent/voice.(*Stream).Write /edge/agent/voice/stream.go:148",
		"kennel/edge/agent/voice.(*Session).Run /edge/agent/voice/session.go:91"}},
	"clock": {"agentd", "panic: runtime error: invalid memory address or nil pointer dereference", []string{"kennel/edge/agent/events.(*Spool).Rotate /edge/agent/events/spool.go:77", "kennel/edge/agent/events.(*Spool).Add /edge/agent/events/spool.go:52"}},
	"lift":  {"robotd", "fatal error: all goroutines are asleep - deadlock!", []string{"kennel/edge/core/control.(*Lift).settle /edge/core/control/lift.go:130", "kennel/edge/core/control.(*Loop).Step /edge/core/control/loop.go:88"}},
}

// dump is a crash that is to come.
type dump struct {
	at   time.Time
	take func(ctx context.Context) error
}

// crashes plans who crashes: voice on the newest release with many robots, clock on the oldest, until its rollout mended it, lift seldom everywhere.
func (s *seeding) crashes(in *das.Ingester) ([]dump, error) {
	store := crashpg.New(s.clock.pool)
	svc, err := crash.New(crash.Config{Store: store, Symbols: store, Objects: s.Blobs, Now: s.clock.now, Log: s.Log,
		Tell: func(ctx context.Context, c crash.Crash, signature string) error {
			return crashwire.Tell(ctx, in, c, signature)
		}})
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 4))
	var out []dump
	for h := range int(past/time.Hour) - 1 {
		for i, r := range s.robots {
			at := s.Now.Add(-past).Add(time.Duration(h)*time.Hour + time.Duration(5+rng.IntN(40))*time.Minute)
			present, _ := r.at(at)
			name := ""
			switch p := rng.IntN(10_000); {
			case !present || r.id.Species() != thing.Vector:
			case r.os(at) == newest && (p < 160 || i == hero && h%10 == 0):
				name = "voice"
			case r.os(at) == older && p < 22:
				name = "clock"
			case p > 9993:
				name = "lift"
			}
			if name == "" {
				continue
			}
			out = append(out, dump{at, func(ctx context.Context) error { return s.crash(ctx, svc, r, name) }})
		}
	}
	slices.SortStableFunc(out, func(a, b dump) int { return a.at.Compare(b.at) })
	return append(out, dump{s.Now.Add(-2 * time.Minute), func(ctx context.Context) error { return s.judge(ctx, svc) }}), nil
}

// crash has a program of a robot crash now. What its owner does not allow is not kept.
func (s *seeding) crash(ctx context.Context, svc *crash.Service, r *robot, name string) error {
	if ok, err := s.Owners.Allowed(ctx, r.id); err != nil || !ok {
		return err
	}
	c, at := causes[name], s.clock.now()
	text := fmt.Sprintf("kennel-crash 1\nprogram: %s\nversion: %s\nboot_id: %s\ntime: %s\n\n%s\n\ngoroutine 41 [running]:\n", c.program, r.os(at), r.bootID(at), at.Format(time.RFC3339), c.reason)
	for _, f := range c.stack {
		function, place, _ := strings.Cut(f, " ")
		text += fmt.Sprintf("%s(0xc000012120)\n\t%s +0x1d\n", function, place)
	}
	_, err := svc.Take(ctx, crash.Report{Thing: r.id, Name: c.program + ".txt", OSVersion: r.os(at), At: at, Dump: []byte(text)})
	return err
}

// judge has an operator look at the groups: one is resolved, one has a note.
func (s *seeding) judge(ctx context.Context, svc *crash.Service) error {
	groups, err := svc.Groups(ctx, crash.GroupQuery{})
	if err != nil {
		return err
	}
	note := "Reproduced in the lab: a recording that ends within a window."
	for _, g := range groups {
		change := crash.Change{Note: &note}
		switch g.Reason {
		case causes["clock"].reason:
			change = crash.Change{State: crash.Resolved, FixedIn: steady}
		case causes["lift"].reason:
			continue
		}
		if _, err := svc.Change(ctx, g.ID, change, s.Operator); err != nil {
			return err
		}
	}
	return nil
}

// curves writes how the robots' bodies were.
func (s *seeding) curves(ctx context.Context) error {
	store := vitalspg.New(s.clock.pool)
	rng := rand.New(rand.NewPCG(seed, 5))
	for _, of := range []struct {
		grain vitals.Grain
		every time.Duration
		back  time.Duration
	}{{vitals.Coarse, vitals.Coarse.Every, past}, {vitals.Fine, vitals.Fine.Every, day}} {
		var list []vitals.Sample
		for i, r := range s.robots {
			for t := s.Now.Add(-of.back).Truncate(of.grain.Every); t.Before(s.Now); t = t.Add(of.every) {
				if present, _ := r.at(t); !present {
					continue
				}
				// A robot plays for some hours and goes back to its charger.
				volts := r.volts + 0.15*math.Sin(float64(t.Unix())/7000+float64(i)) + 0.02*rng.Float64()
				x := vitals.Sample{Thing: r.id, At: t, Volts: &volts, Low: &volts}
				if r.id.Species() == thing.Vector {
					warm, late := 32+10*math.Abs(volts-r.volts)*8+rng.Float64(), 120+150*rng.Float64()
					x.Temperature, x.LateP99 = &warm, &late
				}
				list = append(list, x)
			}
		}
		if err := store.Add(ctx, of.grain, list); err != nil {
			return err
		}
	}
	return nil
}

// alerts has the alerts of the week fire, and operators take care of them.
func (s *seeding) alerts(ctx context.Context) error {
	store := alertpg.New(s.clock.pool)
	found := func(at time.Time, list ...alert.Found) error {
		s.clock.set(at)
		return store.Found(ctx, list, nil)
	}
	was := s.Now.Add(-5 * day)
	if err := found(was, alert.Found{Release: older, Kind: "documents", Robots: 14, Present: 92, Fires: true}); err != nil {
		return err
	}
	for _, after := range []time.Duration{3 * time.Hour, 3*time.Hour + time.Minute} { // below the rule, and still so
		if err := found(was.Add(after)); err != nil {
			return err
		}
	}
	faulty, present := 0, 0
	for _, r := range s.robots {
		if ok, _ := r.at(s.Now); ok && r.os(s.Now) == steady {
			if present++; r.fault {
				faulty++
			}
		}
	}
	if err := found(s.Now.Add(-faultSince), alert.Found{Release: steady, Kind: "fault", Code: fmt.Sprint(faultCode), Robots: faulty, Present: present, Fires: true}); err != nil {
		return err
	}
	s.clock.set(s.Now.Add(-faultSince + 40*time.Minute))
	svc := alert.New(store, nil)
	svc.Desk, svc.Sums = store, daspg.Open(s.clock.pool)
	list, err := svc.Alerts(ctx)
	if err != nil {
		return err
	}
	for _, a := range list {
		switch {
		case a.Resolved == nil && a.Kind == "fault":
			err = svc.Ack(ctx, a.ID, alert.Note{Why: "vic-anim is restarted by the lab; a mended release is on its way."}, s.Operator)
		case a.Kind == "documents":
			_, err = svc.Silence(ctx, alert.Hush{Alert: a.ID, Minutes: int(day / time.Minute), Why: "Settings are moved to another format this week."}, s.Operator)
		}
		if err != nil {
			return err
		}
	}
	s.clock.set(s.Now.Add(-50 * time.Minute))
	if err := svc.LookAtSums(ctx); err != nil { // crashes cross their threshold
		return err
	}
	s.clock.set(s.Now)
	return nil
}
