package kitmqtt

import (
	"container/list"
	"sync"
	"time"

	"kennel/infra/thing"
)

// Bounds of the answers kept for repetition. A robot resends within seconds; keepFor covers a lost connection in between. A thing that
// floods the cache only costs others the shortcut: their handlers are idempotent.
const (
	keepFor     = 5 * time.Minute
	keepAnswers = 8192
	keepBytes   = 16 << 20
)

type cacheKey struct {
	thing thing.ID
	name  string // service/method: an id reused for another request is another request
	id    string
}

type cacheEntry struct {
	key    cacheKey
	done   bool
	answer []byte
	at     time.Time // when it was done
}

type cacheState int

const (
	fresh cacheState = iota // never seen: the caller runs it and calls finish
	running
	answered
)

// cache remembers requests that run and answers that were given, oldest out first. All answers live equally long, so the order of
// finishing is the order of expiry.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]*cacheEntry
	done    *list.List // of *cacheEntry, oldest first; those that run are not in it
	bytes   int        // of the answers in done
}

func newCache() *cache {
	return &cache{entries: map[cacheKey]*cacheEntry{}, done: list.New()}
}

// begin claims key, or says who has it. The answer must not be changed.
func (c *cache) begin(key cacheKey, now time.Time) ([]byte, cacheState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict(now)
	e, ok := c.entries[key]
	switch {
	case !ok:
		c.entries[key] = &cacheEntry{key: key}
		return nil, fresh
	case !e.done:
		return nil, running
	}
	return e.answer, answered
}

// finish keeps the answer of a key that begin gave out as fresh.
func (c *cache) finish(key cacheKey, answer []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	e.done, e.answer, e.at = true, answer, now
	c.done.PushBack(e)
	c.bytes += len(answer)
	c.evict(now)
}

func (c *cache) evict(now time.Time) {
	for el := c.done.Front(); el != nil; el = c.done.Front() {
		e := el.Value.(*cacheEntry)
		if c.done.Len() <= keepAnswers && c.bytes <= keepBytes && now.Sub(e.at) < keepFor {
			return
		}
		c.done.Remove(el)
		delete(c.entries, e.key)
		c.bytes -= len(e.answer)
	}
}
