package recognizerwire

import (
	"io"
	"strings"
	"testing"

	"kennel/infra/awsconfig"
	"kennel/infra/errs"
	"kennel/speech/recognizer/recognizertest"
)

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
		err := Config{}.Validate([]string{c.use})
		if c.want == "" && err != nil || c.want != "" && (err == nil || errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.use, err, c.want)
		}
	}
	if err := (Config{Limit: -1}).Validate(nil); errs.KindOf(err) != errs.Invalid {
		t.Errorf("limit -1: %v, want invalid", err)
	}
}

// TestMake: every kind is made, and a server that is down is heard of when it is asked.
func TestMake(t *testing.T) {
	c := Config{AWS: awsconfig.Config{Region: "eu-west-1"}}
	for _, use := range []string{"sphinx", "transcription=http://127.0.0.1:1", "vosk=ws://127.0.0.1:1", "transcribe", "lex=ABC/DEF"} {
		r, err := c.Make(t.Context(), use)
		if err != nil {
			t.Errorf("%s: %v", use, err)
			continue
		}
		if closer, ok := r.(io.Closer); ok {
			_ = closer.Close() // nothing was asked of it
		}
	}
	r, err := c.Make(t.Context(), "vosk=ws://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recognizertest.Listen(t.Context(), r, make([]int16, 1600)); err == nil {
		t.Error("a server that is down hears")
	}
}
