package app

import (
	"context"
	"fmt"
	"strings"

	"kennel/certs/thing"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/api/events"
	"kennel/cloud/console"
	"kennel/cloud/das"
	"kennel/jdocs"
)

// console tells the pages whom to ask.
func (c *Cloud) console() console.Config {
	return console.Config{
		Fleet: c.Registry, Auth: accountapi.Browser{Accounts: c.Accounts, Log: c.log}, Docs: c.consoleDocs, Events: c.consoleEvents, Log: c.log,
	}
}

func (c *Cloud) consoleDocs(ctx context.Context, id thing.ID) ([]console.Doc, error) {
	list, err := c.Docs.List(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]console.Doc, 0, len(list))
	for _, l := range list {
		rev, err := c.Docs.Get(ctx, jdocs.Key{Thing: id, Name: l.Name})
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", l.Name, err)
		}
		out = append(out, console.Doc{Name: string(l.Name), Version: rev.Version, At: rev.At, By: rev.By, JSON: string(rev.JSON)})
	}
	return out, nil
}

func (c *Cloud) consoleEvents(ctx context.Context, id thing.ID, limit int) ([]console.Event, error) {
	recs, err := c.Events.List(ctx, das.Filter{Thing: id}, limit, das.Cursor{})
	if err != nil {
		return nil, err
	}
	out := make([]console.Event, 0, len(recs))
	for _, r := range recs {
		out = append(out, console.Event{Received: r.Received, Level: string(r.Level), Name: r.Name, Values: values(&r.Event)})
	}
	return out, nil
}

// values shows what an event carries: its texts, then its numbers.
func values(e *events.Event) string {
	var out []string
	for _, s := range []string{e.S1, e.S2, e.S3, e.S4} {
		if s != "" {
			out = append(out, s)
		}
	}
	for _, i := range []events.Int{e.I1, e.I2, e.I3, e.I4} {
		if !i.IsZero() {
			out = append(out, fmt.Sprint(i.N))
		}
	}
	return strings.Join(out, "  ")
}
