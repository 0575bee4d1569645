package screen

import (
	"image/color"
	"math"

	"kennel/edge/face"
)

// The colours of all pages.
var (
	white  = color.RGBA{255, 255, 255, 255}
	pale   = color.RGBA{156, 158, 156, 255}
	dark   = color.RGBA{42, 46, 52, 255}
	teal   = color.RGBA{0, 230, 190, 255}
	red    = color.RGBA{230, 40, 40, 255}
	yellow = color.RGBA{255, 200, 30, 255}
	blue   = color.RGBA{70, 140, 255, 255}
	grey   = color.RGBA{190, 196, 206, 255}
	night  = color.RGBA{230, 225, 170, 255}
)

// shape is a shape to fill: how far a point is outside it, in pixels, below 0 inside, and the rectangle around it.
type shape struct {
	outside                  func(x, y float32) float32
	left, top, right, bottom float32
}

// fill paints a shape, whose edge is soft over a pixel.
func fill(p *face.Picture, c color.RGBA, s shape) {
	x0, y0 := int(max(s.left-1, 0)), int(max(s.top-1, 0))
	x1, y1 := int(min(s.right+2, face.Width)), int(min(s.bottom+2, face.Height))
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			if cover := 0.5 - s.outside(float32(x)+0.5, float32(y)+0.5); cover > 0 {
				blend(&p.Pix[y*face.Width+x], c, min(cover, 1))
			}
		}
	}
}

// blend paints a share of a colour over a pixel.
func blend(pix *uint16, c color.RGBA, share float32) {
	was := face.RGBA(*pix)
	mix := func(a, b uint8, most float32) uint16 {
		return uint16((float32(a)+(float32(b)-float32(a))*share)*most/255 + 0.5)
	}
	*pix = mix(was.R, c.R, 31)<<11 | mix(was.G, c.G, 63)<<5 | mix(was.B, c.B, 31)
}

func hypot(x, y float32) float32 { return float32(math.Sqrt(float64(x*x + y*y))) }

func abs(x float32) float32 { return max(x, -x) }

// disc is a round area.
func disc(x, y, r float32) shape {
	return shape{func(px, py float32) float32 { return hypot(px-x, py-y) - r }, x - r, y - r, x + r, y + r}
}

// ring is the line around a disc, so many pixels wide.
func ring(x, y, r, wide float32) shape {
	o := r + wide/2
	return shape{func(px, py float32) float32 { return abs(hypot(px-x, py-y)-r) - wide/2 }, x - o, y - o, x + o, y + o}
}

// bar is a straight line with round ends; r is half of its width.
func bar(x0, y0, x1, y1, r float32) shape {
	dx, dy := x1-x0, y1-y0
	length := max(dx*dx+dy*dy, 1e-6)
	return shape{func(px, py float32) float32 {
		t := min(max(((px-x0)*dx+(py-y0)*dy)/length, 0), 1)
		return hypot(px-x0-t*dx, py-y0-t*dy) - r
	}, min(x0, x1) - r, min(y0, y1) - r, max(x0, x1) + r, max(y0, y1) + r}
}

// rounded is a rectangle of half the width and height around a point, with round corners.
func rounded(x, y, w, h, r float32) shape {
	r = min(r, w, h)
	return shape{func(px, py float32) float32 {
		qx, qy := abs(px-x)-w+r, abs(py-y)-h+r
		return hypot(max(qx, 0), max(qy, 0)) + min(max(qx, qy), 0) - r
	}, x - w, y - h, x + w, y + h}
}

// without is a shape less another one.
func (s shape) without(o shape) shape {
	outside := s.outside
	s.outside = func(x, y float32) float32 { return max(outside(x, y), -o.outside(x, y)) }
	return s
}

// triangle is the area between three points, given clockwise as a person sees them.
func triangle(ax, ay, bx, by, cx, cy float32) shape {
	side := func(x0, y0, x1, y1 float32) func(x, y float32) float32 {
		dx, dy := x1-x0, y1-y0
		l := max(hypot(dx, dy), 1e-6)
		return func(x, y float32) float32 { return ((x-x0)*dy - (y-y0)*dx) / l }
	}
	a, b, c := side(ax, ay, bx, by), side(bx, by, cx, cy), side(cx, cy, ax, ay)
	return shape{func(x, y float32) float32 { return max(a(x, y), b(x, y), c(x, y)) },
		min(ax, bx, cx), min(ay, by, cy), max(ax, bx, cx), max(ay, by, cy)}
}
