package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kennel/cloud/fleet/bulk"
	"kennel/cloud/fleet/cohort"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/page"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Bulk is the pages' access to bulk jobs; *bulk.Service is one.
type Bulk interface {
	Preview(ctx context.Context, d bulk.Draft) (bulk.Preview, error)
	Start(ctx context.Context, d bulk.Draft) (bulk.Job, error)
	Job(ctx context.Context, id string) (bulk.Job, error)
	Jobs(ctx context.Context, limit int) ([]bulk.Job, error)
	Results(ctx context.Context, id string, state bulk.ItemState, after thing.ID, limit int) ([]bulk.Result, error)
	Cancel(ctx context.Context, id string) (bulk.Job, error)
}

// Cohorts is the pages' access to saved filters; *cohort.Service is one.
type Cohorts interface {
	List(ctx context.Context) ([]cohort.Cohort, error)
	Put(ctx context.Context, c cohort.Cohort, by string, rev int64) (cohort.Cohort, error)
	Delete(ctx context.Context, name string) error
}

const (
	shownCohorts = 8 // above the table
	shownJobs    = 30
	shownResults = 100
	shownSample  = 12
)

// deeds are what may be done to many robots.
var deeds = []struct{ Name, Label string }{{"tag", "Add a tag"}, {"untag", "Remove a tag"}, {"command", "Send a command"}, {"set", "Change a setting"}, {"cohort", "Add to a cohort"}}

// bulkForm is the bar below the table.
type bulkForm struct {
	Query string
	Total int
	Deeds []choice
}

type choice struct {
	Name, Label string
	Chosen      bool
}

// fleetMore adds what belongs to others than the registry: saved filters, and what may be done to many.
func (c *console) fleetMore(ctx context.Context, v *fleetView, f filter.Filter) error {
	if c.Bulk != nil && v.May("POST /bulk") && len(v.Rows) > 0 {
		v.Bulk = &bulkForm{Query: f.String(), Total: v.Total}
		for _, d := range deeds {
			v.Bulk.Deeds = append(v.Bulk.Deeds, choice{Name: d.Name, Label: d.Label})
		}
	}
	if c.Cohorts == nil {
		return nil
	}
	v.Save = v.May("POST /cohorts")
	list, err := c.Cohorts.List(ctx)
	if err != nil {
		return err
	}
	asked := only(f, filter.Cohort)
	for _, x := range list[:min(len(list), shownCohorts)] {
		if g, ok := narrowed(filter.Filter{}, filter.Cohort, x.Name); ok {
			v.Cohorts = append(v.Cohorts, chip{Label: x.Name, Address: fleetAddress(g.String(), v.Sort, ""), Current: x.Name == asked})
		}
	}
	return nil
}

// mountFleet adds the pages of the fleet.
func (c *console) mountFleet(show func(pattern string, h view), act func(pattern string, a action)) {
	show("GET /things", c.fleet)
	if c.Cohorts != nil {
		address := func(*http.Request) string { return "/cohorts" }
		show("GET /cohorts", c.cohorts)
		act("POST /cohorts", action{page.Called("cohort"), c.putCohort, c.cohorts, address})
		act("POST /cohorts/{cohort}/delete", action{func(r *http.Request) string { return "delete " + r.PathValue("cohort") }, c.deleteCohort, c.cohorts, address})
	}
	if c.Bulk != nil {
		show("GET /bulk", c.jobs)
		show("GET /bulk/new", c.newJob)
		act("POST /bulk", action{page.Called("bulk"), c.startJob, c.newJob, nil})
		show("GET /bulk/{id}", c.job)
		act("POST /bulk/{id}/cancel", action{page.Called("cancel"), c.cancelJob, c.job, func(r *http.Request) string { return "/bulk/" + url.PathEscape(r.PathValue("id")) }})
	}
}

type cohortsView struct {
	able
	said
	Rows  []cohortRow
	Query string // that may be saved
	Gone  string
}

type cohortRow struct {
	cohort.Cohort
	Address, Form string
}

// cohorts is the page of saved filters.
func (c *console) cohorts(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	list, err := c.Cohorts.List(ctx)
	if err != nil {
		return "", frame{}, err
	}
	v := cohortsView{able: ableOf(ctx), said: s, Query: cmp.Or(s.Value("cohort", "filter"), r.URL.Query().Get("q"))}
	forms := []string{"cohort"}
	for _, x := range list {
		row := cohortRow{Cohort: x, Form: "delete " + x.Name}
		if g, ok := narrowed(filter.Filter{}, filter.Cohort, x.Name); ok {
			row.Address = fleetAddress(g.String(), "", "")
		}
		v.Rows, forms = append(v.Rows, row), append(forms, row.Form)
	}
	v.Gone = s.Lost(forms)
	return "cohorts", frame{Title: "Saved filters", Crumbs: []link{fleetLink, {Label: "Saved filters", Address: "/cohorts"}}, Main: v}, nil
}

func (c *console) putCohort(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	f, err := filter.Parse(v.Get("filter"))
	if err != nil {
		return outcome{}, err
	}
	x := cohort.Cohort{Name: strings.TrimSpace(v.Get("name")), Filter: f, Note: strings.TrimSpace(v.Get("note"))}
	if err := cohort.CheckName(x.Name); err != nil {
		return outcome{}, err
	}
	rev := cohort.Fresh
	if v.Get("replace") == "yes" {
		rev = cohort.Whatever
	}
	if err := c.Audit(ctx, "cohort.put", x.Name, f.String()); err != nil {
		return outcome{}, err
	}
	_, err = c.Cohorts.Put(ctx, x, auth.CallerFrom(ctx).Subject(), rev)
	return outcome{done: "cohort-put"}, err
}

func (c *console) deleteCohort(ctx context.Context, r *http.Request, _ url.Values) (outcome, error) {
	if err := c.Audit(ctx, "cohort.delete", r.PathValue("cohort"), ""); err != nil {
		return outcome{}, err
	}
	return outcome{done: "cohort-gone"}, c.Cohorts.Delete(ctx, r.PathValue("cohort"))
}

type newJobView struct {
	able
	said
	Deed     choice
	Deeds    []choice
	All      bool // what the filter selects, else Things
	Query    string
	Things   []thing.ID
	Count    int
	Sample   []thing.ID
	Kinds    []kindView
	Names    []string // of cohorts
	Key      string
	Wrong    string // why nothing can be done
	Settings []settingChoice
}

type settingChoice struct{ Name, Label, What string }

// picked reads which robots are meant: those named, or all that a filter selects.
func picked(v url.Values) (f *filter.Filter, things []thing.ID, err error) {
	if v.Get("which") == "all" {
		g, err := filter.Parse(v.Get("filter"))
		return &g, nil, err
	}
	for _, s := range v["thing"] {
		id, err := thing.Parse(s)
		if err != nil {
			return nil, nil, errs.New(errs.Invalid, "%w", err)
		}
		things = append(things, id)
	}
	if len(things) == 0 {
		return nil, nil, errs.New(errs.Invalid, "no robot is selected; select some in the table, or choose all matching robots")
	}
	slices.Sort(things)
	return nil, slices.Compact(things), nil
}

// newJob is the page that says what would be done, and to how many, before it is.
func (c *console) newJob(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	q := r.URL.Query()
	if r.Method == http.MethodPost { // the form was refused: the page is made of it
		q = r.PostForm
	}
	v := newJobView{able: ableOf(ctx), said: s, Query: q.Get("filter")}
	out := frame{Title: "Bulk action", Crumbs: []link{fleetLink, {Label: "Bulk action", Address: r.URL.RequestURI()}}}
	for _, d := range deeds {
		v.Deeds = append(v.Deeds, choice{d.Name, d.Label, d.Name == q.Get("do")})
		if d.Name == q.Get("do") {
			v.Deed = v.Deeds[len(v.Deeds)-1]
		}
	}
	if v.Deed.Name == "" {
		return "", frame{}, errs.New(errs.Invalid, "do=%.20q: want one of tag, untag, command, set, cohort", q.Get("do"))
	}
	f, things, err := picked(q)
	if err != nil && errs.KindOf(err) == errs.Invalid {
		v.Wrong = errs.Public(err)
		out.Main = v
		return "bulknew", out, nil
	}
	if err != nil {
		return "", frame{}, err
	}
	if v.All, v.Things, v.Count, v.Sample = f != nil, things, len(things), things; f != nil {
		counts, err := c.Fleet.Counts(ctx, *f)
		if err != nil {
			return "", frame{}, err
		}
		p, err := c.Fleet.Table(ctx, registry.Selection{Filter: *f, Limit: shownSample})
		if err != nil {
			return "", frame{}, err
		}
		v.Query, v.Count = f.String(), counts.Total
		for _, t := range p.Things {
			v.Sample = append(v.Sample, t.ID)
		}
	}
	v.Sample = v.Sample[:min(len(v.Sample), shownSample)]
	chosen := cmp.Or(q.Get("kind"), commandwire.Ping)
	for _, k := range kinds {
		v.Kinds = append(v.Kinds, kindView{k.Kind, k.Does, k.Args, k.Kind == chosen})
	}
	for _, doc := range jdocs.Settings() {
		for _, name := range jdocs.Fields(doc) {
			x := fieldOf(doc, name)
			if x.Label != "" && !slices.ContainsFunc(v.Settings, func(have settingChoice) bool { return have.Name == name }) {
				v.Settings = append(v.Settings, settingChoice{name, x.Label, strings.Join(slices.DeleteFunc(x.Enum, func(v string) bool { return !x.Offers(v) }), ", ")})
			}
		}
	}
	slices.SortFunc(v.Settings, func(a, b settingChoice) int { return cmp.Compare(a.Label, b.Label) })
	if c.Cohorts != nil {
		list, err := c.Cohorts.List(ctx)
		if err != nil {
			return "", frame{}, err
		}
		for _, x := range list {
			if _, ok := x.Tag(); ok {
				v.Names = append(v.Names, x.Name)
			}
		}
	}
	v.Key = cmp.Or(q.Get("key"), "page-"+rand.Text())
	out.Main = v
	return "bulknew", out, nil
}

// draft reads what shall be done.
func draft(ctx context.Context, v url.Values) (bulk.Draft, error) {
	d := bulk.Draft{Key: v.Get("key"), By: auth.CallerFrom(ctx).Subject()}
	var err error
	if d.Filter, d.Things, err = picked(v); err != nil {
		return d, err
	}
	n, err := strconv.Atoi(v.Get("expect"))
	if err != nil || n < 1 {
		return d, errs.New(errs.Invalid, "no robot is selected")
	}
	d.Expect = &n
	words := strings.FieldsFunc(strings.ToLower(v.Get("tag")), func(r rune) bool { return r == ',' || r == ' ' })
	switch v.Get("do") {
	case "tag":
		d.Action = bulk.Action{Kind: bulk.Tag, Add: words}
	case "untag":
		d.Action = bulk.Action{Kind: bulk.Tag, Remove: words}
	case "command":
		d.Action = bulk.Action{Kind: bulk.Command, Command: v.Get("kind")}
		if args := strings.TrimSpace(v.Get("args")); args != "" {
			if d.Action.Args = json.RawMessage(args); !json.Valid(d.Action.Args) {
				return d, errs.New(errs.Invalid, `arguments: want JSON such as {"intent": "intent_system_charger"}`)
			}
		}
	case "set":
		name, text := v.Get("field"), strings.TrimSpace(v.Get("value"))
		value := json.RawMessage(text)
		doc := docOf(name)
		f := fieldOf(doc, name)
		if i := slices.Index(f.Enum, strings.ToLower(text)); i >= 0 {
			value = json.RawMessage(strconv.Itoa(i))
		} else if text == "yes" || text == "no" {
			value = json.RawMessage(strconv.FormatBool(text == "yes"))
		} else if f.Text || !json.Valid(value) {
			if value, err = json.Marshal(text); err != nil {
				return d, err
			}
		}
		if _, err := jdocs.CheckField(doc, name, value); err != nil {
			return d, err
		}
		d.Action = bulk.Action{Kind: bulk.Set, Doc: string(jdocs.RobotSettings), Fields: map[string]json.RawMessage{name: value}}
	case "cohort":
		d.Action = bulk.Action{Kind: bulk.Cohort, Cohort: v.Get("cohort")}
	}
	if v.Get("sure") != "yes" {
		return d, errs.Coded(errs.Invalid, "not_confirmed", "confirm that these are the robots you mean")
	}
	return d, nil
}

// docOf returns the settings of the first species that has a field.
func docOf(field string) jdocs.Name {
	for _, doc := range jdocs.Settings() {
		if slices.Contains(jdocs.Fields(doc), field) {
			return doc
		}
	}
	return jdocs.RobotSettings
}

func (c *console) startJob(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	d, err := draft(ctx, v)
	if err != nil {
		return outcome{}, err
	}
	// As bulkapi does: checked before, so that the log tells of jobs and not of mistakes.
	p, err := c.Bulk.Preview(ctx, d)
	if err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, "bulk.start", fmt.Sprintf("%d robots", p.Count), p.Entry(d)); err != nil {
		return outcome{}, err
	}
	j, err := c.Bulk.Start(ctx, d)
	return outcome{done: "bulk-begun", back: "/bulk/" + url.PathEscape(j.ID)}, err
}

type jobsView struct{ Rows []bulk.Job }

func (c *console) jobs(ctx context.Context, _ *http.Request, _ said) (string, frame, error) {
	list, err := c.Bulk.Jobs(ctx, shownJobs)
	if err != nil {
		return "", frame{}, err
	}
	return "bulklist", frame{Title: "Bulk actions", Crumbs: []link{fleetLink, jobsLink}, Main: jobsView{list}}, nil
}

var jobsLink = link{Label: "Bulk actions", Address: "/bulk"}

type jobView struct {
	able
	said
	bulk.Job
	Closes  int // robots that are through
	Rows    []bulk.Result
	States  []link
	Next    string
	Running bool
	FleetAt string // the robots of its filter
}

func (c *console) job(ctx context.Context, r *http.Request, s said) (string, frame, error) {
	j, err := c.Bulk.Job(ctx, r.PathValue("id"))
	if err != nil {
		return "", frame{}, err
	}
	v := jobView{able: ableOf(ctx), said: s, Job: j, Closes: j.Total - j.Open, Running: j.State == bulk.Running}
	if j.Filter != "" {
		v.FleetAt = fleetAddress(j.Filter, "", "")
	}
	q := r.URL.Query()
	state := bulk.ItemState(q.Get("state"))
	if state != "" && !slices.Contains(bulk.ItemStates, state) {
		return "", frame{}, errs.New(errs.Invalid, "state %.20q: want one of %s", state, errs.List(bulk.ItemStates))
	}
	var after thing.ID
	if text := q.Get("after"); text != "" {
		if after, err = thing.Parse(text); err != nil {
			return "", frame{}, errs.New(errs.Invalid, "after: %w", err)
		}
	}
	if v.Rows, err = c.Bulk.Results(ctx, j.ID, state, after, shownResults+1); err != nil {
		return "", frame{}, err
	}
	here := "/bulk/" + url.PathEscape(j.ID)
	address := func(state bulk.ItemState, after thing.ID) string {
		a := url.Values{}
		if state != "" {
			a.Set("state", string(state))
		}
		if after != "" {
			a.Set("after", string(after))
		}
		return strings.TrimSuffix(here+"?"+a.Encode(), "?")
	}
	if len(v.Rows) > shownResults {
		v.Rows = v.Rows[:shownResults]
		v.Next = address(state, v.Rows[shownResults-1].Thing)
	}
	for _, x := range []struct {
		Label string
		State bulk.ItemState
		N     int
	}{{"All", "", j.Total}, {map[string]string{"done": "Done", "stored": "Stored"}[j.Action.DoneIs()], bulk.ItemDone, j.Done},
		{"Failed", bulk.ItemFailed, j.Failed}, {"Open", bulk.ItemOpen, j.Open}, {"Dropped", bulk.ItemDropped, j.Dropped}} {
		v.States = append(v.States, link{Label: fmt.Sprintf("%s %d", x.Label, x.N), Address: address(x.State, ""), Current: x.State == state})
	}
	f := frame{Title: j.Text, Crumbs: []link{fleetLink, jobsLink, {Label: short(j.ID), Address: here}}, Main: v}
	if v.Running {
		f.Again = 2000
	}
	return "bulk", f, nil
}

func (c *console) cancelJob(ctx context.Context, r *http.Request, _ url.Values) (outcome, error) {
	if err := c.Audit(ctx, "bulk.cancel", r.PathValue("id"), ""); err != nil {
		return outcome{}, err
	}
	_, err := c.Bulk.Cancel(ctx, r.PathValue("id"))
	return outcome{done: "bulk-cancelled"}, err
}
