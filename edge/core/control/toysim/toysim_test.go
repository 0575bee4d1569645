package toysim

import (
	"io"
	"testing"
	"time"

	"kennel/edge/body"
	"kennel/edge/body/bodytest"
)

// TestBody: the toy is a body as every other.
func TestBody(t *testing.T) {
	bodytest.Run(t, func(*testing.T) body.Body { return open(io.Discard, 10*time.Millisecond) })
}
