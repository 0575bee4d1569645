package sim

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"kennel/edge/body/bodysim"
	"kennel/edge/sim/plane"
	"kennel/infra/api/live"
)

// truth says where the robot is in its world, to who asks. Safe for concurrent use.
type truth struct {
	body bodysim.Ground
	m    live.Map
	rev  string

	mu     sync.Mutex
	origin live.Place
	trail  []step
}

// step is where the robot was.
type step struct {
	at    time.Duration // of the world
	where live.Point
}

// How much of a way is told: enough for a drive, and short enough that a picture of it is of now. Own defaults.
const (
	trailFor   = 20 * time.Second
	trailApart = 0.004 // m between two points
	maxName    = 40    // bytes of a thing's name
)

// newTruth returns nil for a body that is nowhere.
func newTruth(b bodysim.Ground) (*truth, error) {
	t := &truth{body: b}
	if _, ok := b.World(); !ok {
		return nil, nil
	}
	err := b.InWorld(func(w *plane.World) error {
		t.m = mapOf(w.Map(), w.Robot())
		return nil
	})
	if err != nil {
		return nil, err
	}
	said, err := json.Marshal(t.m)
	if err != nil {
		return nil, fmt.Errorf("map of the world: %w", err)
	}
	h := fnv.New64a()
	_, _ = h.Write(said) // it never fails
	t.rev = fmt.Sprintf("%016x", h.Sum64())
	t.begin()
	return t, nil
}

// begin notes that the robot's core begins to reckon where it is.
func (t *truth) begin() {
	s, _ := t.body.World() // newTruth saw that there is one
	t.mu.Lock()
	defer t.mu.Unlock()
	t.origin, t.trail = placeOf(s.Pose), nil
}

// see returns where the robot is, with the map unless rev names it. The trail consists of the poses that were asked for: a robot that is
// not looked at leaves none.
func (t *truth) see(rev string) live.World {
	s, _ := t.body.World()
	w := live.World{
		Rev: t.rev, Pose: placeOf(s.Pose), Posture: string(s.Posture), Height: short(s.Height), Blocked: s.Blocked, Contact: s.Contact,
		Below: s.Below, Falls: s.Falls,
		Range: short(s.Range), NoFloor: s.NoFloor, Things: []live.Thing{},
	}
	for i, o := range s.Objects[:min(len(s.Objects), live.MaxThings)] {
		w.Things = append(w.Things, live.Thing{At: placeOf(o), Gone: s.Gone[i]})
	}
	if rev != t.rev {
		w.Map = &t.m
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Origin = t.origin
	for len(t.trail) > 0 && (s.Time-t.trail[0].at > trailFor || len(t.trail) == live.MaxTrail) {
		t.trail = t.trail[1:]
	}
	if n, here := len(t.trail), w.Pose.Point(); n == 0 || math.Hypot(here[0]-t.trail[n-1].where[0], here[1]-t.trail[n-1].where[1]) >= trailApart {
		t.trail = append(t.trail, step{s.Time, here})
	}
	for _, p := range t.trail {
		w.Trail = append(w.Trail, p.where)
	}
	return w
}

// mapOf is the plan of a world, as far as it fits a frame.
func mapOf(m plane.Map, r plane.Robot) live.Map {
	out := live.Map{Name: named(m.Name), Body: live.Body{Nose: short(r.Nose), Tail: short(r.Tail), Width: short(r.Width),
		Finder: live.Point{short(r.Range.X), short(r.Range.Y)}, Sight: short(r.RangeMax)}}
	for _, v := range r.Cliffs {
		out.Body.Cliffs = append(out.Body.Cliffs, pointOf(v))
	}
	for _, w := range m.Walls {
		if len(out.Walls) < live.MaxWalls {
			out.Walls = append(out.Walls, live.Wall{From: pointOf(w.From), To: pointOf(w.To)})
		}
	}
	corners := 0
	for _, c := range m.Cliffs {
		if len(out.Cliffs) == live.MaxCliffs || corners+len(c.Corners) > live.MaxCorners {
			continue
		}
		corners += len(c.Corners)
		var area []live.Point
		for _, v := range c.Corners {
			area = append(area, pointOf(v))
		}
		out.Cliffs = append(out.Cliffs, area)
	}
	for _, l := range m.Lines[:min(len(m.Lines), live.MaxLines)] {
		out.Lines = append(out.Lines, live.Line{From: pointOf(l.From), To: pointOf(l.To), Width: short(l.Wide())})
	}
	for _, o := range m.Objects[:min(len(m.Objects), live.MaxThings)] {
		s := live.Shape{Name: named(o.Name), Radius: short(o.Radius), Fixed: o.Fixed}
		if o.Radius == 0 {
			size := pointOf(o.Size)
			s.Size = &size
		}
		out.Shapes = append(out.Shapes, s)
	}
	if m.Charger != nil {
		at := placeOf(m.Charger.At)
		out.Charger = &at
	}
	out.Omitted = len(m.Walls) - len(out.Walls) + len(m.Cliffs) - len(out.Cliffs) + len(m.Lines) - len(out.Lines) + len(m.Objects) - len(out.Shapes)
	return out
}

// named is a name as it can be kept and shown: one that is too long is cut between two letters.
func named(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	if len(s) <= maxName {
		return s
	}
	n := maxName
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// short rounds to a tenth of a millimetre, or of a milliradian, which is all that a picture shows.
func short(v float64) float64 { return math.Round(v*1e4) / 1e4 }

func pointOf(v plane.Vec) live.Point  { return live.Point{short(v[0]), short(v[1])} }
func placeOf(p plane.Pose) live.Place { return live.Place{short(p[0]), short(p[1]), short(p[2])} }
