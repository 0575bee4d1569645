package registry

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/envelope"
	"kennel/infra/api/status"
)

// TestLease runs scripts of messages against the rule of infra/api/status, on the clock of a bubble.
func TestLease(t *testing.T) {
	type event struct {
		wait    time.Duration
		state   status.State
		boot    string
		connect uint64
		seq     uint64
		ok      bool
		until   time.Duration // from now, after the event
	}
	const on, gone = status.Online, status.Gone
	const lease = 45 * time.Second
	for _, tt := range []struct {
		name    string
		events  []event
		changes []bool // comings (true) and goings
	}{
		{"first status", []event{{0, on, "a", 1, 1, true, lease}}, []bool{true}},
		{"status renews", []event{{0, on, "a", 1, 1, true, lease}, {20 * time.Second, on, "a", 1, 2, true, lease}}, []bool{true}},
		{"repeated status", []event{{0, on, "a", 1, 2, true, lease}, {time.Second, on, "a", 1, 2, false, lease - time.Second}}, []bool{true}},
		{"reordered status", []event{{0, on, "a", 1, 2, true, lease}, {time.Second, on, "a", 1, 1, false, lease - time.Second}}, []bool{true}},
		{"will shortens", []event{{0, on, "a", 1, 1, true, lease}, {time.Second, gone, "a", 1, 0, true, WillGrace}}, []bool{true}},
		{"will never lengthens", []event{{0, on, "a", 1, 1, true, lease}, {44500 * time.Millisecond, gone, "a", 1, 0, true, 500 * time.Millisecond}}, []bool{true}},
		{"repeated will", []event{{0, on, "a", 1, 1, true, lease}, {0, gone, "a", 1, 0, true, WillGrace}, {time.Second, gone, "a", 1, 0, false, time.Second}}, []bool{true}},
		{"old will after reconnect", []event{{0, on, "a", 1, 1, true, lease}, {time.Second, on, "a", 2, 1, true, lease}, {time.Second, gone, "a", 1, 0, false, lease - time.Second}}, []bool{true}},
		{"will of a stranger", []event{{0, gone, "a", 1, 0, false, 0}}, nil},
		{"reconnect within the grace", []event{{0, on, "a", 1, 1, true, lease}, {0, gone, "a", 1, 0, true, WillGrace}, {time.Second, on, "a", 2, 1, true, lease}}, []bool{true}},
		{"status overtaken by its will", []event{{0, on, "a", 1, 1, true, lease}, {0, gone, "a", 1, 0, true, WillGrace}, {time.Second, on, "a", 1, 2, false, time.Second}}, []bool{true}},
		{"older connection", []event{{0, on, "a", 5, 1, true, lease}, {time.Second, on, "a", 4, 9, false, lease - time.Second}}, []bool{true}},
		{"older connection, even later", []event{{0, on, "a", 5, 1, true, lease}, {time.Minute, on, "a", 4, 9, false, -15 * time.Second}}, []bool{true}},
		{"reboot", []event{{0, on, "a", 5, 9, true, lease}, {time.Second, on, "b", 6, 1, true, lease}}, []bool{true}},
		{"wiped robot while the lease runs", []event{{0, on, "a", 5, 9, true, lease}, {time.Second, on, "b", 1, 1, false, lease - time.Second}}, []bool{true}},
		{"wiped robot after it", []event{{0, on, "a", 5, 9, true, lease}, {46 * time.Second, on, "b", 1, 1, true, lease}}, []bool{true, false, true}},
		{"left unswept and came back", []event{{0, on, "a", 5, 9, true, lease}, {time.Hour, on, "a", 6, 1, true, lease}}, []bool{true, false, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l Lease
				var changes []bool
				for i, e := range tt.events {
					time.Sleep(e.wait)
					now := time.Now()
					next, cs, ok := l.Next(status.Message{State: e.state, BootID: e.boot, ConnectSeq: e.connect, Seq: e.seq, Lease: envelope.Millis(lease)}, now)
					if ok != e.ok {
						t.Fatalf("event %d: accepted %v, want %v", i, ok, e.ok)
					}
					l = next
					for _, c := range cs {
						changes = append(changes, c.Present)
					}
					if got := l.Until.Sub(now); got != e.until && !l.Until.IsZero() {
						t.Errorf("event %d: lease ends in %v, want %v", i, got, e.until)
					}
				}
				if !slices.Equal(changes, tt.changes) {
					t.Errorf("changes %v, want %v", changes, tt.changes)
				}
			})
		})
	}
}

func TestLeaseIsBounded(t *testing.T) {
	for _, tt := range []struct{ asked, want time.Duration }{
		{0, DefaultLease}, {time.Millisecond, MinLease}, {time.Minute, time.Minute}, {24 * time.Hour, MaxLease},
	} {
		if got := leaseOf(status.Message{Lease: envelope.Millis(tt.asked)}); got != tt.want {
			t.Errorf("asked %v: got %v, want %v", tt.asked, got, tt.want)
		}
	}
}

// FuzzStatus demands of any payload: no panic, and of an accepted one that the lease rule keeps its promises.
func FuzzStatus(f *testing.F) {
	f.Add([]byte(`{"v":1,"state":"online","boot_id":"b","connect_seq":3,"seq":1,"lease_ms":45000,"ts":1760000000000}`), true)
	f.Add([]byte(`{"v":1,"state":"gone","boot_id":"a","connect_seq":2}`), true)
	f.Add([]byte(`{"v":1,"state":"online","boot_id":"a","connect_seq":18446744073709551615,"ts":-9223372036854775808}`), false)
	f.Fuzz(func(t *testing.T, b []byte, running bool) {
		m, err := parseStatus(b)
		if err != nil {
			return
		}
		now := time.Unix(1_800_000_000, 0)
		l := Lease{BootID: "a", ConnectSeq: 2, Seq: 5, Until: now.Add(30 * time.Second), Present: true, Since: now.Add(-time.Hour)}
		if !running {
			l.Until = now.Add(-time.Second)
		}
		next, changes, ok := l.Next(m, now)
		switch {
		case !ok && (next != l || len(changes) > 0):
			t.Fatalf("ignored, but changed: %+v %v", next, changes)
		case ok && m.State == status.Gone && next.Until.After(l.Until):
			t.Fatalf("a will lengthened the lease: %+v", next)
		case ok && m.State == status.Online && (next.Until.Before(now.Add(MinLease)) || next.Until.After(now.Add(MaxLease)) || !next.Present):
			t.Fatalf("lease out of bounds: %+v", next)
		case next.ConnectSeq < l.ConnectSeq && running:
			t.Fatalf("connect_seq went back while the lease ran: %+v", next)
		}
		if off := clockOffset(m.TS, now); m.TS != 0 && (off > 1e15 || off < -1e15) {
			t.Fatalf("offset %d", off)
		}
	})
}
