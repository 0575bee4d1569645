package alert

import "math"

// confidence is the one-sided standard normal quantile of 99.9 %: every release is compared every few seconds, so that one false alarm in twenty would be one each minute.
const confidence = 3.09

// wilson returns the Wilson score interval of a proportion, x of n:
//
//	(p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n),  p = x/n
//
// Each bound alone has the confidence z. Without any, the interval is 0 to 1.
func wilson(x, n int, z float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	p, m := float64(min(x, n))/float64(n), float64(n)
	mid, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (mid-half)/(1+z*z/m)), min(1, (mid+half)/(1+z*z/m))
}

// excess returns by how much the share x1 of n1 is above x2 of n2, and the lower bound of that difference by Newcombe's hybrid score method (1998, method 10):
//
//	p1 − p2 − √((p1 − l1)² + (u2 − p2)²)
//
// with l1 the lower Wilson bound of p1, and u2 the upper one of p2. A bound above 0 means that the first share is higher, whatever small samples do by chance. Without
// others to compare with, the bound is negative.
func excess(x1, n1, x2, n2 int) (by, low float64) {
	if n1 <= 0 || n2 <= 0 {
		return 0, -1
	}
	p1, p2 := float64(min(x1, n1))/float64(n1), float64(min(x2, n2))/float64(n2)
	l1, _ := wilson(x1, n1, confidence)
	_, u2 := wilson(x2, n2, confidence)
	return p1 - p2, p1 - p2 - math.Hypot(p1-l1, u2-p2)
}
