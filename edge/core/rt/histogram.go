package rt

import (
	"iter"
	"math/bits"
	"time"
)

const (
	subBits = 4 // 16 buckets per octave: a percentile is at most 1/16 too high
	buckets = (32 - subBits + 1) << subBits
)

// Histogram counts durations from 1 µs to 71 minutes in a fixed array. The zero value is empty. It is a plain value: copy it, subtract an
// earlier copy.
type Histogram struct {
	N       uint64
	Max     time.Duration // exact
	buckets [buckets]uint32
}

// Add counts d; what is negative counts as 0.
func (h *Histogram) Add(d time.Duration) {
	h.N++
	h.Max = max(h.Max, d)
	h.buckets[bucket(d)]++
}

// Quantile returns a duration that the share q (0 to 1) of all counted ones does not exceed: the upper end of its bucket, but not more than Max.
// 0 if nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	want := uint64(q * float64(h.N))
	if float64(want) < q*float64(h.N) {
		want++
	}
	want = max(want, 1)
	var seen uint64
	for i, n := range h.buckets {
		if seen += uint64(n); seen >= want {
			return min(upper(i), h.Max)
		}
	}
	return h.Max
}

// All returns the buckets that counted something: the longest duration of each, ascending, and how many it counted.
func (h *Histogram) All() iter.Seq2[time.Duration, uint32] {
	return func(yield func(time.Duration, uint32) bool) {
		for i, n := range h.buckets {
			if n > 0 && !yield(upper(i), n) {
				return
			}
		}
	}
}

// Sub returns what h counted since it was earlier. Max is the end of the highest bucket that grew, since the exact one may be older.
func (h *Histogram) Sub(earlier *Histogram) Histogram {
	d := Histogram{N: h.N - earlier.N}
	for i := range h.buckets {
		if d.buckets[i] = h.buckets[i] - earlier.buckets[i]; d.buckets[i] != 0 {
			d.Max = min(upper(i), h.Max)
		}
	}
	return d
}

// bucket: below 16 µs one per microsecond, above that 16 per doubling.
func bucket(d time.Duration) int {
	us := uint64(max(d, 0)) / uint64(time.Microsecond)
	if us >= 1<<32 {
		return buckets - 1
	}
	exp := bits.Len64(us)
	if exp <= subBits {
		return int(us)
	}
	shift := exp - subBits - 1
	return (shift+1)<<subBits + int(us>>shift) - 1<<subBits
}

// upper is the longest duration that falls into bucket i.
func upper(i int) time.Duration {
	us := uint64(i)
	if i >= 2<<subBits {
		shift := i>>subBits - 1
		us = uint64(i-shift<<subBits+1)<<shift - 1
	}
	return time.Duration(us+1)*time.Microsecond - 1
}
