package camera

import (
	"image"
	"math"

	"kennel/edge/sim/plane"
)

// Camera draws pictures of one size. It serves one goroutine.
type Camera struct {
	lens  Lens
	m     *plane.Map
	seed  uint64
	still []face

	faces []face
	floor face
	depth []float32 // of a row: 1/w of the nearest face
	seen  []int32   // of a row: its index, or sky, or land
	light []float32 // of all pixels
	tints []tint    // of every second pixel of every second row
}

// The pixels that see no face.
const (
	sky  = -1
	land = -2
)

// The room beyond the map, of the light (own default).
const beyond = 0.45

// New returns a camera in the world of m, for a robot of that width, with a noise that seed decides. Width and height of its pictures are even.
func New(l Lens, m *plane.Map, width float64, seed uint64) *Camera {
	c := &Camera{lens: l, m: m, seed: seed, still: still(m, width), depth: make([]float32, l.Width), seen: make([]int32, l.Width),
		light: make([]float32, l.Width*l.Height), tints: make([]tint, (l.Width/2)*(l.Height/2))}
	c.floor = face{u: vec{1, 0, 0}, v: vec{0, 1, 0}, look: look{kind: ground, albedo: floorAlbedo}}
	c.floor.look.shade = slope(vec{0, 0, 1})
	if m.Floor != 0 {
		c.floor.look.albedo *= m.Floor
	}
	return c
}

// Take draws what is seen of a world in a state into img, a picture of the lens' size with half the colours each way, and returns the exposure that
// it was taken with. number is of the picture: it decides the noise, with the seed.
func (c *Camera) Take(img *image.YCbCr, v View, s *plane.State, e Exposure, number uint64) Exposure {
	c.faces = c.faces[:0]
	add := func(all []face) {
		for i := range all {
			if f := &all[i]; f.place(&v, &c.lens) {
				c.faces = append(c.faces, *f)
			}
		}
	}
	add(c.still)
	add(moved(nil, c.m, s, &v))
	hasFloor := v.At[2] > 0 && c.floor.place(&v, &c.lens)
	lit := float32(1)
	if c.m.Light != 0 {
		lit = float32(c.m.Light)
	}
	for y := range c.lens.Height {
		c.look(y, hasFloor)
		c.shade(y, &v, lit)
	}
	if e.Time == 0 {
		e = c.meter()
	}
	c.develop(img, e, number)
	return e
}

// look finds which face each pixel of a row sees.
func (c *Camera) look(y int, hasFloor bool) {
	for x := range c.seen {
		c.seen[x], c.depth[x] = sky, 1.0/farthest
	}
	if hasFloor {
		r := c.floor.inv[2]
		from, step := r[1]*(float64(y)+0.5)+r[2]+r[0]*0.5, r[0]
		for x := range c.seen {
			if w := float32(from + step*float64(x)); w > c.depth[x] {
				c.seen[x], c.depth[x] = land, w
			}
		}
	}
	for i := range c.faces {
		f := &c.faces[i]
		if float64(y)+0.5 < f.top || float64(y)+0.5 > f.bottom {
			continue
		}
		from, to := f.span(y, c.lens.Width)
		r := &f.inv[2]
		w, step := r[1]*(float64(y)+0.5)+r[2]+r[0]*(float64(from)+0.5), r[0]
		for x := from; x < to; x++ {
			if d := float32(w); d > c.depth[x] && (f.look.kind != person || !c.beside(f, x, y)) {
				c.seen[x], c.depth[x] = int32(i), d
			}
			w += step
		}
	}
}

// beside reports whether a pixel passes beside the outline on a face.
func (c *Camera) beside(f *face, x, y int) bool {
	a, b, _ := f.on(x, y)
	return f.look.outside(a, b)
}

// on returns which place of f a pixel sees, in metres, and how far it is.
func (f *face) on(x, y int) (a, b, far float64) {
	px, py := float64(x)+0.5, float64(y)+0.5
	m := &f.inv
	far = 1 / (m[2][0]*px + m[2][1]*py + m[2][2])
	return (m[0][0]*px + m[0][1]*py + m[0][2]) * far, (m[1][0]*px + m[1][1]*py + m[1][2]) * far, far
}

// shade computes the light of a row, run by run of one face.
func (c *Camera) shade(y int, v *View, lit float32) {
	row := c.light[y*c.lens.Width:][:c.lens.Width]
	half := c.tints[y/2*(c.lens.Width/2):]
	for x, i := range c.seen {
		var light float32
		var t tint
		switch i {
		case sky:
			light, t = beyond, haze
		case land:
			a, b, far := c.floor.on(x, y)
			light, t = c.ground(a, b, far, v)
		default:
			f := &c.faces[i]
			if l := &f.look; l.kind == plain {
				light, t = float32(l.albedo)*l.shade, l.tint
			} else {
				light, t = l.at(f.on(x, y))
			}
		}
		row[x] = light * lit
		if x&1 == 0 && y&1 == 0 {
			half[x/2] = t
		}
	}
}

// ground is a place of the floor; over a cliff it is the one below, as seen from the camera.
func (c *Camera) ground(a, b, far float64, v *View) (float32, tint) {
	l := &c.floor.look
	light := float32(l.albedo) * l.shade
	for i := range c.m.Cliffs {
		if k := &c.m.Cliffs[i]; k.Holds(plane.Vec{a, b}) {
			deeper := (v.At[2] + k.Deep()) / v.At[2]
			a, b, far = v.At[0]+(a-v.At[0])*deeper, v.At[1]+(b-v.At[1])*deeper, far*deeper
			light *= 0.5
			break
		}
	}
	if far > farthest/2 { // haze
		share := float32(min(far/(farthest/2)-1, 1))
		return light*(1-share) + beyond*share, haze
	}
	return light * texture(a, b, tile, far, 7), wood
}

// even returns n, or the even number above it.
func even(n int) int { return n + n&1 }

// Blank returns an empty picture of the lens' size.
func (c *Camera) Blank() *image.YCbCr {
	return image.NewYCbCr(image.Rect(0, 0, even(c.lens.Width), even(c.lens.Height)), image.YCbCrSubsampleRatio420)
}

// Lens returns the camera's.
func (c *Camera) Lens() Lens { return c.lens }

// level is the level of light at a share of all pixels, of a sample of them, by a histogram in steps of 1/32 of a factor of two.
func (c *Camera) level(share float64) float64 {
	const perStop, stops = 32, 24
	var count [perStop * stops]int
	n := 0
	for y := c.lens.Height / 16; y < c.lens.Height; y += 8 {
		for x := 4; x < c.lens.Width; x += 8 {
			l := math.Log2(max(float64(c.light[y*c.lens.Width+x]), 1e-9)) + 16
			count[int(min(max(l*perStop, 0), perStop*stops-1))]++
			n++
		}
	}
	for i, left := 0, int(share*float64(n)); i < len(count); i++ {
		if left -= count[i]; left < 0 {
			return math.Exp2(float64(i)/perStop - 16)
		}
	}
	return 1
}
