package screen

import (
	"math"

	"kennel/edge/face"
)

// conditions are the weathers of the source, sorted (VEC-INT-08).
var conditions = [...]string{"Clear", "Cloudy", "Cold", "Rain", "Snow", "Stars", "Sunny", "Thunderstorms", "Windy"}

// icons draw a weather around a place, about 64 pixels wide and high.
var icons = map[string]func(p *face.Picture, x, y float32){
	"Clear":  func(p *face.Picture, x, y float32) { sun(p, x-4, y-4, 15, 0); cloud(p, x+12, y+16, 0.5) },
	"Cloudy": func(p *face.Picture, x, y float32) { cloud(p, x, y+4, 1) },
	"Cold":   cold,
	"Rain": func(p *face.Picture, x, y float32) {
		cloud(p, x, y-8, 0.9)
		for i := range 4 {
			dx := float32(i)*12 - 16
			fill(p, blue, bar(x+dx, y+15, x+dx-4, y+26, 1.8))
		}
	},
	"Snow": func(p *face.Picture, x, y float32) {
		cloud(p, x, y-8, 0.9)
		for i := range 3 {
			flake(p, x+float32(i)*17-17, y+22-float32(i%2)*2, 6)
		}
	},
	"Stars": func(p *face.Picture, x, y float32) {
		fill(p, night, disc(x-6, y+4, 22).without(disc(x+4, y-4, 19)))
		for _, s := range [][3]float32{{14, -16, 6}, {24, 4, 4}, {8, 8, 3.5}} {
			star(p, x+s[0], y+s[1], s[2])
		}
	},
	"Sunny": func(p *face.Picture, x, y float32) { sun(p, x, y, 16, 8) },
	"Thunderstorms": func(p *face.Picture, x, y float32) {
		cloud(p, x, y-8, 0.9)
		fill(p, yellow, triangle(x+2, y+8, x+10, y+8, x-6, y+24))
		fill(p, yellow, triangle(x-4, y+20, x+10, y+17, x-8, y+34))
	},
	"Windy": func(p *face.Picture, x, y float32) {
		for i, l := range []float32{18, 28, 12} {
			ly := y - 12 + 13*float32(i)
			fill(p, grey, bar(x-28, ly, x+l-10, ly, 2.2))
			curl := ring(x+l-10, ly-7, 7, 4.4)
			if i == 2 {
				curl = ring(x+l-10, ly+7, 7, 4.4)
			}
			fill(p, grey, curl.without(rounded(x+l-20, curl.top+9.2, 10, 4.6, 0)))
		}
	},
}

// sun draws a sun with so many rays.
func sun(p *face.Picture, x, y, r float32, rays int) {
	fill(p, yellow, disc(x, y, r))
	for i := range rays {
		s, c := math.Sincos(2 * math.Pi * float64(i) / float64(rays))
		dx, dy := float32(c), float32(s)
		fill(p, yellow, bar(x+dx*(r+6), y+dy*(r+6), x+dx*(r+14), y+dy*(r+14), 2.2))
	}
}

// cloud draws a cloud of a size, about 56 by 32 pixels at 1.
func cloud(p *face.Picture, x, y, size float32) {
	for _, d := range [][3]float32{{-14, 4, 12}, {-2, -6, 15}, {14, 2, 12}} {
		fill(p, grey, disc(x+d[0]*size, y+d[1]*size, d[2]*size))
	}
	fill(p, grey, rounded(x, y+9*size, 27*size, 7.5*size, 7.5*size))
}

// flake draws a crystal of ice.
func flake(p *face.Picture, x, y, r float32) {
	for i := range 3 {
		s, c := math.Sincos(math.Pi * float64(i) / 3)
		dx, dy := float32(c)*r, float32(s)*r
		fill(p, white, bar(x-dx, y-dy, x+dx, y+dy, 1.1))
	}
}

// star draws a star with four points.
func star(p *face.Picture, x, y, r float32) {
	thin := r / 4
	fill(p, white, triangle(x, y-r, x+thin, y, x-thin, y))
	fill(p, white, triangle(x-thin, y, x+thin, y, x, y+r))
	fill(p, white, triangle(x-r, y, x, y-thin, x, y+thin))
	fill(p, white, triangle(x, y-thin, x+r, y, x, y+thin))
}

// cold draws a thermometer that shows little.
func cold(p *face.Picture, x, y float32) {
	fill(p, grey, rounded(x-8, y-6, 7, 22, 7))
	fill(p, grey, disc(x-8, y+18, 11))
	fill(p, dark, rounded(x-8, y-6, 4, 19, 4))
	fill(p, blue, disc(x-8, y+18, 8))
	fill(p, blue, bar(x-8, y+18, x-8, y+6, 2.5))
	flake(p, x+16, y-12, 10)
}

// bell draws a bell that swings by so many pixels.
func bell(p *face.Picture, x, y, swing float32) {
	fill(p, yellow, disc(x+swing*0.3, y+22, 6))
	fill(p, yellow, disc(x, y-22, 4))
	fill(p, yellow, rounded(x+swing*0.1, y-6, 17, 17, 15))
	fill(p, yellow, rounded(x+swing*0.15, y+6, 17, 10, 2))
	fill(p, yellow, rounded(x+swing*0.2, y+15, 24, 3.5, 3))
	for _, side := range []float32{-1, 1} {
		for i := range 2 {
			r := float32(34 + 9*i)
			arc := ring(x, y, r, 2.4)
			cut := rounded(x-side*r, y, r+0.86*r, 2*r, 0) // leaves the outermost part of the ring
			if side*swing > 0 {
				fill(p, yellow, arc.without(cut))
			}
		}
	}
}

// dial draws a clock's face whose share, from the top clockwise, is lit.
func dial(p *face.Picture, x, y, r, share float32) {
	fill(p, dark, ring(x, y, r, 7))
	lit := ring(x, y, r, 7)
	all := lit.outside
	lit.outside = func(px, py float32) float32 {
		turn := float32(math.Atan2(float64(px-x), float64(y-py)) / (2 * math.Pi)) // 0 at the top, clockwise
		if turn < 0 {
			turn++
		}
		if turn > share {
			return max(all(px, py), min(turn-share, 1-turn)*2*math.Pi*r) // about how far along the ring
		}
		return all(px, py)
	}
	if share > 0 {
		fill(p, teal, lit)
	}
}
