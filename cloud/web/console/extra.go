package console

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"kennel/cloud/page"
)

type extraView struct {
	said
	Label string
	Body  template.HTML
}

// ofThing begins the addresses of a robot's tabs.
const ofThing = "/things/{thing}/"

type tabView struct {
	thingHead
	Body template.HTML
}

// mountExtra adds a page that a slice brings along.
func (c *console) mountExtra(e page.Extra, show func(string, view), act func(string, action)) {
	if e.Tab != nil {
		show("GET "+e.Address, func(ctx context.Context, r *http.Request, s said) (string, frame, error) {
			return c.extraTab(ctx, r, s, e)
		})
		return
	}
	main := func(ctx context.Context, r *http.Request, s said) (name string, f frame, err error) {
		var main template.HTML
		if e.Ask == nil {
			main, err = e.Show(ctx)
		} else if err = r.ParseForm(); err == nil {
			main, err = e.Ask(ctx, r.Form)
		}
		return "extra", frame{Title: e.Label, Again: e.Again, Crumbs: c.above(e), Main: extraView{s, e.Label, main}}, err
	}
	show("GET "+e.Address, main)
	if e.Do == nil {
		return
	}
	c.Dones[e.Address] = e.Done
	act("POST "+e.Address, action{page.Called("extra"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		o := outcome{done: e.Address}
		if err := e.Do(ctx, v); err != nil {
			return o, err
		}
		if e.Back != nil {
			o.back = e.Back(v)
		}
		return o, nil
	}, main, func(*http.Request) string { return cmp.Or(e.Then, e.Address) }})
}

// above is the way to a page that is below one of the menu; nil for others.
func (c *console) above(e page.Extra) []link {
	for _, top := range c.More {
		if e.Show == nil && top.Show != nil && strings.HasPrefix(e.Address, top.Address+"/") {
			return []link{{Label: top.Label, Address: top.Address}, {Label: e.Label, Address: e.Address}}
		}
	}
	return nil
}

// extraTab is a page of one robot that a slice brings along.
func (c *console) extraTab(ctx context.Context, r *http.Request, s said, e page.Extra) (string, frame, error) {
	tab, below, _ := strings.Cut(strings.TrimPrefix(e.Address, ofThing), "/")
	h, f, err := c.head(ctx, r, s, tab)
	if err != nil {
		return "", frame{}, err
	}
	title, body, err := e.Tab(ctx, r)
	if f.Main, f.Live = (tabView{h, body}), ""; below != "" {
		f.Title = title
		for i := range f.Crumbs {
			f.Crumbs[i].Current = false
		}
		f.Crumbs = append(f.Crumbs, link{Label: title, Address: r.URL.Path, Current: true})
	}
	return "tab", f, err
}
