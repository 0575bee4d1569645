package platform

import "testing"

// TestFiles: where the original's programs look (VEC-CLD-01, VEC-CLD-05, VEC-CFG-02).
func TestFiles(t *testing.T) {
	for got, want := range map[string]string{
		ServerConfigFile:        "anki/data/assets/cozmo_resources/config/server_config.json",
		PlatformFile:            "anki/etc/config/platform_config.json",
		UpdateEngineFile:        "anki/etc/update-engine.env",
		UpdateEngineOneshotFile: "run/update-engine-oneshot.env",
		UpdateEngineAppFile:     "run/vic-switchboard/update-engine.env",
		RebooterFile:            "data/etc/rebooter.env",
		LogUploaderFile:         "anki/etc/vic-log-uploader.env",
		CrashUploaderFile:       "anki/etc/vic-crashuploader.env",
		FaultHandlerFile:        "anki/etc/fault-code-handler.env",
		GatewayCertFile:         "anki/etc/vic-gateway-cert.env",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
