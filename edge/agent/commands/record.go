package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/commandwire"
	"kennel/infra/logging"
)

// Dir holds a file for each command that was begun, below the robot's root.
const Dir = "data/kennel/commands"

const suffix = ".json"

// record is one file. Without a result the command was begun and not finished.
type record struct {
	V      int                 `json:"v"`
	Num    uint64              `json:"num"` // the order of beginning
	ID     string              `json:"id"`
	Kind   string              `json:"kind"`
	Given  int64               `json:"given_us,omitempty"` // the cloud's order, of commands that were begun
	Result *commandwire.Result `json:"result,omitempty"`
	Told   bool                `json:"told,omitempty"` // the cloud answered
}

func (r *record) file() string { return path.Join(Dir, r.ID+suffix) }

func (r *record) write(root *os.Root) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return robotfs.WriteFile(root, r.file(), b, 0o644)
}

func (r *record) remove(root *os.Root) error { return root.Remove(r.file()) }

// parseRecord reads the file of command id.
func parseRecord(id string, b []byte) (*record, error) {
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	if r.V != 1 || r.ID != id || r.Num > 1<<62 || r.Given < 0 {
		return nil, fmt.Errorf("version %d, id %.40q, num %d, given_us %d: want version 1, the id in the file's name, a small number and a time",
			r.V, r.ID, r.Num, r.Given)
	}
	if r.Result != nil {
		b, err := r.Result.Encode()
		if err != nil {
			return nil, err
		}
		if _, err := commandwire.ParseResult(b); err != nil || r.Result.ID != id {
			return nil, fmt.Errorf("result of %.40q: %w", r.Result.ID, err)
		}
	}
	return &r, nil
}

// Forget takes what results say out of the records, and all other files out of their folder. That a command was begun stays known: it is not begun
// again. No Agent may use the folder meanwhile.
func Forget(root *os.Root, log *slog.Logger) error {
	all, err := load(root, log)
	if err != nil {
		return fmt.Errorf("commands: %w", err)
	}
	for _, r := range all {
		if r.Result != nil {
			r.Result.Detail = ""
		}
		if err := r.write(root); err != nil { // damaged ones, too
			return fmt.Errorf("commands: %w", err)
		}
	}
	files, err := fs.ReadDir(root.FS(), Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("commands: %w", err)
	}
	for _, f := range files {
		if all[strings.TrimSuffix(f.Name(), suffix)] == nil {
			if err := root.RemoveAll(path.Join(Dir, f.Name())); err != nil {
				return fmt.Errorf("commands: %w", err)
			}
		}
	}
	return nil
}

// load reads all records. A damaged one still says that its command was begun.
func load(root *os.Root, log *slog.Logger) (map[string]*record, error) {
	if err := robotfs.CleanTemp(root, Dir); err != nil {
		return nil, err
	}
	out := map[string]*record{}
	d, err := root.Open(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	_ = d.Close() // read only
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id, ok := strings.CutSuffix(name, suffix)
		if !ok || !commandwire.IsID(id) {
			log.Warn("foreign file ignored", "dir", Dir, "file", name)
			continue
		}
		b, err := robotfs.ReadFile(root, path.Join(Dir, name))
		if err != nil {
			return nil, err
		}
		r, err := parseRecord(id, b)
		if err != nil {
			log.Warn("command record damaged", "command", id, logging.Err, err)
			r = &record{V: 1, ID: id}
		}
		out[id] = r
	}
	return out, nil
}
