package intents

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"kennel/speech/intent"
)

//go:embed phrases.de.txt
var germanText string

// Languages of answers. All texts in this package are English.
const (
	english = "en-US"
	german  = "de-DE"
)

// phrases say the robot's answers in another language, by their English (part of VEC-NLP-08).
type phrases struct {
	whole map[string]string
	forms []phraseForm
}

// phraseForm is an answer with parts that differ.
type phraseForm struct {
	english *regexp.Regexp
	other   string
}

// inGerman parses its table when a robot first needs it.
var inGerman = sync.OnceValue(func() *phrases {
	p, err := parsePhrases(germanText)
	if err != nil {
		panic(err)
	}
	return p
})

var placeholder = regexp.MustCompile(`\\?\{([1-9])\\?\}`)

// parsePhrases reads lines "English = other", with the parts {1} to {9}. Lines that begin with # are notes.
func parsePhrases(text string) (*phrases, error) {
	p := &phrases{whole: map[string]string{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		from, to, ok := strings.Cut(line, " = ")
		if _, twice := p.whole[from]; !ok || twice {
			return nil, fmt.Errorf("line %d: %q: want one line ENGLISH = OTHER for each text", n, line)
		}
		for _, mark := range placeholder.FindAllString(to, -1) {
			if !strings.Contains(from, mark) {
				return nil, fmt.Errorf("line %d: %s is not in %q", n, mark, from)
			}
		}
		p.whole[from] = to
		if strings.Contains(from, "{1}") {
			re, err := regexp.Compile("^" + placeholder.ReplaceAllString(regexp.QuoteMeta(from), `(?P<p$1>.+?)`) + "$")
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			p.forms = append(p.forms, phraseForm{re, to})
		}
	}
	return p, nil
}

// say returns an English answer in the other language; false: it has none for it.
func (p *phrases) say(text string) (string, bool) {
	if to, ok := p.whole[text]; ok {
		return to, true
	}
	for _, f := range p.forms {
		if m := f.english.FindStringSubmatch(text); m != nil {
			return placeholder.ReplaceAllStringFunc(f.other, func(mark string) string {
				return p.words(m[f.english.SubexpIndex("p"+strings.Trim(mark, "{}"))])
			}), true
		}
	}
	return text, false
}

// words translates those words of a part that have a translation.
func (p *phrases) words(part string) string {
	all := strings.Fields(part)
	for i, w := range all {
		bare := strings.TrimRight(w, ",")
		if to, ok := p.whole[bare]; ok {
			all[i] = to + w[len(bare):]
		}
	}
	return strings.Join(all, " ")
}

// locale is the language that the robot's owner chose; "" for a body that has no such setting.
func (x *Intents) locale() (locale string) {
	_ = json.Unmarshal(x.setting("locale"), &locale) // "", then
	return locale
}

// language is the one in which the robot answers: English, but German where its owner chose that.
func (x *Intents) language() string {
	if strings.HasPrefix(x.locale(), "de") {
		return german
	}
	return english
}

// inLanguage returns an answer in the robot's language, and the language that it is in then. What the cloud knows stays as it came: it is in the language that the
// cloud names, else in the one that the owner chose.
func (x *Intents) inLanguage(o Outcome, u intent.User) (said, language string) {
	if u.Name == "knowledge_response" && o.Reason == "" {
		return o.Text, cmp.Or(text(u, "language"), x.locale(), english)
	}
	if language = x.language(); language == english {
		return o.Text, language
	}
	if said, ok := inGerman().say(o.Text); ok {
		return said, language
	}
	return o.Text, english
}
