package ctl

import (
	"testing"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/openapi/client"
	"kennel/infra/api/status"
)

// TestProblems: robots list shows what the cloud's one function finds, whatever the robot says in words.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    status.Message
		want string
	}{
		{"none", status.Message{}, ""},
		{"found by the cloud", status.Message{Loop: &status.Loop{Steps: 10, LateP99: 900}}, "loop: late by p99 900 µs; 0 of 10 cycles missed"},
		{"said by the robot", status.Message{Problems: []string{"Wifi: weak signal"}}, "wifi: weak signal"},
		{"said without a kind", status.Message{Problems: []string{"it is dark"}}, "it is dark"},
		{"both", status.Message{Body: &status.Body{BatteryVolts: 3.5, BatteryLevel: "low"}, Problems: []string{"wifi: weak"}}, "battery: low (3.50 V) and not charging; wifi: weak"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := registry.ProblemsOf(registry.StatusAt{Message: tt.m})
			if got := registry.Words(found); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPresenceOf (30.5): robots list tells a robot that was revoked from one that is only offline.
func TestPresenceOf(t *testing.T) {
	for want, th := range map[string]client.Thing{"online": {Presence: "present"}, "offline": {Presence: "absent"}, "offline, revoked": {Presence: "absent", Revoked: true}} {
		if got := presenceOf(th); got != want {
			t.Errorf("%+v: %q, want %q", th, got, want)
		}
	}
}
