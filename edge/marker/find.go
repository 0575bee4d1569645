package marker

import (
	"image"
	"math"
)

// Point is a place in a picture, in pixels from its upper left corner.
type Point struct{ X, Y float64 }

// Found is a marker in a picture. Its corners are those of the square line: of the marker as it hangs, the lower left one, and on around it to the right, up and left.
type Found struct {
	Name    string
	Corners [4]Point
	Wrong   float64 // share of the cells that are not as drawn
}

// Bounds returns the pixels around the marker.
func (f *Found) Bounds() image.Rectangle {
	left, top, right, bottom := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, p := range f.Corners {
		left, right, top, bottom = min(left, p.X), max(right, p.X), min(top, p.Y), max(bottom, p.Y)
	}
	return image.Rect(int(math.Floor(left)), int(math.Floor(top)), int(math.Ceil(right)), int(math.Ceil(bottom)))
}

// Area returns how many pixels the marker covers.
func (f *Found) Area() float64 { return area(f.Corners[:]) }

// Limits of what is taken for a marker; own defaults (part of VEC-MRK-01, VEC-MRK-02).
const (
	leastEdge  = 9    // pixels of its shorter side
	darkShare  = 0.5  // of the brightness around it, which a dark pixel has at most
	leastLight = 12   // of the brightness around it
	leastFill  = 0.25 // of its outline, the share that is dark
	mostFill   = 0.85
	leastSolid = 0.85 // of its outline, the share that four corners cover
	mostWrong  = 0.14
	apart      = 0.003 // by which the best name is better than the next
	probes     = Cells
	maxShapes  = 4000 // dark shapes of a picture that are looked at
)

// Finder finds markers in pictures. Its zero value is ready. It serves one goroutine, and keeps about 9 bytes for each pixel.
type Finder struct {
	sums   []uint32 // of the brightness above and to the left
	runs   []run
	shapes []shape
	hull   []Point
	edge   []Point
}

// run is a piece of a row that is dark.
type run struct {
	y, from, to int32 // to is the pixel after it
	parent      int32 // the index of another run of the same shape, or its own
}

// shape is a dark area of one piece.
type shape struct {
	first, last int32 // rows
	left, right int32
	pixels      int
	runs        []int32
}

// Find returns the markers in a picture of w by h pixels, whose rows begin stride bytes apart: no two overlap, and none that is cut by the picture's edge is among them.
func (f *Finder) Find(grey []byte, stride, w, h int) (out []Found) {
	if w < leastEdge || h < leastEdge || len(grey) < (h-1)*stride+w {
		return nil
	}
	f.sum(grey, stride, w, h)
	f.scan(grey, stride, w, h)
	for i := range f.shapes {
		s := &f.shapes[i]
		wide, high := int(s.right-s.left), int(s.last-s.first+1)
		if min(wide, high) < leastEdge || s.left == 0 || s.first == 0 || int(s.right) == w || int(s.last) == h-1 {
			continue
		}
		q, covers, ok := f.quad(s)
		if !ok || float64(s.pixels) < leastFill*covers || float64(s.pixels) > mostFill*covers {
			continue
		}
		if x, ok := read(grey, stride, w, h, q); ok {
			out = append(out, x)
		}
	}
	return out
}

// sum fills in the sums of brightness.
func (f *Finder) sum(grey []byte, stride, w, h int) {
	if n := (w + 1) * (h + 1); cap(f.sums) < n {
		f.sums = make([]uint32, n)
	} else {
		f.sums = f.sums[:n]
	}
	clear(f.sums[:w+1])
	for y := range h {
		row := f.sums[(y+1)*(w+1) : (y+2)*(w+1)]
		above := f.sums[y*(w+1) : (y+1)*(w+1)]
		var line uint32
		row[0] = 0
		for x, v := range grey[y*stride : y*stride+w] {
			line += uint32(v)
			row[x+1] = above[x+1] + line
		}
	}
}

// scan finds the shapes of pixels that are darker than what is around them.
func (f *Finder) scan(grey []byte, stride, w, h int) {
	f.runs = f.runs[:0]
	reach := max(w/16, 8)
	before, now := 0, 0 // runs of the row above begin and end
	for y := range h {
		top, bottom := max(y-reach, 0), min(y+reach+1, h)
		above, below := f.sums[top*(w+1):], f.sums[bottom*(w+1):]
		row := grey[y*stride : y*stride+w]
		from := -1
		begin := len(f.runs)
		for x := 0; x <= w; x++ {
			dark := false
			if x < w {
				left, right := max(x-reach, 0), min(x+reach+1, w)
				area := float64((right - left) * (bottom - top))
				mean := float64(below[right]-below[left]-above[right]+above[left]) / area
				dark = float64(row[x]) < darkShare*mean && mean >= leastLight
			}
			switch {
			case dark && from < 0:
				from = x
			case !dark && from >= 0:
				f.runs = append(f.runs, run{int32(y), int32(from), int32(x), int32(len(f.runs))})
				from = -1
			}
		}
		f.join(before, now, begin)
		before, now = begin, len(f.runs)
	}
	f.gather()
}

// join unites the runs from begin on with those of the row above that touch them, also at a corner.
func (f *Finder) join(before, now, begin int) {
	k := before
	for i := begin; i < len(f.runs); i++ {
		r := &f.runs[i]
		for k < now && f.runs[k].to < r.from {
			k++
		}
		for j := k; j < now && f.runs[j].from <= r.to; j++ {
			a, b := f.root(int32(i)), f.root(int32(j))
			f.runs[max(a, b)].parent = min(a, b)
		}
	}
}

func (f *Finder) root(i int32) int32 {
	for f.runs[i].parent != i {
		f.runs[i].parent = f.runs[f.runs[i].parent].parent
		i = f.runs[i].parent
	}
	return i
}

// gather makes shapes of the runs.
func (f *Finder) gather() {
	f.shapes = f.shapes[:0]
	of := map[int32]int{}
	for i := range f.runs {
		r := &f.runs[i]
		root := f.root(int32(i))
		k, ok := of[root]
		if !ok {
			if len(f.shapes) == maxShapes {
				continue
			}
			k = len(f.shapes)
			of[root] = k
			f.shapes = append(f.shapes, shape{first: r.y, left: r.from, right: r.to})
		}
		s := &f.shapes[k]
		s.last, s.left, s.right = r.y, min(s.left, r.from), max(s.right, r.to)
		s.pixels += int(r.to - r.from)
		s.runs = append(s.runs, int32(i))
	}
}

// read looks which marker is in four corners, in any of its four turns.
func read(grey []byte, stride, w, h int, q [4]Point) (Found, bool) {
	to, ok := square(q)
	if !ok {
		return Found{}, false
	}
	var light [probes][probes]float64
	var dark, bright, nDark, nBright float64
	for j := range probes {
		for i := range probes {
			u, v := (float64(i)+0.5)/probes, (float64(j)+0.5)/probes
			p := to.at(u, v)
			x, y := int(math.Floor(p.X-0.5)), int(math.Floor(p.Y-0.5))
			if x < 0 || y < 0 || x+1 >= w || y+1 >= h {
				return Found{}, false
			}
			a, b := p.X-0.5-float64(x), p.Y-0.5-float64(y)
			row, next := grey[y*stride+x:], grey[(y+1)*stride+x:]
			light[j][i] = (1-b)*((1-a)*float64(row[0])+a*float64(row[1])) + b*((1-a)*float64(next[0])+a*float64(next[1]))
			switch d := max(math.Abs(u-0.5), math.Abs(v-0.5)); {
			case d > 0.5-outline*0.8 && d < 0.5-outline*0.2:
				dark, nDark = dark+light[j][i], nDark+1
			case d > inner+0.01 && d < 0.5-outline-0.015:
				bright, nBright = bright+light[j][i], nBright+1
			}
		}
	}
	dark, bright = dark/nDark, bright/nBright
	if bright < 1.6*dark+4 {
		return Found{}, false
	}
	return match(&light, (dark+bright)/2, q)
}

// match compares what was read with every marker.
func match(light *[probes][probes]float64, limit float64, q [4]Point) (Found, bool) {
	best, next := Found{Wrong: 2}, 2.0 // next is the best of another name
	for k, m := range drawn {
		for turn := range 4 {
			wrong, n := 0, 0
			for j := range probes {
				for i := range probes {
					u, v := (float64(i)+0.5)/probes-0.5, (float64(j)+0.5)/probes-0.5
					if max(math.Abs(u), math.Abs(v)) > 0.5-outline {
						continue
					}
					for range turn {
						u, v = -v, u
					}
					n++
					if m[int((v+0.5)*Cells)][int((u+0.5)*Cells)] != (light[j][i] < limit) {
						wrong++
					}
				}
			}
			share := float64(wrong) / float64(n)
			switch {
			case share < best.Wrong:
				if best.Name != Names[k] {
					next = best.Wrong
				}
				best.Name, best.Wrong = Names[k], share
				for c := range q {
					best.Corners[c] = q[(c+4-turn)%4]
				}
			case best.Name != Names[k]:
				next = min(next, share)
			}
		}
	}
	return best, best.Wrong <= mostWrong && best.Wrong+apart <= next
}
