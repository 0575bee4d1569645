package bench

import (
	"math"
	"slices"
)

// Median of xs; 0 if there are none. xs keeps its order.
func Median(xs []float64) float64 { return Percentile(xs, 50) }

// Mean of xs; 0 if there are none.
func Mean(xs []float64) (mean float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	return mean
}

// Percentile returns the value below which p percent of xs lie, between neighbours in proportion; 0 if there are none.
func Percentile(xs []float64, p float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	at := p / 100 * float64(len(s)-1)
	low := min(max(int(math.Floor(at)), 0), len(s)-1)
	high := min(low+1, len(s)-1)
	return s[low] + (s[high]-s[low])*(at-float64(low))
}

// Slope returns the slope of the line closest to the points (least squares): what one more x costs in y. It needs two different x.
func Slope(xs, ys []float64) float64 {
	n := float64(len(xs))
	var sx, sy, sxx, sxy float64
	for i, x := range xs {
		sx, sy, sxx, sxy = sx+x, sy+ys[i], sxx+x*x, sxy+x*ys[i]
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
