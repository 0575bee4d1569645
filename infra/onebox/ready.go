package onebox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kennel/infra/atomicfile"
)

// Ready tells other programs how to reach a running instance.
type Ready struct {
	Pid       int               `json:"pid"`
	Data      string            `json:"data"` // the data folder
	Started   time.Time         `json:"started"`
	Endpoints map[string]string `json:"endpoints"` // such as "console": "http://localhost:8080"
	Pids      map[string]int    `json:"pids"`      // of the parts
	Files     map[string]string `json:"files"`     // such as "operator_password": a path; never a secret itself
}

// Publish writes r to run/ready.json and, if file is not empty, to file too, each whole or not at all. Pid and Data are filled in.
// Close removes both. Publish again to tell of a change.
func (i *Instance) Publish(r Ready, file string) error {
	r.Pid, r.Data = os.Getpid(), i.Paths.Root
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	i.ready = []string{i.Paths.readyFile()}
	if file != "" {
		abs, err := filepath.Abs(file)
		if err != nil {
			return fmt.Errorf("ready file: %w", err)
		}
		i.ready = append(i.ready, abs)
	}
	for _, f := range i.ready {
		if err := atomicfile.WriteFile(f, append(b, '\n'), 0o600); err != nil {
			return fmt.Errorf("ready file: %w", err)
		}
	}
	return nil
}

// ReadReady reads what Publish wrote to file.
func ReadReady(file string) (Ready, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Ready{}, err
	}
	return parseReady(file, b)
}

// ReadyOf reads how to reach the running instance in dir; fs.ErrNotExist if none runs there.
func ReadyOf(dir string) (Ready, error) {
	p, err := PathsOf(dir)
	if err != nil {
		return Ready{}, err
	}
	return ReadReady(p.readyFile())
}

func parseReady(file string, b []byte) (Ready, error) {
	var r Ready
	if err := json.Unmarshal(b, &r); err != nil {
		return Ready{}, fmt.Errorf("ready file %s: %w", file, err)
	}
	return r, nil
}
