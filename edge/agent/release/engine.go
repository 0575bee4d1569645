package release

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/env"
	"kennel/edge/env/platform"
	"kennel/edge/update"
	"kennel/edge/update/disk"
	"kennel/edge/update/slot"
	"kennel/infra/api/events"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/logging"
	"kennel/ota"
	"kennel/ota/manifest"
)

// Files, below the robot's root.
const (
	KeyFile      = "anki/etc/ota.pub"               // who may sign releases (VEC-OTA-05)
	PasswordFile = "anki/etc/ota.pas"               // first line: the password of encrypted images (VEC-OTA-07)
	SerialFile   = "sys/devices/soc0/serial_number" // of the processor
)

// Slots opens the slots of the robot; nil if it has none. A factory update that asked for the owner's data to be erased is obeyed first.
func Slots(root *os.Root, hw env.Hardware) (*slot.Device, error) {
	boot, err := hw.Boot(root)
	if err != nil {
		return nil, err
	}
	running := slot.Name(boot.Slot)
	if running == "" {
		running = slot.A // a boot loader without slots starts the first one
	}
	dev, err := slot.Open(disk.Of(root), running)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !dev.Record().Wipe {
		return dev, err
	}
	if err := wipe.Request(root); err != nil {
		return dev, fmt.Errorf("erase the owner's data after a factory update: %w", err)
	}
	return dev, dev.WipeAsked()
}

// NewUpdater returns the updater of a robot with slots; nil if it lacks what an updater needs, and why. It asks the cloud for release metadata; believed
// returns the time to check them with.
func NewUpdater(robot host.Robot, dev *slot.Device, dial func(context.Context, string, string) (net.Conn, error), ask kitmqtt.Requester, believed func() time.Time) (Updater, error) {
	vouch, err := voucher(robot, ask, believed)
	if err != nil {
		return nil, err
	}
	key, password, err := keys(robot.Root)
	if err != nil {
		return nil, err
	}
	boot, err := robot.Hardware.Boot(robot.Root)
	if err != nil {
		return nil, err
	}
	env := func() update.Env {
		e, err := platform.LoadUpdateEngine(robot.Root, robot.Getenv)
		if err != nil {
			robot.Log.Warn("settings ignored", logging.Err, err) // the rest of them is in force
		}
		return update.Env{BaseURL: e.BaseURL, DevBaseURL: e.DevBaseURL, Type: e.OTAType, Shard: e.Shard, Sharding: e.UseSharding, URL: e.URL,
			AllowDowngrade: e.AllowDowngrade}
	}
	running, err := ota.ParseVersion(robot.OS)
	if err != nil {
		return nil, err
	}
	serial, err := robot.Root.ReadFile(SerialFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return update.New(update.Config{
		Disk: disk.Of(robot.Root), Device: dev, Key: key, Password: password, Vouch: vouch, Client: client(robot, dial), Log: robot.Log,
		Unit: update.Unit{Running: running, Development: boot.Dev, Recovery: robot.Recovery, QSN: strings.TrimSpace(string(serial))}, Env: env,
		Record: func(ctx context.Context, e events.Event) {
			if err := robot.Keep(ctx, e); err != nil {
				robot.Log.WarnContext(ctx, "event not recorded", "event", e.Name, logging.Err, err)
			}
		},
	}), nil
}

func keys(root *os.Root) (*rsa.PublicKey, []byte, error) {
	text, err := root.ReadFile(KeyFile)
	if err != nil {
		return nil, nil, err
	}
	key, err := manifest.ParseKey(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", KeyFile, err)
	}
	password, err := root.ReadFile(PasswordFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	line, _, _ := strings.Cut(string(password), "\n")
	return key, []byte(line), nil
}

// client downloads from public servers and from the robot's own cloud. What it downloads is signed; TLS keeps others from seeing what that is.
func client(robot host.Robot, dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if own, err := robot.Root.ReadFile(platform.RootCertFile); err == nil {
		roots.AppendCertsFromPEM(own)
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, ResponseHeaderTimeout: 30 * time.Second,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Time: robot.Now}}}
}
