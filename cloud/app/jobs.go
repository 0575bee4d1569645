package app

import (
	"context"
	"time"

	"kennel/infra/jobs"
)

// periodic lists the cloud's periodic tasks, run once for all processes with the role jobs.
func (c *Cloud) periodic() []jobs.Job {
	return append(append(c.fleetPeriodic(), c.Alerts.Jobs()...), []jobs.Job{
		{Name: "das.partitions", Every: time.Hour, Run: c.keepPartitions},
		{Name: "command.expire", Every: 10 * time.Second, Run: c.Commands.Expire},
		{Name: "command.forget", Every: time.Hour, Run: c.Commands.Forget},
		{Name: "mail.forget", Every: time.Hour, Run: c.Mail.Forget},
		{Name: "vitals.forget", Every: time.Hour, Run: c.vitals.Forget},
		{Name: "look.forget", Every: time.Hour, Run: c.Look.Forget},
		{Name: "uploads.sweep", Every: time.Hour, Run: func(ctx context.Context) error { _, err := c.door.Sweep(ctx); return err }},
		{Name: "webhook.forget", Every: time.Hour, Run: c.Webhooks.Forget},
		{Name: "account.resume", Every: time.Minute, Run: c.People.Resume},
	}...)
}

// keepPartitions makes the days ahead and drops those that are too old.
func (c *Cloud) keepPartitions(ctx context.Context) error {
	now := time.Now()
	if err := c.dasStore.EnsurePartitions(ctx, now); err != nil {
		return err
	}
	dropped, err := c.dasStore.DropOlder(ctx, now.AddDate(0, 0, -c.cfg.Events.KeepDays))
	if err != nil {
		return err
	}
	if len(dropped) > 0 {
		c.log.InfoContext(ctx, "expired events dropped", "days", dropped)
	}
	return nil
}
