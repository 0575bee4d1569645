package traceparent

import (
	"strings"
	"testing"
)

// example is from the W3C Recommendation, section 3.2.
const example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestExample(t *testing.T) {
	p, err := Parse(example)
	if err != nil || !p.Sampled || p.TraceID() != "4bf92f3577b34da6a3ce929d0e0e4736" || p.String() != example {
		t.Fatalf("%+v %v", p, err)
	}
	later := "01" + example[2:] + "-what-will-be"
	if q, err := Parse(later); err != nil || q != p {
		t.Errorf("a later version: %+v %v", q, err)
	}
	for _, bad := range []string{
		"", example[:Size-1], example + "-x", "ff" + example[2:], strings.ToUpper(example), strings.Replace(example, "-", "_", 1),
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", "01" + example[2:] + "x",
	} {
		if p, err := Parse(bad); err == nil {
			t.Errorf("%q read as %+v", bad, p)
		}
	}
	if s := (Parent{}).String(); s != "" {
		t.Errorf("no parent prints %q", s)
	}
}

func TestNewSamplesItsShare(t *testing.T) {
	const n = 20000
	for permille, want := range map[int]int{0: 0, 100: n / 10, 1000: n} {
		sampled := 0
		for range n {
			p := New(permille)
			if !p.Valid() {
				t.Fatalf("%+v", p)
			}
			if p.Sampled {
				sampled++
			}
		}
		if sampled < want*9/10 || sampled > want*11/10 { // 200 is more than four standard deviations of the middle case
			t.Errorf("%d permille: %d of %d sampled", permille, sampled, n)
		}
	}
	if a, b := New(0), New(0); a == b {
		t.Error("two traces with one id")
	}
}

func TestContext(t *testing.T) {
	if p := From(t.Context()); p.Valid() {
		t.Errorf("%+v in an empty context", p)
	}
	p := New(1000)
	if got := From(With(t.Context(), p)); got != p {
		t.Errorf("%+v, want %+v", got, p)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("01" + example[2:] + "-more")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		if q, err := Parse(p.String()); err != nil || q != p {
			t.Fatalf("%q -> %+v -> %q -> %+v, %v", s, p, p.String(), q, err)
		}
	})
}
