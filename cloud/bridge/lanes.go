package bridge

import (
	"context"
	"sync"
	"time"

	"kennel/infra/api/topics"
	"kennel/infra/thing"
)

// Bounds of what waits for a worker. Our own (the source gives none).
const (
	maxWaiting      = 16384
	maxWaitingBytes = 128 << 20
	maxPerThing     = 256
)

// item is one message on its way to a handler.
type item struct {
	topic    topics.Topic // zero if broker is set
	broker   string       // the topic of a message of the broker itself
	payload  []byte
	received time.Time
}

// lane holds one thing's messages in order. It exists while it has messages or one of them is being handled.
type lane struct {
	thing thing.ID // "": the broker's own messages
	queue []item
}

// lanes shares workers among things: at most one worker serves a lane, for one message at a time.
type lanes struct {
	ready chan *lane // lanes with messages that no worker serves; has room for all of them, so sending never blocks

	mu    sync.Mutex
	all   map[thing.ID]*lane
	count int // messages in queues and in handlers
	bytes int
}

func newLanes() *lanes {
	return &lanes{ready: make(chan *lane, maxWaiting), all: map[thing.ID]*lane{}}
}

// put queues it, or reports false if there is no room.
func (l *lanes) put(it item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln, busy := l.all[it.topic.Thing]
	if l.count >= maxWaiting || l.bytes+len(it.payload) > maxWaitingBytes || busy && len(ln.queue) >= maxPerThing {
		return false
	}
	l.count++
	l.bytes += len(it.payload)
	if !busy {
		ln = &lane{thing: it.topic.Thing}
		l.all[ln.thing] = ln
		l.ready <- ln
	}
	ln.queue = append(ln.queue, it)
	return true
}

// work serves lanes until ctx ends: one message, then the lane goes to the back of the line.
func (l *lanes) work(ctx context.Context, handle func(context.Context, item)) {
	for {
		select {
		case <-ctx.Done():
			return
		case ln := <-l.ready:
			it := l.first(ln)
			handle(ctx, it)
			l.done(ln, it)
		}
	}
}

func (l *lanes) first(ln *lane) item {
	l.mu.Lock()
	defer l.mu.Unlock()
	it := ln.queue[0]
	ln.queue[0] = item{} // let go of the payload
	ln.queue = ln.queue[1:]
	return it
}

func (l *lanes) done(ln *lane, it item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	l.bytes -= len(it.payload)
	if len(ln.queue) == 0 {
		delete(l.all, ln.thing)
		return
	}
	l.ready <- ln
}

func (l *lanes) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}
