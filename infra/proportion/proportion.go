// Package proportion has intervals for shares of robots and for differences between shares, which say what small samples leave plausible: Wilson's score
// interval (1927), and Newcombe's hybrid of two of them (1998, method 10). Rollouts, alerts and the health of versions compare with them.
package proportion

import "math"

// Z is the normal quantile of 97.5 %: with it, 95 % lie between both bounds.
const Z = 1.96

// Share returns the interval of a share, x of n:
//
//	(p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n),  p = x/n
//
// Each bound alone has the confidence of the normal quantile z. Without any, the interval is 0 to 1.
func Share(x, n int, z float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	p, m := of(x, n), float64(n)
	mid, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (mid-half)/(1+z*z/m)), min(1, (mid+half)/(1+z*z/m))
}

// Difference returns the interval of the difference p1 − p2 of the shares x1 of n1 and x2 of n2:
//
//	p1 − p2 − √((p1 − l1)² + (u2 − p2)²) to p1 − p2 + √((u1 − p1)² + (p2 − l2)²)
//
// with the bounds l and u of each share. A lower bound above 0 means that the first share is higher, whatever small samples do by chance. Without both to
// compare, the interval is −1 to 1.
func Difference(x1, n1, x2, n2 int, z float64) (low, high float64) {
	if n1 <= 0 || n2 <= 0 {
		return -1, 1
	}
	p1, p2 := of(x1, n1), of(x2, n2)
	l1, u1 := Share(x1, n1, z)
	l2, u2 := Share(x2, n2, z)
	return p1 - p2 - math.Hypot(p1-l1, u2-p2), p1 - p2 + math.Hypot(u1-p1, p2-l2)
}

func of(x, n int) float64 { return float64(min(x, n)) / float64(n) }
