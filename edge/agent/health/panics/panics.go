// Package panics brings the kernel panics of an earlier run, and the problems that the boot check found, into the log and the events after the next start
// (VEC-DGN-13).
package panics

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"kennel/infra/api/events"
	"kennel/infra/logging"
)

// Dir is where programs that run before agentd put the kernel's last words, a file for each panic. A file that was logged is kept under the name with
// seen, the newest few of them.
const (
	Dir  = "data/panics"
	seen = ".seen"
)

// Further places: the kernel's own store, which frees a record when its file is removed, and what the body's boot check noted.
const (
	pstore = "sys/fs/pstore"
	check  = "dev/rampost_error"
)

// Own limits.
const (
	most   = 16       // files at once, and of those that were seen
	ending = 32 << 10 // of the end of one
)

// Collect logs what it finds. Call it once in each boot, when events can be recorded.
func Collect(root *os.Root, emit func(events.Event), log *slog.Logger) {
	for _, dir := range []string{Dir, pstore} {
		entries, _ := fs.ReadDir(root.FS(), dir) // none: no panic
		for _, e := range entries[:min(len(entries), 4*most)] {
			if name := dir + "/" + e.Name(); e.Type().IsRegular() && !strings.HasSuffix(name, seen) {
				if err := collect(root, name, emit, log); err != nil {
					log.Warn("kernel panic not collected", "file", name, logging.Err, err)
				}
			}
		}
	}
	if text, err := end(root, check); err == nil && text != "" {
		log.Warn("boot check found problems", "file", check, "text", text)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("boot check unreadable", "file", check, logging.Err, err)
	}
	if err := forget(root); err != nil {
		log.Warn("old kernel panics not removed", logging.Err, err)
	}
}

// collect logs one file. It is not logged again.
func collect(root *os.Root, name string, emit func(events.Event), log *slog.Logger) error {
	text, err := end(root, name)
	if err != nil {
		return err
	}
	first := firstLine(text)
	log.Warn("kernel panicked in an earlier run", "file", name, "text", text)
	emit(events.Event{Source: "agentd", Level: events.Error, Name: "robot.kernel_panic", S1: name, S2: first})
	if strings.HasPrefix(name, pstore+"/") {
		return root.Remove(name)
	}
	return root.Rename(name, name+seen)
}

// firstLine returns the line that says what happened: the kernel's begins with its time and the words Kernel panic.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "Kernel panic"); i >= 0 {
			return strings.TrimSpace(line[i:])
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// end returns the end of a file.
func end(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() // read only
	if is, err := f.Stat(); err != nil || !is.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a plain file", name))
	} else if is.Size() > ending {
		if _, err := f.Seek(is.Size()-ending, io.SeekStart); err != nil {
			return "", err
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, ending))
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD")), err
}

// forget removes the oldest of the files that were seen, as their names sort: they begin with a number or a time.
func forget(root *os.Root) (err error) {
	entries, _ := fs.ReadDir(root.FS(), Dir) // none: nothing to forget
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !strings.HasSuffix(e.Name(), seen) })
	for _, e := range entries[:max(0, len(entries)-most)] {
		err = errors.Join(err, root.Remove(Dir+"/"+e.Name()))
	}
	return err
}
