package motionapi

import (
	"context"
	_ "embed"
	"html/template"
	"net/http"

	"kennel/cloud/fleet/motion"
	"kennel/cloud/page"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

//go:embed page.html
var pageText string

// tab is the address of the tab in the console.
const tab = "/things/{thing}/motions"

var pages = template.Must(template.New("").Parse(pageText))

// Part returns the motions of a robot as a part of a page: it draws the robot as it is now, lists and plays its motions, and edits them. Its script is
// /assets/motion.js, which uses the operations of this package. may says whether the person may upload and play.
func Part(id thing.ID, may bool) (template.HTML, error) {
	return page.HTML(pages, struct {
		Thing thing.ID
		May   bool
	}{id, may})
}

// Page is the tab of a robot's motions in the console, for robots that have some.
func Page(svc *motion.Service) page.Extra {
	return page.Extra{Label: "Motions", Address: tab, Of: svc.Has, Tab: func(ctx context.Context, r *http.Request) (string, template.HTML, error) {
		id, err := kithttp.Thing(r)
		if err != nil {
			return "", "", err
		}
		has, err := svc.Has(ctx, id)
		if err != nil {
			return "", "", err
		}
		if !has {
			return "Motions", `<p>This robot has not said that it has joints that move by motions.</p>`, nil
		}
		c := auth.CallerFrom(ctx)
		may := false
		for _, role := range auth.Changers {
			may = may || c.Role == role
		}
		body, err := Part(id, may)
		return "Motions", body, err
	}}
}
