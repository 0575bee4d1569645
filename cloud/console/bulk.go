package console

import (
	"context"
	"net/http"
	"time"

	"kennel/cloud/registry/filter"
)

// bulkForm is what may be done with many robots.
type bulkForm struct{ Total int }

func (c *console) fleetMore(context.Context, *fleetView, filter.Filter) error { return nil }

func (c *console) mountFleet(show func(pattern string, h view), act func(pattern string, a action), _ func(string, time.Duration, http.Handler)) {
	show("GET /things", c.fleet)
}
