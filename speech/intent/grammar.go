package intent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Grammar returns the sentences that the recogniser of a robot listens for, as a JSGF grammar whose public rule is command. Every sentence of
// it has the intent of its pattern. A word with _ in it calls the robot, and is no part of the sentence.
func (m *Matcher) Grammar() string {
	byIntent, order := map[string][]string{}, []string{}
	rules := slices.Clone(m.rules)
	if m.custom != nil {
		rules = append(rules, m.custom.rules...)
	}
	for _, r := range rules {
		if !r.spoken {
			continue
		}
		name := strings.ReplaceAll(r.intent.User, "-", "_")
		if text, ok := m.lang.jsgf(r.tree); ok {
			if byIntent[name] == nil {
				order = append(order, name)
			}
			byIntent[name] = append(byIntent[name], text)
		}
	}
	var b strings.Builder
	call := ""
	if m.lang.call != "" {
		call = "[ " + m.lang.call + " ] "
	}
	fmt.Fprintf(&b, "#JSGF V1.0;\ngrammar kennel;\npublic <command> = %s( <%s> );\n", call, strings.Join(order, "> | <"))
	for _, name := range order {
		fmt.Fprintf(&b, "<%s> = %s;\n", name, strings.Join(byIntent[name], " | "))
	}
	lists := m.lang.grammarLists()
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		fmt.Fprintf(&b, "<%s> = %s;\n", name, lists[name])
	}
	return b.String()
}

// Words returns the words of Grammar, sorted. A recogniser needs a pronunciation for each.
func (m *Matcher) Words() []string {
	words := map[string]bool{}
	for line := range strings.Lines(m.Grammar()) {
		if name, body, ok := strings.Cut(line, " = "); ok && name[0] == '<' {
			for w := range strings.FieldsFuncSeq(body, func(r rune) bool { return strings.ContainsRune(" ()[]|;\n", r) }) {
				if w[0] != '<' {
					words[w] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(words))
}

// Pronunciations returns how to say words that general dictionaries lack, in the phones of the CMU dictionary.
func (m *Matcher) Pronunciations() map[string]string { return maps.Clone(m.lang.pronounced) }

// jsgf returns a pattern in JSGF; false for one that cannot be said, such as digits, which recognisers write but do not hear.
func (l *language) jsgf(n *node) (string, bool) {
	switch n.op {
	case opWord:
		if n.text[0] == '{' {
			return "<" + strings.Trim(n.text, "{}") + ">", n.text != "{text}" && n.text != "{time}"
		}
		if first, _ := utf8.DecodeRuneInString(n.text); strings.ContainsAny(n.text, "0123456789") || !unicode.IsLetter(first) {
			return "", false
		}
		w := strings.ToLower(strings.ReplaceAll(n.text, "-", " "))
		if as, ok := l.rewrites[w]; ok && strings.Contains(w, "'") {
			return "( " + w + " | " + strings.Join(as, " ") + " )", true
		}
		return w, true
	case opOpt:
		text, ok := l.jsgf(n.kids[0])
		if !ok {
			return "", true
		}
		return "[ " + text + " ]", true
	case opSeq:
		var parts []string
		for _, k := range n.kids {
			text, ok := l.jsgf(k)
			if !ok {
				return "", false
			}
			if text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, " "), len(parts) > 0
	}
	var parts []string
	for _, k := range n.kids {
		if text, ok := l.jsgf(k); ok {
			parts = append(parts, text)
		}
	}
	return "( " + strings.Join(parts, " | ") + " )", len(parts) > 0
}

// unsayable adds the words and slots of a pattern that are not in JSGF.
func (l *language) unsayable(n *node, to map[string]bool) {
	if _, ok := l.jsgf(n); n.op == opWord && !ok {
		to[n.text] = true
	}
	for _, k := range n.kids {
		l.unsayable(k, to)
	}
}

// grammarLists returns the rules of the slots.
func (l *language) grammarLists() map[string]string {
	out := maps.Clone(l.grammar)
	for name, list := range map[string]string{"color": "color", "level": "level", "when": "when", "known": "names", "place": "places"} {
		var ways []string
		for _, e := range l.lists[list] {
			if text := strings.Join(e.words, " "); !strings.ContainsAny(text, "0123456789") {
				ways = append(ways, text)
			}
		}
		out[name] = strings.Join(ways, " | ")
	}
	out["one"] = strings.Join(slices.Sorted(maps.Keys(l.one)), " | ")
	var ones, teens, tens []string
	for _, w := range slices.SortedFunc(maps.Keys(l.numbers), func(a, b string) int { return int(l.numbers[a]*10 - l.numbers[b]*10) }) {
		switch v := l.numbers[w]; {
		case v >= 1 && v < 10:
			ones = append(ones, w)
		case v >= 10 && v < 20:
			teens = append(teens, w)
		case v >= 20 && v < 100:
			tens = append(tens, w)
		}
	}
	out["digit"], out["ten"] = strings.Join(ones, " | "), strings.Join(tens, " | ")
	out["number"] = "<digit> | " + strings.Join(teens, " | ") + " | <ten> [ <digit> ]"
	if l.glue != "" {
		var composed []string
		for _, one := range ones {
			for _, ten := range tens {
				composed = append(composed, one+l.glue+ten)
			}
		}
		out["number"] = "<digit> | " + strings.Join(teens, " | ") + " | <ten> | " + strings.Join(composed, " | ")
	}
	return out
}
