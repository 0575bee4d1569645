package intent

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// The weights of the language model. Ours: tried with the sentences of testdata, spoken by the voices of recognizertest.Voices.
const (
	optional = 0.3  // how often [words] are said
	filled   = 0.35 // how often something is said before a wish, or after it, that does not change it
	listened = 3    // how much more often people say what the grammar has too
	byThree  = 0.6  // the share of trigrams,
	byTwo    = 0.8  // of bigrams in the rest,
	byOne    = 0.85 // and of words of the patterns in the rest of that; the others are of general English
	rare     = 1e-6 // a sequence that is said less often is left out
)

// walk is a pattern as an automaton in which each step has a probability.
type walk struct {
	words []string
	next  []map[int]float64 // by the step before
}

// part is a piece of a walk: the steps with which it begins and ends, and how probable it is that it has none.
type part struct {
	first, last map[int]float64
	empty       float64
}

func (w *walk) leaf(words []string) part {
	p := part{first: map[int]float64{}, last: map[int]float64{}}
	for i, word := range words {
		n := len(w.words)
		w.words, w.next = append(w.words, word), append(w.next, map[int]float64{})
		if i == 0 {
			p.first[n] = 1
		} else {
			w.next[n-1][n] = 1
		}
		p.last = map[int]float64{n: 1}
	}
	return p
}

func (w *walk) join(a, b part) part {
	out := part{first: maps.Clone(a.first), last: maps.Clone(b.last), empty: a.empty * b.empty}
	for from, p := range a.last {
		for to, q := range b.first {
			w.next[from][to] += p * q
		}
		if b.empty > 0 {
			out.last[from] += p * b.empty
		}
	}
	if a.empty > 0 {
		for to, q := range b.first {
			out.first[to] += a.empty * q
		}
	}
	return out
}

// add appends a pattern to w.
func (w *walk) add(l *language, n *node) part {
	switch n.op {
	case opWord:
		if n.text[0] == '{' {
			if slot := l.slotPattern(strings.Trim(n.text, "{}")); slot != nil {
				return w.add(l, slot)
			}
			return part{empty: 1}
		}
		return w.leaf(strings.Fields(strings.ToLower(strings.ReplaceAll(n.text, "-", " "))))
	case opSeq:
		out := part{empty: 1}
		for _, k := range n.kids {
			b := w.add(l, k)
			if out.empty == 1 {
				out = b
			} else {
				out = w.join(out, b)
			}
		}
		return out
	case opOpt:
		out := w.add(l, n.kids[0])
		scale(out.first, optional)
		out.empty = 1 - optional*(1-out.empty)
		return out
	}
	out := part{first: map[int]float64{}, last: map[int]float64{}}
	for _, k := range n.kids {
		b, share := w.add(l, k), 1/float64(len(n.kids))
		for s, p := range b.first {
			out.first[s] += share * p
		}
		maps.Copy(out.last, b.last)
		out.empty += share * b.empty
	}
	return out
}

func scale(m map[int]float64, by float64) {
	for k := range m {
		m[k] *= by
	}
}

var ruleName = regexp.MustCompile(`<([a-z]+)>`)

// slotPattern returns what the grammar has for a slot; nil: nothing.
func (l *language) slotPattern(kind string) *node {
	lists := l.grammarLists()
	for name, body := range lists {
		lists[name] = ruleName.ReplaceAllString(body, "$$$1")
	}
	if lists[kind] == "" {
		return nil
	}
	n, err := parsePattern("$"+kind, lists)
	if err != nil {
		return nil
	}
	return n
}

// grams are sequences of one to three words with how often they are said.
type grams struct {
	ids   map[string]int32
	words []string
	one   map[int32]float64
	two   map[[2]int32]float64
	three map[[3]int32]float64
}

func (g *grams) id(w string) int32 {
	n, ok := g.ids[w]
	if !ok {
		n = int32(len(g.words)) //nolint:gosec // a few thousand
		g.ids[w], g.words = n, append(g.words, w)
	}
	return n
}

// The first two words of grams.
const begin, end int32 = 0, 1

// count adds the sequences of w, which is said with the probability share.
func (g *grams) count(w *walk, p part, share float64, known func(string) bool) {
	ids := make([]int32, len(w.words))
	for i, word := range w.words {
		ids[i] = -1
		if known(word) {
			ids[i] = g.id(word)
		}
	}
	visits := make([]float64, len(ids))
	for s, q := range p.first {
		visits[s] += share * q
	}
	for s := range ids { // a step follows only those before it
		for t, q := range w.next[s] {
			visits[t] += visits[s] * q
		}
	}
	for s, a := range ids {
		if a < 0 {
			continue
		}
		g.one[a] += visits[s]
		if q := share * p.first[s]; q > 0 {
			g.two[[2]int32{begin, a}] += q * (1 - filled)
			for t, r := range w.next[s] {
				if b := ids[t]; b >= 0 && q*r > rare/10 {
					g.three[[3]int32{begin, a, b}] += q * (1 - filled) * r
				}
			}
			if r := p.last[s]; r > 0 {
				g.three[[3]int32{begin, a, end}] += q * (1 - filled) * r * (1 - filled)
			}
		}
		for t, q := range w.next[s] {
			b := ids[t]
			if b < 0 {
				continue
			}
			g.two[[2]int32{a, b}] += visits[s] * q
			for u, r := range w.next[t] {
				if c := ids[u]; c >= 0 && visits[s]*q*r > rare/10 {
					g.three[[3]int32{a, b, c}] += visits[s] * q * r
				}
			}
			if r := p.last[t]; r > 0 {
				g.three[[3]int32{a, b, end}] += visits[s] * q * r * (1 - filled)
			}
		}
		if q := p.last[s]; q > 0 {
			g.one[end] += visits[s] * q * (1 - filled)
			g.two[[2]int32{a, end}] += visits[s] * q * (1 - filled)
		}
	}
}

// fill adds what may be said before and after a wish.
func (g *grams) fill(l *language, known func(string) bool) {
	starts, ends := map[int32]float64{}, map[int32]float64{}
	for k, n := range g.two {
		if k[0] == begin {
			starts[k[1]] = n / (1 - filled)
		}
		if k[1] == end {
			ends[k[0]] = n / (1 - filled)
		}
	}
	var all [][]string
	for _, w := range slices.Sorted(maps.Keys(l.fillersBy)) {
		for _, f := range l.fillersBy[w] {
			if !slices.ContainsFunc(f, func(w string) bool { return !known(w) }) {
				all = append(all, f)
			}
		}
	}
	share := filled / float64(len(all))
	for _, f := range all {
		var before [2]int32
		for i, w := range f {
			id := g.id(w)
			g.one[id] += 2 * share
			if i == 0 {
				g.two[[2]int32{begin, id}] += share
				for e, p := range ends {
					if p*share > rare/10 {
						g.two[[2]int32{e, id}] += p * share
					}
				}
			} else {
				g.two[[2]int32{before[1], id}] += 2 * share
			}
			if i == 1 {
				g.three[[3]int32{begin, before[1], id}] += share
			}
			if i > 1 {
				g.three[[3]int32{before[0], before[1], id}] += 2 * share
			}
			before = [2]int32{before[1], id}
		}
		g.one[end] += share
		g.two[[2]int32{before[1], end}] += share
		for s, p := range starts {
			if p*share > rare/10 {
				g.two[[2]int32{before[1], s}] += p * share
			}
		}
	}
}

// Means returns the intent and then in brackets the parameters of text as one word for comparison, "" if it is unmatched, and whether no word of it is left over.
func (m *Matcher) Means(text string) (meaning string, whole bool) {
	got := m.Match(text)
	if got.UserIntent == "" {
		return "", false
	}
	return fmt.Sprint(got.UserIntent, got.Params), got.Confidence == 1
}

// Model returns a language model in the ARPA format: how often people say which words, given those before. It is made of all patterns, each intent being as
// frequent as another, and of general, which has every word that the recogniser can hear and how frequent it is in general English.
func (m *Matcher) Model(general map[string]float64) string {
	g := &grams{ids: map[string]int32{"<s>": begin, "</s>": end}, words: []string{"<s>", "</s>"}, one: map[int32]float64{}, two: map[[2]int32]float64{}, three: map[[3]int32]float64{}}
	known := func(w string) bool { _, ok := general[w]; return ok }
	weights, intents := map[string]float64{}, 0.0
	for _, r := range m.rules {
		if weights[r.intent.User] == 0 {
			intents++
		}
		weights[r.intent.User] += r.weight()
	}
	for _, r := range m.rules {
		w := &walk{}
		p := w.add(m.lang, r.tree)
		g.count(w, p, r.weight()/weights[r.intent.User]/intents, known)
	}
	g.fill(m.lang, known)
	return g.arpa(general)
}

func (r rule) weight() float64 {
	if r.spoken {
		return listened
	}
	return 1
}

// arpa writes the model. A longer sequence is mixed with the shorter ones, so that all probabilities after the same words sum to 1.
func (g *grams) arpa(general map[string]float64) string {
	own, all := 0.0, 0.0
	for _, n := range g.one {
		own += n
	}
	for w, p := range general {
		if p > 0 {
			g.id(w)
			all += p
		}
	}
	one := make([]float64, len(g.words))
	for i, w := range g.words {
		one[i] = byOne * g.one[int32(i)] / own //nolint:gosec // a few thousand
		if all > 0 {
			one[i] += (1 - byOne) * general[w] / all
		}
	}
	sumTwo, sumThree := map[int32]float64{}, map[[2]int32]float64{}
	for k, n := range g.two {
		sumTwo[k[0]] += n
	}
	for k, n := range g.three {
		sumThree[[2]int32{k[0], k[1]}] += n
	}
	two := func(a, b int32) float64 {
		if sumTwo[a] == 0 {
			return one[b]
		}
		return byTwo*g.two[[2]int32{a, b}]/sumTwo[a] + (1-byTwo)*one[b]
	}
	three := func(k [3]int32) float64 {
		return byThree*g.three[k]/sumThree[[2]int32{k[0], k[1]}] + (1-byThree)*two(k[1], k[2])
	}
	maps.DeleteFunc(g.three, func(k [3]int32, n float64) bool { return n*math.Log(three(k)/two(k[1], k[2])) < rare })
	needed := map[[2]int32]bool{}
	for k := range g.three {
		needed[[2]int32{k[0], k[1]}], needed[[2]int32{k[1], k[2]}] = true, true
	}
	kept := maps.Clone(g.two)
	maps.DeleteFunc(kept, func(k [2]int32, n float64) bool {
		return !needed[k] && n*math.Log(two(k[0], k[1])/one[k[1]]) < rare
	})
	hasThree := map[[2]int32]bool{}
	for k := range g.three {
		hasThree[[2]int32{k[0], k[1]}] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\\data\\\nngram 1=%d\nngram 2=%d\nngram 3=%d\n\n\\1-grams:\n", len(g.words), len(kept), len(g.three))
	log := func(p float64) float64 { return math.Log10(max(p, 1e-9)) }
	for i, w := range g.words {
		back, p := 0.0, log(one[i])
		if sumTwo[int32(i)] > 0 { //nolint:gosec // a few thousand
			back = log(1 - byTwo)
		}
		if i == int(begin) {
			p = -99
		}
		fmt.Fprintf(&b, "%.4f %s %.4f\n", p, w, back)
	}
	b.WriteString("\n\\2-grams:\n")
	for _, k := range slices.SortedFunc(maps.Keys(kept), func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) }) {
		back := 0.0
		if hasThree[k] {
			back = log(1 - byThree)
		}
		fmt.Fprintf(&b, "%.4f %s %s %.4f\n", log(two(k[0], k[1])), g.words[k[0]], g.words[k[1]], back)
	}
	b.WriteString("\n\\3-grams:\n")
	for _, k := range slices.SortedFunc(maps.Keys(g.three), func(a, b [3]int32) int { return slices.Compare(a[:], b[:]) }) {
		fmt.Fprintf(&b, "%.4f %s %s %s\n", log(three(k)), g.words[k[0]], g.words[k[1]], g.words[k[2]])
	}
	b.WriteString("\n\\end\\\n")
	return b.String()
}
