package ctl

import (
	"testing"

	"kennel/cloud/registry"
	"kennel/infra/api/status"
)

func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name        string
		kinds, said []string
		want        string
	}{
		{"none", nil, nil, ""},
		{"found by the cloud", []string{"clock", "loop"}, nil, "clock; loop"},
		{"said by the robot", []string{"wifi"}, []string{"Wifi: weak signal"}, "Wifi: weak signal"},
		{"said without a kind", []string{registry.KindOther}, []string{"it is dark"}, "it is dark"},
		{"both", []string{"battery", "wifi"}, []string{"wifi: weak"}, "battery; wifi: weak"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := problems(registry.Thing{Kinds: tt.kinds, Status: &status.Message{Problems: tt.said}}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
