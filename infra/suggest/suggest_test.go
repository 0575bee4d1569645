package suggest

import "testing"

func TestName(t *testing.T) {
	known := []string{"watchdog", "revcount", "rotkp", "rotkv"}
	for _, tt := range []struct{ name, in, want string }{
		{"same", "revcount", "revcount"},
		{"letter missing", "wachdog", "watchdog"},
		{"part of a name", "count", "revcount"},
		{"letter too many", "rotkpp", "rotkp"},
		{"other letter", "rotkb", "rotkp"}, // the first of several
		{"nothing alike", "zzzzz", "rotkp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Name(tt.in, known); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := Name("x", nil); got != "" {
		t.Errorf("none known: got %q", got)
	}
}
