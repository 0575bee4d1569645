package link

import (
	"context"
	"sync"
	"time"
)

// permitLasts is how long a refusal holds without being said again: robotd says it each second, and a robot whose core is gone needs its cloud
// more than its battery. Own default.
const permitLasts = 10 * time.Second

// permit says whether the robot's battery leaves anything for the cloud (VEC-PWR-07). The zero value is that it does. Safe for concurrent use.
type permit struct {
	mu      sync.Mutex
	refused bool
	changed chan struct{} // closed when refused changes; nil: no waiter
	lapse   *time.Timer   // of a refusal
}

// set takes robotd's answer and reports whether it changes anything. A refusal lasts for the given time.
func (p *permit) set(open bool, lasts time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lapse != nil {
		p.lapse.Stop() // one that fires now finds another timer in its place
		p.lapse = nil
	}
	if !open {
		var own *time.Timer
		own = time.AfterFunc(lasts, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.lapse == own {
				p.lapse = nil
				p.turn(false)
			}
		})
		p.lapse = own
	}
	return p.turn(!open)
}

// turn changes refused; the lock is held.
func (p *permit) turn(refused bool) bool {
	if p.refused == refused {
		return false
	}
	p.refused = refused
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return true
}

// now returns whether it is open, and a channel that is closed when that changes.
func (p *permit) now() (open bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return !p.refused, p.changed
}

// while runs f whenever it is open, until ctx ends (nil) or f ends by itself: then it returns f's error. When it is refused, leave is
// called and then f's context ends.
func (p *permit) while(ctx context.Context, f func(context.Context) error, leave func()) error {
	for {
		open, changed := p.now()
		if !open {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				continue
			}
		}
		fctx, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- f(fctx) }()
		select {
		case err := <-done:
			stop()
			return err
		case <-changed:
			leave()
			stop()
			<-done // it was told to end
		}
	}
}
