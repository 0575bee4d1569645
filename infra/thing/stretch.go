package thing

import "time"

// Stretch is a stretch of time of one thing, from Since to before Until.
type Stretch struct {
	Thing ID        `json:"thing"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Holds reports whether the stretch has a time of a thing.
func (s Stretch) Holds(id ID, at time.Time) bool {
	return id == s.Thing && !at.Before(s.Since) && at.Before(s.Until)
}
