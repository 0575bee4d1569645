package gateway

import "testing"

// TestRestAfterRelease: an order whose lease has ended leaves the connection alone, which may be another order's by then.
func TestRestAfterRelease(t *testing.T) {
	g := &Gateway{leases: &leases{all: map[string]*lease{}}}
	g.rest(&lease{id: "released"}, 0, nil) // it has no connection to claim on
}
