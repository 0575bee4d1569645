package camera

import (
	"hash/fnv"
	"math"

	"kennel/edge/marker"
	"kennel/edge/sim/plane"
)

// MarkerShare is a marker's edge, as a share of the shorter edge of the side that it is on; own default.
const MarkerShare = 0.86

// kind says how a surface is drawn.
type kind uint8

const (
	plain  kind = iota
	ground      // the floor: tiles with grain, cliffs
	panels      // a wall: panels with grain
	marked      // a plain surface with a marker in its middle
	person      // the outline of a person; what is beside it is transparent
)

// look is the surface of a face.
type look struct {
	kind       kind
	albedo     float64 // of the light, what it reflects: 0 to 1
	shade      float32 // of the light, what it gets: by where it faces
	wide, high float64 // m
	seed       uint32
	marker     *marker.Marker
	tint       tint
}

// tint is a colour: blue and red differences as a share of the brightness.
type tint [2]float32

// The colours.
var (
	white   = tint{}
	wood    = tint{-0.10, 0.07}
	skin    = tint{-0.14, 0.16}
	haze    = tint{0.03, -0.02}
	hueOf   = []tint{{0.30, -0.12}, {-0.16, 0.34}, {-0.22, -0.16}, {-0.30, 0.08}, {0.16, 0.14}}
	clothes = []tint{{0.22, -0.10}, {-0.08, 0.26}, {-0.16, -0.14}}
)

// floorAlbedo is the light that an ordinary floor reflects (own default, as all numbers of this file).
const floorAlbedo = 0.42

// Sizes of what is drawn, in metres, or as shares.
const (
	tile        = 0.10
	grain       = 0.004
	panel       = 0.25
	joint       = 0.003 // between tiles and panels
	personWidth = 0.30  // of the height
)

// lookOf returns the surface of a thing: white with its marker, or in a colour that its name decides.
func lookOf(o *plane.Object) look {
	if o.Marker != "" {
		return look{kind: marked, albedo: 0.8, marker: marker.Named(o.Marker)}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.Name)) // it never fails
	return look{albedo: 0.35, tint: hueOf[h.Sum32()%uint32(len(hueOf))]}
}

// hash is a number of 0 to 1 for a cell.
func hash(x, y int32, seed uint32) float32 {
	h := uint32(x)*0x9e3779b1 ^ uint32(y)*0x85ebca6b ^ seed*0xc2b2ae35
	h ^= h >> 15
	h *= 0x2c1b3c6d
	h ^= h >> 12
	return float32(h>>8) * (1.0 / (1 << 24))
}

func floor32(v float64) int32 {
	i := int32(v)
	if v < float64(i) {
		i--
	}
	return i
}

// texture is how bright a place is, in cells of one size with joints between them and grain, around 1. far is its distance: details
// smaller than a pixel are left out.
func texture(a, b, size, far float64, seed uint32) float32 {
	ca, cb := a/size, b/size
	ia, ib := floor32(ca), floor32(cb)
	light := 0.88 + 0.24*hash(ia, ib, seed)
	if far < 1.5 {
		da, db := (ca-float64(ia))*size, (cb-float64(ib))*size
		if da < joint || db < joint {
			return 0.7 * light
		}
	}
	if far < 0.8 {
		light *= 0.95 + 0.1*hash(floor32(a*(1/grain)), floor32(b*(1/grain)), seed+1)
	}
	return light
}

// at returns what a place of a surface reflects, and in which colour. a and b are its coordinates in metres, far its distance.
func (l *look) at(a, b, far float64) (float32, tint) {
	light := float32(l.albedo) * l.shade
	switch l.kind {
	case panels:
		if b < 0.02 && l.high > 0.1 { // skirting board
			return 0.5 * light, wood
		}
		return light * texture(a, b, panel, far, l.seed), white
	case marked:
		return light * brightness(l.marker, a, b, l.wide, l.high), white
	case person:
		return l.body(a, b, light)
	}
	return light, l.tint
}

// outside reports whether a place of a face is beside the outline of a person.
func (l *look) outside(a, b float64) bool {
	x, y := a/l.wide-0.5, b/l.high
	switch {
	case y > 0.87: // the head
		dx, dy := x/0.22, (y-0.935)/0.065
		return dx*dx+dy*dy > 1
	case y > 0.83:
		return math.Abs(x) > 0.12
	case y > 0.45: // arms and trunk
		return math.Abs(x) > 0.5-0.6*max(0, y-0.78)
	case y > 0.03:
		return math.Abs(x) > 0.28 || math.Abs(x) < 0.03
	}
	return math.Abs(x) > 0.34
}

// body is a place on a person: head with eyes, mouth and hair, clothes.
func (l *look) body(a, b float64, light float32) (float32, tint) {
	x, y := a/l.wide-0.5, b/l.high
	cloth := clothes[l.seed%uint32(len(clothes))]
	switch {
	case y > 0.965:
		return 0.3 * light, wood
	case y > 0.83:
		eye := math.Abs(math.Abs(x)-0.08) < 0.03 && math.Abs(y-0.94) < 0.006
		mouth := math.Abs(x) < 0.08 && math.Abs(y-0.905) < 0.004
		if eye || mouth {
			return 0.25 * light, skin
		}
		return 1.1 * light, skin
	case y > 0.45:
		return 0.8 * light, cloth
	}
	return 0.35 * light, haze
}

// brightness returns how bright a place on a side is, which has the marker in its middle.
func brightness(m *marker.Marker, a, b, wide, high float64) float32 {
	edge := MarkerShare * min(wide, high)
	x, y := (a-wide/2)/edge+0.5, (b-high/2)/edge+0.5
	if x < 0 || x >= 1 || y < 0 || y >= 1 || !m[int(y*marker.Cells)][int(x*marker.Cells)] {
		return 1
	}
	return 0.06
}
