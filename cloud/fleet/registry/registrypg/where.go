package registrypg

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/thing"
)

// query builds one statement's conditions and their arguments. Every text of a person is an argument.
type query struct {
	now   time.Time
	args  []any
	words bool // the condition reads registry_words AS w
}

// from returns the tables of the condition that where made. Words are joined once, however many are asked for and however cohorts nest: as
// sets, one for each word, they were read from end to end for each, and for each robot where the set did not fit into memory.
func (q *query) from() string {
	if q.words {
		return "registry_facet AS f JOIN registry_words AS w ON w.thing = f.thing"
	}
	return "registry_facet AS f"
}

// arg adds an argument and returns its placeholder.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

// where returns the condition of a resolved filter on the tables of from.
func (q *query) where(f filter.Filter) string {
	if len(f.Terms) == 0 {
		return "true"
	}
	var out []string
	var none []filter.Term // words that must not be there
	for _, t := range f.Terms {
		if t.Key == filter.Word && t.Not {
			none = append(none, t)
			continue
		}
		out = append(out, q.term(t))
	}
	switch len(none) {
	case 0:
	case 1:
		out = append(out, q.term(none[0]))
	default:
		out = append(out, q.noneOf(none))
	}
	return strings.Join(out, " AND ")
}

// noneOf is the condition that none of some words is there: one pass over the text of a robot, however many they are.
func (q *query) noneOf(words []filter.Term) string {
	q.words = true
	var patterns []string
	var things []thing.ID
	for _, t := range words {
		patterns = append(patterns, literal(t.Values[0].Text))
		things = append(things, t.Things...)
	}
	cond := "w.words !~ " + q.arg(strings.Join(patterns, "|"))
	if len(things) > 0 {
		cond += " AND w.thing <> ALL(" + q.arg(texts(things)) + "::text[])"
	}
	return cond
}

func (q *query) term(t filter.Term) string {
	var alts []string
	switch {
	case t.Key == filter.Word:
		// Both alternatives ask registry_words, so that its indexes serve: of words, and of things for names given by owners.
		q.words = true
		alts = append(alts, "w.words LIKE "+q.arg("%"+like(t.Values[0].Text)+"%"))
		if len(t.Things) > 0 {
			alts = append(alts, "w.thing = ANY("+q.arg(texts(t.Things))+"::text[])")
		}
	case t.Key == filter.Name || t.Key == filter.Owner:
		alts = append(alts, "f.thing = ANY("+q.arg(texts(t.Things))+"::text[])")
	case t.Key == filter.Tag:
		alts = q.arrays("f.tags", t.Values)
	case t.Key == filter.Problem:
		var kinds, codes []filter.Value
		for _, v := range t.Values {
			if strings.Contains(v.Text, "/") {
				codes = append(codes, v)
			} else {
				kinds = append(kinds, v)
			}
		}
		alts = append(q.arrays("f.problems", kinds), q.arrays("f.codes", codes)...)
	case t.Key == filter.Species || t.Key == filter.Model:
		var values []string
		for _, v := range t.Values {
			values = append(values, v.Text)
		}
		alts = append(alts, fmt.Sprintf("f.%s = ANY(%s::text[])", t.Key, q.arg(values)))
	default:
		for i := range t.Values {
			alts = append(alts, q.one(&t, i))
		}
	}
	cond := alts[0]
	if len(alts) > 1 {
		cond = "(" + strings.Join(alts, " OR ") + ")"
	}
	if t.Not {
		return "NOT (" + cond + ")"
	}
	return cond
}

// arrays asks for members. The index of an array has those with members alone, so that is said too.
func (q *query) arrays(col string, values []filter.Value) (alts []string) {
	var members []string
	for _, v := range values {
		switch v.Text {
		case filter.None:
			alts = append(alts, col+" = '{}'")
		case filter.Any:
			alts = append(alts, col+" <> '{}'")
		default:
			members = append(members, v.Text)
		}
	}
	if members != nil {
		alts = append(alts, fmt.Sprintf("(%s && %s::text[] AND %s <> '{}')", col, q.arg(members), col))
	}
	return alts
}

// calls tells a robot that calls from others that are not present: it was seen, and never had a lease.
const calls = "(f.since = '-infinity' AND f.seen > '-infinity')"

var versions = map[filter.Key]string{filter.Version: "os", filter.Agent: "agent", filter.Body: "body"}

func (q *query) one(t *filter.Term, i int) string {
	v := t.Values[i]
	switch t.Key {
	case filter.Presence:
		return map[string]string{filter.Present: "f.present", filter.Absent: "(NOT f.present AND NOT " + calls + ")", filter.Calls: "(NOT f.present AND " + calls + ")",
			filter.Never: "f.seen = '-infinity'"}[v.Text]
	case filter.ID:
		if head, star := strings.CutSuffix(v.Text, "*"); star {
			return "f.thing LIKE " + q.arg(like(head)+"%")
		}
		return "f.thing = " + q.arg(v.Text)
	case filter.Version, filter.Agent, filter.Body:
		col := "f." + versions[t.Key]
		head, star := strings.CutSuffix(v.Text, "*")
		switch {
		case v.Op != filter.Is:
			return fmt.Sprintf("(%s_key %s %s AND %s_key <> '')", col, v.Op, q.arg(v.Ver), col)
		case v.Text == filter.None:
			return col + "_key = ''"
		case star:
			return fmt.Sprintf("(%s LIKE %s AND %s <> '')", col, q.arg(like(head)+"%"), col)
		}
		return fmt.Sprintf("(%s_key = %s AND %s = %s)", col, q.arg(filter.VersionKey(v.Text)), col, q.arg(v.Text))
	case filter.Battery:
		switch {
		case v.Op != filter.Is:
			return fmt.Sprintf("(f.volts %s %s AND f.volts > 0)", v.Op, q.arg(v.Num))
		case v.Text == "unknown":
			return "f.level IN ('', 'unknown')"
		}
		return "f.level = " + q.arg(v.Text)
	case filter.Loop:
		if v.Op != filter.Is {
			return fmt.Sprintf("(f.late %s %s AND f.late >= 0)", v.Op, q.arg(v.Num))
		}
		return "f.loop = " + q.arg(v.Text)
	case filter.Cert:
		switch {
		case v.Op == filter.Is && v.Text == filter.None:
			return "f.cert = '-infinity'"
		case v.Op == filter.Is: // expired
			return "(f.cert <= " + q.arg(q.now) + " AND f.cert > '-infinity')"
		}
		at := v.At
		if at.IsZero() {
			at = q.now.Add(v.Age)
		}
		return fmt.Sprintf("(f.cert %s %s AND f.cert > '-infinity')", v.Op, q.arg(at))
	case filter.Seen:
		if v.Op == filter.Is { // never
			return "f.seen = '-infinity'"
		}
		op, at := q.when(v)
		// A present robot was last seen now, so the comparison is the same for every row.
		now := compare(q.now, op, at)
		past := fmt.Sprintf("f.seen %s %s AND f.seen > '-infinity'", op, q.arg(at))
		if now {
			return "(" + past + " OR f.seen = 'infinity')"
		}
		return "(" + past + " AND f.seen < 'infinity')"
	case filter.Since:
		if v.Op == filter.Is {
			return "f.since = '-infinity'"
		}
		op, at := q.when(v)
		return fmt.Sprintf("(f.since %s %s AND f.since > '-infinity')", op, q.arg(at))
	case filter.Created:
		op, at := q.when(v)
		return fmt.Sprintf("f.created %s %s", op, q.arg(at))
	case filter.Cohort:
		if i < len(t.Subs) {
			return "(" + q.where(t.Subs[i]) + ")"
		}
	}
	return "false"
}

// when returns the comparison of a column of times that a date or an age means: an age of more than 3 d is a time before.
func (q *query) when(v filter.Value) (filter.Op, time.Time) {
	if !v.At.IsZero() {
		return v.Op, v.At
	}
	turned := map[filter.Op]filter.Op{filter.Less: filter.More, filter.LessEqual: filter.MoreEqual, filter.More: filter.Less, filter.MoreEqual: filter.LessEqual}
	return turned[v.Op], q.now.Add(-v.Age)
}

func compare(a time.Time, op filter.Op, b time.Time) bool {
	c := a.Compare(b)
	return c < 0 && (op == filter.Less || op == filter.LessEqual) || c > 0 && (op == filter.More || op == filter.MoreEqual) ||
		c == 0 && (op == filter.LessEqual || op == filter.MoreEqual)
}

// literal escapes what a regular expression would read as a pattern.
func literal(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// like escapes what LIKE would read as a pattern.
func like(s string) string { return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(s) }

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
