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
		v, err := version(dir)
		if err != nil {
			continue // not a folder with Postgres
		}
		b := Binaries{Dir: dir, Major: v}
		if major == v || major == 0 && i < len(path) {
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
		"Postgres %sis not installed: found no folder with postgres and initdb in PATH or %s; on Debian: apt-get install %s",
		strings.TrimPrefix(fmt.Sprintf("%d ", major), "0 "), pattern, name)
}

// version asks dir's programs for their major version; both postgres and initdb must be there.
func version(dir string) (int, error) {
	if dir == "" {
		return 0, errors.New("empty folder name")
	}
	for _, p := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			return 0, err
		}
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, err
	}
	return parseVersion(string(out))
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
