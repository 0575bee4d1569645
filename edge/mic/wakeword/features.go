package wakeword

import (
	"math"

	"kennel/edge/mic/fft"
)

// Sizes of the features: mel cepstra each 10 ms, as is usual in the field.
const (
	rate     = 16000
	hop      = 160
	span     = 400 // 25 ms
	points   = 512
	mels     = 24
	ceps     = 12       // without the first, which is loudness
	raw      = ceps + 1 // with it
	dims     = 2*ceps + 1
	look     = 2 // frames on each side of a difference
	melLow   = 120.0
	melHigh  = 5500.0
	powerMin = 2e4 // of a filter: below it is the noise of a quiet room
	meanSpan = 60. // frames in which the mean follows the channel
)

type vector = [dims]float32

// features makes one vector of each 160 samples. The mean of the cepstra is taken away as it is so far: microphone and room are in it.
type features struct {
	plan    *fft.Plan
	hamming [span]float32
	filter  [points/2 + 1]struct { // of a bin: the filter that it rises in, and how far; the rest is in the one before
		mel  int
		rise float32
	}
	cosine [raw][mels]float32

	samples [points]float32 // the newest span of them
	have    int
	frames  uint64 // raw vectors so far
	past    [2*look + 1][raw]float32
	mean    [raw]float32
	bins    []complex64
	time    []float32
}

func mel(hz float64) float64 { return 1127 * math.Log(1+hz/700) }

func newFeatures() *features {
	f := &features{plan: fft.New(points), bins: make([]complex64, points/2+1), time: make([]float32, points)}
	for i := range f.hamming {
		f.hamming[i] = float32(0.54 - 0.46*math.Cos(2*math.Pi*float64(i)/(span-1)))
	}
	low, step := mel(melLow), (mel(melHigh)-mel(melLow))/(mels+1)
	for k := range f.filter {
		at := (mel(float64(k)*rate/points) - low) / step
		f.filter[k].mel, f.filter[k].rise = int(math.Floor(at)), float32(at-math.Floor(at))
	}
	for c := range f.cosine {
		for m := range f.cosine[c] {
			f.cosine[c][m] = float32(math.Cos(math.Pi*float64(c)*(float64(m)+0.5)/mels) * math.Sqrt(2.0/mels))
		}
	}
	return f
}

// reset forgets all samples. mean is the first estimate of the channel.
func (f *features) reset(mean *[raw]float32) { f.have, f.frames, f.mean = 0, 0, *mean }

// feed takes 160 samples and fills v; false: there are not enough yet. v is of the frame that began lag samples before the end of these.
func (f *features) feed(samples []int16, v *vector) bool {
	if f.have == span {
		copy(f.samples[:], f.samples[hop:span])
		f.have = span - hop
	}
	for _, s := range samples[:min(hop, span-f.have)] { // the first frame takes three hops
		f.samples[f.have] = float32(s)
		f.have++
	}
	if f.have < span {
		return false
	}
	f.cepstra(&f.past[f.frames%uint64(len(f.past))])
	if f.frames++; f.frames < uint64(len(f.past)) {
		return false
	}
	at := func(i int) *[raw]float32 {
		return &f.past[(f.frames-uint64(len(f.past))+uint64(i))%uint64(len(f.past))]
	}
	mid := at(look)
	for c := range ceps {
		v[c] = mid[c+1] - f.mean[c+1]
	}
	for c := range raw {
		v[ceps+c] = (at(look + 1)[c] - at(look - 1)[c] + 2*(at(look + 2)[c]-at(look - 2)[c])) / 5 * 2
	}
	loud := mid[0] > f.mean[0]
	f.mean[0] += (mid[0] - f.mean[0]) / meanSpan
	for c := 1; loud && c < raw; c++ {
		f.mean[c] += (mid[c] - f.mean[c]) / meanSpan
	}
	return true
}

// lag is how long before the end of the samples the frame of a vector ends, in samples.
const lag = look * hop

func (f *features) cepstra(out *[raw]float32) {
	last := f.samples[0]
	for i, w := range f.hamming {
		f.time[i] = (f.samples[i] - 0.95*last) * w
		last = f.samples[i]
	}
	clear(f.time[span:])
	f.plan.Forward(f.bins, f.time)
	var power [mels + 2]float32
	for k, b := range f.bins {
		t := &f.filter[k]
		if t.mel < 0 || t.mel > mels {
			continue
		}
		p := real(b)*real(b) + imag(b)*imag(b)
		power[t.mel] += p * (1 - t.rise) // falls out of this one
		power[t.mel+1] += p * t.rise
	}
	var logs [mels]float32
	for m := range logs {
		logs[m] = float32(math.Log(float64(power[m+1]) + powerMin))
	}
	for c := range out {
		sum := float32(0)
		for m, w := range f.cosine[c] {
			sum += w * logs[m]
		}
		out[c] = sum
	}
}
