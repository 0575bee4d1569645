package das

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kennel/infra/api/events"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Filter chooses records; empty fields choose all. Set reads its form in an address, Query writes it.
type Filter struct {
	Thing   thing.ID
	Robots  string       // a filter of the fleet, such as cohort:beta
	Things  []thing.ID   // the robots that Robots selects; nil: all
	Event   string       // prefix of the event's name
	Name    string       // the event's name
	Names   []string     // one of these is the event's name; nil: any; not in an address
	Version string       // of the robot's release; a * at its end matches anything
	Level   events.Level // at least so grave
	Source  string       // the program
	Values  []Condition  // all of them hold
	Misfit  bool         // only events that do not fit their description
	Since   time.Time    // received then or later
	Until   time.Time    // received before
	// ByRobot: Since and Until are by the robot's clock. Robots' clocks may be ahead: by up to a day in what is found.
	ByRobot bool
	Owned   time.Time // received and, for certain (Clock), recorded then or later, whatever else is asked; not in an address
}

// Keys are the parameters that Set knows, in the order in which people give them.
var Keys = []string{"thing", "robots", "event", "name", "version", "level", "source", "value", "fits", "since", "until", "clock"}

// Levels are what a filter takes, from the least grave on.
var Levels = []events.Level{events.Debug, events.Info, events.Warning, events.Error}

const (
	maxWord   = 128
	maxRobots = 400 // bytes of a filter of the fleet
	maxValues = 8
)

// ReadFilter reads a filter from the parameters of an address. other reads those that are not of a filter; nil: there are none. An empty
// parameter is like none. Errors are Invalid and say what was expected; an unknown name is one, so that a misspelled filter does not choose
// everything.
func ReadFilter(v url.Values, now time.Time, other func(key, value string) (known bool, err error)) (Filter, error) {
	var f Filter
	keys := make([]string, 0, len(v))
	for key := range v {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return slices.Index(Keys, a) - slices.Index(Keys, b) }) // name before value, since before until
	for _, key := range keys {
		if len(v[key]) != 1 && key != "value" {
			return f, errs.New(errs.Invalid, "%.40s: given %d times, want it once", key, len(v[key]))
		}
		for _, s := range v[key] {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			known := slices.Contains(Keys, key)
			var err error
			if known {
				err = f.Set(key, s, now)
			} else if other != nil {
				known, err = other(key, s)
			}
			if err != nil {
				return f, errs.New(errs.Invalid, "%s %.60q: %w", key, s, err)
			}
			if !known {
				return f, errs.New(errs.Invalid, "%.40q: want %s", key, strings.Join(Keys, ", "))
			}
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, errs.New(errs.Invalid, "until %s: want a time after since, %s", f.Until.Format(time.RFC3339), f.Since.Format(time.RFC3339))
	}
	return f, nil
}

// Set sets one parameter, one of Keys. A value condition that names a value by its description needs the name set before.
func (f *Filter) Set(key, s string, now time.Time) (err error) {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return errors.New("want UTF-8 without NUL")
	}
	word := func(to *string, most int) error {
		if *to = s; len(s) > most {
			return fmt.Errorf("want at most %d bytes", most)
		}
		return nil
	}
	switch key {
	case "thing":
		f.Thing, err = thing.Parse(s)
	case "robots":
		err = word(&f.Robots, maxRobots)
	case "event":
		err = word(&f.Event, maxWord)
	case "name":
		if f.Name = s; events.CheckName(s) != nil {
			err = errors.New("want the full name of an event, such as battery.low; use event for the start of a name")
		}
	case "version":
		err = word(&f.Version, maxWord)
	case "level":
		if f.Level = events.Level(s); !slices.Contains(Levels, f.Level) {
			err = fmt.Errorf("want one of %s", errs.List(Levels))
		}
	case "source":
		err = word(&f.Source, maxWord)
	case "value":
		var c Condition
		if c, err = ParseCondition(f.Name, s); err == nil && len(f.Values) == maxValues {
			err = fmt.Errorf("want at most %d conditions", maxValues)
		}
		f.Values = append(f.Values, c)
	case "fits":
		if f.Misfit = s == "no"; !f.Misfit {
			err = errors.New("want no")
		}
	case "since":
		f.Since, err = moment(s, now)
	case "until":
		f.Until, err = moment(s, now)
	case "clock":
		if f.ByRobot = s == "robot"; !f.ByRobot && s != "cloud" {
			err = errors.New("want cloud or robot")
		}
	default:
		err = fmt.Errorf("want one of %s", strings.Join(Keys, ", "))
	}
	return err
}

// moment reads a time, or how long before now.
func moment(s string, now time.Time) (time.Time, error) {
	if days, found := strings.CutSuffix(s, "d"); found {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 3650 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, errors.New("want a time such as 2026-05-06T12:00:00Z, or an age such as 24h or 7d")
	}
	if y := t.Year(); y < 1970 || y > 9999 {
		return t, errors.New("want a year from 1970 to 9999")
	}
	return t.UTC(), nil
}

// Query returns the filter as parameters of an address.
func (f Filter) Query() url.Values {
	v := url.Values{}
	put := func(key, s string) {
		if s != "" {
			v.Add(key, s)
		}
	}
	put("thing", string(f.Thing))
	put("robots", f.Robots)
	put("event", f.Event)
	put("name", f.Name)
	put("version", f.Version)
	put("level", string(f.Level))
	put("source", f.Source)
	for _, c := range f.Values {
		put("value", c.String())
	}
	if f.Misfit {
		put("fits", "no")
	}
	if !f.Since.IsZero() {
		put("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		put("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	if f.ByRobot {
		put("clock", "robot")
	}
	return v
}

// Condition asks something of one value of an event. An event without the value does not meet it.
type Condition struct {
	Field string // of events.Fields
	Op    string // = or !=; of numbers also < <= > >=; of texts ~: contains, any case
	Text  string // what a text is compared with
	N     int64  // what a number is compared with
}

// Number reports whether the value is a number.
func (c Condition) Number() bool { return c.Field[0] == 'i' }

func (c Condition) String() string {
	if c.Number() {
		return c.Field + c.Op + strconv.FormatInt(c.N, 10)
	}
	return c.Field + c.Op + c.Text
}

// ParseCondition reads one such as battery<3500, i1>=20, s1=low or s2~charger. A value is called by its field, or by its name in the
// description of the event, whose name is given.
func ParseCondition(event, s string) (c Condition, err error) {
	at := strings.IndexAny(s, "=!<>~")
	if at < 0 {
		return c, errors.New("want a value, one of = != < <= > >= ~, and an operand, such as battery<3500")
	}
	name, rest := strings.TrimSpace(s[:at]), s[at:]
	for _, op := range []string{"!=", "<=", ">=", "=", "<", ">", "~"} {
		if strings.HasPrefix(rest, op) {
			c.Op = op
			break
		}
	}
	c.Text = strings.TrimSpace(strings.TrimPrefix(rest, c.Op))
	var ok bool
	if c.Field, ok = events.FieldOf(event, name); !ok {
		return c, fmt.Errorf("value %.40q: want %s", name, namesOf(event))
	}
	switch {
	case c.Op == "":
		return c, errors.New("want = != < <= > >= or ~ after the value")
	case len(c.Text) > events.MaxText:
		return c, fmt.Errorf("operand of %d bytes: want at most %d", len(c.Text), events.MaxText)
	case c.Number() && c.Op == "~":
		return c, errors.New("the value is a number: want = != < <= > or >=")
	case c.Number():
		if c.N, err = strconv.ParseInt(c.Text, 10, 64); err != nil {
			return c, fmt.Errorf("operand %.40q: want a 64-bit integer, because the value is a number", c.Text)
		}
		c.Text = ""
	case c.Op != "=" && c.Op != "!=" && c.Op != "~":
		return c, errors.New("the value is text: want = != or ~ (contains)")
	}
	return c, nil
}

// namesOf lists what the values of an event may be called.
func namesOf(event string) string {
	values, known := events.Describe(event)
	if !known {
		return "one of " + strings.Join(events.Fields, ", ") + "; names of values need the whole name of an event whose description is known"
	}
	var out []string
	for _, d := range values {
		out = append(out, fmt.Sprintf("%s (%s)", d.Name, d.Field))
	}
	return "one of " + strings.Join(out, ", ")
}
