package housetest

import (
	"testing"

	"kennel/infra/mqtt/brokeradmin/mosquitto" // these tests have a word of that name
)

// ComposeMosquitto is the broker of compose.yaml, with its container's paths.
var ComposeMosquitto = mosquitto.Broker{
	Things: "0.0.0.0:8883", Services: "0.0.0.0:8884", Cert: "/run/kennel/server.crt", Key: "/run/kennel/server.key",
	DeviceCA: "/run/kennel/device-anchor.crt", ServiceCA: "/run/kennel/service-anchor.crt",
	DeviceCRL:    "/run/lists/device.crl",
	SecurityFile: "/var/lib/mosquitto/security.json", Plugin: "/usr/lib/mosquitto_dynamic_security.so",
}

// MosquittoPlugin is where this machine has what the container image has elsewhere.
func MosquittoPlugin(t testing.TB) string {
	t.Helper()
	file, err := mosquitto.FindPlugin()
	if err != nil {
		t.Fatal(err)
	}
	return file
}
