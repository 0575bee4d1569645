package answers

import (
	"context"
	"strconv"
	"testing"

	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/speech/weather"
)

// TestFactory: the place of a robot that was not set up (VEC-DOC-01) is the one that gives way to the house's.
func TestFactory(t *testing.T) {
	for _, id := range []thing.ID{"vic:00e20100", "amigo:1"} {
		schema, _ := jdocs.SchemaOf(jdocs.RobotSettings.Of(id))
		var place string
		for _, f := range schema.Fields {
			if f.Name == "default_location" {
				place, _ = strconv.Unquote(string(f.Default))
			}
		}
		s := Service{Source: "sky", Place: "Bern", Settings: func(context.Context, thing.ID) (string, error) {
			return `{"default_location":` + strconv.Quote(place) + `}`, nil
		}}
		want := Weather{"sky", weather.Wishes{Place: "Bern", Fahrenheit: true, House: true}}
		if got, err := s.Weather(t.Context(), id); err != nil || got != want || place == "" {
			t.Errorf("%s, %q: %+v, %v; want %+v", id, place, got, err, want)
		}
	}
}
