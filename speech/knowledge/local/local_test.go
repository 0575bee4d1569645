package local

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"kennel/speech/knowledge"
)

var noon = func() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

// TestSubjects: the twelve subjects with the questions of the robot's manual (seed 16931-16947, VEC-NLP-06). What changes from day to day is said not
// to be known.
func TestSubjects(t *testing.T) {
	p := New(noon)
	for _, c := range []struct{ subject, question, want string }{
		{"currency conversion", "What's 1000 Yen in US Dollars?", ""},
		{"flight status", "What is the status of American Airlines Flight 100?", ""},
		{"equation solver", "What is the square root of 144?", "The answer is 12."},
		{"general knowledge", "What is the tallest building?", "The tallest building is the Burj Khalifa in Dubai, with 828 metres."},
		{"places", "What is the distance between London and New York?", "From London to New York it is about 5570 kilometres, or 3460 miles, as the crow flies."},
		{"people", "Who is Jarvis?", "Jarvis is the butler of the Avengers in the comics, and the artificial intelligence that helps Iron Man in the films."},
		{"nutrition", "How many calories are in an avocado?", "Avocado: about 240 calories."},
		{"sports", "Who won the World Series?", ""},
		{"stock market", "How is the stock market?", ""},
		{"time zone", "What time is it in Hong Kong?", "In Hong Kong it is 8:00 PM."},
		{"unit conversion", "How fast is a knot?", "1 knot is 1.151 miles per hour, or 1.852 kilometres per hour."},
		{"word definition", "What is the definition of Artificial Intelligence?", "Artificial intelligence: the ability of machines to do what needs intelligence in people, such as learning, reasoning and understanding language."},
	} {
		ask(t, p, c.subject, c.question, c.want)
	}
}

func ask(t *testing.T, p *Provider, subject, question, want string) {
	t.Helper()
	a, err := p.Ask(t.Context(), knowledge.Question{Text: question, Language: "en-US", Timezone: "Europe/Berlin"})
	if want == "" && !errors.Is(err, knowledge.ErrNoResult) || want != "" && (err != nil || a.Spoken != want || a.Source != Source || len(a.Domains) != 1) {
		t.Errorf("%s: %q: got %q, %v; want %q", subject, question, a.Spoken, err, want)
	}
}

func TestAnswers(t *testing.T) {
	p := New(noon)
	for question, want := range map[string]string{
		"what is two plus two": "The answer is 4.", "what's twenty five times four?": "The answer is 100.", "how much is 15 percent of 80": "The answer is 12.",
		"calculate (2 + 3) * 4": "The answer is 20.", "what is 2 to the power of 10": "The answer is 1024.", "what is 7 divided by 2": "The answer is 3.5.", "what is one divided by three": "The answer is about 0.333333.",
		"what is one hundred and five minus five": "The answer is 100.", "what is two thousand three hundred and twelve plus 1": "The answer is 2313.", "what is five and six": "The answer is 11.",
		"what is a million divided by a thousand": "The answer is 1000.", "what is three point one four times two": "The answer is 6.28.", "what is 1,000 + 1": "The answer is 1001.", "what is 3 x 4": "The answer is 12.",
		"what is nine squared": "The answer is 81.", "what is half of 30": "The answer is 15.", "what is five factorial": "The answer is 120.", "what is minus 3 plus 1": "The answer is -2.", "what is 5 divided by zero": "Nothing can be divided by zero.",
		"solve 2x + 3 = 7 for x": "X = 2.", "what is x if two x plus three equals seven": "X = 2.", "solve x squared = 9": "X = 3 or x = -3.", "solve x = x + 1": "No x.", "what is 2 dozen plus 1": "The answer is 25.",
		"convert 5 miles to kilometers": "5 miles are 8.047 kilometres.", "how many feet are in a mile": "1 mile is 5280 feet.", "what is 100 fahrenheit in celsius": "100 degrees Fahrenheit are 37.78 degrees Celsius.",
		"what's minus 40 degrees celsius in fahrenheit": "-40 degrees Celsius are -40 degrees Fahrenheit.", "how many seconds in a day": "1 day is 86400 seconds.", "how heavy is a stone": "1 stone is 6.35 kilograms, or 14 pounds.", "what is twelve inches in centimeters": "12 inches are 30.48 centimetres.",
		"what time is it in Tokyo right now": "In Tokyo it is 9:00 PM.", "what is the time in Sydney": "In Sydney it is 11:00 PM.", "what's the time in Honolulu": "In Honolulu it is 2:00 AM.", "What time is it in Auckland?": "In Auckland it is 1:00 AM on Tuesday.", "what time is it in Japan": "In Japan it is 9:00 PM.",
		"what is the time difference between London and Tokyo": "Tokyo is 9 hours ahead of London.", "what's the capital of France?": "The capital of France is Paris.", "tell me the capital city of the UK please": "The capital of United Kingdom is London.",
		"how far is Paris from Berlin": "From Paris to Berlin it is about 880 kilometres, or 550 miles, as the crow flies.", "how many planets are there": "There are eight planets: Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus and Neptune.",
		"define robot": "Robot: a machine that senses, decides and acts by itself.", "what is a robot": "Robot: a machine that senses, decides and acts by itself.", "why is the sky blue?": "Air scatters blue light more than red light, so the sky looks blue.",
		// Nothing is known of these, and nothing is made up.
		"": "", "what": "", "what is": "", "is it": "", "what is 5": "", "who is John Smith": "", "what time is it in Atlantis": "", "how many apples are in a mile": "", "5 miles in kilograms": "", "what is the meaning of life": "", "2 +": "", "(((": "", "x": "", "what is the square root of minus one": "",
		strings.Repeat("(", 200): "", strings.Repeat("1+", 200) + "1": "",
	} {
		ask(t, p, "", question, want)
	}
	if _, err := p.Ask(t.Context(), knowledge.Question{Text: "was ist 2 plus 2", Language: "de-DE"}); !errors.Is(err, knowledge.ErrNoResult) {
		t.Errorf("German: %v, want no result", err)
	}
}

func TestFilesRefuse(t *testing.T) {
	for name, c := range map[string]struct{ facts, cities, want string }{
		"two fields":   {"a | b", "", "want three fields"},
		"twice":        {"capital | A | B\ncapital | A | C", "", "twice"},
		"three fields": {"", "A | 1 | 2", "want four fields"},
		"no number":    {"", "A | x | 2 | Asia/Tokyo", "invalid syntax"},
		"no zone":      {"", "A | 1 | 2 | Mars/Base", "unknown time zone"},
	} {
		p := &Provider{facts: map[string]fact{}, cities: map[string]city{}}
		if err := p.read(c.facts, c.cities); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzCalculate: whatever is said is answered or refused in bounded time, and never with a number that is none.
func FuzzCalculate(f *testing.F) {
	for _, s := range []string{"2 plus two", "solve", "x²-5x+6=0", "(1)", "3x4", "two hundred and five point one", "½√∛!", "1e9", "a dozen million"} {
		f.Add(s)
	}
	p := New(noon)
	f.Fuzz(func(t *testing.T, s string) {
		out, err := calculate(s)
		if err == nil && (out == "" || regexp.MustCompile(`NaN|Inf`).MatchString(out)) || err != nil && out != "" {
			t.Errorf("%q: %q, %v", s, out, err)
		}
		if _, err := p.Ask(t.Context(), knowledge.Question{Text: s}); err != nil && !errors.Is(err, knowledge.ErrNoResult) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
