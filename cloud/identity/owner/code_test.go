package owner

import (
	"strings"
	"testing"

	"kennel/infra/errs"
)

func TestParseCode(t *testing.T) {
	for typed, want := range map[string]string{
		"K7QM-3XW9": "K7QM3XW9", "k7qm3xw9": "K7QM3XW9", " k7 qm\t3x-w9\n": "K7QM3XW9", "oOiI-lL00": "00111100", "ZZZZZZZZ": "ZZZZZZZZ",
	} {
		if got, err := ParseCode(typed); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", typed, got, err, want)
		}
	}
	for _, typed := range []string{"", "K7QM3XW", "K7QM3XW99", "K7QM3XWU", "K7QM-3XW§", "K7QM\x003XW9", strings.Repeat("-", 65), "Ⅷ7QM3XW9"} {
		if got, err := ParseCode(typed); errs.KindOf(err) != errs.Invalid || errs.CodeOf(err) != "code_malformed" {
			t.Errorf("%q: %q, %v; want code_malformed", typed, got, err)
		}
	}
}

func FuzzParseCode(f *testing.F) {
	f.Add("K7QM-3XW9")
	f.Add("ſ l-o")
	f.Fuzz(func(t *testing.T, typed string) {
		code, err := ParseCode(typed)
		if err != nil {
			return
		}
		if len(code) != codeLength || strings.Trim(code, alphabet) != "" {
			t.Fatalf("%q is read as %q", typed, code)
		}
		if again, err := ParseCode(FormatCode(code)); err != nil || again != code {
			t.Fatalf("%q shown and typed is %q, %v", code, again, err)
		}
	})
}

func TestConsents(t *testing.T) {
	for doc, want := range map[string]bool{
		`{"data_collection":true}`: true, `{"DATA_COLLECTION":true,"APP_LOCALE":"en-US"}`: true, `{"data_collection":false}`: false, `{}`: false,
		`{"data_collection":true,"DATA_COLLECTION":false}`: false, `{"data_collection":"true"}`: false, `{"data_collection":1}`: false,
		`{"data_collection":null}`: false, `[]`: false, `{`: false, `null`: false, ``: false,
	} {
		if got := consents(doc); got != want {
			t.Errorf("%s: %v, want %v", doc, got, want)
		}
	}
}
