// Package alertapi is alerts over HTTP, for operators.
package alertapi

import (
	"context"
	"strconv"

	"kennel/cloud/telemetry/alert"
	"kennel/infra/auth"
	"kennel/infra/op"
)

// Audit writes one line about what the caller in ctx does; what cannot be written down is not done.
type Audit func(ctx context.Context, action, object, detail string) error

type (
	acknowledge struct {
		ID   int64      `path:"id" of:"alert"`
		Note alert.Note `body:""`
	}
	anAlert struct {
		ID int64 `path:"id" of:"alert"`
	}
	aThreshold struct {
		ID int64 `path:"id" of:"threshold"`
	}
	aSilence struct {
		ID int64 `path:"id" of:"silence"`
	}
)

func reads(route, summary string) op.Spec {
	return op.Spec{Route: route, Tag: "Alerts", Summary: summary, Roles: auth.Staff}
}

func changes(route, summary string) op.Spec {
	return op.Spec{Route: route, Tag: "Alerts", Summary: summary, Roles: auth.Changers}
}

// Operations returns the operations on alerts.
func Operations(svc *alert.Service, audit Audit) op.List {
	return op.List{
		op.New(reads("GET /v1/alerts", "List alerts: firing ones, then the latest resolved.").With(
			op.Command{Use: "alerts list", Short: "List alerts: firing ones, then the latest resolved", Table: "ALERT=.id; STATE={{if .resolved}}resolved{{else}}firing{{end}}; RELEASE=or .place .release `none`; PROBLEM={{problem .kind .code}}; ROBOTS={{.robots}} of {{.present}}; SINCE; RESOLVED; HANDLING={{with .ack}}acknowledged by {{.by}}{{end}}{{if and .ack .silenced}}, {{end}}{{with .silenced}}silenced by {{.by}} until {{stamp .until}}{{end}}"}),
			func(ctx context.Context, _ op.None) ([]alert.Alert, error) { return svc.Alerts(ctx) }),
		op.New(reads("GET /v1/alerts/rule", "Show the rule for when an alert fires."), func(ctx context.Context, _ op.None) (alert.Rule, error) { return svc.Rule(ctx) }),
		op.New(changes("PUT /v1/alerts/rule", "Change the rule for when an alert fires."),
			func(ctx context.Context, r alert.Wanted) (alert.Rule, error) {
				if err := r.Rule().Check(); err != nil {
					return alert.Rule{}, err
				}
				if err := audit(ctx, alert.AuditRule, "", r.Rule().Words()); err != nil {
					return alert.Rule{}, err
				}
				return svc.SetRule(ctx, r, auth.CallerFrom(ctx).Subject())
			}),
		op.New(reads("GET /v1/alerts/thresholds", "List thresholds: limits on shares of crashes and faults and on rates of events, for each version.").With(op.Command{Use: "alerts thresholds list", Short: "List thresholds", Table: "THRESHOLD=.id; KIND; OF; LEVEL; ROBOTS; HOURS; BY"}),
			func(ctx context.Context, _ op.None) ([]alert.Threshold, error) { return svc.Thresholds(ctx) }),
		op.New(changes("POST /v1/alerts/thresholds", "Add a threshold.").With(
			op.Command{Use: "alerts thresholds add KIND [OF] -level -robots=3 -hours=24", Short: "Add a threshold: crash_share, fault_share [CODE], event_rate EVENT, crash_excess or fault_excess [CODE]", Example: "alerts thresholds add crash_share -level 0.02\nalerts thresholds add fault_share 914 -level 0.1\nalerts thresholds add event_rate log.error -level 20 -hours 1\nalerts thresholds add crash_excess -level 0.01", Table: "threshold=.id; kind; of; level; robots; hours"}),
			func(ctx context.Context, l alert.Limit) (alert.Threshold, error) {
				if err := l.Check(); err != nil {
					return alert.Threshold{}, err
				}
				if err := audit(ctx, alert.AuditLimit, "", l.Words()); err != nil {
					return alert.Threshold{}, err
				}
				return svc.AddThreshold(ctx, l, auth.CallerFrom(ctx).Subject())
			}),
		op.New(changes("DELETE /v1/alerts/thresholds/{id}", "Remove a threshold. Its alerts are resolved.").With(
			op.Command{Use: "alerts thresholds remove THRESHOLD", Short: "Remove a threshold and resolve its alerts", Says: "threshold {{.THRESHOLD}} removed"}),
			func(ctx context.Context, r aThreshold) (op.None, error) {
				if err := audit(ctx, alert.AuditUnset, strconv.FormatInt(r.ID, 10), ""); err != nil {
					return op.None{}, err
				}
				return op.None{}, svc.DropThreshold(ctx, r.ID)
			}),
		op.New(reads("GET /v1/alerts/mail", "Show who gets an e-mail when an alert fires or is resolved.").With(op.Command{Use: "alerts mail list", Short: "List recipients of alert e-mails", Table: "to: =."}),
			func(ctx context.Context, _ op.None) (alert.Mailing, error) { return svc.Mailing(ctx) }),
		op.New(changes("PUT /v1/alerts/mail", "Set who gets an e-mail when an alert fires or is resolved.").With(
			op.Command{Use: "alerts mail set [ADDRESS...]=to", Short: "Set the recipients of alert e-mails (none: no e-mails)", Example: "alerts mail set duty@example.org", Table: "to: =."}),
			func(ctx context.Context, m alert.Mailing) (alert.Mailing, error) {
				if err := m.Check(); err != nil {
					return m, err
				}
				if err := audit(ctx, alert.AuditLetter, "", m.Words()); err != nil {
					return m, err
				}
				return svc.SetMailing(ctx, m)
			}),
		op.New(changes("PUT /v1/alerts/acks/{id}", "Acknowledge a firing alert: the caller takes care of it. The acknowledgement ends when the alert is resolved or gets worse.").With(
			op.Command{Use: "alerts ack ALERT -why", Short: "Acknowledge an alert until it is resolved or gets worse", Example: "alerts ack 12 -why 'the rollout is stopped'", Says: "alert {{.ALERT}} acknowledged"}),
			func(ctx context.Context, r acknowledge) (op.None, error) {
				if err := r.Note.Check(); err != nil {
					return op.None{}, err
				}
				if err := audit(ctx, alert.AuditAck, strconv.FormatInt(r.ID, 10), r.Note.Why); err != nil {
					return op.None{}, err
				}
				return op.None{}, svc.Ack(ctx, r.ID, r.Note, auth.CallerFrom(ctx).Subject())
			}),
		op.New(changes("DELETE /v1/alerts/acks/{id}", "Withdraw an acknowledgement.").With(op.Command{Use: "alerts unack ALERT", Short: "Withdraw an acknowledgement", Says: "alert {{.ALERT}} is no longer acknowledged"}),
			func(ctx context.Context, r anAlert) (op.None, error) {
				if err := audit(ctx, alert.AuditUnack, strconv.FormatInt(r.ID, 10), ""); err != nil {
					return op.None{}, err
				}
				return op.None{}, svc.Unack(ctx, r.ID)
			}),
		op.New(reads("GET /v1/alerts/silences", "List active silences, which stop e-mails about the same problem.").With(
			op.Command{Use: "alerts silences list", Short: "List active silences", Table: "SILENCE=.id; ABOUT=or .place .release `none`; PROBLEM={{problem .kind .code}}; UNTIL=stamp .until; BY; WHY"}),
			func(ctx context.Context, _ op.None) ([]alert.Silence, error) { return svc.Silences(ctx) }),
		op.New(changes("POST /v1/alerts/silences", "Silence an alert, and others with the same problem, for a while."),
			func(ctx context.Context, h alert.Hush) (alert.Silence, error) {
				if err := h.Check(); err != nil {
					return alert.Silence{}, err
				}
				if err := audit(ctx, alert.AuditHush, strconv.FormatInt(h.Alert, 10), h.Words()); err != nil {
					return alert.Silence{}, err
				}
				return svc.Silence(ctx, h, auth.CallerFrom(ctx).Subject())
			}),
		op.New(changes("DELETE /v1/alerts/silences/{id}", "End a silence.").With(op.Command{Use: "alerts silences end SILENCE", Short: "End a silence now", Says: "silence {{.SILENCE}} ended"}),
			func(ctx context.Context, r aSilence) (op.None, error) {
				if err := audit(ctx, alert.AuditUnhush, strconv.FormatInt(r.ID, 10), ""); err != nil {
					return op.None{}, err
				}
				return op.None{}, svc.Unsilence(ctx, r.ID)
			}),
	}
}
