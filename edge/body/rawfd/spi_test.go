package rawfd

import "testing"

// TestRequests: the numbers are those of the kernel's header.
func TestRequests(t *testing.T) {
	write := func(size, number uintptr) uintptr { return 1<<30 | size<<16 | 'k'<<8 | number }
	if spiWriteMode != write(1, 1) || spiWriteBits != write(1, 3) || spiWriteHertz != write(4, 4) {
		t.Error("numbers of the requests")
	}
}
