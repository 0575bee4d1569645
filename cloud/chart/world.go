package chart

import (
	"html/template"
	"math"
	"strings"
	"unicode/utf8"

	"kennel/infra/api/live"
)

// World is where a simulated robot is, from above: all of its world, and a close-up, in which a millimetre between where it is and where it
// believes to be can be seen. North, the world's Y, is up. Unlike other charts it has a text of its own: Title and Text say what there is to see.
//
// What is drawn was said by a robot: numbers that are none, or that a picture has no room for, are left out.
type World struct {
	live.World
	Rays   []Ray
	Belief *live.Place // where it believes to be; nil: it does not say
	Title  string
	Text   string
}

// Ray is one distance reading, in the direction that its sensor faces.
type Ray struct {
	Bearing float64 // rad counter-clockwise from the front
	Range   float64 // m from the sensor; 0: nothing in sight
}

// Side is the robot from its left side, as its head and lift are; nil: not known.
type Side struct {
	Head *float64 // rad, nose down
	Lift *float64 // m above the floor
}

// The size of a drawing in its own units, in which it is wide texts are a fixed size.
const (
	wide       = 1000.0
	leastTall  = 0.5 // of wide
	mostTall   = 0.75
	ruleTall   = 0.05 // of wide, below the view: room for its scale
	leastView  = 1.2  // m; closer, an empty world would look crowded
	mostView   = 6.0  // m; a larger world is shown as far as that round the robot
	closeUp    = 0.32 // m, at least
	closeness  = 3.2  // lengths of the robot in a close-up
	blindRay   = 0.5  // m of a ray with nothing in sight
	inside     = 0.75 // of the way to the outline, where a sensor is that looks aside
	aroundEdge = 1.0  // m: what an area without floor has nearer to something else is part of the picture
	mostLines  = 80   // of a grid
)

// view is the part of the plane that is drawn.
type view struct {
	id            string
	west, north   float64 // m
	width, height float64 // m
	each          float64 // units per metre
	grid          float64 // m
	close         bool
}

func (v *view) x(x float64) float64    { return (x - v.west) * v.each }
func (v *view) y(y float64) float64    { return (v.north - y) * v.each }
func (v *view) at(p live.Point) string { return coord(v.x(p[0])) + " " + coord(v.y(p[1])) }
func (v *view) tall() float64          { return v.height * v.each }

// coord is a coordinate of a drawing; what would be out of every picture is at its far edge.
func coord(f float64) string { return short(min(max(f, -1e5), 1e5)) }

// bounds grows with what it is told.
type bounds struct {
	low, high live.Point
	any       bool
}

func (b *bounds) add(ps ...live.Point) {
	for _, p := range ps {
		if !b.any {
			b.low, b.high, b.any = p, p, true
			continue
		}
		for i := range p {
			b.low[i], b.high[i] = min(b.low[i], p[i]), max(b.high[i], p[i])
		}
	}
}

// all is the view of the whole world, or of what is round the robot where that is too much. It moves in steps, so that it does not move while the
// robot moves a little.
func (w *World) all() view {
	var b bounds
	if m := w.Map; m != nil {
		for _, x := range m.Walls {
			b.add(x.From, x.To)
		}
		for _, t := range w.Things {
			if !t.Gone {
				b.add(t.At.Point())
			}
		}
		if m.Charger != nil {
			b.add(m.Charger.Point())
		}
		if len(m.Walls) == 0 {
			b.add(live.Point{})
		}
		near := b
		for _, c := range m.Cliffs {
			for _, p := range c {
				if near.any && p[0] > near.low[0]-aroundEdge && p[0] < near.high[0]+aroundEdge && p[1] > near.low[1]-aroundEdge && p[1] < near.high[1]+aroundEdge {
					b.add(p)
				}
			}
		}
	}
	fixed := b
	b.add(w.Pose.Point())
	middle := live.Point{(b.low[0] + b.high[0]) / 2, (b.low[1] + b.high[1]) / 2}
	size := live.Point{b.high[0] - b.low[0], b.high[1] - b.low[1]}
	if m := w.Map; m != nil && len(m.Walls)+len(m.Cliffs) > 0 && b.low == fixed.low && b.high == fixed.high {
		size[0], size[1] = size[0]*1.1+0.1, size[1]*1.1+0.1
	} else { // it left what there is, or there is nothing
		for i := range size {
			size[i] = math.Ceil((size[i]+0.8)*2) / 2
			middle[i] = math.Round(middle[i]*4) / 4
		}
	}
	if size[0] > mostView || size[1] > mostView {
		size = live.Point{min(size[0], mostView), min(size[1], mostView)}
		middle = live.Point{math.Round(w.Pose[0]), math.Round(w.Pose[1])}
	}
	width := max(size[0], leastView, size[1]/mostTall)
	height := min(max(size[1], width*leastTall), width*mostTall)
	v := view{id: "all", west: middle[0] - width/2, north: middle[1] + height/2, width: width, height: height + width*ruleTall, each: wide / width, grid: 0.5}
	if width <= 2.5 {
		v.grid = 0.1
	}
	return v
}

// near is the close-up, which moves with the robot in steps.
func (w *World) near() view {
	b := w.body()
	width, grid := max(closeUp, closeness*(b.Nose+b.Tail)), 0.02
	if width > 2*closeUp {
		grid = 0.1
	}
	step := width / 4
	x, y := math.Round(w.Pose[0]/step)*step, math.Round(w.Pose[1]/step)*step
	return view{id: "near", west: x - width/2, north: y + width*mostTall/2, width: width, height: width * mostTall, each: wide / width,
		grid: grid, close: true}
}

// All draws the whole world.
func (w World) All() template.HTML { return w.draw(w.all()) }

// Near draws the close-up; it is for eyes alone, which see the same in All.
func (w World) Near() template.HTML { return w.draw(w.near()) }

func (w *World) draw(v view) template.HTML {
	var p pen
	p.put(`<svg class="plan`)
	if v.close {
		p.put(` near" aria-hidden="true`)
	} else {
		p.put(`" role="img" aria-labelledby="plan-title plan-text`)
	}
	p.put(`" viewBox="0 0 `, short(wide), ` `, coord(v.tall()), `">`)
	if !v.close {
		p.put(`<title id="plan-title">`).text(w.Title).put(`</title><desc id="plan-text">`).text(w.Text).put(`</desc>`)
	}
	p.put(`<defs><pattern id="void-`, v.id, `" width="14" height="14" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="void" width="14" height="14"/><path class="void-line" d="M0 0V14"/></pattern></defs>`)
	p.put(`<rect class="floor" width="100%" height="100%"/>`)
	w.lines(&p, v)
	if w.Map != nil {
		w.place(&p, v)
	}
	w.trail(&p, v)
	if w.Belief != nil {
		p.put(`<g class="ghost"`).pose(v, *w.Belief, "ghost").put(`>`)
		w.outline(&p, v)
		p.put(`</g>`)
	}
	w.robot(&p, v)
	w.scale(&p, v)
	return p.put(`</svg>`).HTML()
}

// lines is the grid.
func (w *World) lines(p *pen, v view) {
	if v.width/v.grid > mostLines {
		return
	}
	p.put(`<path class="grid" d="`)
	for i := math.Ceil(v.west / v.grid); i*v.grid < v.west+v.width; i++ {
		p.put(`M`, coord(v.x(i*v.grid)), ` 0V`, coord(v.tall()))
	}
	for i := math.Ceil((v.north - v.height) / v.grid); i*v.grid < v.north; i++ {
		p.put(`M0 `, coord(v.y(i*v.grid)), `H`, short(wide))
	}
	p.put(`"/>`)
}

// place is the part of the world that the map shows.
func (w *World) place(p *pen, v view) {
	for _, l := range w.Map.Lines {
		p.put(`<path class="paint" stroke-width="`, coord(l.Width*v.each), `" d="`).way(v, l.From, l.To).put(`"/>`)
	}
	if len(w.Map.Cliffs) > 0 { // all areas at once, above their edges: where two touch there is none
		var d pen
		for _, c := range w.Map.Cliffs {
			d.way(v, c...)
			if len(c) > 0 {
				d.put(`Z`)
			}
		}
		p.put(`<path class="edge" d="`, d.String(), `"/><path fill="url(#void-`, v.id, `)" d="`, d.String(), `"/>`)
	}
	if at := w.Map.Charger; at != nil {
		half := w.Map.Body.Width/2 + 0.005
		p.put(`<g class="charger"`).pose(v, *at, "").put(`><path class="mat" d="M0 `, coord(-half*v.each), `H`, coord(0.075*v.each), `V`, coord(half*v.each), `H0Z"/><path class="rails" d="M`,
			coord(0.06*v.each), ` `, coord(-half*v.each), `H0V`, coord(half*v.each), `H`, coord(0.06*v.each), `"/></g>`)
		w.label(p, v, at.Point(), half*v.each, "charger")
	}
	for _, x := range w.Map.Walls {
		p.put(`<path class="wall" d="`).way(v, x.From, x.To).put(`"/>`)
	}
	for i, t := range w.Things[:min(len(w.Things), len(w.Map.Shapes))] {
		if t.Gone {
			continue
		}
		s := w.Map.Shapes[i]
		kind := "thing"
		if s.Fixed {
			kind = "thing fixed"
		}
		p.put(`<g class="`, kind, `"`).pose(v, t.At, "thing"+short(float64(i))).put(`>`)
		half := s.Radius * v.each
		if s.Size == nil {
			p.put(`<circle r="`, coord(half), `"/>`)
		} else {
			x, y := s.Size[0]*v.each, s.Size[1]*v.each
			half = math.Hypot(x, y) / 2
			p.put(`<rect x="`, coord(-x/2), `" y="`, coord(-y/2), `" width="`, coord(x), `" height="`, coord(y), `" rx="`, coord(min(x, y)/8), `"/>`)
		}
		p.put(`</g>`)
		w.label(p, v, t.At.Point(), half, s.Name)
	}
}

// label writes a name above what is so large, or below it where there is no room.
func (w *World) label(p *pen, v view, at live.Point, half float64, name string) {
	x, y := v.x(at[0]), v.y(at[1])-half-10
	if name == "" || v.close || x < 0 || x > wide || y < -half || y > v.tall() {
		return
	}
	if y < 30 {
		y += 2*half + 44
	}
	if utf8.RuneCountInString(name) > 16 {
		name = strings.TrimSpace(string([]rune(name)[:15])) + "…"
	}
	anchor := "middle"
	if x < 90 {
		anchor = "start"
	} else if x > wide-90 {
		anchor = "end"
	}
	p.put(`<text class="name" text-anchor="`, anchor, `" x="`, coord(min(max(x, 12), wide-12)), `" y="`, coord(y), `">`).text(name).put(`</text>`)
}

// trail is where it was. Its end is where it is.
func (w *World) trail(p *pen, v view) {
	if len(w.Trail) < 2 {
		return
	}
	// Three parts, the older the fainter, each from where the one before ends.
	n := len(w.Trail)
	for i, part := range [...]string{"old", "late", "new"} {
		from, to := i*(n-1)/3, (i+1)*(n-1)/3
		if from < to {
			p.put(`<path class="trail `, part, `" d="M`, v.at(w.Trail[from]))
			for k := from; k < to; k++ {
				p.bend(v, w.Trail[max(k-1, 0)], w.Trail[k], w.Trail[k+1], w.Trail[min(k+2, n-1)])
			}
			p.put(`"/>`)
		}
	}
}

// bend goes from b to c, on a way from a to d that is round (Catmull and Rom).
func (p *pen) bend(v view, a, b, c, d live.Point) {
	p.put(`C`, v.at(live.Point{b[0] + (c[0]-a[0])/6, b[1] + (c[1]-a[1])/6}), ` `, v.at(live.Point{c[0] - (d[0]-b[0])/6, c[1] - (d[1]-b[1])/6}), ` `, v.at(c))
}

// body is the outline that the map gives, or one that can be seen.
func (w *World) body() shape {
	if m := w.Map; m != nil && m.Body.Nose+m.Body.Tail > 0.01 && m.Body.Width > 0.01 && m.Body.Nose+m.Body.Tail < 2 && m.Body.Width < 2 {
		return shape{m.Body}
	}
	return shape{live.Body{Nose: 0.045, Tail: 0.055, Width: 0.06}}
}

// shape is the outline of a robot.
type shape struct{ live.Body }

// round reports whether the robot is a disc.
func (s shape) round() bool { return s.Nose == s.Tail && s.Nose == s.Width/2 }

func (w *World) outline(p *pen, v view) {
	b, u := w.body(), v.each
	round := b.Width / 3
	if b.round() {
		round = b.Width / 2
	}
	p.put(`<rect x="`, coord(-b.Tail*u), `" y="`, coord(-b.Width/2*u), `" width="`, coord((b.Nose+b.Tail)*u), `" height="`, coord(b.Width*u),
		`" rx="`, coord(round*u), `"/>`)
	p.put(`<path d="M`, coord((b.Nose-b.Width*0.3)*u), ` `, coord(-b.Width*0.22*u), `L`, coord((b.Nose-b.Width*0.08)*u), ` 0L`, coord((b.Nose-b.Width*0.3)*u), ` `, coord(b.Width*0.22*u), `"/>`)
}

// robot is the robot with what it sees, looking east, turned to where it looks.
func (w *World) robot(p *pen, v view) {
	b, u := w.body(), v.each
	kind := "robot"
	switch {
	case w.Below || strings.HasPrefix(w.Posture, "on its"), w.Posture == "falling":
		kind = "robot fallen"
	case w.Posture != "" && w.Posture != "on treads":
		kind = "robot lifted"
	}
	p.put(`<g class="`, kind, `"`).pose(v, w.Pose, "robot").put(`>`)
	if kind != "robot fallen" && b.Sight > 0 {
		x, y := b.Finder[0]*u, -b.Finder[1]*u
		if w.Range > 0 {
			end := coord(x + w.Range*u)
			p.put(`<path class="beam" d="M`, coord(x), ` `, coord(y), `H`, end, `"/><circle class="hit" cx="`, end, `" cy="`, coord(y), `" r="`, short(beamEnd(v)), `"/>`)
		} else {
			p.put(`<path class="beam none" d="M`, coord(x), ` `, coord(y), `H`, coord(x+b.Sight*u), `"/>`)
		}
	}
	if !v.close {
		// As small as it is there, it is hard to find.
		r := max(1.1*b.Nose*u, 30)
		p.put(`<circle class="halo" r="`, coord(r), `"/><path class="nose" d="M`, coord(r+4), ` -8L`, coord(r+28), ` 0L`, coord(r+4), ` 8Z"/>`)
	}
	w.rays(p, v)
	long, half := b.Nose+b.Tail, b.Width/2
	box := func(class string, x, y, width, height, round float64) {
		p.put(`<rect class="`, class, `" x="`, coord(x*u), `" y="`, coord(y*u), `" width="`, coord(width*u), `" height="`, coord(height*u), `" rx="`, coord(round*u), `"/>`)
	}
	if b.round() {
		p.put(`<circle class="trunk" r="`, coord(b.Nose*u), `"/>`)
		box("tread", -0.25*half, -0.95*half, 0.5*half, 0.16*half, 0.05*half)
		box("tread", -0.25*half, 0.79*half, 0.5*half, 0.16*half, 0.05*half)
		back, side := coord(0.45*half*u), 0.3*half*u
		p.put(`<path class="nose" d="M`, back, ` `, coord(-side), `L`, coord(0.85*half*u), ` 0L`, back, ` `, coord(side), `Z"/></g>`)
		return
	}
	tread := 0.26 * half * 2
	box("tread", -b.Tail+0.06*long, -half, 0.84*long, tread, tread/3)
	box("tread", -b.Tail+0.06*long, half-tread, 0.84*long, tread, tread/3)
	box("trunk", -b.Tail, -0.6*half, 0.9*long, 1.2*half, 0.3*half)
	box("head", b.Nose-0.52*long, -0.72*half, 0.44*long, 1.44*half, 0.3*half)
	box("visor", b.Nose-0.19*long, -0.56*half, 0.1*long, 1.12*half, 0.05*long)
	if v.close {
		box("eye", b.Nose-0.17*long, -0.4*half, 0.055*long, 0.26*half, 0.02*long)
		box("eye", b.Nose-0.17*long, 0.14*half, 0.055*long, 0.26*half, 0.02*long)
		box("fork", b.Nose-0.05*long, -0.85*half, 0.05*long, 1.7*half, 0.02*long)
		for i, c := range b.Cliffs {
			sees := "sees"
			if i < len(w.NoFloor) && w.NoFloor[i] {
				sees = "void-seen"
			}
			p.put(`<circle class="cliff `, sees, `" cx="`, coord(c[0]*u), `" cy="`, coord(-c[1]*u), `" r="16"/>`)
		}
	}
	p.put(`</g>`)
}

// rays draws what the sensors see that look aside.
func (w *World) rays(p *pen, v view) {
	b := w.body()
	for _, ray := range w.Rays {
		sin, cos := math.Sincos(ray.Bearing)
		from := b.Nose
		if !b.round() {
			from = min(b.Nose/max(math.Abs(cos), 1e-9), b.Width/2/max(math.Abs(sin), 1e-9))
		}
		from *= inside
		kind, to := "beam", from+ray.Range
		if !(ray.Range > 0) {
			kind, to = "beam none", from+blindRay
		}
		at := func(far float64) string { return coord(far*cos*v.each) + " " + coord(0-far*sin*v.each) }
		p.put(`<path class="`, kind, `" d="M`, at(from), `L`, at(to), `"/>`)
		if ray.Range > 0 {
			p.put(`<circle class="hit" cx="`, coord(to*cos*v.each), `" cy="`, coord(0-to*sin*v.each), `" r="`, short(beamEnd(v)), `"/>`)
		}
	}
}

func beamEnd(v view) float64 {
	if v.close {
		return 12
	}
	return 7
}

// scale says how long a metre is.
func (w *World) scale(p *pen, v view) {
	long, text := 0.5, "0.5 m"
	switch {
	case v.width < 2*closeUp:
		long, text = 0.05, "5 cm"
	case v.width <= 2.5:
		long, text = 0.2, "0.2 m"
	}
	y := v.tall() - 22
	p.put(`<path class="rule" d="M24 `, coord(y-8), `v8h`, coord(long*v.each), `v-8"/><text class="name" x="`, coord(34+long*v.each), `" y="`, coord(y+4), `">`).text(text).put(`</text>`)
}

// way goes from point to point.
func (p *pen) way(v view, ps ...live.Point) *pen {
	for i, at := range ps {
		if i == 0 {
			p.put(`M`)
		} else {
			p.put(`L`)
		}
		p.put(v.at(at))
	}
	return p
}

// pose moves what is drawn round the origin, looking east, to a place. What has a name glides there from where it was (app.js), as long as the
// view is the same.
func (p *pen) pose(v view, at live.Place, name string) *pen {
	x, y, turn := coord(v.x(at[0])), coord(v.y(at[1])), short(math.Mod(-at[2]*180/math.Pi, 360))
	p.put(` transform="translate(`, x, ` `, y, `) rotate(`, turn, `)"`)
	if name != "" {
		p.put(` data-glide="`, v.id, `-`, name, `" data-view="`, coord(v.west*1000), ` `, coord(v.north*1000), ` `, coord(v.each), `" data-at="`, x, ` `, y, ` `, turn, `"`)
	}
	return p
}

// HTML draws the robot's posture; the page shows the same in numbers beside it. Proportions are Vector's, in millimetres.
func (s Side) HTML() template.HTML {
	const joint, arm, floor = 45.0, 66.0, 104.0
	var p pen
	p.put(`<svg class="plan side" aria-hidden="true" viewBox="-76 0 152 114"><rect class="floor" x="-76" width="152" height="114"/><path class="ground" d="M-76 `, short(floor), `H76"/>`)
	p.put(`<g class="robot"><rect class="trunk" x="-52" y="`, short(floor-54), `" width="62" height="36" rx="10"/>`)
	if s.Head != nil {
		p.put(`<g transform="translate(4 `, short(floor-50), `) rotate(`, short(min(max(*s.Head, -2), 2)*180/math.Pi),
			`)"><rect class="head" x="-12" y="-22" width="46" height="34" rx="10"/><rect class="visor" x="29" y="-18" width="7" height="26" rx="3"/><rect class="eye" x="31" y="-12" width="4" height="10" rx="2"/></g>`)
	}
	p.put(`<rect class="tread" x="-46" y="`, short(floor-29), `" width="88" height="29" rx="14"/><circle class="wheel" cx="-31" cy="`, short(floor-14), `" r="8"/><circle class="wheel" cx="27" cy="`, short(floor-14), `" r="8"/>`)
	if s.Lift != nil {
		h := min(max(*s.Lift*1000, joint-arm), joint+arm)
		x := -14 + math.Sqrt(arm*arm-(h-joint)*(h-joint))
		p.put(`<path class="arm" d="M-14 `, short(floor-joint), `L`, short(x), ` `, short(floor-h), `"/><path class="fork" d="M`, short(x), ` `, short(floor-h-9), `V`, short(min(floor-h+22, floor-2)), `h7"/>`)
	}
	return p.put(`</g></svg>`).HTML()
}
