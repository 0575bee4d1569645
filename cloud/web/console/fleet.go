package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Fleet is the pages' access to the registry; *registry.Service is one.
type Fleet interface {
	Table(ctx context.Context, q registry.Selection) (registry.Page, error)
	Owners(ctx context.Context, ids []thing.ID) (map[thing.ID]string, error)
	Counts(ctx context.Context, f filter.Filter) (registry.Counts, error)
	Thing(ctx context.Context, id thing.ID) (registry.Thing, error)
	Doctor(ctx context.Context, id thing.ID) (registry.Report, error)
	History(ctx context.Context, id thing.ID, limit int) ([]registry.Change, error)
	Watch(ctx context.Context) <-chan registry.Thing
	Tag(ctx context.Context, id thing.ID, add, remove []string) ([]string, error)
}

const (
	pageSize   = 100
	shownChips = 8 // values of one facet that are open; the others are behind a word
	mostChips  = 40
)

var fleetLink = link{Label: "Fleet", Address: "/things"}

type fleetView struct {
	able
	said
	Total, Present int    // of what is selected
	Query          string // the filter as it is written
	Wrong          string // why it is none
	Filtered       bool
	Stranger       thing.ID // what was searched for is a thing id; "": it is none
	Tabs           []chip
	Terms          []chip // what the filter is made of; each leads to the filter without it
	Facets         []facetView
	Heads          []head
	Owners         bool // the viewer may know whose robots are
	Rows           []row
	Next, First    string // addresses of the next and the first page; "": none
	Sort           string
	Here           string // address of this page
	CSV, JSON      string // addresses of all that is selected
	Cohorts        []chip
	Save           bool // the filter may be kept
	Bulk           *bulkForm
	Missing        []link // why there are no robots, as pages know it
}

// chip is a value that leads to a filter with or without it.
type chip struct {
	Label   string
	Count   int
	Address string
	Current bool
}

type facetView struct {
	Name  string
	Chips []chip
	More  []chip
	Open  bool // one of More is current
}

// head is a column of the table.
type head struct {
	Label, Address, Aria, Class string
}

type row struct {
	registry.Thing
	Battery *batteryView
	Release string
	LateP99 string
	LateBad bool
	CertBad bool // it ends soon
	// CertOver: it has ended.
	CertOver bool
	Owner    string // e-mail; "": none, or the viewer may not know
}

const ownerColumn = "Owner" // for viewers who may know

// columns of the table; Sort "" is none. Those of class wide are shown where there is room.
var columns = []struct {
	Label string
	Sort  registry.Column
	Down  bool // the first click sorts the other way round
	Class string
}{{"Robot", registry.ByID, false, ""}, {ownerColumn, "", false, "c-owner"}, {"Status", registry.ByPresence, false, ""}, {"Since", registry.BySince, true, ""}, {"Release", registry.ByVersion, true, ""}, {"Battery", registry.ByBattery, false, ""},
	{"Problems", registry.ByProblems, true, ""}, {"Loop p99", registry.ByLoop, true, "right"}, {"Last seen", registry.BySeen, true, "wide"}, {"Certificate expires", registry.ByCert, false, "wide"},
	{"Agent", registry.ByAgent, true, "wider"}, {"Body", registry.ByBody, true, "wider"}, {"Registered", registry.ByCreated, true, "wider"}}

// facets are offered as chips, in this order.
var facets = []struct {
	Name string
	Key  filter.Key
	Of   func(*registry.Counts) []registry.Bucket
}{
	{"Problem", filter.Problem, func(c *registry.Counts) []registry.Bucket { return c.Problem }},
	{"Release", filter.Version, func(c *registry.Counts) []registry.Bucket { return c.Version }},
	{"Tag", filter.Tag, func(c *registry.Counts) []registry.Bucket { return c.Tag }},
	{"Species", filter.Species, func(c *registry.Counts) []registry.Bucket { return c.Species }},
	{"Battery", filter.Battery, func(c *registry.Counts) []registry.Bucket { return c.Battery }},
	{"Loop", filter.Loop, func(c *registry.Counts) []registry.Bucket { return c.Loop }},
	{"Agent", filter.Agent, func(c *registry.Counts) []registry.Bucket { return c.Agent }},
	{"Body", filter.Body, func(c *registry.Counts) []registry.Bucket { return c.Body }},
}

// fleetAddress is the table's address for a filter and an order.
func fleetAddress(query, sort string, after registry.Cursor) string {
	a := url.Values{}
	for name, text := range map[string]string{"q": query, "sort": sort, "after": string(after)} {
		if text != "" {
			a.Set(name, text)
		}
	}
	if len(a) == 0 {
		return fleetLink.Address
	}
	return fleetLink.Address + "?" + a.Encode()
}

// without returns f without the terms of a key that ask for something; those that rule something out stay.
func without(f filter.Filter, k filter.Key) filter.Filter {
	return filter.Filter{Terms: slices.DeleteFunc(slices.Clone(f.Terms), func(t filter.Term) bool { return t.Key == k && !t.Not })}
}

// only returns the one value that f asks of a key; "": none, or several.
func only(f filter.Filter, k filter.Key) string {
	value := ""
	for _, t := range f.Terms {
		if t.Key == k && !t.Not && len(t.Values) == 1 && t.Values[0].Op == filter.Is {
			value = t.Values[0].Text
		}
	}
	return value
}

// narrowed returns f with k asking for one value alone.
func narrowed(f filter.Filter, k filter.Key, value string) (filter.Filter, bool) {
	t, err := filter.Of(k, value)
	if err != nil {
		return f, false
	}
	return without(f, k).With(t), true
}

// fleet is the table.
func (c *console) fleet(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	q := r.URL.Query()
	v := fleetView{able: ableOf(ctx), said: s, Query: strings.TrimSpace(q.Get("q")), Sort: q.Get("sort")}
	out := frame{Title: "Fleet", Search: true, Live: "/live?every=1s"}
	f, err := filter.Parse(v.Query)
	if errs.KindOf(err) == errs.Invalid && err != nil { // the input stays, with the error beside it
		v.Wrong, v.Filtered, out.Live = errs.Public(err), true, ""
		v.Tabs = []chip{{Label: "All", Address: fleetAddress("", v.Sort, "")}}
		out.Main = v
		return "fleet", out, nil
	}
	if err != nil {
		return "", frame{}, err
	}
	sort, desc, err := registry.ParseSort(v.Sort)
	if err != nil {
		return "", frame{}, err
	}
	v.Stranger, _ = thing.Parse(v.Query) // "" if it is none
	v.Query, v.Filtered = f.String(), len(f.Terms) > 0
	if v.Stranger != "" {
		v.Query = string(v.Stranger)
	}
	p, err := c.Fleet.Table(ctx, registry.Selection{Filter: f, Sort: sort, Desc: desc, After: registry.Cursor(q.Get("after")), Limit: pageSize})
	if k := errs.KindOf(err); err != nil && (k == errs.NotFound || k == errs.Denied) { // a cohort that is gone, a key that is not for everybody
		v.Wrong, out.Live = errs.Public(err), ""
		out.Main = v
		return "fleet", out, nil
	}
	if err != nil {
		return "", frame{}, err
	}
	counts, err := c.Fleet.Counts(ctx, f)
	if err != nil {
		return "", frame{}, err
	}
	all := counts
	if rest := without(f, filter.Presence); len(rest.Terms) != len(f.Terms) {
		if all, err = c.Fleet.Counts(ctx, rest); err != nil {
			return "", frame{}, err
		}
	}
	if all.Total == 0 && !v.Filtered {
		if v.Missing, err = c.missing(ctx); err != nil {
			return "", frame{}, err
		}
	}
	v.Owners = access.SeesOwners(v.role)
	v.fill(f, sort, desc, p, counts, all)
	now := c.now()
	var ids []thing.ID
	for _, t := range p.Things {
		v.Rows, ids = append(v.Rows, newRow(t, now.Add(certSoon))), append(ids, t.ID)
	}
	if v.Owners {
		owners, err := c.Fleet.Owners(ctx, ids)
		if err != nil {
			return "", frame{}, err
		}
		for i, id := range ids {
			v.Rows[i].Owner = owners[id]
		}
	}
	v.Here = fleetAddress(v.Query, v.Sort, registry.Cursor(q.Get("after")))
	if q.Get("after") != "" {
		v.First = fleetAddress(v.Query, v.Sort, "")
	}
	export := func(format string) string {
		a := url.Values{"format": {format}}
		if v.Query != "" {
			a.Set("filter", v.Query)
		}
		return "/v1/things?" + a.Encode()
	}
	v.CSV, v.JSON = export("csv"), export("ndjson")
	if err := c.fleetMore(ctx, &v, f); err != nil {
		return "", frame{}, err
	}
	out.Main = v
	return "fleet", out, nil
}

// fill makes what leads from this selection to others.
func (v *fleetView) fill(f filter.Filter, sort registry.Column, desc bool, p registry.Page, counts, all registry.Counts) {
	v.Total, v.Present = counts.Total, counts.Present
	if p.Next != "" {
		v.Next = fleetAddress(v.Query, v.Sort, p.Next)
	}
	rest := without(f, filter.Presence)
	asked, never := only(f, filter.Presence), bucket(all.Presence, filter.Never)
	v.Tabs = append(v.Tabs, chip{"All", all.Total, fleetAddress(rest.String(), v.Sort, ""), len(rest.Terms) == len(f.Terms)})
	for _, x := range []struct {
		Label, Value string
		Count        int
	}{{"Online", filter.Present, all.Present}, {"Offline", filter.Absent, all.Absent - never}, {"Call in", filter.Calls, all.Calls}, {"Never seen", filter.Never, never}} {
		if g, ok := narrowed(f, filter.Presence, x.Value); ok && (x.Value != filter.Calls || x.Count > 0) {
			if x.Value == filter.Absent { // a robot that was never seen is absent, too, and has its own tab
				t, _ := filter.Of(filter.Presence, filter.Never) // a value of the language
				t.Not = true
				g = g.With(t)
			}
			v.Tabs = append(v.Tabs, chip{x.Label, x.Count, fleetAddress(g.String(), v.Sort, ""), asked == x.Value})
		}
	}
	for i, t := range f.Terms {
		g := filter.Filter{Terms: slices.Delete(slices.Clone(f.Terms), i, i+1)}
		v.Terms = append(v.Terms, chip{Label: t.String(), Address: fleetAddress(g.String(), v.Sort, "")})
	}
	for _, x := range facets {
		fv, asked := facetView{Name: x.Name}, only(f, x.Key)
		for _, b := range x.Of(&counts)[:min(len(x.Of(&counts)), mostChips)] {
			g, ok := narrowed(f, x.Key, b.Value)
			if !ok {
				continue // a robot may call its release what the language has no word for
			}
			ch := chip{b.Value, b.Count, fleetAddress(g.String(), v.Sort, ""), asked == b.Value}
			if ch.Current {
				ch.Address = fleetAddress(without(f, x.Key).String(), v.Sort, "")
			}
			if len(fv.Chips) < shownChips {
				fv.Chips = append(fv.Chips, ch)
			} else {
				fv.More, fv.Open = append(fv.More, ch), fv.Open || ch.Current
			}
		}
		// A value that all robots share, and that no filter asks for, tells nothing.
		if len(fv.Chips) > 1 || asked != "" || len(fv.Chips) == 1 && fv.Chips[0].Label != filter.None && x.Key != filter.Species {
			v.Facets = append(v.Facets, fv)
		}
	}
	for _, c := range columns {
		h := head{Label: c.Label, Class: c.Class}
		if c.Label == ownerColumn {
			if v.Owners {
				v.Heads = append(v.Heads, h)
			}
			continue
		}
		down := c.Down
		if c.Sort == sort {
			down = !desc
			if h.Aria = "ascending"; desc {
				h.Aria = "descending"
			}
		}
		name := string(c.Sort)
		if down {
			name = "-" + name
		}
		if name == string(registry.ByID) {
			name = ""
		}
		h.Address = fleetAddress(v.Query, name, "")
		v.Heads = append(v.Heads, h)
	}
}

// bucket is how many robots have a value.
func bucket(list []registry.Bucket, value string) int {
	for _, b := range list {
		if b.Value == value {
			return b.Count
		}
	}
	return 0
}

// newRow shows a thing; a certificate that ends before soon is marked.
func newRow(t registry.Thing, soon time.Time) row {
	r := row{Thing: t, CertBad: !t.Certificate.IsZero() && t.Certificate.Before(soon)}
	r.CertOver = r.CertBad && t.Certificate.Before(soon.Add(-certSoon))
	if m := t.Status; m != nil {
		r.Battery, r.Release = newBattery(m.Body), m.OS
		if m.Loop != nil {
			r.LateP99, r.LateBad = micros(m.Loop.LateP99), registry.LoopIsLate(m.Loop)
		}
	}
	return r
}

// Said lists a robot's problems, for the tooltip.
func (r row) Said() string { return registry.Words(r.Thing.Problems) }

// tagThing adds and removes tags of one robot: words with spaces or commas between.
func (c *console) tagThing(ctx context.Context, id thing.ID, _ *http.Request, v url.Values) (outcome, error) {
	words := func(name string) []string {
		return strings.FieldsFunc(strings.ToLower(v.Get(name)), func(r rune) bool { return r == ',' || r == ' ' })
	}
	add, remove := words("add"), words("remove")
	if len(add)+len(remove) == 0 {
		return outcome{}, errs.New(errs.Invalid, "want a word, such as lab")
	}
	for _, t := range slices.Concat(add, remove) {
		if err := registry.CheckTag(t); err != nil {
			return outcome{}, err
		}
	}
	detail := ""
	for _, t := range add {
		detail += " +" + t
	}
	for _, t := range remove {
		detail += " -" + t
	}
	if err := c.Audit(ctx, "thing.tag", string(id), strings.TrimSpace(detail)); err != nil {
		return outcome{}, err
	}
	_, err := c.Fleet.Tag(ctx, id, add, remove)
	return outcome{done: "tagged"}, err
}

// plural says how many there are of something.
func plural(n int, one, many string) string {
	return cmp.Or(map[int]string{1: "1 " + one}[n], strconv.Itoa(n)+" "+many)
}
