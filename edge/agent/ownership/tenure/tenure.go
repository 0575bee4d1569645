// Package tenure ends what a robot holds of its owner when it becomes another's or has none: recorded events, logs, pictures, faces, recordings,
// documents, tokens, results of commands and whatever else is in the user data.
//
//	the cloud says who the owner is, or a token does ─► Learn: the end is on disk ─► agentd ends
//	agentd's next start ─► Resume: erase everything but what kept names ─► the new owner is noted
//
// What is not on the list of what stays is erased, and what parts hold in memory ends with agentd: a new part has nothing to register. The robot learns
// of an end at its next connection at the latest, and nothing of the former owner leaves it before (ownership.Config.Former). A robot that had no owner
// holds nothing of one, so a first owner ends nothing.
package tenure

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"kennel/edge/agent/commands"
	"kennel/edge/agent/health/diag"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/ownership/tokens"
	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
)

// Files, each with the id of an account; empty: no owner.
const (
	ownerFile   = "data/kennel/owner"     // whose user data these are; missing: not known yet
	journalFile = "persist/kennel/tenure" // who is the owner after an end that is due; missing: none is due
)

// kept are the files and folders in the user data that outlive an end.
var kept = []string{
	commands.Dir,         // which commands were begun, so that none is begun twice; without their words (commands.Forget)
	"data/update-engine", // which releases are known, and how far an update is
	"data/lib/connman",   // the Wi-Fi, without which the robot cannot be claimed; a wipe removes it
	gatewaycert.NameFile, // the robot's own name, drawn by lot, and the key and certificate that go with it
	gatewaycert.KeyFile,
	gatewaycert.CertFile,
	"run/kennel/started", // that agentd started in this boot
}

// Keeper knows whose user data the robot holds. Safe for concurrent use.
type Keeper struct {
	root *os.Root

	mu    sync.Mutex
	user  string
	known bool
	ended bool
}

// Open reads whose user data these are.
func Open(root *os.Root) (*Keeper, error) {
	user, known, err := read(root, ownerFile)
	return &Keeper{root: root, user: user, known: known}, err
}

// Owned reports whether the robot holds the user data of an owner.
func (k *Keeper) Owned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.user != ""
}

// Due reports whether the user data are a former owner's, and are to be erased.
func (k *Keeper) Due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended
}

// Learn takes who the owner is now, by the account's id; "": none. If the user data are another's it reports that the tenure ended: that is on disk,
// agentd has to end, and its next start erases them. After an error nothing is noted; the robot must serve no owner until Learn succeeds.
func (k *Keeper) Learn(user string) (ended bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known && k.user == user {
		return k.ended, nil
	}
	file := ownerFile
	if k.ended || k.user != "" {
		file, k.ended = journalFile, true
	}
	if err := robotfs.WriteFile(k.root, file, []byte(user+"\n"), 0o600); err != nil {
		return k.ended, fmt.Errorf("change of owner: %w", err)
	}
	k.user, k.known = user, true
	return k.ended, nil
}

// Config says whose user data Resume erases.
type Config struct {
	Root *os.Root
	Log  *slog.Logger

	step func(string) // called before each change on disk: tests end there, as a power cut does
}

// Resume completes an end that is due, and reports whether there was one. It is called before anything uses the user data. After an error the end is
// still due: the next start tries again, and no program should use the data before.
func Resume(cfg Config) (ended bool, err error) {
	trees, err := platform.LoadTrees(cfg.Root)
	if err != nil {
		cfg.Log.Error("configuration unreadable; clearing the default folders", "err", err)
	}
	holder, token := tokens.UserOf(cfg.Root, trees.Persistent)
	next, due, err := read(cfg.Root, journalFile)
	if err != nil {
		return false, err
	}
	if !due { // a new owner's token may be stored and the end not noted
		user, known, err := read(cfg.Root, ownerFile)
		if err != nil || !known || user == "" || holder == "" || holder == user {
			return false, err
		}
		next = holder
		if err := robotfs.WriteFile(cfg.Root, journalFile, []byte(next+"\n"), 0o600); err != nil {
			return false, err
		}
	}
	step := cfg.step
	if step == nil {
		step = func(string) {}
	}
	cfg.Log.Warn("owner changed or removed; clearing data of the former owner")
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"commands", func() error { return commands.Forget(cfg.Root, cfg.Log) }},
		{"user data", func() error {
			return wipe.Erase(cfg.Root, cfg.Log, func(name string) bool {
				return slices.Contains(kept, name) || diag.IsOpen(trees.Cache, name) || name == token && next != "" && holder == next
			}, step)
		}},
		{"owner", func() error { return robotfs.WriteFile(cfg.Root, ownerFile, []byte(next+"\n"), 0o600) }},
		{"journal", func() error {
			return errors.Join(cfg.Root.Remove(journalFile), robotfs.SyncDir(cfg.Root, path.Dir(journalFile)))
		}},
	} {
		step(s.name)
		if err := s.do(); err != nil {
			return false, fmt.Errorf("clear data of the former owner: %s: %w", s.name, err)
		}
	}
	cfg.Log.Warn("data of the former owner cleared")
	return true, nil
}

// Forget drops an end that is due: a wipe has done more.
func Forget(root *os.Root) error {
	if err := root.Remove(journalFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func read(root *os.Root, name string) (user string, ok bool, err error) {
	b, err := robotfs.ReadFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return strings.TrimSpace(string(b)), err == nil, err
}
