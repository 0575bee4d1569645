// Package recovery gives an agent a root of its own after a recovery boot.
//
// After a recovery boot agentd never opens the user data, which may keep the robot from starting, or be written by a newer release
// (VEC-BOOT-07). It uses a root of its own: an area of the boot's memory file system, with copies of the files about the robot's
// identity and the cloud's addresses. Its writes stay there and end with the boot (part of VEC-BOOT-12 the temporary area); the factory's files stay
// unchanged. Because the agent cannot leave its root, no other care is needed, except where the cloud would mistake the empty area
// for the robot's new state: documents are not synchronised, events are not kept, because the owner's consent is unknown, and a
// certificate is used but a first one is never requested.
package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"kennel/certs/devicecert"
	"kennel/edge/agent/host"
	"kennel/edge/body/vector/factory/bootparam"
	"kennel/edge/body/vector/factory/emr"
	"kennel/edge/body/vector/factory/oem"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/status"
)

// dir is the area.
const dir = "run/recovery"

// copies are the files and folders that are copied into it, if they are there.
var copies = []string{
	bootparam.File, platform.OSVersionFile, platform.VersionFile, platform.RootCertFile, platform.ServerConfigFile, platform.PlatformFile,
	"anki/etc", oem.Dir, path.Dir(devicecert.KeyFile),
}

// Part reports to the cloud that a robot is in recovery.
func Part(h *host.Host) host.Part {
	p := host.Part{Name: "recovery"}
	if h.Recovery {
		p.Fill = func(m *status.Message) {
			m.Tell(status.Problem{Kind: status.KindRecovery,
				Text: "recovery boot: the user data are left alone and no setting is in force; switch the robot off and on for a normal boot"})
		}
	}
	return p
}

// Area creates the area again, and returns it as a root.
func Area(root *os.Root) (*os.Root, error) {
	if err := root.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	area, err := root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range copies {
		if err := copyInto(area, root, name); err != nil {
			_ = area.Close() // err says more
			return nil, err
		}
	}
	// The medical record is a device on the original, so it is read as one. A part that needs an unreadable one will say so.
	if rec, err := emr.Read(root); err == nil {
		if err := robotfs.WriteFile(area, emr.Path, rec.Append(nil), 0o644); err != nil {
			_ = area.Close() // likewise
			return nil, err
		}
	}
	return area, nil
}

// copyInto copies a file, or a folder with the plain files in it and below. It leaves out everything else, above all links.
func copyInto(to, from *os.Root, name string) error {
	return fs.WalkDir(from.FS(), name, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("copy %s: %w", name, err)
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		b, err := robotfs.ReadFile(from, name)
		if err == nil {
			err = to.MkdirAll(path.Dir(name), 0o700)
		}
		if err == nil {
			err = to.WriteFile(name, b, info.Mode().Perm())
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		return nil
	})
}
