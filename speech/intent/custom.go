package intent

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kennel/infra/errs"
)

// Custom is an intent of an operator's or owner's own. A sentence that fits it and a built-in intent is the built-in one, unless Overrides
// names that.
type Custom struct {
	Name      string   `json:"name"`
	Phrases   []string `json:"phrases"`             // patterns: words, (a|b), [optional] and slots such as {name}
	Languages []string `json:"languages,omitempty"` // such as en-US; none: all
	Reaction  string   `json:"reaction,omitempty"`  // the user intent that the robot gets; "": imperative_affirmative
	Overrides []string `json:"overrides,omitempty"` // user intents that it may replace
}

// Bounds of custom intents, ours.
const (
	MaxCustoms       = 200
	maxCustomPhrases = 20
	maxSamples       = 200 // sentences of a pattern that are compared with the built-in ones
	reaction         = "imperative_affirmative"
)

var customName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// For reports whether c is meant for a language.
func (c Custom) For(language string) bool {
	return len(c.Languages) == 0 || slices.Contains(c.Languages, language)
}

// Check returns an error if c cannot be, or if one of its phrases already means a built-in intent that it does not override.
func (c Custom) Check() error {
	if IsOwn(c.Name) {
		return errs.New(errs.Invalid, "custom intent %.64s: names with %s are reserved for Kennel", c.Name, ownPrefix)
	}
	for _, code := range c.Languages {
		if _, err := Load(code); err != nil {
			return errs.New(errs.Invalid, "custom intent %s: %w", c.Name, err)
		}
	}
	done := map[*Matcher]bool{} // several codes have one
	for _, code := range Languages() {
		m, err := Load(code)
		if err == nil && c.For(code) && !done[m] {
			_, err = m.With([]Custom{c})
			done[m] = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// With returns a matcher that knows custom intents, too. Those for other languages are passed over;
// en-US, en-GB and en-AU are one. It refuses one whose phrases mean a
// built-in intent that it does not override. Of two custom intents that fit, the first wins.
func (m *Matcher) With(customs []Custom) (*Matcher, error) {
	for _, c := range customs {
		if !slices.ContainsFunc(m.lang.codes, c.For) {
			continue
		}
		if rules, err := m.rulesOf(c); err != nil {
			return nil, err
		} else if err := m.collide(c, rules); err != nil {
			return nil, err
		}
	}
	out, err := m.WithStored(customs)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// WithStored is With for custom intents that Check accepted when they were stored: it does not compare them with the built-in ones, which win
// anyway. Those that cannot be compiled are left out, and the error says which.
func (m *Matcher) WithStored(customs []Custom) (*Matcher, error) {
	out := *m
	out.custom, out.overrides = nil, map[string]map[string]bool{}
	var rules []rule
	var left []error
	for _, c := range customs {
		if !slices.ContainsFunc(m.lang.codes, c.For) {
			continue
		}
		own, err := m.rulesOf(c)
		if err == nil && out.overrides[c.Name] != nil {
			err = errs.New(errs.Conflict, "two custom intents have the name %s", c.Name)
		}
		if err != nil {
			left = append(left, err)
			continue
		}
		out.overrides[c.Name] = map[string]bool{}
		for _, name := range c.Overrides {
			out.overrides[c.Name][name] = true
		}
		rules = append(rules, own...)
	}
	if len(rules) > 0 {
		out.custom = newMatcher(m.lang, rules)
	}
	return &out, errors.Join(left...)
}

// Heard returns the words of c that a recogniser needs to know, sorted. Of a phrase that cannot be heard at all, digits and slots such as {text} are among
// them, which no recogniser of words has.
func (c Custom) Heard() []string {
	words := map[string]bool{}
	for _, code := range Languages() {
		base, err := Load(code)
		if err != nil || !c.For(code) {
			continue
		}
		if rules, err := base.rulesOf(c); err == nil {
			of := Matcher{lang: &language{grammar: map[string]string{}}, rules: rules}
			for _, w := range of.Words() {
				words[w] = true
			}
			for _, r := range rules {
				if _, ok := base.lang.jsgf(r.tree); !ok {
					base.lang.unsayable(r.tree, words)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(words))
}

// rulesOf compiles the phrases of c.
func (m *Matcher) rulesOf(c Custom) ([]rule, error) {
	invalid := func(format string, args ...any) error {
		return errs.New(errs.Invalid, "custom intent %.64s: %w", c.Name, fmt.Errorf(format, args...))
	}
	in, ok := byUser[reaction]
	if c.Reaction != "" {
		in, ok = byUser[c.Reaction]
	}
	switch {
	case !customName.MatchString(c.Name):
		return nil, errs.New(errs.Invalid, "custom intent %.64q: want a name such as feed_the_cat", c.Name)
	case len(c.Phrases) == 0 || len(c.Phrases) > maxCustomPhrases:
		return nil, invalid("%d phrases: want 1 to %d", len(c.Phrases), maxCustomPhrases)
	case !ok || in.Cloud == "":
		return nil, invalid("reaction %.64q: want a user intent such as %s", c.Reaction, reaction)
	}
	for _, name := range c.Overrides {
		if byUser[name].User == "" {
			return nil, invalid("overrides %.64q: want user intents such as play_anytrick", name)
		}
	}
	var rules []rule
	for _, phrase := range c.Phrases {
		if len(phrase) > maxPattern {
			return nil, invalid("phrase of %d bytes: want at most %d", len(phrase), maxPattern)
		}
		tree, err := parsePattern(phrase, nil)
		if err != nil {
			return nil, invalid("phrase %.80q: %w", phrase, err)
		}
		if !worded(tree) {
			return nil, invalid("phrase %.80q: want at least one word that is neither a slot nor optional", phrase)
		}
		rules = append(rules, rule{intent: in, source: phrase, custom: c.Name, tree: tree, spoken: true})
	}
	return rules, nil
}

// collide returns an error if a sentence of the rules is a built-in intent, or if a published phrase fits them.
func (m *Matcher) collide(c Custom, rules []rule) error {
	taken := func(sentence, by string) error {
		if by == "" || slices.Contains(c.Overrides, by) {
			return nil
		}
		return errs.New(errs.Conflict, "custom intent %s: %q already means %s; add that to overrides to replace it", c.Name, sentence, by)
	}
	for _, r := range rules {
		for _, s := range m.lang.samples(r.tree) {
			if err := taken(s, m.match(s).UserIntent); err != nil {
				return err
			}
		}
	}
	own := newMatcher(m.lang, rules)
	for _, r := range m.rules {
		if !r.spoken {
			continue
		}
		for _, s := range m.lang.samples(r.tree) {
			if own.match(s).Custom != "" {
				if err := taken(s, r.intent.User); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// worded reports whether every sentence of n has a word that no slot takes.
func worded(n *node) bool {
	switch n.op {
	case opWord:
		return n.text[0] != '{'
	case opSeq:
		return slices.ContainsFunc(n.kids, worded)
	case opAlt:
		return !slices.ContainsFunc(n.kids, func(k *node) bool { return !worded(k) })
	}
	return false
}

// samples returns up to maxSamples sentences of a pattern, with something said for each slot.
func (l *language) samples(n *node) []string {
	switch n.op {
	case opWord:
		if n.text[0] == '{' {
			return []string{l.example(strings.Trim(n.text, "{}"))}
		}
		return []string{n.text}
	case opOpt:
		return append([]string{""}, l.samples(n.kids[0])...)
	case opAlt:
		var out []string
		for _, k := range n.kids {
			out = append(out, l.samples(k)...)
		}
		return out[:min(len(out), maxSamples)]
	}
	out := []string{""}
	for _, k := range n.kids {
		var longer []string
		for _, tail := range l.samples(k) {
			for _, head := range out {
				if len(longer) < maxSamples {
					longer = append(longer, strings.TrimSpace(head+" "+tail))
				}
			}
		}
		out = longer
	}
	return out
}

// example returns something to say for a slot.
func (l *language) example(kind string) string {
	list := map[string]string{"known": "names", "name": "names", "place": "places"}[kind]
	if list == "" {
		list = kind
	}
	if entries := l.lists[list]; len(entries) > 0 {
		return strings.Join(entries[0].words, " ")
	}
	switch kind {
	case "duration":
		for _, u := range l.lists["unit"] {
			if u.value == "60" {
				return "5 " + u.words[0]
			}
		}
	case "text":
		return "x"
	}
	return "5"
}
