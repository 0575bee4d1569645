package jdocstest

import (
	"testing"

	"kennel/jdocs"
)

func TestMemory(t *testing.T) {
	RunStore(t, func(*testing.T) jdocs.Store { return NewMemory() })
}
