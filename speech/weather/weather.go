// Package weather tells a robot the weather of a place (VEC-NLP-11), from whichever source a house has.
package weather

import (
	"context"
	"encoding/json"
	"time"

	"kennel/infra/errs"
)

// Condition names the picture that a robot shows. It knows these words alone (VEC-INT-08).
type Condition string

// The conditions.
const (
	Unknown       Condition = "" // the robot says the temperature and shows nothing
	Clear         Condition = "Clear"
	Cloudy        Condition = "Cloudy"
	Cold          Condition = "Cold"
	Rain          Condition = "Rain"
	Snow          Condition = "Snow"
	Stars         Condition = "Stars"
	Sunny         Condition = "Sunny"
	Thunderstorms Condition = "Thunderstorms"
	Windy         Condition = "Windy"
)

// Conditions are all that a robot knows.
var Conditions = []Condition{Clear, Cloudy, Cold, Rain, Snow, Stars, Sunny, Thunderstorms, Windy}

// Question asks for the weather of a place.
type Question struct {
	Place      string // as spoken, or default_location of the robot's settings
	Language   string // such as en-US
	Fahrenheit bool
	Day        time.Time // of a forecast, at the place; zero: now
}

// Report holds everything that the robot shows and says.
type Report struct {
	Condition   Condition
	Place       string // as a robot speaks it
	Temperature int
	Unit        string    // C or F
	At          time.Time // in the zone of the place
	Forecast    bool
}

// Errors that a robot can say something about.
var (
	ErrNoProvider = errs.New(errs.Unavailable, "this cloud has no weather service")
	ErrNoPlace    = errs.New(errs.Invalid, "no place given, and none in the robot's settings")
	ErrUnknown    = errs.New(errs.NotFound, "the weather service does not know this place")
)

// Provider tells the weather. All methods may be called concurrently.
type Provider interface {
	// Report returns ErrNoPlace or ErrUnknown for a place that cannot be, and other errors if it could not look.
	Report(ctx context.Context, q Question) (Report, error)
}

// None is the provider of a house without one.
type None struct{}

// Report implements Provider.
func (None) Report(context.Context, Question) (Report, error) { return Report{}, ErrNoProvider }

// Wishes reads what a robot's settings document says about weather (VEC-NLP-11): its default place, and whether degrees are Fahrenheit, which
// they are by default (VEC-DOC-01). A document that cannot be read names no place.
func Wishes(settings string) (place string, fahrenheit bool) {
	var doc struct {
		Place      string `json:"default_location"`
		Fahrenheit *bool  `json:"temp_is_fahrenheit"`
	}
	if json.Unmarshal([]byte(settings), &doc) != nil {
		return "", true
	}
	return doc.Place, doc.Fahrenheit == nil || *doc.Fahrenheit
}
