package app

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/metrics"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/queue"
	"kennel/infra/queue/queuetest"
	"kennel/infra/testwait"
)

// exported returns what is exported now: by name, and by name{value of the one label}.
func exported(t *testing.T, tel *metrics.Meters) map[string]float64 {
	t.Helper()
	all, err := tel.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range all {
		for _, m := range f.Metric {
			key := f.GetName()
			if len(m.Label) == 1 {
				key += "{" + m.Label[0].GetValue() + "}"
			}
			out[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return out
}

// TestQueueAndCommandsAreCounted: what the uplink's queue gave, what became of it, and what went out of the outbox are metrics of the
// process that did it.
func TestQueueAndCommandsAreCounted(t *testing.T) {
	q := queuetest.Start(t)
	w := start(t, func(c *Config) { c.Uplink.SQS = q.Config })
	batch, err := events.EncodeBatch("b1", []events.Event{{Seq: 1, Level: events.Info, RobotID: rex.Serial(), BootID: "boot", Name: "robot.boot_info"}})
	if err != nil {
		t.Fatal(err)
	}
	good, err := queue.Encode(topics.UpTopic(rex, topics.DAS), batch)
	if err != nil {
		t.Fatal(err)
	}
	q.Put("no JSON", string(good))
	select {
	case <-w.acks:
	case <-time.After(20 * time.Second):
		t.Fatal("a batch from the queue is not acknowledged")
	}
	if _, err := w.orders.Commands.Send(t.Context(), command.Draft{Thing: rex, Kind: commandwire.Ping, TTL: time.Minute, By: "test"}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, testwait.Long, "everything is counted", func() error {
		v := exported(t, w.base.Meters)
		var missing error
		for _, name := range []string{"kennel_queue_received_messages_total", "kennel_queue_messages_total{taken}", "kennel_queue_messages_total{unreadable}",
			"kennel_command_messages_total{sent}"} {
			if v[name] < 1 {
				missing = errors.Join(missing, fmt.Errorf("%s is %v", name, v[name]))
			}
		}
		return missing
	})
	q.Fail(1000) // until the end: also the library's own attempts
	testwait.Until(t, testwait.Long, "an overloaded queue is counted", func() error {
		if n := exported(t, w.base.Meters)["kennel_queue_failures_total"]; n < 1 {
			return fmt.Errorf("%v failures", n)
		}
		return nil
	})
	now, is := w.link.Uplink.Stats(), exported(t, w.base.Meters)
	for name, want := range map[string]int64{"kennel_queue_messages_total{taken}": now.Taken, "kennel_queue_messages_total{left}": now.NotTaken,
		"kennel_queue_messages_total{dead}": now.Dead, "kennel_command_messages_total{unsent}": w.orders.Sender.Stats().Unsent} {
		if got, there := is[name]; !there || got != float64(want) {
			t.Errorf("%s is %v (exported: %v), want %d", name, got, there, want)
		}
	}
}

// TestNoQueueNoCommands: a process without the bridge's role has neither; one without a queue shows zeros, so that a rate has a beginning.
func TestNoQueueNoCommands(t *testing.T) {
	w := start(t, nil)
	v := exported(t, w.base.Meters)
	for _, name := range []string{"kennel_queue_received_messages_total", "kennel_queue_messages_total{dead}", "kennel_queue_failures_total"} {
		if n, there := v[name]; !there || n != 0 {
			t.Errorf("%s is %v (exported: %v)", name, n, there)
		}
	}
	api := start(t, func(c *Config) { c.Roles = []string{"api"} })
	for name := range exported(t, api.base.Meters) {
		if name == "kennel_queue_failures_total" || name == "kennel_command_messages_total{sent}" {
			t.Errorf("%s is exported by a process that does not do it", name)
		}
	}
}
