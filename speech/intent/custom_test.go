package intent

import (
	"regexp"
	"strings"
	"testing"

	"kennel/infra/errs"
)

func TestCustom(t *testing.T) {
	m, err := load(t, "").With([]Custom{
		{Name: "feed_cat", Phrases: []string{"feed (the|my) cat [at {time}]", "kitty is hungry"}},
		{Name: "lights", Phrases: []string{"[turn|make] [the] lights {color}"}, Reaction: "imperative_praise", Languages: []string{"en-US"}},
		{Name: "own_dance", Phrases: []string{"dance the polka", "dance"}, Overrides: []string{"imperative_dance"}},
		{Name: "katze", Phrases: []string{"katze füttern"}, Languages: []string{"de-DE"}},
		{Name: "tell", Phrases: []string{"tell the house {text}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Match{
		"Please feed my cat at half past seven!": {Custom: "feed_cat", UserIntent: "imperative_affirmative", Cloud: "intent_imperative_affirmative", Params: map[string]string{"time": "07:30"}},
		"turn the lights purple":                 {Custom: "lights", UserIntent: "imperative_praise", Cloud: "intent_imperative_praise", Params: map[string]string{"color": "COLOR_PURPLE"}},
		"dance":                                  {Custom: "own_dance", UserIntent: "imperative_affirmative"},
		"let's dance":                            {UserIntent: "imperative_dance"},
		"do not feed the cat":                    {},
		"katze füttern":                          {},
		"feed the caterpillar":                   {},
		"turn left":                              {UserIntent: "movement_turnleft"},
		"tell the house to turn left":            {Custom: "tell", UserIntent: "imperative_affirmative", Params: map[string]string{"text": "to turn left"}},
	} {
		got := m.Match(text)
		if got.Custom != want.Custom || got.UserIntent != want.UserIntent || want.Cloud != "" && got.Cloud != want.Cloud || want.Params != nil && !sameParams(got.Params, want.Params) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	if got := load(t, "").Match("feed my cat"); got.UserIntent != "" {
		t.Errorf("the matcher without customs changed: %+v", got)
	}
	if g := m.Grammar(); !strings.Contains(g, "kitty is hungry") {
		t.Error("the grammar lacks a custom intent")
	}
}

// TestCustomCannotSwallow: the hold of the voice issue that no custom intent takes a built-in one's sentences unasked.
func TestCustomCannotSwallow(t *testing.T) {
	for _, tc := range []struct {
		c    Custom
		kind errs.Kind
		want string
	}{
		{Custom{Name: "x", Phrases: []string{"turn left"}}, errs.Conflict, `"turn left" already means movement_turnleft; add that to overrides`},
		{Custom{Name: "x", Phrases: []string{"feed the cat", "(stroke|[please] turn) [right|left]"}}, errs.Conflict, "already means movement_turn"},
		{Custom{Name: "x", Phrases: []string{"set [a] timer {text}"}}, errs.Conflict, "already means set_timer"},
		{Custom{Name: "x", Phrases: []string{"hallo"}}, errs.Conflict, "already means greeting_hello"},
		{Custom{Name: "x", Phrases: []string{"what's the weather [like] in {place}"}}, errs.Conflict, "already means weather_response"},
		{Custom{Name: "x", Phrases: []string{"turn left"}, Overrides: []string{"movement_turnright"}}, errs.Conflict, "movement_turnleft"},
		{Custom{Name: "x", Phrases: []string{"{text}"}}, errs.Invalid, "at least one word"},
		{Custom{Name: "x", Phrases: []string{"{text} [now]"}}, errs.Invalid, "at least one word"},
		{Custom{Name: "x", Phrases: []string{"a|{name}"}}, errs.Invalid, "at least one word"},
		{Custom{Name: "x", Phrases: []string{"[a]"}}, errs.Invalid, "required word"},
		{Custom{Name: "x", Phrases: []string{"$timer"}}, errs.Invalid, "no macro"},
		{Custom{Name: "X y", Phrases: []string{"a"}}, errs.Invalid, "want a name"},
		{Custom{Name: "x"}, errs.Invalid, "0 phrases"},
		{Custom{Name: "x", Phrases: []string{strings.Repeat("a ", 600)}}, errs.Invalid, "at most 1000"},
		{Custom{Name: "x", Phrases: []string{"a"}, Reaction: "unmatched_intent"}, errs.Invalid, "reaction"},
		{Custom{Name: "x", Phrases: []string{"a"}, Overrides: []string{"nothing"}}, errs.Invalid, "overrides"},
		{Custom{Name: "x", Phrases: []string{"a"}, Languages: []string{"tlh"}}, errs.Invalid, "no intents in the language"},
	} {
		err := tc.c.Check()
		if err == nil || errs.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v; want %v: %s", tc.c, err, tc.kind, tc.want)
		}
	}
	for _, c := range []Custom{{Name: "x", Phrases: []string{"turn left"}, Overrides: []string{"movement_turnleft"}}, {Name: "x", Phrases: []string{"hallo"}, Languages: []string{"en-US"}}} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func FuzzCustom(f *testing.F) {
	for _, s := range []string{"feed (the|my) cat [at {time}]", "((a|b) [c [d]]) e", "tell {name} {text} now", "turn left", "[x", "a|b"} {
		f.Add(s)
	}
	m := load(f, "")
	f.Fuzz(func(t *testing.T, phrase string) {
		own, err := m.With([]Custom{{Name: "x", Phrases: []string{phrase}}})
		if err != nil {
			return
		}
		for _, s := range []string{"turn left", "stop", "set a timer for five minutes"} {
			if got := own.Match(s); got.Custom != "" {
				t.Fatalf("%q takes %q", phrase, s)
			}
		}
		own.Match(phrase)
		own.Grammar()
	})
}

// jsgf matches a rule of a grammar: words that begin with a letter, slots and brackets.
var jsgf = regexp.MustCompile(`^(?:public )?<[a-z_]+> = (?:\[ hey_vector \]|<[a-z_]+>|[()\[\]| ]|\p{L}[\p{L}\p{M}\p{N}'. ]*)+;$`)

// FuzzCustomGrammar: whatever people write as a phrase, a recogniser gets a grammar of words.
func FuzzCustomGrammar(f *testing.F) {
	for _, s := range []string{"feed (the|my) cat [at {time}]", "public <command> = x; go", "'em all", "... x", "grammar x", "set {number} | go", "e\u0301clair", "İ go", "a-b -c d- go", "\"x\" go", "/0.5/ go", "go // x", "{name} is {known} at {place}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, phrase string) {
		m, err := load(t, "").WithStored([]Custom{{Name: "own", Phrases: []string{phrase}}})
		if err != nil {
			return
		}
		lines := strings.Split(strings.TrimSuffix(m.Grammar(), "\n"), "\n")
		for _, line := range lines[2:] {
			if !jsgf.MatchString(line) || strings.Count(line, "(") != strings.Count(line, ")") || strings.Contains(line, "( )") || strings.Contains(line, "[ ]") || strings.Contains(line, "| ;") {
				t.Errorf("%q makes %q", phrase, line)
			}
		}
		if want := strings.Count(load(t, "").Grammar(), "\n"); len(lines) > want+1 {
			t.Errorf("%q makes %d rules of %d", phrase, len(lines), want)
		}
	})
}

// TestHeardWords: who adds a phrase that no recogniser of words can hear is told which part of it that is.
func TestHeardWords(t *testing.T) {
	for phrase, want := range map[string]string{
		"feed (the|my) cat": "cat feed my the", "feed [5] cats": "cats feed", "open door 5": "5", "tell the house {text}": "{text}", "wake the cat at {time}": "{time}", "wake the -dog": "-dog",
	} {
		if got := strings.Join((Custom{Name: "own", Phrases: []string{phrase}}).Heard(), " "); got != want {
			t.Errorf("%s: %q, want %q", phrase, got, want)
		}
	}
}
