// Package suggest finds the name that a misspelled one may have meant.
package suggest

import "strings"

// Name returns the first name in known that contains s, else the name with the smallest edit distance to s; "" if known is empty.
func Name(s string, known []string) string {
	for _, k := range known {
		if strings.Contains(k, s) {
			return k
		}
	}
	best, at := 0, ""
	for i, k := range known {
		if d := distance(s, k); i == 0 || d < best {
			best, at = d, k
		}
	}
	return at
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			prev, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, prev+cost)
		}
	}
	return row[len(b)]
}
