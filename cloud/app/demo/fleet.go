package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kennel/infra/api/status"
	"kennel/infra/thing"
)

const (
	// firstSerial is the serial of the first seeded robot of each species; those that onebox simulates begin at 00e20100.
	firstSerial = 0x00e2d000
	vectors     = 116
	amigos      = 24
	past        = 7 * 24 * time.Hour
	seed        = 30
	hero        = 7 // index of a robot to which a bit of everything happens
)

// Releases of the story.
const (
	older   = "2.0.0.6074"
	steady  = "2.0.1.6076" // its rollout is over
	newest  = "2.1.0.6091" // its rollout is under way
	amigoOS = "1.3.0.17"
)

// Tags of the seeded robots, which are cohorts too.
const (
	home = "home" // the rollouts are for these
	beta = "beta"
	lab  = "lab"
)

var zones = []string{"Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "Asia/Tokyo", "Australia/Sydney"}

// robot is a seeded robot and its week.
type robot struct {
	id       thing.ID
	boot     string
	zone     string
	tags     []string
	online   []span // in order; the last has no end if the robot is online now
	runs     []run  // in order
	fault    bool   // it shows a fault since a few hours
	volts    float64
	seq      uint64 // of its last event
	standing int    // steps since its update began
}

type span struct{ from, to time.Time }

type run struct {
	since time.Time
	os    string
}

// plan returns the seeded robots as they are before the rollouts. It is the same for the same time.
func plan(now time.Time) []*robot {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all []*robot
	add := func(species thing.Species, i int) *robot {
		r := &robot{id: thing.ID(fmt.Sprintf("%s:%08x", species, firstSerial+i)), boot: fmt.Sprintf("demo-%04x", rng.Uint32()&0xffff), zone: zones[rng.IntN(len(zones))], volts: 3.7 + 0.4*rng.Float64()}
		r.live(now, rng, i)
		all = append(all, r)
		return r
	}
	for i := range vectors {
		r := add(thing.Vector, i)
		r.runs = []run{{now.Add(-past), older}}
		r.tags = []string{home}
		if i%10 == 3 { // the lab tries a release before its rollout
			r.tags, r.runs = []string{lab}, append(r.runs, run{now.Add(-4 * 24 * time.Hour), newest})
		}
		if i%8 == 0 {
			r.tags = append(r.tags, beta)
		}
		if Owned[r.id] != "" || i == hero { // well, and well charged
			r.volts = 3.95
		}
	}
	for i := range amigos {
		r := add(thing.AmigoBot, i)
		r.runs, r.volts = []run{{now.Add(-past), amigoOS}}, 12+rng.Float64()
		r.tags = []string{lab}
	}
	return all
}

// live plans when a robot is online: most are now, some left days ago, and a few were never here.
func (r *robot) live(now time.Time, rng *rand.Rand, i int) {
	end := now
	switch {
	case i%29 == 28:
		return
	case i%17 == 5:
		end = now.Add(-time.Duration(3+rng.IntN(120)) * time.Hour)
	}
	at := now.Add(-past).Add(time.Duration(rng.IntN(180)) * time.Minute)
	for at.Before(end) {
		to := at.Add(time.Duration(360+rng.IntN(2000)) * time.Minute)
		if to.After(end.Add(-50 * time.Minute)) {
			to = end
		}
		r.online = append(r.online, span{at, to})
		at = to.Add(time.Duration(20+rng.IntN(80)) * time.Minute) // shorter than what a rollout takes for a loss
	}
	if end.Equal(now) {
		r.online[len(r.online)-1].to = time.Time{}
	}
}

// at reports whether the robot is online, and since when.
func (r *robot) at(t time.Time) (present bool, since time.Time) {
	for _, s := range r.online {
		if t.Before(s.from) {
			break
		}
		if s.to.IsZero() || t.Before(s.to) {
			return true, s.from
		}
		since = s.to
	}
	return false, since
}

// os returns the release that the robot runs.
func (r *robot) os(t time.Time) (os string) {
	for _, x := range r.runs {
		if !t.Before(x.since) {
			os = x.os
		}
	}
	return os
}

// bootID names the robot's boot at a time: an update needs another one.
func (r *robot) bootID(t time.Time) string {
	n := 0
	for _, x := range r.runs {
		if !t.Before(x.since) {
			n++
		}
	}
	return fmt.Sprintf("%s-%d", r.boot, n)
}

func (r *robot) has(tag string) bool { return slices.Contains(r.tags, tag) }

const (
	faultCode  = 914
	faultSince = 4 * time.Hour
)

// status returns the status that the robot reports.
func (r *robot) status(t time.Time) status.Message {
	m := status.Message{State: status.Online, BootID: r.bootID(t), ConnectSeq: uint64(len(r.online)), Seq: 1, Lease: lease, TS: t.UnixMilli(), UptimeMS: (30 * time.Hour).Milliseconds(), Agent: "demo", OS: r.os(t),
		Body: &status.Body{Model: r.id.Species().Name(), BatteryVolts: float64(int(100*r.volts)) / 100, BatteryLevel: "nominal", TemperatureC: 31 + 8*(r.volts-3.7)}}
	if r.id.Species() == thing.Vector {
		m.Loop = &status.Loop{Steps: 20_000_000, LateP50: 40, LateP99: 160 + 200*(r.volts-3.7), LateP999: 700, LateMax: 2100, StepP50: 90, StepP99: 210, StepMax: 900, FIFO: true}
		if r.volts < 3.73 {
			m.Body.BatteryLevel = "low"
		}
		m.Intents = []string{"movement_forward", "movement_backward", "movement_turnleft", "movement_turnright", "movement_turnaround", "global_stop", "imperative_volumedown", "imperative_volumeup",
			"imperative_eyecolor", "system_sleep", "check_timer", "show_clock", "kennel_battery"}
	} else {
		m.Body.TemperatureC = 0
	}
	if r.fault {
		m.Body.Fault = faultCode
		m.Tell(status.Problem{Kind: status.KindFault, Code: fmt.Sprint(faultCode), Text: fmt.Sprintf("fault %d: vic-anim did not start", faultCode)})
	}
	return m
}
