package platform

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"addresses of the cloud (VEC-CLD-01)": {ServerConfigFile, "anki/data/assets/cozmo_resources/config/server_config.json"},
		"the three roots (VEC-CFG-02)":        {PlatformFile, "anki/etc/config/platform_config.json"},
		"updates (VEC-CLD-05)":                {UpdateEngineFile, "anki/etc/update-engine.env"},
		"one update (VEC-CLD-05)":             {UpdateEngineOneshotFile, "run/update-engine-oneshot.env"},
		"an update by the app (VEC-CLD-05)":   {UpdateEngineAppFile, "run/vic-switchboard/update-engine.env"},
		"nightly boot (VEC-CLD-05)":           {RebooterFile, "data/etc/rebooter.env"},
		"logs (VEC-CLD-05)":                   {LogUploaderFile, "anki/etc/vic-log-uploader.env"},
		"faults (VEC-CLD-05)":                 {FaultHandlerFile, "anki/etc/fault-code-handler.env"},
		"certificates (VEC-CLD-05)":           {GatewayCertFile, "anki/etc/vic-gateway-cert.env"},
		"crashes (VEC-CRS-04)":                {CrashUploaderFile, "anki/etc/vic-crashuploader.env"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
