// Package platform reads the robot's facts about itself and its cloud from the files below its root: its identity, its release, its boot
// id, the cloud's addresses.
package platform

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"

	"kennel/certs/devicecert"
	"kennel/edge/env"
	"kennel/edge/env/robotfs"
	"kennel/edge/faultcode"
	"kennel/infra/thing"
)

// Files, relative to the robot's root.
const (
	ServerConfigFile = robotfs.Resources + "/config/server_config.json" // VEC-CLD-01; the path is fixed
	PlatformFile     = "anki/etc/config/platform_config.json"           // VEC-CFG-02
	RootCertFile     = "etc/ssl/certs/local/root.crt"                   // the extra trust root that original robots read
	OSVersionFile    = robotfs.OSVersionFile
	VersionFile      = robotfs.VersionFile
	BootIDFile       = robotfs.BootIDFile
)

// Endpoints is the server configuration. The original's keys are kept; Kennel's own agent uses the block "kennel".
type Endpoints struct {
	AppKey   string `json:"appkey"`
	Check    string `json:"check"`
	Chipper  string `json:"chipper"`
	Jdocs    string `json:"jdocs"`
	LogFiles string `json:"logfiles"`
	TMS      string `json:"tms"`
	Vision   string `json:"offboard_vision,omitempty"`
	Kennel   struct {
		API  string `json:"api"`            // https://host:port, enrolment and large bodies
		MQTT string `json:"mqtt,omitempty"` // ssl://host:port; empty: the address from the cloud at enrolment
		// Build is the kind of robot that these endpoints are for: "production" or "development"; empty: production (VEC-CLD-06).
		Build Build `json:"build,omitempty"`
	} `json:"kennel"`
}

// LoadEndpoints reads the server configuration. A missing or invalid file is an error that names the file and the key; the robot's core
// works without a cloud (VEC-CLD-01, VEC-ARCH-07).
func LoadEndpoints(root *os.Root, hw env.Hardware) (Endpoints, error) {
	var e Endpoints
	if err := robotfs.ReadJSON(root, ServerConfigFile, &e); err != nil {
		return Endpoints{}, fmt.Errorf("server configuration: %w", err)
	}
	build, err := RobotBuild(root, hw)
	if err != nil {
		return Endpoints{}, fmt.Errorf("server configuration: %w", err)
	}
	if want := cmp.Or(e.Kennel.Build, Production); want != build {
		return Endpoints{}, fmt.Errorf("server configuration: %s is for %s robots (kennel.build), but this is a %s robot, and these never share a cloud",
			ServerConfigFile, want, build)
	}
	for _, u := range []struct{ key, value, scheme string }{
		{"kennel.api", e.Kennel.API, "https"},
		{"kennel.mqtt", e.Kennel.MQTT, "ssl"},
	} {
		if u.value == "" && u.scheme == "ssl" {
			continue
		}
		p, err := url.Parse(u.value)
		if err != nil || p.Scheme != u.scheme || p.Host == "" {
			return Endpoints{}, fmt.Errorf("server configuration: %s: %s is %q: want %s://host:port", ServerConfigFile, u.key, u.value, u.scheme)
		}
		if _, _, err := net.SplitHostPort(p.Host); err != nil && u.scheme == "ssl" {
			return Endpoints{}, fmt.Errorf("server configuration: %s: %s is %q: the port is missing", ServerConfigFile, u.key, u.value)
		}
	}
	return e, nil
}

// ID returns the robot's thing id: species, and the serial number of its hardware (VEC-TOK-01, VEC-STOR-03). An error is fault
// 852 (VEC-TOK-08).
func ID(root *os.Root, hw env.Hardware) (thing.ID, error) {
	id, err := readID(root, hw)
	return id, faultcode.Wrap(faultcode.CloudESN, err)
}

// Factory returns the robot's factory identity, read and checked at start (VEC-STOR-09, VEC-TOK-02). found is false for a robot that was born
// without one. An error is fault 850 (VEC-TOK-08): there is one, and it is damaged, not the original's, or another robot's.
func Factory(root *os.Root, id thing.ID) (f devicecert.Factory, found bool, err error) {
	f, err = devicecert.ReadFactory(root)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, devicecert.ErrFactory):
		return devicecert.Factory{}, false, nil
	case err == nil && f.Thing() != id:
		err = fmt.Errorf("%w: %s is for %s: want %s, by the serial number of this robot", devicecert.ErrFactory, devicecert.FactoryDir, f.Thing(), id)
	}
	if err != nil {
		return devicecert.Factory{}, true, faultcode.Wrap(faultcode.CloudCertificate, err)
	}
	return f, true, nil
}

func readID(root *os.Root, hw env.Hardware) (thing.ID, error) {
	species, err := robotfs.Species(root)
	if err != nil {
		return "", err
	}
	serial, err := hw.Serial(root)
	if err != nil {
		return "", fmt.Errorf("serial number: %w", err)
	}
	return thing.New(species, serial)
}

// BootID returns the id of this boot (VEC-DAS-03).
func BootID(root *os.Root) (string, error) { return robotfs.BootID(root) }

// OSVersion returns the release the robot runs, such as "2.0.0.6074"; "unknown" where no file says.
func OSVersion(root *os.Root) string { return robotfs.OSVersion(root) }

// startedFile is there once an agentd has started in this boot: run/ is emptied at boot.
const startedFile = "run/kennel/started"

// FirstStart notes that an agentd starts, and reports whether it is the first in this boot.
func FirstStart(root *os.Root) (bool, error) {
	if _, err := root.Stat(startedFile); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	err := robotfs.WriteFile(root, startedFile, nil, 0o644)
	return err == nil, err
}
