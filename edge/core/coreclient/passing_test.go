package coreclient

import (
	"errors"
	"fmt"
	"testing"

	"kennel/edge/core/corelink"
	"kennel/edge/motion"
)

// TestPassing: a stop that ends by itself may be tried again; one that has another reason too, another end or another refusal may not.
func TestPassing(t *testing.T) {
	stopped := func(r motion.Reason) corelink.Ended { return corelink.Ended{Outcome: "stopped", Reasons: r.Words()} }
	for i, tc := range []struct {
		end  corelink.Ended
		err  error
		want bool
	}{
		{stopped(motion.Watchdog), nil, true},
		{stopped(motion.Watchdog | motion.Link), nil, true},
		{stopped(motion.Watchdog | motion.Cliff), nil, false},
		{stopped(0), nil, false},
		{corelink.Ended{Outcome: corelink.Done}, nil, false},
		{corelink.Ended{}, fmt.Errorf("keyframe: %w", &Refused{"stopped", "not now: " + motion.Watchdog.Words()[0]}), true},
		{corelink.Ended{}, &Refused{"stopped", motion.Halted.Words()[0]}, false},
		{corelink.Ended{}, &Refused{"busy", motion.Watchdog.Words()[0]}, false},
		{stopped(motion.Watchdog), errors.New("lost"), false},
	} {
		if got := Passing(tc.end, tc.err); got != tc.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
