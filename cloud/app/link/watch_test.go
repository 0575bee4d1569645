package link

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/cloud/wire"
	"kennel/infra/mqtt/brokeradmin/natsserver"
	"kennel/infra/mqtt/brokeradmin/natsserver/natsservertest"
	"kennel/infra/testwait"
)

// TestOneBrokerGone: of three real servers that one after the other is killed, the check says how many answer, warns of one, and of two that no robot
// can log in.
func TestOneBrokerGone(t *testing.T) {
	c := natsservertest.Start(t, 3)
	a := c.Admin(t)
	w := &watch{members: a.Members}
	until := func(words, reason string) {
		t.Helper()
		testwait.Until(t, testwait.Long, words, func() error {
			w.look(t.Context())
			if w.seenErr != nil {
				return w.seenErr
			}
			says, err := servers(w.seen, 3)
			if got := fmt.Sprint(err); !strings.Contains(says, words) || !strings.Contains(got, reason) {
				return fmt.Errorf("%q, %q", says, got)
			}
			return nil
		})
	}
	until("3 of 3 servers (n1, n2, n3), n", "<nil>")
	c.Nodes[1].Kill()
	until("2 of 3 servers (n1, n3)", "1 of the broker's 3 servers does not answer")
	c.Nodes[2].Kill()
	until("1 of 3 servers (n1)", "no robot can log in")
}

// TestServersOfABroker: what is said of answers that a test cannot wait for.
func TestServersOfABroker(t *testing.T) {
	for _, tc := range []struct {
		seen   []natsserver.Member
		reason string
	}{
		{nil, "no robot can log in"},
		{[]natsserver.Member{{Name: "a"}, {Name: "b"}, {Name: "c"}}, "no leader"},
		{[]natsserver.Member{{Name: "a", Leader: "c"}, {Name: "b"}, {Name: "c"}}, "<nil>"},
	} {
		if _, err := servers(tc.seen, 3); !strings.Contains(fmt.Sprint(err), tc.reason) {
			t.Errorf("%+v: %v, want %s", tc.seen, err, tc.reason)
		}
	}
}

// TestUplinkGrows: a queue with many messages that does not shrink for a minute is a warning; one that shrinks, one with few, and a short rise are not.
func TestUplinkGrows(t *testing.T) {
	for name, tc := range map[string]struct {
		waiting func(time.Duration) int64
		want    string
	}{
		"grows":   {func(d time.Duration) int64 { return 1000 + int64(d/time.Second) }, "grows"},
		"stays":   {func(time.Duration) int64 { return 5000 }, "grows"},
		"few":     {func(d time.Duration) int64 { return int64(d / time.Second) }, "<nil>"},
		"shrinks": {func(d time.Duration) int64 { return 9000 - int64(d/time.Second) }, "<nil>"},
		"a rise":  {func(d time.Duration) int64 { return int64(d/time.Second) % 60 * 1000 }, "<nil>"},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			l := &Link{base: wire.Base{Log: slog.New(slog.DiscardHandler), Roles: []wire.Role{wire.Bridge}}}
			l.watch.lag = func() (int64, time.Duration, bool) { return tc.waiting(time.Since(start)), time.Second, true }
			stop := natsservertest.Run(t, l.watch.run)
			for range 20 { // five minutes
				time.Sleep(15 * time.Second)
				if _, err := l.LookUplink(t.Context()); time.Since(start) < growingFor && err != nil {
					t.Errorf("%s: %v after %v", name, err, time.Since(start))
				}
			}
			says, err := l.LookUplink(t.Context())
			if !strings.Contains(fmt.Sprint(err), tc.want) || !strings.Contains(says, fmt.Sprint(tc.waiting(time.Since(start)), " messages wait")) {
				t.Errorf("%s: %q, %v, want %s", name, says, err, tc.want)
			}
			stop()
			l.watch.lag = func() (int64, time.Duration, bool) { return 0, time.Minute, true }
			if says, err := l.LookUplink(t.Context()); err == nil || !strings.Contains(says, "not known") {
				t.Errorf("%s: %q, %v: the number is old", name, says, err)
			}
		})
	}
}
