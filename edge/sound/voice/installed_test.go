package voice

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"kennel/infra/errs"
)

// fake is a program that notes that it was asked, and fails.
func fake(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho asked >> \"$0.asked\"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestInstalled: English is flite's if it is there, other languages are espeak-ng's, and what is missing is named with its package.
func TestInstalled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := Installed(""); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("without both: %v", err)
	}
	if _, err := Installed("piper"); errs.KindOf(err) != errs.Invalid {
		t.Errorf("another: %v", err)
	}
	asked := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name+".asked"))
		return err == nil
	}
	speak := func(language string) error {
		t.Helper()
		s, err := Installed("")
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Speak(context.Background(), Request{Text: "a", Language: language})
		return err
	}
	fake(t, dir, "flite")
	if err := speak("de-DE"); errs.KindOf(err) != errs.Unavailable || asked("flite") {
		t.Errorf("German with flite alone: %v", err)
	}
	fake(t, dir, "espeak-ng")
	if err := speak("de-DE"); err == nil || !asked("espeak-ng") || asked("flite") {
		t.Errorf("German: %v; espeak-ng %v, flite %v", err, asked("espeak-ng"), asked("flite"))
	}
	if err := speak("en-GB"); err == nil || !asked("flite") {
		t.Errorf("English: %v", err)
	}
}
