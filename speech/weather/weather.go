// Package weather tells a robot the weather of a place (VEC-NLP-11), from whichever source a house has.
package weather

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
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
	ErrDay        = errs.New(errs.NotFound, "the weather service does not know this day")
)

// Provider tells the weather. All methods may be called concurrently.
type Provider interface {
	// Report returns ErrNoPlace, ErrUnknown or ErrDay for a place or a day that cannot be, and other errors if it could not look.
	Report(ctx context.Context, q Question) (Report, error)
}

// None is the provider of a house without one.
type None struct{}

// Report implements Provider.
func (None) Report(context.Context, Question) (Report, error) { return Report{}, ErrNoProvider }

// Factory is the place in the settings of a robot whose owner has chosen none (VEC-DOC-01).
const Factory = "San Francisco, California, United States"

// Wishes are where a robot lives, and in which degrees it speaks.
type Wishes struct {
	Place      string // "": unknown
	Fahrenheit bool
	House      bool // Place is the house's, not the robot's own
}

// Of reads what a robot's settings document says about weather (VEC-NLP-11): its default place, and whether degrees are Fahrenheit, which they are by
// default (VEC-DOC-01). house is the place of robots whose owner has chosen none; "": there is none. A document that cannot be read names no place.
func Of(settings, house string) Wishes {
	var doc struct {
		Place      string `json:"default_location"`
		Fahrenheit *bool  `json:"temp_is_fahrenheit"`
	}
	if json.Unmarshal([]byte(settings), &doc) != nil {
		return Wishes{house, true, house != ""}
	}
	w := Wishes{Place: doc.Place, Fahrenheit: doc.Fahrenheit == nil || *doc.Fahrenheit}
	if house != "" && (w.Place == "" || w.Place == Factory) {
		w.Place, w.House = house, true
	}
	return w
}

// excuses are what a robot says without a report, in the languages that are not English, by what it says in English.
var excuses = map[string]map[string]string{"de": {
	noPlace:  "Ich weiß nicht, wo ich wohne. Der Ort fehlt in meinen Einstellungen.",
	unknown:  "Diesen Ort kenne ich nicht.",
	noSource: "Ich weiß nicht, wo ich nach dem Wetter fragen soll.",
	noDay:    "So weit reicht meine Wettervorhersage nicht.",
	away:     "Ich kann das Wetter gerade nicht abfragen.",
}}

const (
	noPlace  = "I do not know where I live. My settings name no place."
	unknown  = "I do not know that place."
	noSource = "I have nowhere to look up the weather."
	noDay    = "My weather forecast does not reach that far."
	away     = "I cannot reach the weather now."
)

// Excuse returns what a robot says in a language, such as en-US, if Report returned err.
func Excuse(err error, language string) string {
	said := away
	switch {
	case errors.Is(err, ErrNoPlace):
		said = noPlace
	case errors.Is(err, ErrUnknown):
		said = unknown
	case errors.Is(err, ErrNoProvider):
		said = noSource
	case errors.Is(err, ErrDay):
		said = noDay
	}
	lang, _, _ := strings.Cut(language, "-")
	return cmp.Or(excuses[lang][said], said)
}
