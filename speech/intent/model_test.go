package intent

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// readModel reads a model in the ARPA format: the logarithms of base 10 of how probable a sequence is, and of what the shorter one has left.
func readModel(t *testing.T, text string) (probable, left map[string]float64) {
	probable, left = map[string]float64{}, map[string]float64{}
	order := 0
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case strings.HasSuffix(line, "-grams:\n"):
			order++
		case order > 0 && len(f) > order:
			key := strings.Join(f[1:order+1], " ")
			v, err := strconv.ParseFloat(f[0], 64)
			if err != nil || v > 0 || math.IsNaN(v) {
				t.Fatalf("%q: %v", line, err)
			}
			probable[key] = v
			if len(f) > order+1 {
				left[key], _ = strconv.ParseFloat(f[order+1], 64)
			}
		}
	}
	return probable, left
}

// TestModel: the words that follow others have a probability of 1 together, wishes are far more probable than the same words in another order, words of
// general English can be said, and words that a recogniser lacks cannot.
func TestModel(t *testing.T) {
	m := load(t, "en-US")
	general := map[string]float64{"elephant": 0.001, "hedge": 0}
	for word := range m.vocabulary {
		general[word] = 0.0001
	}
	delete(general, "wheelie")
	probable, left := readModel(t, m.Model(general))
	next := func(before, word string) float64 {
		back := 0.0
		for {
			if p, ok := probable[strings.TrimSpace(before+" "+word)]; ok {
				return back + p
			}
			if before == "" {
				return -9
			}
			back += left[before]
			_, before, _ = strings.Cut(before, " ")
		}
	}
	for _, before := range []string{"<s>", "turn", "set a", "<s> what", "the timer", "please </s>"} {
		sum := 0.0
		for key := range probable {
			if !strings.Contains(key, " ") && key != "<s>" {
				sum += math.Pow(10, next(before, key))
			}
		}
		if math.Abs(sum-1) > 0.1 { // rare sequences are left out
			t.Errorf("after %q: %.3f, want 1", before, sum)
		}
	}
	sentence := func(text string) (sum float64) {
		before := "<s>"
		for _, word := range append(strings.Fields(text), "</s>") {
			sum += next(before, word)
			f := strings.Fields(before + " " + word)
			before = strings.Join(f[max(0, len(f)-2):], " ")
		}
		return sum
	}
	for said, other := range map[string]string{
		"could you turn around please": "around you please turn could", "set a timer for twenty five minutes": "minutes five a for twenty set timer",
		"my name is peter": "peter name my is", "what is the weather in berlin tomorrow": "tomorrow in weather is berlin the what",
	} {
		if a, b := sentence(said), sentence(other); a < b+3 {
			t.Errorf("%q: %.1f, %q: %.1f", said, a, other, b)
		}
	}
	if _, ok := probable["wheelie"]; ok || probable["elephant"] < -6 || probable["elephant"] > -2 {
		t.Errorf("wheelie %v, elephant %.1f", ok, probable["elephant"])
	}
	if probable["hedge"] != 0 {
		t.Error("a word that is neither frequent nor in a pattern is in the model")
	}
}
