package screen

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/face"
	"kennel/edge/face/facetest"
)

// pages are the pages of testdata/screens.png, four a line.
var pages = []struct {
	name  string
	page  Screen
	since time.Duration
}{
	{"claim code", Pairing{Code: "K7QM-3XW9"}, 0},
	{"claim code, a moment later", Pairing{Code: "K7QM-3XW9"}, 500 * time.Millisecond},
	{"fault", Fault{Code: "898", Words: "no frames from the body board"}, 0},
	{"fault, restarting", Fault{Code: "915", Words: "the engine does not answer", Restarts: true}, 0},
	{"update begins", Update{Done: 0, Of: 1000, Version: "1.8.1"}, 0},
	{"update", Update{Done: 425, Of: 1000, Version: "1.8.1"}, 0},
	{"update is there", Update{Done: 1000, Of: 1000, Version: "1.8.1"}, 0},
	{"time", Clock{Hour: 15, Minute: 7}, 0},
	{"time, a moment later", Clock{Hour: 15, Minute: 7}, 600 * time.Millisecond},
	{"time of 24 hours", Clock{Hour: 7, Minute: 5, TwentyFour: true}, 0},
	{"midnight", Clock{Hour: 0, Minute: 0}, 0},
	{"clear", Weather{"Clear", "18", "C", "Berlin"}, 0},
	{"cloudy", Weather{"Cloudy", "9", "C", "Zürich"}, 0},
	{"cold", Weather{"Cold", "-21", "C", "Oslo"}, 0},
	{"rain", Weather{"Rain", "11", "C", "San Francisco, California"}, 0},
	{"snow", Weather{"Snow", "-3", "C", "Reykjavik"}, 0},
	{"stars", Weather{"Stars", "61", "F", "Austin"}, 0},
	{"sunny", Weather{"Sunny", "104", "F", "Phoenix"}, 0},
	{"thunderstorms", Weather{"Thunderstorms", "24", "C", "Milano"}, 0},
	{"windy", Weather{"Windy", "14", "C", "Wellington"}, 0},
	{"another weather", Weather{"", "14", "C", "Wellington"}, 0},
	{"timer", Timer{Left: 4*time.Minute + 30*time.Second, Of: 6 * time.Minute}, 0},
	{"timer, later", Timer{Left: 4*time.Minute + 30*time.Second, Of: 6 * time.Minute}, 4 * time.Minute},
	{"timer of hours", Timer{Left: 2*time.Hour + 5*time.Minute, Of: 3 * time.Hour}, 0},
	{"timer rings", Timer{Of: 6 * time.Minute, Ringing: true}, 100 * time.Millisecond},
	{"start", Boot{}, 300 * time.Millisecond},
	{"start, later", Boot{}, 3 * time.Second},
	{"customer care", Care{Title: "Kennel", Page: 1, Pages: 4, Rows: [CareRows]CareRow{{"ESN", "00e20145"}, {"IP", "192.168.1.42"}, {"Version", "1.8.1.6051"}}}, 0},
}

// TestGolden compares every page with a stored one; all nine weathers are among them (VEC-DSP-11, part of VEC-DSP-14, VEC-INT-08).
func TestGolden(t *testing.T) {
	var shots []facetest.Shot
	seen := map[string]bool{}
	for _, g := range pages {
		shots = append(shots, facetest.Shot{Name: g.name, Picture: Picture(g.page, g.since)})
		if w, ok := g.page.(Weather); ok {
			seen[w.Condition] = true
		}
	}
	for _, c := range Conditions() {
		if !seen[c] || icons[c] == nil {
			t.Errorf("no picture of %s", c)
		}
	}
	if len(icons) != 9 || len(Conditions()) != 9 {
		t.Errorf("%d icons of %d weathers", len(icons), len(Conditions()))
	}
	facetest.Golden(t, filepath.Join("testdata", "screens.png"), 4, shots)
}

// TestReadable: the number of a fault is as large as it fits, and nothing that a page says leaves the display (VEC-FLT-10).
func TestReadable(t *testing.T) {
	high := 0
	p := Picture(Fault{Code: "898"}, 0)
	for y := range face.Height {
		for x := range face.Width {
			if p.Pix[y*face.Width+x] == 0xffff {
				high++
				break
			}
		}
	}
	if high != 4*7 {
		t.Errorf("a fault's number is %d pixels high", high)
	}
	long := strings.Repeat("wide ", 60)
	for _, s := range []Screen{
		Pairing{long}, Fault{long, long, true}, Update{1 << 62, 1, long}, Update{-5, -5, ""}, Clock{99, -4, false}, Clock{-1, 1000, true},
		Weather{"Rain", long, long, long}, Weather{long, "", "", ""}, Weather{"Sunny", "", "", ""}, Timer{-time.Hour, -time.Hour, false}, Timer{1 << 62, 1, false}, Timer{0, 1 << 62, true},
		Care{long, -1, 1 << 40, [CareRows]CareRow{{long, long}, {"x", long}, {long, "x"}}},
	} {
		for _, since := range []time.Duration{-time.Hour, 0, time.Second, 1 << 62} {
			if *Picture(s, since) != *Picture(s, since) {
				t.Errorf("%+v: two pictures of one time differ", s)
			}
		}
	}
	if got := cut("San Francisco, California", 80, 1); width(got, 1) > 80 || !strings.HasPrefix("San Francisco, California", strings.TrimSuffix(got, "..")) || !strings.HasSuffix(got, "..") {
		t.Errorf("cut to %q", got)
	}
}

// TestTimes: what a page says with numbers.
func TestTimes(t *testing.T) {
	for in, want := range map[time.Duration]string{0: "0:00", 59 * time.Second: "0:59", 61 * time.Second: "1:01", time.Hour: "1:00:00", 25*time.Hour + 61*time.Second: "25:01:01"} {
		if got := clockwise(in); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[Update]int{{Done: 999, Of: 1000}: 99, {Done: 1000, Of: 1000}: 100, {Done: 2000, Of: 1000}: 100, {Done: -1, Of: 1000}: 0, {Done: 1}: 0, {Done: 1 << 61, Of: 1 << 62}: 50} {
		if got := in.Percent(); got != want {
			t.Errorf("%+v: %d, want %d", in, got, want)
		}
	}
	// The last second is shown, and after it the timer is at its end.
	timer := Timer{Left: 2 * time.Second, Of: 2 * time.Second}
	if *Picture(timer, 0) == *Picture(timer, 1500*time.Millisecond) || *Picture(timer, 2*time.Second) != *Picture(timer, time.Hour) {
		t.Error("a timer that does not count, or counts beyond its end")
	}
	noon, night := Picture(Clock{Hour: 12}, 0), Picture(Clock{Hour: 0}, 0)
	if *noon == *night || *Picture(Clock{Hour: 12, TwentyFour: true}, 0) == *noon {
		t.Error("noon and midnight look the same")
	}
}

// BenchmarkScreen draws the page with the most shapes.
func BenchmarkScreen(b *testing.B) {
	p := &face.Picture{}
	for b.Loop() {
		Timer{Of: time.Minute, Ringing: true}.Draw(p, 100*time.Millisecond)
	}
}
