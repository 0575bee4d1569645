package ota

import (
	"errors"
	"testing"

	"kennel/infra/errs"
)

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct {
		in string
		ok bool
	}{
		{"2.0.1.6076", true}, {"1.6.0.3331d", true}, {"1.6.0.3331ud", true},
		{"", false}, {"1.6.0", false}, {"1.6.0.3331x", false}, {"1.6.0.3331\n", false}, {"1.6.0.-1", false}, {"v1.6.0.1", false},
	} {
		if _, err := ParseVersion(tt.in); (err == nil) != tt.ok {
			t.Errorf("%q: %v, want ok %v", tt.in, err, tt.ok)
		} else if err != nil && errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: kind %v, want invalid", tt.in, errs.KindOf(err))
		}
	}
}

func TestParseStatusNamesTheReport(t *testing.T) {
	s, err := ParseStatus([]byte(`{"v":1,"id":"r7","phase":"No Word"}`))
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || s.ID != "r7" {
		t.Errorf("got %+v, %v; want the id and an invalid error", s, err)
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte(`{"v":1,"id":"r1","release":"2.0.1.6076","running":"2.0.0.1","phase":"pending","reason":"x","ts":1}`))
	f.Add([]byte(`{"v":1,"id":"r1","phase":"current","code":203}`))
	f.Add([]byte(`{"v":1,"id":"r1","phase":5}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStatus(b)
		if err != nil {
			if len(s.ID) > 64 {
				t.Fatalf("a refusal names an id of %d bytes", len(s.ID))
			}
			return
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if s2, err := ParseStatus(again); err != nil || s2 != s {
			t.Fatalf("%+v -> %+v, %v", s, s2, err)
		}
	})
}

func FuzzParseDesired(f *testing.F) {
	f.Add([]byte(`{"v":1,"release":"2.0.1.6076","since":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ParseDesired(b)
		if err != nil {
			return
		}
		again, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if d2, err := ParseDesired(again); err != nil || d2.Release != d.Release || !d2.Since.Equal(d.Since) {
			t.Fatalf("%+v -> %+v, %v", d, d2, err)
		}
	})
}
