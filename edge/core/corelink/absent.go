package corelink

// Absent says which devices are gone (GOSTAI-OPEN-13): when one goes or is back, each time all of
// them, and to who joins. Their parts are gone with them; the tree keeps them all, and their slots
// are unavailable, but for what never changes.
type Absent struct {
	AtUS    int64      `json:"at_us"` // CLOCK_MONOTONIC
	Devices []Absentee `json:"devices,omitempty"`
}

// Absentee is a device that is gone.
type Absentee struct {
	Full    string `json:"full"`
	SinceUS int64  `json:"since_us"` // CLOCK_MONOTONIC
	Why     string `json:"why"`      // for people
}
