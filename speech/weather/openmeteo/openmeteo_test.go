package openmeteo_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
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
		_, _ = io.WriteString(w, map[string]string{"/places": s.places, "/forecast": s.forecast}[r.URL.Path])
	}))
	t.Cleanup(web.Close)
	p, err := openmeteo.New(web.URL+"/places", web.URL+"/forecast", func() time.Time { return time.Date(2026, 11, 23, 23, 30, 0, 0, time.UTC) })
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

// TestWishes: the robot's settings say where it lives and which degrees it speaks (VEC-DOC-01).
func TestWishes(t *testing.T) {
	for doc, want := range map[string]string{`{"default_location":"Bern","temp_is_fahrenheit":false}`: "Bern false", `{"default_location":"Bern"}`: "Bern true", `{}`: " true", `x`: " true", `{"temp_is_fahrenheit":1}`: " true"} {
		if place, f := weather.Wishes(doc); fmt.Sprint(place, " ", f) != want {
			t.Errorf("%s: %q %v, want %s", doc, place, f, want)
		}
	}
}
