package housetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/thing"
	"kennel/jdocs"
)

// settingsFile is the robot's file of its species' settings. root is its folder, such as robots/vic-00e20100.
func settingsFile(root string) string {
	species, _, _ := strings.Cut(filepath.Base(root), "-")
	name := cmp.Or(jdocs.SettingsOf(thing.Species(species)), jdocs.RobotSettings)
	return filepath.Join(root, "data/data/com.anki.victor/persistent/jdocs", string(name)+".json")
}

// LocalDoc is a robot's own copy of a document (VEC-JDS-07).
type LocalDoc struct {
	Version uint64         `json:"doc_version"`
	Jdoc    map[string]any `json:"jdoc"`
}

// ReadLocal reads the settings that a robot keeps below root.
func ReadLocal(root string) (LocalDoc, error) {
	var l LocalDoc
	b, err := os.ReadFile(settingsFile(root))
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(b, &l)
}

// EditSetting changes one setting in the robot's file, as the robot's own menu would.
func EditSetting(t *testing.T, root, key string, value any) {
	t.Helper()
	file := settingsFile(root)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	doc["jdoc"].(map[string]any)[key] = value
	if b, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".edit", b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".edit", file); err != nil {
		t.Fatal(err)
	}
}

// FileHas waits until the robot's file says key = want, and returns how long that took.
func FileHas(t *testing.T, root, key string, want any) time.Duration {
	t.Helper()
	return Await(t, 30*time.Second, fmt.Sprintf("%s = %v in the robot's file", key, want), func() error {
		l, err := ReadLocal(root)
		if err != nil {
			return err
		}
		if fmt.Sprint(l.Jdoc[key]) != fmt.Sprint(want) {
			return fmt.Errorf("%s is %v (version %d)", key, l.Jdoc[key], l.Version)
		}
		return nil
	})
}

// CloudDoc is a document as kennelctl prints it.
type CloudDoc struct {
	Version uint64         `json:"doc_version"`
	Doc     map[string]any `json:"jdoc"`
}

// CloudHas waits until the cloud's copy of a robot's settings says key = want.
func (h *House) CloudHas(thing, key string, want any) {
	h.T.Helper()
	Await(h.T, 30*time.Second, fmt.Sprintf("%s = %v in the cloud", key, want), func() error {
		var d CloudDoc
		if err := h.CtlJSON(&d, "jdocs", "get", thing, "vic.RobotSettings"); err != nil {
			return err
		}
		if fmt.Sprint(d.Doc[key]) != fmt.Sprint(want) {
			return fmt.Errorf("%s is %v (version %d)", key, d.Doc[key], d.Version)
		}
		return nil
	})
}

// Set changes a setting from the cloud. While a part is down kennelctl says so with its own exit code, and a person tries again.
func (h *House) Set(thing, pair string) {
	h.T.Helper()
	Await(h.T, time.Minute, "set "+pair, func() error {
		out, err := h.Ctl("jdocs", "set", thing, "vic.RobotSettings", pair)
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != unavailable) {
			h.T.Fatalf("%v\n%s", err, out)
		}
		return err
	})
}

// unavailable is kennelctl's exit code for "not now".
const unavailable = 5
