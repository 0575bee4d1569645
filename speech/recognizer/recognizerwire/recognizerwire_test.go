package recognizerwire

import (
	"strings"
	"testing"

	"kennel/infra/errs"
	"kennel/speech/recognizer/recognizertest"
)

const grammar = "#JSGF V1.0;\ngrammar g;\npublic <command> = go forward | go left;\n"

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		use, want string // "": valid
	}{
		{"sphinx", ""},
		{"transcription=http://127.0.0.1:8080", ""},
		{"vosk=ws://127.0.0.1:2700", ""},
		{"transcribe", ""},
		{"lex=ABC/DEF", ""},
		{"sphinx=1", "want nothing"},
		{"transcription=ftp://a", "want http://HOST:PORT"},
		{"vosk=http://a", "want ws://HOST:PORT"},
		{"lex=ABC", "want lex=BOT/ALIAS"},
		{"houndify", "want sphinx"},
		{"", "want sphinx"},
	} {
		err := Config{Use: []string{c.use}}.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.use, err, c.want)
		}
	}
	if err := (Config{Limit: -1}).Validate(); errs.KindOf(err) != errs.Invalid {
		t.Errorf("limit -1: %v, want invalid", err)
	}
}

// A recogniser that cannot be made or reached is named, and those behind it are asked.
func TestMissing(t *testing.T) {
	r, err := New(t.Context(), Config{Use: []string{"vosk=ws://127.0.0.1:1", "sphinx"}, Limit: 30e9}, grammar, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := recognizertest.Listen(t.Context(), r, recognizertest.Say(t, "slt", "go forward", 0))
	if err != nil || got.Text != "go forward" || got.By != "sphinx" {
		t.Errorf("%+v, %v, want go forward", got, err)
	}

	broken, err := New(t.Context(), Config{Use: []string{"sphinx"}}, "nonsense", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	broken.Check(t.Context())
	if h := broken.Health(); len(h) != 1 || h[0].Name != "sphinx" || !strings.Contains(h[0].Problem, "pocketsphinx_batch") {
		t.Errorf("%+v, want the problem of sphinx", h)
	}
}
