package das

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"kennel/edge/env/robotfs"
)

// QuarantineDir holds events that the cloud refused, for a person to look at: one file per refusal, a line of JSON that says why, then the
// events. Relative to the robot's root.
const QuarantineDir = "data/kennel/das-quarantine"

// maxQuarantine bounds its files; further refused events are counted but not kept. Own default.
const maxQuarantine = 200

// refusal is the first line of a quarantine file.
type refusal struct {
	Code   string   `json:"code"`
	Reason string   `json:"reason"`
	BootID string   `json:"boot_id"`
	Seqs   []uint64 `json:"seqs"`
}

// quarantine keeps refused events out of the way. Safe for concurrent use.
type quarantine struct {
	root *os.Root

	mu     sync.Mutex
	files  map[string]int // events in each
	events uint64
}

func openQuarantine(root *os.Root) (*quarantine, error) {
	q := &quarantine{root: root, files: map[string]int{}}
	if err := robotfs.CleanTemp(root, QuarantineDir); err != nil {
		return nil, fmt.Errorf("event quarantine: %w", err)
	}
	d, err := root.Open(QuarantineDir)
	if errors.Is(err, fs.ErrNotExist) {
		return q, nil
	}
	if err != nil {
		return nil, fmt.Errorf("event quarantine: %w", err)
	}
	names, err := d.Readdirnames(-1)
	_ = d.Close() // read only
	if err != nil {
		return nil, fmt.Errorf("event quarantine: %w", err)
	}
	for _, name := range names {
		b, err := robotfs.ReadFile(root, path.Join(QuarantineDir, name))
		if err != nil {
			continue // a folder or unreadable: not ours
		}
		n := max(0, bytes.Count(b, []byte{'\n'})-1)
		q.files[name] = n
		q.events += uint64(n)
	}
	return q, nil
}

// put keeps lines. The name follows from the events, so that the same refusal after a restart replaces itself.
func (q *quarantine) put(r refusal, lines []string) error {
	head, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("event quarantine: %w", err)
	}
	name := fmt.Sprintf("%s-%d-%d.ndjson", r.BootID, r.Seqs[0], len(r.Seqs))
	q.mu.Lock()
	defer q.mu.Unlock()
	had, known := q.files[name]
	if known || len(q.files) < maxQuarantine {
		body := string(head) + "\n" + strings.Join(lines, "\n") + "\n"
		if err := robotfs.WriteFile(q.root, path.Join(QuarantineDir, name), []byte(body), 0o600); err != nil {
			return fmt.Errorf("event quarantine: %w", err)
		}
		q.files[name] = len(lines)
	}
	q.events += uint64(len(lines) - had)
	return nil
}

func (q *quarantine) count() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events
}

// purge removes all of it (VEC-DAS-08).
func (q *quarantine) purge() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.root.RemoveAll(QuarantineDir); err != nil {
		return fmt.Errorf("event quarantine: %w", err)
	}
	clear(q.files)
	q.events = 0
	return nil
}
