package brokeradmin_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/thing"
)

// house is a broker and a database in one.
type house struct {
	mu      sync.Mutex
	want    map[thing.ID]string
	have    map[thing.ID]string
	orders  int
	broken  error
	changed chan struct{}
}

func (h *house) Block(_ context.Context, id thing.ID, reason string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.orders++; h.broken != nil && id == "vic:1" {
		return h.broken
	}
	h.have[id] = reason
	return nil
}

func (h *house) Allow(_ context.Context, id thing.ID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders++
	delete(h.have, id)
	return nil
}

func (h *house) blocked(context.Context) (map[thing.ID]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.want), nil
}

func (h *house) change() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

func (h *house) set(broken error, want map[thing.ID]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.want, h.broken = want, broken
	close(h.changed)
	h.changed = make(chan struct{})
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{want: map[thing.ID]string{"vic:1": "stolen"}, have: map[thing.ID]string{}, changed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- brokeradmin.Keep(ctx, h, h.blocked, h.change, slog.New(slog.DiscardHandler)) }()
		expect := func(what string, orders int, want map[thing.ID]string) {
			t.Helper()
			synctest.Wait()
			if !maps.Equal(h.have, want) || h.orders != orders {
				t.Errorf("%s: %v after %d orders, want %v after %d", what, h.have, h.orders, want, orders)
			}
		}
		expect("at the start", 1, map[thing.ID]string{"vic:1": "stolen"})
		h.set(nil, map[thing.ID]string{"vic:1": "stolen", "vic:2": "sold"})
		expect("one more", 2, map[thing.ID]string{"vic:1": "stolen", "vic:2": "sold"})
		h.set(errors.New("away"), map[thing.ID]string{})
		expect("none", 4, map[thing.ID]string{})
		h.set(errors.New("away"), map[thing.ID]string{"vic:1": "stolen", "vic:3": "sold"})
		expect("one of two fails", 6, map[thing.ID]string{"vic:3": "sold"})
		h.mu.Lock()
		h.broken = nil
		h.mu.Unlock()
		time.Sleep(time.Second)
		expect("tried again", 7, map[thing.ID]string{"vic:1": "stolen", "vic:3": "sold"})
		h.mu.Lock()
		delete(h.want, "vic:3") // it enrolled again, without a notice
		h.mu.Unlock()
		time.Sleep(2 * time.Second)
		expect("looked", 8, map[thing.ID]string{"vic:1": "stolen"})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
