package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestHintsAreCoalesced: the first at once, then the last value once a second, and nothing when nothing changed.
func TestHintsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var got []string
		fail := false
		h := newHints(func(_ context.Context, topic string, payload []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if fail {
				return errors.New("no connection")
			}
			got = append(got, fmt.Sprintf("%v %s=%s", time.Since(start), topic, payload))
			return nil
		})
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		h.run(ctx, &wg, slog.New(slog.DiscardHandler))
		for i := range 5 {
			h.put("a", fmt.Append(nil, i))
			synctest.Wait()
		}
		// A first value is written; the next few go out at once as well, a flood does not.
		if quick, _ := h.put("b", []byte("x")); quick {
			t.Error("the first value of b is quick: it is written anyway")
		}
		quicks := 0
		for range 10 {
			if quick, _ := h.put("b", []byte("x")); quick {
				quicks++
			}
		}
		if quicks != quickHints {
			t.Errorf("%d quick values, want %d", quicks, quickHints)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		mu.Lock()
		fail = true
		mu.Unlock()
		h.put("a", []byte("old"))
		synctest.Wait()
		h.put("a", []byte("new"))
		time.Sleep(2500 * time.Millisecond) // tried at 10, 11 and 12 s
		mu.Lock()
		fail = false
		mu.Unlock()
		time.Sleep(3 * time.Second)
		cancel()
		wg.Wait()
		want := []string{"0s a=0", "0s b=x", "13.001s a=new", "1s a=4"} // as strings sort
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.topic) != 0 {
			t.Errorf("%d topics remembered", len(h.topic))
		}
	})
}

func TestHintsAreBounded(t *testing.T) {
	h := newHints(nil)
	for i := range maxHints {
		if _, ok := h.put(fmt.Sprint(i), nil); !ok {
			t.Fatalf("no room for hint %d", i)
		}
	}
	if _, ok := h.put("one more", nil); ok {
		t.Error("room for one more")
	}
	if _, ok := h.put("7", nil); !ok {
		t.Error("a topic that waits already was refused")
	}
}
