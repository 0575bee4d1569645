package das

import (
	"cmp"

	"kennel/infra/api/events"
)

// session is the session that later events belong to; events with these names open and close it (VEC-DAS-12, VEC-DAS-18). s1 is the identifier, for a
// feature s3 is the run and s4 the type, as in the original.
type session struct {
	profile, ble, wifi, run, feature string
}

// ProfileID returns the profile that events belong to now; "": none (VEC-TOK-09).
func (m *Manager) ProfileID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session.profile
}

func (s *session) apply(e *events.Event) {
	switch e.Name {
	case "behavior.feature.start":
		s.run, s.feature = e.S3, e.S4
	case "profile_id.start":
		s.profile = e.S1
	case "profile_id.stop":
		s.profile = ""
	case "ble_conn_id.start":
		s.ble = e.S1
	case "ble_conn_id.stop":
		s.ble = ""
	case "wifi_conn_id.start":
		s.wifi = e.S1
	case "wifi_conn_id.stop":
		s.wifi = ""
	}
	e.ProfileID = cmp.Or(e.ProfileID, s.profile)
	e.BLEConnID = cmp.Or(e.BLEConnID, s.ble)
	e.WifiConnID = cmp.Or(e.WifiConnID, s.wifi)
	e.FeatureRunID = cmp.Or(e.FeatureRunID, s.run)
	e.FeatureType = cmp.Or(e.FeatureType, s.feature)
}
