package accountapi

import (
	"testing"
)

// TestFacts: what public clients of the accounts service send and expect.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"header with the app's key": {appKeyHeader, "Anki-App-Key"},
		"scope of a session":        {sessionScope, "user"},
		"largest form, in bytes":    {maxForm, 65536},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
