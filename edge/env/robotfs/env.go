package robotfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"
)

// Env is one of the robot's .env files (VEC-CLD-05): every key has a default, the file overrides it, and a variable KENNEL_<KEY> of the
// process overrides the file. The first value that cannot be read is kept as an error.
type Env struct {
	name   string
	values map[string]string
	getenv func(string) string
	err    error
}

// LoadEnv reads the file, and further ones whose keys override those of earlier ones; a missing file counts as empty.
func LoadEnv(root *os.Root, name string, getenv func(string) string, further ...string) *Env {
	e := &Env{name: name, values: map[string]string{}, getenv: getenv}
	for _, name := range append([]string{name}, further...) {
		b, err := ReadFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var values map[string]string
		if err == nil {
			values, err = ParseEnv(b)
		}
		if err != nil && e.err == nil {
			e.err = fmt.Errorf("%s: %w", name, err)
		}
		if len(values) > 0 {
			e.name = name // of the file that was read last, where a mistake is likeliest
		}
		maps.Copy(e.values, values)
	}
	return e
}

// Err returns the first mistake found.
func (e *Env) Err() error { return e.err }

func (e *Env) get(key string) string {
	if v := e.getenv("KENNEL_" + key); v != "" {
		return v
	}
	return e.values[key]
}

// Int returns the number under key, or def; it must lie in [lo, hi].
func (e *Env) Int(key string, def, lo, hi int) int {
	v := e.get(key)
	if v == "" {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		if e.err == nil {
			e.err = fmt.Errorf("%s: %s is %q: want a number from %d to %d", e.name, key, v, lo, hi)
		}
		return def
	}
	return n
}

// String returns the text under key, or def.
func (e *Env) String(key, def string) string {
	if v := e.get(key); v != "" {
		return v
	}
	return def
}

// Bool returns the truth under key, or def. The original's files write 0 and 1, true and false.
func (e *Env) Bool(key string, def bool) bool {
	switch v := e.get(key); strings.ToLower(v) {
	case "":
		return def
	case "1", "true", "yes", "on":
		return true
	case "0", "false", "no", "off":
		return false
	default:
		if e.err == nil {
			e.err = fmt.Errorf("%s: %s is %.60q: want 0, 1, true or false", e.name, key, v)
		}
		return def
	}
}

// Seconds returns the duration under key, written in whole seconds.
func (e *Env) Seconds(key string, def time.Duration, hi time.Duration) time.Duration {
	return time.Duration(e.Int(key, int(def/time.Second), 0, int(hi/time.Second))) * time.Second
}

// Millis returns the duration under key, written in whole milliseconds.
func (e *Env) Millis(key string, def, lo, hi time.Duration) time.Duration {
	return time.Duration(e.Int(key, int(def/time.Millisecond), int(lo/time.Millisecond), int(hi/time.Millisecond))) * time.Millisecond
}
