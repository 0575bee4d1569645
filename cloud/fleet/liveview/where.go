package liveview

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"kennel/infra/api/live"
)

// Belief is where a simulated robot believes to be, in the world, and how far from where it is that is: metres and radians. It is false for a
// robot that says nothing of its motion, or has no world.
func (r Robot) Belief() (at live.Place, off, turned float64, ok bool) {
	if r.World == nil || r.Motion == nil {
		return at, 0, 0, false
	}
	w := r.World
	at = w.Origin.At(live.Place{r.Motion.X, r.Motion.Y, r.Motion.Theta})
	return at, apart(at.Point(), w.Pose.Point()), math.Remainder(at[2]-w.Pose[2], 2*math.Pi), true
}

// Where says in words where a simulated robot is, such as "0.42 m from the charger, facing east"; "" without a world. North is up, which is the
// world's Y. It is coarser while the robot moves, so that who hears it is not told every step.
func (r Robot) Where() string {
	w := r.World
	if w == nil {
		return ""
	}
	if w.Below {
		return "fallen, " + words(w.Posture)
	}
	grain := 0.01
	if r.Motion != nil && r.Motion.Moving {
		grain = 0.1
	}
	here := w.Pose.Point()
	var what string
	to := here
	switch m := w.Map; {
	case w.Contact:
	case m != nil && m.Charger != nil:
		what, to = "the charger", m.Charger.Point()
	default:
		what, to = "where it began", w.Origin.Point()
		best := math.Inf(1)
		for i, t := range w.Things {
			if d := apart(here, t.At.Point()); !t.Gone && d < best && m != nil && i < len(m.Shapes) {
				best, what, to = d, "the "+cmp.Or(m.Shapes[i].Name, "nearest thing"), t.At.Point()
			}
		}
	}
	out := "on the charger"
	if !w.Contact {
		out = fmt.Sprintf("%s from %s", metres(apart(here, to), grain), what)
	}
	out += ", facing " + facing(w.Pose[2])
	if w.Posture != onTreads {
		out += ", " + words(w.Posture)
	}
	if w.Blocked {
		out += ", blocked"
	}
	return out
}

// onTreads is the attitude of an undisturbed robot (edge/sim/plane).
const onTreads = "on treads"

func words(posture string) string { return cmp.Or(posture, "in an unknown posture") }

func apart(a, b live.Point) float64 { return math.Hypot(a[0]-b[0], a[1]-b[1]) }

func metres(d, grain float64) string {
	places := 2
	if grain >= 0.1 {
		places = 1
	}
	return strings.TrimPrefix(fmt.Sprintf("%.*f m", places, d), "-")
}

// facing names the nearest of eight directions.
func facing(theta float64) string {
	names := [...]string{"east", "north-east", "north", "north-west", "west", "south-west", "south", "south-east"}
	i := int(math.Round(theta/(math.Pi/4))) % len(names)
	return names[(i+len(names))%len(names)]
}
