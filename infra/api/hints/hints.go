// Package hints holds the payloads of kennel/<thing>/down/{jdocs}: word that something changed, never the thing itself. They are
// retained, may come late, twice or not at all, and say nothing that a robot could not find by asking; it asks at every connect anyway
// (VEC-JDS-12).
package hints

import (
	"encoding/json"
	"fmt"
)

// Limits of a hint.
const (
	maxDocs = 64
	maxName = 64 // characters of a document's name
)

// Jdocs tells which version of each of its documents the cloud has: {"docs": {"vic.RobotSettings": 7}}. A document that is not named
// has not changed as far as the sender knows.
type Jdocs struct {
	Docs map[string]uint64 `json:"docs"`
}

// Encode returns the hint as JSON, documents by name.
func (j Jdocs) Encode() ([]byte, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

// ParseJdocs reads and checks a hint. Unknown fields are left for newer robots.
func ParseJdocs(b []byte) (Jdocs, error) {
	var j Jdocs
	if err := json.Unmarshal(b, &j); err != nil {
		return Jdocs{}, fmt.Errorf("jdocs hint: %w", err)
	}
	if err := j.check(); err != nil {
		return Jdocs{}, err
	}
	return j, nil
}

func (j Jdocs) check() error {
	if len(j.Docs) == 0 || len(j.Docs) > maxDocs {
		return fmt.Errorf("jdocs hint of %d documents: want 1 to %d under \"docs\"", len(j.Docs), maxDocs)
	}
	for name := range j.Docs {
		if name == "" || len(name) > maxName {
			return fmt.Errorf("jdocs hint: document name %.80q: want 1 to %d characters", name, maxName)
		}
	}
	return nil
}
