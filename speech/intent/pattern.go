package intent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// op is the kind of a node of a pattern.
type op uint8

const (
	opWord op = iota // text is a word, or {slot}
	opSeq
	opAlt
	opOpt // its only child may be left out
)

type node struct {
	op   op
	text string
	kids []*node
}

// Bounds of a pattern, for those that people write.
const (
	maxPattern = 1000 // bytes
	maxDepth   = 12
	maxLeaves  = 2000 // after the macros are put in
)

// slots are the kinds of slot, and the parameter type or name that each fills.
var slots = []string{"duration", "color", "level", "name", "known", "place", "when", "number", "time", "text"}

// Slots returns the kinds of slot that a pattern can have.
func Slots() []string { return slices.Clone(slots) }

type patternParser struct {
	rest   string
	macros map[string]string
	leaves int
}

// parsePattern reads a pattern: words, (a|b), [optional], {slot} and $macro.
func parsePattern(s string, macros map[string]string) (*node, error) {
	p := &patternParser{rest: s, macros: macros}
	n, err := p.alternatives(0)
	if err == nil && p.rest != "" {
		err = fmt.Errorf("unexpected %q", p.rest[:1])
	}
	if err == nil && nullable(n) {
		err = errors.New("want at least one required word")
	}
	return n, err
}

func (p *patternParser) alternatives(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("brackets nested more than %d deep", maxDepth)
	}
	alt := &node{op: opAlt}
	for {
		seq, err := p.sequence(depth)
		if err != nil {
			return nil, err
		}
		alt.kids = append(alt.kids, seq)
		if !strings.HasPrefix(p.rest, "|") {
			break
		}
		p.rest = p.rest[1:]
	}
	if len(alt.kids) == 1 {
		return alt.kids[0], nil
	}
	return alt, nil
}

func (p *patternParser) sequence(depth int) (*node, error) {
	seq := &node{op: opSeq}
	for {
		p.rest = strings.TrimLeft(p.rest, " \t")
		if p.rest == "" || strings.ContainsRune("|)]", rune(p.rest[0])) {
			if len(seq.kids) == 0 {
				return nil, errors.New("alternative without words")
			}
			return seq, nil
		}
		kid, err := p.item(depth)
		if err != nil {
			return nil, err
		}
		seq.kids = append(seq.kids, kid)
	}
}

func (p *patternParser) item(depth int) (*node, error) {
	c := p.rest[0]
	if c == '(' || c == '[' {
		p.rest = p.rest[1:]
		n, err := p.alternatives(depth + 1)
		if err != nil {
			return nil, err
		}
		closing := map[byte]string{'(': ")", '[': "]"}[c]
		if !strings.HasPrefix(p.rest, closing) {
			return nil, fmt.Errorf("%q without %q", c, closing)
		}
		p.rest = p.rest[1:]
		if c == '[' {
			n = &node{op: opOpt, kids: []*node{n}}
		}
		return n, nil
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool { return strings.ContainsRune(" \t|()[]", r) })
	if end < 0 {
		end = len(p.rest)
	}
	w := p.rest[:end]
	p.rest = p.rest[end:]
	if p.leaves++; p.leaves > maxLeaves {
		return nil, fmt.Errorf("more than %d words", maxLeaves)
	}
	switch {
	case w[0] == '$':
		text, ok := p.macros[w[1:]]
		if !ok {
			return nil, fmt.Errorf("no macro %.40q", w)
		}
		inner := &patternParser{rest: text, macros: p.macros, leaves: p.leaves}
		n, err := inner.alternatives(depth + 1)
		p.leaves = inner.leaves
		if err == nil && inner.rest != "" {
			err = fmt.Errorf("macro %s: unexpected %q", w, inner.rest[:1])
		}
		return n, err
	case w[0] == '{':
		if kind := strings.Trim(w, "{}"); w != "{"+kind+"}" || slotNumber(kind) < 0 {
			return nil, fmt.Errorf("no slot %.40q: want one of {%s}", w, strings.Join(slots, "}, {"))
		}
	default:
		if i := strings.IndexFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && r != '\'' && r != '-' && r != '.'
		}); i >= 0 {
			return nil, fmt.Errorf("%.40q in %.40q: want letters, digits, and ( ) [ ] | { } $", w[i:], w)
		}
	}
	return &node{op: opWord, text: w}, nil
}

func nullable(n *node) bool {
	switch n.op {
	case opOpt:
		return true
	case opSeq:
		for _, k := range n.kids {
			if !nullable(k) {
				return false
			}
		}
		return true
	case opAlt:
		for _, k := range n.kids {
			if nullable(k) {
				return true
			}
		}
	}
	return false
}

func slotNumber(kind string) int { return slices.Index(slots, kind) }

// position is a place in the patterns with a word or a slot. The positions of all patterns together are an automaton without empty
// steps, as Glushkov builds it from an expression.
type position struct {
	word   int32 // in the vocabulary; -1-n: the slot n
	gain   float32
	rule   int32
	last   bool // a sentence may end here
	follow []int32
}

// add puts a pattern into the automaton of m and returns where sentences of it begin.
func (m *Matcher) add(n *node, rule int32) (first, last []int32) {
	switch n.op {
	case opWord:
		if n.text[0] == '{' {
			p := m.place(int32(-1-slotNumber(strings.Trim(n.text, "{}"))), 1, rule) //nolint:gosec // a few
			return p, p
		}
		for _, w := range m.lang.tokens(n.text) { // a contraction is several words
			p := m.place(m.word(w), m.lang.weight(w), rule)
			if first == nil {
				first = p
			}
			m.join(last, p)
			last = p
		}
		return first, last
	case opSeq:
		empty := true
		for _, k := range n.kids {
			f, l := m.add(k, rule)
			m.join(last, f)
			if empty {
				first = append(first, f...)
			}
			if nullable(k) {
				last = append(l, last...)
			} else {
				empty, last = false, l
			}
		}
		return first, last
	default:
		for _, k := range n.kids {
			f, l := m.add(k, rule)
			first, last = append(first, f...), append(last, l...)
		}
		return first, last
	}
}

func (m *Matcher) place(word int32, gain float32, rule int32) []int32 {
	m.positions = append(m.positions, position{word: word, gain: gain, rule: rule})
	return []int32{int32(len(m.positions) - 1)} //nolint:gosec // bounded by the patterns
}

func (m *Matcher) join(from, to []int32) {
	for _, p := range from {
		m.positions[p].follow = append(m.positions[p].follow, to...)
	}
}

func (m *Matcher) word(w string) int32 {
	id, ok := m.vocabulary[w]
	if !ok {
		id = int32(len(m.vocabulary)) //nolint:gosec // bounded by the patterns
		m.vocabulary[w] = id
	}
	return id
}

// weight of a word in a sentence: little words say little.
func (l *language) weight(w string) float32 {
	if l.light[w] {
		return 0.5
	}
	return 1
}
