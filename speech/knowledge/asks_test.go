package knowledge

import "testing"

func TestAsks(t *testing.T) {
	for text, language := range map[string]string{"What is the meaning of life?": "en-US", " what’s up with dogs": "en-GB", "how high is the sky": "en-AU", "Was ist der Sinn des Lebens": "de-DE", "is there life on Mars": "en-US"} {
		if !Asks(text, language) {
			t.Errorf("%q in %s is no question", text, language)
		}
	}
	for text, language := range map[string]string{"": "en-US", "what": "en-US", "the red team won the match": "en-US", "whatever you want": "en-US", "what is that": "fr-FR", "who is that": "de-DE"} {
		if Asks(text, language) {
			t.Errorf("%q in %s is a question", text, language)
		}
	}
}
