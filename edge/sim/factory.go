// Package sim makes and runs whole simulated robots: a folder that is the robot's file system, a board on the other end of a socket, and
// the same robotd and agentd that a real robot runs, as processes of their own (VEC-FLE-07: one agent, driver selection by
// configuration only).
package sim

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"kennel/certs/devicecert"
	"kennel/edge/bodies"
	"kennel/edge/body/bodysim"
	"kennel/edge/body/vector/factory/emr"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

//go:embed all:assets
var assets embed.FS

// simFile holds the body's starting condition, which on a real robot is the world's.
const simFile = "factory/kennel/sim.json"

// Birth holds the factory's data of a robot before its first boot.
type Birth struct {
	Thing     thing.ID
	Secret    string // claim secret
	Endpoints platform.Endpoints
	RootPEM   []byte // the root the robot shall trust
	OSVersion string
	World     World
	Card      string // folder with what is on its memory card; "": as it is
	Model     string // of its species, such as "ers-210"; "": the usual one
	// ReleaseKey is the public key, in PEM, of those who may sign the robot's releases. With it the robot has two slots; without, it installs none.
	ReleaseKey []byte
	// ReleaseRoot is the first root of release metadata, which the robot then uses; none: it installs what ReleaseKey signed.
	ReleaseRoot []byte
}

// World is the simulated body's surroundings at its first boot.
type World struct {
	BatteryVolts float64 `json:"battery_volts"` // 0 at birth: as its species usually has
	OnCharger    bool    `json:"on_charger"`
	Seed         uint64  `json:"seed"`
}

// Make builds the robot's folder in dir. A folder that already is this robot is left as it is, except for the endpoints and the trust
// root, which may have moved, and for slots that it lacks: a robot keeps its data. Another robot's folder is an error.
func Make(dir string, b Birth) error {
	kind, err := speciesOf(b.Thing)
	if err != nil {
		return err
	}
	if known, _ := bodies.Of(b.Thing.Species()); b.Model != "" {
		if _, err := known.Named(b.Model); err != nil {
			return err
		}
	}
	if b.Card != "" && kind.Card == "" {
		return fmt.Errorf("%s has no slot for a card", kind.Name())
	}
	serial, err := strconv.ParseUint(b.Thing.Serial(), 16, 32)
	if err != nil || len(b.Thing.Serial()) != 8 {
		return fmt.Errorf("serial of %s: want 8 lower-case hex digits (VEC-STOR-03)", b.Thing)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() // nothing buffered
	if err := build(root, b, kind, uint32(serial)); err != nil || b.Card == "" {
		return err
	}
	if err := root.RemoveAll(kind.Card); err != nil {
		return err
	}
	return copyFiles(root, os.DirFS(b.Card), ".", kind.Card)
}

// build makes the folder, or brings an existing one up to date.
func build(root *os.Root, b Birth, kind bodysim.Species, serial uint32) error {
	switch id, err := platform.ID(root, bodies.Hardware{}); {
	case err == nil && id != b.Thing:
		return fmt.Errorf("%s contains robot %s, want %s", root.Name(), id, b.Thing)
	case err == nil:
		if _, err := root.Stat("slots"); len(b.ReleaseKey) > 0 && errors.Is(err, fs.ErrNotExist) {
			b.OSVersion = platform.OSVersion(root)
			if err := writeSlots(root, b); err != nil {
				return err
			}
		}
		return writeEndpoints(root, b)
	}
	if err := copyFiles(root, assets, "assets", "."); err != nil {
		return err
	}
	rec := emr.Record{ESN: serial, HardwareRev: 7, Model: 1, LotCode: 21836201, PlaypenReady: 1, PlaypenPassed: 1, PackedOut: 1,
		PackedOutDate: uint32(time.Date(2018, 9, 3, 0, 0, 0, 0, time.UTC).Unix())}
	if err := devicecert.WriteClaim(root, devicecert.Claim{Thing: b.Thing, Secret: logging.Secret(b.Secret)}); err != nil {
		return err
	}
	if b.Model != "" {
		if err := robotfs.WriteFile(root, robotfs.ModelFile, []byte(b.Model+"\n"), 0o644); err != nil {
			return err
		}
	}
	b.World.BatteryVolts = cmp.Or(b.World.BatteryVolts, kind.Volts)
	world, err := json.MarshalIndent(b.World, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
		perm fs.FileMode
	}{
		{platform.OSVersionFile, []byte(b.OSVersion + "\n"), 0o644},
		{robotfs.SpeciesFile, []byte(kind.Species + "\n"), 0o644},
		{simFile, world, 0o644},
	} {
		if err := robotfs.WriteFile(root, f.name, f.data, f.perm); err != nil {
			return err
		}
	}
	if err := writeEndpoints(root, b); err != nil {
		return err
	}
	if len(b.ReleaseKey) > 0 {
		if err := writeSlots(root, b); err != nil {
			return err
		}
	}
	// The record comes last: a folder with a record is a whole robot. This is the factory, and the robot is not packed yet.
	return emr.Write(root, rec, true)
}

func writeEndpoints(root *os.Root, b Birth) error {
	server, err := json.MarshalIndent(b.Endpoints, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		robotfs.WriteFile(root, platform.ServerConfigFile, server, 0o644),
		devicecert.WriteRoot(root, b.RootPEM))
}

// copyFiles copies the files in a folder of from to the folder to of the robot.
func copyFiles(root *os.Root, from fs.FS, folder, to string) error {
	return fs.WalkDir(from, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		return robotfs.WriteFile(root, path.Join(to, strings.TrimPrefix(name, folder+"/")), data, 0o644)
	})
}
