package bridge

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/thing"
)

func msg(id thing.ID, body string) item {
	return item{topic: topics.Topic{Thing: id, Class: topics.Up, Name: topics.DAS}, payload: []byte(body)}
}

const (
	rex thing.ID = "vic:00e20100"
	pip thing.ID = "vic:00e20101"
)

// TestLanesKeepOrder: one thing in order, however many workers.
func TestLanesKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes()
		var mu sync.Mutex
		got := map[thing.ID][]byte{}
		ctx, cancel := context.WithCancel(t.Context())
		for range 8 {
			go l.work(ctx, func(_ context.Context, it item) {
				time.Sleep(time.Duration(it.payload[0]%3) * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				got[it.topic.Thing] = append(got[it.topic.Thing], it.payload[0])
			})
		}
		for i := range byte(100) {
			l.put(msg(rex, string([]byte{i})))
			l.put(msg(pip, string([]byte{i})))
		}
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		for id, order := range got {
			for i, n := range order {
				if int(n) != i {
					t.Fatalf("%s: %v", id, order)
				}
			}
			if len(order) != 100 {
				t.Errorf("%s: %d messages", id, len(order))
			}
		}
		if len(got) != 2 || l.len() != 0 || l.bytes != 0 || len(l.all) != 0 {
			t.Errorf("left: %d messages, %d bytes, %d lanes", l.len(), l.bytes, len(l.all))
		}
	})
}

// TestSlowThingStarvesNobody: one thing's full lane leaves the others a worker and room.
func TestSlowThingStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes()
		ctx, cancel := context.WithCancel(t.Context())
		var quick atomic.Int64
		for range 2 {
			go l.work(ctx, func(ctx context.Context, it item) {
				if it.topic.Thing == rex {
					<-ctx.Done() // never comes back
					return
				}
				quick.Add(1)
			})
		}
		taken := 0
		for range 2 * maxPerThing {
			if l.put(msg(rex, "x")) {
				taken++
			}
		}
		if taken > maxPerThing+1 {
			t.Errorf("%d messages of one thing wait, at most %d", taken, maxPerThing)
		}
		for range 10 {
			if !l.put(msg(pip, "x")) {
				t.Error("no room for another thing")
			}
		}
		synctest.Wait()
		if quick.Load() != 10 {
			t.Errorf("%d of 10 handled beside a slow thing", quick.Load())
		}
		cancel()
	})
}

func TestLanesAreBounded(t *testing.T) {
	l := newLanes()
	big := make([]byte, 1<<20)
	n := 0
	for i := range 200 {
		it := msg(thing.ID("vic:"+string(rune('a'+i))), "")
		it.payload = big
		if l.put(it) {
			n++
		}
	}
	if n != maxWaitingBytes>>20 {
		t.Errorf("%d MiB wait", n)
	}
}
