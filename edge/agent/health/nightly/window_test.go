package nightly

import (
	"testing"
	"time"

	"kennel/edge/env/platform"
)

// TestWindow: both ends are in it, to the nanosecond; the same moments are in it that lie between the ends of next.
func TestWindow(t *testing.T) {
	clock := func(s string) time.Duration {
		if s == "24:00:00" {
			return day
		}
		at, err := time.Parse(time.TimeOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return at.Sub(at.Truncate(day))
	}
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		earliest, latest string
		start, end       string // of the next after noon
		in, out          []string
	}{
		{"01:00:00", "05:00:00", "02 01:00:00", "02 05:00:00", []string{"01:00:00", "03:00:00", "05:00:00"}, []string{"00:59:59.999999999", "05:00:00.000000001", "23:00:00"}},
		{"23:00:00", "02:00:00", "01 23:00:00", "02 02:00:00", []string{"23:00:00", "23:59:59", "00:00:00", "02:00:00"}, []string{"22:59:59", "02:00:00.000000001", "12:00:00"}},
		{"24:00:00", "02:00:00", "02 00:00:00", "02 02:00:00", []string{"00:00:00", "02:00:00"}, []string{"23:59:59", "02:00:01"}},
		{"22:00:00", "24:00:00", "01 22:00:00", "02 00:00:00", []string{"22:00:00", "23:59:59.999999999"}, []string{"21:59:59", "00:00:01"}},
		{"24:00:00", "24:00:00", "02 00:00:00", "02 00:00:00", []string{"00:00:00"}, []string{"00:00:01", "23:59:59", "12:00:00"}},
		{"00:00:00", "24:00:00", "01 00:00:00", "02 00:00:00", []string{"00:00:00", "12:00:00", "23:59:59"}, nil},
		{"11:00:00", "12:00:00", "01 11:00:00", "01 12:00:00", []string{"12:00:00"}, []string{"12:00:00.000000001"}},
	} {
		w := newWindow(platform.Rebooter{Earliest: clock(tc.earliest), Latest: clock(tc.latest)})
		start, end := w.next(noon)
		if got := [2]string{start.Format("02 15:04:05"), end.Format("02 15:04:05")}; got != [2]string{tc.start, tc.end} {
			t.Errorf("%s to %s: after noon %q, want %s to %s", tc.earliest, tc.latest, got, tc.start, tc.end)
		}
		for _, list := range []struct {
			times []string
			want  bool
		}{{tc.in, true}, {tc.out, false}} {
			for _, s := range list.times {
				if at := noon.Truncate(day).Add(clock(s)); w.holds(at) != list.want {
					t.Errorf("%s to %s: %s is in it: %v", tc.earliest, tc.latest, s, !list.want)
				}
			}
		}
	}
}

// TestWindowWithoutAnEnd: where clocks go forward over the beginning of a window, past its end, the next night has the next one.
func TestWindowWithoutAnEnd(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	w := window{2*time.Hour + 30*time.Minute, 3 * time.Hour}
	start, end := w.next(time.Date(2026, 3, 28, 12, 0, 0, 0, berlin)) // on the 29th 2:30 is 3:30, or 1:30
	if end.Before(start) || w.holds(start) != (start.Day() == 30) {
		t.Errorf("from %v to %v", start, end)
	}
}
