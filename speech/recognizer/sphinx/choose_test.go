package sphinx

import (
	"slices"
	"strings"
	"testing"
)

// TestChoose: a wish is believed if nothing else is near that means something else, or if the grammar heard it too.
func TestChoose(t *testing.T) {
	means := func(text string) (string, bool) { // of "spin left", left is left over
		meaning, rest, _ := strings.Cut(text, " ")
		if meaning == "" || meaning == "other" || meaning == "own" {
			return "", false
		}
		return meaning, !strings.HasSuffix(rest, "left")
	}
	near, far := []rival{{"spin a top", -2000}, {"stop it", -2400}}, []rival{{"spin a top", -2000}, {"spin the top", -2100}, {"stop it", -2500}, {"other", -1000}}
	worse := []rival{{"spin a top", -2400}, {"stop it", -2000}}
	for name, c := range map[string]struct {
		phrase, wish sentence
		others       []rival
		text         string
		sure         bool
	}{
		"no rival":                            {sentence{"stop it", 0.1}, sentence{"spin a top", 0.5}, nil, "spin a top", true},
		"a far rival, less sure":              {sentence{"stop it", 0.1}, sentence{"spin a top", 0.2}, far, "spin a top", true},
		"a far rival, unsure":                 {sentence{"stop it", 0.1}, sentence{"spin a top", 0.1}, far, "spin a top", false},
		"a near rival":                        {sentence{"stop it", 0.1}, sentence{"spin a top", 0.9}, near, "spin a top", false},
		"not among the results":               {sentence{"stop it", 0.1}, sentence{"spin tops", 0.9}, []rival{{"stop it", -2500}}, "spin tops", false},
		"a near rival, the grammar agrees":    {sentence{"spin", 0.6}, sentence{"spin a top", 0.3}, near, "spin a top", true},
		"a better rival, the grammar agrees":  {sentence{"spin", 0.4}, sentence{"spin a top", 0.9}, worse, "spin a top", false},
		"a better rival, the grammar is sure": {sentence{"spin", 0.6}, sentence{"spin a top", 0.3}, worse, "spin a top", true},
		"a better rival, the same words":      {sentence{"spin a top", 0.6}, sentence{"spin a top", 0.3}, worse, "spin a top", true},
		"words left over":                     {sentence{"stop it", 0.1}, sentence{"spin left", 0.7}, far, "spin left", false},
		"words left over, but sure":           {sentence{"stop it", 0.1}, sentence{"spin left", 0.9}, far, "spin left", true},
		"words left over, the grammar too":    {sentence{"spin", 0.1}, sentence{"spin left", 0.7}, far, "spin left", true},
		"the grammar alone":                   {sentence{"stop it", 0.99}, sentence{"other words", 0.4}, near, "other words", false},
		"another value":                       {sentence{"spin[left]", 0.6}, sentence{"spin[right]", 0.9}, nil, "spin[right]", false},
		"another value, the grammar unsure":   {sentence{"spin[left]", 0.4}, sentence{"spin[right]", 0.9}, nil, "spin[right]", true},
		"no wish":                             {sentence{"stop it", 0.1}, sentence{"other words", 0.6}, near, "other words", true},
		"a custom phrase":                     {sentence{"own phrase", 0.9}, sentence{"spin a top", 0.6}, far, "own phrase", true},
		"a custom phrase, in part a wish":     {sentence{"spin left", 0.9}, sentence{"stop it", 0.6}, nil, "spin left", true},
		"nothing":                             {sentence{}, sentence{}, nil, "", false},
	} {
		if text, sure := choose(c.phrase, c.wish, c.others, means); text != c.text || sure >= 0.5 != c.sure || sure < 0 || sure > 1 {
			t.Errorf("%s: %q %v, want %q, sure %v", name, text, sure, c.text, c.sure)
		}
	}
}

func FuzzRivals(f *testing.F) {
	f.Add("set a timer -29144\nset a  timer -29205\n")
	f.Add("-7\nword\n")
	f.Fuzz(func(t *testing.T, list string) {
		all, err := parseRivals(list)
		if err == nil && len(all) != len(slices.Collect(strings.Lines(list))) {
			t.Errorf("%d of %q", len(all), list)
		}
		if margin := apart(all, "a", func(text string) (string, bool) { return text[:min(1, len(text))], true }); margin > far {
			t.Errorf("%d of %q", margin, list)
		}
	})
}
