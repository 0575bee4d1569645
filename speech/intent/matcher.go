package intent

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"sync"
)

// Bounds of what is matched, and how much of a sentence may be left over. Ours: commands are short.
const (
	maxSentence = 600 // bytes
	maxWords    = 60
	threshold   = 0.62 // the confidence below which nothing is matched; this and leftCost were chosen by the sentences of testdata
	leftCost    = 1    // a word that is left over takes as much as a matched one gives
	never       = 1000 // the cost of a word that may not be left over
)

// Matcher finds the intent of a sentence in one language. It is safe for concurrent use.
type Matcher struct {
	lang       *language
	rules      []rule
	vocabulary map[string]int32
	positions  []position
	starts     map[int32][]int32 // by the word or slot that a sentence begins with
	slotStarts []int32
	scratch    *sync.Pool

	custom    *Matcher // the patterns of the fleet; nil: none
	overrides map[string]map[string]bool
}

var loaded sync.Map // by language code, *Matcher

// english is the language of those who name none.
const english = "en-US"

// Load returns the matcher of a language such as en-US. An empty language is en-US.
func Load(code string) (*Matcher, error) {
	code = cmp.Or(code, english)
	l, ok := languages()[code]
	if !ok {
		return nil, fmt.Errorf("no intents in the language %.20q: want one of %s", code, strings.Join(Languages(), ", "))
	}
	if m, ok := loaded.Load(l); ok {
		return m.(*Matcher), nil
	}
	m, _ := loaded.LoadOrStore(l, newMatcher(l, l.rules))
	return m.(*Matcher), nil
}

func newMatcher(l *language, rules []rule) *Matcher {
	m := &Matcher{lang: l, rules: rules, vocabulary: map[string]int32{}, starts: map[int32][]int32{}}
	for i, r := range rules {
		first, last := m.add(r.tree, int32(i)) //nolint:gosec // bounded
		for _, p := range last {
			m.positions[p].last = true
		}
		for _, p := range first {
			if w := m.positions[p].word; w < 0 {
				m.slotStarts = append(m.slotStarts, p)
			} else {
				m.starts[w] = append(m.starts[w], p)
			}
		}
	}
	m.scratch = &sync.Pool{New: func() any {
		return &search{best: make([]float32, len(m.positions)), seen: make([]int32, len(m.positions)), queue: make([][]int32, maxWords+1)}
	}}
	return m
}

// step is a position of a pattern that a sentence has reached before one of its words.
type step struct {
	position int32
	back     int32 // the step before it; -1: none
	end      int32 // the word after those that it took
	gain     float32
	skipped  float32
	value    string // of a slot
}

// search is the memory of one Match.
type search struct {
	words  []string
	ids    []int32
	costs  []float32 // of leaving a word over, added up
	steps  []step
	queue  [][]int32 // of the steps before each word
	best   []float32 // by position, how little was skipped so far
	seen   []int32   // by position, base and the word for which best is valid
	base   int32     // differs from one sentence to the next
	slots  map[[2]int][]found
	winner int32
	score  float32
	gain   float32
}

// Match returns what text means. The zero Match: nothing that a robot knows. It compares whole words. Its time grows with the length of the
// text, which is bounded, times the patterns that fit so far.
func (m *Matcher) Match(text string) Match {
	built := m.match(text)
	if m.custom == nil {
		return built
	}
	if own := m.custom.match(text); own.Custom != "" && (built.UserIntent == "" || m.overrides[own.Custom][built.UserIntent]) {
		return own
	}
	return built
}

func (m *Matcher) match(text string) Match {
	if len(text) > maxSentence {
		return Match{}
	}
	words := m.lang.tokens(text)
	if len(words) == 0 || len(words) > maxWords {
		return Match{}
	}
	s := m.scratch.Get().(*search)
	defer m.scratch.Put(s)
	m.begin(s, words)
	for i := range words {
		if s.costs[i]*2.5 <= float32(len(words)) { // more left over than could be matched
			m.start(s, i)
		}
		for at := 0; at < len(s.queue[i]); at++ { // the queue does not grow meanwhile
			m.advance(s, i, s.queue[i][at])
		}
	}
	if s.winner < 0 || s.score < threshold {
		return Match{}
	}
	return m.result(s)
}

func (m *Matcher) begin(s *search, words []string) {
	s.words, s.ids, s.costs, s.steps = words, s.ids[:0], append(s.costs[:0], 0), s.steps[:0]
	s.winner, s.score, s.gain, s.slots = -1, 0, 0, nil
	for i := range s.queue {
		s.queue[i] = s.queue[i][:0]
	}
	s.base += maxWords + 1
	if s.base > 1<<30 {
		s.base = maxWords + 1
		clear(s.seen)
	}
	free := m.lang.fillerWords(words)
	for i, w := range words {
		id, ok := m.vocabulary[w]
		if !ok {
			id = -1 << 30 // no word of a pattern, and no slot
		}
		s.ids = append(s.ids, id)
		cost := m.lang.weight(w)
		switch {
		case free[i]:
			cost = 0
		case m.lang.blockers[w]:
			cost = never
		}
		s.costs = append(s.costs, s.costs[i]+cost)
	}
}

// fillerWords marks the words of a sentence that belong to fillers.
func (l *language) fillerWords(words []string) []bool {
	free := make([]bool, len(words))
	for i := range words {
		for _, f := range l.fillersBy[words[i]] {
			if len(f) <= len(words)-i && equal(f, words[i:]) {
				for j := range f {
					free[i+j] = true
				}
			}
		}
	}
	return free
}

func equal(prefix, words []string) bool {
	for i := range prefix {
		if prefix[i] != words[i] {
			return false
		}
	}
	return true
}

// start begins patterns at word i: what is before it is left over.
func (m *Matcher) start(s *search, i int) {
	for _, p := range m.starts[s.ids[i]] {
		m.reach(s, i+1, step{position: p, back: -1, gain: m.positions[p].gain, skipped: s.costs[i]})
	}
	for _, p := range m.slotStarts {
		m.slot(s, i, p, step{back: -1, skipped: s.costs[i]})
	}
}

// advance takes the step number n one word further: along its pattern, or leaving the word i over.
func (m *Matcher) advance(s *search, i int, n int32) {
	from := s.steps[n]
	at := s.base + int32(i) //nolint:gosec // bounded
	if p := from.position; s.seen[p] == at && s.best[p] <= from.skipped {
		return
	}
	s.seen[from.position], s.best[from.position] = at, from.skipped
	for _, p := range m.positions[from.position].follow {
		next := &m.positions[p]
		if next.word == s.ids[i] {
			m.reach(s, i+1, step{position: p, back: n, gain: from.gain + next.gain, skipped: from.skipped})
		} else if next.word < 0 {
			m.slot(s, i, p, step{back: n, gain: from.gain, skipped: from.skipped})
		}
	}
	from.skipped += s.costs[i+1] - s.costs[i]
	if from.skipped*2 <= float32(len(s.words)) {
		s.queue[i+1] = append(s.queue[i+1], m.keep(s, from))
	}
}

func (m *Matcher) keep(s *search, st step) int32 {
	s.steps = append(s.steps, st)
	return int32(len(s.steps) - 1) //nolint:gosec // bounded
}

// anyWords are the slots that take words of no list.
var anyWords = map[string]bool{"name": true, "place": true, "text": true}

// slot fills the slot at position p from word i.
func (m *Matcher) slot(s *search, i int, p int32, st step) {
	kind := int(-1 - m.positions[p].word)
	if st.back >= 0 && anyWords[slots[kind]] && s.steps[st.back].end != int32(i) { //nolint:gosec // bounded
		return // of free words none before is left over: "my name is on the list"
	}
	values, ok := s.slots[[2]int{kind, i}]
	if !ok {
		values = m.lang.fill(slots[kind], s.words, i)
		if s.slots == nil {
			s.slots = map[[2]int][]found{}
		}
		s.slots[[2]int{kind, i}] = values
	}
	gain := st.gain
	for _, v := range values {
		st.position, st.value, st.gain = p, v.value, gain+1
		if slots[kind] == "duration" {
			st.gain = gain + float32(v.end-i)
		}
		m.reach(s, v.end, st)
	}
}

// reach records a step before word i, and that the sentence ends there if it may.
func (m *Matcher) reach(s *search, i int, st step) {
	st.end = int32(i) //nolint:gosec // bounded
	n := m.keep(s, st)
	if i < len(s.words) {
		s.queue[i] = append(s.queue[i], n)
	}
	if !m.positions[st.position].last {
		return
	}
	left := st.skipped + s.costs[len(s.words)] - s.costs[i]
	score := st.gain / (st.gain + leftCost*left)
	if score > s.score || score == s.score && st.gain > s.gain {
		s.winner, s.score, s.gain = n, score, st.gain
	}
}

func (m *Matcher) result(s *search) Match {
	r := &m.rules[m.positions[s.steps[s.winner].position].rule]
	out := Match{UserIntent: r.intent.User, Cloud: r.intent.Cloud, Params: maps.Clone(r.fixed), Confidence: float64(s.score), Custom: r.custom}
	for n := s.winner; n >= 0; n = s.steps[n].back {
		st := s.steps[n]
		if st.value == "" {
			continue
		}
		if out.Params == nil {
			out.Params = map[string]string{}
		}
		kind := slots[-1-m.positions[st.position].word]
		out.Params[parameter(kind, r)] = st.value
	}
	return out
}

// parameter returns the name of the parameter that a slot of a rule fills.
func parameter(kind string, r *rule) string {
	switch {
	case r.custom != "" || kind == "when":
		return kind
	case kind == "place":
		return "speakable_location_string"
	case len(r.intent.Params) > 0:
		return r.intent.Params[0].Cloud
	}
	return kind
}
