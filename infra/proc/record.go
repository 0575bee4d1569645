package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Record is the content of a pid file.
type Record struct {
	Name string `json:"name"`
	Identity
}

// WriteRecord writes the identity of the running process pid to file, whole or not at all.
func WriteRecord(file, name string, pid int) error {
	id, err := Identify(pid)
	if errors.Is(err, ErrGone) {
		return nil // it ended at once; its exit status says more than a record would
	}
	if err != nil {
		return fmt.Errorf("pid record of %s: %w", name, err)
	}
	b, err := json.Marshal(Record{Name: name, Identity: id})
	if err != nil {
		return fmt.Errorf("pid record of %s: %w", name, err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".pid-*")
	if err != nil {
		return fmt.Errorf("pid record of %s: %w", name, err)
	}
	defer os.Remove(tmp.Name()) // fails once renamed
	_, err = tmp.Write(append(b, '\n'))
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("pid record of %s: %w", name, err)
	}
	return os.Rename(tmp.Name(), file)
}

// ReadRecord reads a pid file. fs.ErrNotExist if there is none.
func ReadRecord(file string) (Record, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return Record{}, err
	}
	r, err := parseRecord(b)
	if err != nil {
		return Record{}, fmt.Errorf("pid record %s: %w", file, err)
	}
	return r, nil
}

func parseRecord(b []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, err
	}
	if r.Pid <= 1 || r.Boot == "" {
		return Record{}, fmt.Errorf("pid %d, boot %q: want a pid above 1 and a boot id", r.Pid, r.Boot)
	}
	return r, nil
}

// StopLeftover stops the process that an earlier life of the caller recorded in file, if it still runs, and removes the file. It sends
// sig and then SIGKILL, waiting patience after each. stopped says that there was one. A file that cannot be read as a record (the
// machine may have lost power while writing it) is removed: it names no process.
func StopLeftover(ctx context.Context, file string, sig syscall.Signal, patience time.Duration) (stopped bool, err error) {
	r, err := ReadRecord(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return false, err
	}
	if err == nil && r.Alive() {
		if err := r.Stop(ctx, patience, sig, syscall.SIGKILL); err != nil {
			return false, fmt.Errorf("leftover %s: %w", r.Name, err)
		}
		stopped = true
	}
	return stopped, os.Remove(file)
}
