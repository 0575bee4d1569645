package das

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/ack"
	"kennel/infra/api/envelope"
	"kennel/infra/api/events"
)

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		c.answer = func(events.Batch) ack.Ack {
			return ack.Ack{Status: ack.RetryAfter, After: envelope.Millis(time.Minute)}
		}
		m := newManager(t, root, "boot-1")
		stop := run(t, m, c)
		emit(t, m, "a")
		time.Sleep(4 * time.Second)
		c.set(func() { c.answer = nil })
		emit(t, m, "b")
		m.Flush() // does not break the promise
		time.Sleep(50 * time.Second)
		if c.batches != 1 || len(c.got()) != 0 {
			t.Errorf("%d publishes within the pause; want 1", c.batches)
		}
		time.Sleep(time.Minute)
		stop()
		if got := c.got(); !slices.Equal(got, seqs("boot-1", 1, 2)) {
			t.Errorf("got %v", got)
		}
	})
}

// A poisoned event is quarantined and does not block the next (issue 2, "what must hold" 6).
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		c.answer = func(b events.Batch) ack.Ack {
			var bad []uint64
			for _, e := range b.Events {
				if e.S1 == "poison" {
					bad = append(bad, e.Seq)
				}
			}
			if bad != nil {
				return ack.Ack{Status: ack.Refused, Code: "events", Reason: "line 2: poison", Bad: bad}
			}
			return ack.Ack{Status: ack.Stored}
		}
		m := newManager(t, root, "boot-1")
		stop := run(t, m, c)
		emit(t, m, "a", "poison", "b", "poison", "c")
		time.Sleep(10 * time.Second)
		emit(t, m, "d")
		time.Sleep(10 * time.Second)
		if got, want := c.got(), []string{"boot-1/1", "boot-1/3", "boot-1/5", "boot-1/6"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if st := m.Stats(); st.Quarantined != 2 || st.Events != 0 {
			t.Errorf("Stats = %+v; want 2 in quarantine", st)
		}
		b, err := root.ReadFile(QuarantineDir + "/boot-1-2-2.ndjson")
		if err != nil || !strings.HasPrefix(string(b), `{"code":"events","reason":"line 2: poison","boot_id":"boot-1","seqs":[2,4]}`+"\n") {
			t.Errorf("quarantine file %s, %v", b, err)
		}
		// All of a batch refused without names.
		c.set(func() {
			c.answer = func(events.Batch) ack.Ack { return ack.Ack{Status: ack.Refused, Code: "encoding"} }
		})
		emit(t, m, "e", "f")
		time.Sleep(10 * time.Second)
		c.set(func() { c.answer = nil })
		emit(t, m, "g")
		time.Sleep(10 * time.Second)
		stop()
		if got := c.got(); !slices.Equal(got[4:], []string{"boot-1/9"}) || m.Stats().Quarantined != 4 {
			t.Errorf("got %v, %+v", got, m.Stats())
		}
		if again := newManager(t, root, "boot-2"); again.Stats().Quarantined != 4 {
			t.Errorf("after a restart: %+v", again.Stats())
		}
	})
}

func TestOptOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, c := testRoot(t), newCloud(t)
		writeFile(t, root, DefaultFileConfig().PersistentGlobals, `{"dasGlobals":{"allow_upload":true,"profile_id":"p1","last_event_ts":7}}`)
		c.offline = true
		m := newManager(t, root, "boot-1")
		stop := run(t, m, c)
		if _, err := root.Stat(AllowFile); err != nil {
			t.Error(err)
		}
		emit(t, m, "a", "b")
		time.Sleep(5 * time.Second)
		if err := m.SetAllowUpload(false); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Emit(events.Event{Name: "a.b"}); !errors.Is(err, ErrOptedOut) {
			t.Errorf("Emit after the no: %v", err)
		}
		if _, err := m.EmitDurable(t.Context(), events.Event{Name: "a.b"}); !errors.Is(err, ErrOptedOut) {
			t.Errorf("EmitDurable after the no: %v", err)
		}
		if _, err := root.Stat(AllowFile); err == nil {
			t.Error("the flag file is still there")
		}
		c.set(func() { c.offline = false })
		m.Flush()
		time.Sleep(time.Hour)
		stop()
		m = newManager(t, root, "boot-1")
		if m.AllowUpload() || m.Stats().Events != 0 || len(c.got()) != 0 {
			t.Errorf("after a restart: allowed %v, %+v, cloud has %v", m.AllowUpload(), m.Stats(), c.got())
		}
		stop = run(t, m, c)
		if err := m.SetAllowUpload(true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		stop()
		var first string
		for _, v := range c.stored {
			first = v
		}
		if len(c.stored) != 1 || first != "das.allow_upload " {
			t.Errorf("cloud has %v", c.stored)
		}
		if got := c.got()[0]; got == "boot-1/1" || got == "boot-1/2" {
			t.Errorf("%s: a number was used again", got)
		}
		b, err := root.ReadFile(DefaultFileConfig().PersistentGlobals)
		if err != nil || string(b) != `{"dasGlobals":{"allow_upload":true,"last_event_ts":7,"profile_id":"p1"}}` {
			t.Errorf("%s, %v", b, err)
		}
	})
}

// The cloud may know of the no, or of another owner, before the robot does: nothing is kept, and nothing blocks.
func TestRefusedAsOptedOut(t *testing.T) {
	for _, code := range []string{OptedOut, OwnerChanged} {
		synctest.Test(t, func(t *testing.T) {
			root, c := testRoot(t), newCloud(t)
			c.answer = func(events.Batch) ack.Ack { return ack.Ack{Status: ack.Refused, Code: code} }
			m := newManager(t, root, "boot-1")
			stop := run(t, m, c)
			emit(t, m, "a")
			time.Sleep(10 * time.Second)
			stop()
			if st := m.Stats(); st.Events != 0 || st.Quarantined != 0 {
				t.Errorf("%s: Stats = %+v", code, st)
			}
		})
	}
}
