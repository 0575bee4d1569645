// Package answers tells owners where the answers of their robots come from.
package answers

import (
	"context"

	"kennel/infra/thing"
	"kennel/speech/weather"
)

// Service is safe for concurrent use once its fields are set.
type Service struct {
	Source string // of weather reports, for people; "": there is none
	Place  string // of robots whose settings name none of their own; "": none
	// Settings returns the settings document of a robot, "" if there is none.
	Settings func(ctx context.Context, id thing.ID) (string, error)
}

// Weather says how a robot answers who asks for the weather and names no place.
type Weather struct {
	Source string `json:"source"` // "": it cannot
	weather.Wishes
}

// Weather returns where a robot's weather is from.
func (s *Service) Weather(ctx context.Context, id thing.ID) (Weather, error) {
	doc, err := s.Settings(ctx, id)
	return Weather{s.Source, weather.Of(doc, s.Place)}, err
}
