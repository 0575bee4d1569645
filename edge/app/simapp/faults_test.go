package simapp

import (
	"strings"
	"testing"
)

// TestTellFault: a simulated robot's display says its fault, and nothing when there is none (part of VEC-FLT-10).
func TestTellFault(t *testing.T) {
	var out strings.Builder
	for _, digits := range []string{"916", "", "rubbish", "008"} {
		tellFault(&out, digits)
	}
	if want := "fault 916: Vic-robot was unable to start or crashed.\nfault 008: fault 008\n"; out.String() != want {
		t.Errorf("it said %q, want %q", out.String(), want)
	}
}
