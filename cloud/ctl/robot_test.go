package ctl

import (
	"strings"
	"testing"

	"kennel/cloud/fleet/liveview"
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
