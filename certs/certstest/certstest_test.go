package certstest

import (
	"testing"

	"kennel/certs"
)

func TestMemoryStore(t *testing.T) {
	RunStore(t, func(*testing.T) certs.Store { return new(Store) })
}
