// Package robotfs reads and writes the files of one robot, all below its root (os.Root), so that a simulated robot cannot write outside its
// folder. Files that it writes are whole or absent (infra/atomicfile).
package robotfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"kennel/infra/atomicfile"
	"kennel/infra/errs"
)

// Well-known folders of the original robot, relative to its root (spec/vector-cloud.md: PERS, CACHE, RES).
const (
	Persistent = "data/data/com.anki.victor/persistent"
	Cache      = "data/data/com.anki.victor/cache"
	Resources  = "anki/data/assets/cozmo_resources"
)

// WriteFile replaces name with data. After it returned nil the new content survives a power cut; if it fails or the process dies, the
// old content remains. Missing folders are created. Safe for concurrent use; the last rename wins.
func WriteFile(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	return atomicfile.Write(root, name, data, perm, 0o755)
}

// SyncDir makes renames and new files in dir durable.
func SyncDir(root *os.Root, dir string) error { return atomicfile.SyncDir(root, dir) }

// CleanTemp removes what interrupted writes left in dir. A missing folder is fine.
func CleanTemp(root *os.Root, dir string) error { return atomicfile.CleanTemp(root, dir) }

// Unfinished reports whether name is of a file that WriteFile has not renamed yet.
func Unfinished(name string) bool { return atomicfile.Unfinished(name) }

// MaxFile is the largest file that ReadFile reads, in bytes.
const MaxFile = 16 << 20

// ReadFile reads a file of at most MaxFile bytes.
func ReadFile(root *os.Root, name string) ([]byte, error) {
	return atomicfile.Read(root, name, MaxFile)
}

// ReadJSON reads a JSON file that may hold // and /* */ comments (VEC-CLD-04) into v. Unknown keys are ignored, as the original did.
func ReadJSON(root *os.Root, name string, v any) error {
	b, err := ReadFile(root, name)
	if err != nil {
		return err
	}
	clean, err := StripComments(b)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(clean, v); err != nil {
		return fmt.Errorf("%s: %w", name, locate(clean, err))
	}
	return nil
}

// locate adds the line to a JSON syntax error.
func locate(b []byte, err error) error {
	var off int64
	var syn *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syn):
		off = syn.Offset
	case errors.As(err, &typ):
		off = typ.Offset
	default:
		return err
	}
	line := 1
	for _, c := range b[:min(int(off), len(b))] {
		if c == '\n' {
			line++
		}
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// StripComments returns b with C comments outside strings replaced by spaces, so that offsets and lines stay (VEC-CFG-01). A block
// comment without an end is an error.
func StripComments(b []byte) ([]byte, error) {
	out := append([]byte(nil), b...)
	for i := 0; i < len(out); i++ {
		switch {
		case out[i] == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '/':
			for ; i < len(out) && out[i] != '\n'; i++ {
				out[i] = ' '
			}
		case out[i] == '/' && i+1 < len(out) && out[i+1] == '*':
			start := i
			end := strings.Index(string(out[i+2:]), "*/")
			if end < 0 {
				return nil, fmt.Errorf("comment opened at byte %d is not closed; want */", start)
			}
			for ; i < start+2+end+2; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		}
	}
	return out, nil
}

// ParseEnv reads KEY=VALUE lines (VEC-CLD-05): blank lines and # comments are skipped, values may be quoted. The error names the line.
func ParseEnv(b []byte) (map[string]string, error) {
	env := map[string]string{}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		k = strings.TrimSpace(k)
		if !ok || k == "" || strings.ContainsAny(k, " \t\"'") {
			return nil, fmt.Errorf("line %d: %.60q: want KEY=VALUE", i+1, line)
		}
		v = strings.TrimSpace(v)
		if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
			v = v[1 : len(v)-1]
		}
		env[k] = v
	}
	return env, nil
}

// marks are what the root of a robot has, and of other machines not: the folders of the original's programs, of its factory record, of its data, and its record itself.
var marks = []string{"anki", "factory", Persistent, "dev/block/bootdevice/by-name/emr"}

// CheckDefault refuses a root that no flag named and that does not look like a robot's, with kind Invalid and code no_robot: a program that is started by hand on a desk
// would take that machine for one.
func CheckDefault(root *os.Root) error {
	for _, name := range marks {
		if _, err := root.Stat(name); err == nil {
			return nil
		}
	}
	return errs.Coded(errs.Invalid, "no_robot", "%s is not the root of a robot; -root FOLDER names one, such as the folder of a simulated robot", root.Name())
}
