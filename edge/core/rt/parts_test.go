package rt

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestHistogramBuckets(t *testing.T) {
	last := -1
	for us := range uint64(1 << 16) {
		d := time.Duration(us) * time.Microsecond
		i := bucket(d)
		if i != last && i != last+1 {
			t.Fatalf("bucket of %v is %d after %d", d, i, last)
		}
		if up := upper(i); d > up || float64(up-d) > float64(d)/16+float64(time.Microsecond) {
			t.Fatalf("%v is in bucket %d that ends at %v", d, i, up)
		}
		last = i
	}
	for _, d := range []time.Duration{-1, 1<<32*time.Microsecond - 1, 1 << 62} {
		if i := bucket(d); i < 0 || i >= buckets {
			t.Errorf("bucket of %v is %d of %d", d, i, buckets)
		}
	}
	if got, want := upper(buckets-1), 1<<32*time.Microsecond-1; got != want {
		t.Errorf("the last bucket ends at %v, want %v", got, want)
	}
}

func TestHistogramQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h, before Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
	all := make([]time.Duration, 5000)
	for i := range all {
		all[i] = time.Duration(r.ExpFloat64() * float64(300*time.Microsecond))
		h.Add(all[i])
	}
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		exact, got := all[int(q*float64(len(all)))-1], h.Quantile(q)
		if got < exact || float64(got-exact) > float64(exact)/16+float64(time.Microsecond) {
			t.Errorf("quantile %v = %v, exact %v", q, got, exact)
		}
	}
	before = h
	h.Add(7 * time.Microsecond)
	h.Add(90 * time.Microsecond)
	if d := h.Sub(&before); d.N != 2 || d.Quantile(0.5) > 8*time.Microsecond || d.Max < 90*time.Microsecond || d.Max > 96*time.Microsecond {
		t.Errorf("difference: n %d, p50 %v, max %v", d.N, d.Quantile(0.5), d.Max)
	}
}

// TestLatestIsWhole: readers see whole values, never older than one they have seen.
func TestLatestIsWhole(t *testing.T) {
	l := NewLatest[[64]int]()
	const last = 20000
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var v [64]int
			for seen := 0; seen < last; {
				if !l.Get(&v) {
					continue
				}
				if v[0] < seen || v != filled(v[0]) {
					t.Errorf("got %v after %d", v, seen)
					return
				}
				seen = v[0]
			}
		})
	}
	for i := 1; i <= last; i++ {
		*l.Next() = filled(i)
		l.Publish()
	}
	wg.Wait()
}

// TestLatestForOneReader: the only reader sees whole values without a lock, never older than one it has seen.
func TestLatestForOneReader(t *testing.T) {
	l := NewLatest[[64]int]()
	const last = 20000
	var v [64]int
	if l.GetAlone(&v) {
		t.Error("a value before the first")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; i <= last; i++ {
			*l.Next() = filled(i)
			l.Publish()
		}
	})
	for seen := 0; seen < last; {
		if l.GetAlone(&v) && (v[0] < seen || v != filled(v[0])) {
			t.Fatalf("got %v after %d", v, seen)
		}
		seen = v[0]
	}
	wg.Wait()
	if n := testing.AllocsPerRun(100, func() { l.GetAlone(&v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func filled(i int) (v [64]int) {
	for k := range v {
		v[k] = i
	}
	return v
}

// TestMailboxKeepsOrder: from each of several producers every accepted command arrives once, in order.
func TestMailboxKeepsOrder(t *testing.T) {
	var m Mailbox[[2]int]
	const producers, each = 4, 2000
	for p := range producers {
		go func() {
			for i := range each {
				for !m.Post([2]int{p, i}) {
				}
			}
		}()
	}
	var next [producers]int
	for got := 0; got < producers*each; {
		c := m.Peek()
		if c == nil {
			continue
		}
		p, i := c[0], c[1]
		if next[p] != i {
			t.Fatalf("producer %d: got %d, want %d", p, i, next[p])
		}
		next[p]++
		m.Drop()
		got++
	}
}
