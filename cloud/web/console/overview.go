package console

import (
	"context"
	"html/template"
	"net/http"
	"time"

	"kennel/cloud/access"
	"kennel/cloud/chart"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/telemetry/alert"
	"kennel/infra/auth"
)

const (
	certSoon     = 7 * 24 * time.Hour // a certificate that ends sooner was not renewed when it should have been
	shownFirst   = 5                  // robots of a list on the overview
	shownBars    = 10
	shownActions = 8
)

type overviewView struct {
	able
	Counts    registry.Counts
	Missing   []link // why there are no robots, as pages know it
	Never     int
	Gone      int           // absent, and seen once
	Share     template.HTML // of who is present
	Versions  []bar
	Problems  []bar
	Unwell    int // robots with a problem
	Lists     []watchList
	Waiting   int
	Firing    int              // alerts about robots
	Troubles  []alert.Part     // parts of the cloud that need attention
	Moves     []registry.Thing // who came or went last
	Cards     []template.HTML  // of slices
	Actions   []auditRow
	HasAudit  bool
	HasPeople bool
}

// bar is one value of a facet and how many robots have it.
type bar struct {
	chip
	Share template.HTML
}

// watchList lists robots that need attention.
type watchList struct {
	Name, What string
	Total      int
	Address    string
	Rows       []row
	Bad        bool
}

const (
	gone   = "presence:absent -presence:never" // they were here once
	unwell = "problem:any"
)

// watched are the lists of the overview.
var watched = []struct {
	Name, What, Query string
	Sort              registry.Column
	Desc, Bad         bool
}{
	{"Never activated", "Registered but never connected. Open one to see where it stopped.", "presence:never", registry.ByCreated, false, false},
	{"Offline longest", "Connected before, offline now.", gone, registry.BySince, false, false},
	{"Certificates expiring", "Expired or expiring within a week; the robot has not renewed in time.", "cert:<7d", registry.ByCert, false, true},
	{"Most problems", "Reported by the robot or found in its status.", unwell, registry.ByProblems, true, true},
}

func bars(list []registry.Bucket, total int, key filter.Key, tone chart.Tone) []bar {
	var out []bar
	for _, b := range list[:min(len(list), shownBars)] {
		x := bar{chip: chip{Label: b.Value, Count: b.Count}, Share: chart.Share(total, chart.Part{Size: b.Count, Tone: tone})}
		if t, err := filter.Of(key, b.Value); err == nil {
			x.Address = fleetAddress(filter.Filter{}.With(t).String(), "", "")
		}
		out = append(out, x)
	}
	return out
}

// everyone counts the fleet, and says why there is none.
func (c *console) everyone(ctx context.Context) (counts registry.Counts, missing []link, err error) {
	if counts, err = c.Fleet.Counts(ctx, filter.Filter{}); err == nil && counts.Total == 0 {
		missing, err = c.missing(ctx)
	}
	return counts, missing, err
}

// missing returns what pages know of robots that are not there, each with the page's address.
func (c *console) missing(ctx context.Context) (out []link, err error) {
	for _, e := range c.More {
		if e.Why == nil {
			continue
		}
		why, err := e.Why(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, link{Label: why, Address: e.Address})
	}
	return out, nil
}

// overview is the first page: the state of the fleet, and what needs attention.
func (c *console) overview(ctx context.Context, _ *http.Request, _ said) (string, frame, error) {
	counts, missing, err := c.everyone(ctx)
	if err != nil {
		return "", frame{}, err
	}
	v := overviewView{able: ableOf(ctx), Counts: counts, Missing: missing, Never: bucket(counts.Presence, filter.Never)}
	v.Gone = counts.Absent - v.Never
	v.Share = chart.Share(counts.Total, chart.Part{Size: counts.Present, Tone: chart.Good, Text: plural(counts.Present, "robot", "robots") + " online"},
		chart.Part{Size: counts.Calls, Tone: chart.Good, Text: plural(counts.Calls, "robot", "robots") + " that call in"},
		chart.Part{Size: v.Gone, Tone: chart.Warn, Text: plural(v.Gone, "robot", "robots") + " offline"}, chart.Part{Size: v.Never, Tone: chart.Faint, Text: plural(v.Never, "robot", "robots") + " never seen"})
	v.Versions = bars(counts.Version, counts.Total, filter.Version, chart.Plain)
	for _, b := range bars(counts.Problem, counts.Total, filter.Problem, chart.Bad) {
		if b.Label != filter.None {
			v.Problems = append(v.Problems, b)
		}
	}
	if v.Lists, v.Unwell, err = c.watchLists(ctx); err != nil {
		return "", frame{}, err
	}
	moved, err := c.Fleet.Table(ctx, registry.Selection{Filter: filter.MustParse("-presence:never"), Sort: registry.BySince, Desc: true, Limit: shownActions})
	if err != nil {
		return "", frame{}, err
	}
	v.Moves = moved.Things
	if v.Cards, err = c.cards(ctx, v.role); err != nil {
		return "", frame{}, err
	}
	v.Troubles = c.troubles(ctx)
	if c.Alerts != nil {
		list, err := c.Alerts.Alerts(ctx)
		if err != nil {
			return "", frame{}, err
		}
		for _, a := range list {
			if a.Resolved == nil && a.Place == "" {
				v.Firing++
			}
		}
	}
	if c.Identities != nil && v.May("GET /certificates") {
		waiting, err := c.Identities.Waiting(ctx)
		if err != nil {
			return "", frame{}, err
		}
		for _, w := range waiting {
			if w.Refused.IsZero() {
				v.Waiting++
			}
		}
	}
	if v.HasAudit = c.AuditLog != nil && v.May("GET /audit"); v.HasAudit {
		lines, err := c.AuditLog(ctx, 0, shownActions)
		if err != nil {
			return "", frame{}, err
		}
		for _, l := range lines {
			v.Actions = append(v.Actions, newAuditRow(l, nil))
		}
	}
	return "overview", frame{Title: "Overview", Live: "/live?every=3s", Main: v}, nil
}

// watchLists returns the lists of robots that need attention, and how many robots report a problem.
func (c *console) watchLists(ctx context.Context) (lists []watchList, ill int, err error) {
	soon := c.now().Add(certSoon)
	for _, w := range watched {
		f, err := filter.Parse(w.Query)
		if err != nil {
			return nil, 0, err
		}
		p, err := c.Fleet.Table(ctx, registry.Selection{Filter: f, Sort: w.Sort, Desc: w.Desc, Limit: shownFirst})
		if err != nil {
			return nil, 0, err
		}
		if len(p.Things) == 0 {
			continue
		}
		l := watchList{Name: w.Name, What: w.What, Total: len(p.Things), Bad: w.Bad}
		sort := string(w.Sort)
		if w.Desc {
			sort = "-" + sort
		}
		l.Address = fleetAddress(f.String(), sort, "")
		if p.Next != "" {
			n, err := c.Fleet.Counts(ctx, f)
			if err != nil {
				return nil, 0, err
			}
			l.Total = n.Total
		}
		for _, t := range p.Things {
			l.Rows = append(l.Rows, newRow(t, soon))
		}
		if w.Query == unwell {
			ill = l.Total
		}
		lists = append(lists, l)
	}
	return lists, ill, nil
}

// cards returns what pages add to the overview.
func (c *console) cards(ctx context.Context, role auth.Role) (out []template.HTML, err error) {
	for _, e := range c.More {
		if e.Card == nil || access.HTTP.Check("GET "+e.Address, role) != nil {
			continue
		}
		card, err := e.Card(ctx)
		if err != nil {
			return nil, err
		}
		if card != "" {
			out = append(out, card)
		}
	}
	return out, nil
}

type helpView struct {
	Keys    []helpKey
	Filters []helpFilter
}

type helpKey struct{ Keys, Does string }

type helpFilter struct{ Example, Means string }

// help says which keys do what, and how robots are selected.
func (c *console) help(context.Context, *http.Request, said) (string, frame, error) {
	return "help", frame{Title: "Keyboard and filters", Main: helpView{
		Keys: []helpKey{{"/", "find a robot"}, {"g o", "go to the overview"}, {"g f", "go to the fleet"}, {"g t", "go to the live tail"}, {"g c", "go to the certificates"}, {"g a", "go to the audit log"},
			{"j  k", "next and previous robot in a list"}, {"p", "pause the live tail"}, {"?", "this page"}, {"Esc", "close what is open"}},
		Filters: []helpFilter{{"00e2", "the text occurs in the id, name, tags, release or model"}, {"presence:offline since:>3d", "offline for more than three days"}, {"presence:never", "registered but never connected"},
			{"version:<2.1", "runs a release before 2.1"}, {"version:2.0.1*", "runs a release that begins so"}, {"tag:lab,demo", "has one of these tags"}, {"-tag:lab", "does not have this tag"}, {"battery:low", "reports a low battery"},
			{"battery:<3.6", "battery below 3.6 volts"}, {"problem:any", "has a problem"}, {"problem:fault/914", "has fault 914"}, {"loop:late", "its control loop is late"}, {"cert:<7d", "its certificate expires within a week"}, {"cohort:beta", "robots of a saved filter"}},
	}}, nil
}

// troubles returns the parts of the cloud that need attention.
func (c *console) troubles(ctx context.Context) []alert.Part {
	if c.Troubles == nil {
		return nil
	}
	return c.Troubles(ctx)
}
