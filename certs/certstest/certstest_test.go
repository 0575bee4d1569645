package certstest

import "testing"

func TestMemoryStore(t *testing.T) { RunStore(t, new(Store)) }
