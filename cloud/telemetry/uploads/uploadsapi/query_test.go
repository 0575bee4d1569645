package uploadsapi

import (
	"net/url"
	"testing"

	"kennel/infra/errs"
	"kennel/infra/op"
)

func FuzzQuery(f *testing.F) {
	f.Add("text=a&level=error&from=2026-01-02T10:00:01Z&skip=1&file=x")
	f.Add("name=a&day=2026-01-02&version=2&kind=log&reason=request&after=1&limit=3")
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		logs, e1 := op.Query[fleetRequest](v)
		part, e2 := op.Query[opened](v)
		for _, err := range []error{e1, e2} {
			if err != nil && errs.KindOf(err) != errs.Invalid {
				t.Fatal(err)
			}
		}
		if e1 == nil && (logs.Limit < 1 || logs.Limit > 1000) || e2 == nil && part.Skip < 0 {
			t.Fatalf("%q is read as %+v and %+v", query, logs, part)
		}
	})
}
