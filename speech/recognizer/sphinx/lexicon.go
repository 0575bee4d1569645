package sphinx

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// token matches the parts of a grammar in lower case: header, rule names, weights, tags, and words.
var token = regexp.MustCompile(`(?m)^(?:#JSGF|grammar|language)[^;]*;|<[^>]*>|/[0-9.]+/|\{[^}]*\}|\bpublic\s+<[^>]*>|[\p{L}\p{N}][\p{L}\p{M}\p{N}'_.-]*`)

// unsaid is a sound that no speaker makes, the pronunciation of words that no dictionary has. A grammar with a word without pronunciation is refused, and
// <VOID> in one place makes all of it impossible.
var unsaid = strings.TrimSpace(strings.Repeat("ZH OY ", 12))

// lexicon returns the entries of the dictionaries for the words of a grammar, and the words that none of them has. The first dictionary that
// has a word wins.
func lexicon(grammar string, dicts ...string) (dict string, unknown []string) {
	missing := map[string]bool{}
	for _, t := range token.FindAllString(grammar, -1) {
		if !strings.ContainsAny(t[:1], "#</{") && !strings.HasPrefix(t, "public ") && !strings.HasSuffix(t, ";") {
			missing[t] = true
		}
	}
	var b strings.Builder
	for _, d := range dicts {
		found := map[string]bool{}
		for line := range strings.Lines(d) {
			entry, _, ok := strings.Cut(line, " ")
			word, _, _ := strings.Cut(entry, "(")
			if ok && missing[word] {
				b.WriteString(strings.TrimRight(line, "\r\n") + "\n")
				found[word] = true
			}
		}
		for w := range found {
			delete(missing, w)
		}
	}
	unknown = slices.Sorted(maps.Keys(missing))
	for _, w := range unknown {
		b.WriteString(w + " " + unsaid + "\n")
	}
	return b.String(), unknown
}
