// Package face draws a robot's eyes: two rounded, glowing rectangles with lids, from about fifty parameters, on a display of 184 by 96 pixels.
//
//	Params ──Mix (between keyframes)──► Params ──Add (blinks, glances)──► Params ──Draw──► Picture ──► display, PNG, GIF
//
// An eye is a rectangle with four round corners. A lid hides it from above or from below, with an edge that slopes and bends. Inside, the light falls off from
// the hot spot, the place of a pupil; outside, a glow surrounds it (VEC-FCE-03, 05). Every value moves in a straight line between two keyframes.
//
// The sources leave open, and this package decides: sizes are pixels of the display; y points down and angles turn clockwise, as a person sees the display;
// the left eye is the one at the left of the picture; angles of lids are not mirrored between the eyes of a file, while corner radii are, because inner and
// outer are named by the nose.
//
// Drawing allocates nothing. A Drawer belongs to one goroutine.
package face

import (
	"image"
	"image/color"
	"math"
)

// The size of the display in pixels (part of VEC-HW-09).
const (
	Width  = 184
	Height = 96
)

// Style are the looks that clips cannot change; our own defaults.
type Style struct {
	EyeWidth, EyeHeight float32 // pixels, of an eye with scale 1
	Distance            float32 // pixels, between the middles of the eyes
	Falloff             float32 // how much darker the edge is than the hot spot, 0 to 1
	Noise               float32 // against bands in the gradient, steps of 1/255
	Outline             float32 // how much darker the line along the edge is, 0 to 1
	Glow                float32 // pixels, of a glow with size 1
	Soft                float32 // pixels, over which the corners between lid and eye are rounded; above 0
}

// Standard is the style that robots have.
var Standard = Style{EyeWidth: 44, EyeHeight: 50, Distance: 78, Falloff: 0.42, Noise: 3, Outline: 0.2, Glow: 22, Soft: 9}

// Color is a colour of eyes: hue 0 to 1 around the circle from red over green and blue, saturation 0 to 1.
type Color struct{ Hue, Saturation float32 }

// Teal is the colour of a robot whose settings do not choose one (VEC-DOC-03).
var Teal = Color{0.42, 1}

// RGB returns red, green and blue of the brightest light of the colour, 0 to 1.
func (c Color) RGB() [3]float32 { return c.channels(1) }

// channels returns the shares of red, green and blue of the brightest light of a colour.
func (c Color) channels(share float32) (rgb [3]float32) {
	h, s := 6*(c.Hue-float32(math.Floor(float64(c.Hue)))), min(max(c.Saturation*share, 0), 1)
	for i, middle := range [3]float32{0, 2, 4} {
		d := h - middle
		d = min(max(d, -d), 6-max(d, -d)) // around the circle
		rgb[i] = 1 - s*min(max(d-1, 0), 1)
	}
	return rgb
}

// Picture is one frame of the display. Pixels are RGB565: five bits of red, six of green, five of blue. It is an image.Image.
type Picture struct {
	Pix [Width * Height]uint16 // line by line from the top
}

// ColorModel returns color.RGBAModel.
func (p *Picture) ColorModel() color.Model { return color.RGBAModel }

// Bounds returns the display's rectangle.
func (p *Picture) Bounds() image.Rectangle { return image.Rect(0, 0, Width, Height) }

// At returns the colour of one pixel.
func (p *Picture) At(x, y int) color.Color {
	if x < 0 || x >= Width || y < 0 || y >= Height {
		return color.RGBA{}
	}
	return RGBA(p.Pix[y*Width+x])
}

// RGBA returns the colour of an RGB565 pixel.
func RGBA(v uint16) color.RGBA {
	r, g, b := uint8(v>>11), uint8(v>>5&63), uint8(v&31)
	return color.RGBA{r<<3 | r>>2, g<<2 | g>>4, b<<3 | b>>2, 255}
}

// AppendRGB565 appends the pixels as the display's interface takes them, high byte first: 35,328 bytes.
func (p *Picture) AppendRGB565(dst []byte) []byte {
	for _, v := range p.Pix {
		dst = append(dst, byte(v>>8), byte(v))
	}
	return dst
}

// Drawer draws faces.
type Drawer struct {
	style Style
	noise [Width * Height]float32 // -0.5 to 0.5, the same in every frame, so that a still face is still
}

// NewDrawer returns a Drawer of a style.
func NewDrawer(s Style) *Drawer {
	d := &Drawer{style: s}
	x := uint32(1)
	for i := range d.noise {
		x ^= x << 13 // xorshift: the same grain on every machine
		x ^= x >> 17
		x ^= x << 5
		d.noise[i] = float32(x>>8)/(1<<24) - 0.5
	}
	return d
}

// Draw draws a face in a colour and replaces what dst held. Values out of range are drawn as the nearest one in range. It allocates nothing.
func (d *Drawer) Draw(dst *Picture, p *Params, c Color) {
	dst.Pix = [Width * Height]uint16{}
	f := p.resolved()
	d.eye(dst, &f, &f.Left, -1, c)
	d.eye(dst, &f, &f.Right, 1, c)
}

// shape is one eye as it is drawn, in pixels around its own middle, y down.
type shape struct {
	w, h         float32       // half the width and height
	perW, perH   float32       // 1/w and 1/h, at most 1
	corner       [4][2]float32 // radii: upper left, upper right, lower left, lower right
	upper, lower lid
	hotX, hotY   float32
	soft         float32 // pixels over which lids round the corners that they cut
}

// lid is the edge of a lid: y = at + slope*x + bend*(1-(x/w)^2), without a bend beside the eye.
type lid struct{ at, slope, cos, bend float32 }

// newLid returns a lid whose edge is at a height, with an angle in degrees and a bend in pixels.
func newLid(at, angle, bend float32) lid {
	s, c := math.Sincos(float64(angle) * math.Pi / 180)
	return lid{at, float32(s / c), float32(c), bend}
}

// below returns how far below the lid's edge a point is.
func (l *lid) below(x, y, perW float32) float32 {
	u := min(abs(x)*perW, 1)
	return (y - l.at - l.slope*x - l.bend*(1-u*u)) * l.cos
}

// newShape returns the shape of an eye; side is -1 for the left one.
func (d *Drawer) newShape(e *Eye, side float32) (s shape) {
	s.w, s.h = d.style.EyeWidth/2*e[EyeScaleX], d.style.EyeHeight/2*e[EyeScaleY]
	s.perW, s.perH = 1/max(s.w, 1), 1/max(s.h, 1)
	for i, at := range [4]int{UpperOuterRadiusX, UpperInnerRadiusX, LowerOuterRadiusX, LowerInnerRadiusX} {
		if side > 0 {
			i ^= 1 // the outer corners are at the right
		}
		rx, ry := max(e[at]*s.w, 0.5), max(e[at+1]*s.h, 0.5)
		s.corner[i] = [2]float32{min(rx, 3*ry), min(ry, 3*rx)} // a flatter ellipse has no simple distance
	}
	const bend = 0.7 // of half the height, for a bend of 1
	s.upper = newLid(-s.h-1+e[UpperLidY]*(2*s.h+2), e[UpperLidAngle], e[UpperLidBend]*bend*s.h*min(1, 4*e[UpperLidY]))
	s.lower = newLid(s.h+1-e[LowerLidY]*(2*s.h+2), e[LowerLidAngle], -e[LowerLidBend]*bend*s.h*min(1, 4*e[LowerLidY]))
	if e[UpperLidY] == 0 {
		s.upper = lid{at: -4 * Width, cos: 1} // an open lid hides nothing, whatever its angle
	}
	if e[LowerLidY] == 0 {
		s.lower = lid{at: 4 * Width, cos: 1}
	}
	s.soft = min(d.style.Soft, s.w, s.h)
	s.hotX, s.hotY = e[HotSpotCenterX]*s.w, e[HotSpotCenterY]*s.h
	return s
}

// outside returns how far a point is outside the eye; below 0 it is inside.
func (s *shape) outside(x, y float32) float32 {
	i, ax, ay := 0, x, y
	if x > 0 {
		i = 1
	} else {
		ax = -x
	}
	if y > 0 {
		i += 2
	} else {
		ay = -y
	}
	r := &s.corner[i]
	px, py := ax-s.w+r[0], ay-s.h+r[1]
	d := max(ax-s.w, ay-s.h)
	if px > 0 && py > 0 { // in the corner: about the distance from an ellipse
		qx, qy := px/r[0], py/r[1]
		k0 := qx*qx + qy*qy
		gx, gy := qx/r[0], qy/r[1]
		root := float32(math.Sqrt(float64(k0)))
		d = root * (root - 1) / float32(math.Sqrt(float64(gx*gx+gy*gy)))
	}
	return both(both(d, -s.upper.below(x, y, s.perW), s.soft), s.lower.below(x, y, s.perW), s.soft)
}

// both returns how far a point is outside the common part of two shapes, whose corners it rounds over a number of pixels.
func both(a, b, soft float32) float32 {
	h := soft - abs(a-b)
	if h <= 0 {
		return max(a, b)
	}
	return max(a, b) + h*h/(4*soft)
}

// eye draws one eye: gradient, lids and corners in one pass over the pixels that the eye may reach (part of VEC-FCE-06).
func (d *Drawer) eye(dst *Picture, f *Params, e *Eye, side float32, c Color) {
	s := d.newShape(e, side)
	scaleX, scaleY := f.Whole[ScaleX], f.Whole[ScaleY]
	unit := float32(math.Sqrt(float64(scaleX * scaleY))) // pixels of the display for one of the eye's
	thin := min(1, 2*s.w*scaleX, 2*s.h*scaleY)           // an eye that is thinner than a pixel fades
	if thin < 0.02 || unit < 0.01 || e[Lightness] <= 0 {
		return
	}
	fs, fc := sincos(f.Whole[Angle])
	es, ec := sincos(e[EyeAngle])
	placeX, placeY := (side*d.style.Distance/2+e[EyeCenterX])*scaleX, e[EyeCenterY]*scaleY
	midX := Width/2 + f.Whole[CenterX] + fc*placeX - fs*placeY
	midY := Height/2 + f.Whole[CenterY] + fs*placeX + fc*placeY

	glow := max(e[GlowSize]*d.style.Glow, 0.01)
	glowing := e[GlowLightness]
	if glowing == 0 {
		glow = 0.01
	}
	reach := glow + 1.5*unit
	wide, high := s.w*scaleX+reach, s.h*scaleY+reach
	// The corners of the eye's box turn by the face's angle; the eye's own angle turns it before the face scales it, so that the box takes the larger side.
	if e[EyeAngle] != 0 {
		long := max(s.w, s.h) * 1.4143 * max(scaleX, scaleY)
		wide, high = long+reach, long+reach
	}
	boxX, boxY := abs(fc)*wide+abs(fs)*high, abs(fs)*wide+abs(fc)*high
	x0, x1 := int(max(midX-boxX, 0)), int(min(midX+boxX+1, Width))
	y0, y1 := int(max(midY-boxY, 0)), int(min(midY+boxY+1, Height))

	base := c.channels(e[Saturation])
	perX, perY := 1/scaleX, 1/scaleY
	full := 255 * e[Lightness] * thin
	for y := y0; y < y1; y++ {
		line := float32(1)
		if y&1 == 1 {
			line = f.Whole[ScanlineOpacity]
		}
		dy := float32(y) + 0.5 - midY
		for x := x0; x < x1; x++ {
			dx := float32(x) + 0.5 - midX
			ux, uy := (fc*dx+fs*dy)*perX, (fc*dy-fs*dx)*perY
			ux, uy = ec*ux+es*uy, ec*uy-es*ux
			out := s.outside(ux, uy) * unit
			if out >= glow+0.5 {
				continue
			}
			v := d.light(&s, ux, uy, out, glow, glowing) * full * line
			if v > 0.5 {
				put(&dst.Pix[y*Width+x], v+d.noise[y*Width+x]*d.style.Noise, &base)
			}
		}
	}
}

// light returns the brightness of a point, 0 to 1: the gradient around the hot spot, the darker line along the edge, and the glow.
func (d *Drawer) light(s *shape, x, y, out, glow, glowing float32) float32 {
	hx, hy := (x-s.hotX)*s.perW, (y-s.hotY)*s.perH
	inside := 1 - d.style.Falloff*min((hx*hx+hy*hy)/2, 1.4)
	if out > -2 {
		inside *= 1 - d.style.Outline*min(1+out/2, 1)
	}
	cover := min(max(0.5-out, 0), 1)
	if cover >= 1 {
		return inside
	}
	halo := 1 - max(out, 0)/glow
	halo = max(halo, 0)
	return cover*inside + (1-cover)*halo*halo*glowing
}

// put brightens a pixel to a light of a colour; where two eyes meet, the brighter one is seen.
func put(pix *uint16, v float32, base *[3]float32) {
	v = min(max(v, 0), 255)
	r, g, b := uint16(v*base[0]*(31./255)+0.5), uint16(v*base[1]*(63./255)+0.5), uint16(v*base[2]*(31./255)+0.5)
	if was := *pix; was != 0 {
		r, g, b = max(r, was>>11), max(g, was>>5&63), max(b, was&31)
	}
	*pix = r<<11 | g<<5 | b
}

// sincos returns sine and cosine of an angle in degrees.
func sincos(degrees float32) (s, c float32) {
	sin, cos := math.Sincos(float64(degrees) * math.Pi / 180)
	return float32(sin), float32(cos)
}

func abs(x float32) float32 { return max(x, -x) }
