package ota

import (
	"slices"
	"strings"
	"time"

	"kennel/infra/errs"
)

// Window is the part of a day in which a robot may begin an update, by its own clock and time zone. One that ends before it begins ends on the next day, and belongs to the day of its beginning.
type Window struct {
	From string   `json:"from"`           // "22:00"
	To   string   `json:"to"`             // "05:30"; the same as From is the whole day
	Days []string `json:"days,omitempty"` // of the beginning: mon, tue, wed, thu, fri, sat, sun; empty: every day
}

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"} // as time.Weekday counts

// Check reports what is wrong with a window.
func (w Window) Check() error {
	for _, s := range []string{w.From, w.To} {
		if _, err := time.Parse("15:04", s); err != nil || len(s) != 5 {
			return errs.New(errs.Invalid, "window: time %.20q: want hours and minutes such as 22:00", s)
		}
	}
	for _, d := range w.Days {
		if !slices.Contains(days, d) {
			return errs.New(errs.Invalid, "window: day %.20q: want one of %s", d, strings.Join(days, ", "))
		}
	}
	return nil
}

// At reports whether a checked window is open at now, whose location is the robot's time zone, and until when it is open or closed.
func (w Window) At(now time.Time) (open bool, until time.Time) {
	at := func(day time.Time, clock string) time.Time {
		t, _ := time.Parse("15:04", clock) // Check let nothing else through
		return time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
	}
	noon := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, now.Location())
	for i := -1; i <= 8; i++ { // yesterday's may still be open; the same day next week is the last that can begin
		day := noon.AddDate(0, 0, i)
		if len(w.Days) > 0 && !slices.Contains(w.Days, days[day.Weekday()]) {
			continue
		}
		from, to := at(day, w.From), at(day, w.To)
		if w.To <= w.From {
			to = at(day.AddDate(0, 0, 1), w.To)
		}
		switch {
		case now.Before(from):
			return false, from
		case now.Before(to):
			return true, to
		}
	}
	return false, now.AddDate(0, 0, 8) // a clock change swallowed every beginning
}
