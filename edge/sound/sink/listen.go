package sink

import (
	"net/http"
	"sync"
	"time"

	"kennel/infra/wav"
)

// The limits of a Broadcast.
const (
	MaxListeners = 8
	behind       = 2 * time.Second // by which a listener may be behind before it is cut off
)

// Broadcast is a sink that browsers listen to: an http.Handler that answers with a WAV file without an end. All methods may be called concurrently.
type Broadcast struct {
	rate int

	mu        sync.Mutex
	listeners map[chan []byte]bool
	closed    bool
}

// NewBroadcast returns a broadcast of samples of a rate.
func NewBroadcast(rate int) *Broadcast {
	return &Broadcast{rate: rate, listeners: map[chan []byte]bool{}}
}

// Write implements Sink. It does not wait: a listener that has fallen behind loses the connection.
func (b *Broadcast) Write(pcm []int16) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.listeners) == 0 {
		return nil
	}
	block := appendPCM(make([]byte, 0, 2*len(pcm)), pcm)
	for l := range b.listeners {
		select {
		case l <- block:
		default:
			b.drop(l)
		}
	}
	return nil
}

func (b *Broadcast) drop(l chan []byte) {
	if b.listeners[l] {
		delete(b.listeners, l)
		close(l)
	}
}

// Close implements Sink: all listeners reach the end.
func (b *Broadcast) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for l := range b.listeners {
		b.drop(l)
	}
	return nil
}

// Listeners returns how many listen.
func (b *Broadcast) Listeners() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners)
}

// join adds a listener; nil if there are too many, or the broadcast is over.
func (b *Broadcast) join() chan []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.listeners) == MaxListeners {
		return nil
	}
	l := make(chan []byte, behind/Block)
	b.listeners[l] = true
	return l
}

// ServeHTTP sends what is played from now on, until the client leaves. It answers 503 to more than MaxListeners.
func (b *Broadcast) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := b.join()
	if l == nil {
		http.Error(w, "too many listeners", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.drop(l)
	}()
	h := w.Header()
	h.Set("Content-Type", "audio/wav")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // there is no end; a client that does not read is dropped by Write
	if _, err := w.Write(wav.AppendHeader(nil, b.rate, 1, wav.Endless)); err != nil {
		return
	}
	_ = out.Flush() // a writer that cannot sends with its buffer
	for {
		select {
		case <-r.Context().Done():
			return
		case block, ok := <-l:
			if !ok {
				return
			}
			_ = out.SetWriteDeadline(time.Now().Add(behind))
			if _, err := w.Write(block); err != nil {
				return
			}
			if len(l) == 0 {
				_ = out.Flush()
			}
		}
	}
}
