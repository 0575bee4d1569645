package intent

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

//go:embed languages/*.txt
var languageFiles embed.FS

// language is the data of one file in languages: words, and patterns of sentences.
type language struct {
	codes      []string
	spellings  []string              // a letter, and how it is typed without its key; in pairs
	rewrites   map[string][]string   // a contraction, and the words that it replaces
	fillersBy  map[string][][]string // by their first word
	blockers   map[string]bool
	light      map[string]bool
	stop       map[string]bool
	numbers    map[string]float64
	glue       string // between the parts of a number that is one word, such as und in fünfundzwanzig
	fractions  map[string]float64
	one        map[string]bool // articles that count one: an hour
	joints     map[string]bool // words inside a duration that say nothing: an hour AND a half
	lists      map[string][]listed
	times      map[string][][]string
	pronounced map[string]string
	call       string            // the word of the grammar for the robot's name
	grammar    map[string]string // rules in JSGF
	macros     map[string]string
	rules      []rule
}

// listed is a value and one way to say it.
type listed struct {
	value string
	words []string
}

// rule is a line of an intent in a language file.
type rule struct {
	intent Intent
	source string
	fixed  map[string]string
	custom string // the name of a custom intent
	spoken bool   // in the grammar
	tree   *node
}

var languages = sync.OnceValue(func() map[string]*language {
	out := map[string]*language{}
	entries, err := languageFiles.ReadDir("languages")
	if err != nil {
		panic(fmt.Sprintf("intent: %v", err)) // part of the program
	}
	for _, e := range entries {
		b, err := languageFiles.ReadFile("languages/" + e.Name())
		if err != nil {
			panic(fmt.Sprintf("intent: %v", err))
		}
		l, err := readLanguage(string(b))
		if err != nil {
			panic(fmt.Sprintf("intent: %s: %v", e.Name(), err))
		}
		for _, code := range l.codes {
			out[code] = l
		}
	}
	return out
})

// Languages returns the language codes that Load knows, sorted.
func Languages() []string { return slices.Sorted(maps.Keys(languages())) }

// Closest returns the code of Languages for a locale: itself, else another of the same language, such as de-DE for de-AT; "" if there is none.
func Closest(locale string) string {
	all := Languages()
	if slices.Contains(all, locale) {
		return locale
	}
	language, _, _ := strings.Cut(locale, "-")
	if language == "en" {
		return english
	}
	for _, code := range all {
		if strings.HasPrefix(code, language+"-") {
			return code
		}
	}
	return ""
}

func readLanguage(text string) (*language, error) {
	l := &language{rewrites: map[string][]string{}, blockers: map[string]bool{}, light: map[string]bool{}, stop: map[string]bool{}, numbers: map[string]float64{},
		fractions: map[string]float64{}, one: map[string]bool{}, joints: map[string]bool{}, lists: map[string][]listed{}, times: map[string][][]string{},
		pronounced: map[string]string{}, grammar: map[string]string{}, fillersBy: map[string][][]string{}, macros: map[string]string{}}
	var in Intent
	var lines []rule
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, rest, _ := strings.Cut(line, " ")
		switch {
		case key == "%intent":
			if in = byUser[rest]; in.User == "" {
				return nil, fmt.Errorf("line %d: no intent %q in the catalogue", n, rest)
			}
		case key[0] == '%':
			if err := l.setting(key[1:], rest); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		case in.User == "":
			return nil, fmt.Errorf("line %d: %q before the first %%intent", n, line)
		default:
			lines = append(lines, rule{intent: in, source: line})
		}
	}
	for _, r := range lines {
		if err := l.compile(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", r.intent.User, err)
		}
		l.rules = append(l.rules, r)
	}
	l.respell(text)
	return l, nil
}

// respell has each word of a language's file understood as it is typed without its umlauts. The rewrites of the file win.
func (l *language) respell(text string) {
	typed := strings.NewReplacer(l.spellings...)
	add := func(w string, to []string) {
		if as := typed.Replace(w); as != w && l.rewrites[as] == nil {
			l.rewrites[as] = to
		}
	}
	for from, to := range maps.Clone(l.rewrites) {
		add(from, to)
	}
	for _, w := range l.tokens(text) {
		add(w, []string{w})
	}
}

// setting reads a line that is no pattern.
func (l *language) setting(key, rest string) error {
	name, value, hasValue := strings.Cut(rest, " = ")
	if !hasValue && strings.Contains(" rewrite spell number fraction few unit color level when time pronounce macro grammar ", " "+key+" ") {
		return fmt.Errorf("%%%s: want %%%s NAME = VALUE", key, key)
	}
	words := strings.Split(value, " | ")
	switch key {
	case "language":
		l.codes = strings.Fields(rest)
	case "spell":
		l.spellings = append(l.spellings, name, value)
	case "rewrite":
		l.rewrites[name] = strings.Fields(value)
	case "filler":
		for _, f := range strings.Split(rest, " | ") {
			words := l.tokens(f)
			l.fillersBy[words[0]] = append(l.fillersBy[words[0]], words)
		}
	case "blocker", "light", "stop", "one", "joint":
		set := map[string]map[string]bool{"blocker": l.blockers, "light": l.light, "stop": l.stop, "one": l.one, "joint": l.joints}[key]
		for _, w := range strings.Split(rest, " | ") {
			set[w] = true
		}
	case "glue":
		l.glue = rest
	case "number", "fraction":
		v, err := strconv.ParseFloat(name, 64)
		if err != nil {
			return fmt.Errorf("%%%s: %w", key, err)
		}
		for _, w := range words {
			map[string]map[string]float64{"number": l.numbers, "fraction": l.fractions}[key][w] = v
		}
	case "few", "unit", "color", "level", "when":
		for _, w := range words {
			l.lists[key] = append(l.lists[key], listed{name, l.tokens(w)})
		}
	case "names", "places":
		for _, w := range strings.Split(rest, " | ") {
			l.lists[key] = append(l.lists[key], listed{w, l.tokens(w)})
		}
	case "time":
		for _, w := range words {
			l.times[name] = append(l.times[name], l.tokens(w))
		}
	case "pronounce":
		l.pronounced[name] = value
	case "call":
		l.call = name
		for i, phones := range strings.Split(value, " | ") {
			key := name
			if i > 0 {
				key = fmt.Sprintf("%s(%d)", name, i+1)
			}
			l.pronounced[key] = phones
		}
	case "macro", "grammar":
		map[string]map[string]string{"macro": l.macros, "grammar": l.grammar}[key][name] = value
	default:
		return fmt.Errorf("unknown directive %%%s", key)
	}
	return nil
}

// compile parses the pattern of r, and what follows its =>.
func (l *language) compile(r *rule) error {
	var pattern string
	pattern, r.spoken = strings.CutPrefix(r.source, "+ ")
	pattern, fixed, has := strings.Cut(pattern, " =>")
	if has {
		r.fixed = map[string]string{}
		for part := range strings.FieldsSeq(fixed) {
			k, v, ok := strings.Cut(part, "=")
			if !ok {
				return fmt.Errorf("%q after =>: want NAME=VALUE", part)
			}
			r.fixed[k] = v
		}
	}
	tree, err := parsePattern(pattern, l.macros)
	if err != nil {
		return fmt.Errorf("pattern %.80q: %w", pattern, err)
	}
	r.tree = tree
	return nil
}

// tokens splits a sentence into words: lower case, no punctuation, contractions written out, numbers apart from letters.
func (l *language) tokens(text string) []string {
	var out []string
	add := func(w string) {
		w = strings.Trim(w, "'.,")
		if as, ok := l.rewrites[w]; ok {
			out = append(out, as...)
		} else if w != "" {
			out = append(out, w)
		}
	}
	var word strings.Builder
	var before rune // the kind of the last rune of word: a letter 'a', a digit '0'
	flush := func() { add(word.String()); word.Reset(); before = 0 }
	runes := []rune(strings.ToLower(text))
	for i, r := range runes {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
			if before == '0' {
				flush()
			}
			before = 'a'
			word.WriteRune(r)
		case unicode.IsDigit(r):
			if before == 'a' {
				flush()
			}
			before = '0'
			word.WriteRune(r)
		case r == '\'' || r == '’' || r == '`':
			word.WriteByte('\'')
		case (r == '.' || r == ',') && before == '0' && i+1 < len(runes) && unicode.IsDigit(runes[i+1]):
			word.WriteByte('.')
		default:
			flush()
		}
	}
	flush()
	return out
}
