package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"kennel/infra/logging"
)

// Config is the broker's configuration file, in JSON. Files are PEM and are read again when they change.
type Config struct {
	Listen     string `json:"listen"`                // host:port; there is no listener without TLS
	Cert       string `json:"cert"`                  // server certificate with its chain
	Key        string `json:"key"`                   // its key
	DeviceCA   string `json:"device_ca"`             // the authorities that issue to things: the issuing ones, not a root they share with others
	ServiceCA  string `json:"service_ca"`            // the authorities that issue to the cloud's processes
	Denied     string `json:"denied,omitempty"`      // file in which the broker keeps the cloud's deny list; "": not kept over a restart
	MaxClients int64  `json:"max_clients,omitempty"` // most that proved who they are; default 20,000, or what the limit of file descriptors leaves
	LogLevel   string `json:"log_level,omitempty"`   // debug, info (default), warn, error
	LogFormat  string `json:"log_format,omitempty"`  // text (default) or json

	// Listening, if set, is called with the address once connections are accepted.
	Listening func(net.Addr) `json:"-"`
}

// ReadConfig reads a configuration file. Unknown keys are errors.
func ReadConfig(file string) (Config, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("broker configuration: %w", err)
	}
	cfg, err := parseConfig(b)
	if err != nil {
		return Config{}, fmt.Errorf("broker configuration %s: %w", file, err)
	}
	return cfg, nil
}

func parseConfig(b []byte) (Config, error) {
	var cfg Config
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&cfg); err != nil {
		return Config{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("data after the JSON object at byte %d", dec.InputOffset())
	}
	return cfg, cfg.validate()
}

func (c Config) validate() error {
	for _, f := range []struct{ name, value string }{
		{"listen", c.Listen}, {"cert", c.Cert}, {"key", c.Key}, {"device_ca", c.DeviceCA}, {"service_ca", c.ServiceCA},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is missing", f.name)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if c.MaxClients < 0 {
		return fmt.Errorf("max_clients is %d: want a number above 0, or 0 for the default", c.MaxClients)
	}
	return nil
}

// Main reads the configuration file and runs the broker until ctx ends, logging to stderr: the broker's process is this call.
func Main(ctx context.Context, file string, stderr io.Writer) error {
	cfg, err := ReadConfig(file)
	if err != nil {
		return err
	}
	if cfg.LogLevel == "" {
		cfg.LogLevel = "info"
	}
	log, err := logging.New(stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return fmt.Errorf("broker configuration %s: %w", file, err)
	}
	return Run(ctx, cfg, log)
}
