package certs_test

import (
	"testing"
	"time"

	"kennel/certs"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"a factory certificate is valid beyond (VEC-TOK-02)": {certs.FactoryValidAfter, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
