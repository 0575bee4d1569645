package voice

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// TestSpeechTry: a recording goes through the recogniser that is installed and comes back step by step (issue 19, Build 6), or a sentence says that there is
// none. What a robot asks by text is in the sums and at the robot without its words (VEC-NLP-07); what was tried is in neither.
func TestSpeechTry(t *testing.T) {
	recognizer := "none"
	if os.Getenv("KENNEL_SOAK") != "" {
		recognizer = "sphinx" // which a loaded machine may have no time for
	}
	h := housetest.New(t, "-robots", "1", "-recognizers", recognizer)
	h.Start()
	id := h.AwaitPresent(1)[0]
	said, file := filepath.Join(t.TempDir(), "said.wav"), filepath.Join(t.TempDir(), "try.wav")
	for _, line := range [][]string{{"flite", "-voice", "slt", "-t", "turn around", "-o", said}, {"sox", said, "-b", "16", "-c", "1", "-r", "16000", file, "pad", "0.5", "1"}} {
		if out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", line, err, out)
		}
	}
	if recognizer == "none" {
		if out, err := h.Ctl("speech", "try", file); err == nil || !strings.Contains(err.Error()+string(out), "no speech recogniser") {
			t.Errorf("%v %s, want a sentence that names what is missing", err, out)
		}
	} else {
		speechTries(h, file)
	}
	root := h.RobotRoot(id)
	for _, text := range []string{"turn around", "xylophone marmalade"} {
		if out, err := housetest.Program(t, "", nil, "agentd", "voice", "say", "-root", root, text); err != nil {
			t.Logf("say %q: %v %s", text, err, out) // an unmatched one may be a failure
		}
	}
	var sessions []struct {
		Intent, Failed, Kind string
	}
	housetest.Await(t, time.Minute, "two requests at the robot", func() error {
		if err := h.CtlJSON(&sessions, "voice", "sessions", id); err != nil || len(sessions) == 2 {
			return err
		}
		return fmt.Errorf("%+v", sessions)
	})
	if sessions[0].Failed != "match" || sessions[1].Intent != "intent_imperative_turnaround" || sessions[1].Failed != "" {
		t.Errorf("%+v", sessions)
	}
	var stats struct {
		Whole struct{ Sessions, Succeeded int64 }
	}
	if err := h.CtlJSON(&stats, "voice", "stats"); err != nil || stats.Whole.Sessions != 2 || stats.Whole.Succeeded != 1 {
		t.Errorf("%+v, %v; want 2 requests, and one success", stats, err)
	}
	for _, line := range [][]string{{"voice", "stats"}, {"voice", "sessions"}, {"voice", "unmatched"}} {
		if out, err := h.Ctl(line...); err != nil || strings.Contains(string(out), "marmalade") {
			t.Errorf("%v: %v %s", line, err, out)
		}
	}
}

// speechTries sends a recording through the recogniser that is installed.
func speechTries(h *housetest.House, file string) {
	type attempt struct {
		Text   string
		Intent string `json:"user_intent"`
		Failed string
		Steps  []struct {
			Step   string
			OK     bool
			TookMs float64 `json:"took_ms"`
			Says   string
		}
	}
	var trial attempt
	housetest.Await(h.T, 5*time.Minute, "the recogniser", func() error { // it starts with the process, and reads its models
		trial = attempt{} // a field that is left out is empty
		err := h.CtlJSON(&trial, "speech", "try", file)
		if err == nil && trial.Failed == "recognize" {
			err = fmt.Errorf("%+v", trial)
		}
		return err
	})
	if trial.Intent != "movement_turnaround" || trial.Failed != "" || len(trial.Steps) != 4 || !trial.Steps[3].OK || trial.Steps[2].TookMs <= 0 || !strings.Contains(trial.Steps[2].Says, "turn around") {
		h.T.Errorf("%+v", trial)
	}
}
