package spoken

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/speech/intent"
	"kennel/speech/recognizer/recognizertest"
	"kennel/speech/recognizer/sphinx"
)

var (
	update = flag.Bool("update", false, "say everything and write SPOKEN.md")
	clean  = flag.Bool("clean", false, "say everything without noise, write nothing")
	only   = flag.String("voice", "", "with -clean: of this voice")
)

const english = "en-US"

// everything reports whether the tests say all sentences with all voices: make spoken, make soak.
func everything() bool { return os.Getenv("KENNEL_SOAK") != "" || *update || *clean }

// phrase is something to say and the intent it has when typed; the zero intent for what must stay unmatched.
type phrase struct {
	text string
	want intent.Match
}

var slot = regexp.MustCompile(`\[[^\]]*\]`)

// fillings has what goes into the slots of annex D; other slots list their values.
var fillings = map[string][]string{
	"number":         {"one", "three", "five"},
	"length of time": {"thirty seconds", "five minutes", "twenty five minutes", "one hour"},
	"City Name":      {"London", "New York", "Paris"},
	"Your Name":      {"John", "Mary", "Anna"},
	"me/us":          {"me", "us"},
}

// phrases returns the phrases of annex D without slots, those with slots filled, and sentences that are no intent.
func phrases(t *testing.T, m *intent.Matcher) map[string][]phrase {
	out := map[string][]phrase{}
	add := func(kind, text string) {
		text = strings.Trim(text, "? ")
		p := phrase{text: text, want: m.Match(text)}
		if (p.want.UserIntent == "") != (kind == kinds[2] || kind == kinds[3]) {
			t.Errorf("typed %q is %q", text, p.want.UserIntent)
		}
		out[kind] = append(out[kind], p)
	}
	for _, in := range intent.All() {
		for _, text := range in.Phrases {
			name := slot.FindString(text)
			if name == "" {
				add(kinds[0], text)
				continue
			}
			values, ok := fillings[strings.Trim(name, "[]")]
			if !ok {
				values = strings.Split(strings.Trim(name, "[]"), ", ")
			}
			for _, v := range values {
				add(kinds[1], strings.Replace(text, name, v, 1))
			}
		}
	}
	for i, name := range []string{"others", "near"} {
		lines, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(lines)) {
			if line = strings.TrimSpace(line); line[0] != '#' {
				add(kinds[2+i], line)
			}
		}
	}
	return out
}

var kinds = []string{"phrases", "phrases with slots", "other sentences", "sentences close to a phrase"}

// tally counts what became of phrases.
type tally struct{ right, unmatched, wrong int }

func (c tally) all() int { return c.right + c.unmatched + c.wrong }

func (c tally) plus(o tally) tally {
	return tally{c.right + o.right, c.unmatched + o.unmatched, c.wrong + o.wrong}
}

func (c tally) String() string {
	share := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, c.all()))) }
	return fmt.Sprintf("%d | %s | %s | %s", c.all(), share(c.right), share(c.unmatched), share(c.wrong))
}

func same(got, want intent.Match) bool {
	return got.UserIntent == want.UserIntent && maps.Equal(got.Params, want.Params)
}

// score says phrases and compares what was understood. Two at once keep a machine busy.
func score(t *testing.T, r *sphinx.Recognizer, m *intent.Matcher, voice string, snr float64, all []phrase) (c tally, wrong []string) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	todo := make(chan phrase)
	for range 2 {
		wg.Go(func() {
			for p := range todo {
				heard, err := recognizertest.Listen(t.Context(), r, recognizertest.Say(t, voice, p.text, snr))
				if err != nil {
					t.Errorf("%s, %q: %v", voice, p.text, err)
				}
				got := m.Match(heard.Text)
				mu.Lock()
				switch {
				case same(got, p.want):
					c.right++
				case got.UserIntent == "":
					c.unmatched++
				default:
					c.wrong++
					wrong = append(wrong, fmt.Sprintf("%s: %q was heard as %q", voice, p.text, heard.Text))
				}
				mu.Unlock()
			}
		})
	}
	for _, p := range all {
		todo <- p
	}
	close(todo)
	wg.Wait()
	slices.Sort(wrong)
	return c, wrong
}

func open(t testing.TB) (*sphinx.Recognizer, *intent.Matcher) {
	m, err := intent.Load(english)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sphinx.New(t.Context(), sphinx.Config{Grammar: m.Grammar(), Pronunciations: m.Pronunciations(), Model: m.Model, Means: m.Means, Limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if words := r.Unknown(); len(words) > 0 {
		t.Errorf("no pronunciation of %q", words)
	}
	return r, m
}

// TestSpoken says everything with every voice (hold 2 of voice), or every ninth phrase, each in the next voice: a tenth of all, with room for two that are not right.
func TestSpoken(t *testing.T) {
	r, m := open(t)
	all := phrases(t, m)
	if everything() {
		spokenTable(t, r, m, all)
		return
	}
	var sum tally
	var mistakes []string
	for _, kind := range kinds {
		for j, voice := range recognizertest.Voices {
			var some []phrase
			for i := 9 * j; i < len(all[kind]); i += 9 * len(recognizertest.Voices) {
				some = append(some, all[kind][i])
			}
			c, wrong := score(t, r, m, voice, 0, some)
			sum = sum.plus(c)
			mistakes = append(mistakes, wrong...)
		}
	}
	t.Logf("%+v", sum)
	if sum.right < sum.all()-2 || sum.wrong > 1 {
		t.Errorf("%+v, wrong: %q", sum, mistakes)
	}
}

// grammarAlone counts what was understood of each kind, in all voices and noises together, before the recogniser had a language model: nothing of it may be lost.
var grammarAlone = map[string]tally{
	"phrases": {957, 368, 19}, "phrases with slots": {476, 153, 22}, "other sentences": {669, 0, 3}, "sentences close to a phrase": {641, 0, 31},
}

// spokenTable says everything with every voice: flite at least 95 % right, espeak-ng 65 %.
func spokenTable(t *testing.T, r *sphinx.Recognizer, m *intent.Matcher, all map[string][]phrase) {
	voices, noises := append(slices.Clone(recognizertest.Voices), recognizertest.HeldOut...), []float64{0, 20, 10}
	if *clean {
		noises = noises[:1]
		if *only != "" {
			voices = []string{*only}
		}
	}
	var b strings.Builder
	b.WriteString(header)
	sums := map[string]tally{} // by kind and synthesiser or noise
	var mistakes []string
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n## %s\n\n| voice | noise | said | right | unmatched | wrong |\n|---|---|---|---|---|---|\n", strings.ToUpper(kind[:1])+kind[1:])
		for _, voice := range voices {
			for _, snr := range noises {
				c, wrong := score(t, r, m, voice, snr, all[kind])
				noise, key := "none", "flite"
				switch {
				case snr > 0:
					noise = fmt.Sprintf("%g dB", snr)
					key = "noise " + noise + " below"
				case voice == "espeak-ng":
					key = voice
				case strings.HasPrefix(voice, "espeak-ng"):
					key = "held-out voices"
				}
				if snr == 0 {
					mistakes = append(mistakes, wrong...)
				}
				key = kind + ", " + key
				sums[key] = sums[key].plus(c)
				sums[kind] = sums[kind].plus(c)
				fmt.Fprintf(&b, "| %s | %s | %v |\n", voice, noise, c)
			}
		}
	}
	b.WriteString("\n## In sum\n\n| | said | right | unmatched | wrong |\n|---|---|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "| %s | %v |\n", key, sums[key])
	}
	b.WriteString("\n## What was understood wrong, without noise\n\n")
	for _, w := range mistakes {
		b.WriteString("- " + w + "\n")
	}
	t.Log("\n" + b.String())
	if *update && !*clean {
		if err := os.WriteFile("../SPOKEN.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for key, least := range map[string]float64{
		"phrases, flite": 0.95, "phrases, espeak-ng": 0.65, "phrases with slots, flite": 0.9, "phrases, held-out voices": 0.65,
		"other sentences, flite": 0.95, "other sentences, espeak-ng": 0.95, "other sentences, held-out voices": 0.95,
		"other sentences, noise 20 dB below": 0.98, "other sentences, noise 10 dB below": 0.98,
		"sentences close to a phrase, flite": 0.8, "sentences close to a phrase, noise 20 dB below": 0.8, "sentences close to a phrase, noise 10 dB below": 0.95,
	} {
		if c := sums[key]; float64(c.right) < least*float64(c.all()) {
			t.Errorf("%s: %v right of %v, want %v", key, c.right, c.all(), least)
		}
	}
	for kind, old := range grammarAlone {
		if c := sums[kind]; !*clean && (c.all() != old.all() || c.right < old.right || c.wrong > old.wrong) {
			t.Errorf("%s: %d right and %d wrong of %d, before the language model %d and %d of %d", kind, c.right, c.wrong, c.all(), old.right, old.wrong, old.all())
		}
	}
	for key, most := range map[string]float64{
		"phrases, flite": 0.02, "phrases, espeak-ng": 0.02, "phrases, held-out voices": 0.02,
		"phrases, noise 20 dB below": 0.03, "phrases, noise 10 dB below": 0.03, "phrases with slots, noise 10 dB below": 0.05,
	} {
		if c := sums[key]; float64(c.wrong) > most*float64(c.all()) {
			t.Errorf("%s: %d wrong of %d, want at most %v", key, c.wrong, c.all(), most)
		}
	}
}

const header = `# Spoken phrases

How the local recogniser (PocketSphinx with the grammar of the catalogue and a language model of the intents) and the intents understand the published phrases of annex D, said by
synthetic voices: slt, awb, kal16 and rms of flite, and espeak-ng; its last two voices were used for no setting. Right is the same intent, with the same
parameters, as the typed phrase. Sentences that are no phrase are right when they stay unmatched. Noise is pink, so far below the speech. ` + "`make spoken`" + ` writes this file again.
`

// BenchmarkLatency is the time from the last sample of a sentence to its text, with audio at the pace of speech.
func BenchmarkLatency(b *testing.B) {
	r, _ := open(b)
	samples := recognizertest.Say(b, "slt", "set a timer for twenty five minutes", 0)
	var took []time.Duration
	for b.Loop() {
		got, d, err := recognizertest.ListenLive(b.Context(), r, samples)
		if err != nil || got.Text != "set a timer for twenty five minutes" {
			b.Fatalf("%+v, %v", got, err)
		}
		took = append(took, d)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Milliseconds()), "p95-ms")
}
