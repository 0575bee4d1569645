package skeleton

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"math"
	"slices"
	"strconv"

	"kennel/infra/api/motionwire"
)

// View is the direction from which a drawing shows a body.
type View int

// The views. From the side the nose is at the right, from the front the robot's left is.
const (
	Side View = iota
	Front
)

// Views are the names of the views, by View.
var Views = []string{"side", "front"}

// Of drawings, in pictures a second and millimetres.
const (
	pictureMS = 40
	fewest    = 2
	most      = 200 // pictures of a motion, however long it is
	floor     = 60  // below the middle of the drawing
	farAway   = 0.02
)

// line is a bone in a drawing: millimetres, y downward.
type line struct {
	x1, y1, x2, y2, wide float64
	depth                float64 // towards the viewer, m
}

// lines returns the bones as a view shows them, in their order.
func (v View) lines(all []Segment) (out []line) {
	across, away := 0, 1
	if v == Front {
		across, away = 1, 0
	}
	for _, s := range all {
		out = append(out, line{s.From[across] * 1000, floor - s.From[2]*1000, s.To[across] * 1000, floor - s.To[2]*1000, s.Wide * 1000, s.From[away] + s.To[away]})
	}
	return out
}

// AppendSVG appends a drawing of a motion in which each bone is a line that moves, repeated for ever: an SVG document of at most 200 pictures, in millimetres. Joints
// that the motion does not list are at the angles of base, in rad. The bones of the far side are pale.
func AppendSVG(dst []byte, b *motionwire.Body, m *motionwire.Sequence, base map[string]float64, v View) []byte {
	span := 1.0
	if n := len(m.Keyframes); n > 0 {
		span = max(float64(m.Keyframes[n-1].AtMS), 1)
	}
	n := int(min(max(math.Ceil(span/pictureMS), fewest), most))
	steps := make([][]line, 0, n+1)
	for i := range n + 1 {
		steps = append(steps, v.lines(Rest(Pose(b, Angles(m, span*float64(i)/float64(n), base)))))
	}
	order := make([]int, len(b.Bones)) // the nearest last, over the others
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(steps[0][x].depth, steps[0][y].depth) })

	dst = append(dst, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-240 -330 480 420" stroke="black" stroke-linecap="round">`...)
	dst = append(dst, "<title>"+escaped(m.Name)+"</title>"...)
	dst = append(dst, `<line x1="-240" x2="240" y1="61" y2="61" stroke-width="2"/>`...)
	for _, i := range order {
		first := steps[0][i]
		dst = append(dst, "<line"...)
		for _, a := range ends {
			dst = attribute(dst, a.name, a.of(first))
		}
		dst = attribute(dst, "stroke-width", first.wide)
		if first.depth < -farAway {
			dst = append(dst, ` opacity="0.45"`...)
		}
		dst = append(dst, '>')
		for _, a := range ends {
			dst = append(dst, `<animate attributeName="`+a.name+`" dur="`+strconv.FormatFloat(span, 'f', 0, 64)+`ms" repeatCount="indefinite" values="`...)
			for k, s := range steps {
				if k > 0 {
					dst = append(dst, ';')
				}
				dst = strconv.AppendFloat(dst, a.of(s[i]), 'f', 1, 64)
			}
			dst = append(dst, `"/>`...)
		}
		dst = append(dst, "</line>"...)
	}
	return append(dst, "</svg>\n"...)
}

// ends are the attributes of a line that move.
var ends = []struct {
	name string
	of   func(line) float64
}{{"x1", func(l line) float64 { return l.x1 }}, {"y1", func(l line) float64 { return l.y1 }}, {"x2", func(l line) float64 { return l.x2 }}, {"y2", func(l line) float64 { return l.y2 }}}

func attribute(dst []byte, name string, v float64) []byte {
	dst = append(dst, ' ')
	dst = append(dst, name...)
	dst = append(dst, `="`...)
	dst = strconv.AppendFloat(dst, v, 'f', 1, 64)
	return append(dst, '"')
}

// escaped returns a text as XML has it, in elements and attributes.
func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
