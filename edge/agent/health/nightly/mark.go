package nightly

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"kennel/edge/env/robotfs"
)

// mark is the content of AskedFile: when the reboot began, and in which boot. The original's file is empty.
type mark struct {
	at   time.Time
	boot string
}

func (m mark) append(b []byte) []byte {
	b = append(m.at.UTC().AppendFormat(b, time.RFC3339Nano), ' ')
	return append(append(b, m.boot...), '\n')
}

// parseMark reads a mark; false: it does not say when.
func parseMark(b []byte) (mark, bool) {
	at, boot, ok := strings.Cut(strings.TrimSuffix(string(b), "\n"), " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	t = t.UTC()
	if !ok || err != nil || t.Year() < 0 || t.Year() > 9999 || len(boot) > 64 || strings.ContainsAny(boot, " \n") {
		return mark{}, false
	}
	return mark{t, boot}, true
}

func writeMark(root *os.Root, m mark) error {
	return robotfs.WriteFile(root, AskedFile, m.append(nil), 0o644)
}

// Last is the nightly reboot before this start. The zero value means that there was none.
type Last struct {
	At time.Time // when it began, by the clock of then; zero: not known
	// News: its end was not reported yet.
	News bool
	// Robot: the whole robot rebooted; false: only agentd was restarted.
	Robot bool
}

// Started returns the nightly reboot that this boot follows, and moves the file that says so to where the robot's programs look. It is
// called once at each start of agentd; boot is the id of the current boot.
func Started(root *os.Root, boot string) (Last, error) {
	b, err := robotfs.ReadFile(root, AskedFile)
	news := err == nil
	if errors.Is(err, fs.ErrNotExist) {
		b, err = robotfs.ReadFile(root, AfterFile)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Last{}, nil
	case err != nil:
		return Last{}, fmt.Errorf("read the nightly reboot marker: %w", err)
	}
	m, ok := parseMark(b)
	l := Last{At: m.at, News: news, Robot: !ok || m.boot != boot}
	if !news {
		return l, nil
	}
	if err := robotfs.WriteFile(root, AfterFile, b, 0o644); err != nil {
		return l, fmt.Errorf("write the nightly reboot marker: %w", err)
	}
	if err := root.Remove(AskedFile); err != nil {
		return l, fmt.Errorf("write the nightly reboot marker: %w", err)
	}
	return l, nil
}

// Asked reports whether a nightly reboot of the robot below root began and is not over.
func Asked(root *os.Root) bool {
	_, err := root.Lstat(AskedFile)
	return err == nil
}

// Installed reports whether an update of the robot below root waits for the reboot.
func Installed(root *os.Root) bool {
	_, err := root.Lstat(DoneFile)
	return err == nil
}
