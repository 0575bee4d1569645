package das

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"kennel/edge/env/robotfs"
)

// ConfigFile is the event manager's configuration, relative to the robot's root.
const ConfigFile = robotfs.Resources + "/config/DASConfig.json"

// FileConfig is the content of DASConfig.json (part of VEC-DAS-05). Sizes are in bytes. url and flush_interval (600 s) speak of the original's cloud; ours
// is cheap to reach, so Config.FlushInterval rules instead.
type FileConfig struct {
	StoragePath       string // relative to the root
	StorageQuota      int64
	FileThresholdSize int64
	BackupPath        string // relative to the root; "": none
	BackupQuota       int64
	PersistentGlobals string // where consent is kept
	TransientGlobals  string // where the sessions of this boot are kept
	URL               string
}

// DefaultFileConfig holds the defaults part of VEC-DAS-05. The source leaves backup_path and the paths of the globals open: ours are on the persistent partition, and
// in the memory of one boot.
func DefaultFileConfig() FileConfig {
	return FileConfig{
		StoragePath: "run/dasLogs", StorageQuota: 5_000_000, FileThresholdSize: 1_000_000,
		BackupPath: robotfs.Persistent + "/dasBackup", BackupQuota: 10_000_000,
		PersistentGlobals: robotfs.Persistent + "/dasGlobals.json", TransientGlobals: "run/dasGlobals.json",
	}
}

// LoadFileConfig reads ConfigFile; a missing file gives the defaults. On error the defaults are returned too, so that the robot keeps working.
func LoadFileConfig(root *os.Root) (FileConfig, error) {
	b, err := robotfs.ReadFile(root, ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		return DefaultFileConfig(), nil
	}
	if err != nil {
		return DefaultFileConfig(), err
	}
	c, err := ParseFileConfig(b)
	if err != nil {
		return DefaultFileConfig(), fmt.Errorf("%s: %w", ConfigFile, err)
	}
	return c, nil
}

// ParseFileConfig reads the keys of DASConfig.json, bare or inside "dasConfig" as the original has them; comments are allowed, unknown keys
// ignored. Absent keys keep their defaults.
func ParseFileConfig(b []byte) (FileConfig, error) {
	type keys struct {
		StoragePath       *string `json:"storage_path"`
		StorageQuota      *int64  `json:"storage_quota"`
		FileThresholdSize *int64  `json:"file_threshold_size"`
		BackupPath        *string `json:"backup_path"`
		BackupQuota       *int64  `json:"backup_quota"`
		PersistentGlobals *string `json:"persistent_globals_path"`
		TransientGlobals  *string `json:"transient_globals_path"`
		URL               *string `json:"url"`
	}
	clean, err := robotfs.StripComments(b)
	if err != nil {
		return FileConfig{}, err
	}
	var f struct {
		keys
		Nested *keys `json:"dasConfig"`
	}
	if err := json.Unmarshal(clean, &f); err != nil {
		return FileConfig{}, err
	}
	k := f.keys
	if f.Nested != nil {
		k = *f.Nested
	}
	c := DefaultFileConfig()
	for _, n := range []struct {
		key string
		in  *int64
		to  *int64
		min int64
		max int64
	}{
		{"storage_quota", k.StorageQuota, &c.StorageQuota, 4096, 1 << 40},
		{"file_threshold_size", k.FileThresholdSize, &c.FileThresholdSize, 1024, 8 << 20}, // one file is read at once to move it
		{"backup_quota", k.BackupQuota, &c.BackupQuota, 0, 1 << 40},
	} {
		if n.in == nil {
			continue
		}
		if *n.in < n.min || *n.in > n.max {
			return FileConfig{}, fmt.Errorf("%s is %d: want %d to %d bytes", n.key, *n.in, n.min, n.max)
		}
		*n.to = *n.in
	}
	for _, p := range []struct {
		key      string
		in       *string
		to       *string
		optional bool
	}{
		{"storage_path", k.StoragePath, &c.StoragePath, false},
		{"backup_path", k.BackupPath, &c.BackupPath, true},
		{"persistent_globals_path", k.PersistentGlobals, &c.PersistentGlobals, false},
		{"transient_globals_path", k.TransientGlobals, &c.TransientGlobals, false},
	} {
		if p.in == nil || (*p.in == "" && !p.optional) {
			continue // the original's files leave keys empty to mean "not set"
		}
		rel := strings.TrimPrefix(path.Clean("/"+*p.in), "/") // absolute on the robot, below its root here
		if *p.in == "" {
			rel = ""
		} else if rel == "" || strings.ContainsRune(rel, 0) {
			return FileConfig{}, fmt.Errorf("%s is %.100q: want a path below the robot's root", p.key, *p.in)
		}
		*p.to = rel
	}
	if k.URL != nil {
		c.URL = *k.URL
	}
	if c.StoragePath == c.BackupPath {
		return FileConfig{}, fmt.Errorf("storage_path and backup_path are both %q: want two folders", c.StoragePath)
	}
	if c.FileThresholdSize > c.StorageQuota/2 {
		return FileConfig{}, fmt.Errorf("file_threshold_size is %d: want at most half of storage_quota %d", c.FileThresholdSize, c.StorageQuota)
	}
	return c, nil
}
