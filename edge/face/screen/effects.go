package screen

import (
	"image"
	"image/color"
	"io/fs"
	"iter"
	"math"
	"strings"

	"kennel/edge/face"
)

// effect is a sprite that is drawn by code.
type effect struct {
	frames        int
	width, height int
	draw          func(p *face.Picture, turn float32) // turn is 0 at the first picture, and would be 1 at the one after the last
}

// effects are Kennel's own sprites by their names: weather over the eyes, a battery that fills, and digits.
var effects = map[string]effect{
	"face_weather_rain":  {24, face.Width, face.Height, rain},
	"face_weather_snow":  {48, face.Width, face.Height, snow},
	"face_weather_sunny": {30, face.Width, face.Height, rays},
	"face_weather_stars": {30, face.Width, face.Height, twinkle},
	"face_battery":       {30, 60, 30, battery},
}

// Sprite returns the pictures of one of Kennel's own sprites: face_weather_rain, _snow, _sunny and _stars for the whole display, face_battery of 60 by 30 pixels, and
// digit_0 to digit_9 of 30 by 45. It is a sprite.Source: an error that is fs.ErrNotExist if there is none of that name.
func Sprite(name string) (iter.Seq2[image.Image, error], error) {
	name = strings.ToLower(name)
	e, ok := effects[name]
	if digit, is := strings.CutPrefix(name, "digit_"); is && len(digit) == 1 && digit[0] >= '0' && digit[0] <= '9' {
		ok, e = true, effect{1, 30, 45, func(p *face.Picture, _ float32) { text(p, digit, 2, 5, 5, white) }}
	}
	if !ok {
		return nil, fs.ErrNotExist
	}
	return func(yield func(image.Image, error) bool) {
		for i := range e.frames {
			if !yield(cutOut(e.width, e.height, func(p *face.Picture) { e.draw(p, float32(i)/float32(e.frames)) }), nil) {
				return
			}
		}
	}, nil
}

// oneStep is how far two channels of a grey pixel may be apart: a step of five bits.
const oneStep = 8

// cutOut returns what a function draws, without what was there before: a pixel that it leaves alone is as white on white as it is black on black.
func cutOut(width, height int, draw func(p *face.Picture)) image.Image {
	onBlack, onWhite := &face.Picture{}, &face.Picture{}
	for i := range onWhite.Pix {
		onWhite.Pix[i] = math.MaxUint16
	}
	draw(onBlack)
	draw(onWhite)
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			b, w := face.RGBA(onBlack.Pix[y*face.Width+x]), face.RGBA(onWhite.Pix[y*face.Width+x])
			a := 255 - (w.G - b.G) // green has the most bits
			if max(b.R, b.G, b.B)-min(b.R, b.G, b.B) <= oneStep {
				b.R, b.B = b.G, b.G // grey, but for the rounding of five bits
			}
			out.SetRGBA(x, y, color.RGBA{min(b.R, a), min(b.G, a), min(b.B, a), a})
		}
	}
	return out
}

// scatter returns the i-th of numbers that look drawn, 0 to 1: the same in every picture.
func scatter(i, salt int) float32 {
	v := math.Sin(float64(i)*12.9898+float64(salt)*78.233) * 43758.5453
	return float32(v - math.Floor(v))
}

// rain draws drops that fall aslant.
func rain(p *face.Picture, turn float32) {
	const drops, way = 26, face.Height + 30
	for i := range drops {
		falls := 1 + float32(i%2) // times in all pictures: whole ones, so that the last leads to the first
		at := scatter(i, 2) + falls*turn
		at -= float32(math.Floor(float64(at)))
		y := at*way - 20
		x := scatter(i, 1)*(face.Width+30) - at*16
		fill(p, blue, bar(x, y, x-2.4, y+11, 1.2))
	}
}

// snow draws flakes that sink and sway.
func snow(p *face.Picture, turn float32) {
	const flakes, way = 22, face.Height + 20
	ice := color.RGBA{214, 232, 255, 255}
	for i := range flakes {
		at := scatter(i, 2) + turn
		at -= float32(math.Floor(float64(at)))
		sway := float32(math.Sin(2 * math.Pi * (float64(turn) + float64(scatter(i, 3)))))
		fill(p, ice, disc(scatter(i, 1)*face.Width+4*sway, at*way-10, 1.4+1.8*scatter(i, 4)))
	}
}

// rays draws a corner of a sun that turns.
func rays(p *face.Picture, turn float32) {
	const x, y, r, count = face.Width - 6, 4, 20, 12
	fill(p, yellow, disc(x, y, r))
	for i := range count {
		s, c := math.Sincos(2 * math.Pi * (float64(i) + float64(turn)) / count)
		dx, dy := float32(c), float32(s)
		long := r + 16 + 5*float32(math.Sin(2*math.Pi*(float64(turn)+float64(i)/3)))
		fill(p, yellow, bar(x+dx*(r+6), y+dy*(r+6), x+dx*long, y+dy*long, 2.2))
	}
}

// twinkle draws stars that grow and fade, in grey: they have the colour of the eyes.
func twinkle(p *face.Picture, turn float32) {
	const stars = 14
	for i := range stars {
		size := float32(math.Sin(2 * math.Pi * (float64(turn) + float64(scatter(i, 3)))))
		if size <= 0.1 {
			continue
		}
		star(p, 6+scatter(i, 1)*(face.Width-12), 4+scatter(i, 2)*(face.Height/2-8), 5*size)
	}
}

// battery draws a battery that fills, in grey.
func battery(p *face.Picture, turn float32) {
	fill(p, white, rounded(28, 15, 27, 14, 5).without(rounded(28, 15, 24, 11, 3)))
	fill(p, white, rounded(57, 15, 2.5, 6, 2))
	const cells = 4
	for i := range min(int(turn*(cells+1)), cells) {
		fill(p, white, rounded(10+12*float32(i), 15, 4.5, 8, 1.5))
	}
}
