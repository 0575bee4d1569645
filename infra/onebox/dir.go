package onebox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"kennel/infra/atomicfile"
	"kennel/infra/errs"
)

// DefaultDir is the default folder of an instance: /var/lib/kennel for root, else $XDG_DATA_HOME/kennel or ~/.local/share/kennel.
func DefaultDir(getenv func(string) string) (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/kennel", nil
	}
	if x := getenv("XDG_DATA_HOME"); filepath.IsAbs(x) { // the XDG rules say to ignore relative ones
		return filepath.Join(x, "kennel"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errs.New(errs.Invalid, "no data folder: neither XDG_DATA_HOME nor HOME is set; give one with -data")
	}
	return filepath.Join(home, ".local", "share", "kennel"), nil
}

// Paths are the folders of an instance, absolute. The package comment says what they hold.
type Paths struct {
	Root, PG, S3, CA, Secrets, Run, Robots, Log string
}

// PathsOf returns the folders of the instance in dir; it makes none.
func PathsOf(dir string) (Paths, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return Paths{}, err
	}
	sub := func(name string) string { return filepath.Join(root, name) }
	return Paths{root, sub("pg"), sub("s3"), sub("ca"), sub("secrets"), sub("run"), sub("robots"), sub("log")}, nil
}

func (p Paths) cluster() string        { return filepath.Join(p.PG, "data") }
func (p Paths) lockFile() string       { return filepath.Join(p.Run, "lock") }
func (p Paths) readyFile() string      { return filepath.Join(p.Run, "ready.json") }
func (p Paths) parts() string          { return filepath.Join(p.Run, "parts") }
func (p Paths) log(n string) string    { return filepath.Join(p.Log, n+".log") }
func (p Paths) pid(n string) string    { return filepath.Join(p.parts(), n+".json") }
func (p Paths) secret(n string) string { return filepath.Join(p.Secrets, n) }

// make makes the folders. Root's Postgres runs under another account, which must be able to pass through Root and PG.
func (p Paths) make() error {
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{p.Root, 0o711}, {p.PG, 0o711}, {p.S3, 0o700}, {p.CA, 0o700}, {p.Secrets, 0o700}, {p.Run, 0o700}, {p.parts(), 0o700}, {p.Robots, 0o700}, {p.Log, 0o700}} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	// MkdirAll's modes are subject to the umask; a strict one would shut Postgres out.
	return errors.Join(os.Chmod(p.Root, 0o711), os.Chmod(p.PG, 0o711))
}

// Instance is a data folder that this process holds. Its methods are safe for concurrent use, except Close.
type Instance struct {
	Paths    Paths
	Programs string // folder of the other programs; "": where this one is

	log   *slog.Logger
	lock  *lock
	ready []string // files that Publish wrote
}

// Open makes the folders if needed and takes the data folder for this process. If another process has it the error (kind Conflict,
// code "locked") names that process.
func Open(dir string, log *slog.Logger) (*Instance, error) {
	p, err := PathsOf(dir)
	if err != nil {
		return nil, err
	}
	if err := p.make(); err != nil {
		return nil, err
	}
	l, err := takeLock(p)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(p.readyFile()) // of an earlier life that could not clean up; absent otherwise
	return &Instance{Paths: p, log: log, lock: l}, nil
}

// Close gives the data folder back. Stop the parts before.
func (i *Instance) Close() error {
	var all []error
	for _, f := range i.ready {
		if err := os.Remove(f); !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	i.ready = nil
	return errors.Join(append(all, i.lock.release())...)
}

// Secret returns the file of a secret, made at the first call: 26 random letters and digits and a newline, mode 0600. One that the
// operator wrote before is kept.
func (i *Instance) Secret(name string) (file string, err error) {
	file = i.Paths.secret(name)
	if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) != "" {
		return file, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("secret %s: %w", name, err)
	}
	if err := atomicfile.WriteFile(file, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("secret %s: %w", name, err)
	}
	return file, nil
}

// PutSecret replaces the file of a secret, whole or not at all; mode 0600.
func (i *Instance) PutSecret(name string, b []byte) error {
	if err := atomicfile.WriteFile(i.Paths.secret(name), b, 0o600); err != nil {
		return fmt.Errorf("secret %s: %w", name, err)
	}
	return nil
}
