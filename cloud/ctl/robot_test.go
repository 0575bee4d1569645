package ctl

import (
	"encoding/json"
	"strings"
	"testing"

	"kennel/cloud/fleet/liveview"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// TestNamed: a device by its compact name, by its full one with or without robot., and all below the beginning of one (GOSTAI-TREE-02).
func TestNamed(t *testing.T) {
	all := []liveview.Device{{Full: "robot", Compact: "robot"}, {Full: "robot.body.head.pitch", Compact: "headPitch"}, {Full: "robot.body.headlight", Compact: "headlight"},
		{Full: "robot.body.wheel[left]", Compact: "wheelL"}, {Full: "robot.body.wheel[right]", Compact: "wheelR"}}
	for name, want := range map[string]string{
		"robot": "robot headPitch headlight wheelL wheelR", "robot.body.head": "headPitch", "body.head": "headPitch", "headPitch": "headPitch",
		"body.wheel": "wheelL wheelR", "robot.body.wheel[right]": "wheelR", "body.wheel[right]": "wheelR", "robot.robot": "", "wheel": "", "body.wheel[": "",
	} {
		var got []string
		for _, d := range named(all, name) {
			got = append(got, d.Compact)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestOfflineIsSaidAtOnce (30.5): a stop is stored for a robot that is offline, and kennelctl says so instead of waiting for an answer.
func TestOfflineIsSaidAtOnce(t *testing.T) {
	c := newCloud(t)
	c.away = true
	for _, args := range [][]string{{"stop", "vic:00e20100"}, {"hold", "vic:00e20100", "-reason", "its wheel is off"}} {
		code, _, errOut := run(t.Context(), nil, "", append([]string{"-onebox", c.onebox(t), "-o", "json", "robot"}, args...)...)
		var said struct{ Error, Code string }
		if err := json.Unmarshal([]byte(errOut), &said); err != nil || code != cli.ExitUnavailable || said.Code != errs.CodeOffline || !strings.Contains(said.Error, "2026-05-06 09:00") {
			t.Errorf("%v: exit %d, %s; want code %s and since when", args, code, errOut, errs.CodeOffline)
		}
	}
}
