package pgserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kennel/infra/errs"
)

// Binaries is one installed version of Postgres.
type Binaries struct {
	Dir   string // folder of postgres, initdb and pg_dump
	Major int    // such as 15
}

// Path returns the file of one program.
func (b Binaries) Path(program string) string { return filepath.Join(b.Dir, program) }

// debian keeps every major version in its own folder, outside PATH.
const debian = "/usr/lib/postgresql/*/bin"

// Find returns an installed Postgres: of the given major version, or for major 0 the one in PATH, else the newest. The error names the
// Debian package to install (kind NotFound).
func Find(major int) (Binaries, error) {
	return find(major, filepath.SplitList(os.Getenv("PATH")), debian)
}

func find(major int, path []string, pattern string) (Binaries, error) {
	found, _ := filepath.Glob(pattern) // the only error is a bad pattern
	dirs := slices.Concat(path, found)
	var all []Binaries
	for i, dir := range dirs {
		b, err := inspect(dir)
		if err != nil {
			continue // not a folder with Postgres
		}
		if major == b.Major || major == 0 && i < len(path) {
			return b, nil
		}
		all = append(all, b)
	}
	if major == 0 && len(all) > 0 {
		return slices.MaxFunc(all, func(a, b Binaries) int { return cmp.Compare(a.Major, b.Major) }), nil
	}
	name := "postgresql"
	if major != 0 {
		name = fmt.Sprintf("postgresql-%d", major)
	}
	return Binaries{}, errs.Coded(errs.NotFound, "no_postgres",
		"Postgres %sis not installed: found no folder with %s in PATH or %s; on Debian: apt-get install %s",
		strings.TrimPrefix(fmt.Sprintf("%d ", major), "0 "), strings.Join(programs, ", "), pattern, name)
}

// programs are the files that a folder of binaries must hold.
var programs = []string{"postgres", "initdb", "pg_dump", "pg_restore"}

// inspect follows dir's postgres to where it is really installed, checks that its companions are there, and asks for its version.
func inspect(dir string) (Binaries, error) {
	if dir == "" {
		return Binaries{}, errors.New("empty folder name")
	}
	server, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return Binaries{}, err
	}
	dir = filepath.Dir(server)
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			return Binaries{}, err
		}
	}
	out, err := exec.Command(server, "--version").Output()
	if err != nil {
		return Binaries{}, err
	}
	v, err := parseVersion(string(out))
	return Binaries{Dir: dir, Major: v}, err
}

// parseVersion reads the major version of "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)" or "... 19beta1".
func parseVersion(s string) (int, error) {
	_, rest, ok := strings.Cut(s, "(PostgreSQL) ")
	if !ok {
		return 0, fmt.Errorf("version %q: want \"postgres (PostgreSQL) N...\"", s)
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	return strconv.Atoi(rest[:end])
}

// clusterMajor reads the major version that made the cluster in dir.
func clusterMajor(dir string) (int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("%s/PG_VERSION: %w", dir, err)
	}
	return v, nil
}
