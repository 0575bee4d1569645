package dictation

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/recognizertest"
)

// TestParse: what the program prints for words, for nothing, and what it does not.
func TestParse(t *testing.T) {
	for out, want := range map[string]string{"hello there (a -1234)\n": "hello there", "(a -5)\n": "", "": "-", "hello": "-", "hello (b -1)": "-", "hello (a -1": "-"} {
		if got, err := parse(out); got != want && (want != "-" || err == nil) {
			t.Errorf("%q: %q, %v", out, got, err)
		}
	}
}

// TestMissing: without program or models the error names the package.
func TestMissing(t *testing.T) {
	for pkg, cfg := range map[string]Config{"package pocketsphinx": {Program: "/no/such/program"}, "package pocketsphinx-en-us": {Program: "/bin/sh", Models: t.TempDir()}} {
		if _, err := New(cfg); errs.KindOf(err) != errs.Unavailable || !strings.HasSuffix(err.Error(), pkg) {
			t.Errorf("%s: %v", pkg, err)
		}
	}
}

// stand returns a recogniser whose program is a script.
func stand(t *testing.T, script string, limit time.Duration) *Recognizer {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"run": "#!/bin/sh\n" + script, "en-us.lm.bin": ""} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Config{Program: dir + "/run", Models: dir, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDecode: an utterance is given to the program as it is, and its failures are told.
func TestDecode(t *testing.T) {
	got, err := recognizertest.Listen(t.Context(), stand(t, `while [ "$1" != -cepdir ]; do shift; done; echo "$(wc -c <$2/a.raw) bytes (a -7)"`, time.Minute), make([]int16, 700))
	if want := (recognizer.Result{Text: "1400 bytes", Confidence: 1, By: "dictation"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := recognizertest.Listen(t.Context(), stand(t, `echo "INFO: x" >&2; echo "ERROR: no model" >&2; exit 1`, time.Minute), make([]int16, 700)); err == nil || !strings.Contains(err.Error(), "ERROR: no model") {
		t.Errorf("fails: %v", err)
	}
	if _, err := recognizertest.Listen(t.Context(), stand(t, "exec sleep 1000", 50*time.Millisecond), make([]int16, 700)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hangs: %v", err)
	}
	if _, err := stand(t, "", 0).Open(t.Context(), recognizer.Expect{Language: "de-DE"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("German: %v", err)
	}
}
