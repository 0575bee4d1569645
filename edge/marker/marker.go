// Package marker has the square symbols by which Vector's world is recognised, and finds them in pictures: a thick black square line with symbols in it. The symbols are own
// drawings, because the source shows none of the originals (part of VEC-MRK-03).
//
//	marker.go  the symbols by their names
//	find.go    where they are in a picture
//	quad.go    four corners around a dark shape
//	pose.go    where a marker of known size is before the camera
//
// A Finder takes the brightness of each pixel. It needs no memory but its own, and no clock.
package marker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Cells is how many cells a marker has each way.
const Cells = 48

// Marker says which cells are black, by row from below and column from the left.
type Marker [Cells][Cells]bool

// The markers that are no symbols of custom objects.
const (
	Cube    = "cube"
	Charger = "charger"
)

// Names are all markers: those of the cube and the charger, and the symbols of custom objects, two to five of a kind, in the order of their published numbers 1 to 16
// (VEC-ACC-05).
var Names = func() []string {
	all := []string{Cube, Charger}
	for _, shape := range []string{"circles", "diamonds", "hexagons", "triangles"} {
		for n := 2; n <= 5; n++ {
			all = append(all, fmt.Sprint(shape, n))
		}
	}
	return all
}()

// Shares of a marker's edge.
const (
	outline = 0.12 // how thick the square line is
	symbol  = 0.10 // the radius of a symbol
	ring    = 0.20 // how far symbols are from the middle
	inner   = 0.31 // from the middle: there are symbols within, and none from here to the line
)

// drawn are the markers in the order of Names.
var drawn = func() (all []*Marker) {
	for _, name := range Names {
		all = append(all, draw(name))
	}
	return all
}()

// Named returns the marker of a name; nil: there is none.
func Named(name string) *Marker {
	if i := slices.Index(Names, name); i >= 0 {
		return drawn[i]
	}
	return nil
}

func draw(name string) *Marker {
	var m Marker
	for j := range m {
		for i := range m[j] {
			x, y := (float64(i)+0.5)/Cells-0.5, (float64(j)+0.5)/Cells-0.5
			m[j][i] = max(math.Abs(x), math.Abs(y)) > 0.5-outline || inSymbol(name, x, y)
		}
	}
	return &m
}

// inSymbol reports whether a place is in a symbol of a marker; x and y are shares of its edge from the middle.
func inSymbol(name string, x, y float64) bool {
	switch name {
	case Cube: // a cross, of which one arm is short: it shows which way is up
		return math.Abs(x) < 0.07 && y > -0.25 && y < 0.12 || math.Abs(y) < 0.07 && math.Abs(x) < 0.25
	case Charger: // an arrow up
		return math.Abs(x) < 0.06 && y > -0.25 && y < 0.05 || y >= 0.05 && y < 0.25-math.Abs(x)
	}
	last := len(name) - 1
	n, _ := strconv.Atoi(name[last:]) // the names are Names
	for k := range n {
		sin, cos := math.Sincos(2*math.Pi*float64(k)/float64(n) + math.Pi/2)
		dx, dy := math.Abs(x-ring*cos), y-ring*sin
		if within(name[:last], dx, dy) {
			return true
		}
	}
	return false
}

// within reports whether a place is in a symbol, dx beside and dy above its middle.
func within(shape string, dx, dy float64) bool {
	switch shape {
	case "diamonds":
		return dx+math.Abs(dy) < symbol
	case "hexagons":
		return dx < symbol*0.87 && math.Abs(dy) < symbol-dx*0.58
	case "triangles":
		return dy > -symbol/2 && dx*1.73 < symbol-dy
	}
	return dx*dx+dy*dy < symbol*symbol
}
