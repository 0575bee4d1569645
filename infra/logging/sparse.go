package logging

import (
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Sparse bounds the lines that strangers can cause: a burst, then one in a while. Those held back are counted. It is safe for concurrent use.
type Sparse struct {
	limit       *rate.Limiter
	since, held atomic.Int64
}

// NewSparse lets burst lines through at once and one more in each time of every.
func NewSparse(every time.Duration, burst int) *Sparse {
	return &Sparse{limit: rate.NewLimiter(rate.Every(every), burst)}
}

// Allow reports whether a line may be written now, and how many were held back since the last one.
func (s *Sparse) Allow() (held int64, ok bool) {
	if s.limit.Allow() {
		return s.since.Swap(0), true
	}
	s.since.Add(1)
	s.held.Add(1)
	return 0, false
}

// Held returns how many lines were held back since the start.
func (s *Sparse) Held() int64 { return s.held.Load() }
