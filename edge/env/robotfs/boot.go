package robotfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"kennel/infra/thing"
	"os"
	"strings"
)

// Files that say what runs, relative to the robot's root.
const (
	OSVersionFile = "etc/os-version"
	VersionFile   = "anki/etc/version"
	BootIDFile    = "run/boot_id"
	SpeciesFile   = "factory/kennel/species" // absent: vic
	ModelFile     = "factory/kennel/model"   // absent: the usual one of the species
)

// BootID returns the id of this boot: new on each boot, the same for every process of it (VEC-DAS-03). run/ is emptied at boot, so the
// first process makes the file; of two that start at once, both get the id of the one that was faster.
func BootID(root *os.Root) (string, error) {
	for range 2 {
		b, err := ReadFile(root, BootIDFile)
		if id := strings.TrimSpace(string(b)); err == nil && len(id) == 36 {
			return id, nil
		}
		if err == nil { // damaged
			_ = root.Remove(BootIDFile) // if it stays, the link below fails
		}
		id := newUUID()
		own := BootIDFile + "." + id
		err = WriteFile(root, own, []byte(id+"\n"), 0o644)
		if err == nil {
			if err = root.Link(own, BootIDFile); errors.Is(err, fs.ErrExist) {
				err = nil
			}
			err = errors.Join(err, root.Remove(own))
		}
		if err != nil {
			return "", fmt.Errorf("boot id: %w", err)
		}
	}
	b, err := ReadFile(root, BootIDFile)
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// newUUID returns a random UUID (version 4), as the kernel's random boot id is.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// OSVersion returns the release the robot runs, such as "2.0.0.6074"; "unknown" where no file says.
func OSVersion(root *os.Root) string {
	for _, name := range []string{OSVersionFile, VersionFile} {
		if b, err := ReadFile(root, name); err == nil {
			if v := strings.TrimSpace(string(b)); v != "" && len(v) <= 64 {
				return v
			}
		}
	}
	return "unknown"
}

// Species returns the robot's species, unchecked; Vector if no file says.
func Species(root *os.Root) (thing.Species, error) {
	b, err := ReadFile(root, SpeciesFile)
	switch {
	case err == nil:
		return thing.Species(strings.TrimSpace(string(b))), nil
	case errors.Is(err, fs.ErrNotExist):
		return thing.Vector, nil
	}
	return "", fmt.Errorf("species: %w", err)
}

// Model returns the name of the robot's model within its species, unchecked; "" if no file says.
func Model(root *os.Root) (string, error) {
	b, err := ReadFile(root, ModelFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("model: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
