package console

import (
	"context"
	"html/template"
	"net/http"
	"net/url"

	"kennel/cloud/console/page"
)

type extraView struct {
	said
	Label string
	Body  template.HTML
}

// mountExtra adds a page that a slice brings along.
func (c *console) mountExtra(e page.Extra, show func(string, view), act func(string, action)) {
	main := func(ctx context.Context, _ *http.Request, s said) (string, frame, error) {
		body, err := e.Show(ctx)
		return "extra", frame{Title: e.Label, Main: extraView{s, e.Label, body}}, err
	}
	show("GET "+e.Address, main)
	if e.Do == nil {
		return
	}
	c.Dones[e.Address] = e.Done
	act("POST "+e.Address, action{page.Called("extra"), func(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
		return outcome{done: e.Address}, e.Do(ctx, v)
	}, main, func(*http.Request) string { return e.Address }})
}
