// Package wipe clears the user data of a robot: everything personal and nothing else (VEC-DGN-06, VEC-STOR-10, VEC-TOK-10, VEC-SEC-05,
// VEC-AUTH-12).
//
//	erased   data/ (tokens, gateway certificate, robot name, pictures, faces, documents, wifi, logs, events), the trees of
//	         platform_config.json and DASConfig.json, the logs that wait for their upload, wherever they are, the system's log,
//	         the switchboard's key area, the answer to data collection
//	kept     the medical record, factory/, persist/, the release; of data/ only data/kennel/connect_seq, a number that orders connections; that
//	         a person holds the robot or a peer halted it, without the words (edge/core/coreserver/holdfile)
//
// The device key in persist/kennel stays: it says which robot this is, and with it the robot comes back unattended, to its next owner.
//
// A confirmed wipe is recorded on disk (persist/kennel/wipe.json) before anything is erased, and the record is removed only when the cloud knows:
// the next start continues after any crash in between. Like the original's, it is requested with run/wipe-data and done while nothing uses
// the data: Resume is the first step of the start.
package wipe

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"

	"kennel/edge/agent/das"
	"kennel/edge/agent/health/diag"
	"kennel/edge/core/coreserver/holdfile"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
)

// Files, below the robot's root.
const (
	Marker      = "run/wipe-data"                            // asks for a wipe; the original's
	Switchboard = "dev/block/bootdevice/by-name/switchboard" // key area of the original's user data, and sessions of its Bluetooth
	journalFile = "persist/kennel/wipe.json"                 // a wipe that is not over
	connectSeq  = "data/kennel/connect_seq"                  // not personal: the cloud orders connections by it
	bootID      = platform.BootIDFile                        // a new life has a new boot id: numbers of events begin again
	maxErase    = 64                                         // levels of folders
	maxArea     = 16 << 20                                   // bytes of the switchboard area, as in the original's partition table
)

// journal is the content of journalFile.
type journal struct {
	// Key names this wipe in the cloud (infra/api/owners).
	Key    string `json:"key"`
	Erased bool   `json:"erased"` // everything is gone; the news is not told yet
	Told   bool   `json:"told"`   // the event is recorded
}

// Request asks for a wipe, which the owner has confirmed. It is done at the next start of the agent, for certain.
func Request(root *os.Root) error {
	j, err := readJournal(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || j.Erased || j.Key == "" {
		j = journal{Key: rand.Text()} // a new wipe while an earlier one is not reported yet: reporting this one covers both
	}
	if err := writeJournal(root, j); err != nil {
		return err
	}
	return robotfs.WriteFile(root, Marker, nil, 0o644)
}

// Requested reports whether a wipe was asked for, or begun and not finished.
func Requested(root *os.Root) bool {
	if _, err := root.Stat(Marker); err == nil {
		return true
	}
	j, err := readJournal(root)
	return err == nil && !j.Erased || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// Config names the data to wipe.
type Config struct {
	Root *os.Root
	Log  *slog.Logger

	// Step is called before each change on disk: tests end there, as a power cut does. nil: nothing is.
	Step func(string)

	keep func(name string) bool // what else stays, a folder as a whole; nil: nothing
}

// Erase removes the user data, except what keep says of a name below the root; a folder that it names stays as a whole. step is called before each
// change on disk; nil is allowed. Nothing may use the data meanwhile. It may be repeated and continues where it ended.
func Erase(root *os.Root, log *slog.Logger, keep func(name string) bool, step func(string)) error {
	return eraseTrees(Config{Root: root, Log: log, Step: step, keep: keep}.withDefaults())
}

func (cfg Config) withDefaults() Config {
	if cfg.Step == nil {
		cfg.Step = func(string) {}
	}
	if cfg.keep == nil {
		cfg.keep = func(string) bool { return false }
	}
	return cfg
}

// Resume completes a wipe that was asked for or begun, and reports whether there was one. Nothing may use the user data while it runs.
// After an error the wipe is still due: the next start tries again, and no program should use the data before.
func Resume(cfg Config) (wiped bool, err error) {
	cfg = cfg.withDefaults()
	root := cfg.Root
	if !Requested(root) {
		return false, nil
	}
	if err := robotfs.CleanTemp(root, path.Dir(journalFile)); err != nil {
		return false, err
	}
	j, err := readJournal(root)
	if err != nil || j.Key == "" || j.Erased {
		// The marker alone, as the original's menu makes it; or a damaged journal: a wipe was requested.
		j = journal{Key: rand.Text()}
		cfg.Step("journal")
		if err := writeJournal(root, j); err != nil {
			return false, err
		}
	}
	cfg.Log.Warn("clearing user data")
	// The key area first: without it the rest is unreadable if the data are encrypted.
	if err := eraseArea(cfg, Switchboard); err != nil {
		return false, err
	}
	if err := eraseTrees(cfg); err != nil {
		return false, err
	}
	j.Erased = true
	cfg.Step("erased")
	if err := writeJournal(root, j); err != nil {
		return false, err
	}
	cfg.Step("marker")
	if err := root.Remove(Marker); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	cfg.Log.Warn("user data cleared")
	return true, nil
}

func eraseTrees(cfg Config) error {
	trees, err := personalTrees(cfg.Root)
	if err != nil {
		cfg.Log.Error("configuration unreadable; clearing the default folders", "err", err)
	}
	if err := diag.Empty(cfg.Root); err != nil {
		return fmt.Errorf("clear the logs: %w", err)
	}
	for _, t := range trees {
		if err := erase(cfg, t); err != nil {
			return fmt.Errorf("clear the user data: %w", err)
		}
	}
	return cfg.Root.MkdirAll("data", 0o755)
}

// personalTrees lists the folders with personal data. The error says what could not be read; the list is valid all the same.
func personalTrees(root *os.Root) ([]string, error) {
	t, terr := platform.LoadTrees(root)
	d, derr := das.LoadFileConfig(root)
	l, lerr := platform.LoadLogUploader(root, func(string) string { return "" })
	logs, oerr := l.Outgoing(root)
	trees := []string{"data", t.Persistent, t.Cache, d.StoragePath, d.BackupPath, d.PersistentGlobals, d.TransientGlobals, das.AllowFile, "run/claim-code",
		"run/kennel", bootID, logs}
	err := errors.Join(terr, derr, lerr, oerr)
	out := trees[:0]
	for _, p := range trees {
		switch {
		case p == "" || slices.Contains(out, p):
		case !platform.Personal(p):
			err = errors.Join(err, fmt.Errorf("%s not cleared: not a folder of personal data", p))
		default:
			out = append(out, p)
		}
	}
	return out, err
}

// erase removes a file, or a folder with all that is in it, except what is kept. Links are removed, not followed.
func erase(cfg Config, name string) error {
	info, err := cfg.Root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := eraseAny(cfg, name, info, 0); err != nil {
		return err
	}
	return robotfs.SyncDir(cfg.Root, existing(cfg.Root, path.Dir(name)))
}

// existing returns dir or, if it is gone, the nearest folder above it that exists.
func existing(root *os.Root, dir string) string {
	for dir != "." {
		if _, err := root.Stat(dir); err == nil {
			break
		}
		dir = path.Dir(dir)
	}
	return dir
}

// eraseAny reports whether name is gone: a folder around something kept is not.
func eraseAny(cfg Config, name string, info fs.FileInfo, depth int) (gone bool, err error) {
	switch {
	case name == connectSeq || cfg.keep(name):
		return false, nil
	case name == holdfile.NoteFile && info.Mode().IsRegular():
		if kept, err := takeWords(cfg); kept || err != nil {
			return false, err
		}
	}
	whole := true
	if info.IsDir() {
		if depth == maxErase {
			return false, fmt.Errorf("%.200s: nested more than %d folders deep", name, maxErase)
		}
		if whole, err = eraseInside(cfg, name, depth); err != nil {
			return false, err
		}
	}
	if !whole {
		return false, nil
	}
	cfg.Step("remove " + name)
	if err := cfg.Root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}

// takeWords takes the words from the note of a hold if it is an older release's, which alone says that the robot is halted, and reports whether it is.
// It changes the file that it looked at and no other, and in one write: robotd may read it, or release the hold, meanwhile.
func takeWords(cfg Config) (kept bool, err error) {
	note, err := cfg.Root.OpenFile(holdfile.NoteFile, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer note.Close() // synced below
	f, err := holdfile.Read(cfg.Root)
	if err == nil && f.Covered() {
		return false, nil
	}
	cfg.Step("take words " + holdfile.NoteFile)
	if err != nil { // it cannot be read: empty, it holds the robot as well
		return true, errors.Join(note.Truncate(0), note.Sync())
	}
	info, err := note.Stat()
	if err != nil {
		return false, err
	}
	if f.Note.By != "" {
		f.Note.Held = holdfile.Wordless(f.Note.Since)
	}
	b, err := json.Marshal(f.Note)
	if err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(note, "%-*s", int(info.Size()), b); err != nil {
		return false, err
	}
	return true, note.Sync()
}

func eraseInside(cfg Config, dir string, depth int) (whole bool, err error) {
	f, err := cfg.Root.Open(dir)
	if err != nil {
		return false, err
	}
	names, err := f.Readdirnames(-1)
	_ = f.Close() // read only
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	slices.Sort(names)
	whole = true
	for _, n := range names {
		full := path.Join(dir, n)
		info, err := cfg.Root.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		gone, err := eraseAny(cfg, full, info, depth+1)
		if err != nil {
			return false, err
		}
		whole = whole && gone
	}
	if !whole {
		return false, robotfs.SyncDir(cfg.Root, dir)
	}
	return true, nil
}

// eraseArea writes zeros over a partition, or the file that simulates one; a robot without it has nothing to erase.
func eraseArea(cfg Config, name string) error {
	f, err := cfg.Root.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()                    // synced below
	size, err := f.Seek(0, io.SeekEnd) // of a device, too
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if size > maxArea {
		return fmt.Errorf("%s has %d bytes: want at most %d", name, size, maxArea)
	}
	zero := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(zero)) {
		cfg.Step("zero " + name)
		if _, err := f.WriteAt(zero[:min(int64(len(zero)), size-at)], at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return f.Sync()
}

func readJournal(root *os.Root) (j journal, err error) {
	b, err := robotfs.ReadFile(root, journalFile)
	if err != nil {
		return j, err
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return journal{}, fmt.Errorf("%s: %w", journalFile, err)
	}
	return j, nil
}

func writeJournal(root *os.Root, j journal) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return robotfs.WriteFile(root, journalFile, append(b, '\n'), 0o644)
}
