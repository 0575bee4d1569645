package companion

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"kennel/jdocs"
)

// stats is vic.RobotLifetimeStats (part of VEC-DOC-07): numbers by their dotted names.
type stats map[string]float64

// readStats reads a document; what is no number is not there.
func readStats(doc string) stats {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(doc), &fields) // see above
	out := stats{}
	for name, v := range fields {
		var n *float64
		if json.Unmarshal(v, &n) == nil && n != nil && *n > 0 && !math.IsInf(*n, 0) {
			out[name] = *n
		}
	}
	return out
}

// tile is one number of a robot's life.
type tile struct {
	What  string
	Value string
	Unit  string
	Note  string
}

// share is a part of what a robot does.
type share struct {
	What    string
	Times   string
	Percent string
	Width   string // of its bar, of 100
}

type lifePage struct {
	said
	robotView
	Begun  bool // there is anything to show
	Asof   time.Time
	Tiles  []tile
	Shares []share
	More   []tile
}

func (c *companion) life(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	t, err := c.mine(ctx, r)
	if err != nil {
		return "", frame{}, err
	}
	v := lifePage{said: s}
	if v.robotView, err = c.newRobot(ctx, t, nil); err != nil {
		return "", frame{}, err
	}
	rev, err := c.document(ctx, t.Thing, jdocs.RobotLifetimeStats)
	if err != nil {
		return "", frame{}, err
	}
	v.Tab = "life"
	n := readStats(rev.JSON)
	v.Begun, v.Asof = len(n) > 0, rev.At
	v.Tiles = tiles(n, v.metric)
	v.Shares, v.More = shares(n), more(n)
	return "life", frame{Title: "Life of " + v.Title, Live: liveOf(t.Thing), Main: v}, nil
}

// tiles are the numbers that people ask about first; those that have not begun are left out, but for the age.
func tiles(n stats, metric bool) (out []tile) {
	v, unit := span(time.Duration(n["Alive.seconds"]) * time.Second)
	out = append(out, tile{"Alive", v, unit, "since it was new, or last erased"})
	if mm := n["Odom.Body"]; mm > 0 {
		v, unit := distance(mm/1000, metric)
		out = append(out, tile{"Travelled", v, unit, "on its own wheels"})
	}
	if ms := max(n["Pet.ms"], n["Feature.AI.Petting"]); ms > 0 {
		v, unit := span(time.Duration(ms) * time.Millisecond)
		out = append(out, tile{"Petted", v, unit, "all strokes together"})
	}
	if asked := n["BStat.AttemptedFistBump"]; asked > 0 {
		out = append(out, tile{"Fist bumps", count(n["BStat.FistBumpSuccess"]), "", "of " + count(asked) + " offered"})
	}
	for _, x := range []struct{ key, what, note string }{
		{"BStat.ReactedToTriggerWord", "Heard its name", "and came to listen"},
		{"BStat.ReactedToEyeContact", "Looked you in the eye", "and liked it"},
		{"BStat.ReactedToCliff", "Stopped at an edge", "and stayed on the table"},
		{"Feature.AI.DanceToTheBeat", "Danced", "to your music"},
	} {
		if n[x.key] > 0 {
			out = append(out, tile{x.what, count(n[x.key]), times(n[x.key]), x.note})
		}
	}
	return out
}

// doings are the classes of what a robot does, in words.
var doings = []struct{ key, what string }{
	{"FeatureType.Social", "With people"}, {"FeatureType.Play", "Playing"}, {"FeatureType.Autonomous", "On its own"},
	{"FeatureType.Utility", "Being useful"}, {"FeatureType.Sleep", "Sleeping"}, {"FeatureType.Failure", "Getting stuck"},
}

func shares(n stats) (out []share) {
	var sum, most float64
	for _, d := range doings {
		sum, most = sum+n[d.key], max(most, n[d.key])
	}
	if sum == 0 || math.IsInf(sum, 0) {
		return nil
	}
	for _, d := range doings {
		out = append(out, share{d.what, count(n[d.key]), fmt.Sprintf("%.0f %%", 100*n[d.key]/sum), fmt.Sprintf("%.1f", 100*n[d.key]/most)})
	}
	return out
}

func more(n stats) (out []tile) {
	for _, x := range []struct{ key, what string }{
		{"BStat.AnimationPlayed", "Animations played"}, {"BStat.BehaviorActivated", "Behaviours started"}, {"BStat.ReactedToMotion", "Saw something move"},
		{"BStat.ReactedToSound", "Heard something"}, {"Feature.AI.Exploring", "Went exploring"}, {"Feature.AI.InTheAir", "Was lifted"},
		{"Feature.AI.Sleeping", "Fell asleep"}, {"Feature.AI.GoHome", "Drove home"}, {"Feature.AI.LowBattery", "Ran low on battery"},
		{"Feature.AI.StuckOnEdge", "Got stuck on an edge"}, {"Feature.AI.UnmatchedVoiceIntent", "Did not understand"},
	} {
		if n[x.key] > 0 {
			out = append(out, tile{What: x.what, Value: count(n[x.key])})
		}
	}
	return out
}

// span says a length of time by its largest unit.
func span(d time.Duration) (value, unit string) {
	for _, u := range []struct {
		of        time.Duration
		one, many string
	}{{24 * time.Hour, "day", "days"}, {time.Hour, "hour", "hours"}, {time.Minute, "minute", "minutes"}} {
		if d >= u.of {
			n := int64(d / u.of)
			return plural(n, u.one, u.many)
		}
	}
	return plural(int64(d/time.Second), "second", "seconds")
}

func plural(n int64, one, many string) (value, unit string) {
	if n == 1 {
		return "1", one
	}
	return count(float64(n)), many
}

func times(n float64) string {
	if n == 1 {
		return "time"
	}
	return "times"
}

// distance says metres as people do who measure in kilometres or in miles.
func distance(m float64, metric bool) (value, unit string) {
	small, large, per, small1, large1 := m, m/1000, 1000.0, "m", "km"
	if !metric {
		small, large, per, small1, large1 = m/0.3048, m/1609.344, 5280, "ft", "mi"
	}
	switch {
	case small < per/5:
		return count(math.Round(small)), small1
	case large < 100:
		return fmt.Sprintf("%.1f", large), large1
	}
	return count(math.Round(large)), large1
}

// count writes a number with narrow spaces between the thousands.
func count(n float64) string {
	s := fmt.Sprintf("%.0f", math.Floor(n))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
