// Package features knows which features of the robot's software are on: as delivered, as the robot's own file says, and as a developer overrode them
// (VEC-DOC-11, VEC-DOC-12).
package features

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"kennel/edge/env/robotfs"
	"kennel/infra/errs"
	"kennel/speech/intent"
)

// Files below the robot's root: the first is the original's, and the second holds the overrides.
const (
	File      = robotfs.Resources + "/config/features.json"
	Overrides = "data/kennel/features.json"
)

// Bounds of an override's name; own.
const (
	maxName      = 64
	maxOverrides = 100
)

// State is an override: none, on or off, in the words of the original's developer tool.
type State string

// The states.
const (
	None     State = "none"
	Enabled  State = "enabled"
	Disabled State = "disabled"
)

// Feature is one of the list.
type Feature struct {
	Name     string `json:"feature"`
	On       bool   `json:"enabled"`
	Override State  `json:"override"`
}

// Set is the features of one robot. Safe for concurrent use.
type Set struct {
	root *os.Root
	file map[string]bool // what the file says

	mu        sync.Mutex
	overrides map[string]bool
}

// Open reads the files. Without them all is as delivered. Overrides that cannot be read count as none, and are an error beside the Set.
func Open(root *os.Root) (*Set, error) {
	s := &Set{root: root, file: map[string]bool{}, overrides: map[string]bool{}}
	var entries []struct {
		Feature string `json:"feature"`
		Enabled bool   `json:"enabled"`
	}
	if err := robotfs.ReadJSON(root, File, &entries); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("features: %w", err)
	}
	for _, f := range entries {
		s.file[f.Feature] = f.Enabled
	}
	err := robotfs.ReadJSON(root, Overrides, &s.overrides)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || s.overrides == nil {
		s.overrides = map[string]bool{}
	}
	return s, err
}

// On reports whether a feature is on: by its override, else by the file, else as delivered. Features that are in none of them are on.
func (s *Set) On(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on(name)
}

func (s *Set) on(name string) bool {
	for _, says := range []map[string]bool{s.overrides, s.file} {
		if on, said := says[name]; said {
			return on
		}
	}
	return intent.FeatureOn(name)
}

// List returns the features by name: those that robots are delivered with, and others that a file names.
func (s *Set) List() []Feature {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for _, n := range intent.Features() {
		names[n] = true
	}
	maps.Copy(names, s.file)
	maps.Copy(names, s.overrides)
	var out []Feature
	for _, n := range slices.Sorted(maps.Keys(names)) {
		f := Feature{n, s.on(n), None}
		if on, said := s.overrides[n]; said {
			f.Override = map[bool]State{true: Enabled, false: Disabled}[on]
		}
		out = append(out, f)
	}
	return out
}

// Override turns a feature on or off until Reset, or gives it back with None. It is on disk when it returns (kinds Invalid, NotFound, Internal).
func (s *Set) Override(name string, to State) error {
	if !slices.ContainsFunc(s.List(), func(f Feature) bool { return f.Name == name }) {
		return errs.Coded(errs.NotFound, "feature_unknown", "no feature %.*q; agentd features lists them", maxName, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.overrides)
	switch to {
	case None:
		delete(next, name)
	case Enabled, Disabled:
		next[name] = to == Enabled
	default:
		return errs.New(errs.Invalid, "state %.20q: want none, enabled or disabled", to)
	}
	if len(next) > maxOverrides {
		return errs.New(errs.Invalid, "%d overrides, want at most %d: reset them first", len(next), maxOverrides)
	}
	return s.save(next)
}

// Reset ends all overrides.
func (s *Set) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.save(map[string]bool{})
}

func (s *Set) save(next map[string]bool) error {
	b, err := json.Marshal(next)
	if err == nil {
		err = robotfs.WriteFile(s.root, Overrides, append(b, '\n'), 0o600)
	}
	if err != nil {
		return errs.New(errs.Internal, "overrides not stored: %w", err)
	}
	s.overrides = next
	return nil
}
