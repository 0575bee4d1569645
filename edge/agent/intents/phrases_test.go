package intents

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"kennel/infra/sourcetest"
)

// answersOf returns the literals of this package that are answers, or the beginnings of some.
func answersOf(t *testing.T) (out []string) {
	t.Helper()
	at := sourcetest.Places{Calls: map[string]int{"say": 0, "refuse": 1, "react": 1, "roll": 2, "move": 2}, Names: func(name string) bool { return name == "Text" || name == "said" }}
	at.Texts(t, "*.go", func(_, text string) {
		if strings.Contains(text, " ") {
			out = append(out, text)
		}
	})
	return out
}

// TestEveryAnswerHasGerman: no answer of the robot is without a German one, but for its forms that differ, which TestGerman says.
func TestEveryAnswerHasGerman(t *testing.T) {
	verb := regexp.MustCompile(`%[vdsq]`)
	all := answersOf(t)
	for _, text := range all {
		text = verb.ReplaceAllString(text, "7")
		if strings.HasSuffix(text, " ") {
			text += "7"
		}
		if _, ok := inGerman().say(text); !ok && text != "I turned 7" && text != "I went 7 cm 7" {
			t.Errorf("no German for %q", text)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d answers found: %q", len(all), all)
	}
}

// TestGerman: the words of the parts that differ are German too, and details for those who debug are left out.
func TestGerman(t *testing.T) {
	for english, want := range map[string]string{
		"I went 10 cm forward":                          "ich bin 10 Zentimeter vorwärts gefahren",
		"I went 10 cm back":                             "ich bin 10 Zentimeter zurück gefahren",
		"I turned left":                                 "ich habe mich nach links gedreht",
		"timer set for 1 hour 5 minutes":                "Timer gestellt: 1 Stunde 5 Minuten",
		"1 minute 1 second left":                        "noch 1 Minute 1 Sekunde",
		"my battery is nominal, and I am on my charger": "mein Akku ist in Ordnung, und ich stehe auf meiner Ladestation",
		"my battery is low":                             "mein Akku ist schwach",
		"my eyes are teal":                              "meine Augen sind türkis",
		"my eyes can be teal, orange, lime":             "meine Augen können so sein: türkis, orange, hellgrün",
		"Rain, 7 °C in Kiel":                            "Regen, 7 °C in Kiel",
		"that did not work: open /data: no such file":   "das hat nicht geklappt",
		"workshop holds me: on the bench":               "workshop hält mich fest: on the bench",
		"I have lived for 2 days":                       "ich lebe seit 2 Tagen",
	} {
		if got, ok := inGerman().say(english); !ok || got != want {
			t.Errorf("%q: %q, want %q", english, got, want)
		}
	}
	if _, ok := inGerman().say("nothing of the kind"); ok {
		t.Error("a text that it does not have")
	}
	for _, bad := range []string{"no second language", "a = b\na = c", "a {1} = b\na {1} = c", "a {1} = b {2}"} {
		if _, err := parsePhrases(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestAnswersInGerman: a robot whose owner chose German answers in German, in words and aloud; what the cloud knows is said as it came (part of VEC-NLP-08).
func TestAnswersInGerman(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &talker{}
		r := newRobot(t, vector)
		r.speaker = c
		r.docs["locale"] = []byte(`"de-DE"`)
		r.start(t, "1")
		synctest.Wait()
		if o := r.take(t, "check_timer"); o.Text != "es ist kein Timer gestellt" {
			t.Errorf("%+v", o)
		}
		synctest.Wait()
		r.take(t, "knowledge_response", "answer", "Er ist hoch.")
		synctest.Wait()
		r.take(t, "knowledge_response", "answer", "It is high.", "language", "en-US") // of an English question that was typed
		synctest.Wait()
		if o := r.take(t, "show_clock"); !strings.HasPrefix(o.Text, "es ist ") || strings.HasSuffix(o.Text, "M Uhr") {
			t.Errorf("%+v", o)
		}
		synctest.Wait()
		r.end()
		for _, want := range []string{"behavior de-DE es ist kein Timer gestellt", "behavior de-DE Er ist hoch.", "behavior en-US It is high."} {
			if !slices.Contains(c.did, want) {
				t.Errorf("%q lacks %q", c.did, want)
			}
		}
	})
}

// FuzzParsePhrases: a table is read or refused.
func FuzzParsePhrases(f *testing.F) {
	f.Add(germanText)
	f.Add("a {1} = b {2}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePhrases(text)
		if err != nil {
			return
		}
		n := 0
		for from := range p.whole {
			if n++; n > 10 { // each is compared with all forms
				break
			}
			p.say(from)
		}
	})
}
