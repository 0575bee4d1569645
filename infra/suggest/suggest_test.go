package suggest

import "testing"

func TestDidYouMean(t *testing.T) {
	known := []string{"watchdog", "revcount", "rotkp", "rotkv", "robot", "robots", "go", "vic.RobotSettings", "locale"}
	for _, tt := range []struct{ name, in, want string }{
		{"another case", "Revcount", "; did you mean revcount?"},
		{"letter missing", "wachdog", "; did you mean watchdog?"},
		{"part of a name", "count", "; did you mean revcount?"},
		{"middle left out", "vic.Settings", "; did you mean vic.RobotSettings?"},
		{"letter too many", "rotkpp", "; did you mean rotkp or rotkv?"},
		{"other letter", "rotkb", "; did you mean rotkp or rotkv?"},
		{"letters swapped, the closest first", "robtos", "; did you mean robots or robot?"},
		{"beyond two edits", "nosuch", ""},
		{"too short to tell", "do", "; did you mean go?"},
		{"one letter", "x", ""},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := DidYouMean(tt.in, known); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := Names("abcd", []string{"abcde", "abcdf", "abcdg", "abcdh"}); len(got) != most {
		t.Errorf("%q; want %d", got, most)
	}
}
