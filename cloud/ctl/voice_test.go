package ctl

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"kennel/infra/cli"
)

// TestSpeechTryFails (30.5): a step that fails is printed with the others, and the command fails.
func TestSpeechTryFails(t *testing.T) {
	c := newCloud(t)
	file := filepath.Join(t.TempDir(), "try.wav")
	write(t, file, "RIFF")
	code, out, errOut := run(t.Context(), nil, "", "-onebox", c.onebox(t), "-o", "json", "speech", "try", file)
	var trial struct{ Steps []struct{ Step string } }
	var said struct{ Code string }
	if json.Unmarshal([]byte(out), &trial) != nil || json.Unmarshal([]byte(errOut), &said) != nil || code != cli.ExitFailed || len(trial.Steps) != 2 || said.Code != "step_failed" {
		t.Errorf("exit %d, %s%s; want both steps, and a failure", code, out, errOut)
	}
}
