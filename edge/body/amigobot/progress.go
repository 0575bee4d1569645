package amigobot

import (
	"iter"
	"math"
	"time"

	"kennel/edge/body/amigobot/sip"
)

// An AmigoBot feels neither a hand nor the floor. Whether it makes progress is concluded from its reports: that its wheels turn from their
// encoders, that it moves from its sonars. The limits are own defaults. They end a drive without progress within 1 s, and take a soft carpet, a slow
// drive, a turn on the spot and an empty hall for none.
const (
	stuckAfter   = 700 * time.Millisecond // a wheel that does not turn as it is told is stuck; 1 s with the age of a packet and the way to the motors
	stuckWay     = 0.008                  // m, its way by then at least: a slow wheel takes time to overcome friction
	stuckShare   = 0.1                    // of that way; a wheel that turns less does not turn
	leastWay     = 0.001                  // m, twice the resolution of the odometry
	brakeAtLeast = 0.25                   // m/s² of a wheel, of the slowest robot

	nearest, farthestUsed = 0.15, 4.5 // m; other ranges are no echo: simulators report 5 m for none
	rangeShare            = 0.01      // of a range: a sonar's standard deviation (AMIGO-OPEN-16)
	rangeLeast            = 0.005     // m, the same at least
	sigmas                = 3         // deviations within which ranges are the same
	slopeLeast            = 0.5       // of the way: a fixed thing ahead comes nearer at least as fast
	slopeError            = 0.1       // standard error of that slope; one less exact says nothing
	straight              = 0.02      // rad; a robot that turns more may see the same range of another thing
	turnLeast             = 0.5       // rad in which the ranges of a room change
	beam                  = 15 * math.Pi / 180

	ring     = 700 * time.Millisecond // in which each sonar fires (see firing), and a packet
	doubtFor = 5 * time.Second        // no motion begins after the wheels turned and the ranges did not change
	blindFor = time.Minute            // the same after the sonars lost everything at once, unless they hear something again
)

// follow watches one wheel against its order.
type follow struct {
	told, is    float64       // m/s; is: in the newest packet
	asked, went float64       // m since it last made progress
	since       time.Duration // it last made progress, or began
	brakes      time.Duration // until then it may still run the other way
}

// tell notes a new order.
func (f *follow) tell(speed float64, now time.Duration) {
	if f.told == 0 {
		f.since = now
	}
	if f.told*speed <= 0 {
		f.asked, f.went, f.brakes = 0, 0, now+time.Duration(math.Abs(f.is)/brakeAtLeast*float64(time.Second))+ring
	}
	f.told = speed
}

// moved takes the way of the wheel in the last dt.
func (f *follow) moved(way float64, dt, now time.Duration) {
	f.is = way / dt.Seconds()
	f.asked += math.Abs(f.told) * dt.Seconds()
	f.went += math.Copysign(way, way*f.told)
	if f.went >= max(leastWay, stuckShare*f.asked) || f.went < -leastWay && now < f.brakes {
		f.asked, f.went, f.since = 0, 0, now
	}
}

// stuck reports whether the wheel was told to turn for too long without turning.
func (f *follow) stuck(now time.Duration) bool {
	return f.told != 0 && f.asked >= stuckWay && now-f.since >= stuckAfter
}

// reading is a range with the odometry of its time.
type reading struct {
	at        time.Duration
	r         float64 // m
	way, turn float64 // m ahead and rad counter-clockwise, in all
}

func (r *reading) echo() bool { return r.r > nearest && r.r < farthestUsed }

// grip watches the sonars against the odometry.
type grip struct {
	readings  [sip.Sonars][32]reading
	n         [sip.Sonars]int // readings so far
	from      time.Duration   // older ones do not count
	way, turn float64
}

// forget begins again with what comes after now.
func (g *grip) forget(now time.Duration) { g.n, g.from = [sip.Sonars]int{}, now }

// add takes the range of sonar i, if it is new.
func (g *grip) add(i int, r float64, at time.Duration) {
	if at <= g.from || g.n[i] > 0 && g.newest(i).at == at {
		return
	}
	g.readings[i][g.n[i]%len(g.readings[i])] = reading{at, r, g.way, g.turn}
	g.n[i]++
}

func (g *grip) newest(i int) *reading { return &g.readings[i][(g.n[i]-1)%len(g.readings[i])] }

// since returns the readings of sonar i from a time on, newest first.
func (g *grip) since(i int, from time.Duration) iter.Seq[*reading] {
	return func(yield func(*reading) bool) {
		for k := g.n[i] - 1; k >= max(0, g.n[i]-len(g.readings[i])); k-- {
			if r := &g.readings[i][k%len(g.readings[i])]; r.at < from || !yield(r) {
				return
			}
		}
	}
}

// hears returns the number of sonars with an echo.
func (g *grip) hears() (n int) {
	for i := range g.n {
		if g.n[i] > 0 && g.newest(i).echo() {
			n++
		}
	}
	return n
}

// blind reports whether the sonars lost all echoes at once, as they do high above the floor. A robot that leaves a corridor loses them one after
// the other; one that never had any, in a hall or in a hand, has nothing to conclude from.
func (g *grip) blind() bool {
	var last time.Duration // of an echo
	for i := range g.n {
		for r := range g.since(i, 0) {
			if r.echo() {
				last = max(last, r.at)
				break
			}
		}
	}
	lost := 0
	for i := range g.n {
		if g.n[i] == 0 || g.newest(i).at <= last {
			continue // it has not fired since
		}
		for r := range g.since(i, last-ring) {
			// The robot has not come too near to hear it (AMIGO-SON-03), nor turned away.
			if way := math.Abs(g.way - r.way); r.echo() && r.r > 0.2+1.5*way && way < 0.3 && math.Abs(g.turn-r.turn) < 0.35 {
				lost++
				break
			}
		}
	}
	return last > 0 && lost >= 5
}

// course is how the ranges of one sonar change with the way.
type course struct {
	n             int
	none, some    bool    // readings without an echo; readings with one, or too near for one
	r             float64 // m, mean
	ways, both    float64 // sums of the squares of the way's deviations, and of their products with those of the range
	noise         float64 // m, standard deviation
	still, steady bool    // the ranges are the same; they lie on a line
	turned        float64 // rad until now, at most
	between       float64 // rad between two readings, at most
}

// course returns the course of the readings of sonar i since a time.
func (g *grip) course(i int, from time.Duration) (c course) {
	way, left, right := 0.0, math.Inf(-1), math.Inf(1)
	for r := range g.since(i, from) {
		c.n++
		left, right = max(left, r.turn), min(right, r.turn)
		way, c.r = way+r.way, c.r+r.r
		c.none, c.some = c.none || !r.echo(), c.some || r.r < farthestUsed
		c.turned = max(c.turned, math.Abs(g.turn-r.turn))
	}
	way, c.r, c.between = way/float64(c.n), c.r/float64(c.n), left-right
	c.noise = max(rangeShare*c.r, rangeLeast)
	for r := range g.since(i, from) {
		c.ways += (r.way - way) * (r.way - way)
		c.both += (r.way - way) * (r.r - c.r)
	}
	c.still, c.steady = true, c.ways > 0
	for r := range g.since(i, from) {
		c.still = c.still && math.Abs(r.r-c.r) <= sigmas*c.noise
		c.steady = c.steady && math.Abs(r.r-c.r-c.both/c.ways*(r.way-way)) <= sigmas*c.noise
	}
	return c
}

// beside reports whether a rough wall along the way, which the sonar at that side hears, explains that the range of sonar i stays r.
func (g *grip) beside(i int, r float64) bool {
	side := 0
	if Sonars[i] < 0 {
		side = 5
	}
	if g.n[side] == 0 || !g.newest(side).echo() {
		return false
	}
	const out = 0.1 // m from the middle to the sonars at the sides
	return g.newest(side).r < 1.1*r*math.Sin(math.Abs(Sonars[i])*math.Pi/180+beam)+0.1*out
}

// spins reports whether the wheels turn without moving the robot: it went far enough by its odometry for the ranges ahead, or all of them in a turn,
// to change, and they did not. It looks back only as far as that takes.
func (g *grip) spins(now time.Duration) bool {
	for back := 750 * time.Millisecond; back < 6*time.Second; back += back / 2 {
		if known, spins := g.judge(now - back); known {
			return spins
		}
	}
	return false
}

// judge looks at the readings since a time. It reports whether they are enough to tell, and whether the wheels spin.
func (g *grip) judge(from time.Duration) (known, spins bool) {
	var heard, round, ahead int
	var weight, nearer, turned float64
	same := true
	for i := range g.n {
		c := g.course(i, from)
		switch {
		case c.n < 2:
			continue
		case c.none:
			same = same && !c.some
			turned = max(turned, c.turned)
			continue
		}
		heard++
		if c.between >= turnLeast {
			round++
		}
		same = same && c.still
		turned = max(turned, c.turned)
		slope := -c.both / c.ways // of what it comes nearer
		if math.Abs(Sonars[i]) > 90 {
			slope = -slope
		}
		exact := math.Sqrt(c.ways) / c.noise // 1 / standard error of the slope
		switch {
		case math.Abs(Sonars[i]) == 90: // a wall along the way
		case c.steady && slope > slopeLeast/2 && slope*exact > 4:
			return true, false // the robot moves
		case math.Abs(Sonars[i]) < 15 && c.still && math.Abs(slope) < slopeLeast/2 && !g.beside(i, c.r):
			ahead++
			weight += exact * exact
			nearer += exact * exact * slope
		}
	}
	switch {
	case round >= 3:
		return true, same
	case ahead == 2 && weight > 1/(slopeError*slopeError) && (turned < straight || same && heard >= 6):
		return true, nearer/weight < 0.4*slopeLeast
	}
	return false, false
}
