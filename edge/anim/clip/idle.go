package clip

import (
	"math"
	"time"

	"kennel/edge/face"
)

// The times and sizes of a face at rest; our own defaults (part of VEC-FCE-02 proposes those of blinks).
const (
	blinkEvery  = 4 * time.Second // one in each such time, 3 to 5 s apart
	blinkSpread = time.Second
	blinkClose  = 100 * time.Millisecond
	blinkOpen   = 120 * time.Millisecond

	dartEvery  = 1100 * time.Millisecond
	dartTakes  = 60 * time.Millisecond
	dartX      = 7.0 // pixels
	dartY      = 4.0
	gazeHot    = 0.3 // of the hot spot, at the largest dart
	breath     = 5 * time.Second
	breathSize = 0.02
)

// random returns a number of 0 to 1 that only its arguments decide.
func random(seed, n uint64) float64 {
	x := seed + n*0x9e3779b97f4a7c15 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// smooth returns how far a motion is that begins and ends gently, for a share t of its time.
func smooth(t float64) float64 {
	t = min(max(t, 0), 1)
	return t * t * (3 - 2*t)
}

// KeepAlive returns the layer that keeps a face without a clip alive at a time: it blinks, looks about and breathes. Nothing but seed and time decides, so that
// a robot can be asked for any time, in any order. look, if not nil, is where the eyes look instead of about: pixels to the right of and below the middle, where
// a face was seen.
func KeepAlive(seed uint64, now time.Duration, look *[2]float32) face.Params {
	p := face.Neutral
	now = max(now, 0)

	x, y := 0.0, 0.0
	if look != nil {
		x, y = float64(look[0]), float64(look[1])
	} else {
		k := uint64(now / dartEvery)
		share := smooth(float64(now%dartEvery) / float64(dartTakes))
		from, to := dart(seed, k), dart(seed, k+1)
		x, y = from[0]+(to[0]-from[0])*share, from[1]+(to[1]-from[1])*share
	}
	p.Whole[face.CenterX], p.Whole[face.CenterY] = float32(x), float32(y)
	for _, e := range [...]*face.Eye{&p.Left, &p.Right} {
		e[face.HotSpotCenterX], e[face.HotSpotCenterY] = float32(min(max(x/dartX, -1), 1)*gazeHot), float32(min(max(y/dartY, -1), 1)*gazeHot)
	}

	shut := blink(seed, now)
	p.Whole[face.ScaleX] = float32(1 + 0.08*shut)
	p.Whole[face.ScaleY] = float32((1 + breathSize*math.Sin(2*math.Pi*float64(now%breath)/float64(breath))) * (1 - 0.93*shut))
	return p
}

// dart returns where the eyes look in one time between darts, in pixels.
func dart(seed, k uint64) [2]float64 {
	if random(seed, 5*k) < 0.4 {
		return [2]float64{} // often straight ahead
	}
	return [2]float64{(2*random(seed, 5*k+1) - 1) * dartX, (2*random(seed, 5*k+2) - 1) * dartY}
}

// blink returns how far the eyes are shut, 0 to 1.
func blink(seed uint64, now time.Duration) float64 {
	k := uint64(now / blinkEvery)
	at := now%blinkEvery - time.Duration(random(seed, 5*k+3)*float64(blinkSpread))
	switch {
	case at < 0 || at > blinkClose+blinkOpen:
		return 0
	case at < blinkClose:
		return smooth(float64(at) / float64(blinkClose))
	}
	return 1 - smooth(float64(at-blinkClose)/float64(blinkOpen))
}
