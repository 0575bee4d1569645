package intent

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func load(tb testing.TB, code string) *Matcher {
	tb.Helper()
	m, err := Load(code)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// said returns the published phrases of an intent with something said for each slot, and the parameters that this gives.
func said(in Intent) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, p := range in.Phrases {
		before, rest, has := strings.Cut(p, "[")
		slot, after, _ := strings.Cut(rest, "]")
		var fill map[string]string // what is said, and the value
		key := ""
		switch slot {
		case "":
		case "length of time":
			key, fill = "timer_duration", map[string]string{"five minutes": "300", "an hour and a half": "5400", "90 seconds": "90", "five minutes and thirty seconds": "330"}
		case "number":
			key, fill = "volume_level", map[string]string{"one": "VOLUME_1", "2": "VOLUME_2", "three": "VOLUME_3", "4": "VOLUME_4", "five": "VOLUME_5"}
		case "City Name":
			key, fill = "speakable_location_string", map[string]string{"London": "london", "San Francisco": "san francisco", "Wolverhampton": "wolverhampton"}
		case "Your Name":
			key, fill = "username", map[string]string{"Anna": "anna", "Mary Jane": "mary jane", "Grigori": "grigori"}
		case "me/us":
			key, fill = "entity_photo_selfie", map[string]string{"me": "photo_selfie", "us": "photo_selfie"}
		default:
			key, fill = "eye_color", map[string]string{}
			for c := range strings.SplitSeq(slot, ", ") {
				fill[c] = "COLOR_" + strings.ToUpper(strings.Replace(c, "sapphire", "blue", 1))
			}
		}
		if !has {
			out[p] = map[string]string{}
		}
		for words, value := range fill {
			out[before+words+after] = map[string]string{key: value}
		}
		switch strings.ToLower(p) {
		case "cancel the timer", "stop the timer":
			out[p] = map[string]string{"entity_behavior_stoppable": "timer"}
		case "stop exploring":
			out[p] = map[string]string{"entity_behavior_stoppable": "exploring"}
		case "volume maximum":
			out[p] = map[string]string{"volume_level": "VOLUME_5"}
		case "take a picture":
			out[p] = map[string]string{"entity_photo_selfie": ""}
		case "take a selfie":
			out[p] = map[string]string{"entity_photo_selfie": "photo_selfie"}
		}
	}
	return out
}

// TestPublishedPhrases: VEC-NLP-05, VEC-INT-16 and hold 1 of the voice issue.
func TestPublishedPhrases(t *testing.T) {
	n := 0
	for _, code := range []string{"", "en-US", "en-GB", "en-AU"} {
		m := load(t, code)
		for _, in := range All() {
			for phrase, params := range said(in) {
				for _, way := range []string{phrase, strings.ToUpper(phrase) + "!", "Hey Vector, " + phrase, phrase + " please."} {
					got := m.Match(way)
					if n++; got.UserIntent != in.User || got.Cloud != in.Cloud || !maps.Equal(got.Params, params) || got.Confidence != 1 {
						t.Errorf("%s: %q: %+v, want %s %v", code, way, got, in.User, params)
					}
				}
			}
		}
	}
	t.Logf("%d sentences of published phrases", n)
}

type sentence struct {
	intent, text string
	params       map[string]string
}

func sentences(t *testing.T, file string) []sentence {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out []sentence
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) == 1 {
			out = append(out, sentence{text: line})
			continue
		}
		s := sentence{intent: strings.TrimSpace(f[0]), text: strings.TrimSpace(f[2]), params: map[string]string{}}
		for p := range strings.SplitSeq(strings.TrimSpace(f[1]), ";") {
			if k, v, ok := strings.Cut(p, "="); ok {
				s.params[k] = v
			}
		}
		out = append(out, s)
	}
	return out
}

// TestHeldOut: sentences that the patterns were not written with. heldout.en.txt and heldout.de.txt were written before the patterns, by the same
// author; heldout2.en.txt after them, and only the threshold was chosen with it. The first such set, dev.en.txt, had 83 % right and 0 % wrong; the
// patterns were then improved with it. heldout2.de.txt and dev.de.txt were written before the second half of the German patterns: 59 % and 73 % were right then, and only dev.de.txt was
// looked at. heldout3.de.txt was written after them and changed nothing. VERBOSE_HELD_OUT=FILE shows what fails.
func TestHeldOut(t *testing.T) {
	for _, tc := range []struct {
		code, file string
		right      int // percent
	}{{"en-US", "heldout.en.txt", 90}, {"en-US", "heldout2.en.txt", 90}, {"en-US", "dev.en.txt", 90},
		{"de-DE", "heldout.de.txt", 90}, {"de-DE", "heldout2.de.txt", 90}, {"de-DE", "heldout3.de.txt", 80}, {"de-DE", "dev.de.txt", 90}} {
		m := load(t, tc.code)
		all := sentences(t, tc.file)
		right, wrong, none := 0, 0, 0
		byIntent := map[string]int{}
		for _, s := range all {
			got := m.Match(s.text)
			switch {
			case got.UserIntent == s.intent && sameParams(got.Params, s.params):
				right++
			case got.UserIntent == "":
				none++
			default:
				wrong++
			}
			if got.UserIntent != s.intent {
				byIntent[s.intent]++
			}
			if os.Getenv("VERBOSE_HELD_OUT") == tc.file && (got.UserIntent != s.intent || !sameParams(got.Params, s.params)) {
				t.Logf("%q: %s %v %.2f, want %s %v", s.text, got.UserIntent, got.Params, got.Confidence, s.intent, s.params)
			}
		}
		t.Logf("%s: %d sentences: %d right (%.1f %%), %d wrong (%.1f %%), %d unmatched", tc.file, len(all), right, 100*float64(right)/float64(len(all)),
			wrong, 100*float64(wrong)/float64(len(all)), none)
		if right*100 < len(all)*tc.right || wrong*100 >= len(all)*2 {
			t.Errorf("%s: want %d %% right and under 2 %% wrong; misses by intent: %v", tc.file, tc.right, byIntent)
		}
	}
}

func sameParams(got, want map[string]string) bool {
	return len(want) == 0 && got["entity_photo_selfie"] == "" || maps.Equal(got, want)
}

func TestNearMisses(t *testing.T) {
	for code, file := range map[string]string{"en-US": "nearmiss.en.txt", "de-DE": "nearmiss.de.txt"} {
		m, n := load(t, code), 0
		for _, s := range sentences(t, file) {
			n++
			if got := m.Match(s.text); got.UserIntent != "" {
				t.Errorf("%q: %+v, want nothing", s.text, got)
			}
		}
		t.Logf("%s: %d near-misses", code, n)
	}
	for code, file := range map[string]string{"en-US": "nearmiss2.en.txt", "de-DE": "nearmiss2.de.txt"} {
		m, all, taken := load(t, code), sentences(t, file), 0
		for _, s := range all {
			if got := m.Match(s.text); got.UserIntent != "" {
				taken++
				t.Logf("%q: %s", s.text, got.UserIntent)
			}
		}
		t.Logf("talk in %s: %d of %d sentences are taken for an intent", code, taken, len(all))
		if taken*100 > len(all)*4 {
			t.Errorf("want at most 4 %%")
		}
	}
}

// TestGermanRobotReadsEnglish: German, which is tried first, takes no English sentence for something else (part of VEC-NLP-08).
func TestGermanRobotReadsEnglish(t *testing.T) {
	german, english := load(t, "de-DE"), load(t, "en-US")
	for _, file := range []string{"heldout.en.txt", "heldout2.en.txt", "dev.en.txt"} {
		for _, s := range sentences(t, file) {
			if got, want := german.Match(s.text), english.Match(s.text); got.UserIntent != "" && (got.UserIntent != want.UserIntent || !maps.Equal(got.Params, want.Params)) {
				t.Errorf("%q: in German %s %v, in English %s %v", s.text, got.UserIntent, got.Params, want.UserIntent, want.Params)
			}
		}
	}
}

// TestLongerWish: what is asked for "for me" or "with you" stays what it is without.
func TestLongerWish(t *testing.T) {
	for text, want := range map[string]string{"could you turn around for me": "movement_turnaround", "turn around to me": "imperative_lookatme",
		"I want to play blackjack with you": "play_blackjack", "play a game with you": "play_anygame"} {
		if got := load(t, "en-US").Match(text); got.UserIntent != want {
			t.Errorf("%q: %s, want %s", text, got.UserIntent, want)
		}
	}
}

func TestSlots(t *testing.T) {
	for code, cases := range map[string]map[string]string{
		"en-US": {
			"duration: five minutes": "300", "duration: 5min": "300", "duration: an hour": "3600", "duration: half an hour": "1800", "duration: a quarter of an hour": "900",
			"duration: three quarters of an hour": "2700", "duration: an hour and a half": "5400", "duration: one and a half hours": "5400", "duration: 1.5 hours": "5400",
			"duration: two and a half minutes": "150", "duration: a minute and thirty seconds": "90", "duration: one hour twenty minutes and 5 seconds": "4805",
			"duration: a couple of minutes": "120", "duration: ninety-five seconds": "95", "duration: a hundred and twenty seconds": "120", "duration: 90s": "90",
			"duration: twenty five hours": "", "duration: zero seconds": "", "duration: five": "", "duration: minutes": "", "duration: five minutes ten hours": "300",
			"number: two hundred and seven": "207", "number: twenty-one": "21", "number: 42": "42", "number: one hundred": "100", "number: john": "",
			"time: 5 pm": "17:00", "time: half past seven": "07:30", "time: quarter to nine": "08:45", "time: seven thirty": "07:30", "time: 17:30": "17:30", "time: noon": "12:00",
			"time: ten past six in the evening": "18:10", "time: eight o'clock": "08:00", "time: twelve am": "00:00", "time: sixty": "",
			"color: Sapphire": "COLOR_BLUE", "color: red": "", "level: the loudest": "VOLUME_5", "when: next friday": "friday",
		},
		"de-DE": {
			"duration: fünf Minuten": "300", "duration: eine halbe Stunde": "1800", "duration: eineinhalb Stunden": "5400", "duration: anderthalb Stunden": "5400",
			"duration: eine Viertelstunde": "900", "duration: fünfundzwanzig Minuten": "1500", "duration: eine Stunde und zwanzig Minuten": "4800", "duration: 90 Sekunden": "90",
			"number: siebenundvierzig": "47", "time: halb acht": "07:30", "time: viertel nach neun": "09:15", "time: siebzehn Uhr dreißig": "17:30", "color: grün": "COLOR_GREEN",
		},
	} {
		l := load(t, code).lang
		for in, want := range cases {
			kind, text, _ := strings.Cut(in, ": ")
			words := l.tokens(text)
			got := ""
			for _, f := range l.fill(kind, words, 0) {
				if got = f.value; f.end != len(words) && want != "" && text != "five minutes ten hours" {
					t.Errorf("%s: %q is read to word %d of %d", code, in, f.end, len(words))
				}
			}
			if got != want {
				t.Errorf("%s: %q: %q, want %q", code, in, got, want)
			}
		}
	}
}

func TestLoadUnknownLanguage(t *testing.T) {
	if _, err := Load("xx-XX"); err == nil || !strings.Contains(err.Error(), "want one of de-DE, en-AU, en-GB, en-US") {
		t.Error(err)
	}
}

// TestSpelling: German that is typed without umlauts is understood, and words that only look like it stay.
func TestSpelling(t *testing.T) {
	m := load(t, "de-DE")
	for text, want := range map[string]string{"Wie spaet ist es?": "show_clock", "hoer auf": "global_stop", "stell einen timer auf fuenfundzwanzig minuten": "set_timer timer_duration=1500",
		"wie ist das wetter in koeln": "weather_response speakable_location_string=köln", "ich heisse juergen": "meet_victor username=jürgen", "ich heiße emanuel": "meet_victor username=emanuel",
		"mach deine augen gruen": "imperative_eyecolor_specific eye_color=COLOR_GREEN", "tschuess": "greeting_goodbye", "wie laeufts": "status_feeling", "noch eine neue runde": "blackjack_playagain"} {
		got := m.Match(text)
		said := got.UserIntent
		for k, v := range got.Params {
			said += " " + k + "=" + v
		}
		if said != want {
			t.Errorf("%q: %s, want %s", text, said, want)
		}
	}
}

// TestClosest: a locale without intents of its own has those of its language (part of VEC-NLP-08).
func TestClosest(t *testing.T) {
	for locale, want := range map[string]string{"de-DE": "de-DE", "de-AT": "de-DE", "de": "de-DE", "en-GB": "en-GB", "en-CA": "en-US", "en": "en-US", "fr-FR": "", "d": "", "": "", "den-DE": ""} {
		if got := Closest(locale); got != want {
			t.Errorf("%q: %q, want %q", locale, got, want)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"a (b": `'(' without ")"`, "a [b)": `'[' without "]"`, "[a]": "required word", "": "without words", "a || b": "without words", "a)": "unexpected", "{x}": "no slot",
		"$x": "no macro", "a;b": "want letters", strings.Repeat("(", 50) + "a" + strings.Repeat(")", 50): "nested",
	} {
		if _, err := parsePattern(pattern, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
}

// TestGrammar: every word that the local recogniser listens for has a pronunciation, and every intent that can be said is in it.
func TestGrammar(t *testing.T) {
	m := load(t, "en-US")
	g := m.Grammar()
	b, err := os.ReadFile("/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		w, _, _ := strings.Cut(line, " ")
		known[w] = true
	}
	words := m.Words()
	for _, w := range words {
		if !known[w] && m.Pronunciations()[w] == "" {
			t.Errorf("%q is in no dictionary", w)
		}
	}
	t.Logf("grammar of %d bytes, %d words", len(g), len(words))
	for _, in := range All() {
		if len(in.Phrases) > 0 && !strings.Contains(g, "<"+in.User+"> = ") {
			t.Errorf("%s is not in the grammar", in.User)
		}
	}
	if !strings.HasPrefix(g, "#JSGF V1.0;\ngrammar kennel;\npublic <command> = ") {
		t.Error(g[:min(len(g), 200)])
	}
	for _, r := range strings.FieldsFunc(g, func(r rune) bool { return strings.ContainsRune(" ()[]|;=\n", r) }) {
		if r[0] == '<' && r != "<command>" && !strings.Contains(g, "\n"+r+" = ") {
			t.Errorf("the rule %s is used and not there", r)
		}
	}
}

// TestIntentsWithoutPhrase: VEC-INT-17. All but three can be said, and these three a service sends.
func TestIntentsWithoutPhrase(t *testing.T) {
	for text, want := range map[string]string{"hit me": "blackjack_hit", "play again": "blackjack_playagain", "i'll stand": "blackjack_stand", "delete the timer": "global_delete",
		"look over there": "imperative_lookoverthere", "call me anna": "meet_victor", "play my messages": "message_playback", "record a message for sam": "message_record",
		"how are you": "status_feeling", "sign in to amazon": "amazon_signin", "sign out of amazon": "amazon_signout", "change your eye color": "imperative_eyecolor", "play keepaway": "play_specific"} {
		if got := load(t, "").Match(text); got.UserIntent != want {
			t.Errorf("%q: %+v, want %s", text, got, want)
		}
	}
	for _, name := range []string{"intent_knowledge_response_extend", "intent_knowledge_no_response", "intent_system_noaudio"} {
		if in, ok := ByCloud(name); !ok || DefaultMap().Cloud(name, nil).Name != in.User {
			t.Errorf("%s is not reachable", name)
		}
	}
}

// TestBound: no sentence makes the matcher blow up, whatever it is made of.
func TestBound(t *testing.T) {
	en, de := load(t, "en-US"), load(t, "de-DE")
	for _, text := range []string{strings.Repeat("dreh ", 60), strings.Repeat("spiel was ", 30), strings.Repeat("wie ist das ", 20), strings.Repeat("eine und eine halbe stunde ", 12), strings.Repeat("turn ", 60), strings.Repeat("play a ", 30), strings.Repeat("what is the ", 20), strings.Repeat("one and a half hours ", 15),
		strings.Repeat("go ", 60), strings.Repeat("x ", 60), strings.Repeat("a", 600), strings.Repeat("the ", 1000), strings.Repeat("don't ", 60)} {
		began := time.Now()
		en.Match(text)
		de.Match(text)
		if took := time.Since(began); took > 10*time.Second { // under 5 ms of one processor; a blow-up takes minutes
			t.Errorf("%.20q took %v", text, took)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, in := range All() {
		for p := range said(in) {
			f.Add(p)
		}
	}
	f.Add("Stell einen Timer auf fünfundzwanzig Minuten, bitte!")
	f.Add("half past ½ 1.5.5 90s \xff '' ’")
	en, de := load(f, "en-US"), load(f, "de-DE")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range []*Matcher{en, de} {
			got := m.Match(text)
			in, ok := ByUser(got.UserIntent)
			if got.UserIntent == "" && (got.Confidence != 0 || got.Params != nil) || got.UserIntent != "" && (!ok || got.Cloud != in.Cloud || got.Confidence < threshold || got.Confidence > 1) {
				t.Fatalf("%q: %+v", text, got)
			}
			if again := m.Match(text); again.UserIntent != got.UserIntent || !maps.Equal(again.Params, got.Params) {
				t.Fatalf("%q: %+v, then %+v", text, got, again)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	m := load(b, "")
	for _, text := range []string{"what time is it", "please set a timer for five minutes and thirty seconds", "the quick brown fox jumps over the lazy dog and goes home"} {
		b.Run(fmt.Sprintf("%d_words", len(strings.Fields(text))), func(b *testing.B) {
			for b.Loop() {
				m.Match(text)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		l, err := readLanguage(string(must(languageFiles.ReadFile("languages/en.txt"))))
		if err != nil {
			b.Fatal(err)
		}
		newMatcher(l, l.rules)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestNames(t *testing.T) {
	if got := Names(); len(got) != 65 || !slices.IsSorted(got) {
		t.Errorf("%d names, want the 65 of annex D, sorted: %v", len(got), got)
	}
}

func TestDay(t *testing.T) {
	for when, want := range map[string]int{"": 0, "today": 0, "tonight": 0, "tomorrow": 1, "weekend": 3, "wednesday": 0, "tuesday": 6, "friday": 2} {
		if got := Day(when, time.Wednesday); got != want {
			t.Errorf("%q on a Wednesday: %d, want %d", when, got, want)
		}
	}
	if got := Day("weekend", time.Sunday); got != 0 {
		t.Errorf("weekend on a Sunday: %d", got)
	}
}
