package chipperlink

import (
	"testing"

	"kennel/infra/api/chipperpb"
)

// TestLanguageOf: the five codes of the row by their locales, and the nearest of them for others (part of VEC-NLP-08).
func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string]chipperpb.LanguageCode{
		"en-US": chipperpb.LanguageCode_ENGLISH_US, "en-GB": chipperpb.LanguageCode_ENGLISH_UK, "en-AU": chipperpb.LanguageCode_ENGLISH_AU, "de-DE": chipperpb.LanguageCode_GERMAN,
		"fr-FR": chipperpb.LanguageCode_FRENCH, "en-CA": chipperpb.LanguageCode_ENGLISH_US, "de-AT": chipperpb.LanguageCode_GERMAN, "fr-CA": chipperpb.LanguageCode_FRENCH,
		"": chipperpb.LanguageCode_ENGLISH_US,
	} {
		if got := languageOf(locale); got != want {
			t.Errorf("%q: %v, want %v", locale, got, want)
		}
	}
}
