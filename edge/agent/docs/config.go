package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/jdocs"
)

// Our own defaults, where the source gives no number (VEC-JDS-06, VEC-DOC-15).
const (
	settingsGet  = 5 * time.Minute // cloudGetPeriod_sec of ROBOT_SETTINGS: the fallback when a hint is lost
	settingsSave = time.Second     // cloudSavePeriod_sec: several changes in a row become one write
	statsGet     = time.Hour
	statsSave    = 10 * time.Minute
	statsFlush   = time.Hour // counters in memory go to the local copy

	tryFor     = 20 * time.Second // one request to the cloud
	retryFirst = 2 * time.Second  // after a failure, doubled up to
	retryMost  = 2 * time.Minute
	retryNever = 10 * time.Minute // after a refusal that another try will not change
	spoiledFor = 2 * time.Second  // how long a damaged local copy may be a program's unfinished write
	pollEvery  = 500 * time.Millisecond
	fileTick   = 50 * time.Millisecond // more than a tick of a file system's clock
)

// Files below the robot's root.
const (
	jdocsConfig    = "config/engine/jdocs_config.json"    // below the resources (VEC-JDS-06)
	settingsConfig = "config/engine/settings_config.json" // below the resources (VEC-DOC-04)
	localFolder    = "jdocs"                              // below the persistent folder (VEC-JDS-07)
	ledgerFolder   = "data/kennel/jdocs-base"
)

// Config configures an Agent. Root, Remote and Log are required.
type Config struct {
	Settings jdocs.Name // the document with the robot's settings; "": it has none
	Root     *os.Root
	Remote   Remote
	Log      *slog.Logger

	Persistent string // folder of the local copies' parent; "": robotfs.Persistent (VEC-CLD-03)
	Resources  string // folder of the control files; "": robotfs.Resources

	// Own holds further documents of this kind of robot with the fields that they begin with.
	Own map[jdocs.Name]map[string]json.RawMessage

	// Owner keeps copies of the documents of the robot's owner, vic.AccountSettings and vic.UserEntitlements.
	Owner bool

	// Unwatched turns file watching off, for many robots in one process, since the system has few watches. A change that another program
	// writes into a file is taken up at the next exchange.
	Unwatched bool

	// OnChanged is called for each change of a document, after it is on disk; OnPushed for each version that the cloud accepted from here
	// (event robot.settings.passed_to_cloud_jdoc). They are called from several goroutines and block the caller. May be nil.
	OnChanged func(Change)
	OnPushed  func(name jdocs.Name, version uint64)
}

// section is one entry of jdocs_config.json.
type section struct {
	DocName string   `json:"docName"`
	Get     *float64 `json:"cloudGetPeriod_sec"`  // the cloud is asked at least this often
	Save    *float64 `json:"cloudSavePeriod_sec"` // a local change waits this long for more of them
}

// loadDocuments returns the documents that the agent keeps, as jdocs_config.json wants them. A missing file means the defaults.
func loadDocuments(cfg Config) ([]*document, error) {
	name := cfg.Resources + "/" + jdocsConfig
	var file map[string]section
	if err := robotfs.ReadJSON(cfg.Root, name, &file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	docs := []*document{
		{section: "ROBOT_SETTINGS", name: cfg.Settings, getEvery: settingsGet, saveAfter: settingsSave, merge: jdocs.Merge},
		{section: "ROBOT_LIFETIME_STATS", name: jdocs.RobotLifetimeStats, getEvery: statsGet, saveAfter: statsSave, merge: jdocs.MergeStats, counts: true},
	}
	if cfg.Settings == "" {
		docs = docs[1:]
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Own)) {
		docs = append(docs, &document{section: string(name), name: name, getEvery: settingsGet, saveAfter: settingsSave, merge: jdocs.Merge, defaults: join(cfg.Own[name])})
	}
	seen := map[jdocs.Name]bool{}
	for _, d := range docs {
		if err := d.apply(file[d.section]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, d.section, err)
		}
		if seen[d.name] {
			return nil, fmt.Errorf("%s: %s: docName %s is taken by another section", name, d.section, d.name)
		}
		seen[d.name] = true
	}
	return docs, nil
}

func (d *document) apply(s section) error {
	if s.DocName != "" {
		n, err := jdocs.ParseName(s.DocName)
		if err != nil {
			return fmt.Errorf("docName: %w", err)
		}
		if n != jdocs.RobotSettings || !d.name.IsSettings() { // the name of every robot's settings before each species had its own
			d.name = n
		}
	}
	for _, p := range []struct {
		key string
		sec *float64
		to  *time.Duration
		min float64
	}{{"cloudGetPeriod_sec", s.Get, &d.getEvery, 1}, {"cloudSavePeriod_sec", s.Save, &d.saveAfter, 0}} {
		if p.sec == nil {
			continue
		}
		if !(*p.sec >= p.min && *p.sec <= 30*24*3600) {
			return fmt.Errorf("%s is %v: want %v to 2592000 seconds", p.key, *p.sec, p.min)
		}
		*p.to = time.Duration(*p.sec * float64(time.Second))
	}
	return nil
}

// control is one setting in settings_config.json (VEC-DOC-04).
type control struct {
	Default json.RawMessage `json:"defaultValue"`
	Update  *bool           `json:"updateCloudOnChange"`
}

// loadControls sets a document's first content and the fields that stay on this robot. Without the file, or where it does not say, the
// defaults of VEC-DOC-01 hold and every field is shared. A default that the setting cannot have is an error that names it.
func (d *document) loadControls(root *os.Root, resources string) error {
	doc := jdocs.Default(d.name)
	d.fmtVersion = doc.FmtVersion
	if d.defaults != "" {
		return nil // Config.Own says them
	}
	d.defaults = doc.JSON
	if d.counts {
		d.defaults = jdocs.Default(jdocs.RobotLifetimeStats).JSON
		return nil
	}
	if d.name.IsSettings() && d.name != jdocs.RobotSettings {
		return nil // the file is of Vector's settings
	}
	name := resources + "/" + settingsConfig
	var file map[string]control
	if err := robotfs.ReadJSON(root, name, &file); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	set := map[string]json.RawMessage{}
	for field, c := range file {
		if c.Default != nil {
			set[field] = c.Default
		}
		if c.Update != nil && !*c.Update {
			d.localOnly = append(d.localOnly, field)
		}
	}
	text, err := jdocs.SetFields(d.name, d.defaults, set)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d.defaults = text
	return nil
}
