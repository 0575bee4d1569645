package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kennel/cloud/alert"
	"kennel/cloud/registry"
	"kennel/cloud/registry/filter"
	"kennel/infra/api/status"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

// Alerts is the pages' access to alerts; *alert.Service is one.
type Alerts interface {
	Alerts(ctx context.Context) ([]alert.Alert, error)
	Rule(ctx context.Context) (alert.Rule, error)
	SetRule(ctx context.Context, robots int, share float64, by string) (alert.Rule, error)
}

type alertsView struct {
	able
	said
	Firing, Resolved []alertRow
	Rule             alert.Rule
	Robots, Percent  string // of the rule, as the form has them
}

type alertRow struct {
	alert.Alert
	registry.Explanation
	Address string // the robots that have it now
}

// alerts is the page of problems that many robots of one release have.
func (c *console) alerts(ctx context.Context, _ *http.Request, s said) (string, frame, error) {
	v := alertsView{able: ableOf(ctx), said: s}
	list, err := c.Alerts.Alerts(ctx)
	if err != nil {
		return "", frame{}, err
	}
	if v.Rule, err = c.Alerts.Rule(ctx); err != nil {
		return "", frame{}, err
	}
	v.Robots, v.Percent = strconv.Itoa(v.Rule.Robots), strconv.FormatFloat(v.Rule.Share*100, 'f', -1, 64)
	if s.Problem("rule") != "" { // what was typed stays
		v.Robots, v.Percent = s.Value("rule", "robots"), s.Value("rule", "percent")
	}
	for _, a := range list {
		row := alertRow{a, registry.Explain(a.Kind), fleetOf(a)}
		if a.Place != "" {
			row.Explanation = registry.Explanation{Says: a.Reason}
			row.Address = ""
		}
		if a.Resolved == nil {
			v.Firing = append(v.Firing, row)
		} else {
			v.Resolved = append(v.Resolved, row)
		}
	}
	return "alerts", frame{Title: "Alerts", Live: "/live?every=3s", Main: v}, nil
}

func (c *console) setAlertRule(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	robots, err := strconv.Atoi(strings.TrimSpace(v.Get("robots")))
	if err != nil {
		return outcome{}, errs.New(errs.Invalid, "robots %.20q: want a whole number", v.Get("robots"))
	}
	percent, err := strconv.ParseFloat(strings.TrimSpace(v.Get("percent")), 64)
	if err != nil {
		return outcome{}, errs.New(errs.Invalid, "per cent %.20q: want a number from 0 to 100", v.Get("percent"))
	}
	rule := alert.Rule{Robots: robots, Share: percent / 100}
	if err := rule.Check(); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, alert.AuditRule, "", rule.Words()); err != nil {
		return outcome{}, err
	}
	_, err = c.Alerts.SetRule(ctx, rule.Robots, rule.Share, auth.CallerFrom(ctx).Subject())
	return outcome{done: "alert-rule"}, err
}

// fleetOf is the fleet's page with the present robots of a release that have a problem; "" for a release that filters cannot name.
func fleetOf(a alert.Alert) string {
	var f filter.Filter
	for _, t := range []struct {
		key  filter.Key
		text string
	}{{filter.Presence, filter.Present}, {filter.Version, cmp.Or(a.Release, filter.None)}, {filter.Problem, status.Problem{Kind: a.Kind, Code: a.Code}.Token()}} {
		term, err := filter.Of(t.key, t.text)
		if err != nil {
			return ""
		}
		f = f.With(term)
	}
	return fleetAddress(f.String(), "", "")
}
