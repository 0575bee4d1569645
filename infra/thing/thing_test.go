package thing

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want bool
	}{
		{"vic:00e20100", true}, {"amigo:1", true}, {"pleo:a-b", true}, {"aibo:ers-7", true},
		{"", false}, {"vic:", false}, {"vic", false}, {"vic:00E20100", false}, {"cat:1", false},
		{"vic:a/b", false}, {"vic:+", false}, {"vic:a:b", false}, {"vic:0123456789012345678901234567890123456789", true},
		{"vic:01234567890123456789012345678901234567890", false}, {"vic:a\n", false},
	} {
		id, err := Parse(tc.in)
		if (err == nil) != tc.want {
			t.Errorf("Parse(%q) = %q, %v; want ok %v", tc.in, id, err, tc.want)
		}
	}
}

func TestParts(t *testing.T) {
	id := MustParse("vic:00e20100")
	if got := id.Species(); got != Vector {
		t.Errorf("Species = %q", got)
	}
	if got := id.Serial(); got != "00e20100" {
		t.Errorf("Serial = %q", got)
	}
	if got := id.Slug(); got != "vic-00e20100" {
		t.Errorf("Slug = %q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("vic:00e20100")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := Parse(s)
		if err != nil {
			return
		}
		if back, err := New(id.Species(), id.Serial()); err != nil || back != id || string(id) != s {
			t.Fatalf("%q does not round-trip: %q, %v", s, back, err)
		}
	})
}

// TestNames: each species has a name, by which it is found in any case.
func TestNames(t *testing.T) {
	for _, s := range []Species{Vector, AmigoBot, Pleo, AIBO} {
		if got, err := Named(strings.ToLower(s.Name())); got != s || err != nil {
			t.Errorf("%s: got %q, %v", s, got, err)
		}
	}
	if got, err := Named("cat"); err == nil {
		t.Errorf("cat is %q", got)
	}
	if got := Species("cat").Name(); got != "cat" {
		t.Errorf("an unknown species is called %q, want its own word", got)
	}
}
