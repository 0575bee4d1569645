package camera

import (
	"image"
	"math"
	"math/rand/v2"
	"time"
)

// Exposure is how a picture is taken. Time 0 is automatic, also for the gain.
type Exposure struct {
	Time time.Duration
	Gain float64
}

// Limits of an exposure; own defaults: the longest is the time between two pictures at 15 a second.
const (
	Shortest  = time.Millisecond
	Longest   = 66 * time.Millisecond
	LeastGain = 0.1
	MostGain  = 4.0
)

// The automatic exposure brings the light of the middle pixel, by brightness, to this level (part of VEC-VIS-11: TargetPercentile, TargetValue; own
// defaults).
const (
	targetPercentile = 0.5
	targetLevel      = 0.18 // of saturation; 117 of 255
)

// saturation is the time in which light of 1 fills a pixel with gain 1, in an ordinary room.
const saturation = 20 * time.Millisecond

// meter returns the exposure for the light of the picture: a longer time first, then more gain.
func (c *Camera) meter() Exposure {
	want := targetLevel / c.level(targetPercentile) // time by gain, in units of saturation
	t := min(max(want*float64(saturation), float64(Shortest)), float64(Longest))
	gain := min(max(want*float64(saturation)/t, LeastGain), MostGain)
	return Exposure{time.Duration(t).Round(10 * time.Microsecond), math.Round(gain*100) / 100}
}

// levels is how finely light is counted.
const levels = 4096

// curve is the tone curve, from counted light to a byte.
var curve = func() (c [levels]uint8) {
	for i := range c {
		c[i] = uint8(math.Round(255 * math.Pow(float64(i)/(levels-1), 1/2.2)))
	}
	return c
}()

// The noise of a pixel, in electrons (own defaults).
const (
	well = 6000.0 // at saturation with gain 1
	read = 8.0    // of the amplifier
)

// bell has samples of a normal distribution, of deviation 1.
var bell = func() (b [4096]float32) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = float32(r.NormFloat64())
	}
	return b
}()

// develop makes bytes of the light.
func (c *Camera) develop(img *image.YCbCr, e Exposure, number uint64) {
	scale := float32(float64(e.Time) / float64(saturation) * e.Gain * (levels - 1))
	var spread [levels >> 6]float32 // deviation of the noise by level
	for i := range spread {
		electrons := (float64(i) + 0.5) / float64(len(spread)) * well / e.Gain
		spread[i] = float32(math.Sqrt(electrons+read*read) * e.Gain / well * (levels - 1))
	}
	w := c.lens.Width
	for y := range c.lens.Height {
		rng := mix(c.seed ^ mix(number) ^ uint64(y)<<40)
		in, out := c.light[y*w:][:w], img.Y[y*img.YStride:][:w]
		for x, l := range in {
			rng ^= rng << 13
			rng ^= rng >> 7
			rng ^= rng << 17
			v := min(l*scale, levels-1)
			v += spread[int(v)>>6] * bell[rng>>32&(uint64(len(bell))-1)]
			out[x] = curve[int(min(max(v, 0), levels-1))]
		}
		if y&1 != 0 {
			continue
		}
		cb, cr := img.Cb[y/2*img.CStride:], img.Cr[y/2*img.CStride:]
		for x, t := range c.tints[y/2*(w/2):][:w/2] {
			bright := float32(out[2*x])
			cb[x], cr[x] = uint8(128+bright*t[0]), uint8(128+bright*t[1])
		}
	}
}

// mix spreads a number over 64 bits; never 0.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31 | 1
}
