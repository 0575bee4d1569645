package console

import (
	"context"
	"time"

	"kennel/cloud/telemetry/alert"
)

// bells are alerts.
type bells struct{ *desk }

func (bells) Alerts(context.Context) ([]alert.Alert, error) {
	over := noon.Add(-time.Hour)
	return []alert.Alert{{ID: 2, Release: evil, Kind: evil, Code: evil, Robots: 3, Present: 4, Since: noon},
		{ID: 1, Release: "2.0.1", Kind: "fault", Code: "914", Robots: 7, Present: 9, Since: over.Add(-time.Hour), Resolved: &over}}, nil
}

func (bells) Rule(context.Context) (alert.Rule, error) {
	return alert.Rule{Robots: 5, Share: 0.1, By: evil, Changed: noon}, nil
}

func (b bells) SetRule(_ context.Context, w alert.Wanted, by string) (alert.Rule, error) {
	return alert.Rule{}, b.do("rule", w.Robots, w.Share, by)
}

func (b bells) Ack(_ context.Context, id int64, n alert.Note, by string) error {
	return b.do("ack", id, n.Why, by)
}

func (b bells) Unack(_ context.Context, id int64) error { return b.do("unack", id) }

func (b bells) Silence(_ context.Context, h alert.Hush, by string) (alert.Silence, error) {
	return alert.Silence{}, b.do("silence", h, by)
}

func (bells) Silences(context.Context) ([]alert.Silence, error) {
	return []alert.Silence{{ID: 5, Kind: evil, Code: evil, Release: evil, Since: noon, Until: noon.Add(time.Hour), By: evil, Why: evil}}, nil
}

func (b bells) Unsilence(_ context.Context, id int64) error { return b.do("unsilence", id) }

func (bells) Thresholds(context.Context) ([]alert.Threshold, error) {
	return []alert.Threshold{{ID: 3, Limit: alert.Limit{Kind: alert.CrashShare, Level: 0.02, Robots: 3, Hours: 24}, By: evil, Changed: noon}}, nil
}

func (b bells) AddThreshold(_ context.Context, w alert.Limit, by string) (alert.Threshold, error) {
	return alert.Threshold{}, b.do("threshold", w, by)
}

func (b bells) DropThreshold(_ context.Context, id int64) error { return b.do("drop threshold", id) }

func (bells) Mailing(context.Context) (alert.Mailing, error) {
	return alert.Mailing{To: []string{"duty@example.org"}}, nil
}

func (b bells) SetMailing(_ context.Context, m alert.Mailing) (alert.Mailing, error) {
	return m, b.do("mail to", m.To)
}
