package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"kennel/edge/env/robotfs"
)

// Trees are the three roots from which every other path of the robot is made (VEC-CLD-03, VEC-CFG-02), below the robot's root.
type Trees struct {
	Cache      string `json:"DataPlatformCachePath"`
	Persistent string `json:"DataPlatformPersistentPath"`
	Resources  string `json:"DataPlatformResourcesPath"`
}

// DefaultTrees are the original's.
func DefaultTrees() Trees { return Trees{robotfs.Cache, robotfs.Persistent, robotfs.Resources} }

// protected are the folders of the robot that must not hold an owner's data: the factory's, the release's, the device's own.
var protected = []string{"factory", "persist", "dev", "proc", "sys", "boot", "firmware", "bin", "sbin", "lib", "usr", "etc"}

// LoadTrees reads platform_config.json. A missing file or key gives the default; paths are absolute on the robot and below its root here.
// Cache or persistent data inside a folder of the factory, the release or the device is an error: a wipe of the user data could not tell
// them apart.
func LoadTrees(root *os.Root) (Trees, error) {
	t := DefaultTrees()
	var f Trees
	err := robotfs.ReadJSON(root, PlatformFile, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("platform configuration: %w", err)
	}
	for _, p := range []struct {
		key   string
		in    string
		to    *string
		owner bool
	}{
		{"DataPlatformCachePath", f.Cache, &t.Cache, true},
		{"DataPlatformPersistentPath", f.Persistent, &t.Persistent, true},
		{"DataPlatformResourcesPath", f.Resources, &t.Resources, false},
	} {
		if p.in == "" {
			continue
		}
		rel := strings.TrimPrefix(path.Clean("/"+p.in), "/")
		if rel == "" || strings.ContainsRune(rel, 0) || p.owner && !Personal(rel) {
			return DefaultTrees(), fmt.Errorf("platform configuration: %s: %s is %.200q: want its own folder, outside those of factory, "+
				"release and device",
				PlatformFile, p.key, p.in)
		}
		*p.to = rel
	}
	return t, nil
}

// Personal reports whether a path below the robot's root may hold an owner's data, all of which a wipe erases.
func Personal(rel string) bool {
	rel = path.Clean(rel)
	top, _, deep := strings.Cut(rel, "/")
	for _, p := range protected {
		if top == p {
			return false
		}
	}
	switch top {
	case ".", "..", "":
		return false
	case "anki", "run", "tmp", "var": // shared with others: only a folder inside them is accepted
		return deep && top != "anki"
	}
	return true
}
