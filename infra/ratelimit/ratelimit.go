// Package ratelimit limits the rate of attempts by key (an address, a thing, an account) in bounded memory. Limits are per process; limits
// across processes, such as the lockout of an account, are kept in the database by their domain.
package ratelimit

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// DefaultKeys is how many keys are remembered at once: about 200 bytes each.
const DefaultKeys = 50_000

// Keyed is a token bucket per key. Safe for concurrent use.
type Keyed struct {
	every rate.Limit
	burst int
	max   int
	now   func() time.Time
	norm  func(string) string

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	swept   time.Time
}

// New returns a limiter that lets burst attempts of one key through at once, and one more each interval.
func New(interval time.Duration, burst int) *Keyed {
	return &Keyed{
		every: rate.Every(interval), burst: burst, max: DefaultKeys, now: time.Now, norm: func(k string) string { return k },
		buckets: map[string]*rate.Limiter{},
	}
}

// NewByAddr is New for peer addresses: the port does not count, and an IPv6 peer is its /64, because one subscriber usually controls a whole /64.
func NewByAddr(interval time.Duration, burst int) *Keyed {
	k := New(interval, burst)
	k.norm = Network
	return k
}

// Network returns what counts as one peer: the address without its port, and an IPv6 address as its /64.
func Network(addr string) string {
	host := addr
	if h, _, err := net.SplitHostPort(addr); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// Allow takes one attempt of key and returns 0, or takes none and returns how long to wait for the next.
func (k *Keyed) Allow(key string) time.Duration {
	key = k.norm(key)
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.buckets[key]
	if b == nil {
		k.room(now)
		b = rate.NewLimiter(k.every, k.burst)
		k.buckets[key] = b
	}
	r := b.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait
	}
	return 0
}

// Wait returns how long to wait for the next attempt of key, and takes none: for those that only failed attempts count against.
func (k *Keyed) Wait(key string) time.Duration {
	now := k.now()
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.buckets[k.norm(key)]
	if b == nil {
		return 0
	}
	r := b.ReserveN(now, 1)
	defer r.CancelAt(now)
	return r.DelayFrom(now)
}

// room makes room for one key. It drops the keys whose tokens are all back, a search made at most once a second, else an arbitrary key.
// Under a flood from more addresses than fit, memory stays bounded and a dropped key starts again with all its tokens.
func (k *Keyed) room(now time.Time) {
	if len(k.buckets) < k.max {
		return
	}
	if now.Sub(k.swept) > time.Second {
		k.swept = now
		for key, b := range k.buckets {
			if b.TokensAt(now) >= float64(k.burst) {
				delete(k.buckets, key)
			}
		}
	}
	for key := range k.buckets {
		if len(k.buckets) < k.max {
			return
		}
		delete(k.buckets, key)
	}
}
