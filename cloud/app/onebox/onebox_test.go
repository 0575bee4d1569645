package onebox

import (
	"strings"
	"testing"
)

// TestParseRobots: a number of Vectors, or numbers by species.
func TestParseRobots(t *testing.T) {
	for _, tt := range []struct{ name, in, want, err string }{
		{"a number", "5", "5 Vector", ""},
		{"none", "0", "none", ""},
		{"two species", "vector:3,amigobot:2", "3 Vector, 2 AmigoBot", ""},
		{"one of none", "vector:0,amigobot:2", "2 AmigoBot", ""},
		{"empty", "", "", `"": want 0 to 200 in all`},
		{"negative", "-1", "", "want 0 to 200 in all"},
		{"too many", "vector:150,amigobot:51", "", `"amigobot:51": want 0 to 200 in all`},
		{"a model", "aibo/ers-210:1", "1 AIBO", ""},
		{"unknown", "cat:1", "", "want one of vector, amigobot"},
		{"twice", "2,vector:1", "", `"vector:1": vector given twice`},
	} {
		r, err := ParseRobots(tt.in)
		if tt.err == "" && (err != nil || r.String() != tt.want) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: got %q, %v, want %q, %q", tt.name, r, err, tt.want, tt.err)
		}
	}
}
