package ota

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// TestWindow: a window is of the robot's own day and night, over midnight, over the change of clocks, and on the days that it names.
func TestWindow(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night, weekend := Window{From: "22:00", To: "05:30"}, Window{From: "23:00", To: "01:00", Days: []string{"sat"}}
	for _, tt := range []struct {
		w     Window
		now   string // in Berlin
		open  bool
		until string
	}{
		{night, "2026-11-23 21:59", false, "2026-11-23 22:00"},
		{night, "2026-11-23 22:00", true, "2026-11-24 05:30"},
		{night, "2026-11-24 05:29", true, "2026-11-24 05:30"},
		{night, "2026-11-24 05:30", false, "2026-11-24 22:00"},
		{night, "2026-10-25 02:30", true, "2026-10-25 05:30"}, // the hour that comes twice
		{weekend, "2026-11-23 12:00", false, "2026-11-28 23:00"},
		{weekend, "2026-11-29 00:30", true, "2026-11-29 01:00"}, // Sunday, but it began on Saturday
		{weekend, "2026-11-29 01:00", false, "2026-12-05 23:00"},
		{Window{From: "03:00", To: "03:00"}, "2026-11-23 02:59", true, "2026-11-23 03:00"},
	} {
		now, err := time.ParseInLocation("2006-01-02 15:04", tt.now, berlin)
		if err != nil || tt.w.Check() != nil {
			t.Fatal(err, tt.w.Check())
		}
		if open, until := tt.w.At(now); open != tt.open || until.Format("2006-01-02 15:04") != tt.until {
			t.Errorf("%+v at %s: %t until %v; want %t until %s", tt.w, tt.now, open, until, tt.open, tt.until)
		}
	}
	for _, bad := range []Window{{From: "24:00", To: "01:00"}, {From: "1:00", To: "02:00"}, {From: "01:00"}, {From: "01:00", To: "02:00", Days: []string{"Mon"}}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
