package crashapi

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"kennel/cloud/access"
	"kennel/cloud/chart"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/crash"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/op"
)

//go:embed page.html
var pageText string

var pages = template.Must(template.New("").Funcs(template.FuncMap{"ago": page.Ago, "time": page.Time, "bytes": page.Bytes, "trend": trend}).Parse(pageText))

// trend draws crashes a day.
func trend(days []int64) template.HTML {
	all := int64(0)
	for _, n := range days {
		all += n
	}
	return chart.Bars(days, fmt.Sprintf("%d in %d days, %d today", all, len(days), days[len(days)-1]))
}

type listView struct {
	Query  url.Values
	States []crash.State
	Groups []crash.Group
	Next   string
}

type groupView struct {
	crash.Group
	May     bool
	List    []crash.Crash
	Next    string
	Latest  *crash.Crash // with its stacks; nil: all crashes have expired
	Version string
}

type crashView struct {
	crash.Crash
	Signature string
}

// Get returns what was typed into a field.
func (v listView) Get(field string) string { return v.Query.Get(field) }

// next is the query of the page after one that is full.
func next(q url.Values, full bool, after string) string {
	if !full {
		return ""
	}
	out := url.Values{"after": {after}}
	for k, v := range q {
		if k != "after" && strings.Join(v, "") != "" {
			out[k] = v
		}
	}
	return "?" + out.Encode()
}

// Pages are the list of groups, one group, one crash, the symbol files, and the tab of a robot's crashes.
func Pages(svc *crash.Service, audit Audit) []page.Extra {
	groups := func(ctx context.Context, q url.Values) (template.HTML, error) { return groupsPage(ctx, svc, q) }
	symbols := func(ctx context.Context, _ url.Values) (template.HTML, error) {
		list, err := svc.Symbols(ctx)
		if err != nil {
			return "", err
		}
		return page.HTML(pages.Lookup("symbols"), list)
	}
	return []page.Extra{
		{Label: "Crashes", Address: "/crashes", Ask: groups, Show: func(ctx context.Context) (template.HTML, error) { return groups(ctx, nil) }},
		{Label: "Crash group", Address: "/crashes/group", Ask: func(ctx context.Context, q url.Values) (template.HTML, error) { return groupPage(ctx, svc, q) },
			Done: "Saved.", Then: "/crashes", Do: func(ctx context.Context, v url.Values) error {
				c := crash.Change{State: crash.State(v.Get("state")), FixedIn: strings.TrimSpace(v.Get("fixed_in"))}
				if note, ok := v["note"]; ok {
					c.Note = &note[0]
				}
				_, err := change(ctx, svc, audit, v.Get("id"), c)
				return err
			}},
		{Label: "Crash", Address: "/crashes/crash", Ask: func(ctx context.Context, q url.Values) (template.HTML, error) {
			c, err := svc.Crash(ctx, q.Get("id"))
			if err != nil {
				return "", err
			}
			g, err := svc.Group(ctx, c.Group)
			if err != nil {
				return "", err
			}
			return page.HTML(pages.Lookup("crash"), crashView{c, g.Signature})
		}},
		{Label: "Symbols", Address: "/crashes/symbols", Ask: symbols},
		{Label: "Crashes", Address: "/things/{thing}/crashes", Tab: func(ctx context.Context, r *http.Request) (string, template.HTML, error) {
			id, err := kithttp.Thing(r)
			if err != nil {
				return "", "", err
			}
			req, err := op.Query[crashes](r.URL.Query())
			if err != nil {
				return "", "", err
			}
			req.Thing = id
			list, err := svc.Crashes(ctx, req.query())
			if err != nil {
				return "", "", err
			}
			v := groupView{List: list}
			if n := len(list); n > 0 {
				v.Next = next(r.URL.Query(), n == crash.DefaultLimit, list[n-1].ID)
			}
			body, err := page.HTML(pages.Lookup("robot"), v)
			return "Crashes", body, err
		}},
	}
}

func groupsPage(ctx context.Context, svc *crash.Service, q url.Values) (template.HTML, error) {
	if q.Has("done") { // a form led here
		q.Del("done")
	}
	req, err := op.Query[groups](q)
	if err != nil {
		return "", err
	}
	list, err := svc.Groups(ctx, req.query())
	if err != nil {
		return "", err
	}
	v := listView{Query: q, States: crash.States, Groups: list}
	if n := len(list); n > 0 {
		v.Next = next(q, n == crash.DefaultLimit, list[n-1].ID)
	}
	return page.HTML(pages.Lookup("groups"), v)
}

// shownCrashes is how many crashes the page of a group shows.
const shownCrashes = 20

func groupPage(ctx context.Context, svc *crash.Service, q url.Values) (template.HTML, error) {
	g, err := svc.Group(ctx, q.Get("id"))
	if err != nil {
		return "", err
	}
	v := groupView{Group: g, May: access.HTTP.Check("POST /crashes/group", auth.CallerFrom(ctx).Role) == nil, Version: q.Get("version")}
	if v.List, err = svc.Crashes(ctx, crash.Query{Group: g.ID, Version: v.Version, After: q.Get("after"), Limit: shownCrashes}); err != nil {
		return "", err
	}
	if n := len(v.List); n > 0 {
		v.Next = next(url.Values{"id": {g.ID}, "version": {v.Version}}, n == shownCrashes, v.List[n-1].ID)
		latest, err := svc.Crash(ctx, v.List[0].ID)
		if err != nil {
			return "", err
		}
		v.Latest = &latest
	}
	return page.HTML(pages.Lookup("group"), v)
}
