package openmeteo_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"kennel/infra/errs"
	"kennel/speech/weather"
	"kennel/speech/weather/openmeteo"
)

const paris = `{"results":[{"name":"Paris","admin1":"Île-de-France","country":"France","latitude":48.853,"longitude":2.3488,"timezone":"Europe/Paris"},
	{"name":"Paris","admin1":"Texas","country":"United States","latitude":33.66,"longitude":-95.55,"timezone":"America/Chicago"}]}`

// sky is a server of weather whose answers a test sets.
type sky struct {
	places, forecast string
	asked            []url.Values
}

func (s *sky) provider(t *testing.T) *openmeteo.Provider {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r.URL.Query())
		_, _ = io.WriteString(w, map[string]string{"/v1/search": s.places, "/v1/forecast": s.forecast}[r.URL.Path])
	}))
	t.Cleanup(web.Close)
	p, err := openmeteo.New(web.URL+"/", func() time.Time { return time.Date(2026, 11, 23, 23, 30, 0, 0, time.UTC) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func now(temperature float64, code int, wind float64, day int) string {
	return fmt.Sprintf(`{"current":{"time":"2026-11-23T12:00","temperature_2m":%v,"weather_code":%d,"wind_speed_10m":%v,"is_day":%d}}`, temperature, code, wind, day)
}

// TestReport (VEC-NLP-11): the place is the right one of several, the unit follows the settings, the time is told in the zone of the place, and a forecast says so.
func TestReport(t *testing.T) {
	s := &sky{places: paris, forecast: now(21.6, 0, 5, 1)}
	p := s.provider(t)
	r, err := p.Report(t.Context(), weather.Question{Place: "Paris", Language: "en-US"})
	if err != nil || r.Condition != weather.Sunny || r.Place != "Paris" || r.Temperature != 22 || r.Unit != "C" || r.Forecast || r.At.Format(time.RFC3339) != "2026-11-24T00:30:00+01:00" {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = p.Report(t.Context(), weather.Question{Place: "Paris, Texas, United States", Fahrenheit: true})
	if err != nil || r.Temperature != 71 || r.Unit != "F" || s.asked[3].Get("latitude") != "33.66" || s.asked[2].Get("name") != "Paris" {
		t.Errorf("%+v, %v, asked %v", r, err, s.asked)
	}
	s.forecast = `{"daily":{"time":["2026-11-26"],"temperature_2m_max":[3.2],"weather_code":[63],"wind_speed_10m_max":[50]}}`
	r, err = p.Report(t.Context(), weather.Question{Place: "Paris", Day: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)})
	if err != nil || r.Condition != weather.Rain || r.Temperature != 3 || !r.Forecast || s.asked[5].Get("start_date") != "2026-11-26" || s.asked[5].Has("current") {
		t.Errorf("%+v, %v, asked %v", r, err, s.asked[5])
	}
	if _, err = p.Report(t.Context(), weather.Question{Place: "Paris", Day: time.Date(2027, 11, 26, 0, 0, 0, 0, time.UTC)}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("in a year: %v, want not found", err)
	}
}

// TestConditions (VEC-INT-08): every code of the source becomes one of the robot's nine pictures or none, and each picture can be had.
func TestConditions(t *testing.T) {
	s := &sky{places: paris}
	p := s.provider(t)
	var seen []weather.Condition
	for _, c := range []struct {
		temperature float64
		code        int
		wind        float64
		day         int
		want        weather.Condition
	}{
		{20, 0, 0, 1, weather.Sunny}, {20, 1, 0, 1, weather.Clear}, {20, 0, 0, 0, weather.Stars}, {20, 2, 0, 1, weather.Cloudy}, {20, 45, 0, 1, weather.Cloudy}, {-4, 0, 0, 1, weather.Cold},
		{20, 3, 45, 1, weather.Windy}, {20, 55, 45, 1, weather.Rain}, {20, 81, 0, 1, weather.Rain}, {-1, 73, 45, 1, weather.Snow}, {1, 86, 0, 1, weather.Snow}, {20, 96, 0, 1, weather.Thunderstorms},
		{20, 30, 0, 1, weather.Unknown}, {20, -1, 0, 1, weather.Unknown}, {20, 1000, 0, 1, weather.Unknown},
	} {
		s.forecast = now(c.temperature, c.code, c.wind, c.day)
		r, err := p.Report(t.Context(), weather.Question{Place: "Paris"})
		if err != nil || r.Condition != c.want {
			t.Errorf("%+v: %q, %v", c, r.Condition, err)
		}
		seen = append(seen, r.Condition)
	}
	for _, c := range weather.Conditions {
		if !slices.Contains(seen, c) {
			t.Errorf("%s never", c)
		}
	}
}

func TestRefusals(t *testing.T) {
	s := &sky{places: `{"generationtime_ms":0.5}`}
	p := s.provider(t)
	for place, want := range map[string]error{"": weather.ErrNoPlace, " , France": weather.ErrNoPlace, "Atlantis": weather.ErrUnknown} {
		if _, err := p.Report(t.Context(), weather.Question{Place: place}); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", place, err, want)
		}
	}
	s.places = paris
	for _, forecast := range []string{"", "{}", `{"current":{}}`, `{"current":{"temperature_2m":null}}`, now(999, 1, 1, 1), `{"daily":{}}`, `[]`} {
		s.forecast = forecast
		if _, err := s.provider(t).Report(t.Context(), weather.Question{Place: "Paris"}); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: %v, want unavailable", forecast, err)
		}
	}
	if _, err := (weather.None{}).Report(t.Context(), weather.Question{Place: "Paris"}); !errors.Is(err, weather.ErrNoProvider) {
		t.Errorf("no provider: %v", err)
	}
}

// TestWishes: the robot's settings say where it lives and which degrees it speaks (VEC-DOC-01); a place that its owner never chose gives way to the house's.
func TestWishes(t *testing.T) {
	for doc, want := range map[string]weather.Wishes{
		`{"default_location":"Bern","temp_is_fahrenheit":false}`: {Place: "Bern"}, `{"default_location":"Bern"}`: {Place: "Bern", Fahrenheit: true},
		`{"default_location":"` + weather.Factory + `"}`: {Place: "Oslo", Fahrenheit: true, House: true}, `{}`: {Place: "Oslo", Fahrenheit: true, House: true},
		`{"temp_is_fahrenheit":false}`: {Place: "Oslo", House: true}, `x`: {Place: "Oslo", Fahrenheit: true, House: true}, `{"temp_is_fahrenheit":1}`: {Place: "Oslo", Fahrenheit: true, House: true},
	} {
		if got := weather.Of(doc, "Oslo"); got != want {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
	if got, want := weather.Of(`{"default_location":"`+weather.Factory+`"}`, ""), (weather.Wishes{Place: weather.Factory, Fahrenheit: true}); got != want {
		t.Errorf("no place of the house: %+v, want %+v", got, want)
	}
}

// TestExcuses (issue 31.4): a server that stalls, talks nonsense, ends within its answer or cannot be reached is told to people in words, within the time that is left.
func TestExcuses(t *testing.T) {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	half := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"current":{"temp`)
	}
	for name, c := range map[string]struct {
		place, day string
		sky        func(w http.ResponseWriter, path string)
		en, de     string
	}{
		"stalls at once":         {sky: func(http.ResponseWriter, string) { <-ended }, en: "I cannot reach the weather now.", de: "Ich kann das Wetter gerade nicht abfragen."},
		"stalls after the place": {sky: func(w http.ResponseWriter, path string) { places(w, path, func() { <-ended }) }, en: "I cannot reach the weather now."},
		"broken JSON": {sky: func(w http.ResponseWriter, path string) {
			places(w, path, func() { _, _ = io.WriteString(w, `{"current":`) })
		}, en: "I cannot reach the weather now."},
		"ends in the middle": {sky: func(w http.ResponseWriter, path string) { places(w, path, func() { half(w) }) }, en: "I cannot reach the weather now."},
		"refuses":            {sky: func(w http.ResponseWriter, path string) { places(w, path, func() { w.WriteHeader(404) }) }, en: "I cannot reach the weather now."},
		"no network":         {en: "I cannot reach the weather now."},
		"no such place":      {sky: func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, `{}`) }, en: "I do not know that place.", de: "Diesen Ort kenne ich nicht."},
		"no place":           {place: "-", en: "I do not know where I live. My settings name no place.", de: "Ich weiß nicht, wo ich wohne. Der Ort fehlt in meinen Einstellungen."},
		"in a year":          {day: "2027-11-26", sky: func(w http.ResponseWriter, path string) { places(w, path, func() {}) }, en: "My weather forecast does not reach that far.", de: "So weit reicht meine Wettervorhersage nicht."},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.sky(w, r.URL.Path) }))
		if c.sky == nil {
			web.Close()
		}
		p, err := openmeteo.New(web.URL, func() time.Time { return time.Date(2026, 11, 23, 23, 30, 0, 0, time.UTC) })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // the rest of the time that a robot waits
		day, _ := time.Parse(time.DateOnly, c.day)                            // zero for ""
		_, err = p.Report(ctx, weather.Question{Place: strings.Trim(cmp.Or(c.place, "Paris"), "-"), Day: day})
		cancel()
		if got := weather.Excuse(err, "en-GB"); err == nil || got != c.en {
			t.Errorf("%s: %v: %q, want %q", name, err, got, c.en)
		}
		if got := weather.Excuse(err, "de-DE"); c.de != "" && got != c.de {
			t.Errorf("%s: %v: %q, want %q", name, err, got, c.de)
		}
	}
	if got := weather.Excuse(weather.ErrNoProvider, "fr-FR"); got != "I have nowhere to look up the weather." {
		t.Errorf("no source: %q", got)
	}
}

// places answers where Paris is, and lets then say the rest.
func places(w http.ResponseWriter, path string, then func()) {
	if path == "/v1/search" {
		_, _ = io.WriteString(w, paris)
		return
	}
	then()
}
