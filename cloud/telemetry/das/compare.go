package das

import (
	"context"
	"math"
	"net/url"
	"slices"
	"time"

	"kennel/infra/api/events"
	"kennel/infra/errs"
)

// Experiment is one that robots told of (VEC-DAS-16): event experiment.assigned, s1 its key, s2 the variation, s3 the version of the robot's file.
type Experiment struct {
	Key        string      `json:"key"`
	Files      []string    `json:"files"` // versions of the files that robots had it from
	Variations []Variation `json:"variations"`
	Last       time.Time   `json:"last"` // when a robot last told of it
}

// Variation is one of an experiment, with how many robots told that they have it.
type Variation struct {
	Variation string `json:"variation"`
	Robots    int    `json:"robots"`
}

// CompareQuery asks how robots of the variations of an experiment differ. The zero Until is now, the zero Since a week before.
type CompareQuery struct {
	Key          string
	Name         string // of the event that is compared
	Of           string // a number of it, i1 to i4, whose mean is compared; "": how often it comes on a day of a robot
	Since, Until time.Time
}

// Arm is how the robots of one variation did. Each robot counts once, however much it sends.
type Arm struct {
	Variation string  `json:"variation"`
	Robots    int     `json:"robots"` // that have a value
	Days      int64   `json:"days"`   // robots times days on which they sent anything
	Events    int64   `json:"events"`
	Mean      float64 `json:"mean"` // over the robots
	Variance  float64 `json:"variance"`
}

// Difference compares a variation with control: Mean minus its Mean, and between which values the true difference is with 95 % confidence (Welch).
type Difference struct {
	Variation string  `json:"variation"`
	By        float64 `json:"by"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Clear     bool    `json:"clear"` // 0 is not between Low and High
	Few       bool    `json:"few"`   // there are too few robots to say; Low and High are 0
}

// Comparison is the answer to a CompareQuery.
type Comparison struct {
	Key         string       `json:"key"`
	Name        string       `json:"name"`
	Of          string       `json:"of,omitempty"`
	Since       time.Time    `json:"since"`
	Until       time.Time    `json:"until"`
	Control     string       `json:"control"` // what the others are compared with: control, or the first
	Arms        []Arm        `json:"arms"`    // Control first
	Differences []Difference `json:"differences"`
	Changed     int          `json:"changed"` // robots that told of several variations; they are in none
}

// ReadCompare reads a query from the parameters of an address: name, of, since and until.
func ReadCompare(key string, v url.Values, now time.Time) (CompareQuery, error) {
	q := CompareQuery{Key: key}
	if key == "" || len(key) > events.MaxText {
		return q, errs.New(errs.Invalid, "experiment %.60q: want the key of an experiment", key)
	}
	of := ""
	f, err := ReadFilter(v, now, func(key, s string) (bool, error) {
		if key == "of" {
			of = s
		}
		return key == "of" || key == "key", nil
	})
	switch {
	case err != nil:
		return q, err
	case f.Name == "":
		return q, errs.New(errs.Invalid, "name is missing: want the name of the event to compare by, such as robot.fault_code")
	}
	for other := range f.Query() {
		if other != "name" && other != "since" && other != "until" {
			return q, errs.New(errs.Invalid, "%.40s: want only name, of, since and until", other)
		}
	}
	q.Name, q.Since, q.Until = f.Name, f.Since, f.Until
	if of != "" {
		q.Of, err = NumberOf(q.Name, of)
	}
	return q, err
}

// Experiments returns what robots told of since a time.
func (s *Service) Experiments(ctx context.Context, since time.Time) ([]Experiment, error) {
	return s.reader.Experiments(ctx, since)
}

// Compare compares the variations of an experiment.
func (s *Service) Compare(ctx context.Context, q CompareQuery) (Comparison, error) {
	if q.Until.IsZero() {
		q.Until = s.now().UTC()
	}
	if q.Since.IsZero() {
		q.Since = q.Until.AddDate(0, 0, -7)
	}
	c := Comparison{Key: q.Key, Name: q.Name, Of: q.Of, Since: q.Since, Until: q.Until, Differences: []Difference{}}
	var err error
	if c.Arms, c.Changed, err = s.reader.Arms(ctx, q); err != nil {
		return c, err
	}
	if len(c.Arms) == 0 {
		return c, errs.New(errs.NotFound, "no robot in experiment %.60q sent events from %s to %s", q.Key, q.Since.Format(time.RFC3339), q.Until.Format(time.RFC3339))
	}
	if i := slices.IndexFunc(c.Arms, func(a Arm) bool { return a.Variation == "control" }); i > 0 {
		control := c.Arms[i]
		c.Arms = slices.Insert(slices.Delete(c.Arms, i, i+1), 0, control)
	}
	c.Control = c.Arms[0].Variation
	for _, a := range c.Arms[1:] {
		c.Differences = append(c.Differences, a.Against(c.Arms[0]))
	}
	return c, nil
}

// Against compares an arm with the one of control.
func (a Arm) Against(control Arm) Difference {
	d := Difference{Variation: a.Variation, By: a.Mean - control.Mean}
	va, vc := a.Variance/float64(a.Robots), control.Variance/float64(control.Robots)
	if a.Robots < 2 || control.Robots < 2 {
		d.Few = true
		return d
	}
	if va+vc > 0 {
		freedom := (va + vc) * (va + vc) / (va*va/float64(a.Robots-1) + vc*vc/float64(control.Robots-1))
		half := student(freedom) * math.Sqrt(va+vc)
		d.Low, d.High = d.By-half, d.By+half
	} else {
		d.Low, d.High = d.By, d.By
	}
	d.Clear = d.Low > 0 || d.High < 0
	return d
}

// student returns the 97.5 % quantile of Student's distribution with at least one degree of freedom: the expansion 26.7.5 of Abramowitz and Stegun,
// good to 0.2 % from three on; below, the value of the next lower whole number.
func student(freedom float64) float64 {
	switch {
	case freedom < 2:
		return 12.7062
	case freedom < 3:
		return 4.3027
	}
	const z = 1.959964
	z3, z5, z7, z9 := math.Pow(z, 3), math.Pow(z, 5), math.Pow(z, 7), math.Pow(z, 9)
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*math.Pow(freedom, 2)) + (3*z7+19*z5+17*z3-15*z)/(384*math.Pow(freedom, 3)) +
		(79*z9+776*z7+1482*z5-1920*z3-945*z)/(92160*math.Pow(freedom, 4))
}
