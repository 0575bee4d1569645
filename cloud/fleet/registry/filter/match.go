package filter

import (
	"slices"
	"strings"
	"time"

	"kennel/infra/thing"
)

// Row holds the facts about one robot that terms ask for. Unknown times are zero.
type Row struct {
	Thing    thing.ID
	Present  bool
	Created  time.Time
	Since    time.Time // of its presence
	Seen     time.Time // not asked of a present one
	Version  string
	Agent    string
	Body     string // version of its firmware
	Model    string
	Volts    float64  // 0: unknown
	Level    string   // "": unknown
	Late     float64  // p99 in microseconds; below 0: it has no loop
	Loop     string   // OK, Late, None
	Problems []string // kinds
	Codes    []string // kind/code of problems
	Tags     []string
	Cert     time.Time // end of its certificate; zero: none
}

// Words is the text that words are looked for in.
func (r *Row) Words() string {
	return strings.ToLower(strings.Join(append([]string{string(r.Thing), r.Version, r.Agent, r.Body, r.Model}, r.Tags...), "\n"))
}

// Match reports whether the filter selects r at now. The filter must have been resolved if it names cohorts, names or owners.
func (f Filter) Match(r *Row, now time.Time) bool {
	for i := range f.Terms {
		if f.Terms[i].match(r, now) == f.Terms[i].Not {
			return false
		}
	}
	return true
}

func (t *Term) match(r *Row, now time.Time) bool {
	if len(t.Things) > 0 {
		if _, ok := slices.BinarySearch(t.Things, r.Thing); ok {
			return true
		}
	}
	for i := range t.Values {
		if t.one(i, r, now) {
			return true
		}
	}
	return false
}

func (t *Term) one(i int, r *Row, now time.Time) bool {
	v := &t.Values[i]
	switch t.Key {
	case Word:
		return strings.Contains(r.Words(), v.Text)
	case Presence:
		calls := !r.Present && r.Since.IsZero() && !r.Seen.IsZero()
		switch v.Text {
		case Present:
			return r.Present
		case Absent:
			return !r.Present && !calls
		case Calls:
			return calls
		}
		return !r.Present && r.Seen.IsZero()
	case Species:
		return string(r.Thing.Species()) == v.Text
	case ID:
		return star(string(r.Thing), v.Text)
	case Version:
		return v.version(r.Version)
	case Agent:
		return v.version(r.Agent)
	case Body:
		return v.version(r.Body)
	case Model:
		return r.Model == v.Text
	case Tag:
		return among(r.Tags, v.Text)
	case Problem:
		return among(r.Problems, v.Text) || slices.Contains(r.Codes, v.Text)
	case Battery:
		if v.Op == Is {
			return r.Level == v.Text || r.Level == "" && v.Text == "unknown"
		}
		return r.Volts > 0 && compare(r.Volts, v.Op, v.Num)
	case Loop:
		if v.Op == Is {
			return r.Loop == v.Text
		}
		return r.Late >= 0 && compare(r.Late, v.Op, v.Num)
	case Cert:
		switch {
		case v.Text == None && v.Op == Is:
			return r.Cert.IsZero()
		case r.Cert.IsZero():
			return false
		case v.Op == Is: // expired
			return !r.Cert.After(now)
		case !v.At.IsZero():
			return compareTimes(r.Cert, v.Op, v.At)
		}
		return compareTimes(r.Cert, v.Op, now.Add(v.Age))
	case Seen:
		seen := r.Seen
		if r.Present {
			seen = now
		}
		return v.when(seen, now)
	case Since:
		return v.when(r.Since, now)
	case Created:
		return v.when(r.Created, now)
	case Cohort:
		return i < len(t.Subs) && t.Subs[i].Match(r, now)
	}
	return false // name and owner: Things alone
}

func among(list []string, want string) bool {
	switch want {
	case None:
		return len(list) == 0
	case Any:
		return len(list) > 0
	}
	return slices.Contains(list, want)
}

func star(s, pattern string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, head)
	}
	return s == pattern
}

func (v *Value) version(s string) bool {
	switch {
	case v.Op != Is:
		return s != "" && compare(VersionKey(s), v.Op, v.Ver)
	case v.Text == None:
		return s == ""
	}
	return star(s, v.Text) && s != ""
}

// when compares a time with a date, or its age with a duration: the older, the larger.
func (v *Value) when(at, now time.Time) bool {
	switch {
	case v.Op == Is: // never
		return at.IsZero()
	case at.IsZero():
		return false
	case !v.At.IsZero():
		return compareTimes(at, v.Op, v.At)
	}
	return compareTimes(now.Add(-v.Age), v.Op, at)
}

func compareTimes(a time.Time, op Op, b time.Time) bool { return compare(a.Compare(b), op, 0) }

func compare[T int | float64 | string](a T, op Op, b T) bool {
	switch op {
	case Less:
		return a < b
	case LessEqual:
		return a <= b
	case More:
		return a > b
	case MoreEqual:
		return a >= b
	}
	return a == b
}
