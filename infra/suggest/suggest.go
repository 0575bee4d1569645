// Package suggest finds the names that a misspelled one may have meant.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

const (
	maxEdits = 2 // letters that are missing, wrong, too many, or swapped
	most     = 3 // names that are suggested
)

// Names returns up to three of known that s may mean, the closest first: those within two edits, in any case, and those that are s with one part left out
// (volume, master_volume). A short s has to be closer: at most half of its letters may be edited.
func Names(s string, known []string) []string {
	type candidate struct {
		name  string
		edits int
	}
	var near []candidate
	low := strings.ToLower(s)
	for _, k := range known {
		switch d := distance(low, strings.ToLower(k)); {
		case d <= maxEdits && 2*d <= len(s):
			near = append(near, candidate{k, d})
		case shortened(low, strings.ToLower(k)):
			near = append(near, candidate{k, maxEdits + 1})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.edits, b.edits) })
	var out []string
	for _, c := range near[:min(len(near), most)] {
		out = append(out, c.name)
	}
	return out
}

// DidYouMean returns the end of an error about s, such as "; did you mean robots or robot?"; "" if nothing is close.
func DidYouMean(s string, known []string) string {
	near := Names(s, known)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + Or(near) + "?"
}

// Or joins words: "a, b or c".
func Or(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// shortened reports whether s, of four letters or more, is name without its beginning and end, or without a part in between.
func shortened(s, name string) bool {
	if len(s) < 4 || len(s) >= len(name) {
		return false
	}
	same := 0
	for same < len(s) && s[same] == name[same] {
		same++
	}
	return strings.Contains(name, s) || strings.HasSuffix(name, s[same:])
}

// distance returns the number of edits between a and b; a swap of neighbours is one.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
