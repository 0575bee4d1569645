package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"kennel/edge/agent/release"
	"kennel/edge/body/vector/factory/bootparam"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
	"kennel/edge/update/cardimage"
	"kennel/edge/update/disk"
	"kennel/edge/update/slot"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/manifest"
)

// System is the content of a simulated system image: what the programs of that release do. What follows its line is ballast.
type System struct {
	Version ota.Version `json:"version"`
	// Dies is the share of robots, in percent, on which its programs end right after each start: a bad release.
	Dies float64 `json:"dies,omitempty"`
	// Card has the files that the release brings to the robot's memory card; nil: it brings none.
	Card *cardimage.Files `json:"-"`
}

// DiesOn reports whether the programs of a release end right after each start on a robot. It is the same for every release with that share.
func (s System) DiesOn(id thing.ID) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return float64(h.Sum32()%10_000) < 100*s.Dies
}

// Image returns a system image of at least size bytes.
func (s System) Image(size int) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // of strings and numbers
	}
	b = append(b, '\n')
	for n := 0; len(b) < size; n++ { // a program is neither noise nor all zeros
		b = fmt.Appendf(b, "%s block %d\n", s.Version, n*n)
	}
	return b
}

// writeSlots gives a robot its two slots, of which the first has the system that it was born with, and the factory's images.
func writeSlots(root *os.Root, b Birth) error {
	v, err := ota.ParseVersion(b.OSVersion)
	if err != nil {
		return err
	}
	d := disk.Of(root)
	content := func(v ota.Version, images map[manifest.Part][]byte) (slot.Content, error) {
		c := slot.Content{Version: v, Images: map[manifest.Part]slot.Sum{}}
		for part, data := range images {
			f, err := d.Write(slot.File(part, slot.A))
			if err != nil {
				return c, err
			}
			_, err = f.WriteAt(data, 0)
			if err == nil {
				c.Images[part], err = slot.SumOf(f, int64(len(data)))
			}
			if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
				return c, err
			}
		}
		return c, d.SyncDir("slots")
	}
	system, err := content(v, map[manifest.Part][]byte{manifest.Boot: []byte("kernel of " + b.OSVersion), manifest.System: System{Version: v}.Image(1 << 10)})
	if err != nil {
		return err
	}
	const rescue = "0.9.0.0"
	factory, err := content(rescue, map[manifest.Part][]byte{manifest.ABoot: []byte("loader"), manifest.Recovery: []byte("rescue kernel"),
		manifest.RecoveryFS: System{Version: rescue}.Image(1 << 10)})
	if err != nil {
		return err
	}
	return errors.Join(
		robotfs.WriteFile(root, release.KeyFile, b.ReleaseKey, 0o644), writeRoot(root, b.ReleaseRoot),
		robotfs.WriteFile(root, release.SerialFile, []byte(b.Thing.Serial()+"\n"), 0o444),
		slot.Make(d, system, factory))
}

func writeRoot(root *os.Root, metadata []byte) error {
	if len(metadata) == 0 {
		return nil
	}
	return robotfs.WriteFile(root, release.RootFile, metadata, 0o644)
}

// LoadSlot is the boot loader of a robot with slots: it chooses one, says which to the kernel, and mounts its system, which it returns. recovery reports
// that neither slot could be started. A robot without slots starts as it is.
func LoadSlot(root *os.Root) (sys System, recovery bool, err error) {
	d := disk.Of(root)
	s, err := slot.Boot(d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return System{}, false, nil
	case err != nil:
		return System{}, false, fmt.Errorf("boot loader: %w", err)
	}
	b, err := root.ReadFile(bootparam.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return System{}, false, fmt.Errorf("kernel's command line: %w", err)
	}
	words := slices.DeleteFunc(strings.Fields(string(b)), func(w string) bool { return bootparam.Parse(w).Slot != "" })
	words = append(words, bootparam.InSlot(string(s.Slot)))
	if line := []byte(strings.Join(words, " ") + "\n"); !bytes.Equal(line, b) {
		err = robotfs.WriteFile(root, bootparam.File, line, 0o644)
	}
	if platform.OSVersion(root) != string(s.Version) {
		err = errors.Join(err, robotfs.WriteFile(root, platform.OSVersionFile, []byte(s.Version+"\n"), 0o644))
	}
	if err == nil && !s.Recovery {
		sys, err = readSystem(d, slot.File(manifest.System, s.Slot))
	}
	return sys, s.Recovery, err
}

// readSystem reads the first line of a system image. One that is not of a simulated robot does nothing special.
func readSystem(d disk.Disk, name string) (s System, err error) {
	f, err := d.Open(name)
	if err != nil {
		return s, err
	}
	defer f.Close() // read only
	if json.NewDecoder(io.NewSectionReader(f, 0, 4<<10)).Decode(&s) != nil {
		return System{}, nil
	}
	files, err := cardimage.Read(io.NewSectionReader(f, 0, 1<<62))
	if files != nil {
		s.Card = &files
	}
	return s, err
}
