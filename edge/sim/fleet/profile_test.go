package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/errs"
)

func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		p, err := LoadProfile(name)
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoadProfile(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"good", "time_factor: 60\nevents_per_hour: 12.5\noffline:\n  per_day: 1\n  shortest: 1h\n  longest: 48h\nnetwork:\n  share: 0.5\n  latency: 80ms\n", ""},
		{"misspelt", "event_per_hour: 1\n", `did you mean events_per_hour`},
		{"share above one", "clock:\n  share: 1.5\n", "clock.share is 1.5"},
		{"longest below shortest", "offline:\n  shortest: 2h\n  longest: 1h\n", "offline.longest is 1h0m0s"},
		{"no time", "time_factor: 0\n", "time_factor is 0"},
		{"not a number", "events_per_hour: .nan\n", "events_per_hour is NaN"},
		{"silent core", "vitals: 20s\n", "vitals is 20s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "profile.yaml")
			if err := os.WriteFile(file, []byte(tc.yaml), 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := LoadProfile(file)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || errs.KindOf(err) != errs.Invalid {
					t.Errorf("%v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.Events != 12.5 || p.Offline.Longest != 48*time.Hour || p.Network.Latency != 80*time.Millisecond || p.Status != time.Minute {
				t.Errorf("%+v", p)
			}
			if got := p.real(time.Hour); got != time.Minute {
				t.Errorf("an hour takes %v, want a minute", got)
			}
		})
	}
	if _, err := LoadProfile("lifely"); err == nil || !strings.Contains(err.Error(), "idle, lively, rough") {
		t.Errorf("unknown name: %v", err)
	}
}
