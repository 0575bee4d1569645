package ratelimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestBurstThenPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(10*time.Second, 3)
		for i := range 3 {
			if wait := k.Allow("a"); wait != 0 {
				t.Fatalf("attempt %d of the burst waits %v", i+1, wait)
			}
		}
		for range 5 { // a refused attempt costs nothing
			if wait := k.Allow("a"); wait <= 9*time.Second || wait > 10*time.Second {
				t.Fatalf("fourth attempt waits %v, want 10s", wait)
			}
		}
		if wait := k.Allow("b"); wait != 0 {
			t.Errorf("another key waits %v", wait)
		}
		time.Sleep(10 * time.Second) // simulated
		if wait := k.Allow("a"); wait != 0 {
			t.Errorf("after the pause: still %v", wait)
		}
	})
}

// TestWait: to ask how long to wait takes no attempt.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(10*time.Second, 1)
		for range 5 {
			if wait := k.Wait("a"); wait != 0 {
				t.Fatalf("nothing was tried: %v", wait)
			}
		}
		k.Allow("a")
		for range 5 {
			if wait := k.Wait("a"); wait <= 9*time.Second || wait > 10*time.Second {
				t.Fatalf("after the one attempt: %v, want 10s", wait)
			}
		}
		time.Sleep(10 * time.Second) // simulated
		if wait := k.Wait("a"); wait != 0 || k.Allow("a") != 0 {
			t.Errorf("after the pause: %v", wait)
		}
	})
}

func TestAddressesShareTheirNetwork(t *testing.T) {
	for _, c := range []struct{ a, b string }{
		{"192.0.2.1:1000", "192.0.2.1:2000"},
		{"192.0.2.1", "[::ffff:192.0.2.1]:5"},
		{"[2001:db8::1]:80", "2001:db8::ffff"},
		{"[fe80::1%eth0]:80", "fe80::2"},
		{"not an address", "not an address"},
	} {
		k := NewByAddr(time.Hour, 1)
		if k.Allow(c.a) != 0 || k.Allow(c.b) == 0 {
			t.Errorf("%s and %s do not share a limit", c.a, c.b)
		}
	}
	k := NewByAddr(time.Hour, 1)
	if k.Allow("192.0.2.1:1") != 0 || k.Allow("192.0.2.2:1") != 0 {
		t.Error("two IPv4 addresses share a limit")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := New(time.Minute, 1)
		k.max = 100
		for i := range 1000 {
			k.Allow(fmt.Sprint(i))
		}
		if n := len(k.buckets); n > 100 {
			t.Errorf("%d keys kept, want at most 100", n)
		}
		time.Sleep(2 * time.Minute) // simulated: all have their token again
		k.Allow("new")
		if n := len(k.buckets); n != 1 {
			t.Errorf("%d keys kept after the sweep, want 1", n)
		}
	})
}
