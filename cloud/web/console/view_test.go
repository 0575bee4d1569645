package console

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"kennel/cloud/fleet/registry"
	"kennel/jdocs"
)

// TestOffered: operators are offered no Alexa, and read what a robot is set to (VEC-AVS-02).
func TestOffered(t *testing.T) {
	f := fieldOf(jdocs.RobotSettings, "button_wakeword")
	if !f.Offers("hey vector") || f.Offers("alexa") || !slices.Equal(f.Enum, []string{"hey vector", "alexa"}) {
		t.Errorf("the button: %+v", f)
	}
}

// TestPresenceLane draws when a robot was there: the history is the latest first, and may begin anywhere.
func TestPresenceLane(t *testing.T) {
	at := func(h float64) time.Time { return noon.Add(-time.Duration(h * float64(time.Hour))) }
	on, off := true, false
	for _, tt := range []struct {
		name     string
		history  []registry.Change
		presence registry.Presence
		want     []string // hours ago, from-to
	}{
		{"never seen", nil, registry.Absent, nil},
		{"present since long ago", []registry.Change{{At: at(100), Present: on}}, registry.Present, []string{"100-0"}},
		{"absent since long ago", []registry.Change{{At: at(100), Present: off}, {At: at(101), Present: on}}, registry.Absent, []string{"101-100"}},
		{"left an hour ago, its coming is forgotten", []registry.Change{{At: at(1), Present: off}}, registry.Absent, nil},
		{"a gap", []registry.Change{{At: at(1), Present: on}, {At: at(2), Present: off}, {At: at(3), Present: on}}, registry.Present, []string{"1-0", "3-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, s := range presenceLane(tt.history, registry.Thing{Presence: tt.presence}, noon).Spans {
				got = append(got, fmt.Sprintf("%.0f-%.0f", noon.Sub(s.From).Hours(), noon.Sub(s.To).Hours()))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestScaleStaysInside(t *testing.T) {
	s := newScale(lateBar, mark{"none", math.NaN()}, mark{"zero", 0}, mark{"p99", 500}, mark{"worst", math.Inf(1)}, mark{"negative", -5})
	if len(s.Marks) != 4 {
		t.Fatalf("%d marks, want 4: NaN is no value", len(s.Marks))
	}
	for _, m := range s.Marks {
		if m.X < 0 || m.X > 1000 || m.Bad != (m.Name == "worst") {
			t.Errorf("%+v", m)
		}
	}
	if s.Marks[1].X != s.Bar {
		t.Errorf("500 µs at %d, bar at %d", s.Marks[1].X, s.Bar)
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{micros(0), "0 µs"}, {micros(140.4), "140 µs"}, {micros(1500), "1.5 ms"}, {micros(12_345), "12 ms"},
		{percent(0), "0 %"}, {percent(0.000003), "< 0.01 %"}, {percent(0.0123), "1.23 %"},
		{duration(59 * time.Second), "59 s"}, {duration(90 * time.Minute), "1 h 30 min"}, {duration(50 * time.Hour), "2 d 2 h"},
		{offset(40, true), "right"}, {offset(-90_000, true), "1 min behind"}, {offset(3_600_000, true), "1 h 0 min ahead"}, {offset(0, false), "unknown"},
		{count(1234567), "1\u202f234\u202f567"}, {count(0), "0"}, {count(999), "999"},
		{pretty(`{"a":1}`), "{\n  \"a\": 1\n}"}, {pretty("not json"), "not json"},
		{short("6b1f8a52-5c8e-4a39-9d5e-0d7c1f2a3b4c"), "6b1f8a52…"}, {short("vic:00e20100"), "vic:00e20100"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
