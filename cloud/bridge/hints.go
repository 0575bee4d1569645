package bridge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"kennel/infra/logging"
)

const (
	hintEvery   = time.Second // at most one write for each topic (AWS IoT Core's limit on retained messages, design section 4)
	hintSenders = 16          // each waits for a PUBACK
	maxHints    = 65536       // topics with a hint in the last second, or unsent
	quickHints  = 4           // of one topic in a second, for those who listen now; see put
)

// hints writes retained messages, coalesced: the last value wins.
type hints struct {
	publish func(ctx context.Context, topic string, payload []byte) error
	ready   chan string // topics to publish now; has room for all of them, so sending never blocks

	mu    sync.Mutex
	topic map[string]*hint
}

// hint is a topic that was written less than hintEvery ago, or waits to be.
type hint struct {
	payload []byte
	fresh   bool // payload is not published yet
	quick   int  // values handed on at once since the last write
}

func newHints(publish func(ctx context.Context, topic string, payload []byte) error) *hints {
	return &hints{publish: publish, ready: make(chan string, maxHints), topic: map[string]*hint{}}
}

// put notes the value to publish; ok is false if too many topics wait. quick says that the write must be delayed to the next second, and that
// the value is worth sending at once without retaining it: a robot that listens now hears a second change as soon as the first.
func (h *hints) put(topic string, payload []byte) (quick, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w, ok := h.topic[topic]; ok {
		w.payload, w.fresh = payload, true
		w.quick++
		return w.quick <= quickHints, true
	}
	if len(h.topic) >= maxHints {
		return false, false
	}
	h.topic[topic] = &hint{payload: payload, fresh: true}
	h.ready <- topic
	return false, true
}

func (h *hints) run(ctx context.Context, wg *sync.WaitGroup, log *slog.Logger) {
	for range hintSenders {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case topic := <-h.ready:
					if err := h.send(ctx, topic); err != nil && ctx.Err() == nil {
						log.DebugContext(ctx, "hint not sent; retrying in a second", "topic", topic, logging.Err, err)
					}
				}
			}
		})
	}
}

// send publishes the topic's value. hintEvery after it began the topic is settled.
func (h *hints) send(ctx context.Context, topic string) error {
	began := time.Now()
	h.mu.Lock()
	w := h.topic[topic]
	payload := w.payload
	w.fresh, w.quick = false, 0
	h.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	err := h.publish(ctx, topic, payload)
	if err != nil {
		h.mu.Lock()
		w.fresh = true // a newer value may have come meanwhile; either way there is something to publish
		h.mu.Unlock()
	}
	time.AfterFunc(hintEvery-time.Since(began), func() { h.settle(topic) })
	return err
}

// settle makes the topic ready again if there is a newer value or the last one failed, and forgets it otherwise.
func (h *hints) settle(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topic[topic].fresh {
		h.ready <- topic
		return
	}
	delete(h.topic, topic)
}
