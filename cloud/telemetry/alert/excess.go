package alert

import "kennel/infra/proportion"

// confidence is the one-sided standard normal quantile of 99.9 %: every release is compared every few seconds, so that one false alarm in twenty would be one each minute.
const confidence = 3.09

// excess returns by how much the share x1 of n1 is above x2 of n2, and the lower bound of that difference. Without others to compare with, the bound is negative.
func excess(x1, n1, x2, n2 int) (by, low float64) {
	if n1 <= 0 || n2 <= 0 {
		return 0, -1
	}
	low, _ = proportion.Difference(x1, n1, x2, n2, confidence)
	return float64(min(x1, n1))/float64(n1) - float64(min(x2, n2))/float64(n2), low
}
