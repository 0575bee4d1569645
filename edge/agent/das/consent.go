package das

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kennel/edge/env/robotfs"
)

// AllowFile exists while the owner allows data collection; the log and crash collectors look for it (VEC-DAS-08, VEC-LOG-08).
const AllowFile = "run/das_allow_upload"

// globals is dasGlobals.json; keys that are not ours are kept.
type globals struct {
	all map[string]json.RawMessage // inside "dasGlobals"
}

// loadGlobals reads the file at name. A missing or damaged one is empty.
func loadGlobals(root *os.Root, name string) globals {
	var f struct {
		G map[string]json.RawMessage `json:"dasGlobals"`
	}
	if robotfs.ReadJSON(root, name, &f) != nil || f.G == nil {
		f.G = map[string]json.RawMessage{}
	}
	return globals{f.G}
}

// allowed returns the stored consent. Before the owner was asked, events are kept: the answer arrives with the account's DATA_COLLECTION,
// and a no discards the events kept until then.
func (g globals) allowed() bool {
	allow := true
	if raw, ok := g.all["allow_upload"]; ok && json.Unmarshal(raw, &allow) != nil {
		return false // damaged: what the owner said is unknown, so nothing leaves the robot
	}
	return allow
}

func (g globals) profileID() string {
	var id string
	_ = json.Unmarshal(g.all["profile_id"], &id) // absent or damaged: no profile
	return id
}

func (g globals) save(root *os.Root, name string, allow bool, profileID string) error {
	for key, v := range map[string]any{"allow_upload": allow, "profile_id": profileID} {
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("store consent: %w", err)
		}
		g.all[key] = raw
	}
	b, err := json.Marshal(map[string]any{"dasGlobals": g.all})
	if err != nil {
		return fmt.Errorf("store consent: %w", err)
	}
	if err := robotfs.WriteFile(root, name, b, 0o644); err != nil {
		return fmt.Errorf("store consent: %w", err)
	}
	return nil
}

// flag writes allow into AllowFile.
func flag(root *os.Root, allow bool) error {
	if allow {
		return robotfs.WriteFile(root, AllowFile, nil, 0o644)
	}
	if err := root.Remove(AllowFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("withdraw %s: %w", AllowFile, err)
	}
	return nil
}
