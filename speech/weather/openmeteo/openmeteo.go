// Package openmeteo gets the weather from a server with the API of open-meteo.com: one call finds the place, one its weather. The calls name
// neither the robot nor a person.
package openmeteo

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/httpjson"
	"kennel/speech/weather"
)

// The public servers. They ask that use be not commercial.
const (
	places   = "https://geocoding-api.open-meteo.com/v1/search"
	forecast = "https://api.open-meteo.com/v1/forecast"
)

const (
	limit    = 3 * time.Second // of each call: the robot waits 9 s for the whole
	maxPlace = 100
	windy    = 40 // km/h
	cold     = 0  // degrees Celsius
	maxDays  = 15 // that a forecast reaches
)

// Provider is a weather.Provider.
type Provider struct {
	places, forecast *httpjson.Server
	now              func() time.Time
}

// New returns the provider at the address of a server of one's own, which has both paths of the public ones; "" is the public servers.
func New(address string, now func() time.Time) (*Provider, error) {
	find, ask := places, forecast
	if address = strings.TrimSuffix(address, "/"); address != "" {
		find, ask = address+"/v1/search", address+"/v1/forecast"
	}
	p, err := httpjson.New("place server", find, "", limit)
	if err != nil {
		return nil, err
	}
	f, err := httpjson.New("weather server", ask, "", limit)
	return &Provider{p, f, now}, err
}

type place struct {
	Name     string  `json:"name"`
	Region   string  `json:"admin1"`
	Country  string  `json:"country"`
	Lat      float64 `json:"latitude"`
	Lon      float64 `json:"longitude"`
	Timezone string  `json:"timezone"`
}

// outlook is the part of the answer that is used.
type outlook struct {
	Current *struct {
		Temperature *float64 `json:"temperature_2m"`
		Code        *int     `json:"weather_code"`
		Wind        float64  `json:"wind_speed_10m"`
		Day         int      `json:"is_day"`
	} `json:"current"`
	Daily *struct {
		Temperature []*float64 `json:"temperature_2m_max"`
		Code        []*int     `json:"weather_code"`
		Wind        []float64  `json:"wind_speed_10m_max"`
	} `json:"daily"`
}

// Report implements weather.Provider.
func (p *Provider) Report(ctx context.Context, q weather.Question) (weather.Report, error) {
	at, err := p.find(ctx, q.Place, q.Language)
	if err != nil {
		return weather.Report{}, err
	}
	zone, err := time.LoadLocation(at.Timezone)
	if err != nil {
		zone = time.UTC
	}
	r := weather.Report{Place: at.Name, Unit: "C", At: p.now().In(zone)}
	ask := url.Values{"latitude": {degrees(at.Lat)}, "longitude": {degrees(at.Lon)}, "timezone": {zone.String()}, "current": {"temperature_2m,weather_code,wind_speed_10m,is_day"}}
	if day := q.Day; !day.IsZero() && day.Format(time.DateOnly) != r.At.Format(time.DateOnly) {
		r.Forecast, r.At = true, time.Date(day.Year(), day.Month(), day.Day(), 12, 0, 0, 0, zone)
		if until := r.At.Sub(p.now()); until < -24*time.Hour || until > maxDays*24*time.Hour {
			return weather.Report{}, fmt.Errorf("%w: only today and the next %d days", weather.ErrDay, maxDays)
		}
		ask.Del("current")
		ask.Set("daily", "temperature_2m_max,weather_code,wind_speed_10m_max")
		ask.Set("start_date", r.At.Format(time.DateOnly))
		ask.Set("end_date", r.At.Format(time.DateOnly))
	}
	var f outlook
	if err := p.forecast.Get(ctx, ask, &f); err != nil {
		return weather.Report{}, err
	}
	nothing := errs.New(errs.Unavailable, "weather server: no temperature in the response")
	var celsius *float64
	var code *int
	switch c, d := f.Current, f.Daily; {
	case r.Forecast && d != nil && len(d.Temperature) == 1 && len(d.Code) == 1 && len(d.Wind) == 1:
		celsius, code = d.Temperature[0], d.Code[0]
		r.Condition = condition(code, celsius, d.Wind[0], true)
	case !r.Forecast && c != nil:
		celsius, code = c.Temperature, c.Code
		r.Condition = condition(code, celsius, c.Wind, c.Day != 0)
	}
	if celsius == nil || math.Abs(*celsius) > 100 {
		return weather.Report{}, nothing
	}
	t := *celsius
	if q.Fahrenheit {
		t, r.Unit = t*9/5+32, "F"
	}
	r.Temperature = int(math.Round(t))
	return r, nil
}

// find returns the place that a person means: "Paris", or "Paris, Texas, United States" as settings have it.
func (p *Provider) find(ctx context.Context, name, language string) (place, error) {
	parts := strings.Split(name, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if parts[0] == "" {
		return place{}, weather.ErrNoPlace
	}
	if len(name) > maxPlace {
		return place{}, weather.ErrUnknown
	}
	lang, _, _ := strings.Cut(cmp.Or(language, "en"), "-")
	var found struct {
		Results []place `json:"results"`
	}
	err := p.places.Get(ctx, url.Values{"name": {parts[0]}, "count": {"10"}, "language": {lang}, "format": {"json"}}, &found)
	if err != nil && errs.KindOf(err) != errs.NotFound && errs.KindOf(err) != errs.Invalid {
		return place{}, err
	}
	best, most := place{}, -1
	for _, r := range found.Results { // the most important first
		same := 0
		for _, want := range parts[1:] {
			if strings.EqualFold(want, r.Region) || strings.EqualFold(want, r.Country) {
				same++
			}
		}
		if r.Name != "" && math.Abs(r.Lat) <= 90 && math.Abs(r.Lon) <= 180 && same > most {
			best, most = r, same
		}
	}
	if most < 0 {
		return place{}, weather.ErrUnknown
	}
	return best, nil
}

// condition maps a code of the World Meteorological Organization to a picture that a robot has. Fog is Cloudy; what it has no picture of is Unknown.
func condition(code *int, celsius *float64, wind float64, day bool) weather.Condition {
	if code == nil || celsius == nil {
		return weather.Unknown
	}
	switch c := *code; {
	case c < 0:
		return weather.Unknown
	case c >= 95 && c <= 99:
		return weather.Thunderstorms
	case c >= 71 && c <= 77, c == 85, c == 86:
		return weather.Snow
	case c >= 51 && c <= 67, c >= 80 && c <= 82:
		return weather.Rain
	case c > 3 && c != 45 && c != 48:
		return weather.Unknown
	case wind >= windy:
		return weather.Windy
	case *celsius <= cold:
		return weather.Cold
	case c >= 2:
		return weather.Cloudy
	case !day:
		return weather.Stars
	case c == 1:
		return weather.Clear
	}
	return weather.Sunny
}

// degrees writes an angle so exactly that it means a town, not a house.
func degrees(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
