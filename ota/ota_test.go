package ota

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

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
	f.Add([]byte(`{"v":1,"id":"r1","release":"2.0.1.6076","since":"2026-01-02T03:04:05.678+01:00","phase":"installed","next":"2.0.1.6076"}`))
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
		s2, err := ParseStatus(again)
		if err != nil || !s2.Since.Equal(s.Since) {
			t.Fatalf("%+v -> %+v, %v", s, s2, err)
		}
		if s.Since, s2.Since = (time.Time{}), (time.Time{}); s2 != s {
			t.Fatalf("%+v -> %+v", s, s2)
		}
	})
}

// TestStatusNamesTheWish: a report carries the time of the wish that it is about, unchanged, and the release that the next boot starts. Robots of
// earlier releases say neither.
func TestStatusNamesTheWish(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	s := Status{ID: "r1", Release: "2.0.1.6076", Since: since, Phase: Installed, Next: "2.0.1.6076"}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseStatus(b); err != nil || !got.Since.Equal(since) || got.Next != s.Next {
		t.Errorf("%s: %+v, %v", b, got, err)
	}
	if b, err = (Status{ID: "r1", Phase: Current}).Encode(); err != nil || string(b) != `{"v":1,"id":"r1","phase":"current","ts":0}` {
		t.Errorf("%s, %v", b, err)
	}
	if _, err := ParseStatus([]byte(`{"v":1,"id":"r1","phase":"installed","next":"2.0"}`)); errs.KindOf(err) != errs.Invalid {
		t.Errorf("%v, want an invalid version", err)
	}
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

// TestVersionOrder: versions are ordered by their numbers, not by their letters (VEC-OTA-10).
func TestVersionOrder(t *testing.T) {
	for _, tt := range []struct {
		v, w Version
		want int
	}{
		{"2.0.1.6076", "2.0.1.6075", 1}, {"2.0.1.6076", "2.0.1.16076", -1}, {"10.0.0.0", "9.9.9.9", 1}, {"1.6.0.1d", "1.6.0.1ud", 0},
		{"0.9.0.1", "", 1},
	} {
		if got := tt.v.Compare(tt.w); got != tt.want {
			t.Errorf("%s beside %s: %d, want %d", tt.v, tt.w, got, tt.want)
		}
	}
	if Version("1.6.0.1ud").Suffix() != "ud" {
		t.Error("suffixes")
	}
}

// TestCodes: each code of the original updater has words, and every error ends in one of them (VEC-OTA-16).
func TestCodes(t *testing.T) {
	for c := WrongOrder; c <= Other; c++ {
		if _, ok := codeWords[c]; ok == (c == 217 || c == 218) {
			t.Errorf("%d: has words: %t", c, ok)
		}
	}
	err := fmt.Errorf("boot: %w", Fail(NotAuthentic, "hash is %x", 1))
	if CodeOf(err) != NotAuthentic || CodeOf(io.EOF) != Other || CodeOf(nil) != Done {
		t.Error(CodeOf(err))
	}
	if err.Error() != "boot: update code 209: hash is 1" {
		t.Error(err)
	}
}

// TestEnvironment: a failure is either of the release or of what is around the robot.
func TestEnvironment(t *testing.T) {
	around := []Code{BadURL, DiskFailed, TimedOut}
	for c := range WrongOrder + 100 {
		if c.Environment() != slices.Contains(around, c) {
			t.Errorf("%d: environment: %t", c, c.Environment())
		}
	}
}
