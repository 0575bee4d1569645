package coreclient

import (
	"errors"
	"slices"
	"strings"

	"kennel/edge/core/corelink"
	"kennel/edge/motion"
)

// Passing reports whether a motion ended, or an order was refused, only because the robot's loop was late or its body not heard for a moment: what was asked for
// is still possible, and may be tried again.
func Passing(end corelink.Ended, err error) bool {
	passing := slices.Concat(motion.Watchdog.Words(), motion.Link.Words())
	if err != nil {
		var refused *Refused
		return errors.As(err, &refused) && refused.Code == "stopped" && slices.ContainsFunc(passing, func(w string) bool { return strings.Contains(refused.Detail, w) })
	}
	return end.Outcome == "stopped" && len(end.Reasons) > 0 && !slices.ContainsFunc(end.Reasons, func(r string) bool { return !slices.Contains(passing, r) })
}
