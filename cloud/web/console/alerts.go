package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/filter"
	"kennel/cloud/page"
	"kennel/cloud/telemetry/alert"
	"kennel/infra/api/status"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

// Alerts is the pages' access to alerts; *alert.Service is one.
type Alerts interface {
	Alerts(ctx context.Context) ([]alert.Alert, error)
	Rule(ctx context.Context) (alert.Rule, error)
	SetRule(ctx context.Context, w alert.Wanted, by string) (alert.Rule, error)
	Thresholds(ctx context.Context) ([]alert.Threshold, error)
	AddThreshold(ctx context.Context, w alert.Limit, by string) (alert.Threshold, error)
	DropThreshold(ctx context.Context, id int64) error
	Mailing(ctx context.Context) (alert.Mailing, error)
	SetMailing(ctx context.Context, m alert.Mailing) (alert.Mailing, error)
}

// AlertDesk acknowledges and silences alerts; *alert.Service is one.
type AlertDesk interface {
	Ack(ctx context.Context, id int64, n alert.Note, by string) error
	Unack(ctx context.Context, id int64) error
	Silence(ctx context.Context, h alert.Hush, by string) (alert.Silence, error)
	Silences(ctx context.Context) ([]alert.Silence, error)
	Unsilence(ctx context.Context, id int64) error
}

type alertsView struct {
	able
	said
	Firing, Resolved []alertRow
	Rule             alert.Rule
	Robots, Percent  string // of the rule, as the form has them
	Thresholds       []limitRow
	Mail             string // recipients, as the form has them
	Gone             string // what is wrong with a threshold that is not there
	Silences         []silenceRow
}

type silenceRow struct {
	alert.Silence
	Form, About string
}

type alertRow struct {
	alert.Alert
	registry.Explanation
	Address string // the robots that have it now
	Form    string // of what can be done about it
	May     bool   // the reader may
	Trouble string // why the last try failed
	Lengths []silenceLength
	Usual   int // Minutes of the one that is offered first
}

type limitRow struct {
	alert.Threshold
	Form, Fires string
}

// fires says in words when a threshold fires.
func fires(t alert.Threshold) string {
	of := map[string]string{alert.CrashShare: "crashed", alert.CrashExcess: "crashed", alert.FaultShare: "had the same fault", alert.FaultExcess: "had the same fault"}[t.Kind]
	if t.Of != "" {
		of = "had fault " + t.Of
	}
	if t.Kind == alert.EventRate {
		return fmt.Sprintf("%s occurs %g times per robot and hour on at least %d robots of a version, over %d h", t.Of, t.Level, t.Robots, t.Hours)
	}
	if t.Kind == alert.CrashExcess || t.Kind == alert.FaultExcess {
		return fmt.Sprintf("%.4g points more of a version’s robots than of other versions’ robots, at least %d, %s within %d h", 100*t.Level, t.Robots, of, t.Hours)
	}
	return fmt.Sprintf("%.4g %% of a version’s robots, at least %d, %s within %d h", 100*t.Level, t.Robots, of, t.Hours)
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
	limits, err := c.Alerts.Thresholds(ctx)
	if err != nil {
		return "", frame{}, err
	}
	mailing, err := c.Alerts.Mailing(ctx)
	if err != nil {
		return "", frame{}, err
	}
	forms := []string{"rule", "threshold", "mail"}
	for _, t := range limits {
		row := limitRow{t, "drop " + strconv.FormatInt(t.ID, 10), fires(t)}
		v.Thresholds, forms = append(v.Thresholds, row), append(forms, row.Form)
	}
	silences, err := c.AlertDesk.Silences(ctx)
	if err != nil {
		return "", frame{}, err
	}
	for _, q := range silences {
		row := silenceRow{q, "silence " + strconv.FormatInt(q.ID, 10), cmp.Or(q.Place, q.Release, "robots of no named release") + ": " + status.Problem{Kind: q.Kind, Code: q.Code}.Token()}
		v.Silences, forms = append(v.Silences, row), append(forms, row.Form)
	}
	for _, a := range list {
		forms = append(forms, formOf(a.ID))
	}
	v.Gone = s.Lost(forms)
	if v.Mail = strings.Join(mailing.To, "\n"); s.Problem("mail") != "" {
		v.Mail = s.Value("mail", "to")
	}
	for _, a := range list {
		row := alertRow{Alert: a, Explanation: registry.Explain(a.Kind), Address: fleetOf(a), Form: formOf(a.ID), May: v.May("POST /alerts/{id}/ack"), Trouble: s.Problem(formOf(a.ID)), Lengths: silenceLengths, Usual: silenceMinutes}
		if a.Reason != "" {
			row.Explanation = registry.Explanation{Says: page.Sentence(a.Reason)}
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

// formOf names the forms of an alert.
func formOf(id int64) string { return "alert " + strconv.FormatInt(id, 10) }

// silenceLength is how long a silence may last, as the page offers it.
type silenceLength struct {
	Minutes int
	Words   string
}

var silenceLengths = []silenceLength{{60, "1 hour"}, {4 * 60, "4 hours"}, {24 * 60, "1 day"}, {7 * 24 * 60, "7 days"}, {30 * 24 * 60, "30 days"}}

// silenceMinutes is the length of a silence for which none was chosen.
const silenceMinutes = 4 * 60

// tend is a form about one alert or silence, which its path names.
func (c *console) tend(what, done string, do func(ctx context.Context, id int64, why string, v url.Values) (detail string, change func() error, err error)) func(context.Context, *http.Request, url.Values) (outcome, error) {
	return func(ctx context.Context, r *http.Request, v url.Values) (outcome, error) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			return outcome{}, errs.New(errs.NotFound, "no such alert")
		}
		detail, change, err := do(ctx, id, strings.TrimSpace(v.Get("why")), v)
		if err != nil {
			return outcome{}, err
		}
		if err := c.Audit(ctx, what, r.PathValue("id"), detail); err != nil {
			return outcome{}, err
		}
		return outcome{done: done}, change()
	}
}

// mountTend adds the forms of what people do about alerts.
func (c *console) mountTend(act func(string, action), back func(*http.Request) string) {
	form := func(r *http.Request) string { return "alert " + r.PathValue("id") }
	act("POST /alerts/{id}/ack", action{form, c.tend(alert.AuditAck, "alert-acked", func(ctx context.Context, id int64, why string, _ url.Values) (string, func() error, error) {
		n := alert.Note{Why: why}
		return why, func() error { return c.AlertDesk.Ack(ctx, id, n, auth.CallerFrom(ctx).Subject()) }, n.Check()
	}), c.alerts, back})
	act("POST /alerts/{id}/unack", action{form, c.tend(alert.AuditUnack, "alert-unacked", func(ctx context.Context, id int64, _ string, _ url.Values) (string, func() error, error) {
		return "", func() error { return c.AlertDesk.Unack(ctx, id) }, nil
	}), c.alerts, back})
	act("POST /alerts/{id}/silence", action{form, c.tend(alert.AuditHush, "alert-silenced", func(ctx context.Context, id int64, why string, v url.Values) (string, func() error, error) {
		h := alert.Hush{Alert: id, Minutes: silenceMinutes, Why: why}
		if text := v.Get("minutes"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return "", nil, errs.New(errs.Invalid, "minutes %.20q: want a whole number", text)
			}
			h.Minutes = n
		}
		return h.Words(), func() error {
			_, err := c.AlertDesk.Silence(ctx, h, auth.CallerFrom(ctx).Subject())
			return err
		}, h.Check()
	}), c.alerts, back})
	act("POST /alerts/silences/{id}/end", action{func(r *http.Request) string { return "silence " + r.PathValue("id") }, c.tend(alert.AuditUnhush, "silence-ended", func(ctx context.Context, id int64, _ string, _ url.Values) (string, func() error, error) {
		return "", func() error { return c.AlertDesk.Unsilence(ctx, id) }, nil
	}), c.alerts, back})
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
	was, err := c.Alerts.Rule(ctx) // the form has not all of it
	if err != nil {
		return outcome{}, err
	}
	rule := alert.Wanted{Robots: robots, Share: percent / 100, FloorRobots: &was.FloorRobots, FloorShare: &was.FloorShare, Excess: &was.Excess}
	if err := rule.Rule().Check(); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, alert.AuditRule, "", rule.Rule().Words()); err != nil {
		return outcome{}, err
	}
	_, err = c.Alerts.SetRule(ctx, rule, auth.CallerFrom(ctx).Subject())
	return outcome{done: "alert-rule"}, err
}

func (c *console) addThreshold(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	w := alert.Limit{Kind: v.Get("kind"), Of: strings.TrimSpace(v.Get("of"))}
	for name, into := range map[string]*int{"robots": &w.Robots, "hours": &w.Hours} {
		n, err := strconv.Atoi(strings.TrimSpace(v.Get(name)))
		if err != nil {
			return outcome{}, errs.New(errs.Invalid, "%s %.20q: want a whole number", name, v.Get(name))
		}
		*into = n
	}
	level, err := strconv.ParseFloat(strings.TrimSpace(v.Get("level")), 64)
	if err != nil {
		return outcome{}, errs.New(errs.Invalid, "level %.20q: want a number", v.Get("level"))
	}
	if w.Level = level; w.Kind != alert.EventRate {
		w.Level = level / 100
	}
	if err := w.Check(); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, alert.AuditLimit, "", w.Words()); err != nil {
		return outcome{}, err
	}
	_, err = c.Alerts.AddThreshold(ctx, w, auth.CallerFrom(ctx).Subject())
	return outcome{done: "threshold-added"}, err
}

func (c *console) dropThreshold(ctx context.Context, r *http.Request, _ url.Values) (outcome, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return outcome{}, errs.New(errs.NotFound, "no such threshold")
	}
	if err := c.Audit(ctx, alert.AuditUnset, r.PathValue("id"), ""); err != nil {
		return outcome{}, err
	}
	return outcome{done: "threshold-gone"}, c.Alerts.DropThreshold(ctx, id)
}

func (c *console) setAlertMail(ctx context.Context, _ *http.Request, v url.Values) (outcome, error) {
	m := alert.Mailing{To: strings.Fields(v.Get("to"))}
	if err := m.Check(); err != nil {
		return outcome{}, err
	}
	if err := c.Audit(ctx, alert.AuditLetter, "", m.Words()); err != nil {
		return outcome{}, err
	}
	_, err := c.Alerts.SetMailing(ctx, m)
	return outcome{done: "alert-mail"}, err
}

// mountAlerts adds the page and its forms.
func (c *console) mountAlerts(show func(string, view), act func(string, action)) {
	show("GET /alerts", c.alerts)
	back := func(*http.Request) string { return "/alerts" }
	act("POST /alerts/rule", action{page.Called("rule"), c.setAlertRule, c.alerts, back})
	act("POST /alerts/thresholds", action{page.Called("threshold"), c.addThreshold, c.alerts, back})
	act("POST /alerts/thresholds/{id}/delete", action{func(r *http.Request) string { return "drop " + r.PathValue("id") }, c.dropThreshold, c.alerts, back})
	act("POST /alerts/mail", action{page.Called("mail"), c.setAlertMail, c.alerts, back})
	c.mountTend(act, back)
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
