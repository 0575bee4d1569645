package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"kennel/infra/thing"
	"kennel/jdocs"
)

// Kind is the kind of a plan's step.
type Kind string

// The kinds.
const (
	Emit   Kind = "emit"   // an event
	Change Kind = "change" // a setting, on the robot
	Drop   Kind = "drop"   // the connection is lost
	Leave  Kind = "leave"  // no network from now on
	Return Kind = "return" // there is one again
	Reboot Kind = "reboot"
)

// Step is one thing that happens to a robot.
type Step struct {
	At   time.Duration // simulated, since the plan began; never less than the step before
	Kind Kind

	N     uint64 // Emit: how many before it
	Field string // Change: of its settings
	Value string // Change: JSON
	Clock Clock  // Reboot: what it comes with
}

// Clock is the state of a robot's clock after a boot. The zero value is a correct clock.
type Clock struct {
	Reset bool          // it begins in 1970
	Off   time.Duration // else it is so much ahead; negative: behind
}

// Wire is how good a robot's network is. The zero value is perfect.
type Wire struct {
	Latency time.Duration // one way, give or take a half
	Loss    float64       // share of reads and writes that stall
	Stall   time.Duration
	Seed    uint64 // of what happens on it
}

// Plan is the sequence of things that happen to one robot, drawn at random as it is read. Not safe for concurrent use.
type Plan struct {
	Wire  Wire
	Clock Clock // of the first boot

	streams []*stream // each with its next step drawn
}

// stream is the steps of one kind; each has its own numbers, so that a changed rate leaves the others as they are.
type stream struct {
	rng  *rand.Rand
	mean time.Duration // between two steps
	next Step
	draw func(s *stream, from time.Duration) Step // the step after the time from
}

// Plan draws what happens to the robot id. The same profile, seed and id give the same plan; no robot's depends on how many there are.
func (p Profile) Plan(seed uint64, id thing.ID) *Plan {
	pl := &Plan{}
	clocks := numbers(seed, id, "clock")
	pl.Clock = p.Clock.draw(clocks)
	drops := p.Drops
	if net := numbers(seed, id, "network"); net.Float64() < p.Network.Share {
		pl.Wire = Wire{Latency: p.Network.Latency, Loss: p.Network.Loss, Stall: p.Network.Stall, Seed: net.Uint64()}
		drops += p.Network.Cuts
	}
	var n uint64
	pl.add(seed, id, Emit, p.Events, time.Hour, func(s *stream, at time.Duration) Step {
		n++
		return Step{At: at + s.gap(), Kind: Emit, N: n - 1}
	})
	if settings := settingsOf(id.Species()); len(settings) > 0 {
		pl.add(seed, id, Change, p.Settings, time.Hour, func(s *stream, at time.Duration) Step {
			f := settings[s.rng.IntN(len(settings))]
			return Step{At: at + s.gap(), Kind: Change, Field: f.name, Value: f.values[s.rng.IntN(len(f.values))]}
		})
	}
	pl.add(seed, id, Drop, drops, time.Hour, func(s *stream, at time.Duration) Step { return Step{At: at + s.gap(), Kind: Drop} })
	pl.add(seed, id, Reboot, p.Reboots, 24*time.Hour, func(s *stream, at time.Duration) Step {
		return Step{At: at + s.gap(), Kind: Reboot, Clock: p.Clock.draw(clocks)}
	})
	away := false
	pl.add(seed, id, Leave, p.Offline.PerDay, 24*time.Hour, func(s *stream, at time.Duration) Step {
		if away = !away; away {
			return Step{At: at + s.gap(), Kind: Leave}
		}
		return Step{At: at + p.Offline.Shortest + time.Duration(s.rng.Float64()*float64(p.Offline.Longest-p.Offline.Shortest)), Kind: Return}
	})
	return pl
}

// setting is a setting that an owner changes, with the values as JSON.
type setting struct {
	name   string
	values []string
}

// settingsOf returns the settings of a species that have a few distinct values.
func settingsOf(s thing.Species) (out []setting) {
	schema, _ := jdocs.SchemaOf(jdocs.SettingsOf(s))
	for _, f := range schema.Fields {
		switch x := (setting{name: f.Name}); f.Type {
		case "enum":
			for i := range f.Values {
				x.values = append(x.values, strconv.Itoa(i))
			}
			out = append(out, x)
		case "bool":
			x.values = []string{"true", "false"}
			out = append(out, x)
		}
	}
	return out
}

// add adds a stream of so many steps in each period.
func (pl *Plan) add(seed uint64, id thing.ID, kind Kind, rate float64, per time.Duration, draw func(*stream, time.Duration) Step) {
	if rate == 0 {
		return
	}
	s := &stream{rng: numbers(seed, id, string(kind)), mean: time.Duration(min(float64(per)/rate, maxMean)), draw: draw}
	s.next = draw(s, 0)
	pl.streams = append(pl.streams, s)
}

// maxMean keeps twenty of them inside a Duration, in nanoseconds: three years.
const maxMean = 1e17

// Next returns the next step; false if nothing happens any more, at the latest after the 292 years that a Duration can count.
func (pl *Plan) Next() (Step, bool) {
	var first *stream
	for _, s := range pl.streams {
		if first == nil || s.next.At < first.next.At { // of several at once, the stream that was added first
			first = s
		}
	}
	if first == nil {
		return Step{}, false
	}
	step := first.next
	first.next = first.draw(first, step.At)
	if first.next.At < step.At { // the end of time
		pl.streams = slices.DeleteFunc(pl.streams, func(s *stream) bool { return s == first })
	}
	return step, true
}

// gap draws the time to the next of steps that know nothing of each other; at most twenty times the mean.
func (s *stream) gap() time.Duration {
	return time.Duration(min(s.rng.ExpFloat64(), 20) * float64(s.mean))
}

func (c Clocks) draw(rng *rand.Rand) Clock {
	wrong, how, far := rng.Float64() < c.Share, rng.IntN(3), rng.Float64()
	switch {
	case !wrong:
		return Clock{}
	case how == 0:
		return Clock{Reset: true}
	case how == 1:
		return Clock{Off: -time.Duration(far * float64(c.Behind))}
	}
	return Clock{Off: time.Duration(far * float64(c.Ahead))}
}

// at returns what the clock shows when the time is really now; it came up at boot.
func (c Clock) at(boot, now time.Time) time.Time {
	if c.Reset {
		return now.Add(-time.Duration(boot.UnixNano()))
	}
	return now.Add(c.Off)
}

// numbers returns the random numbers of one robot for one purpose.
func numbers(seed uint64, id thing.ID, purpose string) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%s", seed, id, purpose))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}
