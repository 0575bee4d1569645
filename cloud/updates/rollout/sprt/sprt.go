// Package sprt has the statistics behind the guards of a rollout: mixture sequential probability ratio tests, which may be looked at after every
// observation without raising the rate of false alarms (Wald 1945; Johari et al. 2022; Lindon et al. 2022). All functions are pure.
//
// A test accumulates evidence that robots with an update fare worse, as a likelihood ratio averaged over the hypotheses of Ratios. If the update is
// harmless, the probability that the evidence ever reaches x is at most 1/x (Ville's inequality), however often anyone looks.
package sprt

import "math"

// Ratios are the hypotheses of harm: an updated robot turns bad this many times as often as one without the update.
var Ratios = [4]float64{2, 5, 20, 100}

// Test is a running test. The zero value has seen nothing. It is not safe for concurrent use.
type Test [4]float64 // natural logarithms of the likelihood ratios, by hypothesis

// Bad adds one robot that turned bad. updated reports whether it has the update; q is the share of updated robots among all that could have turned bad at
// that time, from 0 to 1. With q 0 or 1 there is nothing to compare with, and the robot adds nothing.
func (t *Test) Bad(updated bool, q float64) {
	if q <= 0 || q >= 1 {
		return
	}
	for i, r := range Ratios {
		likelihood := 1.0
		if updated {
			likelihood = r
		}
		t[i] += math.Log(likelihood / (r*q + 1 - q))
	}
}

// Trials returns the test of n attempts of which bad ended badly, against the hypothesis that at most a share p0 of them does, with 0 < p0 < 1. A hypothesis
// of Ratios that exceeds certainty counts as 99 %.
func Trials(bad, n int, p0 float64) (t Test) {
	for i, r := range Ratios {
		p := max(min(r*p0, 0.99), p0)
		t[i] = float64(bad)*math.Log(p/p0) + float64(n-bad)*math.Log((1-p)/(1-p0))
	}
	return t
}

// Evidence returns the averaged likelihood ratio: 1 at the beginning, above 1 if the observations speak for harm. It stays within what JSON can hold.
func (t *Test) Evidence() float64 {
	e := 0.0
	for _, l := range t {
		e += math.Exp(min(l, 600)) / float64(len(t))
	}
	return e
}

// Hidden returns the share of robots that could turn bad although none of n did, with a probability of 5 %.
func Hidden(n int) float64 { return 1 - math.Pow(0.05, 1/float64(max(n, 1))) }
