package rolloutapi

import (
	"strings"
	"testing"

	"kennel/ota"
)

// TestWords: every code and every phase of a robot's report is said in words on its page (VEC-OTA-16, issue 17 "what must hold" 2).
func TestWords(t *testing.T) {
	for code := ota.WrongOrder; code <= ota.Other; code++ {
		s := ota.Status{Phase: ota.Failed, Code: int(code), Reason: "image SYSTEM"}
		if got := Words(s); !strings.Contains(got, code.Words()) || !strings.HasSuffix(got, "(image SYSTEM)") {
			t.Errorf("%d: %s", code, got)
		}
	}
	for phase, want := range map[ota.Phase]string{
		ota.Current: "runs what it should", ota.Pending: "has not begun: the battery is low", ota.Downloading: "downloads", ota.Installed: "next reboot",
		ota.FellBack: "returned to the release before: the battery is low", "polishing": "polishing: the battery is low",
	} {
		if got := Words(ota.Status{Phase: phase, Reason: "the battery is low"}); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", phase, got, want)
		}
	}
	for _, tt := range []struct {
		state ota.State
		want  string
	}{
		{ota.State{}, "keeps what it runs"},
		{ota.State{Desired: ota.Desired{Release: "2.0.0.1"}}, "not answered yet"},
		{ota.State{Desired: ota.Desired{Release: "2.0.0.1"}, Last: &ota.Report{Status: ota.Status{Release: "1.0.0.1", Phase: ota.Current}}}, "not answered yet"},
		{ota.State{Desired: ota.Desired{Release: "2.0.0.1"}, Last: &ota.Report{Status: ota.Status{Release: "2.0.0.1", Phase: ota.Installed}}}, "The robot has installed it"},
	} {
		if _, got := standing(tt.state); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %q, want %q", tt.state, got, tt.want)
		}
	}
}
