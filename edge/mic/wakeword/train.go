package wakeword

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"kennel/infra/wav"
)

// Settings of the training.
const (
	perState   = 5 // frames of the word
	perGauss   = 12
	mostEach   = 2
	others     = 48
	mostRest   = 20_000 // vectors of other sounds: more change little
	rounds     = 8
	leastWidth = 0.7 // of a Gaussian, in widths of all frames
	quieter    = 26  // dB under the loudest frame the word begins and ends
	quietest   = 50  // of the loudest frame, mean square
	strict     = 0.3 // where the threshold is between what 98 % of other speech reach (0) and 90 % of the word (1)
)

// Train makes a model of a word from recordings of it, each with a little quiet before and after, and from other sounds: speech without the word.
// All are samples of 16 kHz. The more voices the better: it takes at least 3 recordings, and some seconds of other speech.
func Train(word string, said, other [][]int16) (*Model, error) {
	if len(said) < 3 || len(other) == 0 {
		return nil, fmt.Errorf("train wake word: %d recordings of it and %d of other speech; want at least 3 and 1", len(said), len(other))
	}
	said, other = vary(said), vary(other)
	m := &Model{Word: word, threshold: 1, mean: meanOf(said)}
	var words [][]vector
	var rest []vector
	lengths := []int{}
	for i, s := range said {
		all := m.vectors(s)
		from, to := spoken(s, len(all))
		if to-from < shortest || to-from > longest {
			return nil, fmt.Errorf("train wake word: recording %d: the word takes %v s; want %v to %v s, with silence around it", i+1,
				float64(to-from)*hop/rate, float64(shortest)*hop/rate, float64(longest)*hop/rate)
		}
		words = append(words, all[from:to])
		rest = append(append(rest, all[:from]...), all[to:]...)
		lengths = append(lengths, to-from)
	}
	for _, s := range other {
		rest = append(rest, m.vectors(s)...)
	}
	if len(rest) < 4*others {
		return nil, errors.New("train wake word: want a few seconds of other speech")
	}
	slices.Sort(lengths)
	m.states = min(max(lengths[len(lengths)/2]/perState, 6), maxStates, lengths[0])
	m.each = min(max(len(said)*lengths[0]/m.states/perGauss, 1), mostEach)
	width := widthOf(append(slices.Concat(words...), rest...))
	m.other = mix(thin(rest, mostRest), others, &width)
	for round := range rounds {
		parts := make([][]vector, m.states)
		for _, w := range words {
			for i, state := range m.align(w, round == 0) {
				parts[state] = append(parts[state], w[i])
			}
		}
		m.word = m.word[:0]
		for _, p := range parts {
			g := mix(p, m.each, &width)
			for len(g) < m.each {
				g = append(g, g[0])
			}
			m.word = append(m.word, g...)
		}
	}
	m.judge(said, other)
	return m, nil
}

// throats are how much longer or shorter the vocal tracts of other speakers are.
var throats = []float64{0.9, 1.1}

// vary adds each recording as other people would say it.
func vary(all [][]int16) [][]int16 {
	out := slices.Clone(all)
	for _, s := range all {
		for _, by := range throats {
			w := &wav.Sound{Rate: rate, Channels: 1, Samples: s}
			out = append(out, w.Resample(int(rate*by)).Samples)
		}
	}
	return out
}

// thin returns at most n of all, evenly.
func thin(all []vector, n int) (out []vector) {
	every := len(all)/n + 1
	for i := 0; i < len(all); i += every {
		out = append(out, all[i])
	}
	return out
}

// judge sets the threshold.
func (m *Model) judge(said, other [][]int16) {
	s := NewSpotter(m)
	var is []float64
	for _, w := range said {
		is = append(is, s.mostLikely(w))
	}
	slices.Sort(is)
	var isNot []float64
	for _, o := range other {
		isNot = append(isNot, s.mostLikely(o))
	}
	slices.Sort(isNot)
	low, high := is[len(is)/10], isNot[len(isNot)*98/100]
	m.threshold = float32(max(high+strict*(low-high), low/2, 0.01))
}

// meanOf is the mean of the cepstra of all recordings.
func meanOf(said [][]int16) (mean [raw]float32) {
	f := newFeatures()
	n := float32(0)
	for _, s := range said {
		f.reset(&[raw]float32{})
		var v vector
		for ; len(s) >= hop; s = s[hop:] {
			if f.feed(s[:hop], &v) {
				n++
				for c := range mean {
					mean[c] += (f.past[(f.frames-1)%uint64(len(f.past))][c] - mean[c]) / n
				}
			}
		}
	}
	return mean
}

// vectors are the features of a recording.
func (m *Model) vectors(s []int16) (out []vector) {
	f := newFeatures()
	f.reset(&m.mean)
	for ; len(s) >= hop; s = s[hop:] {
		var v vector
		if f.feed(s[:hop], &v) {
			out = append(out, v)
		}
	}
	return out
}

// spoken returns the frames of a recording in which the word is.
func spoken(s []int16, frames int) (from, to int) {
	loud := make([]float64, frames)
	most := 0.0
	for i := range loud {
		at := (i + look) * hop
		for _, v := range s[at:min(at+span, len(s))] {
			loud[i] += float64(v) * float64(v)
		}
		most = max(most, loud[i])
	}
	if most < span*quietest*quietest {
		return 0, 0 // nothing is said
	}
	least := most * math.Pow(10, -quieter/10.0)
	for from < frames && loud[from] < least {
		from++
	}
	to = frames
	for to > from && loud[to-1] < least {
		to--
	}
	return from, to
}

// align gives each frame of a word its state: evenly at first, then on the best path.
func (m *Model) align(w []vector, evenly bool) []int {
	out := make([]int, len(w))
	if evenly {
		for i := range out {
			out[i] = i * m.states / len(w)
		}
		return out
	}
	score := make([]float32, m.states)
	came := make([][]bool, len(w)) // from the state before
	for i := range score {
		score[i] = never
	}
	for t := range w {
		came[t] = make([]bool, m.states)
		for i := m.states - 1; i >= 0; i-- {
			from := never
			if i > 0 {
				from = score[i-1] + advance
			} else if t == 0 {
				from = 0
			}
			score[i] += stay
			if came[t][i] = from > score[i]; came[t][i] {
				score[i] = from
			}
			score[i] += best(m.word[i*m.each:(i+1)*m.each], &w[t])
		}
	}
	state := m.states - 1
	for t := len(w) - 1; t >= 0; t-- {
		out[t] = state
		if came[t][state] && state > 0 {
			state--
		}
	}
	return out
}

// widthOf is the variance of all vectors.
func widthOf(all []vector) (width vector) {
	var sum, squares [dims]float64
	for _, v := range all {
		for i, x := range v {
			sum[i] += float64(x)
			squares[i] += float64(x) * float64(x)
		}
	}
	n := float64(len(all))
	for i := range width {
		width[i] = float32(squares[i]/n - sum[i]/n*sum[i]/n)
	}
	return width
}

// mix fits Gaussians to the vectors: the nearest means, found by splitting the greatest group again and again.
func mix(all []vector, n int, width *vector) []gauss {
	n = max(1, min(n, len(all)/2))
	means := []vector{middle(all)}
	group := make([]int, len(all))
	for {
		for range 4 {
			for i := range all {
				group[i] = nearest(means, &all[i], width)
			}
			for g := range means {
				if part := pick(all, group, g); len(part) > 0 {
					means[g] = middle(part)
				}
			}
		}
		if len(means) == n {
			break
		}
		most, at := -1.0, 0
		for g := range means {
			if s := scatter(pick(all, group, g), &means[g], width); s > most {
				most, at = s, g
			}
		}
		a, b := means[at], means[at]
		part := widthOf(pick(all, group, at))
		for i := range a {
			d := float32(math.Sqrt(math.Max(float64(part[i]), 0))) / 2
			a[i], b[i] = a[i]+d, b[i]-d
		}
		means[at] = a
		means = append(means, b)
	}
	var out []gauss
	for g := range means {
		part := pick(all, group, g)
		if len(part) == 0 {
			continue
		}
		w := widthOf(part)
		one := gauss{mean: means[g]}
		bias := math.Log(float64(len(part)) / float64(len(all)))
		for i := range w {
			// Few vectors say little of the width: it is pulled toward the one of all.
			v := (float64(w[i])*float64(len(part)) + 5*float64(width[i])) / float64(len(part)+5)
			v = max(v, leastWidth*leastWidth*float64(width[i]), 1e-6)
			one.inverse[i] = float32(0.5 / v)
			bias -= 0.5 * math.Log(v)
		}
		one.bias = float32(bias)
		out = append(out, one)
	}
	return out
}

func pick(all []vector, group []int, g int) (out []vector) {
	for i := range all {
		if group[i] == g {
			out = append(out, all[i])
		}
	}
	return out
}

func middle(all []vector) (m vector) {
	for n, v := range all {
		for i, x := range v {
			m[i] += (x - m[i]) / float32(n+1)
		}
	}
	return m
}

func distance(a, b, width *vector) (sum float32) {
	for i := range a {
		d := a[i] - b[i]
		sum += d * d / width[i]
	}
	return sum
}

func nearest(means []vector, v, width *vector) (at int) {
	least := float32(math.Inf(1))
	for g := range means {
		if d := distance(&means[g], v, width); d < least {
			least, at = d, g
		}
	}
	return at
}

func scatter(all []vector, mean, width *vector) (sum float64) {
	for i := range all {
		sum += float64(distance(&all[i], mean, width))
	}
	return sum
}
