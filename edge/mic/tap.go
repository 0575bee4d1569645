package mic

import (
	"slices"
	"sync"
)

// tapChunks is how many chunks wait for one listener, half a second; own default.
const tapChunks = 50

// Tap hands the chunks of a Pipeline to all who listen, while it runs: nothing runs for them alone. The zero value is a tap of a robot that does not listen.
// Safe for concurrent use.
type Tap struct {
	// Changed is called when the first listener comes and when the last one leaves, and must not block; nil: nothing is. Set it before the tap is used.
	Changed func()

	mu        sync.Mutex
	why       string // there are no chunks; "": there are
	listeners []*Listener
}

// Listener is one who listens.
type Listener struct {
	Chunks <-chan Chunk    // a listener that is slow misses some: Chunk.Lost counts their frames
	Off    <-chan struct{} // one slot: there are no chunks any longer, or again: Why tells

	chunks chan Chunk
	off    chan struct{}
	missed uint64 // frames, for which there was no room
}

// Put hands a chunk out. It does not wait.
func (t *Tap) Put(c *Chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != "" { // it was on its way when they were switched off
		return
	}
	for _, l := range t.listeners {
		own := *c
		own.Lost += l.missed
		select {
		case l.chunks <- own:
			l.missed = 0
		default:
			l.missed = own.Lost + 2 // the frames of this one too
		}
	}
}

// SetOff says why there are no chunks from now on, such as "the microphones are switched off"; "": there are. It does not wait.
func (t *Tap) SetOff(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why == t.why {
		return
	}
	t.why = why
	for _, l := range t.listeners {
		for why != "" && len(l.chunks) > 0 {
			<-l.chunks // who switches the microphones off is heard no longer
		}
		select {
		case l.off <- struct{}{}:
		default:
		}
	}
}

// Why returns why there are no chunks; "": there are.
func (t *Tap) Why() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// Heard reports whether anyone listens.
func (t *Tap) Heard() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.listeners) > 0
}

// Listen hands chunks out from now on, until end is called.
func (t *Tap) Listen() (l *Listener, end func()) {
	l = &Listener{chunks: make(chan Chunk, tapChunks), off: make(chan struct{}, 1)}
	l.Chunks, l.Off = l.chunks, l.off
	t.change(func() { t.listeners = append(t.listeners, l) })
	return l, func() {
		t.change(func() { t.listeners = slices.DeleteFunc(t.listeners, func(o *Listener) bool { return o == l }) })
	}
}

func (t *Tap) change(f func()) {
	t.mu.Lock()
	before := len(t.listeners) > 0
	f()
	news := before != (len(t.listeners) > 0)
	t.mu.Unlock()
	if news && t.Changed != nil {
		t.Changed()
	}
}
