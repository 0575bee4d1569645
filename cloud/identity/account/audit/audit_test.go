package audit

import (
	"strings"
	"testing"
)

func TestParseAnchor(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for in, want := range map[string]string{"0": "0:" + strings.Repeat("00", 32), "7": "7:" + strings.Repeat("00", 32), "12:" + sum: "12:" + sum} {
		if got, err := ParseAnchor(in); err != nil || got.String() != want {
			t.Errorf("%q: %v %v", in, got, err)
		}
	}
	for _, bad := range []string{"", ":", "-1", "+1", "01", "1:", "1:ab", "1:" + sum + "ab", "1:" + strings.Repeat("zz", 32), "99999999999999999999", "1 :" + sum} {
		if got, err := ParseAnchor(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func FuzzParseAnchor(f *testing.F) {
	f.Add("12:" + strings.Repeat("ab", 32))
	f.Add("0")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAnchor(s)
		if err != nil {
			return
		}
		if again, err := ParseAnchor(a.String()); err != nil || again != a {
			t.Errorf("%q: %v, then %v %v", s, a, again, err)
		}
	})
}
