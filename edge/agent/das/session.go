package das

import (
	"cmp"
	"encoding/json"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/events"
)

// session is the session that later events belong to; events with these names open and close it (VEC-DAS-12, VEC-DAS-18). s1 is the identifier, for a
// feature s3 is the run and s4 the type, as in the original. The profile survives a boot, the rest a restart of agentd within one.
type session struct {
	profile string

	BLE     string `json:"ble_conn_id,omitempty"`
	Wifi    string `json:"wifi_conn_id,omitempty"`
	Run     string `json:"feature_run_id,omitempty"`
	Feature string `json:"feature_type,omitempty"`
}

func (s *session) apply(e *events.Event) {
	switch e.Name {
	case "behavior.feature.pre_start", "behavior.feature.start":
		s.Run, s.Feature = cmp.Or(e.S3, e.FeatureRunID, s.Run), cmp.Or(e.S4, e.FeatureType, s.Feature)
	case "profile_id.start":
		s.profile = e.S1
	case "profile_id.stop":
		s.profile = ""
	case "ble_conn_id.start":
		s.BLE = e.S1
	case "ble_conn_id.stop":
		s.BLE = ""
	case "wifi_conn_id.start":
		s.Wifi = e.S1
	case "wifi_conn_id.stop":
		s.Wifi = ""
	}
	e.ProfileID = cmp.Or(e.ProfileID, s.profile)
	e.BLEConnID = cmp.Or(e.BLEConnID, s.BLE)
	e.WifiConnID = cmp.Or(e.WifiConnID, s.Wifi)
	e.FeatureRunID = cmp.Or(e.FeatureRunID, s.Run)
	e.FeatureType = cmp.Or(e.FeatureType, s.Feature)
	if e.Name == "behavior.feature.end" {
		s.Run, s.Feature = "", ""
	}
}

// ProfileID returns the profile that events belong to now; "": none (VEC-TOK-09).
func (m *Manager) ProfileID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session.profile
}

// keepSession writes a session that changed into the two files of globals, so that the next agentd continues it.
func (m *Manager) keepSession(now session) {
	m.disk.Lock()
	defer m.disk.Unlock()
	m.mu.Lock()
	if m.session != now { // a later one is about to be kept
		m.mu.Unlock()
		return
	}
	was := m.kept
	m.kept = now
	allow := m.allowed
	m.mu.Unlock()
	var err error
	if was.profile != now.profile {
		err = loadGlobals(m.conf.Root, m.file.PersistentGlobals).save(m.conf.Root, m.file.PersistentGlobals, allow, now.profile)
	}
	if was.profile = now.profile; err == nil && was != now {
		var b []byte
		if b, err = json.Marshal(map[string]session{"dasGlobals": now}); err == nil {
			err = robotfs.WriteFile(m.conf.Root, m.file.TransientGlobals, b, 0o644)
		}
	}
	if err != nil {
		m.log.Warn("event session not saved; lost at the next restart", "err", err)
	}
}

// loadSession returns the session of an agentd before; one that was not kept is empty.
func (m *Manager) loadSession(profile string) session {
	var f struct {
		G session `json:"dasGlobals"`
	}
	if robotfs.ReadJSON(m.conf.Root, m.file.TransientGlobals, &f) != nil {
		f.G = session{}
	}
	f.G.profile = profile
	return f.G
}
