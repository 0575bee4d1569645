package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Pair holds the results of one turn of a measurement and of its reference.
type Pair struct {
	Value     float64 `json:"value"`
	Reference float64 `json:"reference"`
}

// Line describes a measurement apart from its numbers.
type Line struct {
	Name  string
	Unit  string
	Less  bool // less is better, as for latency and memory
	Bound float64
	Note  string
}

// ratio is above 1 where the value is better than the reference; 0 without a reference.
func (l Line) ratio(p Pair) float64 {
	if p.Value <= 0 || p.Reference <= 0 {
		return 0
	}
	if l.Less {
		return p.Reference / p.Value
	}
	return p.Value / p.Reference
}

// Result reports the medians: of the values, of the references and of the pairs' ratios.
func (l Line) Result(pairs []Pair) Result {
	var values, references, ratios []float64
	for _, p := range pairs {
		values, references, ratios = append(values, p.Value), append(references, p.Reference), append(ratios, l.ratio(p))
	}
	return Result{Name: l.Name, Unit: l.Unit, Bound: l.Bound, Note: l.Note, Pairs: pairs,
		Value: Median(values), Reference: Median(references), Ratio: Median(ratios)}
}

// Pairs runs value and reference in turn, n times each.
func Pairs(ctx context.Context, n int, value, reference func(context.Context) (float64, error)) ([]Pair, error) {
	out := make([]Pair, 0, n)
	for i := range n {
		v, err := value(ctx)
		if err != nil {
			return out, fmt.Errorf("turn %d: %w", i+1, err)
		}
		r, err := reference(ctx)
		if err != nil {
			return out, fmt.Errorf("reference of turn %d: %w", i+1, err)
		}
		out = append(out, Pair{v, r})
	}
	return out, nil
}

// Median of xs; 0 if there are none. xs keeps its order.
func Median(xs []float64) float64 { return Percentile(xs, 50) }

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
